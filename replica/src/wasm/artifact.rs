//! Compiled modules on disk.
//!
//! ```text
//! magic "ICSQLMOD" | SHA-256 of the rest | length of the metadata (u32 LE) | metadata (JSON) | wasmtime's artefact
//! ```
//! A file that is damaged, or that another version of wasmtime wrote, counts as absent.
#![allow(unsafe_code)]

use super::Metadata;
use sha2::{Digest, Sha256};
use std::path::Path;

const MAGIC: &[u8; 8] = b"ICSQLMOD";
const HASH: std::ops::Range<usize> = MAGIC.len()..MAGIC.len() + 32;
const LENGTH: std::ops::Range<usize> = HASH.end..HASH.end + 4;

/// The module in this file, if it is whole and fits this engine.
pub(super) fn load(engine: &wasmtime::Engine, file: &Path) -> Option<(Metadata, wasmtime::Module)> {
    let bytes = std::fs::read(file).ok()?;
    if bytes.get(..MAGIC.len())? != MAGIC || bytes.get(HASH)? != Sha256::digest(bytes.get(HASH.end..)?).as_slice() {
        return None;
    }
    let length = u32::from_le_bytes(bytes.get(LENGTH)?.try_into().ok()?) as usize;
    let metadata = serde_json::from_slice(bytes.get(LENGTH.end..LENGTH.end.checked_add(length)?)?).ok()?;
    let artefact = bytes.get(LENGTH.end + length..)?;
    // SAFETY: the bytes must come from `Module::serialize`. `store` is the only writer of files with this magic
    // in a directory that the user keeps for this purpose, the hash shows that they are as they were written,
    // and wasmtime itself refuses another version's or another machine's artefact.
    let module = unsafe { wasmtime::Module::deserialize(engine, artefact) }.ok()?;
    Some((metadata, module))
}

/// Writes the file, whole or not at all. A failure only means that the module is compiled again.
pub(super) fn store(file: &Path, metadata: &Metadata, module: &wasmtime::Module) {
    let (Ok(metadata), Ok(artefact)) = (serde_json::to_vec(metadata), module.serialize()) else { return };
    let Ok(length) = u32::try_from(metadata.len()) else { return };
    let rest = [&length.to_le_bytes()[..], &metadata, &artefact].concat();
    let bytes = [&MAGIC[..], Sha256::digest(&rest).as_slice(), &rest].concat();
    if let Some(directory) = file.parent() {
        let _ = std::fs::create_dir_all(directory);
    }
    let partial = file.with_extension(format!("partial{}", std::process::id()));
    if std::fs::write(&partial, bytes).is_ok() {
        let _ = std::fs::rename(&partial, file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stored_is_found_again_unless_it_is_damaged() {
        let engine = crate::wasm::engine().unwrap();
        let module = wasmtime::Module::new(engine, wat::parse_str("(module (memory 3))").unwrap()).unwrap();
        let metadata = Metadata { operators: 7, ..Metadata::default() };
        let directory = std::env::temp_dir().join(format!("icsql-replica-modules-{}", std::process::id()));
        let file = directory.join("a.module");
        assert!(load(engine, &file).is_none());
        store(&file, &metadata, &module);
        assert_eq!(load(engine, &file).expect("the module").0.operators, 7);
        let whole = std::fs::read(&file).unwrap();
        for at in [0, HASH.start, LENGTH.start, LENGTH.end, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&file, damaged).unwrap();
            assert!(load(engine, &file).is_none(), "byte {at}");
        }
        for length in [0, 20, LENGTH.end, whole.len() - 1] {
            std::fs::write(&file, &whole[..length]).unwrap();
            assert!(load(engine, &file).is_none(), "{length} bytes");
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
