//! The candid crate, with quotas and with this interface's error.
use crate::error::cut;
use crate::limits::{DECODING_QUOTA, SKIPPING_QUOTA};
use candid::CandidType;
use candid::de::DecoderConfig;
use candid::ser::{TypeSerialize, ValueSerializer};
use candid::types::internal::{TypeContainer, env_clear};
use candid::utils::{ArgumentDecoder, decode_args_with_config};
use core::any::TypeId;
use core::ops::Deref;
use icsql_types::method::{SuccessVisitor, each_success, service};
use icsql_types::{Error, InitArg};
use std::cell::RefCell;

thread_local! {
    /// The first bytes of the replies of each type: they describe it, and making them costs more than most values.
    static HEADERS: RefCell<Vec<(TypeId, Vec<u8>)>> = const { RefCell::new(Vec::new()) };
}

/// `variant { Ok : T }`: the smallest subtype of what a method answers when it succeeds.
#[derive(CandidType)]
enum Success<T> {
    Ok(T),
}

/// `variant { Err : Error }`: the same for a failure.
#[derive(CandidType)]
enum Failure<'a> {
    Err(&'a Error),
}

/// Decodes the arguments of a method.
///
/// Missing trailing options are null, further arguments and unknown fields are skipped, as far as the quotas reach.
///
/// # Errors
/// [`Error::InvalidArgument`] with the crate's reason.
pub fn decode<'a, A: ArgumentDecoder<'a>>(argument: &'a [u8]) -> Result<A, Error> {
    decode_within(argument, 2)
}

/// As [`decode`], with a quota of so many units for each byte: values of SQL cost more than texts.
///
/// # Errors
/// As [`decode`].
pub fn decode_within<'a, A: ArgumentDecoder<'a>>(argument: &'a [u8], units_per_byte: usize) -> Result<A, Error> {
    let mut config = DecoderConfig::new();
    config.set_decoding_quota(argument.len().saturating_mul(units_per_byte).saturating_add(DECODING_QUOTA));
    config.set_skipping_quota(SKIPPING_QUOTA);
    config.set_full_error_message(false);
    decode_args_with_config(argument, &config).map_err(|error| Error::InvalidArgument {
        argument: "arguments".to_owned(),
        message: cut(format!("not decodable as this method's Candid types: {error}"), 1_000),
    })
}

/// Decodes the argument of init and post_upgrade: nothing at all, `()`, null, or settings.
///
/// # Errors
/// [`Error::InvalidArgument`] if it is something else.
pub fn decode_init(argument: &[u8]) -> Result<InitArg, Error> {
    if argument.is_empty() {
        return Ok(InitArg::default());
    }
    let (settings,) = decode::<(Option<InitArg>,)>(argument)?;
    Ok(settings.unwrap_or_default())
}

/// An encoded reply.
pub struct Encoded(ValueSerializer);

impl Deref for Encoded {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.get_result()
    }
}

struct Prepare(Result<(), candid::Error>);

impl SuccessVisitor for Prepare {
    fn visit<T: CandidType + 'static>(&mut self, _method: &'static str) {
        if self.0.is_ok() {
            self.0 = with_header::<Success<T>>(TypeId::of::<T>(), |_| ());
        }
    }
}

/// Makes what all replies of a type begin with, and the types of all arguments, so that no call has to. Without it `SELECT 1`
/// by `sql_query` costs half a million instructions.
///
/// # Errors
/// As [`encode`].
pub fn prepare() -> Result<(), Error> {
    let mut prepare = Prepare(Ok(()));
    each_success(&mut prepare);
    prepare.0.and_then(|()| with_header::<Failure<'_>>(TypeId::of::<Error>(), |_| ())).map_err(not_encodable)?;
    // The crate remembers the types that it has met, and would else take those of the arguments together at each call.
    service(&mut TypeContainer::new());
    Ok(())
}

/// Hands the header of replies of type `T` to `body`; `of` stands for that type.
fn with_header<T: CandidType>(of: TypeId, mut body: impl FnMut(&[u8])) -> Result<(), candid::Error> {
    let known = HEADERS.with_borrow(|headers| {
        let found = headers.iter().find(|(id, _)| *id == of);
        found.map(|(_, header)| body(header)).is_some()
    });
    if !known {
        // What the crate remembers of types depends on the order in which it met them.
        env_clear();
        let mut types = TypeSerialize::new();
        types.push_type(&T::ty())?;
        types.serialize()?;
        let header = [b"DIDL", types.get_result()].concat();
        body(&header);
        HEADERS.with_borrow_mut(|headers| headers.push((of, header)));
    }
    Ok(())
}

#[cold]
fn not_encodable(error: candid::Error) -> Error {
    Error::Other { code: "encoding".to_owned(), message: error.to_string() }
}

/// Encodes what a method answers.
///
/// # Errors
/// [`Error::Other`] if the crate cannot encode the value, which none of the types used here can cause.
pub fn encode<T: CandidType + 'static>(answer: Result<&T, &Error>) -> Result<Encoded, Error> {
    let mut reply = ValueSerializer::new();
    let mut written = Ok(());
    let begun = match answer {
        Ok(_) => with_header::<Success<T>>(TypeId::of::<T>(), |header| written = reply.write(header)),
        Err(_) => with_header::<Failure<'_>>(TypeId::of::<Error>(), |header| written = reply.write(header)),
    };
    let value = || {
        begun.and(written)?;
        match answer {
            Ok(value) => Success::Ok(value).idl_serialize(&mut reply),
            Err(error) => Failure::Err(error).idl_serialize(&mut reply),
        }
    };
    let encoded: Result<(), candid::Error> = value();
    encoded.map_err(not_encodable)?;
    Ok(Encoded(reply))
}

#[cfg(test)]
mod tests {
    use super::{Failure, Success, encode};
    use candid::encode_args;
    use icsql_types::{Error, Written};

    #[test]
    fn a_reply_is_what_the_crate_makes_of_it() {
        // Twice: made, and known.
        for _ in 0..2 {
            let value = Written { version: 7 };
            assert_eq!(*encode(Ok(&value)).unwrap(), *encode_args((Success::Ok(&value),)).unwrap());
            let none: Option<Written> = None;
            assert_eq!(*encode(Ok(&none)).unwrap(), *encode_args((Success::Ok(&none),)).unwrap());
            let error = Error::NotFound { what: "key".to_owned(), name: "k".to_owned() };
            assert_eq!(*encode::<()>(Err(&error)).unwrap(), *encode_args((Failure::Err(&error),)).unwrap());
        }
    }
}
