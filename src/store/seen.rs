//! A cache of recently read numbers: writing a list need not look up every chunk that an edit did not change.
//!
//! In: the texts and heads of lists as they are read, with their numbers. Out: the number of one of them, without the database.
//!
//! An edit of one chunk writes the list of its whole document again. The list that it replaces has just been read, because its
//! entries are retracted. Each saved look-up would read its own page. In a large database few of these pages are in the
//! processor's caches, so the cost of a small commit would grow with the store.
//!
//! **Invariant:** the cache answers as the database would. Only rows of read transactions, which are committed, are added. A
//! number means one value for ever ([`numbering`](super::numbering)). A sweep, which alone removes rows, empties the cache and
//! excludes rows that were read before it. Memory is bounded, and a process that writes nothing caches nothing.

use dataflows::data::{Hasher, TextHash};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Least number of cached texts, and of heads; at most twice as many, some 5 MB in all.
const KEPT: usize = if cfg!(test) { 8 } else { 32_768 };

/// The cache key of a head: a hash of its content.
pub(super) type HeadKey = [u64; 2];

/// Returns the cache key of an encoded head.
pub(super) fn head_key(encoded: &[u8]) -> HeadKey {
    Hasher::new("seen head").part(encoded).finish()
}

/// Numbers of texts and heads.
#[derive(Default)]
pub(super) struct Seen(Mutex<Option<Numbers>>);

#[derive(Default)]
struct Numbers {
    /// How often the cache was emptied.
    forgotten: u64,
    texts: Recent<TextHash>,
    heads: Recent<HeadKey>,
}

/// The newer and the older generation.
struct Recent<K> {
    newest: FxHashMap<K, u32>,
    older: FxHashMap<K, u32>,
}

impl<K> Default for Recent<K> {
    fn default() -> Self {
        Self { newest: FxHashMap::default(), older: FxHashMap::default() }
    }
}

impl<K: Eq + Hash> Recent<K> {
    fn put(&mut self, key: K, number: u32) {
        if self.newest.len() >= KEPT {
            self.older = mem::take(&mut self.newest);
        }
        self.newest.insert(key, number);
    }

    fn get(&self, key: &K) -> Option<u32> {
        self.newest.get(key).or_else(|| self.older.get(key)).copied()
    }
}

impl Seen {
    fn lock(&self) -> MutexGuard<'_, Option<Numbers>> {
        // A pair is inserted as a whole or not at all.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to cache reads, because this process writes.
    pub(super) fn begin(&self) {
        self.lock().get_or_insert_default();
    }

    /// Returns how often the cache was emptied, if it is in use: to be called before the read begins.
    pub(super) fn forgotten(&self) -> Option<u64> {
        self.lock().as_ref().map(|numbers| numbers.forgotten)
    }

    /// Adds texts and heads of a read transaction, unless the cache was emptied since before it began.
    pub(super) fn note(&self, forgotten: u64, rows: impl IntoIterator<Item = ((TextHash, u32), (HeadKey, u32))>) {
        if let Some(numbers) = self.lock().as_mut().filter(|numbers| numbers.forgotten == forgotten) {
            for ((text, text_number), (head, head_number)) in rows {
                numbers.texts.put(text, text_number);
                numbers.heads.put(head, head_number);
            }
        }
    }

    /// Returns the number of a text, if it is cached.
    pub(super) fn text(&self, hash: TextHash) -> Option<u32> {
        self.lock().as_ref()?.texts.get(&hash)
    }

    /// Returns the number of a head, if it is cached.
    pub(super) fn head(&self, key: HeadKey) -> Option<u32> {
        self.lock().as_ref()?.heads.get(&key)
    }

    /// Empties the cache: rows are about to be removed, or were.
    pub(super) fn forget(&self) {
        if let Some(numbers) = &mut *self.lock() {
            *numbers = Numbers { forgotten: numbers.forgotten + 1, ..Numbers::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_last_is_known_and_no_more_than_twice_as_much_is_kept() {
        let seen = Seen::default();
        let row = |n: u32| ((TextHash::of(&n.to_string()), n), (head_key(&n.to_le_bytes()), n + 1));
        seen.note(0, (0..9).map(row));
        assert_eq!(seen.text(row(3).0.0), None, "a process that writes nothing keeps nothing");
        seen.begin();
        seen.note(0, (0..100).map(row));
        for n in 0..100 {
            let ((text, text_number), (head, head_number)) = row(n);
            let found = (seen.text(text), seen.head(head));
            match n {
                92.. => assert_eq!(found, (Some(text_number), Some(head_number))),
                84.. => {}
                _ => assert_eq!(found, (None, None), "{n}"),
            }
        }
        let before = seen.forgotten().unwrap();
        seen.forget();
        assert_eq!(seen.text(row(99).0.0), None);
        // A read that began before may have read rows that are removed now.
        seen.note(before, [row(99)]);
        assert_eq!(seen.text(row(99).0.0), None);
        seen.note(before + 1, [row(99)]);
        assert_eq!(seen.text(row(99).0.0), Some(99));
    }
}
