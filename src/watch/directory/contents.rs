//! Reads the bytes of a content id of a directory.
//!
//! In: a content id and a limit. Out: the bytes, checked against the id.
//!
//! **Invariant:** bytes are returned only if they hash to the requested id. The stash holds hashed bytes, and bytes that are read
//! from disk again are hashed again. A file that changed meanwhile is [`ReadError::Changed`]; an event announces its change.

use super::hash::{HashError, hash_bytes, hash_file};
use super::readings::Readings;
use super::scan::absolute;
use crate::watch::{Content, Contents, ReadError};
use dataflows::data::{ContentId, DocumentPath};
use std::path::PathBuf;
use std::sync::Arc;

/// Returns the bytes of the content that git stores for a file's bytes, if they differ.
type Convert = dyn Fn(&DocumentPath, &[u8]) -> Option<Vec<u8>> + Send + Sync;

/// Reads the contents of one directory's files.
#[derive(Clone)]
pub struct DirectoryContents {
    root: PathBuf,
    readings: Arc<Readings>,
    /// A content may be the file's bytes as git would store them.
    convert: Option<Arc<Convert>>,
}

impl DirectoryContents {
    pub(in crate::watch) fn new(root: PathBuf, readings: Arc<Readings>) -> Self {
        Self { root, readings, convert: None }
    }

    /// Returns what git stores for a file's bytes, if the file itself does not hash to the requested id.
    pub(in crate::watch) fn converted(
        self,
        convert: impl Fn(&DocumentPath, &[u8]) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        Self { convert: Some(Arc::new(convert)), ..self }
    }
}

impl Contents for DirectoryContents {
    fn read(&self, content: ContentId, max_bytes: u64) -> Result<Content, ReadError> {
        if let Some(bytes) = self.readings.stashed(content) {
            return Ok(match bytes.len() as u64 {
                size if size > max_bytes => Content::TooLarge(size),
                _ => Content::Bytes(bytes.to_vec()),
            });
        }
        let mut failure = ReadError::Missing(content);
        let mut tried: Option<DocumentPath> = None;
        while let Some((path, [size, on_disk])) = self.readings.place(content, tried.as_ref()) {
            // The size is that of the content when it was hashed, not of the file that is there now.
            if size > max_bytes {
                return Ok(Content::TooLarge(size));
            }
            match hash_file(&absolute(&self.root, &path), on_disk) {
                Ok(hashed) if hashed.content == content => {
                    return Ok(Content::Bytes(hashed.bytes.unwrap_or_default()));
                }
                Ok(hashed) => {
                    let convert = self.convert.as_ref().zip(hashed.bytes);
                    let converted = convert.and_then(|(convert, bytes)| convert(&path, &bytes));
                    match converted.filter(|bytes| hash_bytes(bytes) == content) {
                        Some(bytes) => return Ok(Content::Bytes(bytes)),
                        None => failure = ReadError::Changed(content),
                    }
                }
                Err(HashError::Gone | HashError::Unsettled | HashError::TooLarge(_)) => {
                    failure = ReadError::Changed(content);
                }
                Err(HashError::Io(source)) => failure = ReadError::File { content, path: path.clone(), source },
            }
            tried = Some(path);
        }
        Err(failure)
    }
}
