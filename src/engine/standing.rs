//! What stands below a manifest that changes its name: files that a step leaves as they are and moves all the same.
//!
//! In: the changes of a step, and what the graph holds of the head. Out: the files that another module places.
//!
//! **Invariant:** no answer depends on what is found here, only how much of a step is in memory at once: a file that is
//! left out is placed anew with the manifest, as if it had not been looked for. So names are read from the bytes as they
//! are, and what cannot be read names nothing.
//!
//! A head of few files costs nothing, a step without a manifest a look at its paths, and one whose manifests keep their
//! names the reading of these.

use super::EngineError;
use super::recover::files_in;
use super::tracker::Tracker;
use dataflows::code::{is_manifest, module_name};
use dataflows::data::{DocumentPath, FileChange, FileMode, FileState, View, folders_up};
use dataflows::memo::{Content, Contents};
use std::collections::HashSet;

/// Rows of documents that are in memory at once.
const LOOK_ROWS: usize = 8192;

impl Tracker {
    /// Returns the files of a head that stand as they do and that the step moves to another module, where they are more
    /// than fit into one slice with its changes.
    ///
    /// # Errors
    /// Where the store cannot be read or written.
    pub(super) fn standing(
        &self,
        head: View,
        changes: &[FileChange],
    ) -> Result<Vec<(DocumentPath, FileState)>, EngineError> {
        if self.files.get(&head).is_none_or(|files| *files <= self.max_slice) {
            return Ok(Vec::new());
        }
        let manifests = changes.iter().filter(|change| is_manifest(&change.path));
        let renamed = manifests
            .filter(|FileChange { path, before, after }| self.module(path, *before) != self.module(path, *after));
        let renamed: HashSet<&[u8]> = renamed.map(|change| change.path.folder()).collect();
        if renamed.is_empty() {
            return Ok(Vec::new());
        }
        let changed: HashSet<&DocumentPath> = changes.iter().map(|change| &change.path).collect();
        // The graph holds what is published, once that is everything.
        self.publisher.settle()?;
        let documents: Vec<u32> = self.publisher.documents_of(head).iter().collect();
        let (mut below, mut named) = (Vec::new(), HashSet::new());
        for part in documents.chunks(LOOK_ROWS) {
            for (path, state) in files_in(&self.registry.catalogue(), part.iter().copied())? {
                if !folders_up(path.folder()).any(|folder| renamed.contains(folder)) {
                    continue;
                }
                if is_manifest(&path) {
                    if self.module(&path, Some(state)).is_some() {
                        named.insert(path.folder().to_vec());
                    }
                } else if !changed.contains(&path) {
                    below.push((path, state));
                }
            }
        }
        below.retain(|(path, _)| {
            let is_placed = |folder: &&[u8]| renamed.contains(folder) || named.contains(*folder);
            folders_up(path.folder()).find(is_placed).is_some_and(|folder| renamed.contains(folder))
        });
        let fits = below.len() + changes.len() <= self.max_slice;
        Ok(if fits { Vec::new() } else { below })
    }

    /// Returns the module that a file names, if it can be read and names one.
    fn module(&self, path: &DocumentPath, state: Option<FileState>) -> Option<String> {
        let state = state.filter(|state| state.mode == FileMode::Regular)?;
        let rule = self.rules.rule(self.rules.for_path(path));
        match self.contents.read(state.content, rule.max_bytes()) {
            Ok(Content::Bytes(bytes)) => module_name(path, &String::from_utf8_lossy(&bytes)),
            _ => None,
        }
    }
}
