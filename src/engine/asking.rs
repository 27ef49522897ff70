//! Asking a tracker to collect the store that it has open, and waiting for it.
//!
//! In: the settings of whoever asks. Out: what the tracker's collection came to, or the open store where the tracker ended.
//!
//! **Invariant:** whoever asks ends up with one of the two however the tracker goes: the writer's lock is tried for as long as no
//! answer is there.

use super::EngineError;
use super::collect::Collection;
use super::collector::Answer;
use super::retention::name_of_settings;
use super::store::OpenStore;
use crate::config::Config;
use crate::embedders;
use crate::store::{CollectionRequest, Layout, StoreError};
use std::time::{Duration, Instant};

/// How often the answer is looked for, and the lock tried.
const LOOK: Duration = Duration::from_millis(50);
/// After so long it is said what is waited for.
const QUIET: Duration = Duration::from_secs(2);
/// How long the tracker gets to say how far it came, once the request is taken back.
const LAST_WORD: Duration = Duration::from_secs(5);

/// What came of asking.
pub(super) enum Asking {
    /// A tracker collected.
    Answered(Collection),
    /// Nobody else writes to the store.
    Opened(Box<OpenStore>),
}

/// Opens a store, or asks the tracker that has it open to collect; takes that back where `go_on` says no.
pub(super) fn open_or_ask(
    layout: &Layout,
    config: &Config,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Asking, EngineError> {
    let mut asked: Option<(CollectionRequest, Instant)> = None;
    let (mut taken_back, mut is_told): (Option<Instant>, _) = (None, false);
    loop {
        let holder = match OpenStore::open(layout, &*embedders::configured()) {
            Ok(open) => return Ok(Asking::Opened(Box::new(open))),
            Err(EngineError::Store(StoreError::Locked { holder, .. })) => holder,
            Err(error) => return Err(error),
        };
        let (request, since) = match &mut asked {
            Some(asked) => asked,
            none => none.insert((CollectionRequest::make(layout, &name_of_settings(config))?, Instant::now())),
        };
        if let Some(bytes) = request.answer() {
            return match serde_json::from_slice(&bytes) {
                Ok(Answer::Done(collection)) => Ok(Asking::Answered(*collection)),
                Ok(Answer::OtherSettings) => Err(EngineError::OtherSettings { holder }),
                Ok(Answer::Failed(reason)) => Err(EngineError::NotCollected { holder, reason }),
                Err(_) => Err(EngineError::NotCollected { holder, reason: "its answer cannot be read".to_owned() }),
            };
        }
        match taken_back {
            None if !go_on() => {
                request.take_back()?;
                taken_back = Some(Instant::now());
            }
            // It has something else in hand; it sees that nobody waits, and collects nothing for it.
            Some(then) if then.elapsed() >= LAST_WORD => return Ok(Asking::Answered(Collection::default())),
            _ => {}
        }
        if !is_told && since.elapsed() >= QUIET {
            is_told = true;
            tracing::warn!("{holder} has the store open and was asked to collect; waiting until it has done so");
        }
        std::thread::sleep(LOOK);
    }
}
