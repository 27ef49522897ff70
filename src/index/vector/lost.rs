//! Rewrites files that were removed while their writer had them open, from memory.
//!
//! In: a directory with missing files. Out: the same rows, in files.
//!
//! **Invariant:** the writer's segments equal its files, so a missing file is written from its segment, under its own name:
//! readers see it as a new file. A tail that is not the opened file any more, or has another length, is sealed, so that no row is
//! appended to a file that readers cannot find.

use super::VectorError;
use super::files::{self, Listing};
use super::format;
use super::writer::VectorWriter;
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
        fs::create_dir_all(&self.directory).map_err(VectorError::io("make", &self.directory))?;
        for sealed in &lost {
            let rows = sealed.block.rows()?;
            let path = files::sealed_path(&self.directory, sealed.number);
            files::write_whole(&path, &format::encode_sealed(self.shape, &rows))?;
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
