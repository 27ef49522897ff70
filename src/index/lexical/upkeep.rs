//! Maintenance of the lexical index: live documents are separated from historical ones, beside the publishing thread.
//!
//! In: the entries alive in some head. Out: the same documents in other segments.
//!
//! ```text
//!  tend ── live documents among dead ones? ────────► thread: copies them into one segment, in a separate folder, and renames
//!                                                   its files into the index
//!  tend ── copied, and none deleted meanwhile? ────► deleted there and added here, in one commit
//!  tend ── a large merge was delayed? ─────────────► a commit, at which tantivy begins it
//! ```
//!
//! **Invariant:** an entry is in exactly one document that is not deleted, before the commit and after it. So every searcher has
//! it once, and versions keep their answers. A copy is discarded and made again if one of its documents was deleted meanwhile, or
//! its segment was merged. The next writer removes the remains of a copy after a crash.

use super::LexicalError;
use super::directory::{Folder, check_wanted};
use super::temperature::{self, Held, Next, Source};
use super::writer::LexicalWriter;
use crate::index::background::{Background, Tended, Unwanted, Urgency, has_room};
use roaring::RoaringBitmap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tantivy::directory::OwnedBytes;
use tantivy::fastfield::{AliveBitSet, write_alive_bitset};
use tantivy::index::{Index, Segment, SegmentId, SegmentMeta};
use tantivy::indexer::merge_filtered_segments;
use tantivy::{BitSet, Directory, DocId, TantivyError};

/// The folder, inside that of the index, in which copies are made, each in a folder of its own.
const FOLDER: &str = "copied";
/// Documents of one copy: some seconds of work, which a discarded copy loses.
pub(super) const COPIED_AT_ONCE: usize = 200_000;

/// The result of a maintenance step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Relocated {
    /// So many documents were moved.
    pub moved: u64,
    /// The work that is left.
    pub tended: Tended,
}

/// The state of a writer's maintenance: the jobs of its threads.
#[derive(Default)]
pub(super) struct Upkeep {
    /// Reads which entries large segments hold.
    reading: Option<Background<Result<Held, LexicalError>>>,
    /// Copies living documents.
    copying: Option<Background<Result<Copied, LexicalError>>>,
    /// Copies that were discarded in succession.
    pub(super) in_vain: u32,
    /// How many copies were begun.
    copies: u64,
}

/// Documents found in a segment.
struct Found {
    /// The segment at that time.
    segment: SegmentMeta,
    /// The requested entries.
    wanted: RoaringBitmap,
    /// Those that are there, ...
    entries: RoaringBitmap,
    /// ... and their documents.
    documents: Vec<DocId>,
}

/// A copy of documents.
struct Copied {
    found: Vec<Found>,
    /// Their new segment; nothing if none was found. While it is held here, its files are not removed.
    segment: Option<SegmentMeta>,
}

