//! The reference canister of ic-sqlite-vfs, which that crate exports under its feature `canister-api`.

use ic_sqlite_vfs as _;
