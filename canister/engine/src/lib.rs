//! SQLite on the stable memory of an Internet Computer canister.
//!
//! Calls go one way: `db` → {`vfs`, `sqlite`} → `stable`. `vfs` and `sqlite` never meet; `db` joins them by the
//! VFS's name. Nothing here knows of Candid or of the service.
pub mod stable;
