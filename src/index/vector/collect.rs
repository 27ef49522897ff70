//! Rows that no version needs any more, removed from the files and from what is searched.
//!
//! In: ordinals. Out: the same directory without their rows.
//!
//! ```text
//!  tail-9   ──rows that stay──► seg-9             sealed early, or left behind empty for tail-10
//!  seg-3, seg-4, seg-7 ──rows that stay──► seg-7  then seg-3 and seg-4 are removed
//! ```
//!
//! **Invariant:** at every moment each row that stays is in some file, for readers that take files by ascending numbers as
//! for the next writer; a rename is the only switch. A crash leaves a row that was to go, which the next collection finds
//! again, or a file whose rows are all in another, which the next writer removes. The highest number that was ever used
//! stays in use, so that no number means two files.

use super::VectorError;
use super::files;
use super::format;
use super::rows::Rows;
use super::segment::VectorSegment;
use super::writer::{VectorWriter, open_tail};
use roaring::RoaringBitmap;
use std::fs;
use std::sync::Arc;

impl VectorWriter {
    /// Removes the rows of these ordinals, durably, and puts small sealed files together; `go_on` is asked between files.
    /// Sets that were given out before keep the rows.
    ///
    /// Costs reading and writing every file that holds one of the rows.
    ///
    /// # Errors
    /// When the file system refuses: the rows of files that were not reached are there still.
    pub fn remove(&mut self, ordinals: &RoaringBitmap, go_on: &mut dyn FnMut() -> bool) -> Result<(), VectorError> {
        if self.interrupted {
            return Err(VectorError::Interrupted { path: self.directory.clone() });
        }
        let dead = ordinals & &self.held;
        let in_tail = self.segments.small.iter().any(|small| !small.bitmap().is_disjoint(&dead));
        if in_tail && go_on() {
            self.remove_from_tail(&dead)?;
        }
        for group in self.groups(&dead) {
            if !go_on() {
                break;
            }
            self.write_anew(&group, &dead, go_on)?;
        }
        Ok(())
    }

    fn remove_from_tail(&mut self, dead: &RoaringBitmap) -> Result<(), VectorError> {
        let parts: Vec<Rows> = self.segments.small.iter().map(|small| small.rows()).collect::<Result<_, _>>()?;
        let rows = Rows::merge(self.shape.components(), &parts);
        let gone = rows.bitmap() & dead;
        let rows = rows.without(dead);
        if rows.is_empty() {
            let old = files::tail_path(&self.directory, self.number);
            self.begin_next_tail()?;
            self.segments.small.clear();
            // Stale as soon as the next one is there: a tail that stays behind is swept at the next start.
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

    /// Returns the sealed files that are to be written anew, those together whose rows fit into one file.
    fn groups(&self, dead: &RoaringBitmap) -> Vec<Vec<u32>> {
        let mut small = Vec::new();
        let mut groups = Vec::new();
        let mut filled = 0;
        let mut order: Vec<usize> = (0..self.numbers.len()).collect();
        order.sort_unstable_by_key(|&at| self.numbers[at]);
        let mut has_dead = false;
        for at in order {
            let gone = self.segments.sealed[at].bitmap().intersection_len(dead) as usize;
            let stays = self.segments.sealed[at].len() - gone;
            if stays > self.seal_rows / 2 {
                if gone > 0 {
                    groups.push(vec![self.numbers[at]]);
                }
                continue;
            }
            if filled + stays > self.seal_rows {
                groups.push(std::mem::take(&mut small));
                filled = 0;
            }
            small.push(self.numbers[at]);
            filled += stays;
            has_dead |= gone > 0;
        }
        if !small.is_empty() && (small.len() > 1 || has_dead) {
            groups.push(small);
        }
        // A file that would be written as it is stays as it is.
        let is_same = |group: &[u32]| {
            group.len() == 1
                && self
                    .numbers
                    .iter()
                    .position(|number| *number == group[0])
                    .is_some_and(|at| self.segments.sealed[at].bitmap().is_disjoint(dead))
        };
        groups.retain(|group| !is_same(group));
        groups
    }

    /// Writes what stays of some files under the highest of their numbers, and removes the others.
    fn write_anew(
        &mut self,
        group: &[u32],
        dead: &RoaringBitmap,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), VectorError> {
        let mut parts = Vec::with_capacity(group.len());
        for (number, segment) in self.numbers.iter().zip(&self.segments.sealed) {
            if group.contains(number) {
                parts.push(segment.rows()?);
            }
        }
        let rows = Rows::merge(self.shape.components(), &parts);
        let gone = rows.bitmap() & dead;
        let rows = rows.without(dead);
        let Some(&target) = group.iter().max() else { return Ok(()) };
        let path = files::sealed_path(&self.directory, target);
        let mut superfluous: Vec<u32> = group.iter().copied().filter(|&number| number != target).collect();
        let segment = if rows.is_empty() {
            // The name of the tail keeps the number in use.
            if self.tail.is_none() {
                self.tail = Some(open_tail(&files::tail_path(&self.directory, self.number), self.shape)?);
            }
            let stale = files::tail_path(&self.directory, target);
            if stale.exists() {
                fs::remove_file(&stale).map_err(VectorError::io("remove", &stale))?;
                files::sync_directory(&self.directory)?;
            }
            superfluous.push(target);
            None
        } else {
            let segment = VectorSegment::new(self.segments.backend, &rows)?;
            files::write_whole(&path, &format::encode_sealed(self.shape, &rows))?;
            Some(Arc::new(segment))
        };
        let mut kept = self.numbers.iter().copied().zip(self.segments.sealed.iter().cloned()).collect::<Vec<_>>();
        kept.retain(|(number, _)| !group.contains(number));
        kept.extend(segment.map(|segment| (target, segment)));
        (self.numbers, self.segments.sealed) = kept.into_iter().unzip();
        self.held -= gone;
        self.set = self.segments.set();
        for number in superfluous {
            if !go_on() {
                break;
            }
            let path = files::sealed_path(&self.directory, number);
            fs::remove_file(&path).map_err(VectorError::io("remove", &path))?;
        }
        files::sync_directory(&self.directory)
    }
}
