//! What a source says: which object stands at which path of which view, and when that changed.
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

/// One moving head of a source, as a number that the engine gives out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct View(pub u32);

/// What kind of object stands at a path. The executable bit makes no difference: it is no part of a text.
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
    /// What kind of object it is.
    pub mode: FileMode,
}

/// One path of one view with the object at it: a row of the graph's input.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct File {
    /// The head that the path belongs to.
    pub view: View,
    /// Where the file stands.
    pub path: DocumentPath,
    /// What stands there.
    pub state: FileState,
}

/// A path whose object came, went or changed between two states of a view.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FileChange {
    /// Where the file stands.
    pub path: DocumentPath,
    /// What stood there, if anything did.
    pub before: Option<FileState>,
    /// What stands there now, if anything does; never equal to `before`.
    pub after: Option<FileState>,
}
