//! The chunk store, through which modules that do not fit into a message come in.

use super::{EMPTY_REPLY, Sender, contract, decode, encode, mode_of};
use crate::limits::{CHUNK_BYTES_MAX, CHUNKS_MAX};
use crate::replica::Replica;
use crate::replica::canister::{CallResult, Canister};
use crate::replica::install::check_controller;
use crate::types::Reject;
use candid::Principal;
use ic_management_canister_types as ic;
use sha2::{Digest, Sha256};
use std::sync::Arc;

fn store_error(what: impl std::fmt::Display) -> Reject {
    contract(format!("Error from Wasm chunk store: {what}."))
}

impl Replica {
    /// The canister with this id, if `caller` may use its chunk store: its controllers and itself.
    fn store_of(&mut self, id: &Principal, caller: &Principal) -> Result<&mut Canister, Reject> {
        let canister = self.canister_mut(id)?;
        if *caller != canister.id {
            check_controller(canister, caller)?;
        }
        Ok(canister)
    }

    pub(super) fn upload_chunk(&mut self, caller: Principal, argument: &[u8]) -> CallResult {
        let (args,): (ic::UploadChunkArgs,) = decode(argument)?;
        let store = &mut self.store_of(&args.canister_id, &caller)?.chunks;
        if args.chunk.len() > CHUNK_BYTES_MAX {
            return Err(store_error(format!(
                "Wasm chunk size {} exceeds the maximum chunk size of {CHUNK_BYTES_MAX}",
                args.chunk.len()
            )));
        }
        let hash: [u8; 32] = Sha256::digest(&args.chunk).into();
        if store.len() >= CHUNKS_MAX && !store.contains_key(&hash) {
            return Err(store_error(format!("Wasm chunk store already holds the maximum of {CHUNKS_MAX} chunks")));
        }
        store.insert(hash, Arc::new(args.chunk));
        encode((ic::ChunkHash { hash: hash.to_vec() },))
    }

    pub(super) fn clear_chunk_store(&mut self, caller: Principal, argument: &[u8]) -> CallResult {
        let (args,): (ic::ClearChunkStoreArgs,) = decode(argument)?;
        self.store_of(&args.canister_id, &caller)?.chunks.clear();
        Ok(EMPTY_REPLY.to_vec())
    }

    pub(super) fn stored_chunks(&mut self, caller: Principal, argument: &[u8]) -> CallResult {
        let (args,): (ic::StoredChunksArgs,) = decode(argument)?;
        let store = &self.store_of(&args.canister_id, &caller)?.chunks;
        encode((store.keys().map(|h| ic::ChunkHash { hash: h.to_vec() }).collect::<Vec<_>>(),))
    }

    pub(super) fn install_chunked_code(&mut self, sender: Sender, argument: &[u8]) -> CallResult {
        let (args,): (ic::InstallChunkedCodeArgs,) = decode(argument)?;
        let caller = sender.principal();
        check_controller(self.canister(&args.target_canister)?, &caller)?;
        let store = args.store_canister.unwrap_or(args.target_canister);
        let canister = self.store_of(&store, &caller)?;
        let mut wasm = Vec::new();
        for chunk in &args.chunk_hashes_list {
            let stored = <[u8; 32]>::try_from(chunk.hash.as_slice()).ok().and_then(|h| canister.chunks.get(&h));
            let stored = stored.ok_or_else(|| {
                store_error(format!("Chunk hash {} was not found in {store}", hex::encode(&chunk.hash)))
            })?;
            wasm.extend_from_slice(stored);
        }
        let hash = Sha256::digest(&wasm);
        if hash.as_slice() != args.wasm_module_hash {
            return Err(store_error(format!(
                "Wasm module hash {} of the chunks does not match the given hash {}",
                hex::encode(hash),
                hex::encode(&args.wasm_module_hash)
            )));
        }
        self.install_code(args.target_canister, mode_of(args.mode), &wasm, args.arg, sender)?;
        Ok(EMPTY_REPLY.to_vec())
    }
}
