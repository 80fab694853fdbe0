//! The mark of a commit that is under way: what tells an image that was cut off in the middle of one.
//!
//! ```text
//! 64  id of the transaction whose commit began to write  u64
//! 72  checksum of the id                                  u64
//! 80
//! ```
//! It follows the superblock and is written before the first page of a commit. The superblock that ends the commit bears
//! the same id, so a mark above it means that the end never came. Zeros: no commit has begun yet. The Internet Computer
//! takes back a message that traps, the mark with it; other memories may not.
use super::digest::mix;
use super::superblock::{IMAGE_BASE_DEFAULT, SUPERBLOCK_BYTES, SuperblockError};
use super::{Memory, MemoryError};

/// Byte offset in the database's memory.
pub const COMMIT_MARK_OFFSET: u64 = SUPERBLOCK_BYTES as u64;

/// Bytes of the mark.
pub const COMMIT_MARK_BYTES: usize = 16;

const _: () = assert!(COMMIT_MARK_OFFSET + COMMIT_MARK_BYTES as u64 <= IMAGE_BASE_DEFAULT);

/// The first 64 bits of the fraction of the square root of 3.
const CHECKSUM_SEED: u64 = 0xbb67_ae85_84ca_a73b;

/// The mark of the transaction with this id.
pub fn encode(transaction_id: u64) -> [u8; COMMIT_MARK_BYTES] {
    let mut bytes = [0; COMMIT_MARK_BYTES];
    bytes[..8].copy_from_slice(&transaction_id.to_le_bytes());
    bytes[8..].copy_from_slice(&mix(CHECKSUM_SEED ^ transaction_id).to_le_bytes());
    bytes
}

/// Says that the commit of this transaction begins to write.
///
/// # Errors
/// The memory's; nothing has changed then.
pub fn store(memory: &impl Memory, transaction_id: u64) -> Result<(), MemoryError> {
    memory.write(COMMIT_MARK_OFFSET, &encode(transaction_id))
}

/// Checks that no commit was cut off since the one that the superblock tells of.
///
/// # Errors
/// [`SuperblockError::TornCommit`], [`SuperblockError::BadCommitMark`], or the memory's.
pub fn check(memory: &impl Memory, published: u64) -> Result<(), SuperblockError> {
    let mut found = [0; COMMIT_MARK_BYTES];
    memory.read(COMMIT_MARK_OFFSET, &mut found)?;
    if found == [0; COMMIT_MARK_BYTES] {
        return Ok(());
    }
    let [id, _] = [0, 8].map(|start| {
        let mut word = [0; 8];
        word.copy_from_slice(&found[start..start + 8]);
        u64::from_le_bytes(word)
    });
    if found != encode(id) {
        return Err(SuperblockError::BadCommitMark { found });
    }
    if id > published {
        return Err(SuperblockError::TornCommit { published, in_flight: id });
    }
    Ok(())
}
