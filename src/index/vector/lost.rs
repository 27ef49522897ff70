//! Files whose names went while their writer had them open, written again.
//!
//! In: a directory with missing files. Out: the same rows, in files.
//!
//! **Invariant:** what the writer searches is what its files hold, so a file that is not there any more is written from its
//! segment, which holds it open, under its own name: for a reader it is a file that came. A tail that is not the file that was opened any more,
//! or not as long as it was left, is sealed: nothing is appended to a file that no reader finds.

use super::files::{self, Listing};
use super::sealed::Sealed;
use super::writer::VectorWriter;
use super::{VectorError, folder};
use std::fs;
use std::os::unix::fs::MetadataExt;

impl VectorWriter {
    /// Writes its missing files again; returns how many.
    ///
    /// If none is missing, the cost is listing the directory.
    ///
    /// # Errors
    /// If the file system fails; searches here still find the rows, and the next call tries again.
    pub fn write_lost(&mut self) -> Result<u64, VectorError> {
        // The content of the files is unknown then, and appending is refused.
        if self.interrupted {
            return Ok(0);
        }
        let listed = Listing::read(&self.directory)?.sealed;
        let lost: Vec<_> =
            self.segments.sealed.iter().filter(|sealed| !listed.contains(&sealed.number)).cloned().collect();
        let is_tail_lost = self.is_tail_lost();
        if lost.is_empty() && !is_tail_lost {
            return Ok(0);
        }
        folder::make(&self.directory)?;
        for sealed in &lost {
            let rows = sealed.block.rows()?;
            let path = files::sealed_path(&self.directory, sealed.number);
            let again = Sealed::write_beside(&path, sealed.number, self.segments.backend, self.shape, &rows)?;
            files::put_in_place(&path)?;
            files::sync_directory(&self.directory)?;
            self.replace(&[sealed.number], [again]);
        }
        if is_tail_lost {
            if self.tail.as_ref().is_some_and(|tail| tail.rows > 0) {
                self.seal_tail()?;
            } else {
                // The next append creates it.
                self.tail = None;
            }
        }
        Ok(lost.len() as u64 + u64::from(is_tail_lost))
    }

    /// Returns whether the tail's name does not lead to the unchanged file that is appended to.
    fn is_tail_lost(&self) -> bool {
        let Some(tail) = &self.tail else { return false };
        let here = tail.file.metadata();
        let there = fs::metadata(files::tail_path(&self.directory, self.number));
        let is_same = here.and_then(|here| Ok((here, there?))).is_ok_and(|(here, there)| {
            (here.dev(), here.ino()) == (there.dev(), there.ino()) && there.len() == tail.bytes
        });
        !is_same
    }
}
