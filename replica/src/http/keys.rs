//! The keys that vouch for what the replica answers.

use candid::Principal;
use ic_verify_bls_signature as bls;
use sha2::{Digest, Sha256};

/// Frames a BLS public key as the IC does, in DER.
const BLS_DER_PREFIX: [u8; 37] = [
    0x30, 0x81, 0x82, 0x30, 0x1d, 0x06, 0x0d, 0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0xdc, 0x7c, 0x05, 0x03, 0x01, 0x02,
    0x01, 0x06, 0x0c, 0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0xdc, 0x7c, 0x05, 0x03, 0x02, 0x01, 0x03, 0x61, 0x00,
];
/// What a signature of a state tree begins with.
const STATE_ROOT_DOMAIN: &[u8] = b"\x0dic-state-root";

/// The root key, which signs certificates, and the node's key, which signs answers to queries.
pub(crate) struct Keys {
    seed: [u8; 32],
    root: bls::PrivateKey,
    root_der: Vec<u8>,
    node: ic_ed25519::PrivateKey,
    node_der: Vec<u8>,
}

impl Keys {
    /// The keys that this seed gives, always the same.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        let root = bls_key(seed);
        let root_der = [&BLS_DER_PREFIX[..], &root.public_key().serialize()].concat();
        let node = ic_ed25519::PrivateKey::deserialize_raw_32(&derive(seed, b"node key", 0));
        let node_der = node.public_key().serialize_rfc8410_der();
        Self { seed: *seed, root, root_der, node, node_der }
    }

    /// What they were made from.
    pub fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    /// The root's public key, in DER.
    pub fn root_der(&self) -> &[u8] {
        &self.root_der
    }

    /// The root's public key without its frame, 96 bytes.
    pub fn root_raw(&self) -> &[u8] {
        &self.root_der[BLS_DER_PREFIX.len()..]
    }

    /// The subnet's id, which follows from the root key.
    pub fn subnet(&self) -> Principal {
        Principal::self_authenticating(&self.root_der)
    }

    /// The node's public key, in DER.
    pub fn node_der(&self) -> &[u8] {
        &self.node_der
    }

    /// The node's id.
    pub fn node(&self) -> Principal {
        Principal::self_authenticating(&self.node_der)
    }

    /// Signs the root hash of a state tree.
    pub fn sign_state(&self, root_hash: &[u8; 32]) -> Vec<u8> {
        self.root.sign(&[STATE_ROOT_DOMAIN, root_hash].concat()).serialize().to_vec()
    }

    /// Signs an answer to a query; `message` with its domain in front.
    pub fn sign_answer(&self, message: &[u8]) -> Vec<u8> {
        self.node.sign_message(message).to_vec()
    }
}

fn derive(seed: &[u8; 32], what: &[u8], attempt: u32) -> [u8; 32] {
    let hash = Sha256::new().chain_update(b"icsql replica ").chain_update(what).chain_update(seed);
    hash.chain_update(attempt.to_le_bytes()).finalize().into()
}

/// The first hash of a series that is below the order of the group: nearly one in two is.
fn bls_key(seed: &[u8; 32]) -> bls::PrivateKey {
    let mut attempt = 0;
    loop {
        if let Ok(key) = bls::PrivateKey::deserialize(&derive(seed, b"root key", attempt)) {
            return key;
        }
        attempt += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_decides_and_signatures_verify() {
        let keys = Keys::from_seed(&[1; 32]);
        assert_eq!(keys.root_der(), Keys::from_seed(&[1; 32]).root_der());
        assert_ne!(keys.root_der(), Keys::from_seed(&[2; 32]).root_der());
        assert_eq!(keys.root_der().len(), 133);
        let signature = keys.sign_state(&[7; 32]);
        let message = [STATE_ROOT_DOMAIN, &[7; 32]].concat();
        assert_eq!(bls::verify_bls_signature(&signature, &message, keys.root_raw()), Ok(()));
        assert!(bls::verify_bls_signature(&signature, &message[1..], keys.root_raw()).is_err());
    }
}
