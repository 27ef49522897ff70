//! Garbage collection in the vector index: removes rows from the files and from searches.
//!
//! In: ordinals. Out: the same directory without their rows.
//!
//! ```text
//!  tail-9   ──remaining rows──► seg-9             sealed early, or left behind empty for tail-10
//!  seg-3, seg-4, seg-7 ──remaining rows──► seg-10  then seg-3, seg-4 and seg-7 are removed
//! ```
//!
//! **Invariant:** at every moment each remaining row is in some file, for readers that open files by ascending numbers and for
//! the next writer; a rename is the only switch. A crash leaves a garbage row, which the next collection finds, or a file whose
//! rows are all in another, which the next writer removes. The highest number ever used stays in use, so that no number means two
//! files.

use super::VectorError;
use super::files;
use super::sealed::{Block, Sealed};
use super::upkeep::together;
use super::writer::{VectorWriter, open_tail};
use roaring::RoaringBitmap;
use std::fs;

impl VectorWriter {
    /// Removes the rows of these ordinals, durably, and merges small sealed files; `go_on` is called between files. Earlier sets
    /// keep the rows.
    ///
    /// The cost is reading and writing every file with one of the rows.
    ///
    /// # Errors
    /// If the file system fails: the rows of the remaining files are still there.
    pub fn remove(&mut self, ordinals: &RoaringBitmap, go_on: &mut dyn FnMut() -> bool) -> Result<(), VectorError> {
        if self.interrupted {
            return Err(VectorError::Interrupted { path: self.directory.clone() });
        }
        self.finish_upkeep()?;
        let dead = ordinals & &self.held;
        let in_tail = self.segments.small.iter().any(|small| !small.bitmap().is_disjoint(&dead));
        if in_tail && go_on() {
            self.remove_from_tail(&dead)?;
        }
        let groups = self.groups(&dead);
        if groups.is_empty() || !go_on() {
            return Ok(());
        }
        let first = self.reserve(groups.len())?;
        for (number, group) in (first..).zip(groups) {
            if !go_on() {
                break;
            }
            self.write_anew(&group, number, &dead, go_on)?;
        }
        Ok(())
    }

    fn remove_from_tail(&mut self, dead: &RoaringBitmap) -> Result<(), VectorError> {
        let rows = self.tail_rows()?;
        let gone = rows.bitmap() & dead;
        let rows = rows.without(dead);
        if rows.is_empty() {
            let old = files::tail_path(&self.directory, self.number);
            self.begin_next_tail()?;
            self.segments.small.clear();
            // Stale as soon as the next one exists: the next start removes a leftover tail.
            let _ = fs::remove_file(old);
        } else {
            self.seal(rows)?;
        }
        self.held -= gone;
        self.set = self.segments.set();
        Ok(())
    }

    /// Opens an empty tail under the next number.
    fn begin_next_tail(&mut self) -> Result<(), VectorError> {
        let path = files::tail_path(&self.directory, self.number);
        let next = self.number.checked_add(1);
        let next = next.ok_or_else(|| VectorError::damaged(path, "no number is left for its successor"))?;
        self.tail = Some(open_tail(&files::tail_path(&self.directory, next), self.shape)?);
        self.number = next;
        Ok(())
    }

    /// Returns the sealed files to rewrite, grouped so that the rows of a group fit into one file.
    pub(super) fn groups(&self, dead: &RoaringBitmap) -> Vec<Vec<u32>> {
        let mut sealed: Vec<&Sealed> = self.segments.sealed.iter().collect();
        sealed.sort_unstable_by_key(|sealed| sealed.number);
        let (mut groups, mut small, mut filled, mut has_dead) = (Vec::new(), Vec::new(), 0, false);
        for sealed in sealed {
            let gone = sealed.ordinals.intersection_len(dead) as usize;
            let stays = sealed.ordinals.len() as usize - gone;
            if stays > self.seal_rows / 2 {
                if gone > 0 {
                    groups.push(vec![sealed.number]);
                }
                continue;
            }
            if filled + stays > self.seal_rows {
                groups.push(std::mem::take(&mut small));
                filled = 0;
            }
            small.push(sealed.number);
            filled += stays;
            has_dead |= gone > 0;
        }
        if !small.is_empty() && (small.len() > 1 || has_dead) {
            groups.push(small);
        }
        // A file that would not change stays.
        groups.retain(|group| {
            group.len() > 1
                || self
                    .segments
                    .sealed
                    .iter()
                    .any(|sealed| group.contains(&sealed.number) && !sealed.ordinals.is_disjoint(dead))
        });
        groups
    }

    /// Writes the remaining rows of some files as the file of this number, and removes the old files. A single file keeps its
    /// lists.
    fn write_anew(
        &mut self,
        group: &[u32],
        number: u32,
        dead: &RoaringBitmap,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), VectorError> {
        let blocks = self.segments.sealed.iter().filter(|sealed| group.contains(&sealed.number));
        let blocks: Vec<Block> = blocks.map(|sealed| sealed.block.clone()).collect();
        let rows = together(self.shape, &blocks)?;
        let gone = rows.bitmap() & dead;
        let rows = rows.without(dead);
        let anew = if rows.is_empty() {
            // The name of the tail keeps their numbers from being used again.
            if self.tail.is_none() {
                self.tail = Some(open_tail(&files::tail_path(&self.directory, self.number), self.shape)?);
            }
            None
        } else {
            let path = files::sealed_path(&self.directory, number);
            let sealed = Sealed::write_beside(&path, number, self.segments.backend, self.shape, &rows)?;
            files::put_in_place(&path)?;
            files::sync_directory(&self.directory)?;
            Some(sealed)
        };
        self.replace(group, anew);
        self.held -= gone;
        for &number in group {
            if !go_on() {
                break;
            }
            self.remove_file(number)?;
        }
        files::sync_directory(&self.directory)
    }

    /// Replaces the segments of some files in searches.
    pub(super) fn replace(&mut self, numbers: &[u32], anew: impl IntoIterator<Item = Sealed>) {
        self.segments.sealed.retain(|sealed| !numbers.contains(&sealed.number));
        self.segments.sealed.extend(anew);
        self.set = self.segments.set();
    }

    /// Removes a sealed file whose live rows are in other files.
    pub(super) fn remove_file(&self, number: u32) -> Result<(), VectorError> {
        files::remove(&files::sealed_path(&self.directory, number))
    }
}
