//! Git LFS pointers: a blob that stands for an object kept elsewhere.
//!
//! In: a blob's bytes. Out: the object's bytes from the repository's own LFS store, or an error that they are missing.
//!
//! **Invariant:** a blob is a pointer only if all of its bytes are, so a document *about* LFS is a document. Bytes are returned
//! only if they hash to the pointer's value.
//!
//! The form is that of git-lfs `docs/spec.md`, "The Pointer": under 1,024 bytes of `KEY SP VALUE LF` lines, `version` first and
//! the rest sorted by key. An object with an extension (`ext-0-NAME`) differs from the checked-out file and counts as missing.
//! Nothing is downloaded; `git lfs fetch` does that.

use crate::watch::Content;
use dataflows::data::SkipReason;
use git2::Repository;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

/// Most bytes that a pointer has.
pub(super) const MAX_POINTER_BYTES: u64 = 1_023;
/// The names of the only version; the second is that of its first releases.
const VERSIONS: [&str; 2] = ["https://git-lfs.github.com/spec/v1", "https://hawser.github.com/spec/v1"];

/// The content of a pointer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Pointer {
    /// The object's SHA-256 in lower-case hexadecimal.
    oid: String,
    bytes: u64,
    is_extended: bool,
}

impl Pointer {
    /// Reads a blob as a pointer, if it is one.
    pub(super) fn parse(blob: &[u8]) -> Option<Self> {
        if blob.len() as u64 > MAX_POINTER_BYTES || !blob.starts_with(b"version ") {
            return None;
        }
        let text = std::str::from_utf8(blob).ok()?.strip_suffix('\n')?;
        let mut lines = text.split('\n').map(|line| line.split_once(' '));
        let (_, version) = lines.next()??;
        if !VERSIONS.contains(&version) {
            return None;
        }
        let mut next = lines.next()??;
        let mut is_extended = false;
        while next.0.starts_with("ext-") {
            is_oid(next.1)?;
            is_extended = true;
            next = lines.next()??;
        }
        let (("oid", oid), Some(("size", size)), None) = (next, lines.next()?, lines.next()) else { return None };
        let is_number = !size.is_empty() && size.bytes().all(|digit| digit.is_ascii_digit());
        let bytes = is_number.then(|| size.parse().ok()).flatten()?;
        Some(Self { oid: is_oid(oid)?.to_owned(), bytes, is_extended })
    }
}

/// Returns the hexadecimal digits of `sha256:DIGITS`, if it is that.
fn is_oid(value: &str) -> Option<&str> {
    let digits = value.strip_prefix("sha256:")?;
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (digits.len() == 64 && digits.bytes().all(is_digit)).then_some(digits)
}

/// Returns the object of a pointer.
pub(super) fn read(repository: &Repository, pointer: &Pointer, max_bytes: u64) -> Content {
    let absent = Content::Absent(SkipReason::LfsMissing);
    if pointer.is_extended {
        return absent;
    }
    let path = objects(repository).join(&pointer.oid[..2]).join(&pointer.oid[2..4]).join(&pointer.oid);
    match object(&path, pointer, max_bytes) {
        Ok(Some(content)) => content,
        Ok(None) => absent,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!("cannot read the LFS object {}: {error}", path.display());
            }
            absent
        }
    }
}

/// Reads an object that is whole; its size alone decides whether it is too large.
fn object(path: &std::path::Path, pointer: &Pointer, max_bytes: u64) -> io::Result<Option<Content>> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() != pointer.bytes {
        return Ok(None);
    }
    if pointer.bytes > max_bytes {
        return Ok(Some(Content::TooLarge(pointer.bytes)));
    }
    let mut bytes = Vec::new();
    file.take(pointer.bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((hash == pointer.oid).then_some(Content::Bytes(bytes)))
}

/// Returns the folder of the repository's LFS objects: `lfs/objects` in the git folder, or where `lfs.storage` says.
fn objects(repository: &Repository) -> PathBuf {
    let storage = repository.config().and_then(|config| config.get_path("lfs.storage"));
    // An absolute setting replaces the git folder.
    repository.commondir().join(storage.unwrap_or_else(|_| "lfs".into())).join("objects")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OID: &str = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";

    fn pointer(text: &str) -> Option<Pointer> {
        Pointer::parse(text.as_bytes())
    }

    #[test]
    fn a_pointer_is_read_in_the_form_of_the_specification() {
        let text = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize 12345\n");
        assert_eq!(pointer(&text), Some(Pointer { oid: OID.to_owned(), bytes: 12_345, is_extended: false }));
        let extended = text.replace("oid ", &format!("ext-0-foo sha256:{OID}\noid "));
        assert!(pointer(&extended).unwrap().is_extended);
        assert!(pointer(&text.replace("git-lfs", "hawser")).is_some());
    }

    #[test]
    fn what_is_not_a_pointer_to_its_last_byte_is_a_document() {
        let text = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize 12345\n");
        for document in [
            format!("# LFS\n\n{text}"),
            format!("{text}\nA pointer looks like this.\n"),
            format!("{text}note more\n"),
            text.trim_end().to_owned(),
            text.replace('\n', "\r\n"),
            text.replace("v1", "v2"),
            text.replace("sha256:4d", "sha256:4D"),
            text.replace("12345", "+12345"),
            text.replace("12345", "99999999999999999999999"),
            text.replace("12345", &"1".repeat(2_000)),
            text.replace("size 12345\n", ""),
            "version \n".to_owned(),
            String::new(),
        ] {
            assert_eq!(pointer(&document), None, "{document:?}");
        }
    }
}
