//! Writes that are safe to repeat: a write with a key is remembered for a day with its reply.
use crate::error::Failure;
use crate::guard::{at_most, too_large};
use crate::host::{Caller, Host};
use crate::limits::{
    IDEMPOTENCY_KEY_BYTES_MAX, IDEMPOTENCY_KEYS_MAX, IDEMPOTENCY_KEYS_SWEPT, IDEMPOTENCY_NS, IDEMPOTENT_REPLY_BYTES_MAX,
};
use icsql_engine::{Sql, Writer, sha256_of};
use icsql_types::Error;

static FIND: Sql = Sql::new(
    "SELECT id, at, content, reply FROM main.icsql_idempotency WHERE caller = ?1 AND method = ?2 AND key = ?3",
);
static FORGET: Sql = Sql::new("DELETE FROM main.icsql_idempotency WHERE id = ?1");
static SWEEP: Sql = Sql::new(
    "DELETE FROM main.icsql_idempotency
     WHERE id IN (SELECT id FROM main.icsql_idempotency ORDER BY id LIMIT ?1) AND at <= ?2",
);
static REMEMBER: Sql = Sql::new(
    "INSERT INTO main.icsql_idempotency(at, caller, method, key, content, reply) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
);
static COUNT: Sql = Sql::new("SELECT value FROM main.icsql_setting WHERE name = 'idempotency keys'");
static SET_COUNT: Sql = Sql::new("UPDATE main.icsql_setting SET value = ?1 WHERE name = 'idempotency keys'");

/// A call with a key.
pub struct Request<'a> {
    caller: Caller,
    method: &'static str,
    key: &'a str,
    /// SHA-256 of the argument as it was sent.
    content: [u8; 32],
    now: i64,
}

impl<'a> Request<'a> {
    /// The call of `method` with this key and argument; none if it has no key.
    ///
    /// # Errors
    /// A key that is empty or too long.
    pub fn of(
        host: &impl Host,
        method: &'static str,
        key: Option<&'a str>,
        argument: &[u8],
    ) -> Result<Option<Self>, Error> {
        key.map(|key| Self::new(host, method, key, argument)).transpose()
    }

    fn new(host: &impl Host, method: &'static str, key: &'a str, argument: &[u8]) -> Result<Self, Error> {
        if key.is_empty() {
            return Err(Error::InvalidArgument {
                argument: "idempotency_key".to_owned(),
                message: format!("it is empty; a key has 1 to {IDEMPOTENCY_KEY_BYTES_MAX} bytes"),
            });
        }
        at_most("idempotency_key", IDEMPOTENCY_KEY_BYTES_MAX, key)?;
        let now = i64::try_from(host.time_ns()).unwrap_or(i64::MAX);
        Ok(Self { caller: host.caller(), method, key, content: sha256_of(argument), now })
    }
}

/// Answers what the first call with this key answered, or runs `reply` and remembers what it answers.
///
/// # Errors
/// [`Error::Conflict`] if the first call had another argument; [`Error::TooLarge`] if the reply is too large to remember or
/// too many keys are; what `reply` answers, of which nothing is remembered.
pub fn run(
    writer: &Writer<'_>,
    request: &Request<'_>,
    reply: impl FnOnce() -> Result<Vec<u8>, Failure>,
) -> Result<Vec<u8>, Failure> {
    let Request { caller, method, key, content, now } = request;
    let oldest = now.saturating_sub_unsigned(IDEMPOTENCY_NS);
    let found = writer.query_row(&FIND, (caller.as_slice(), *method, *key), |row| {
        let (id, at) = (row.integer(0)?, row.integer(1)?);
        Ok::<_, Failure>((id, at, row.blob(2)? == content, row.blob(3)?.to_vec()))
    })?;
    let mut forgotten = 0;
    match found {
        Some((id, at, ..)) if at <= oldest => forgotten += writer.execute(&FORGET, (id,))?,
        Some((_, _, true, remembered)) => return Ok(remembered),
        Some((_, _, false, _)) => {
            let message = format!("the key {key:?} was used for another {method} within the last 24 hours");
            return Err(Error::Conflict { what: "idempotency key".to_owned(), message }.into());
        }
        None => {}
    }
    forgotten += writer.execute(&SWEEP, (IDEMPOTENCY_KEYS_SWEPT as u32, oldest))?;
    let count = writer.query_row(&COUNT, (), |row| row.integer(0))?.unwrap_or(0);
    let count = u64::try_from(count).unwrap_or(0).saturating_sub(forgotten) as usize;
    if count >= IDEMPOTENCY_KEYS_MAX {
        return Err(too_large("remembered idempotency keys", IDEMPOTENCY_KEYS_MAX, count + 1).into());
    }
    let reply = reply()?;
    if reply.len() > IDEMPOTENT_REPLY_BYTES_MAX {
        return Err(
            too_large("reply of a call with an idempotency key", IDEMPOTENT_REPLY_BYTES_MAX, reply.len()).into()
        );
    }
    writer.execute(&REMEMBER, (*now, caller.as_slice(), *method, *key, content.as_slice(), reply.as_slice()))?;
    writer.execute(&SET_COUNT, (count as i64 + 1,))?;
    Ok(reply)
}
