//! Who may call what, and with how large an argument: one table, asked by every method before it reads its argument
//! and by `inspect_message` before a message costs anything.
use crate::host::{Caller, Host};
use crate::limits::{
    KEY_ARGUMENT_BYTES_MAX, KEYS_ARGUMENT_BYTES_MAX, LIST_ARGUMENT_BYTES_MAX, NOTE_ARGUMENT_BYTES_MAX,
    PUT_ARGUMENT_BYTES_MAX, QUERY_DEFINE_ARGUMENT_BYTES_MAX, SMALL_ARGUMENT_BYTES_MAX, SQL_ARGUMENT_BYTES_MAX,
};
use icsql_types::{Error, Role, method};

/// Who may call a method. The canister's controllers may call each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anyone, also anonymously.
    Public,
    /// Anyone while reading of the key-value store is public, else as [`Access::Reader`].
    Kv,
    /// Readers, writers and admins.
    Reader,
    /// Writers and admins.
    Writer,
    /// Admins.
    Admin,
}

impl Access {
    /// The least role that suffices; none if none is needed.
    fn role(self, roles: &Roles) -> Option<Role> {
        match self {
            Access::Public => None,
            Access::Kv if roles.public_kv => None,
            Access::Kv | Access::Reader => Some(Role::Reader),
            Access::Writer => Some(Role::Writer),
            Access::Admin => Some(Role::Admin),
        }
    }
}

/// Who has which role: kept on the heap as it is in the database.
#[derive(Debug, Default)]
pub struct Roles {
    /// In ascending order.
    grants: Vec<(Caller, Role)>,
    /// Whether anyone may read the key-value store.
    pub public_kv: bool,
}

impl Roles {
    /// The roles of these principals, each of which is there once.
    pub fn new(grants: Vec<(Caller, Role)>, public_kv: bool) -> Self {
        let mut sorted: Vec<(Caller, Role)> = Vec::with_capacity(grants.len());
        for grant in grants {
            // They come in order, so each goes to the end; a sort of the library's is 18 KB of Wasm.
            let place = sorted.partition_point(|before| before.0 < grant.0);
            sorted.insert(place, grant);
        }
        Self { grants: sorted, public_kv }
    }

    /// The role of a principal.
    pub fn get(&self, principal: &Caller) -> Option<Role> {
        let place = self.grants.binary_search_by(|(other, _)| other.cmp(principal)).ok()?;
        self.grants.get(place).map(|(_, role)| *role)
    }

    /// How many principals have one.
    pub fn count(&self) -> usize {
        self.grants.len()
    }

    /// All principals with a role, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = &(Caller, Role)> {
        self.grants.iter()
    }

    /// The role that the caller acts in: controllers act as admins.
    pub fn of_caller(&self, host: &impl Host) -> Option<Role> {
        let caller = host.caller();
        match self.get(&caller) {
            Some(Role::Admin) => Some(Role::Admin),
            role => {
                if host.is_controller(&caller) {
                    Some(Role::Admin)
                } else {
                    role
                }
            }
        }
    }
}

/// What is checked before a method's argument is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The method's name.
    pub name: &'static str,
    /// Who may call it.
    pub access: Access,
    /// Largest argument, in bytes of Candid.
    pub argument_bytes_max: usize,
}

macro_rules! rules {
    ($($method:ident: $access:ident, $bytes:ident;)*) => {
        $(#[doc = concat!("The rule of [`method::", stringify!($method), "`].")]
        pub const $method: Rule =
            Rule { name: method::$method.name, access: Access::$access, argument_bytes_max: $bytes };)*
        /// All rules.
        pub const RULES: &[Rule] = &[$($method),*];
    };
}

