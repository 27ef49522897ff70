//! The parts of a store, open for the one writing process.
//!
//! In: a layout and a model. Out: every part, repaired.
//!
//! **Invariant:** nothing is opened for writing before the lock is held. Afterwards these parts hold all data of the last
//! published version; a store that cannot be repaired is refused by name.

use super::EngineError;
use crate::index::apply::{check_log, heal};
use crate::index::audit::audit_rows;
use crate::index::lexical::LexicalWriter;
use crate::index::vector::{Shape, VectorWriter};
use crate::resources::{can_open, can_start};
use crate::store::{Database, Layout, StoreError, StoreMemo, WriterLock};

use dataflows::embed::Embedder;
use snapshots::Archive;
use std::sync::Arc;

/// Threads of a tracker, its indexes and their maintenance at the same time, beside the pool: we counted eleven, without those of
/// sources.
const THREADS: usize = 12;
/// Files that a writer may have open beside its sources: those of a segment being written and of some being merged.
const FILES: usize = 40;

/// A store that is open for writing.
pub(super) struct OpenStore {
    pub(super) lock: WriterLock,

    pub(super) database: Database,
    pub(super) memo: StoreMemo,
    pub(super) archive: Archive,
    pub(super) lexical: LexicalWriter,
    pub(super) vectors: VectorWriter,
}

impl OpenStore {
    /// Opens the store of a layout, making it if need be.
    pub(super) fn open(layout: &Layout, embedder: &Arc<dyn Embedder>) -> Result<Self, EngineError> {
        // Before anything is begun: some of the libraries panic or wait for ever where they get no thread.
        can_start(THREADS).map_err(|source| EngineError::Thread { source })?;
        can_open(FILES).map_err(|source| EngineError::Files { source })?;
        layout.create()?;
        let lock = WriterLock::take(layout)?;
        let model = embedder.fingerprint();
        let database = Database::open_writer(layout)?;
        let memo = database.memo(model);
        check_log(layout, &database)?;
        let mut archive = Archive::create_or_open_writer(&layout.versions())?;
        if database.was_short() {
            // A killed transaction may leave it short as well; only missing rows distinguish the two.
            let is_damaged = !audit_rows(&database, model, &archive).is_ok_and(|findings| findings.is_empty());
            if is_damaged {
                return Err(StoreError::Cut { path: layout.memo() }.into());
            }
        }
        let dimensions = u32::try_from(embedder.dimensions()).unwrap_or(u32::MAX);
        let mut vectors = VectorWriter::open(&layout.vectors(), Shape { dimensions, model })?;
        let lexical = heal(layout, &database, &memo, &mut archive, &mut vectors, embedder)?;
        Ok(Self { lock, database, memo, archive, lexical, vectors })
    }
}
