//! Candid, in two ways.
//!
//! [`arguments`] and [`replies`] know by heart the encodings that agents and canisters send to the hot methods, and the
//! smallest encodings of their answers: decoding one `text` with the candid crate costs 12,000 instructions, more than
//! the look-up of a key. [`general`] is the candid crate with quotas: it decodes whatever the first does not know, and
//! serves the other methods. Where both accept an argument they agree on it.
pub mod arguments;
pub mod general;
pub mod replies;
