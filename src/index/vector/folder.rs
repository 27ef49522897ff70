//! The folders of vector sets: which one is whose.
//!
//! In: the folder of all vectors, and the shape of a set. Out: the folder of that set.
//!
//! **Invariant:** a folder's name follows from the model and from which entries the set is for, so files of two sets never meet. A
//! store whose only files are those of another set is refused: what it answers must not depend on which model happens to ask.

use super::format::{HEAD, Shape, model_in};
use super::{VectorError, files};
use crate::store::vector_set;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Returns the folder of a set.
pub(super) fn of_set(vectors: &Path, shape: Shape) -> PathBuf {
    vectors.join(vector_set(shape.model))
}

/// Returns the folder of a set, which may not be there yet.
///
/// # Errors
/// When the folder holds files of other sets alone, or the file system refuses.
pub(super) fn find(vectors: &Path, shape: Shape) -> Result<PathBuf, VectorError> {
    let folder = of_set(vectors, shape);
    if !folder.is_dir() {
        refuse_others(vectors, shape)?;
    }
    Ok(folder)
}

/// Makes the folder of a set, durably; one that is there stays.
pub(super) fn make(folder: &Path) -> Result<(), VectorError> {
    let vectors = folder.parent().unwrap_or(folder);
    fs::create_dir_all(vectors).map_err(VectorError::io("make", vectors))?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(()),
        made => made.map_err(VectorError::io("make", folder))?,
    }
    if let Ok(around) = fs::metadata(vectors) {
        // A file system without modes has none to keep.
        let _ = fs::set_permissions(folder, around.permissions());
    }
    files::sync_directory(vectors)
}

/// Refuses a folder that holds files of other sets.
fn refuse_others(vectors: &Path, shape: Shape) -> Result<(), VectorError> {
    for set in names(vectors, |_| true)?.into_iter().map(|name| vectors.join(name)).filter(|set| set.is_dir()) {
        refuse(&set, &names(&set, |name| name.ends_with(files::SUFFIX))?, shape)?;
    }
    Ok(())
}

/// Refuses files of which some say that they are another model's, and none that it is this one's. Whether they say the truth is
/// checked by whatever reads on.
fn refuse(folder: &Path, names: &[String], shape: Shape) -> Result<(), VectorError> {
    let mut other = None;
    for path in names.iter().map(|name| folder.join(name)) {
        let mut head = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(HEAD as u64).read_to_end(&mut head));
        read.map_err(VectorError::io("read", &path))?;
        match model_in(&head) {
            Some(found) if found == shape => return Ok(()),
            Some(found) => other = Some((path, found)),
            None => {}
        }
    }
    other.map_or(Ok(()), |(path, found)| {
        let Shape { dimensions: found_dimensions, model: found_model } = found;
        Err(VectorError::OtherModel { path, found_model, found_dimensions, expected: shape })
    })
}

/// Returns the wanted names in a folder, sorted; a folder that is not there has none.
fn names(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>, VectorError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(VectorError::io("list", folder))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(VectorError::io("list", folder))?.file_name();
        names.extend(name.to_str().filter(|name| wanted(name)).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}
