//! `icsql-replica --ic --state-dir`: what is there after the process was stopped or killed.
#![cfg(unix)] // Processes are stopped by signals.

mod common;
#[path = "common/ic.rs"]
mod ic;

use candid::Principal;
use ic::{Server, basic, canister};
use ic_agent::Agent;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("icsql-replica-saved-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn start(&self) -> Server {
        Server::start_with(&["--state-dir".as_ref(), self.0.as_os_str()])
    }

    /// Waits until the state has been replaced.
    async fn wait_for_save(&self) {
        let file = self.0.join("state");
        let first = std::fs::read(&file).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while std::fs::read(&file).unwrap() == first {
            assert!(Instant::now() < deadline, "nothing is saved");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn number(reply: &[u8]) -> u64 {
    u64::from_le_bytes(reply.try_into().expect("8 bytes"))
}

async fn counted(agent: &Agent, id: &Principal) -> u64 {
    number(&agent.query(id, "counted").call().await.expect("the count"))
}

#[tokio::test]
async fn nothing_that_was_answered_is_lost_when_the_server_is_stopped() {
    let folder = Folder::new("stopped");
    let server = folder.start();
    let agent = server.agent(basic(1)).await;
    let id = server.deploy(&agent, &canister()).await;
    let root_key = agent.read_root_key();
    agent.update(&id, "certify").with_arg(vec![7; 32]).await.unwrap();
    let sent = agent.update(&id, "count").sign().unwrap();
    let call = format!("/api/v3/canister/{id}/call");
    assert_eq!(server.post(&call, &sent.signed_update).0, 200);
    assert!(server.signal("TERM").success());
    for (round, signal) in ["INT", "TERM"].into_iter().enumerate() {
        let server = folder.start();
        let agent = server.agent(basic(1)).await;
        assert_eq!(agent.read_root_key(), root_key);
        // What was answered is known to have been: the same request is not taken again.
        assert_eq!(server.post(&call, &sent.signed_update).0, 200);
        assert_eq!(counted(&agent, &id).await, 1 + round as u64);
        let status = agent.request_status_raw(&sent.request_id, id).await.unwrap().0;
        assert!(matches!(status, ic_agent::agent::RequestStatusResponse::Done), "{status:?}");
        // The signal comes as soon as the answer is out.
        assert_eq!(number(&agent.update(&id, "count").await.unwrap()), 2 + round as u64);
        assert!(server.signal(signal).success());
    }
    let server = folder.start();
    let agent = server.agent(basic(1)).await;
    assert_eq!(counted(&agent, &id).await, 3);
    let controllers = agent.read_state_canister_controllers(id).await.unwrap();
    assert_eq!(controllers, [agent.get_principal().unwrap()]);
    let certificate = agent.query(&id, "certificate").call().await.unwrap();
    assert!(certificate.windows(32).any(|window| window == [7; 32]), "the certified data is not in the certificate");
    // Other canisters get other ids.
    assert_ne!(server.deploy(&agent, &canister()).await, id);
}

#[tokio::test]
async fn a_process_that_is_killed_leaves_an_older_state_whole() {
    let folder = Folder::new("killed");
    let server = folder.start();
    let id = server.deploy(&server.agent(basic(1)).await, &canister()).await;
    assert!(server.signal("TERM").success());
    let mut before = 0;
    for _ in 0..2 {
        let server = folder.start();
        let agent = server.agent(basic(1)).await;
        assert_eq!(counted(&agent, &id).await, before);
        // Killed in the middle of calls, and now and then of a save.
        let answered = Arc::new(AtomicU64::new(before));
        let calls = tokio::spawn({
            let (agent, answered) = (agent.clone(), Arc::clone(&answered));
            async move {
                while let Ok(reply) = agent.update(&id, "count").await {
                    answered.store(number(&reply), Ordering::Relaxed);
                }
            }
        });
        folder.wait_for_save().await;
        let long_ago = answered.load(Ordering::Relaxed);
        // The first may have begun before.
        folder.wait_for_save().await;
        folder.wait_for_save().await;
        assert!(!server.signal("KILL").success());
        calls.abort();
        let server = folder.start();
        let after = counted(&server.agent(basic(1)).await, &id).await;
        let answered = answered.load(Ordering::Relaxed);
        // At most one call was executed and not answered; what was answered long ago was saved.
        assert!((long_ago..=answered + 1).contains(&after), "{after} of {answered}, {long_ago} of them long ago");
        assert!(long_ago > before, "no call was answered");
        before = after;
        assert!(server.signal("TERM").success());
    }
}

#[tokio::test]
async fn a_directory_has_one_server_and_must_be_a_replicas() {
    let folder = Folder::new("one");
    let server = folder.start();
    let second = |folder: &Folder| {
        let output = Command::new(env!("CARGO_BIN_EXE_icsql-replica"))
            .args(["--ic", "--state-dir"])
            .arg(&folder.0)
            .output()
            .expect("the binary runs");
        assert!(!output.status.success());
        String::from_utf8(output.stderr).expect("words")
    };
    assert!(second(&folder).contains("is in use by another replica"));
    assert!(server.signal("TERM").success());
    let state = folder.0.join("state");
    let mut bytes = std::fs::read(&state).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&state, bytes).unwrap();
    assert!(second(&folder).contains("damaged and was not loaded"));
    let foreign = Folder::new("foreign");
    std::fs::create_dir_all(&foreign.0).unwrap();
    std::fs::write(foreign.0.join("letter.txt"), "dear").unwrap();
    assert!(second(&foreign).contains("holds other files"));
}

#[tokio::test]
async fn canisters_have_their_paths_on_the_same_port() {
    let server = Server::start();
    let agent = server.anonymous().await;
    let id = server.deploy(&agent, &canister()).await;
    let get = |host: &str, path: &str| {
        let (status, body) = server.request("GET", path, &format!("host: {host}\r\n"), b"");
        (status, String::from_utf8_lossy(&body).into_owned())
    };
    // This canister has no `http_request`, and says so on every path that is its own.
    for (host, path) in [
        (format!("{id}.localhost"), "/status".to_owned()),
        (format!("{id}.raw.localhost"), "/instances".to_owned()),
        ("localhost".to_owned(), format!("/page?canisterId={id}")),
    ] {
        let (status, words) = get(&host, &path);
        assert!(status == 404 && words.contains("no query method 'http_request'"), "{host}{path}: {status} {words}");
    }
    // Everything else is where it was: the server's own paths, and the interface for pages of canisters.
    assert_eq!(get("localhost", "/status"), (200, String::new()));
    for host in ["localhost".to_owned(), format!("{id}.localhost")] {
        assert_eq!(get(&host, "/api/v2/status").0, 200, "{host}");
    }
    assert_eq!(get("localhost", "/").0, 400);
}

/// The save follows the change by itself, without an end of the process.
#[tokio::test]
async fn a_change_is_saved_soon() {
    let folder = Folder::new("soon");
    let server = folder.start();
    let agent = server.agent(basic(1)).await;
    let state = folder.0.join("state");
    let id = server.deploy(&agent, &canister()).await;
    let deadline = Instant::now() + Duration::from_secs(60);
    while !String::from_utf8_lossy(&std::fs::read(&state).unwrap()).contains(&id.to_text()) {
        assert!(Instant::now() < deadline, "the change is not saved");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Until the next change nothing more is written than the end of this one.
    let modified = || std::fs::metadata(&state).unwrap().modified().unwrap();
    let mut saves = Vec::from([modified()]);
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if saves.last() != Some(&modified()) {
            saves.push(modified());
        }
    }
    assert!(saves.len() <= 2, "{} saves", saves.len());
}
