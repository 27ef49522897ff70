//! `record`: which repository is meant, and the digests that the store has of its commits.
//!
//! In: a path, or the name of a source. Out: the repository's path, its name, and digests by commit; none where there is no store.

use super::ApiError;
use crate::store::{Database, Layout, SourceKind};
use dataflows::data::Fingerprint;
use rustc_hash::FxHashMap;
use snapshots::{Archive, CommitId, Digest};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A repository whose commits can be recorded.
#[derive(Debug)]
pub struct Recordable {
    /// Where it is.
    pub path: PathBuf,
    /// What its source is called.
    pub name: String,
    /// Digests of the store's versions.
    pub digests: FxHashMap<CommitId, Digest>,
}

/// Finds a repository by its path, or by its source name in the store.
///
/// # Errors
/// Where the store cannot be read, or the source is no repository.
pub fn recordable(layout: &Layout, source: &str, fingerprint: Fingerprint) -> Result<Recordable, ApiError> {
    let path = Path::new(source);
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let name = name.strip_suffix(".git").filter(|name| !name.is_empty()).unwrap_or(&name).to_owned();
    let mut found = Recordable { path: path.to_owned(), name, digests: FxHashMap::default() };
    if layout.check().is_err() {
        return Ok(found);
    }
    let database = Database::open_reader(layout)?;
    let sources = database.catalogue().sources()?;
    let canonical = path.canonicalize().ok();
    // A source's location may be a link to the repository.
    let here = |location: &[u8]| {
        let there = Path::new(OsStr::from_bytes(location)).canonicalize();
        canonical.as_ref().is_some_and(|path| there.is_ok_and(|there| there == *path))
    };
    let tracked = sources.iter().find(|(_, record)| record.name == source || here(&record.location));
    let Some((id, record)) = tracked else { return Ok(found) };
    if record.kind != SourceKind::Git {
        return Err(ApiError::NoCommits { source_name: source.to_owned(), kind: record.kind.as_str() });
    }
    if !path.exists() {
        found.path = PathBuf::from(OsStr::from_bytes(&record.location));
    }
    found.name.clone_from(&record.name);
    let archive = Archive::open_reader(&layout.versions())?;
    for version in archive.versions().iter().filter(|version| version.source == *id) {
        if version.fingerprint == fingerprint.to_bytes() {
            found.digests.insert(version.commit, version.digest);
        }
    }
    Ok(found)
}
