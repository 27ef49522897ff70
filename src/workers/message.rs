//! What a tracker and its workers say to each other.
//!
//! In: jobs and outcomes. Out: frames on a pipe, and back.
//!
//! ```text
//! frame   size:u32 value
//! tracker → worker   job, then the text's bytes
//! worker → tracker   greeting once, then an outcome for each job
//! ```
//!
//! **Invariant:** a frame has at most [`LARGEST_FRAME`] bytes, so whatever a worker says costs the tracker no more. Both ends
//! are of one build: the greeting says which.

use crate::store::{decode, encode};
use dataflows::code::Outline;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::time::Duration;

/// The largest frame; marks take 32 MiB in memory at the most, and less here.
const LARGEST_FRAME: usize = 48 << 20;

/// What a worker of this build says first; the number is of the messages.
pub(super) const PROTOCOL: &str = concat!("tidemill ", env!("CARGO_PKG_VERSION"), " worker 1");

/// What a worker says once it is ready.
#[derive(Serialize, Deserialize, Debug)]
pub(super) struct Greeting {
    pub(super) protocol: String,
    /// Processor time that the start took.
    pub(super) processor: Duration,
}

/// What a worker is to do with the text behind the frame.
#[derive(Serialize, Deserialize, Debug)]
pub(super) struct Job {
    pub(super) kind: JobKind,
    /// Bytes of the text.
    pub(super) bytes: usize,
}

/// The kinds of work.
#[derive(Serialize, Deserialize, Debug)]
pub(super) enum JobKind {
    /// To find the items of a text in a language.
    Outline { language: String },
}

/// What a job came to.
#[derive(Serialize, Deserialize, Debug)]
pub(super) struct Outcome {
    pub(super) result: JobResult,
    /// Processor time of the process so far.
    pub(super) processor: Duration,
}

/// What a job came to, by its kind.
#[derive(Serialize, Deserialize, Debug)]
pub(super) enum JobResult {
    Outline(Outline),
    /// It panicked.
    Panicked(String),
}

/// Writes a value as a frame, with what comes behind it, at once: the other end wakes up for each write.
pub(super) fn write(pipe: &mut impl Write, value: &impl Serialize, behind: &[u8]) -> Result<()> {
    let encoded = encode(value);
    let size = u32::try_from(encoded.len()).ok().filter(|_| encoded.len() <= LARGEST_FRAME);
    let size = size.ok_or_else(|| Error::new(ErrorKind::InvalidData, "the answer is too large"))?;
    pipe.write_all(&[&size.to_le_bytes(), encoded.as_slice(), behind].concat())
}

/// Reads a frame.
pub(super) fn read<T: DeserializeOwned>(pipe: &mut impl Read) -> Result<T> {
    let mut size = [0; 4];
    pipe.read_exact(&mut size)?;
    let size = u32::from_le_bytes(size) as usize;
    if size > LARGEST_FRAME {
        return Err(Error::new(ErrorKind::InvalidData, format!("it announces {size} bytes")));
    }
    let mut encoded = vec![0; size];
    pipe.read_exact(&mut encoded)?;
    decode(&encoded).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}
