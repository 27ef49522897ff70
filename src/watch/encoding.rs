//! The attribute `working-tree-encoding`: which encoding a file has on disk and not in its blob.
//!
//! In: the attribute's value, and bytes of a file. Out: the bytes that git would store, which are UTF-8.
//!
//! **Invariant:** as git does (gitattributes, `working-tree-encoding`): a plain `utf-16` goes by the mark in front, and what cannot
//! be converted is taken as it is.

use gix_filter::encoding::Encoding;
use gix_filter::worktree::encode_to_git::RoundTripCheck;
use gix_filter::worktree::{encode_to_git, encoding::for_label};

/// An encoding; the plain names of those with two byte orders go by the mark in front.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DiskEncoding {
    Utf16ByMark,
    Named(&'static Encoding),
}

impl DiskEncoding {
    /// Returns the encoding that a value of the attribute stands for, unless that is UTF-8 or unknown.
    pub(super) fn of(label: &str) -> Option<Self> {
        let label = label.to_ascii_lowercase();
        match label.as_str() {
            "utf-8" | "utf8" => None,
            "utf-16" | "utf16" => Some(Self::Utf16ByMark),
            _ => for_label(label.strip_suffix("-bom").unwrap_or(&label)).ok().map(Self::Named),
        }
    }

    /// Returns the bytes that git would store, if these can be converted.
    pub(super) fn to_git(self, bytes: &[u8]) -> Option<Vec<u8>> {
        let encoding = match self {
            Self::Named(encoding) => encoding,
            Self::Utf16ByMark => Encoding::for_bom(bytes).map(|(encoding, _)| encoding)?,
        };
        let mut converted = Vec::new();
        encode_to_git(bytes, encoding, &mut converted, RoundTripCheck::Skip).ok()?;
        Some(converted)
    }
}
