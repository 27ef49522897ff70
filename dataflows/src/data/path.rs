//! Paths as in git: bytes, with `/` between the parts, relative to the source's root.
//!
//! **Invariant:** a path is never empty, never starts or ends with `/`, and need not be UTF-8. It is displayed with replacement
//! characters and compared by its bytes.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// The path of a document inside its source.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DocumentPath(Box<[u8]>);

impl DocumentPath {
    /// Wraps the bytes of a path that git or a directory walk gave.
    #[must_use]
    pub fn new(bytes: impl Into<Box<[u8]>>) -> Self {
        Self(bytes.into())
    }

    /// Returns the path's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the path as text, with replacement characters where it is not UTF-8.
    #[must_use]
    pub fn display(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// Returns the folder before the last `/`, or nothing for a file at the root.
    #[must_use]
    pub fn folder(&self) -> &[u8] {
        let end = self.0.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        &self.0[..end]
    }

    /// Returns the part after the last `/`.
    #[must_use]
    pub fn file_name(&self) -> &[u8] {
        let start = self.0.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        &self.0[start..]
    }

    /// Returns the bytes after the file name's last dot, unless that dot begins the name.
    #[must_use]
    pub fn extension(&self) -> Option<&[u8]> {
        let name = self.file_name();
        let dot = name.iter().rposition(|&byte| byte == b'.')?;
        (dot > 0).then(|| &name[dot + 1..])
    }
}

impl From<&str> for DocumentPath {
    fn from(path: &str) -> Self {
        Self(path.as_bytes().into())
    }
}

impl fmt::Display for DocumentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.display())
    }
}

impl fmt::Debug for DocumentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.display())
    }
}

/// Returns a folder and all folders above it, the root (empty) last.
pub fn folders_up(folder: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(folder), |inner| {
        if inner.is_empty() {
            return None;
        }
        let end = inner.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        Some(&inner[..end])
    })
}
