//! Types of the methods `access_…`.
use candid::{CandidType, Principal};
use serde::{Deserialize, Serialize};

/// What a principal may do. Each role may do what the one before it may.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Read everything but the service's own tables.
    Reader,
    /// Write data.
    Writer,
    /// Everything that a controller may through this interface.
    Admin,
}

/// A principal's role.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The principal.
    pub who: Principal,
    /// Its role.
    pub role: Role,
}

/// Who may do what.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct AccessList {
    /// The roles, by principal. Controllers of the canister may do everything and are not listed.
    pub grants: Vec<Grant>,
    /// Whether anyone may read the key-value store.
    pub public_kv: bool,
}
