//! Where the vector of each input is: an entry has it, nothing can have it, or it is parked here until an entry has it.
//!
//! In: what a model made of inputs, and the ordinals of the entries that got these vectors, inside a write transaction. Out:
//! where the vector of an input is.
//!
//! ```text
//!  hash of model and input ─► ordinal of an entry that has the vector, or NO_VECTOR       vector_inputs
//!                          ─► components, as long as no entry has it                      parked_vectors
//! ```
//!
//! **Invariant:** a vector is stored in one place. The vector files hold it from the moment that an entry with its input is
//! published; until then it is parked. An ordinal is written here after the vector files have its row durably.

use super::StoreError;
use super::identities::{Id, Identities};
use super::tables::Table;
use dataflows::data::{EmbedInput, Hasher, ModelId};
use heed::{RoTxn, RwTxn};

/// Stands for an input that has no vector. No entry has this ordinal.
pub(super) const NO_VECTOR: u32 = u32::MAX;
/// Bytes of a model's fingerprint, which keys of `coverage` and `owed` begin with.
pub(super) const MODEL_BYTES: usize = 16;

/// Returns what a model's answer to an input is stored under.
#[must_use]
pub fn vector_id(model: ModelId, input: EmbedInput) -> [u8; 16] {
    let hasher = Hasher::new("vector of input").part(&model.to_bytes()).part(&input.to_bytes());
    ModelId::from_words(hasher.finish()).to_bytes()
}

/// What is stored of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stored<'t> {
    /// An entry with this ordinal has its vector.
    At(u32),
    /// It has no vector.
    NoVector,
    /// The components of its vector, which no entry has yet.
    Parked(&'t [u8]),
}

/// The tables of vectors.
#[derive(Clone, Copy)]
pub(super) struct Vectors {
    /// hash of model and input → ordinal, or [`NO_VECTOR`].
    pub(super) inputs: Identities,
    /// hash of model and input → components.
    pub(super) parked: Table,
    /// model, block of 65,536 ordinals → bitmap of the entries that can have no vector ([`coverage`](super::coverage)).
    pub(super) coverage: Table,
    /// model, ordinal → why the entry has no vector yet.
    pub(super) owed: Table,
}

impl Vectors {
    /// Returns what is stored of an input.
    pub(super) fn get<'t>(&self, txn: &'t RoTxn<'_>, id: Id) -> Result<Option<Stored<'t>>, StoreError> {
        Ok(match self.inputs.get(txn, id)? {
            Some(NO_VECTOR) => Some(Stored::NoVector),
            Some(ordinal) => Some(Stored::At(ordinal)),
            None => self.parked.bytes(txn, &id)?.map(Stored::Parked),
        })
    }

    /// Writes where vectors are: the ordinal of an entry, or [`NO_VECTOR`]. What was parked or elsewhere is forgotten.
    pub(super) fn set(&self, txn: &mut RwTxn<'_>, rows: impl IntoIterator<Item = (Id, u32)>) -> Result<(), StoreError> {
        let has_parked = self.parked.len(txn)? > 0;
        let mut new = Vec::new();
        for (id, number) in rows {
            match self.inputs.get(txn, id)? {
                Some(known) if known == number => continue,
                Some(_) => self.inputs.remove(txn, id)?,
                None if has_parked => self.parked.remove(txn, &id)?,
                None => {}
            }
            new.push((id, number));
        }
        self.inputs.put_all(txn, new)
    }

    /// Parks vectors of which nothing is stored.
    pub(super) fn park(&self, txn: &mut RwTxn<'_>, mut rows: Vec<(Id, Vec<u8>)>) -> Result<(), StoreError> {
        rows.sort_unstable_by_key(|(id, _)| *id);
        rows.iter().try_for_each(|(id, components)| self.parked.put_bytes(txn, id, components))
    }

    /// Forgets an input.
    pub(super) fn remove(&self, txn: &mut RwTxn<'_>, id: Id) -> Result<(), StoreError> {
        self.inputs.remove(txn, id)?;
        self.parked.remove(txn, &id)
    }

    /// Takes note of a model, of which something is stored.
    pub(super) fn note(&self, txn: &mut RwTxn<'_>, model: ModelId) -> Result<(), StoreError> {
        let key = [&model.to_bytes()[..], &[0, 0]].concat();
        if self.coverage.bytes(txn, &key)?.is_some() {
            return Ok(());
        }
        self.coverage.put_bytes(txn, &key, &[])
    }

    /// Returns the models of which something is stored.
    pub(super) fn models(&self, txn: &RoTxn<'_>) -> Result<Vec<ModelId>, StoreError> {
        let mut models = Vec::new();
        self.coverage.each(txn, |key, _| {
            let model = key.first_chunk().map(|model| ModelId::from_bytes(*model));
            let model = model.ok_or_else(|| self.coverage.lost("that can be read"))?;
            if models.last() != Some(&model) {
                models.push(model);
            }
            Ok(true)
        })?;
        Ok(models)
    }

