//! The output of a source: the object at each path of each view, and its changes.
//!
//! **Invariant:** `Epoch` is the only clock inside; wall time travels as data beside it.

use super::{ContentId, DocumentPath};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One commit, or one settled batch of file events; epochs are totally ordered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One moving head of a source, as a number that the engine assigns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct View(pub u32);

/// The kind of object at a path. The executable bit is ignored, because it is no part of a text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum FileMode {
    /// A regular file.
    Regular,
    /// A symbolic link, which is never followed.
    Symlink,
    /// A submodule: a commit of another repository.
    Submodule,
}

/// The object at one path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct FileState {
    /// The object's id: a blob, or the commit of a submodule.
    pub content: ContentId,
    /// The kind of object.
    pub mode: FileMode,
}

/// One path of one view with the object at it: a row of the graph's input.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct File {
    /// The head that the path belongs to.
    pub view: View,
    /// Its path.
    pub path: DocumentPath,
    /// The object.
    pub state: FileState,
}

/// A path whose object was added, removed or changed between two states of a view.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FileChange {
    /// Its path.
    pub path: DocumentPath,
    /// The old object, if any.
    pub before: Option<FileState>,
    /// The new object, if any; never equal to `before`.
    pub after: Option<FileState>,
}
