//! The models that turn texts into vectors.
//!
//! In: a card and a text, as one string. Out: a [`Vector`](dataflows::embed::Vector), or none.
//!
//! **Invariant:** a model's fingerprint covers everything that can change a vector's bits.
//!
//! The static model is compiled in and needs no file, no network and no configuration.

mod none;
mod pieces;
mod prepare;
mod static_model;

pub use none::NoModel;
pub use static_model::StaticModel;

use dataflows::embed::Embedder;
use std::sync::Arc;

/// Returns the model that serves where the configuration names none: the built-in one. The only place that decides this.
#[must_use]
pub fn configured() -> Arc<dyn Embedder> {
    Arc::new(StaticModel::new())
}
