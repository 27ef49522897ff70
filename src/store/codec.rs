//! The only module that uses the serialisation crate, so that it can be replaced.
//!
//! **Invariant:** [`decode`] accepts the output of [`encode`], and decoding never allocates more than [`LIMIT`] bytes, whatever
//! size the input claims.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The largest value that is decoded, in bytes; the largest honest one is a chunk list of some hundred kilobytes.
const LIMIT: usize = 64 << 20;

/// Bytes that are no value of the expected type.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct CodecError(#[from] bincode::error::DecodeError);

impl CodecError {
    /// Returns the error of bytes in our own encoding.
    pub(super) const fn not(what: &'static str) -> Self {
        Self(bincode::error::DecodeError::Other(what))
    }
}

/// Returns the bytes of a value.
pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    bincode::serde::encode_to_vec(value, bincode::config::standard())
        .expect("plain data in memory always encodes: no maps of unknown length, no failing writers")
}

/// Returns the value of the bytes.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let config = bincode::config::standard().with_limit::<LIMIT>();
    Ok(bincode::serde::decode_from_slice(bytes, config)?.0)
}
