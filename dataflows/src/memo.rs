//! The traits for keeping results and for reading contents.
//!
//! In: identities. Out: earlier results for them, or the bytes of a content. `src/store` and `src/watch` implement these traits;
//! [`MemoryMemo`] serves tests.
//!
//! **Invariant:** the first answer stays. Once a memo has answered for an identity it gives the same answer for as long as a
//! graph runs over it, so a retraction takes back exactly what its insertion added.

use crate::data::{Chunk, ChunkingId, Cleaned, ContentId, DocumentId, EmbedInput, NoSyntax, SkipReason, TextHash};
use crate::embed::Vector;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The result of cutting one cleaned text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Chunked {
    /// The chunks, in order.
    Chunks(Vec<Chunk>),
    /// Cutting failed; the sentence says what and why.
    Fault(String),
    /// The chunks of a text that was cut without its syntax although its rule asked for it, and the reason.
    WithoutSyntax(Vec<Chunk>, NoSyntax),
}

impl Chunked {
    /// Returns the result of cutting a text.
    #[must_use]
    pub fn new(chunks: Vec<Chunk>, no_syntax: Option<NoSyntax>) -> Self {
        match no_syntax {
            Some(why) => Self::WithoutSyntax(chunks, why),
            None => Self::Chunks(chunks),
        }
    }

    /// Returns the chunks, unless cutting failed.
    #[must_use]
    pub fn chunks(&self) -> Option<&[Chunk]> {
        match self {
            Self::Chunks(chunks) | Self::WithoutSyntax(chunks, _) => Some(chunks),
            Self::Fault(_) => None,
        }
    }

    /// Returns the reason why the text was cut without its syntax, if it was.
    #[must_use]
    pub const fn no_syntax(&self) -> Option<NoSyntax> {
        match self {
            Self::WithoutSyntax(_, why) => Some(*why),
            Self::Chunks(_) | Self::Fault(_) => None,
        }
    }
}

/// What a model made of one input.
#[derive(Clone, PartialEq, Debug)]
pub enum Embedded {
    /// The vector.
    Vector(Vector),
    /// The text holds no token that the model knows: a separate case, not a zero vector.
    NoVector,
    /// The model failed; the sentence says what and why.
    Fault(String),
}

/// How long a result may be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// A function of its input: kept on disk.
    Durable,
    /// Transient (an object that could not be read): kept while this process runs, tried again by the next.
    WhileRunning,
}

/// Results by the identity of their input. Every method may be called from any thread.
pub trait Memo: Send + Sync + 'static {
    /// Reports that a result which rows of the graph depend on is lost: the graph's later output may be wrong and must not be
    /// published.
    fn lost(&self, what: String);
    /// Returns the earlier result of cleaning a content, if there is one.
    fn cleaned(&self, id: DocumentId) -> Option<Cleaned>;
    /// Stores the result of cleaning a content, with the cleaned text if there is one.
    fn put_cleaned(&self, id: DocumentId, cleaned: &Cleaned, text: Option<&str>, keep: Keep);
    /// Returns a text by its hash: a cleaned document's, or a chunk's.
    fn text(&self, hash: TextHash) -> Option<String>;
    /// Returns the chunks of a cleaned text, if it was cut before.
    fn chunks(&self, id: ChunkingId) -> Option<Arc<Chunked>>;
    /// Remembers the chunks of a cleaned text, which is told where it is at hand, with the text of each in their order.
    fn put_chunks(
        &self,
        id: ChunkingId,
        of: Option<(TextHash, &str)>,
        chunked: Chunked,
        texts: Vec<(TextHash, String)>,
        keep: Keep,
    );
    /// Returns whether the model has answered for this input, or failed to while this process runs.
    fn has_embedded(&self, input: EmbedInput) -> bool;
    /// Stores the model's results for these inputs.
    fn put_embedded(&self, rows: Vec<(EmbedInput, Embedded)>, keep: Keep);
}

/// The bytes of a content, or their number if they are too many.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// The whole content.
    Bytes(Vec<u8>),
    /// The content has this many bytes, more than requested, and was not read.
    TooLarge(u64),
    /// The content stands for bytes that are missing now. This is no fault: it is counted under this reason until they exist.
    Absent(SkipReason),
}

/// Reason why a content cannot be read now.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The object is missing: a shallow or partial clone, or a damaged repository.
    #[error("content {content} is missing from the source: {reason}")]
    Missing {
        /// The object that was asked for.
        content: ContentId,
        /// The source's message.
        reason: String,
    },
    /// The file changed after its content id was computed; the next look reads the new content.
    #[error("content {content} changed on disk before it was read; the next scan will see what is there now")]
    Changed {
        /// The content that was expected.
        content: ContentId,
    },
}

/// Contents by their id. May be called from any thread.
pub trait Contents: Send + Sync + 'static {
    /// Returns the content, unless it has more than `max_bytes` bytes.
    ///
    /// # Errors
    /// If the object is missing or has changed; the stage turns this into a fault of the document.
    fn read(&self, content: ContentId, max_bytes: u64) -> Result<Content, ReadError>;
}

/// A memo in memory, for tests and for the reference: dropping it loses everything.
#[derive(Default)]
pub struct MemoryMemo(Mutex<Tables>);

#[derive(Default)]
struct Tables {
    cleaned: FxHashMap<DocumentId, Cleaned>,
    texts: FxHashMap<TextHash, String>,
    chunks: FxHashMap<ChunkingId, Arc<Chunked>>,
    embedded: FxHashMap<EmbedInput, Embedded>,
}

impl MemoryMemo {
    /// Returns what the model made of an input.
    #[must_use]
    pub fn embedded(&self, input: EmbedInput) -> Option<Embedded> {
        self.tables().embedded.get(&input).cloned()
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the first answer.
fn put_first<K: Eq + Hash, V>(table: &mut FxHashMap<K, V>, key: K, value: V) {
    table.entry(key).or_insert(value);
}

impl Memo for MemoryMemo {
    fn lost(&self, what: String) {
        panic!("a memo in memory forgets nothing, but lost {what}");
    }

    fn cleaned(&self, id: DocumentId) -> Option<Cleaned> {
        self.tables().cleaned.get(&id).cloned()
    }

    fn put_cleaned(&self, id: DocumentId, cleaned: &Cleaned, text: Option<&str>, _keep: Keep) {
        let mut tables = self.tables();
        if let (Some(hash), Some(text)) = (cleaned.text(), text) {
            put_first(&mut tables.texts, hash, text.to_owned());
        }
        put_first(&mut tables.cleaned, id, cleaned.clone());
    }

    fn text(&self, hash: TextHash) -> Option<String> {
        self.tables().texts.get(&hash).cloned()
    }

    fn chunks(&self, id: ChunkingId) -> Option<Arc<Chunked>> {
        self.tables().chunks.get(&id).cloned()
    }

    fn put_chunks(
        &self,
        id: ChunkingId,
        _of: Option<(TextHash, &str)>,
        chunked: Chunked,
        texts: Vec<(TextHash, String)>,
        _keep: Keep,
    ) {
        let mut tables = self.tables();
        for (hash, text) in texts {
            put_first(&mut tables.texts, hash, text);
        }
        put_first(&mut tables.chunks, id, Arc::new(chunked));
    }

    fn has_embedded(&self, input: EmbedInput) -> bool {
        self.tables().embedded.contains_key(&input)
    }

    fn put_embedded(&self, rows: Vec<(EmbedInput, Embedded)>, _keep: Keep) {
        let mut tables = self.tables();
        for (input, embedded) in rows {
            put_first(&mut tables.embedded, input, embedded);
        }
    }
}
