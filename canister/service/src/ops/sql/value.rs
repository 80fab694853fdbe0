//! Values and parameters between the interface and the engine, and rows gathered into a reply.
use super::{at_statement, cost};
use crate::error::Failure;
use crate::guard::too_large;
use crate::limits::{PARAMS_MAX, REPLY_BYTES_MAX, REPLY_EXTRA_BYTES};
use core::ops::ControlFlow;
use icsql_engine::{Error as EngineError, Metrics, Named, Reader, Row, ValueRef, Writer, sha256_of};
use icsql_types::{Error, Params, Value};
use serde_bytes::ByteBuf;

/// Parameters, borrowed from the argument.
pub enum Bound<'a> {
    /// By position.
    Positional(Vec<ValueRef<'a>>),
    /// By name.
    Named(Vec<(&'a str, ValueRef<'a>)>),
}

impl<'a> Bound<'a> {
    /// The parameters of a statement.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for too many; [`Error::InvalidArgument`] for a text that is none.
    pub fn new(params: Option<&'a Params>) -> Result<Self, Error> {
        let count = match params {
            None | Some(Params::None) => 0,
            Some(Params::Positional(values)) => values.len(),
            Some(Params::Named(values)) => values.len(),
        };
        if count > PARAMS_MAX {
            return Err(too_large("params", PARAMS_MAX, count));
        }
        Ok(match params {
            None | Some(Params::None) => Bound::Positional(Vec::new()),
            Some(Params::Positional(values)) => Bound::Positional(values.iter().map(bound).collect::<Result<_, _>>()?),
            Some(Params::Named(values)) => {
                let value = |(name, value): &'a (String, Value)| Ok((name.as_str(), bound(value)?));
                Bound::Named(values.iter().map(value).collect::<Result<_, Error>>()?)
            }
        })
    }

    /// Runs a query with them and answers the names of its columns.
    ///
    /// # Errors
    /// The engine's; what `row` answers.
    pub fn query(
        &self,
        reader: &Reader<'_>,
        sql: &str,
        row: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<Vec<String>, Failure> {
        match self {
            Bound::Positional(values) => reader.query_named(sql, values.as_slice(), row),
            Bound::Named(values) => reader.query_named(sql, Named(values), row),
        }
    }

    /// Runs a statement with them and answers the names of its columns.
    ///
    /// # Errors
    /// The engine's; what `row` answers.
    pub fn run(
        &self,
        writer: &Writer<'_>,
        sql: &str,
        row: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<Vec<String>, Failure> {
        match self {
            Bound::Positional(values) => writer.query_named(sql, values.as_slice(), row),
            Bound::Named(values) => writer.query_named(sql, Named(values), row),
        }
    }

    /// The first bytes of a hash of a statement with these parameters.
    pub fn hash(&self, sql: &str) -> [u8; 16] {
        fn text(bytes: &mut Vec<u8>, text: &[u8]) {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text);
        }
        fn add(bytes: &mut Vec<u8>, value: &ValueRef<'_>) {
            match value {
                ValueRef::Null => bytes.push(0),
                ValueRef::Integer(integer) => {
                    bytes.push(1);
                    bytes.extend(integer.to_le_bytes());
                }
                ValueRef::Real(real) => {
                    bytes.push(2);
                    bytes.extend(real.to_bits().to_le_bytes());
                }
                ValueRef::Text(value) => {
                    bytes.push(3);
                    text(bytes, value);
                }
                ValueRef::Blob(value) => {
                    bytes.push(4);
                    text(bytes, value);
                }
            }
        }
        let mut bytes = Vec::new();
        text(&mut bytes, sql.as_bytes());
        match self {
            Bound::Positional(values) => values.iter().for_each(|value| add(&mut bytes, value)),
            Bound::Named(values) => {
                for (name, value) in values {
                    bytes.push(5);
                    text(&mut bytes, name.as_bytes());
                    add(&mut bytes, value);
                }
            }
        }
        let mut hash = [0; 16];
        hash.copy_from_slice(&sha256_of(&bytes)[..16]);
        hash
    }
}

/// A value of the interface as the engine binds it.
///
/// # Errors
/// [`Error::InvalidArgument`] for a text that is none.
pub fn bound(value: &Value) -> Result<ValueRef<'_>, Error> {
    Ok(match value {
        Value::Null => ValueRef::Null,
        Value::Integer(integer) => ValueRef::Integer(*integer),
        Value::Real(real) => ValueRef::Real(*real),
        Value::Text(text) => ValueRef::Text(text.as_bytes()),
        Value::Blob(blob) => ValueRef::Blob(blob),
        Value::InvalidText(_) => {
            return Err(Error::InvalidArgument {
                argument: "params".to_owned(),
                message: "InvalidText stands in results only; hand such bytes over as a blob".to_owned(),
            });
        }
    })
}

