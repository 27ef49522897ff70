//! The graph: from files of views to changes of entries, by epoch.
//!
//! In: a collection of [`File`]s. Out: through the sink, per epoch, the [`CardedEntry`]s and [`Document`]s that came to life or
//! died in each view.
//!
//! ```text
//!  files (view, path, object) ──► routed by the rules ──┬──────────────────────────► skipped: no document here
//!                                                       │
//!  .editorconfig ──► encoding of each file below ───────┤
//!        documents = distinct (content, rule, encoding) ┤
//!                           ▼  clean   (asynchronous)   │
//!                  texts = distinct (cleaned text, rule)│
//!                           ▼  chunk   (asynchronous)   ▼
//!  manifests ──► module of each folder ──► placed: (view, path, chunk list, module)
//!                                                       ▼  consolidate: an edit that changes no text stops here
//!               asked: by what is embedded ◄── entries ──► consolidate: chunks that stayed cancel
//!                           ▼  embed   (asynchronous)   ▼
//!                           └────────────────────────► sink, when the frontier has passed the epoch
//! ```
//!
//! **Invariant:** only identities, paths and small metadata are arranged; texts and vectors are in the memo, and a card
//! travels with its entry as data, from where it is placed to the sink. Everything
//! that costs, or may waver, is in an [`asynchronous`] stage; what stands in a `map` here is a pure look-up or a pure
//! function, so a retraction equals the insertion it undoes.
//!
//! A view is part of the key and the time is totally ordered: a partial order over branches would rule out `distinct_total` and
//! show one branch's updates in another.

mod chunks;
mod documents;
mod encodings;
mod entries;
mod folders;
mod modules;
mod sink;
mod vectors;

pub(crate) use sink::Gathered;

use crate::code::Outliner;
use crate::data::{CardedEntry, Document, File, View};
use crate::embed::Embedder;
use crate::memo::{Contents, Memo};
use crate::rules::Rules;
use crate::stage::{Pool, Time};
use crate::work::Ledger;
use differential_dataflow::VecCollection;
use folders::Folders;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use timely::dataflow::ProbeHandle;

/// The services of the graph's stages.
#[derive(Clone)]
pub(crate) struct Parts {
    /// The rules of cleaning and cutting.
    pub(crate) rules: Arc<Rules>,
    /// The memo of results.
    pub(crate) memo: Arc<dyn Memo>,
    /// The source of contents.
    pub(crate) contents: Arc<dyn Contents>,
    /// The model that embeds.
    pub(crate) embedder: Arc<dyn Embedder>,
    /// The parser.
    pub(crate) outliner: Arc<dyn Outliner>,
    /// The record of the work.
    pub(crate) ledger: Arc<Ledger>,
    /// The threads of the expensive stages.
    pub(crate) pool: Pool,
}

/// A row that is inserted or retracted in a view.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum Row {
    /// An entry of the indexes, with its card.
    Entry(View, CardedEntry),
    /// A file, and what became of it.
    Document(View, Document),
}

/// Builds the graph over `files`; the returned handle of worker 0 gathers its output by epoch.
pub(crate) fn build<'s>(
    files: VecCollection<'s, Time, File>,
    parts: &Parts,
    probe: &ProbeHandle<Time>,
) -> Rc<RefCell<Gathered>> {
    let routed = documents::route(files.clone(), parts.rules.clone());
    let folders = Folders::of(files);
    let settings = documents::clean(encodings::settings(routed.documents.clone()), parts);
    let told = encodings::tell(routed.documents, settings.texts.clone(), &folders, parts);
    let cleaned = documents::clean(told, parts);
    let cut = chunks::cut(cleaned.texts.concat(settings.texts), parts);
    let modules = modules::of_folders(&folders, cleaned.manifests, parts.memo.clone());
    let documents = modules::attach(cut, modules).consolidate();
    let entries = entries::place_all(documents.clone(), parts.memo.clone()).consolidate();
    let vectors = vectors::embed(entries.clone(), parts);

    let documents = documents.concatenate([routed.skipped, settings.others, cleaned.others]);
    let rows = documents
        .map(|(view, document)| Row::Document(view, document))
        .concat(entries.map(|(view, entry)| Row::Entry(view, entry)));
    sink::gather(rows, vectors, probe)
}
