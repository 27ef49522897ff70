//! BM25 over code and prose, for any version, in tantivy.
//!
//! In: entries (ordinal, text, name), appended and committed. Out: ranked ordinals for a version's bitmap.
//!
//! **Invariant:** an entry is analysed once and written once; versions differ in bits only. The ranks of a version are those of a
//! fresh index of its entries, score for score.
//!
//! ```text
//! text, name ─ analyzer ─► writer ─► segments ─► reader ─► view of a version ─► hits
//!   query ──── analyzer ─► query ───────────────────────────────┘
//! ```
//!
//! Other modules do vectors, fusion and the text of hits.
//!
//! ```
//! use roaring::RoaringBitmap;
//! use snapshots::Ordinal;
//! use tidemill::index::TieOrder;
//! use tidemill::index::lexical::{LexicalQuery, LexicalReader, LexicalView, LexicalWriter, LiveStatistics, OrdinalMaps};
//!
//! struct ByNumber;
//! impl TieOrder for ByNumber {
//!     fn compare(&self, left: Ordinal, right: Ordinal) -> std::cmp::Ordering {
//!         left.cmp(&right)
//!     }
//! }
//!
//! let dir = tempfile::tempdir()?;
//! let mut writer = LexicalWriter::open_or_create(dir.path())?;
//! let old = writer.add(Ordinal::new(0), "fn spawn_camera() {}", "fn spawn_camera()")?;
//! let new = writer.add(Ordinal::new(1), "fn spawn_light() {}", "fn spawn_light()")?;
//! writer.commit(2)?;
//!
//! let reader = LexicalReader::open(dir.path())?;
//! let version = |ordinal: u32, tokens: [u32; 2]| {
//!     let statistics = LiveStatistics { entries: 1, tokens: tokens.map(u64::from) };
//!     LexicalView::new(reader.searcher(), &OrdinalMaps::new(), &RoaringBitmap::from([ordinal]), statistics)
//! };
//! let query = LexicalQuery::parse("spawn");
//! let first = version(0, old)?.search(&query, 10, None, &ByNumber)?;
//! let second = version(1, new)?.search(&query, 10, None, &ByNumber)?;
//! assert_eq!((first[0].0, second[0].0), (Ordinal::new(0), Ordinal::new(1)));
//! // Each was the only entry of its version, so the same word is worth the same in both.
//! assert_eq!((first.len(), first[0].1.to_bits()), (1, second[0].1.to_bits()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod alive;
mod analyzer;
mod check;
mod clause;
mod cursor;
mod directory;
mod error;
mod forget;
mod look;
mod merging;
mod prune;
mod query;
mod reader;
mod removal;
mod schema;
mod search;
mod statistics;
mod temperature;
mod upkeep;
mod writer;

pub use alive::OrdinalMaps;
pub use analyzer::{Token, analyze};
pub(crate) use analyzer::{border_up_to, for_each_token};
pub use check::{LengthsOf, LexicalCheck, check};
pub use error::LexicalError;
pub use forget::Forgotten;
pub use query::{Asked, AskedWord, LexicalQuery, MAX_QUERY_BYTES, MAX_TERMS, NAME_BOOST};
pub use reader::LexicalReader;
pub use schema::{TEXT_FIELDS, count_tokens, fingerprint, searched_name};
pub use search::LexicalView;
pub use statistics::LiveStatistics;
pub use upkeep::Relocated;
pub use writer::{LexicalWriter, WriterOptions};

#[cfg(test)]
mod tests;
