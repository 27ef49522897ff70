//! The messages between a tracker and its workers.
//!
//! In: jobs and outcomes. Out: frames on a pipe, and back.
//!
//! ```text
//! frame   size:u32 value
//! tracker → worker   job, then the text's bytes
//! worker → tracker   greeting once, then an outcome for each job
//! ```
//!
//! **Invariant:** a frame has at most [`LARGEST_FRAME`] bytes, which bounds the cost of any worker's message. Both ends are of
//! one build; the greeting names it.

use crate::store::{decode, encode};
use dataflows::code::Outline;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::time::Duration;

/// The largest frame; marks take at most 32 MiB in memory, and less here.
const LARGEST_FRAME: usize = 48 << 20;

/// The greeting of a worker of this build; the number is the message version.
pub(super) const PROTOCOL: &str = concat!("tidemill ", env!("CARGO_PKG_VERSION"), " worker 1");

/// The greeting of a ready worker.
#[derive(Serialize, Deserialize, Debug)]
pub(super) struct Greeting {
    pub(super) protocol: String,
    /// Processor time that the start took.
    pub(super) processor: Duration,
}

/// A job for the text after the frame.
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

/// The result of a job.
#[derive(Serialize, Deserialize, Debug)]
pub(super) struct Outcome {
    pub(super) result: JobResult,
    /// Processor time of the process so far.
    pub(super) processor: Duration,
}

/// The result of a job, by its kind.
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
