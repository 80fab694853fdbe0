//! What icp-cli wants to know from the program that it has started as a network: a file `status.json`, by version 1 of
//! its interface of network launchers.

use crate::http::Node;
use serde_json::json;
use std::path::Path;

/// Says in `directory` that the network is ready on this port, which is both the gateway's and the PocketIC protocol's.
pub(super) fn report(directory: &Path, node: &Node, port: u16) -> std::io::Result<()> {
    let (start, _) = node.instance.replica(|replica| replica.canister_ids());
    let status = json!({
        "v": "1",
        "gateway_port": port,
        "root_key": hex::encode(node.keys.root_der()),
        "config_port": port,
        "instance_id": 0,
        "default_effective_canister_id": start.to_text(),
    });
    // In one piece, and one line: icp-cli reads it as soon as it is there.
    let unfinished = directory.join("status.json.part");
    std::fs::write(&unfinished, format!("{status}\n"))?;
    std::fs::rename(unfinished, directory.join("status.json"))
}
