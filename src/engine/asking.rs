//! Asks a tracker to collect garbage in its open store, and waits for it.
//!
//! In: the requester's settings. Out: the result of the tracker's collection, or the open store if the tracker ended.
//!
//! **Invariant:** the requester gets one of the two whatever happens to the tracker: it tries the writer's lock until there is an
//! answer.

use super::EngineError;
use super::collect::Collection;
use super::collector::Answer;
use super::retention::name_of_settings;
use super::store::OpenStore;
use crate::config::Config;
use crate::embedders;
use crate::store::{CollectionRequest, Layout, StoreError};
use std::time::{Duration, Instant};

/// Interval for checking the answer and trying the lock.
const LOOK: Duration = Duration::from_millis(50);
/// Time after which a message says what is awaited.
const QUIET: Duration = Duration::from_secs(2);
/// How long the tracker may still report its progress after the request is withdrawn.
const LAST_WORD: Duration = Duration::from_secs(5);

/// The result of a request.
pub(super) enum Asking {
    /// A tracker collected.
    Answered(Collection),
    /// No other process writes to the store.
    Opened(Box<OpenStore>),
}

/// Opens a store, or asks the tracker that has it open to collect; withdraws the request if `go_on` returns false.
pub(super) fn open_or_ask(
    layout: &Layout,
    config: &Config,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Asking, EngineError> {
    let mut asked: Option<(CollectionRequest, Instant)> = None;
    let (mut taken_back, mut is_told): (Option<Instant>, _) = (None, false);
    let model = embedders::configured();
    loop {
        let holder = match OpenStore::open(layout, &model) {
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
            // It is busy with something else. It will see that the request is gone, and will not collect for it.
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
