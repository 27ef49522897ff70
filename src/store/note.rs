//! Small files beside the database that one process leaves for the next: replaced as a whole, so a reader never sees half of one.
//!
//! In: a value. Out: the same, where it can be read. **Invariant:** losing such a file costs nothing that is not found again, so one
//! that is damaged, or larger than an honest one, counts as none.

use super::StoreError;
use serde::{Serialize, de::DeserializeOwned};
use std::path::Path;

/// Largest file that is read; an honest one has some hundred bytes a source.
const MAX_BYTES: u64 = 4 << 20;

/// Returns what stands in a file, if it can be read.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    if std::fs::metadata(path).ok()?.len() > MAX_BYTES {
        return None;
    }
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Puts a value in place of what stands in a file.
pub(super) fn replace<T: Serialize>(path: &Path, value: &T) -> Result<(), StoreError> {
    let temporary = path.with_extension("new");
    let failed = |source| StoreError::Io { attempt: "write", path: path.to_owned(), source };
    let text = serde_json::to_vec(value).map_err(|error| failed(error.into()))?;
    std::fs::write(&temporary, text).map_err(failed)?;
    std::fs::rename(&temporary, path).map_err(failed)
}
