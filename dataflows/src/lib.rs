//! The middle of tidemill: from the files of a view to changes of entries, as values.
//!
//! In: the object at each path, epoch by epoch. Out: per epoch, the inserted and retracted entries, and a receipt of the work. No
//! disk, network or clock: results are kept through [`memo::Memo`], contents come through [`memo::Contents`], models through
//! [`embed::Embedder`].
//!
//! Read in the order in which data flows: [`data`] (the values), [`rules`] (path to treatment), [`clean`], [`code`] and
//! [`chunk`] (pure functions from bytes to chunks), [`embed`], `stage` (everything expensive, once per distinct
//! input), `graph` (the dataflow), [`run`] (the handle), and [`reference`](mod@reference) (the same answer from
//! scratch).
//!
//! **Invariant:** the output of an epoch is a function only of the files at that epoch, the rules and the model, not of earlier
//! epochs.

pub mod chunk;
pub mod clean;
pub mod code;
pub mod data;
pub mod embed;
mod graph;
pub mod memo;
pub mod reference;
pub mod rules;
pub mod run;
mod stage;
pub mod work;
