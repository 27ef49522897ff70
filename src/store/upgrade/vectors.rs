//! From format 3 to 4: the files of vectors stand in the folder of their set.
//!
//! In: the files of one set in the folder of all vectors. Out: the same files in the folder of that set.
//!
//! **Invariant:** a file is moved by one rename, so a process that is killed leaves each in one of the two folders, and the next one
//! moves what is left. What the files hold is not looked at, but for the model that they name: whether they are whole is for
//! whatever opens them.

use super::super::layout::{io, vector_set};
use super::super::shared::make_folder;
use super::{Old, StoreError};
use dataflows::data::ModelId;
use heed::RwTxn;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;

/// What is in every name of a vector file, whole, being written or set aside.
const SUFFIX: &str = ".tmv";
/// Where the model stands in a vector file (`docs/formats.md`).
const MODEL: std::ops::Range<usize> = 16..32;

/// Moves all files at once.
pub(super) fn by_set(old: &Old<'_>, _: &mut RwTxn<'_>, _: Option<&[u8]>) -> Result<Option<Vec<u8>>, StoreError> {
    let folder = old.layout.vectors();
    let mut names = Vec::new();
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        entries => entries.map_err(io("list", &folder))?,
    };
    for entry in entries {
        let name = entry.map_err(io("list", &folder))?.file_name();
        names.extend(name.to_str().filter(|name| name.contains(SUFFIX)).map(str::to_owned));
    }
    names.sort();
    // One that is too short to name a model goes where the others go; if none does, nothing is lost with them.
    let mut model = None;
    for name in &names {
        model = model.or(model_in(&folder.join(name))?);
    }
    let Some(model) = model else { return Ok(None) };
    let set = folder.join(vector_set(model));
    make_folder(&set).map_err(io("make the folder", &set))?;
    for name in &names {
        let from = folder.join(name);
        fs::rename(&from, set.join(name)).map_err(io("move", &from))?;
    }
    for folder in [&set, &folder] {
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(io("sync", folder))?;
    }
    Ok(None)
}

/// Returns the model that a vector file names, if it begins as one.
fn model_in(path: &Path) -> Result<Option<ModelId>, StoreError> {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MODEL.end as u64).read_to_end(&mut head));
    read.map_err(io("read", path))?;
    let model = head.get(MODEL).filter(|_| head.starts_with(b"TMV")).and_then(|model| model.try_into().ok());
    Ok(model.map(ModelId::from_bytes))
}
