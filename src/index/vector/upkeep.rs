//! Sealed files written anew while vectors are appended and searched: hot rows apart from cold ones, large segments in lists.
//!
//! In: which ordinals are hot. Out: the same rows in other files, and in segments that cost a search less.
//!
//! ```text
//!  tend ── a plan, and rows in the tail? ──► thread: what the tail holds, as a sealed file under a temporary name
//!  tend ── ended, and none came since? ────► renamed into place; where some came, it is done again
//!  tend ── a plan? ──► numbers set aside ──► thread: rows, lists, engines, files under temporary names
//!  tend ── ended? ───► renamed into place, searched from now on ──► thread: the old files and segments are let go
//! ```
//!
//! **Invariant:** the threads read immutable segments and write files that nobody looks at, so appending and searching go on;
//! what `tend` does itself is a few renames. A crash leaves temporary files, or rows in two files, of which the higher number
//! counts. Nothing is lost by a failure: the rows are searched where they lie.

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

/// How long nothing is tried after a failure.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(60);
/// What is said of work that is given up.
pub(super) const NOT_WANTED: &str = "nobody wants that any more";
/// How often rows may come to a tail while it is sealed beside them, before it is sealed in front of them: commits that follow
/// each other closely must not put upkeep off for ever.
const MOST_IN_VAIN: u32 = 8;

/// The upkeep of a writer.
#[derive(Default)]
pub(super) struct Upkeep {
    running: Option<Running>,
    /// After a failure: no plan is made before.
    not_before: Option<Instant>,
    /// How often a tail was written that had grown meanwhile.
    in_vain: u32,
}

/// Work of a thread, of which at most one runs that is wanted. It writes under numbers that the next writer may give out, so it ends
/// before.
struct Running {
    work: Work,
    thread: Background<Result<Vec<Sealed>, VectorError>>,
}

/// What a thread works on.
enum Work {
    /// The tail, which held so many rows, as the sealed file of its number.
    Tail { rows: usize },
    /// Files that are written anew.
    Files(Vec<u32>),
    /// Files and segments that nobody looks at any more.
    Gone,
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
    /// alive in a head; `urgency` is that of the threads.
    ///
    /// # Errors
    /// When the file system or the engine refuses; the rows stay where they were, and nothing is tried for a minute.
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
            // Most of what it holds died young: it is sorted like the others.
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
            // Numbers of files are set aside above that of the tail, which therefore must not count as a tail any more.
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

    /// Begins to write what the tail holds as a sealed file.
    fn begin_to_seal(&mut self) -> Result<Tended, VectorError> {
        if self.upkeep.in_vain >= MOST_IN_VAIN {
            self.upkeep.in_vain = 0;
            self.seal_tail()?;
            return Ok(Tended::Busy);
        }
        let (parts, shape, backend) = (self.segments.small.clone(), self.shape, self.segments.backend);
        let (number, path) = (self.number, files::sealed_path(&self.directory, self.number));
        let work = Work::Tail { rows: parts.iter().map(|part| part.len()).sum() };
        // Whoever appends to a full tail waits for it.
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

    /// Takes one small step of removing the rows of these ordinals, which nobody needs any more: begins to write files without
    /// them anew, or puts in place what was written.
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
            // Files that nobody looks at, under numbers that are not used again.
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
            // Numbers of files are set aside above that of the tail, which therefore must not count as a tail any more.
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

    /// Waits for the files that are being written, if any are, and puts them in place.
    ///
    /// # Errors
    /// As [`Self::tend`].
    pub fn finish_upkeep(&mut self) -> Result<(), VectorError> {
        // Files that are put in place leave others to be removed.
        while self.upkeep.running.is_some() {
            self.end_work()?;
        }
        Ok(())
    }

    /// Ends the work of a thread early. What it has not made is made after the next start, and files that it should have removed
    /// are removed by it.
    pub fn give_up_upkeep(&mut self) {
        let Some(Running { work, thread }) = self.upkeep.running.take() else { return };
        let made = thread.give_up();
        if matches!(made, Some(Ok(_)))
            && let Err(error) = self.take_over(work, made)
        {
            tracing::warn!("vectors that were rearranged stay as they were: {error}");
        }
    }

    /// Waits for what a thread does, if one runs, and takes over what it made.
    fn end_work(&mut self) -> Result<(), VectorError> {
        let Some(Running { work, thread }) = self.upkeep.running.take() else { return Ok(()) };
        self.take_over(work, thread.end())
    }

    /// Takes over what a thread made.
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
                // Rows that nobody needs were left out.
                gone.iter().for_each(|sealed| self.held -= &*sealed.ordinals);
                anew.iter().for_each(|sealed| self.held |= &*sealed.ordinals);
                self.replace(&old, anew);
                // To give back so much memory and so many pages of files takes longer than a publish should wait.
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

    /// Waits until no thread writes the file that the tail is to be sealed as; what it wrote is not wanted.
    pub(super) fn give_up_sealing(&mut self) {
        if let Some(Running { work: Work::Tail { .. }, .. }) = &self.upkeep.running
            && let Some(running) = self.upkeep.running.take()
        {
            // Whoever seals the tail now writes over what is left of it, or reports why that cannot be done.
            let _ = running.thread.end();
        }
    }
}

/// Returns the rows of some segments in one block; one that stands alone keeps its lists.
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
        // Where there are no lists to be had, a file is not written anew for them, again and again.
        clustered: sealed.block.is_clustered() || !backend.makes_lists(),
    }
}

impl Job {
    /// Writes the rows anew, cold ones first, and returns their segments.
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