    /// Returns how many inputs are both with an entry and parked.
    pub(super) fn count_lost(&self, txn: &RoTxn<'_>) -> Result<u64, StoreError> {
        let mut twice = 0;
        self.parked.each(txn, |id, _| {
            let id = id.try_into().map_err(|_| self.parked.lost("that can be read"))?;
            twice += u64::from(self.inputs.get(txn, id)?.is_some());
            Ok(true)
        })?;
        Ok(twice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::packing::cases;
    use crate::store::tables::Tables;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, PartialEq, Debug)]
    enum Known {
        Number(u32),
        Parked(u8),
    }

    #[derive(Clone, Debug)]
    enum Step {
        Set(Vec<(u8, u32)>),
        Park(Vec<(u8, u8)>),
        Remove(Vec<u8>),
    }

    fn step() -> impl Strategy<Value = Step> {
        let number = prop_oneof![4 => 0u32..9, 1 => Just(NO_VECTOR)];
        prop_oneof![
            3 => prop::collection::btree_map(0u8..40, number, 0..20).prop_map(|rows| Step::Set(rows.into_iter().collect())),
            2 => prop::collection::btree_map(0u8..40, any::<u8>(), 0..20).prop_map(|rows| Step::Park(rows.into_iter().collect())),
            1 => prop::collection::vec(0u8..40, 0..10).prop_map(Step::Remove),
        ]
    }

    fn id(n: u8) -> Id {
        vector_id(ModelId::default(), EmbedInput::from_words([u64::from(n), 0]))
    }

    proptest! {
        #![proptest_config(cases(24))]
        #[test]
        fn an_input_is_in_one_place_as_in_a_map(steps in prop::collection::vec((step(), prop::bool::weighted(0.2)), 1..12)) {
            let folder = tempfile::tempdir().unwrap();
            let tables = Tables::open(folder.path(), true).unwrap();
            let vectors = tables.vectors;
            let mut stored: BTreeMap<u8, Known> = BTreeMap::new();
            for (step, is_lost) in steps {
                let mut txn = tables.write().unwrap();
                let before = stored.clone();
                match step {
                    Step::Set(rows) => {
                        vectors.set(&mut txn, rows.iter().map(|(n, number)| (id(*n), *number))).unwrap();
                        stored.extend(rows.into_iter().map(|(n, number)| (n, Known::Number(number))));
                    }
                    Step::Park(rows) => {
                        let new: Vec<_> = rows.into_iter().filter(|(n, _)| !stored.contains_key(n)).collect();
                        vectors.park(&mut txn, new.iter().map(|(n, byte)| (id(*n), vec![*byte; 4])).collect()).unwrap();
                        stored.extend(new.into_iter().map(|(n, byte)| (n, Known::Parked(byte))));
                    }
                    Step::Remove(rows) => {
                        for n in rows {
                            vectors.remove(&mut txn, id(n)).unwrap();
                            stored.remove(&n);
                        }
                    }
                }
                if is_lost {
                    txn.abort();
                    stored = before;
                } else {
                    txn.commit().unwrap();
                }
                let txn = tables.read().unwrap();
                for n in 0..40 {
                    let found = vectors.get(&txn, id(n)).unwrap();
                    let expected = stored.get(&n).map(|known| match known {
                        Known::Number(NO_VECTOR) => (true, NO_VECTOR, Vec::new()),
                        Known::Number(number) => (false, *number, Vec::new()),
                        Known::Parked(byte) => (false, 0, vec![*byte; 4]),
                    });
                    let found = found.map(|found| match found {
                        Stored::NoVector => (true, NO_VECTOR, Vec::new()),
                        Stored::At(number) => (false, number, Vec::new()),
                        Stored::Parked(bytes) => (false, 0, bytes.to_vec()),
                    });
                    prop_assert_eq!(found, expected);
                }
                prop_assert_eq!(vectors.count_lost(&txn).unwrap(), 0);
            }
        }
    }

    #[test]
    fn what_is_in_two_places_is_counted_and_models_are_known_once_each() {
        let folder = tempfile::tempdir().unwrap();
        let tables = Tables::open(folder.path(), true).unwrap();
        let vectors = tables.vectors;
        let mut txn = tables.write().unwrap();
        vectors.set(&mut txn, [(id(1), 7)]).unwrap();
        vectors.parked.put_bytes(&mut txn, &id(1), &[0; 4]).unwrap();
        assert_eq!(vectors.count_lost(&txn).unwrap(), 1);
        let models = [1, 2].map(|n| ModelId::from_words([n, n]));
        for model in [models[0], models[1], models[0]] {
            vectors.note(&mut txn, model).unwrap();
        }
        assert_eq!(vectors.models(&txn).unwrap(), models);
    }
}
