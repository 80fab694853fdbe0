//! A development replica that runs a canister's Wasm on this machine and counts its instructions.
