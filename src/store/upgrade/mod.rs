//! From the formats before this one to this one: a list of steps.
//!
//! In: a store of an older format, and the writer's lock. Out: the same store in this build's format.
//!
//! ```text
//!  shut the gate ──► FORMAT says "3 to 4" ──► each step, in bounded transactions ──► old tables are cleared
//!                                         ──► the file is written anew ──► FORMAT says 4 ──► marks are removed
//! ```
//!
//! **Invariant:** a transaction of a step holds a part of its work and the mark that says how far it is, so a process that
//! is killed after any transaction leaves a store with which the next one goes on, and nothing is done twice. While
//! FORMAT says "3 to 4", readers and every other build refuse the store by name: a step may change rows in place.
//! FORMAT says 4 when all steps are done and nothing is left of the old tables.
//!
//! A new step is an entry in [`STEPS`]: its name, the last format that needs it, and a function that does one portion of
//! its work. A table that it leaves without a reader is named in [`OLD_TABLES`].

mod inputs;
mod rows;
mod texts;
mod vectors;

use super::layout::STORE_FORMAT;
use super::tables::{Rows, Tables};
use super::{Gate, Layout, StoreError};
use dataflows::data::ModelId;
use heed::RwTxn;
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::ops::Bound;

/// Rows that one transaction copies or removes at the most.
pub(super) const TRANSACTION_ROWS: usize = if cfg!(test) { 7 } else { 8192 };
/// The tables of older formats that no step of [`STEPS`] leaves rows in.
const OLD_TABLES: &[&str] = &[rows::TEXTS, inputs::BY_KEY, inputs::ROWS, inputs::NUMBERS];

/// Every step, in the order in which they are taken.
const STEPS: &[Step] = &[
    Step { name: "texts by number", until: 2, portion: rows::texts },
    Step { name: "entries that have the vectors of inputs", until: 3, portion: inputs::portion },
    Step { name: "a dictionary for texts", until: 3, portion: texts::dictionary },
    Step { name: "cleaned texts of chunks", until: 3, portion: texts::compositions },
    Step { name: "texts packed again", until: 3, portion: texts::rows },
    Step { name: "vector files by set", until: 3, portion: vectors::by_set },
];

/// One change of what a store holds.
struct Step {
    /// What its mark is called; no two steps of any format share a name.
    name: &'static str,
    /// Stores of this format and of those before it need the step.
    until: u32,
    portion: Portion,
}

/// Does a bounded part of a step inside a transaction. It is told where the last one stopped, nothing at first, and returns
/// where it stops itself, or nothing where the step is done.
type Portion = fn(&Old<'_>, &mut RwTxn<'_>, Option<&[u8]>) -> Result<Option<Vec<u8>>, StoreError>;

/// A store on its way to this build's format.
struct Old<'a> {
    layout: &'a Layout,
    tables: &'a Tables,
    /// The texts of chunks, once they were asked for.
    texts_of_chunks: OnceCell<RoaringBitmap>,
    /// The models whose vectors the store has, once they were asked for.
    models: OnceCell<Vec<ModelId>>,
}

impl Old<'_> {
    /// Returns the numbers of the texts that chunk lists and entries name.
    fn texts_of_chunks(&self) -> Result<&RoaringBitmap, StoreError> {
        if let Some(known) = self.texts_of_chunks.get() {
            return Ok(known);
        }
        let named = texts::texts_of_chunks(self.tables)?;
        Ok(self.texts_of_chunks.get_or_init(|| named))
    }
}

/// How far a step is: its mark.
#[derive(Serialize, Deserialize)]
enum Progress {
    StoppedAt(Vec<u8>),
    Done,
}

/// Does the steps that a store of an older format needs, and clears the old tables; returns the gate then, still shut, for
/// [`finish`]. The writer's lock is held.
pub(super) fn upgrade(layout: &Layout, tables: &Tables) -> Result<Option<Gate>, StoreError> {
    upgrade_by(STEPS, layout, tables, &mut || Ok(()))
}

