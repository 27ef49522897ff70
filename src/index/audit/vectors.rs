//! The vectors: their files, which entries have one, and whether what is said of inputs leads to them.
//!
//! In: the rows of entries, each with its input. Out: findings.
//!
//! **Invariant:** without a finding every entry that a version reaches has its vector, can have none, or is owed one for a
//! reason that is stored; entries of one input have the same vector; and the memo leads from each input to an entry that has
//! its vector.

use super::rows::Rows;
use super::{AGAIN, Audit, COLLECT, Finding, REBUILD, chain};
use crate::index::vector::{self, Shape};
use crate::store::{Database, Layout, vector_id};
use dataflows::data::{EmbedInput, Hasher, ModelId};
use half::f16;
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;
use snapshots::Bitmaps;

impl Audit {
    /// Checks the vectors; returns the entries that the files hold.
    pub(super) fn vectors(
        &mut self,
        layout: &Layout,
        shape: Shape,
        reached: &Bitmaps,
        rows: &Rows,
        database: &Database,
    ) -> RoaringBitmap {
        // Read first: what is mended meanwhile is in the files then.
        let without = self.without_vector(database, shape.model);
        let owed = match database.coverage(shape.model).owed() {
            Ok(owed) => owed.into_keys().collect(),
            Err(error) => {
                self.findings.push(Finding::new("results", chain(&error), AGAIN));
                RoaringBitmap::new()
            }
        };
        let mut other = RoaringBitmap::new();
        let mut seen: FxHashMap<EmbedInput, [u64; 2]> = FxHashMap::default();
        let mut compared = 0;
        let check = vector::check(&layout.vectors(), shape, &mut |ordinal, components| {
            let Some(row) = rows.entry(ordinal) else { return };
            compared += 1;
            let sum = sum(components);
            if *seen.entry(row.input).or_insert(sum) != sum {
                other.insert(ordinal.get());
            }
        });
        self.vectors = compared;
        let check = match check {
            Ok(check) => check,
            Err(error) => {
                self.findings.push(Finding::new("vectors", chain(&error), REBUILD));
                return RoaringBitmap::new();
            }
        };
        self.files += check.files as u64;
        for (file, error) in check.damaged {
            self.findings.push(Finding { file: Some(file), ..Finding::new("vectors", chain(&error), REBUILD) });
        }
        let lacking = &reached.entries - &check.ordinals - &without;
        self.owed = (&lacking & &owed).len();
        let superfluous = &check.ordinals & &reached.entries & &without;
        // What was owed when the check began may have come since: its row is in a file before the database leads to it.
        let unplaced = self.unplaced(database, shape.model, rows, &check.ordinals) - &owed;
        let again = "delete the folder `vectors` and start `tidemill track` on this store: it embeds the texts again";
        for (problem, next, ordinals) in [
            ("entries lack the vectors that they had", REBUILD, &lacking - &owed),
            ("entries have a vector though the model gave them none", again, superfluous),
            ("vectors differ though the same was embedded", again, &other & &reached.entries),
            ("vectors are not found by what was embedded", COLLECT, unplaced),
        ] {
            self.findings.extend(rows.finding("vectors", problem, next, &ordinals));
        }
        check.ordinals
    }

    /// Returns the entries that can have no vector.
    pub(super) fn without_vector(&mut self, database: &Database, model: ModelId) -> RoaringBitmap {
        database.coverage(model).without().unwrap_or_else(|error| {
            self.findings.push(Finding::new("results", chain(&error), AGAIN));
            RoaringBitmap::new()
        })
    }

    /// Returns the entries with a vector whose input leads to no vector, or to that of another input.
    fn unplaced(&mut self, database: &Database, model: ModelId, rows: &Rows, held: &RoaringBitmap) -> RoaringBitmap {
        let placed = match database.placed_vectors() {
            Ok(placed) => placed,
            Err(error) => {
                self.findings.push(Finding::new("results", chain(&error), AGAIN));
                return RoaringBitmap::new();
            }
        };
        let leads = |input: EmbedInput| {
            let id = vector_id(model, input);
            let at = placed.binary_search_by_key(&id, |(id, _)| *id).ok()?;
            let ordinal = placed.get(at)?.1;
            // An entry without a row was left by a publish that did not finish, or is being collected.
            let is_own = rows.entry(ordinal).is_none_or(|row| row.input == input);
            // One that was published meanwhile is not among those that were looked at.
            let is_held = held.contains(ordinal.get()) || held.max().is_none_or(|last| last < ordinal.get());
            (is_own && is_held).then_some(())
        };
        let with_vector = rows.entries().filter(|(ordinal, _)| held.contains(*ordinal));
        with_vector.filter(|(_, row)| leads(row.input).is_none()).map(|(ordinal, _)| ordinal).collect()
    }
}

/// Returns a hash of a vector's bits.
fn sum(components: &[f16]) -> [u64; 2] {
    let bytes: Vec<u8> = components.iter().flat_map(|component| component.to_le_bytes()).collect();
    Hasher::new("vector").part(&bytes).finish()
}
