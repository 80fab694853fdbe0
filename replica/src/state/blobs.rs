//! Files named by the SHA-256 of their contents.

use super::{StateError, failed};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A SHA-256; in text, and so in the names of files, 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Hash(pub [u8; 32]);

impl Hash {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl std::fmt::Display for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl std::str::FromStr for Hash {
    type Err = hex::FromHexError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes)?;
        Ok(Self(bytes))
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A folder of them.
pub(super) struct Blobs {
    folder: PathBuf,
    present: HashSet<Hash>,
    /// Files that a save which did not come to its end has left.
    leftovers: Vec<PathBuf>,
    /// Files were added since the last [`sync`](Self::sync).
    added: bool,
}

/// Makes names that were added to a directory, or changed in it, last.
pub(super) fn sync_directory(path: &Path) -> Result<(), StateError> {
    File::open(path).and_then(|directory| directory.sync_all()).map_err(failed("cannot sync", path))
}

impl Blobs {
    pub fn open(folder: PathBuf) -> Result<Self, StateError> {
        std::fs::create_dir_all(&folder).map_err(failed("cannot make the directory", &folder))?;
        let (mut present, mut leftovers) = (HashSet::new(), Vec::new());
        for entry in std::fs::read_dir(&folder).map_err(failed("cannot read the directory", &folder))? {
            let name = entry.map_err(failed("cannot read the directory", &folder))?.file_name();
            match name.to_str().and_then(|name| name.parse().ok()) {
                Some(hash) => drop(present.insert(hash)),
                None => leftovers.push(folder.join(name)),
            }
        }
        Ok(Self { folder, present, leftovers, added: false })
    }

    fn file(&self, hash: &Hash) -> PathBuf {
        self.folder.join(hash.to_string())
    }

    /// The contents with this hash.
    pub fn read(&self, hash: &Hash) -> Result<Vec<u8>, StateError> {
        let file = self.file(hash);
        let bytes = std::fs::read(&file).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => StateError::Damaged(format!("{} is missing", file.display())),
            _ => failed("cannot read", &file)(error),
        })?;
        if Hash::of(&bytes) != *hash {
            return Err(StateError::Damaged(format!("the contents of {} are not those of its name", file.display())));
        }
        Ok(bytes)
    }

    /// Adds contents.
    pub fn put(&mut self, bytes: &[u8]) -> Result<Hash, StateError> {
        let hash = Hash::of(bytes);
        self.put_as(hash, bytes)?;
        Ok(hash)
    }

    /// Adds contents whose hash is known.
    pub fn put_as(&mut self, hash: Hash, bytes: &[u8]) -> Result<(), StateError> {
        if self.present.contains(&hash) {
            return Ok(());
        }
        let (file, partial) = (self.file(&hash), self.folder.join(format!("{hash}.partial")));
        let written = File::create(&partial).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        written.map_err(failed("cannot write", &partial))?;
        std::fs::rename(&partial, &file).map_err(failed("cannot replace", &file))?;
        self.present.insert(hash);
        self.added = true;
        Ok(())
    }

    /// Makes what was added last.
    pub fn sync(&mut self) -> Result<(), StateError> {
        if std::mem::take(&mut self.added) {
            sync_directory(&self.folder)?;
        }
        Ok(())
    }

    /// Removes everything but these. A file that cannot be removed only takes room.
    pub fn retain(&mut self, used: &HashSet<Hash>) {
        let folder = &self.folder;
        self.leftovers.retain(|file| std::fs::remove_file(file).is_err());
        self.present.retain(|hash| used.contains(hash) || std::fs::remove_file(folder.join(hash.to_string())).is_err());
    }
}