/// As [`upgrade`], by these steps; `committed` is called after each transaction, and ends the work with an error of its own.
fn upgrade_by(
    steps: &[Step],
    layout: &Layout,
    tables: &Tables,
    committed: &mut dyn FnMut() -> Result<(), StoreError>,
) -> Result<Option<Gate>, StoreError> {
    let Some(found) = layout.older()? else {
        forget_marks(steps, tables)?;
        return Ok(None);
    };
    // A reader that is open would miss what it looks for.
    let Some(gate) = Gate::shut(layout)? else {
        return Err(StoreError::InUse { path: layout.root().to_owned() });
    };
    let path = layout.root().display();
    tracing::info!(
        "bringing the store at {path} from format {found} to {STORE_FORMAT}: some minutes, where it is large"
    );
    layout.begin_upgrade(found)?;
    committed()?;
    let old = Old { layout, tables, texts_of_chunks: OnceCell::new(), models: OnceCell::new() };
    for step in steps.iter().filter(|step| found <= step.until) {
        step.take(&old, committed)?;
    }
    for name in OLD_TABLES {
        if let Some(table) = tables.other(name)? {
            clear(tables, table, committed)?;
        }
    }
    Ok(Some(gate))
}

/// Says that a store is of this build's format: every step is done.
pub(super) fn finish(layout: &Layout, _gate: Gate) -> Result<(), StoreError> {
    layout.put_format()
}

impl Step {
    fn mark(&self) -> Vec<u8> {
        [b"upgrade ", self.name.as_bytes()].concat()
    }

    /// Does what is left of the step.
    fn take(&self, old: &Old<'_>, committed: &mut dyn FnMut() -> Result<(), StoreError>) -> Result<(), StoreError> {
        let marks = &old.tables.marks;
        loop {
            let mut transaction = old.tables.begin()?;
            let txn = &mut transaction.0;
            let stopped = match marks.get(txn, &self.mark())? {
                Some(Progress::Done) => return Ok(()),
                Some(Progress::StoppedAt(place)) => Some(place),
                None => {
                    tracing::info!("upgrading: {}", self.name);
                    None
                }
            };
            let stops = (self.portion)(old, txn, stopped.as_deref())?;
            marks.put(txn, &self.mark(), &stops.map_or(Progress::Done, Progress::StoppedAt))?;
            transaction.commit()?;
            committed()?;
        }
    }
}

/// Removes the rows of a table: of a large one in several transactions, for each holds what it changed in memory.
fn clear(
    tables: &Tables,
    table: Rows,
    committed: &mut dyn FnMut() -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    loop {
        let mut transaction = tables.begin()?;
        let txn = &mut transaction.0;
        let end = table.iter(txn).map_err(failed)?.nth(TRANSACTION_ROWS).transpose().map_err(failed)?;
        let Some(end) = end.map(|(key, _)| key.to_vec()) else {
            if table.is_empty(txn).map_err(failed)? {
                return Ok(());
            }
            table.clear(txn).map_err(failed)?;
            transaction.commit()?;
            return committed();
        };
        table.delete_range(txn, &(Bound::Unbounded, Bound::Excluded(end.as_slice()))).map_err(failed)?;
        transaction.commit()?;
        committed()?;
    }
}

/// Removes the marks of steps: the store is of this build's format.
fn forget_marks(steps: &[Step], tables: &Tables) -> Result<(), StoreError> {
    let left = {
        let txn = tables.read()?;
        let is_left = |step: &&Step| tables.marks.bytes(&txn, &step.mark()).map(|mark| mark.is_some());
        steps.iter().map(|step| Ok((is_left(&step)?, step.mark()))).collect::<Result<Vec<_>, StoreError>>()?
    };
    if left.iter().all(|(is_left, _)| !is_left) {
        return Ok(());
    }
    let mut transaction = tables.begin()?;
    for (_, mark) in left {
        tables.marks.remove(&mut transaction.0, &mark)?;
    }
    transaction.commit()
}

fn failed(source: heed::Error) -> StoreError {
    StoreError::Database { attempt: "bring it to this format", source }
}

#[cfg(test)]
mod tests;
