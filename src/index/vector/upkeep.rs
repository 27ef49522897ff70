//! Sealed files written anew while vectors are appended and searched: hot rows apart from cold ones, large segments in lists.
//!
//! In: which ordinals are hot. Out: the same rows in other files, and in segments that cost a search less.
//!
//! ```text
//!  tend ── a plan? ──► numbers set aside ──► thread: rows, lists, engines, files under temporary names
//!  tend ── ended? ───► renamed into place, searched from now on; the old files removed
//! ```
//!
//! **Invariant:** the thread reads immutable segments and writes files that nobody looks at, so appending and searching go on;
//! what `tend` does itself is a few renames. A crash leaves temporary files, or rows in two files, of which the higher number
//! counts. Nothing is lost by a failure: the rows are searched where they lie.

use super::clustered::ClusterRows;
use super::format::{self, SealedRows, Shape};
use super::rows::Rows;
use super::sealed::{Block, Sealed};
use super::tiers::{Sizes, Tier, plan};
use super::writer::VectorWriter;
use super::{Backend, VectorError, files};
use roaring::RoaringBitmap;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the thread's priority lets others go first (nice(2)).
const NICENESS: i32 = 10;
/// How long nothing is tried after a failure.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(60);

/// What a step of upkeep left to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tended {
    /// Nothing, for now.
    Idle,
    /// Work goes on, here or in a thread.
    Busy,
}

/// The upkeep of a writer.
#[derive(Default)]
pub(super) struct Upkeep {
    running: Option<Running>,
    /// After a failure: no plan is made before.
    not_before: Option<Instant>,
}

/// A rearrangement under way.
struct Running {
    /// The files that are written anew.
    old: Vec<u32>,
    thread: JoinHandle<Result<Vec<Sealed>, VectorError>>,
}

impl Drop for Upkeep {
    /// The thread writes under numbers that the next writer may give out, so it ends before.
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            let _ = running.thread.join();
        }
    }
}

/// What the thread works with.
struct Job {
    directory: PathBuf,
    shape: Shape,
    backend: Backend,
    sizes: Sizes,
    old: Vec<Block>,
    hot: RoaringBitmap,
    /// The first of two numbers.
    number: u32,
}

impl VectorWriter {
    /// Takes one small step of upkeep: begins to write files anew, or puts in place what was written. `hot` are the entries
    /// alive in a head.
    ///
    /// # Errors
    /// When the file system or the engine refuses; the rows stay where they were, and nothing is tried for a minute.
    pub fn tend(&mut self, hot: &RoaringBitmap) -> Result<Tended, VectorError> {
        if self.interrupted {
            return Ok(Tended::Idle);
        }
        let tended = self.step(hot);
        if tended.is_err() {
            self.upkeep.not_before = Some(Instant::now() + PAUSE_AFTER_FAILURE);
        }
        tended
    }

    fn step(&mut self, hot: &RoaringBitmap) -> Result<Tended, VectorError> {
        match &self.upkeep.running {
            Some(running) if !running.thread.is_finished() => return Ok(Tended::Busy),
            Some(_) => {
                self.finish_upkeep()?;
                return Ok(Tended::Busy);
            }
            None => {}
        }
        if self.upkeep.not_before.is_some_and(|then| Instant::now() < then) {
            return Ok(Tended::Idle);
        }
        let sizes = Sizes::of_seal(self.seal_rows);
        let in_tail: RoaringBitmap =
            self.segments.small.iter().fold(RoaringBitmap::new(), |all, part| all | part.bitmap());
        if (&in_tail - hot).len() >= sizes.superfluous(self.held.intersection_len(hot) as usize) as u64 {
            // Most of what it holds died young: it is sorted like the others.
            self.seal_tail()?;
        }
        self.segments.sealed.sort_unstable_by_key(|sealed| sealed.number);
        let tiers: Vec<Tier> = self.segments.sealed.iter().map(|sealed| tier(sealed, hot)).collect();
        let planned = plan(&tiers, sizes);
        if planned.is_empty() {
            return Ok(Tended::Idle);
        }
        let planned: Vec<Sealed> = planned.into_iter().map(|at| self.segments.sealed[at].clone()).collect();
        let job = Job {
            directory: self.directory.clone(),
            shape: self.shape,
            backend: self.segments.backend,
            sizes,
            old: planned.iter().map(|sealed| sealed.block.clone()).collect(),
            hot: hot.clone(),
            number: self.reserve(2)?,
        };
        let thread = std::thread::Builder::new().name("tidemill-vectors".to_owned()).spawn(move || job.run());
        let thread = thread.map_err(VectorError::io("start a thread for", &self.directory))?;
        self.upkeep.running = Some(Running { old: planned.iter().map(|sealed| sealed.number).collect(), thread });
        Ok(Tended::Busy)
    }

    /// Waits for the files that are being written, if any are, and puts them in place.
    ///
    /// # Errors
    /// As [`Self::tend`].
    pub fn finish_upkeep(&mut self) -> Result<(), VectorError> {
        let Some(Running { old, thread }) = self.upkeep.running.take() else { return Ok(()) };
        let anew = thread.join().map_err(|_| VectorError::Upkeep { reason: "the thread panicked" })??;
        for sealed in &anew {
            files::put_in_place(&files::sealed_path(&self.directory, sealed.number))?;
        }
        files::sync_directory(&self.directory)?;
        self.replace(&old, anew);
        for number in old {
            self.remove_file(number)?;
        }
        Ok(())
    }
}

fn tier(sealed: &Sealed, hot: &RoaringBitmap) -> Tier {
    Tier {
        rows: sealed.ordinals.len() as usize,
        hot: sealed.ordinals.intersection_len(hot) as usize,
        clustered: sealed.block.is_clustered(),
    }
}

impl Job {
    /// Writes the rows anew, cold ones first, and returns their segments.
    fn run(self) -> Result<Vec<Sealed>, VectorError> {
        // Whoever publishes or searches goes first; where the system refuses, they share.
        let _ = rustix::process::nice(NICENESS);
        let parts: Vec<Rows> =
            self.old.iter().map(|block| block.rows().map(SealedRows::into_rows)).collect::<Result<_, _>>()?;
        let rows = Rows::merge(self.shape.components(), &parts);
        drop(parts);
        let (hot, cold) = rows.split(&self.hot);
        drop(rows);
        let mut anew = Vec::new();
        for (number, rows) in (self.number..).zip([cold, hot]) {
            if !rows.is_empty() {
                anew.push(self.write(number, rows)?);
            }
        }
        Ok(anew)
    }

    fn write(&self, number: u32, rows: Rows) -> Result<Sealed, VectorError> {
        let lists = match self.sizes.lists(rows.len()) {
            Some(lists) => self.backend.deal_out(&rows, lists)?,
            None => None,
        };
        let rows: SealedRows =
            lists.map_or_else(|| SealedRows::Flat(rows), |lists: ClusterRows| SealedRows::Clustered(lists));
        let path: &Path = &files::sealed_path(&self.directory, number);
        files::write_beside(path, &format::encode_sealed(self.shape, &rows))?;
        Sealed::new(number, self.backend, &rows)
    }
}
