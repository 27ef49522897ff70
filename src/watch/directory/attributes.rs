//! What the `.gitattributes` files of a directory say of its files' encoding.
//!
//! In: such files, the folders above before those below. Out: the encoding that `working-tree-encoding` gives a path.
//!
//! **Invariant:** patterns, macros and precedence are git's (gitattributes); a file of the machine or of the folders above the
//! root does not count, so the same tree has the same version everywhere. No link is followed.

use super::filter::open_rules;
use crate::watch::encoding::DiskEncoding;
use gix_attributes::glob::pattern::Case;
use gix_attributes::search::{MetadataCollection, Outcome};
use gix_attributes::{Search, StateRef};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The name of such a file.
pub(super) const ATTRIBUTES: &str = ".gitattributes";
/// The attribute.
const ENCODING: &str = "working-tree-encoding";
/// Bytes of one file that are read.
const MAX_BYTES: u64 = 1 << 20;

/// The files that were met.
#[derive(Default)]
pub(super) struct Attributes {
    search: Search,
    names: MetadataCollection,
    outcome: Outcome,
}

impl Attributes {
    /// Reads the file of one folder, if it has one; those of the folders above it come first.
    pub(super) fn enter(&mut self, root: &Path, folder: &Path) -> io::Result<()> {
        let path = root.join(folder).join(ATTRIBUTES);
        let Some(file) = open_rules(&path)? else { return Ok(()) };
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        let is_root = folder.as_os_str().is_empty();
        self.search.add_patterns_buffer(&bytes, path, Some(root), &mut self.names, is_root)
    }

    /// Returns the encoding that a file has on disk, relative to the root, where it is told.
    pub(super) fn encoding(&mut self, path: &Path) -> Option<DiskEncoding> {
        if self.search.num_pattern_lists() == 0 {
            return None;
        }
        self.outcome.initialize_with_selection(&self.names, [ENCODING]);
        let path = path.as_os_str().as_bytes();
        self.search.pattern_matching_relative_path(path.into(), Case::Sensitive, Some(false), &mut self.outcome);
        let found = self.outcome.iter_selected().next()?;
        match found.assignment.state {
            StateRef::Value(label) => DiskEncoding::of(std::str::from_utf8(label.as_bstr()).ok()?),
            StateRef::Set | StateRef::Unset | StateRef::Unspecified => None,
        }
    }
}
