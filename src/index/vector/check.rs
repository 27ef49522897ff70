//! Checks whether the vector files are intact, and which rows they hold.
//!
//! In: a directory, beside any writer. Out: every row of every intact file, passed to the caller, and the damage.
//!
//! **Invariant:** a row counts only once the checksum of its file or frame fits. An incomplete frame at the end of the tail is
//! being written, or torn: its rows were never published. Nothing is written.

use super::VectorError;
use super::files::{self, Listing};
use super::folder;
use super::format::{self, Ending, Shape};
use super::reader::is_gone;
use super::rows::Rows;
use super::sealed;
use half::f16;
use roaring::RoaringBitmap;
use snapshots::Ordinal;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// The content of a directory of vectors.
#[derive(Default, Debug)]
pub struct VectorCheck {
    /// The ordinals of all rows in intact files and frames.
    pub ordinals: RoaringBitmap,
    /// Files that were read.
    pub files: usize,
    /// Unreadable files, each error with its file.
    pub damaged: Vec<(PathBuf, VectorError)>,
}

/// Checks every file of a set and tells `look` each row that counts: the first of an ordinal.
///
/// # Errors
/// When the folder of all vectors, or that of the set, cannot be listed.
pub fn check(vectors: &Path, shape: Shape, look: &mut dyn FnMut(Ordinal, &[f16])) -> Result<VectorCheck, VectorError> {
    check_folder(&folder::find(vectors, shape)?, shape, look)
}

/// Checks every file in the folder of a set.
pub(super) fn check_folder(
    directory: &Path,
    shape: Shape,
    look: &mut dyn FnMut(Ordinal, &[f16]),
) -> Result<VectorCheck, VectorError> {
    let mut check = VectorCheck::default();
    let mut sealed = BTreeSet::new();
    'look: loop {
        let listing = Listing::read_settled(directory)?;
        let fresh: Vec<u32> = listing.sealed.difference(&sealed).copied().collect();
        for number in fresh {
            let path = files::sealed_path(directory, number);
            match sealed::read(&path, shape) {
                Ok(rows) => check.take(rows.into_rows(), look),
                // Its rows that count are in a file with a higher number, which existed before this one was removed.
                Err(error) if is_gone(&error) => continue 'look,
                Err(error) => check.damaged.push((path, error)),
            }
            check.files += 1;
            sealed.insert(number);
        }
        let Some(number) = listing.tail else { return Ok(check) };
        let path = files::tail_path(directory, number);
        match read_tail(&path, shape) {
            // The writer sealed it between listing and opening.
            Err(VectorError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => check.damaged.push((path, error)),
            Ok((frames, ending)) => {
                frames.into_iter().for_each(|rows| check.take(rows, look));
                if ending == Ending::Damaged {
                    let error = VectorError::damaged(&path, "a frame's checksum does not fit");
                    check.damaged.push((path, error));
                }
            }
        }
        check.files += 1;
        return Ok(check);
    }
}

fn read_tail(path: &Path, shape: Shape) -> Result<(Vec<Rows>, Ending), VectorError> {
    let bytes = files::read_whole(path)?;
    format::check_tail_header(&bytes, shape, path)?;
    let (frames, _, ending) = format::decode_frames(&bytes[format::TAIL_HEADER..], shape);
    Ok((frames, ending))
}

impl VectorCheck {
    fn take(&mut self, rows: Rows, look: &mut dyn FnMut(Ordinal, &[f16])) {
        let rows = rows.admit(&mut self.ordinals);
        for (position, &ordinal) in rows.ordinals().iter().enumerate() {
            look(Ordinal::new(ordinal), rows.row(position));
        }
    }
}
