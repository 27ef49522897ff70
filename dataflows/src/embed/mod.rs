//! The embedding type and the contract of a model; the models are in the product.
//!
//! In: texts. Out: one [`Vector`] per text, or none if the model knows no word of it.
//!
//! **Invariant:** a vector is a function of (text, model) alone: never of the other texts in the batch, of the thread or of the
//! time. Its 16-bit components *are* the vector: memo, index and hashes hold these very bits, so no value is rounded twice, and
//! two stores can be compared byte for byte.
//!
//! A text without a known word has no vector. This is a separate case and not a zero vector, which would have no direction and so
//! no cosine.

mod each;
mod hash;
mod vector;

pub use each::{Answers, embed_each};
pub use hash::HashEmbedder;
pub use vector::Vector;

use crate::data::ModelId;
use std::error::Error;

/// A model that turns texts into vectors.
pub trait Embedder: Send + Sync {
    /// Returns what names the model and everything else that can change a vector.
    fn fingerprint(&self) -> ModelId;

    /// Returns the number of components of every vector.
    fn dimensions(&self) -> usize;

    /// Returns the model's name as `status` shows it.
    fn name(&self) -> &str;

    /// Returns the vector of each text as part of a corpus, in the order of `texts`, and `None` for a text without a
    /// known word.
    ///
    /// # Errors
    /// If the model cannot be loaded or cannot be run.
    fn embed_documents(&self, texts: &[&str]) -> Result<Vec<Option<Vector>>, EmbedError>;

    /// Returns the vector of a question, of length 1 and not rounded, and `None` for a text without a known word.
    ///
    /// # Errors
    /// If the model cannot be loaded or cannot be run.
    fn embed_query(&self, text: &str) -> Result<Option<Vec<f32>>, EmbedError>;

    /// Returns the cosine below which an entry is no nearer to a question than chance brings entries, where that was measured for
    /// the model.
    ///
    /// # Errors
    /// When the model cannot be loaded or cannot be run.
    fn chance(&self, question: &str) -> Result<Option<f32>, EmbedError> {
        let _ = question;
        Ok(None)
    }

    /// Returns the rows of single tokens, if the vectors of this model are made of such.
    fn token_rows(&self) -> Option<&dyn TokenRows> {
        None
    }
}

/// A model with a row for each token of its vocabulary: what late interaction compares (O. Khattab, M. Zaharia: "ColBERT",
/// SIGIR 2020, section 3.3).
pub trait TokenRows: Send + Sync {
    /// Returns the known tokens of each text, in the order in which they stand.
    ///
    /// # Errors
    /// When the model cannot be loaded.
    fn tokens(&self, texts: &[&str]) -> Result<Vec<Vec<u32>>, EmbedError>;

    /// Returns the length of each token's row.
    ///
    /// # Errors
    /// As [`Self::tokens`].
    fn lengths(&self, tokens: &[u32]) -> Result<Vec<f64>, EmbedError>;

    /// Returns the cosine of each row of `left` with each row of `right`, 0 where it is less: row after row of `left`.
    ///
    /// # Errors
    /// As [`Self::tokens`].
    fn similarities(&self, left: &[u32], right: &[u32]) -> Result<Vec<f32>, EmbedError>;

    /// Returns how rare each token is in general text: minus the logarithm of its probability, as its tokenizer estimates it.
    ///
    /// # Errors
    /// As [`Self::tokens`].
    fn rarities(&self, tokens: &[u32]) -> Result<Vec<f64>, EmbedError>;
}

/// Errors on the way from a text to a vector.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// A component is infinite or not a number.
    #[error("component {position} of the vector is not finite; the model's output cannot be used")]
    NotFinite {
        /// The first such component, counted from 0.
        position: usize,
    },
    /// Every component is zero, or there is none.
    #[error("the vector has no direction: all of its {dimensions} components are zero")]
    NoDirection {
        /// How many components there are.
        dimensions: usize,
    },
    /// Stored components are not those of a vector of length 1.
    #[error("the stored vector has length {length} where 1 is expected; make it again from its text")]
    NotUnit {
        /// The actual length.
        length: f64,
    },
    /// The model cannot be loaded or run.
    #[error("the model `{model}` cannot be used")]
    Model {
        /// The model's name.
        model: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
}
