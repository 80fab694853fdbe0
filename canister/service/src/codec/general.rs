//! The candid crate, with quotas and with this interface's error.
use crate::error::cut;
use crate::limits::{DECODING_QUOTA, SKIPPING_QUOTA};
use candid::de::DecoderConfig;
use candid::utils::{ArgumentDecoder, decode_args_with_config};
use candid::{CandidType, encode_args};
use icsql_types::{Error, InitArg};

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

/// Encodes what a method answers.
///
/// # Errors
/// [`Error::Other`] if the crate cannot encode the value, which none of the types used here can cause.
pub fn encode<T: CandidType>(answer: Result<&T, &Error>) -> Result<Vec<u8>, Error> {
    let encoded = match answer {
        Ok(value) => encode_args((Success::Ok(value),)),
        Err(error) => encode_args((Failure::Err(error),)),
    };
    encoded.map_err(|error| Error::Other { code: "encoding".to_owned(), message: error.to_string() })
}
