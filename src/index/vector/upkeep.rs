//! Maintenance of the vector index: rewrites sealed files during appends and searches, hot rows apart from cold ones, large
//! segments in lists.
//!
//! In: the hot ordinals. Out: the same rows in other files, and in segments that make a search cheaper.
//!
//! ```text
//!  tend ── a plan, and rows in the tail? ──► thread: the tail's rows, as a sealed file under a temporary name
//!  tend ── done, and no new rows? ─────────► renamed into place; after new rows it is done again
//!  tend ── a plan? ──► numbers reserved ───► thread: rows, lists, engines, files under temporary names
//!  tend ── done? ────► renamed into place, searched from now on ──► thread: the old files and segments are freed
//! ```
//!
//! **Invariant:** the threads read immutable segments and write private files, so appends and searches continue; `tend` itself
//! does a few renames. A crash leaves temporary files, or rows in two files, of which the higher number counts. A failure loses
//! nothing: the rows stay searchable at their old place.

use super::clustered::ClusterRows;
use super::format::{SealedRows, Shape};
use super::rows::Rows;
use super::sealed::{Block, Sealed};
use super::tiers::{Sizes, Tier, plan};
use super::writer::{VectorWriter, open_tail};
use super::{Backend, VectorError, files};
use crate::index::background::{Background, Tended, Unwanted, Urgency, has_room};
use roaring::RoaringBitmap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The pause after a failure.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(60);
/// The message for abandoned work.
pub(super) const NOT_WANTED: &str = "the work is no longer wanted";
/// How often rows may come to a tail while a thread seals it, before the writer seals it itself: frequent commits must not delay
/// maintenance for ever.
const MOST_IN_VAIN: u32 = 8;

/// The maintenance state of a writer.
#[derive(Default)]
pub(super) struct Upkeep {
    running: Option<Running>,
    /// After a failure: no plan is made before this time.
    not_before: Option<Instant>,
    /// How often a tail was written that had grown meanwhile.
    in_vain: u32,
}

/// Work of a thread; at most one wanted job runs. It writes under numbers that the next writer may assign, so it must end before.
struct Running {
    work: Work,
    thread: Background<Result<Vec<Sealed>, VectorError>>,
}

/// The job of a thread.
enum Work {
    /// The tail, which held so many rows, as the sealed file of its number.
    Tail { rows: usize },
    /// Files that are rewritten.
    Files(Vec<u32>),
    /// Files and segments that are unused now.
    Gone,
}

