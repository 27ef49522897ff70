//! Observations of directories at their last look: their file systems, and the losses that are held back.
//!
//! In: a tracker's looks. Out: the same, for the next tracker.
//!
//! **Invariant:** losing it costs a second look and nothing else, because the version log has the content of directories. It is
//! replaced as a whole, and only if something in it changed.

use super::{Layout, StoreError, note};
use crate::watch::directory::Looks;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The looks of every directory, by the number of its view.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LookBook(BTreeMap<u32, Looks>);

impl LookBook {
    /// Returns the observations of the last tracker, if they can be read.
    #[must_use]
    pub fn read(layout: &Layout) -> Self {
        note::read(&layout.looks()).unwrap_or_default()
    }

    /// Returns the observations of a view.
    #[must_use]
    pub fn of(&self, view: u32) -> Looks {
        self.0.get(&view).cloned().unwrap_or_default()
    }

    /// Sets the observations of a look, and writes them if they changed.
    ///
    /// # Errors
    /// If the store's folder cannot be written.
    pub fn put(&mut self, layout: &Layout, view: u32, looks: &Looks) -> Result<(), StoreError> {
        if self.0.get(&view) == Some(looks) {
            return Ok(());
        }
        self.0.insert(view, looks.clone());
        note::replace(&layout.looks(), self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::directory::{Doubt, Mount};

    #[test]
    fn what_was_seen_is_there_at_the_next_start_and_a_damaged_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        let looks = Looks {
            mounts: vec![Mount { path: b"disk\xff".to_vec(), device: 7 }],
            doubt: Some(Doubt { since: 5, what: "all 30 files are gone at once".to_owned() }),
        };
        LookBook::read(&layout).put(&layout, 3, &looks).unwrap();
        assert_eq!((LookBook::read(&layout).of(3), LookBook::read(&layout).of(4)), (looks, Looks::default()));
        std::fs::write(layout.looks(), b"{").unwrap();
        assert_eq!(LookBook::read(&layout), LookBook::default());
    }
}
