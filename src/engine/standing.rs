//! The files below a manifest whose module name changes: the step does not change them, but moves their entries.
//!
//! In: the changes of a step, and the graph's state of the head. Out: the files that move to another module.
//!
//! **Invariant:** no answer depends on this result, only the memory of a step: a file that is missed here is placed again with
//! the manifest. So names are read from the raw bytes, and an unreadable manifest names nothing.
//!
//! The cost is nothing for a head of few files, a check of the paths for a step without a manifest, and reading the manifests if
//! their names stay.

use super::EngineError;
use super::recover::files_in;
use super::tracker::Tracker;
use dataflows::code::{is_manifest, module_name};
use dataflows::data::{DocumentPath, FileChange, FileMode, FileState, View, folders_up};
use dataflows::memo::{Content, Contents};
use std::collections::HashSet;

/// Most document rows in memory at once.
const LOOK_ROWS: usize = 8192;

impl Tracker {
    /// Returns the unchanged files of a head that the step moves to another module, if they and its changes do not fit into one
    /// slice.
    ///
    /// # Errors
    /// If the store cannot be read or written.
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
        // The graph's state is that of the published versions, once all work is published.
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

    /// Returns the module name of a file, if it can be read and has one.
    fn module(&self, path: &DocumentPath, state: Option<FileState>) -> Option<String> {
        let state = state.filter(|state| state.mode == FileMode::Regular)?;
        let rule = self.rules.rule(self.rules.for_path(path));
        match self.contents.read(state.content, rule.max_bytes()) {
            Ok(Content::Bytes(bytes)) => module_name(path, &String::from_utf8_lossy(&bytes)),
            _ => None,
        }
    }
}