/// The input of a thread.
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
    /// Takes one small maintenance step: starts to rewrite files, or puts written ones in place. `hot` are the entries alive in a
    /// head; `urgency` is that of the threads.
    ///
    /// # Errors
    /// If the file system or the engine fails; the rows stay where they were, and nothing is tried for a minute.
    pub fn tend(&mut self, hot: &RoaringBitmap, urgency: Urgency) -> Result<Tended, VectorError> {
        if self.interrupted {
            return Ok(Tended::Idle);
        }
        let tended = self.step(hot, urgency);
        if tended.is_err() {
            self.upkeep.not_before = Some(Instant::now() + PAUSE_AFTER_FAILURE);
        }
        tended
    }

    fn step(&mut self, hot: &RoaringBitmap, urgency: Urgency) -> Result<Tended, VectorError> {
        match &self.upkeep.running {
            Some(running) if !running.thread.is_finished() => return Ok(Tended::Waits),
            Some(_) => {
                self.end_work()?;
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
            // Most of its rows died young: it is sorted like other files.
            return self.begin_to_seal();
        }
        self.segments.sealed.sort_unstable_by_key(|sealed| sealed.number);
        let tiers: Vec<Tier> =
            self.segments.sealed.iter().map(|sealed| tier(sealed, hot, self.segments.backend)).collect();
        let planned = plan(&tiers, sizes);
        let rows: usize = planned.iter().map(|at| tiers[*at].rows).sum();
        if planned.is_empty() || !has_room(&self.directory, (rows * self.shape.row_bytes()) as u64) {
            return Ok(Tended::Idle);
        }
        if self.tail.as_ref().is_some_and(|tail| tail.rows > 0) {
            // Reserved file numbers are above that of the tail, which therefore must not count as a tail any more.
            return self.begin_to_seal();
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
        let old = planned.iter().map(|sealed| sealed.number).collect();
        self.begin_work(Work::Files(old), urgency, move |unwanted| job.run(unwanted))
    }

    /// Starts to write the tail's rows as a sealed file.
    fn begin_to_seal(&mut self) -> Result<Tended, VectorError> {
        if self.upkeep.in_vain >= MOST_IN_VAIN {
            self.upkeep.in_vain = 0;
            self.seal_tail()?;
            return Ok(Tended::Busy);
        }
        let (parts, shape, backend) = (self.segments.small.clone(), self.shape, self.segments.backend);
        let (number, path) = (self.number, files::sealed_path(&self.directory, self.number));
        let work = Work::Tail { rows: parts.iter().map(|part| part.len()).sum() };
        // An append to a full tail waits for it.
        self.begin_work(work, Urgency::Awaited, move |_| {
            let parts: Vec<Rows> = parts.iter().map(|part| part.rows()).collect::<Result<_, _>>()?;
            let rows = SealedRows::Flat(Rows::merge(shape.components(), &parts));
            Ok(vec![Sealed::write_beside(&path, number, backend, shape, &rows)?])
        })
    }

    fn begin_work(
        &mut self,
        work: Work,
        urgency: Urgency,
        run: impl FnOnce(&Unwanted) -> Result<Vec<Sealed>, VectorError> + Send + 'static,
    ) -> Result<Tended, VectorError> {
        let thread = Background::begin("tidemill-vectors", urgency, run);
        let thread = thread.map_err(VectorError::io("start a thread for", &self.directory))?;
        self.upkeep.running = Some(Running { work, thread });
        Ok(Tended::Waits)
    }

    /// Takes one small step of removing the garbage rows of these ordinals: starts to rewrite files without them, or puts written
    /// ones in place.
    ///
    /// # Errors
    /// As [`Self::tend`].
    pub fn forget(&mut self, dead: &RoaringBitmap) -> Result<Tended, VectorError> {
        if self.interrupted {
            return Err(VectorError::Interrupted { path: self.directory.clone() });
        }
        let is_in_the_way =
            |running: &mut Running| matches!(running.work, Work::Files(_)) && running.thread.is_in_the_way();
        if let Some(running) = self.upkeep.running.take_if(is_in_the_way) {
            // Private files, under numbers that are not used again.
            running.thread.leave();
        }
        if self.upkeep.running.as_ref().is_some_and(|running| !running.thread.is_finished()) {
            return Ok(Tended::Waits);
        }
        self.end_work()?;
        if self.upkeep.running.is_some() {
            return Ok(Tended::Waits);
        }
        if self.segments.small.iter().any(|small| !small.bitmap().is_disjoint(dead)) {
            return self.begin_to_seal();
        }
        let Some(group) = self.groups(dead).into_iter().find(|group| self.holds_any(group, dead)) else {
            return Ok(Tended::Idle);
        };
        if self.tail.as_ref().is_some_and(|tail| tail.rows > 0) {
            // Reserved file numbers are above that of the tail, which therefore must not count as a tail any more.
            return self.begin_to_seal();
        }
        let (number, dead) = (self.reserve(1)?, dead.clone());
        let (directory, shape, backend) = (self.directory.clone(), self.shape, self.segments.backend);
        let old = self.segments.sealed.iter().filter(|sealed| group.contains(&sealed.number));
        let old: Vec<Block> = old.map(|sealed| sealed.block.clone()).collect();
        self.begin_work(Work::Files(group), Urgency::Awaited, move |_| {
            let rows = together(shape, &old)?.without(&dead);
            if rows.is_empty() {
                return Ok(Vec::new());
            }
            let path = files::sealed_path(&directory, number);
            Ok(vec![Sealed::write_beside(&path, number, backend, shape, &rows)?])
        })
    }

    /// Returns whether one of these files holds one of these rows.
    fn holds_any(&self, group: &[u32], rows: &RoaringBitmap) -> bool {
        let files = self.segments.sealed.iter().filter(|sealed| group.contains(&sealed.number));
        files.into_iter().any(|sealed| !sealed.ordinals.is_disjoint(rows))
    }

    /// Waits for the files that are being written, if any, and puts them in place.
    ///
    /// # Errors
    /// As [`Self::tend`].
    pub fn finish_upkeep(&mut self) -> Result<(), VectorError> {
        // Files that are put in place leave old ones to be removed.
        while self.upkeep.running.is_some() {
            self.end_work()?;
        }
        Ok(())
    }

    /// Ends the work of a thread early. The next start does the unfinished work, and removes the files that it should have
    /// removed.
    pub fn give_up_upkeep(&mut self) {
        let Some(Running { work, thread }) = self.upkeep.running.take() else { return };
        let made = thread.give_up();
        if matches!(made, Some(Ok(_)))
            && let Err(error) = self.take_over(work, made)
        {
            tracing::warn!("vectors that were rearranged stay as they were: {error}");
        }
    }

    /// Waits for the running thread, if any, and adopts its result.
    fn end_work(&mut self) -> Result<(), VectorError> {
        let Some(Running { work, thread }) = self.upkeep.running.take() else { return Ok(()) };
        self.take_over(work, thread.end())
    }

    /// Adopts a thread's result.
    fn take_over(&mut self, work: Work, made: Option<Result<Vec<Sealed>, VectorError>>) -> Result<(), VectorError> {
        let anew = made.ok_or(VectorError::Upkeep { reason: "the thread panicked" })??;
        match work {
            Work::Tail { rows } => {
                let is_whole = self.tail.as_ref().is_some_and(|tail| tail.rows == rows);
                for sealed in anew {
                    if is_whole && sealed.number == self.number {
                        self.upkeep.in_vain = 0;
                        self.put_sealed(sealed)?;
                    } else {
                        self.upkeep.in_vain += 1;
                        files::remove_beside(&files::sealed_path(&self.directory, sealed.number))?;
                    }
                }
            }
            Work::Files(old) => {
                for sealed in &anew {
                    files::put_in_place(&files::sealed_path(&self.directory, sealed.number))?;
                }
                files::sync_directory(&self.directory)?;
                if anew.is_empty() && self.tail.is_none() {
                    // The name of the tail keeps their numbers from being used again.
                    self.tail = Some(open_tail(&files::tail_path(&self.directory, self.number), self.shape)?);
                }
                let is_old = |sealed: &&Sealed| old.contains(&sealed.number);
                let gone: Vec<Sealed> = self.segments.sealed.iter().filter(is_old).cloned().collect();
                // Garbage rows were left out.
                gone.iter().for_each(|sealed| self.held -= &*sealed.ordinals);
                anew.iter().for_each(|sealed| self.held |= &*sealed.ordinals);
                self.replace(&old, anew);
                // Freeing so much memory and so many pages of files takes longer than a publish should wait.
                let paths: Vec<PathBuf> =
                    old.iter().map(|number| files::sealed_path(&self.directory, *number)).collect();
                self.begin_work(Work::Gone, Urgency::Awaited, move |_| {
                    drop(gone);
                    paths.iter().try_for_each(|path| files::remove(path)).map(|()| Vec::new())
                })?;
            }
            Work::Gone => {}
        }
        Ok(())
    }

    /// Waits until no thread writes the tail's sealed file, and discards its output.
    pub(super) fn give_up_sealing(&mut self) {
        if let Some(Running { work: Work::Tail { .. }, .. }) = &self.upkeep.running
            && let Some(running) = self.upkeep.running.take()
        {
            // The next seal of the tail overwrites the remains, or reports why it cannot.
            let _ = running.thread.end();
        }
    }
}

/// Returns the rows of some segments in one block; a single one keeps its lists.
pub(super) fn together(shape: Shape, blocks: &[Block]) -> Result<SealedRows, VectorError> {
    if let [block] = blocks {
        return block.rows();
    }
    let parts: Vec<Rows> =
        blocks.iter().map(|block| block.rows().map(SealedRows::into_rows)).collect::<Result<_, _>>()?;
    Ok(SealedRows::Flat(Rows::merge(shape.components(), &parts)))
}

fn tier(sealed: &Sealed, hot: &RoaringBitmap, backend: Backend) -> Tier {
    Tier {
        rows: sealed.ordinals.len() as usize,
        hot: sealed.ordinals.intersection_len(hot) as usize,
        // If lists cannot be made, a file is not rewritten for them again and again.
        clustered: sealed.block.is_clustered() || !backend.makes_lists(),
    }
}

impl Job {
    /// Rewrites the rows, cold ones first, and returns their segments.
    fn run(self, unwanted: &Unwanted) -> Result<Vec<Sealed>, VectorError> {
        let parts: Vec<Rows> =
            self.old.iter().map(|block| block.rows().map(SealedRows::into_rows)).collect::<Result<_, _>>()?;
        let rows = Rows::merge(self.shape.components(), &parts);
        drop(parts);
        let (hot, cold) = rows.split(&self.hot);
        drop(rows);
        let mut anew = Vec::new();
        for (number, rows) in (self.number..).zip([cold, hot]) {
            if !rows.is_empty() {
                anew.push(self.write(number, rows, unwanted)?);
            }
        }
        Ok(anew)
    }

    fn write(&self, number: u32, rows: Rows, unwanted: &Unwanted) -> Result<Sealed, VectorError> {
        let lists = match self.sizes.lists(rows.len()) {
            Some(lists) => self.backend.deal_out(&rows, lists, unwanted)?,
            None => None,
        };
        let rows: SealedRows =
            lists.map_or_else(|| SealedRows::Flat(rows), |lists: ClusterRows| SealedRows::Clustered(lists));
        let path: &Path = &files::sealed_path(&self.directory, number);
        if unwanted.is_set() {
            return Err(VectorError::Upkeep { reason: NOT_WANTED });
        }
        Sealed::write_beside(path, number, self.backend, self.shape, &rows)
    }
}