impl LexicalWriter {
    /// Takes one short step that separates live documents from historical ones. `alive` are the entries of some head; from now
    /// on, segments are merged with their own kind. There must be no uncommitted entries.
    ///
    /// Long work is left to threads, and later steps check whether it is done. A step that adopts their result takes the time of
    /// a commit, and is not taken if `go_on` returns false.
    ///
    /// # Errors
    /// If a segment cannot be read or written: nothing was moved. [`LexicalError::Commit`]: open the writer again.
    pub fn tend(
        &mut self,
        alive: &RoaringBitmap,
        urgency: Urgency,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Relocated, LexicalError> {
        self.tend_at_most(alive, COPIED_AT_ONCE, urgency, go_on)
    }

    /// Does as [`Self::tend`] does, with a limit on the documents of one copy.
    pub(super) fn tend_at_most(
        &mut self,
        alive: &RoaringBitmap,
        limit: usize,
        urgency: Urgency,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Relocated, LexicalError> {
        let step = |tended| Ok(Relocated { moved: 0, tended });
        if !self.take_read()? || self.is_copying() {
            return step(Tended::Waits);
        }
        if self.is_copied() {
            let moved = if go_on() { self.take_copy()? } else { 0 };
            return Ok(Relocated { moved, tended: Tended::Busy });
        }
        // At most, the whole index is written once more.
        if !has_room(self.folder.root(), self.folder.bytes()) {
            return step(Tended::Idle);
        }
        if go_on() && self.temperature.is_put_off() {
            // tantivy asks the policy when a commit or a merge ends.
            self.commit(self.next_ordinal())?;
            return step(Tended::Busy);
        }
        let (index, segments) = (self.writer.index().clone(), self.segments()?);
        match self.temperature.tell(alive, self.next_ordinal(), &index, &segments, limit)? {
            Next::Take(sources) => self.begin_to_copy(sources, urgency)?,
            Next::Read(unknown) => self.begin_to_read(unknown, urgency)?,
            Next::Rest => return step(Tended::Idle),
        }
        step(Tended::Waits)
    }

    pub(super) fn segments(&self) -> Result<Vec<SegmentMeta>, LexicalError> {
        self.writer.index().searchable_segment_metas().map_err(load)
    }

    /// Returns whether a copy is being made.
    pub(super) fn is_copying(&self) -> bool {
        self.upkeep.copying.as_ref().is_some_and(|copying| !copying.is_finished())
    }

    /// Returns whether a copy waits for adoption.
    pub(super) fn is_copied(&self) -> bool {
        self.upkeep.copying.as_ref().is_some_and(Background::is_finished)
    }

    /// Starts to copy documents into one segment.
    pub(super) fn begin_to_copy(&mut self, sources: Vec<Source>, urgency: Urgency) -> Result<(), LexicalError> {
        self.sweep()?;
        let (index, root, folder) = (self.writer.index().clone(), self.folder.root().to_owned(), self.next_folder());
        let work = move |unwanted: &Unwanted| copy(&index, sources, &root, &folder, unwanted);
        let copying = Background::begin("tidemill-words", urgency, work);
        self.upkeep.copying = Some(copying.map_err(|source| load(source.into()))?);
        Ok(())
    }

    /// Copies documents into one segment and adopts it; returns how many were moved.
    pub(super) fn copy_now(&mut self, sources: Vec<Source>) -> Result<u64, LexicalError> {
        self.sweep()?;
        let folder = self.next_folder();
        let copied = copy(self.writer.index(), sources, self.folder.root(), &folder, &Unwanted::default());
        self.end_copy(copied)
    }

    /// Returns a folder that no copy used, not even an abandoned one.
    fn next_folder(&mut self) -> PathBuf {
        self.upkeep.copies += 1;
        self.folder.root().join(FOLDER).join(self.upkeep.copies.to_string())
    }

    /// Abandons the work of threads, so that nothing waits for them.
    pub(super) fn leave_upkeep(&mut self) {
        if let Some(copying) = self.upkeep.copying.take_if(|copying| copying.is_in_the_way()) {
            copying.leave();
            self.temperature.let_go();
        }
        if let Some(reading) = self.upkeep.reading.take_if(|reading| reading.is_in_the_way()) {
            reading.leave();
        }
    }

    /// Adopts the waiting copy; returns how many documents were moved.
    pub(super) fn take_copy(&mut self) -> Result<u64, LexicalError> {
        let Some(copying) = self.upkeep.copying.take() else { return Ok(0) };
        let panicked = || load(TantivyError::SystemError("the thread that copies documents panicked".to_owned()));
        self.end_copy(copying.end().unwrap_or_else(|| Err(panicked())))
    }

    fn end_copy(&mut self, copied: Result<Copied, LexicalError>) -> Result<u64, LexicalError> {
        let moved = copied.and_then(|copied| self.take_over(copied));
        if moved.is_err() {
            // It may have renamed files already; their removal is not awaited.
            drop(self.writer.garbage_collect_files());
        }
        // Whatever the result, the copied segments may be merged again.
        self.temperature.let_go();
        remove_copies(self.folder.root());
        moved
    }

    /// Replaces the copied documents by the copy, if they are unchanged; returns how many documents were moved.
    fn take_over(&mut self, copied: Copied) -> Result<u64, LexicalError> {
        let segments = self.segments()?;
        let is_as_it_was = |found: &Found| {
            let now = segments.iter().find(|segment| segment.id() == found.segment.id());
            now.is_some_and(|now| now.delete_opstamp() == found.segment.delete_opstamp())
        };
        if !copied.found.iter().all(is_as_it_was) {
            return Ok(0);
        }
        for Found { segment, wanted, entries, .. } in &copied.found {
            // A merge that ended during a deletion may have been read before it: then it holds less than was read.
            self.temperature.left(&(wanted - entries), Some(segment.id()));
        }
        let Some(segment) = copied.segment else { return Ok(0) };
        let id = segment.id();
        let moved = copied.found.into_iter().map(|found| (found.segment.id(), found.entries, found.documents));
        let moved: Vec<_> = moved.collect();
        // The deletion is not meant for the copy, but would apply to it.
        self.remove_from(segments.iter().map(SegmentMeta::id).chain([id]), &moved)?;
        self.writer.add_segment(segment).map_err(|source| LexicalError::Commit(source.into()))?;
        let mut entries = RoaringBitmap::new();
        for (from, of_one, _) in &moved {
            self.temperature.left(of_one, Some(*from));
            entries |= of_one;
        }
        let number = entries.len();
        self.temperature.learn(vec![(id, entries)]);
        // While a segment is referenced, its files stay.
        drop(segments);
        self.commit(self.next_ordinal())?;
        Ok(number)
    }

    /// Starts to read the entries of segments.
    pub(super) fn begin_to_read(&mut self, segments: Vec<SegmentMeta>, urgency: Urgency) -> Result<(), LexicalError> {
        let index = self.writer.index().clone();
        let reading = Background::begin("tidemill-words", urgency, move |_| temperature::read(&index, &segments));
        self.upkeep.reading = Some(reading.map_err(|source| load(source.into()))?);
        Ok(())
    }

    /// Adopts the read entries; returns whether no read is in progress.
    pub(super) fn take_read(&mut self) -> Result<bool, LexicalError> {
        let Some(reading) = self.upkeep.reading.take_if(|reading| reading.is_finished()) else {
            return Ok(self.upkeep.reading.is_none());
        };
        let panicked = || load(TantivyError::SystemError("the thread that reads ordinals panicked".to_owned()));
        self.temperature.learn(reading.end().unwrap_or_else(|| Err(panicked()))?);
        Ok(true)
    }
}

/// Removes the remains of copies, also of a killed writer, best effort: remains only take space.
pub(super) fn remove_copies(root: &Path) {
    let folder = root.join(FOLDER);
    let _ = fs::remove_dir_all(&folder).or_else(|_| fs::remove_file(&folder));
}

/// Copies documents of some segments into one, in a separate folder, and moves its files into place.
fn copy(
    index: &Index,
    sources: Vec<Source>,
    root: &Path,
    folder: &Path,
    unwanted: &Unwanted,
) -> Result<Copied, LexicalError> {
    let (mut found, mut segments, mut filters) = (Vec::new(), Vec::new(), Vec::new());
    for Source { segment, wanted } in sources {
        let at = temperature::find(&temperature::open(index, &segment)?, &wanted)?;
        let (entries, documents): (RoaringBitmap, Vec<DocId>) = at.into_iter().unzip();
        if !documents.is_empty() {
            segments.push(index.segment(segment.clone()));
            filters.push(Some(only(&documents, segment.max_doc()).map_err(|source| load(source.into()))?));
        }
        found.push(Found { segment, wanted, entries, documents });
    }
    if segments.is_empty() {
        return Ok(Copied { found, segment: None });
    }
    let made = copy_filtered(&segments, filters, folder, unwanted).map_err(load)?;
    let expected: usize = found.iter().map(|found| found.documents.len()).sum();
    if made.max_doc() as usize != expected {
        return Err(LexicalError::Segment { segment: made.id().uuid_string(), what: "a copy lacks documents" });
    }
    let segment = index.new_segment_meta(made.id(), made.max_doc());
    check_wanted(unwanted)
        .and_then(|()| put_in_place(folder, root, index, made.id()))
        .map_err(|source| load(source.into()))?;
    Ok(Copied { found, segment: Some(segment) })
}

fn copy_filtered(
    segments: &[Segment],
    filters: Vec<Option<AliveBitSet>>,
    folder: &Path,
    unwanted: &Unwanted,
) -> tantivy::Result<SegmentMeta> {
    // Created again, so that a planted link is not followed.
    if let Some(root) = folder.parent().filter(|root| !fs::symlink_metadata(root).is_ok_and(|found| found.is_dir())) {
        let _ = fs::remove_file(root);
        fs::create_dir(root)?;
    }
    fs::create_dir(folder)?;
    let settings = segments[0].index().settings().clone();
    let copy = merge_filtered_segments(segments, settings, filters, Folder::open_for(folder, unwanted.clone())?)?;
    let mut made = copy.searchable_segment_metas()?;
    made.pop().ok_or_else(|| TantivyError::SystemError("a copy has no segment".to_owned()))
}

/// Returns a filter for some documents of a segment.
fn only(documents: &[DocId], max_doc: u32) -> io::Result<AliveBitSet> {
    let mut set = BitSet::with_max_value(max_doc);
    for document in documents {
        set.insert(*document);
    }
    let mut bytes = Vec::new();
    write_alive_bitset(&set, &mut bytes)?;
    Ok(AliveBitSet::open(OwnedBytes::new(bytes)))
}

/// Renames the synced files of a copy into the folder of the index.
fn put_in_place(folder: &Path, root: &Path, index: &Index, segment: SegmentId) -> io::Result<()> {
    let name = segment.uuid_string();
    for file in fs::read_dir(folder)? {
        let file = file?.path();
        let Some(of_copy) = file.file_name().filter(|file| file.to_string_lossy().starts_with(&name)) else { continue };
        // tantivy removes only files that it has made, so it makes a file of the name, which is replaced.
        let made =
            index.directory().open_write(Path::new(of_copy)).map_err(|error| io::Error::other(error.to_string()))?;
        drop(made);
        fs::rename(&file, root.join(of_copy))?;
    }
    Ok(())
}

fn load(source: TantivyError) -> LexicalError {
    LexicalError::Load(source.into())
}
