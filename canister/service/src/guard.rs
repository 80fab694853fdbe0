//! Who may call what, and with how large an argument: one table, asked by every method before it reads its argument
//! and by `inspect_message` before a message costs anything.
use crate::host::Host;
use crate::limits::{
    KEY_ARGUMENT_BYTES_MAX, KEYS_ARGUMENT_BYTES_MAX, NOTE_ARGUMENT_BYTES_MAX, PUT_ARGUMENT_BYTES_MAX,
    SMALL_ARGUMENT_BYTES_MAX,
};
use icsql_types::{Error, method};

/// Who may call a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anyone, also anonymously.
    Public,
    /// The canister's controllers.
    Controllers,
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
    KV_PUT: Controllers, PUT_ARGUMENT_BYTES_MAX;
    KV_GET: Public, KEY_ARGUMENT_BYTES_MAX;
    KV_GET_MANY: Public, KEYS_ARGUMENT_BYTES_MAX;
    KV_SET_NOTE: Controllers, NOTE_ARGUMENT_BYTES_MAX;
    KV_GET_NOTE: Public, KEY_ARGUMENT_BYTES_MAX;
    KV_COUNT: Controllers, SMALL_ARGUMENT_BYTES_MAX;
    DB_META: Public, SMALL_ARGUMENT_BYTES_MAX;
    DB_INTEGRITY_CHECK: Controllers, SMALL_ARGUMENT_BYTES_MAX;
    DB_CHECKSUM: Controllers, SMALL_ARGUMENT_BYTES_MAX;
    DB_REFRESH_CHECKSUM: Controllers, SMALL_ARGUMENT_BYTES_MAX;
    DB_REFRESH_CHECKSUM_CHUNK: Controllers, SMALL_ARGUMENT_BYTES_MAX;
}

impl Rule {
    /// Lets the message go on to have its argument read, and answers the argument's size in bytes.
    ///
    /// # Errors
    /// [`Error::Forbidden`], or [`Error::TooLarge`] for the argument as a whole.
    #[inline(always)]
    pub fn check(&self, host: &impl Host) -> Result<usize, Error> {
        if self.access == Access::Controllers && !host.caller_is_controller() {
            return Err(self.forbidden());
        }
        let actual = host.argument_bytes();
        if actual > self.argument_bytes_max {
            return Err(too_large("argument", self.argument_bytes_max, actual));
        }
        Ok(actual)
    }

    #[cold]
    fn forbidden(&self) -> Error {
        Error::Forbidden { method: self.name.to_owned(), allowed: "controllers of the canister".to_owned() }
    }
}

/// Whether an ingress message to `method` shall be taken at all. It is only a saving: calls between canisters never
/// pass here, so every method checks again.
pub fn accepts(host: &impl Host, method: &[u8]) -> bool {
    RULES.iter().find(|rule| rule.name.as_bytes() == method).is_some_and(|rule| rule.check(host).is_ok())
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
