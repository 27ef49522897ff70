//! One epoch as it was measured, and the readings of the process beside it.
//!
//! In: published versions, the kernel's figures. Out: samples. **Invariant:** taking a sample costs microseconds and no
//! disk, so measuring does not change what is measured: the kernel is asked at most every ten milliseconds.

use snapshots::{CommitId, Digest};
use std::time::{Duration, Instant};

/// Shortest time between two readings: each costs some fifty microseconds, which fast epochs would show.
const PACE: Duration = Duration::from_millis(10);

/// What one epoch took.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Its number in the trace, from 0.
    pub number: usize,
    /// The commit that it led to.
    pub commit: CommitId,
    /// Seconds from the start of the replay until it was published.
    pub at: f64,
    /// Milliseconds from the moment it was fed, or due, until it was published.
    pub latency: f64,
    /// Files that came, changed or went.
    pub paths: u64,
    /// Bytes of the contents that it named for the first time.
    pub bytes: u64,
    /// Milliseconds of diff, clean, chunk, embed and apply.
    pub stages: [f64; 5],
    /// Calls of clean, chunk and embed.
    pub calls: [u64; 3],
    /// Inputs that the memo answered.
    pub hits: u64,
    /// Entries that came and that went.
    pub moved: [u64; 2],
    /// The digest that came out.
    pub digest: Digest,
    /// Resident memory in bytes when it was published.
    pub memory: u64,
    /// Seconds of processor time that the process had used by then, all threads together.
    pub processor: f64,
}

impl Sample {
    /// Returns the milliseconds that all stages took for it, summed over threads.
    #[must_use]
    pub fn cost(&self) -> f64 {
        self.stages.iter().sum()
    }
}

/// What was last read of the process: memory in bytes, and seconds of processor time.
#[derive(Default)]
pub(super) struct Readings {
    read: Option<Instant>,
    memory: u64,
    processor: f64,
}

impl Readings {
    /// Reads anew, unless that was done a moment ago; returns memory and processor time.
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
    // Behind the name, which may hold anything: utime and stime are the fields 14 and 15, in hundredths (`proc(5)`, stat).
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Returns the bytes that this process has given to the system to write.
///
/// Not `write_bytes`: that counts the whole of a folio of the page cache, up to some megabytes, when one page of it becomes
/// dirty, which comes to hundreds of times what a database writes that changes pages here and there.
pub(super) fn written() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}