rules! {
    KV_PUT: Writer, PUT_ARGUMENT_BYTES_MAX;
    KV_GET: Kv, KEY_ARGUMENT_BYTES_MAX;
    KV_GET_MANY: Kv, KEYS_ARGUMENT_BYTES_MAX;
    KV_SET_NOTE: Writer, NOTE_ARGUMENT_BYTES_MAX;
    KV_GET_NOTE: Kv, KEY_ARGUMENT_BYTES_MAX;
    KV_COUNT: Reader, SMALL_ARGUMENT_BYTES_MAX;
    KV_GET_ENTRY: Kv, KEY_ARGUMENT_BYTES_MAX;
    KV_READ: Kv, KEY_ARGUMENT_BYTES_MAX;
    KV_LIST: Reader, LIST_ARGUMENT_BYTES_MAX;
    KV_PUT_BLOB: Writer, PUT_ARGUMENT_BYTES_MAX;
    KV_APPEND: Writer, PUT_ARGUMENT_BYTES_MAX;
    KV_DELETE: Writer, KEY_ARGUMENT_BYTES_MAX;
    KV_DELETE_MANY: Writer, KEYS_ARGUMENT_BYTES_MAX;
    KV_WRITE: Writer, PUT_ARGUMENT_BYTES_MAX;
    SQL_QUERY: Reader, SQL_ARGUMENT_BYTES_MAX;
    SQL_EXECUTE: Writer, SQL_ARGUMENT_BYTES_MAX;
    SQL_BATCH: Writer, SQL_ARGUMENT_BYTES_MAX;
    SQL_EXPLAIN: Reader, SQL_ARGUMENT_BYTES_MAX;
    SQL_SCHEMA: Reader, SMALL_ARGUMENT_BYTES_MAX;
    SQL_MIGRATE: Admin, SQL_ARGUMENT_BYTES_MAX;
    SQL_MIGRATIONS: Reader, SMALL_ARGUMENT_BYTES_MAX;
    QUERY_DEFINE: Admin, QUERY_DEFINE_ARGUMENT_BYTES_MAX;
    QUERY_DROP: Admin, SMALL_ARGUMENT_BYTES_MAX;
    QUERY_LIST: Reader, SMALL_ARGUMENT_BYTES_MAX;
    QUERY_CALL: Public, SQL_ARGUMENT_BYTES_MAX;
    DB_META: Public, SMALL_ARGUMENT_BYTES_MAX;
    DB_INTEGRITY_CHECK: Admin, SMALL_ARGUMENT_BYTES_MAX;
    DB_CHECKSUM: Reader, SMALL_ARGUMENT_BYTES_MAX;
    DB_REFRESH_CHECKSUM: Admin, SMALL_ARGUMENT_BYTES_MAX;
    DB_REFRESH_CHECKSUM_CHUNK: Admin, SMALL_ARGUMENT_BYTES_MAX;
    ACCESS_GRANT: Admin, SMALL_ARGUMENT_BYTES_MAX;
    ACCESS_REVOKE: Admin, SMALL_ARGUMENT_BYTES_MAX;
    ACCESS_LIST: Admin, SMALL_ARGUMENT_BYTES_MAX;
    ACCESS_SET_PUBLIC_KV: Admin, SMALL_ARGUMENT_BYTES_MAX;
}

impl Rule {
    /// Lets the message go on to have its argument read, and answers the argument's size in bytes.
    ///
    /// # Errors
    /// [`Error::Forbidden`], or [`Error::TooLarge`] for the argument as a whole.
    #[inline(always)]
    pub fn check(&self, host: &impl Host, roles: &Roles) -> Result<usize, Error> {
        if let Some(least) = self.access.role(roles)
            && !self.allows(host, roles, least)
        {
            return Err(self.forbidden(least));
        }
        let actual = host.argument_bytes();
        if actual > self.argument_bytes_max {
            return Err(too_large("argument", self.argument_bytes_max, actual));
        }
        Ok(actual)
    }

    /// Whether the caller has this role or a higher one. Looking a role up costs a tenth of asking the platform for
    /// controllers, so it comes first.
    #[inline(always)]
    fn allows(&self, host: &impl Host, roles: &Roles, least: Role) -> bool {
        let caller = host.caller();
        roles.get(&caller).is_some_and(|role| role >= least) || host.is_controller(&caller)
    }

    /// The error for a caller whose role is below `least`.
    #[cold]
    pub fn forbidden(&self, least: Role) -> Error {
        let allowed = match least {
            Role::Reader => "controllers of the canister, and principals with the role reader, writer or admin",
            Role::Writer => "controllers of the canister, and principals with the role writer or admin",
            Role::Admin => "controllers of the canister, and principals with the role admin",
        };
        Error::Forbidden { method: self.name.to_owned(), allowed: allowed.to_owned() }
    }
}

/// Whether an ingress message to `method` shall be taken at all. It is only a saving: calls between canisters never
/// pass here, so every method checks again.
pub fn accepts(host: &impl Host, roles: &Roles, method: &[u8]) -> bool {
    RULES.iter().find(|rule| rule.name.as_bytes() == method).is_some_and(|rule| rule.check(host, roles).is_ok())
}

/// The error for `what` of size `actual`.
#[cold]
pub fn too_large(what: &str, limit: usize, actual: usize) -> Error {
    Error::TooLarge { what: what.to_owned(), limit: limit as u64, actual: actual as u64 }
}

/// Checks a text's size in bytes.
///
/// # Errors
/// [`Error::TooLarge`].
#[inline(always)]
pub fn at_most(what: &str, limit: usize, text: &str) -> Result<(), Error> {
    if text.len() > limit { Err(too_large(what, limit, text.len())) } else { Ok(()) }
}
