//! Missing sources: they are searched again, and taken up once they exist.
//!
//! In: slots without their source. Out: the same slots with it, registered, and new ones for their work trees.
//!
//! **Invariant:** a source that is found late is registered like any other; its stored state is restored before the first look.

use super::EngineError;
use super::open::{Opened, Opening, fingerprint, open_beside};
use super::slot::{Slot, Source};
use super::tracker::Tracker;
use super::trouble::Trouble;
use snapshots::Archive;

impl Tracker {
    /// Searches for missing sources, if that is due; returns whether one was found.
    pub(super) fn find_missing(&mut self) -> Result<bool, EngineError> {
        let mut is_found = false;
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            let Source::Missing(missing) = &mut slot.source else { continue };
            match &missing.opening {
                Some(opening) => {
                    let Ok(opened) = opening.try_recv() else { continue };
                    missing.opening = None;
                    is_found |= self.take_up(index, opened)?;
                }
                None if slot.trouble.as_ref().is_none_or(Trouble::is_due) => {
                    missing.opening = Some(open_beside(&missing.config, &self.layout));
                }
                None => {}
            }
        }
        Ok(is_found)
    }

    /// Takes up a source that was missing; returns whether it exists.
    pub(super) fn take_up(&mut self, index: usize, opened: Result<Opened, EngineError>) -> Result<bool, EngineError> {
        let registered = opened.and_then(|opened| {
            let archive = Archive::open_reader(&self.layout.versions())?;
            opened.register(&mut self.registry, &archive, &self.contents, fingerprint(&self.rules))
        });
        let slot = &mut self.slots[index];
        match registered {
            Ok(sources) => {
                let name = slot.name.clone();
                let mut sources = sources.into_iter();
                if let Some(source) = sources.next() {
                    slot.source = source;
                    slot.is_wanted = true;
                    slot.works(self.follows);
                }
                self.slots.extend(sources.map(|source| Slot::new(name.clone(), source)));
                Ok(true)
            }
            Err(error) if error.is_of_source() => {
                slot.fails_with(&error, self.follows);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns the error of the first failed source.
pub(super) fn first_failure(openings: &mut [Opening]) -> EngineError {
    let failure = |opening: &mut Opening| match &mut opening.opened {
        Ok(opened) => opened.doubt.take(),
        failed => std::mem::replace(failed, Err(EngineError::NoSource)).err(),
    };
    openings.iter_mut().find_map(failure).unwrap_or(EngineError::NoSource)
}