fn owned(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(integer) => Value::Integer(integer),
        ValueRef::Real(real) => Value::Real(real),
        ValueRef::Text(bytes) => match value.as_str() {
            Some(text) => Value::Text(text.to_owned()),
            None => Value::InvalidText(ByteBuf::from(bytes)),
        },
        ValueRef::Blob(bytes) => Value::Blob(ByteBuf::from(bytes)),
    }
}

/// Bytes that a length, a tag or both take in Candid at most.
const ENCODED_EXTRA: usize = 6;

/// Rows of one or more statements, gathered as far as they fit a reply.
#[derive(Default)]
pub struct Rows {
    /// Names of the columns of the statement that runs.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<Value>>,
    /// Rows of all statements.
    pub count: u64,
    /// Bytes of these: texts and blobs, 8 for each number.
    pub bytes: u64,
    /// Bytes that all take in a reply at most.
    encoded: usize,
}

/// Which limit a row did not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// That of rows.
    Rows(u64),
    /// That of the rows' bytes.
    Bytes(u64),
    /// That of a reply.
    Reply,
}

impl Full {
    /// The error for a reply that cannot do without the row.
    #[cold]
    pub fn error(self, metrics: &Metrics, rows: &Rows) -> Error {
        let (what, limit) = match self {
            Full::Rows(limit) => ("rows", limit),
            Full::Bytes(limit) => ("bytes of rows", limit),
            Full::Reply => ("bytes of a reply", REPLY_BYTES_MAX as u64),
        };
        Error::BudgetExceeded {
            what: what.to_owned(),
            limit,
            cost: Some(Box::new(cost(metrics, rows.count, rows.bytes))),
        }
    }
}

impl Rows {
    /// Begins the rows of a statement.
    pub fn begin(&mut self) {
        self.columns = Vec::new();
        self.rows = Vec::new();
    }

    /// The names of the statement's columns.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if they do not fit a reply.
    pub fn set_columns(&mut self, columns: Vec<String>) -> Result<(), Error> {
        let bytes = columns.iter().fold(0usize, |sum, name| sum.saturating_add(name.len() + ENCODED_EXTRA));
        self.encoded = self.encoded.saturating_add(bytes);
        if self.encoded > REPLY_BYTES_MAX - REPLY_EXTRA_BYTES {
            return Err(too_large("reply by the names of columns", REPLY_BYTES_MAX, self.encoded));
        }
        self.columns = columns;
        Ok(())
    }

    /// Room in the reply for a statement's result without its rows.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    pub fn add_result(&mut self) -> Result<(), Error> {
        self.encoded = self.encoded.saturating_add(8 + 8 + 2 * ENCODED_EXTRA);
        if self.encoded > REPLY_BYTES_MAX - REPLY_EXTRA_BYTES {
            return Err(too_large("reply", REPLY_BYTES_MAX, self.encoded));
        }
        Ok(())
    }

    /// Adds a row if it fits; `Err` says why it does not.
    ///
    /// # Errors
    /// The engine's, and the names of columns that do not fit a reply.
    pub fn push(&mut self, row: &Row<'_>, rows_max: u64, bytes_max: u64) -> Result<Result<(), Full>, Failure> {
        let columns = row.columns();
        if self.rows.is_empty() && self.columns.is_empty() {
            self.set_columns((0..columns).map(|column| row.column_name(column).unwrap_or_default()).collect())?;
        }
        if self.count >= rows_max {
            return Ok(Err(Full::Rows(rows_max)));
        }
        let (mut bytes, mut encoded) = (0usize, ENCODED_EXTRA);
        for column in 0..columns {
            let size = match row.value(column)? {
                ValueRef::Text(value) | ValueRef::Blob(value) => value.len(),
                ValueRef::Integer(_) | ValueRef::Real(_) => 8,
                ValueRef::Null => 0,
            };
            bytes = bytes.saturating_add(size);
            encoded = encoded.saturating_add(size).saturating_add(ENCODED_EXTRA);
        }
        let total = self.bytes.saturating_add(bytes as u64);
        if total > bytes_max {
            return Ok(Err(Full::Bytes(bytes_max)));
        }
        let encoded = self.encoded.saturating_add(encoded);
        if encoded > REPLY_BYTES_MAX - REPLY_EXTRA_BYTES {
            return Ok(Err(Full::Reply));
        }
        let values = (0..columns).map(|column| Ok(owned(row.value(column)?)));
        self.rows.push(values.collect::<Result<_, EngineError>>()?);
        (self.count, self.bytes, self.encoded) = (self.count + 1, total, encoded);
        Ok(Ok(()))
    }
}

/// Says at which place in a list a failure is.
#[cold]
pub fn failed_at(failure: Failure, metrics: &Metrics, index: usize) -> Failure {
    Failure::Answer(at_statement(super::explain(failure, metrics), index))
}
