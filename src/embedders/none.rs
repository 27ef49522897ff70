//! No model: texts get no vectors, so that a replay shows the cost of the model.
//!
//! In: texts. Out: nothing for each. **Invariant:** its fingerprint is that of no model, so a vector search never reads a store
//! that was filled with it.

use dataflows::data::{Hasher, ModelId};
use dataflows::embed::{EmbedError, Embedder, Vector};

/// The embedder that gives no vectors.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoModel;

impl Embedder for NoModel {
    fn fingerprint(&self) -> ModelId {
        ModelId::from_words(Hasher::new("embedder").part(b"none").finish())
    }

    fn dimensions(&self) -> usize {
        1
    }

    fn name(&self) -> &str {
        "none"
    }

    fn embed_documents(&self, texts: &[&str]) -> Result<Vec<Option<Vector>>, EmbedError> {
        Ok(vec![None; texts.len()])
    }

    fn embed_query(&self, _text: &str) -> Result<Option<Vec<f32>>, EmbedError> {
        Ok(None)
    }
}
