//! A batch of texts given to a model so that a fault costs the text that it is of, and no other.
//!
//! In: texts. Out: for each its vector, that it has none, or why the model gave no answer.
//!
//! **Invariant:** a batch that fails is asked again text by text, so an answer is missing only where the model refused that
//! text alone. A model that panics has refused.

use super::{EmbedError, Embedder, Vector};
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a model answered to a batch.
#[derive(Debug)]
pub struct Answers {
    /// For each text its vector, nothing where the model knows no word of it, or why there is no answer.
    pub vectors: Vec<Result<Option<Vector>, String>>,
    /// How many texts were given to the model once more.
    pub retried: u64,
}

/// Asks a model for the vectors of some texts.
pub fn embed_each(embedder: &dyn Embedder, texts: &[&str]) -> Answers {
    match ask(embedder, texts) {
        Ok(vectors) => Answers { vectors: vectors.into_iter().map(Ok).collect(), retried: 0 },
        Err(error) if texts.len() == 1 => Answers { vectors: vec![Err(error)], retried: 0 },
        Err(_) => {
            let alone = |text: &&str| ask(embedder, &[text]).map(|vectors| vectors.into_iter().next().flatten());
            Answers { vectors: texts.iter().map(alone).collect(), retried: texts.len() as u64 }
        }
    }
}

/// Returns as many vectors as there are texts, or why the model gave none.
fn ask(embedder: &dyn Embedder, texts: &[&str]) -> Result<Vec<Option<Vector>>, String> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    match catch_unwind(AssertUnwindSafe(|| embedder.embed_documents(texts))) {
        Ok(Ok(vectors)) if vectors.len() == texts.len() => Ok(vectors),
        Ok(Ok(vectors)) => Err(format!("the model gave {} vectors for {} texts", vectors.len(), texts.len())),
        Ok(Err(error)) => Err(with_cause(&error)),
        Err(panic) => {
            let said = panic.downcast_ref::<&str>().copied();
            let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            Err(format!("the model panicked: {}", said.unwrap_or("no reason given")))
        }
    }
}

/// Returns an error and its cause as one line.
fn with_cause(error: &EmbedError) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ModelId;
    use crate::embed::HashEmbedder;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A model that refuses some texts, each in its own way, and counts the texts that it is given.
    struct Picky(HashEmbedder, AtomicU64);

    impl Embedder for Picky {
        fn fingerprint(&self) -> ModelId {
            self.0.fingerprint()
        }

        fn dimensions(&self) -> usize {
            self.0.dimensions()
        }

        fn name(&self) -> &str {
            "picky"
        }

        fn embed_documents(&self, texts: &[&str]) -> Result<Vec<Option<Vector>>, EmbedError> {
            self.1.fetch_add(texts.len() as u64, Ordering::Relaxed);
            assert!(!texts.contains(&"panics"), "it does");
            if texts.contains(&"fails") {
                return Err(EmbedError::NoDirection { dimensions: 3 });
            }
            let mut vectors = self.0.embed_documents(texts)?;
            vectors.truncate(if texts.contains(&"is lost") { texts.len() - 1 } else { texts.len() });
            Ok(vectors)
        }

        fn embed_query(&self, text: &str) -> Result<Option<Vec<f32>>, EmbedError> {
            self.0.embed_query(text)
        }
    }

    #[test]
    fn a_fault_costs_the_text_that_it_is_of() {
        let model = Picky(HashEmbedder::new(8), AtomicU64::new(0));
        let whole = embed_each(&model, &["one", "…", "two"]);
        let kinds: Vec<_> = whole.vectors.iter().map(|vector| vector.as_ref().unwrap().is_some()).collect();
        assert_eq!((kinds, whole.retried), (vec![true, false, true], 0));
        for (odd, said) in [("fails", "no direction"), ("is lost", "0 vectors for 1"), ("panics", "it does")] {
            let answers = embed_each(&model, &["one", odd, "two"]);
            assert_eq!(answers.retried, 3);
            assert!(answers.vectors[1].as_ref().unwrap_err().contains(said), "{answers:?}");
            for at in [0, 2] {
                assert_eq!(answers.vectors[at].as_ref().unwrap(), whole.vectors[at].as_ref().unwrap());
            }
            let alone = embed_each(&model, &[odd]);
            assert_eq!((alone.vectors.len(), alone.vectors[0].is_err(), alone.retried), (1, true, 0));
        }
        assert_eq!(model.1.load(Ordering::Relaxed), 3 + 3 * (3 + 3 + 1));
    }
}
