//! Explains why a path has no document, and finds similar paths.
//!
//! In: a path, and the documents of a version. Out: a reason, and a few paths.
//!
//! **Invariant:** nothing here decides what is indexed: the sources themselves give the reasons, from the current state of the
//! disk.

use super::super::SearchError;
use crate::index::IndexReader;
use crate::store::{SourceKind, SourceRecord};
use crate::watch::directory::{DirectoryOptions, DirectorySource};
use crate::watch::git::GitSource;
use dataflows::data::{Document, DocumentPath, Outcome, SkipReason, folders_up};
use dataflows::rules::Rules;
use roaring::RoaringBitmap;
use snapshots::Ordinal;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use unicode_normalization::UnicodeNormalization;

/// Most similar paths.
const NEAR: usize = 5;

/// The documents of a version, searched for similar paths.
pub(super) struct Around {
    documents: Vec<Document>,
}

impl Around {
    /// Reads every row of a version; only a path without a document is worth that.
    pub(super) fn read(reader: &IndexReader, alive: &RoaringBitmap) -> Result<Self, SearchError> {
        Ok(Self { documents: reader.catalogue().documents(alive.iter().map(Ordinal::new))? })
    }

    /// Returns the one document whose path is the same text in another Unicode form, as file systems write it.
    pub(super) fn twin(&self, path: &DocumentPath) -> Option<&Document> {
        let wanted = nfc(path.as_bytes());
        let mut twins = self.documents.iter().filter(|document| nfc(document.path.as_bytes()) == wanted);
        twins.next().filter(|_| twins.next().is_none())
    }

    /// Returns similar paths: the same in another case, or the same file name elsewhere.
    pub(super) fn near(&self, path: &DocumentPath) -> Vec<DocumentPath> {
        let folded = |bytes: &[u8]| nfc(bytes).to_lowercase();
        let (whole, name) = (folded(path.as_bytes()), folded(path.file_name()));
        let paths = self.documents.iter().map(|document| &document.path);
        let mut near: Vec<&DocumentPath> = paths.filter(|other| folded(other.file_name()) == name).collect();
        near.sort_by_key(|other| (folded(other.as_bytes()) != whole, other.as_bytes().len(), other.as_bytes()));
        near.into_iter().take(NEAR).cloned().collect()
    }

    /// Returns the reason why a path has no document, as far as the version or its source tells.
    pub(super) fn reason(
        &self,
        path: &DocumentPath,
        source: &SourceRecord,
        repository: Option<&GitSource>,
        store: &Path,
        rules: &Arc<Rules>,
    ) -> String {
        let folder = [path.as_bytes(), b"/"].concat();
        let below = self.documents.iter().filter(|document| document.path.as_bytes().starts_with(&folder)).count();
        if below > 0 {
            let files = if below == 1 { "one file stands".to_owned() } else { format!("{below} files stand") };
            return format!("it is a folder: {files} below it");
        }
        let above = |folder: &&[u8]| self.documents.iter().find(|document| document.path.as_bytes() == *folder);
        if let Some(above) =
            folders_up(path.folder()).filter(|folder| !folder.is_empty()).find_map(|folder| above(&folder))
        {
            return match &above.outcome {
                Outcome::Skipped(reason @ (SkipReason::Symlink | SkipReason::Submodule)) => {
                    format!("{} is a {}, and nothing below it is read", above.path, reason.as_str())
                }
                _ => format!("{} is a file and no folder", above.path),
            };
        }
        let on_disk = match source.kind {
            SourceKind::Directory => {
                let options = DirectoryOptions { store: Some(store.to_owned()), ..DirectoryOptions::default() };
                let root = Path::new(OsStr::from_bytes(&source.location));
                DirectorySource::open(root, &options)
                    .ok()
                    .and_then(|directory| directory.with_rules(rules.clone()).why_not(path))
            }
            SourceKind::Git => repository.and_then(|git| git.why_not(path, rules)),
            SourceKind::Trace => None,
        };
        on_disk.unwrap_or_else(|| "no file stands at this path in this version".to_owned())
    }
}

/// Returns text in Unicode's composed form (UAX #15); bytes that are no UTF-8 become replacement characters.
fn nfc(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).nfc().collect()
}
