//! The measurement of one epoch, and the readings of the process beside it.
//!
//! In: published versions, the kernel's figures. Out: samples. **Invariant:** taking a sample costs microseconds and no disk
//! access, so measuring does not change the result: the kernel is asked at most every ten milliseconds.

use snapshots::{CommitId, Digest};
use std::time::{Duration, Instant};

/// Shortest time between two readings: each costs some fifty microseconds, which fast epochs would show.
const PACE: Duration = Duration::from_millis(10);

/// The cost of one epoch.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Its number in the trace, from 0.
    pub number: usize,
    /// The commit of the epoch.
    pub commit: CommitId,
    /// Seconds from the start of the replay until it was published.
    pub at: f64,
    /// Milliseconds from the moment it was fed, or due, until it was published.
    pub latency: f64,
    /// Files added, changed or removed.
    pub paths: u64,
    /// Bytes of the contents that are new in this epoch.
    pub bytes: u64,
    /// Milliseconds of diff, clean, chunk, embed and apply.
    pub stages: [f64; 5],
    /// Calls of clean, chunk and embed.
    pub calls: [u64; 3],
    /// Inputs that the memo answered.
    pub hits: u64,
    /// Entries inserted and retracted.
    pub moved: [u64; 2],
    /// The resulting digest.
    pub digest: Digest,
    /// Resident memory in bytes when it was published.
    pub memory: u64,
    /// Seconds of processor time that the process had used by then, all threads together.
    pub processor: f64,
}

impl Sample {
    /// Returns the milliseconds of all stages, summed over threads.
    #[must_use]
    pub fn cost(&self) -> f64 {
        self.stages.iter().sum()
    }
}

/// The last reading of the process: memory in bytes, and seconds of processor time.
#[derive(Default)]
pub(super) struct Readings {
    read: Option<Instant>,
    memory: u64,
    processor: f64,
}

impl Readings {
    /// Takes a new reading unless the last one is recent; returns memory and processor time.
    pub(super) fn take(&mut self) -> (u64, f64) {
        if self.read.is_none_or(|read| read.elapsed() >= PACE) {
            *self = Self { read: Some(Instant::now()), memory: resident(), processor: processor() };
        }
        (self.memory, self.processor)
    }
}

/// Returns the bytes of this process that are in memory.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    // Pages of 4 KiB on the one platform that is supported (`proc(5)`, statm).
    text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

/// Returns the seconds of processor time that this process has used, all threads together.
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name, which may hold any byte: utime and stime are the fields 14 and 15, in hundredths (`proc(5)`, stat).
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Returns the bytes that this process has given to the system to write.
///
/// Not `write_bytes`: that counts a whole folio of the page cache, up to some megabytes, when one page of it becomes dirty. For a
/// database that changes scattered pages this is hundreds of times too much.
pub(super) fn written() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}
