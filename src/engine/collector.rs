//! The collector of a tracker: it drops versions and collects garbage when that is due or requested, a step at a time between
//! epochs.
//!
//! In: the writer, whenever no epoch is in progress. Out: a store without garbage, and answers to the requests.
//!
//! ```text
//!  Rests ──due, or asked──► Choosing ──► Dropping ──► Telling ──► Surveying ──► Removing ──► Rests: noted, told, answered
//!                           (thread)     one group    readers     (thread)      short steps
//! ```
//!
//! **Invariant:** it works on the publishing thread, so nothing is published during a step, and each step knows what was
//! published before it. Threads only read. Versions are dropped while no plan is being made or fed, because a plan knows which
//! commits have snapshots. The next collection continues one that ended early, by the tracker's end or by a failure.

use super::EngineError;
use super::board::now;
use super::collect::{Collection, cleaned_of, measure, sweeps_cleaned, versions_to_drop};
use super::retention::name_of_settings;
use super::tracker::Stop;
use crate::config::Config;
use crate::index::Urgency;
use crate::index::apply::IndexWriter;
use crate::index::background::Background;
use crate::index::collect::{Progress, Removal, Survey, drop_beside, step, survey};
use crate::store::{Asked, Database, Layout, answer, leases, requests};
use dataflows::rules::Rules;
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use snapshots::{Archive, Bitmaps, CommitId, SourceId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The pause after a failure, unless there is a request.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(60);
/// How long living readers may take to read of a drop; most read the log again with each question.
const PATIENCE_WITH_READERS: Duration = Duration::from_secs(10);
/// Interval for checking requests.
const LOOK: Duration = Duration::from_millis(100);

/// Commits that lost their snapshots while the tracker ran, and the plans that are being fed: during a plan, no snapshot is
/// dropped.
#[derive(Clone, Default)]
pub(super) struct Planning(Arc<Mutex<Plans>>);

#[derive(Default)]
struct Plans {
    gone: Vec<(SourceId, CommitId)>,
    open: usize,
}

/// A plan that is being fed, until it is dropped.
pub(super) struct Planned(Planning);

impl Planning {
    /// Starts a plan, and returns the commits that lost their snapshots since the last plan; waits while versions are being
    /// dropped, which takes milliseconds.
    pub(super) fn begin(&self) -> (Planned, Vec<(SourceId, CommitId)>) {
        let mut plans = self.lock();
        plans.open += 1;
        (Planned(self.clone()), std::mem::take(&mut plans.gone))
    }

    fn lock(&self) -> MutexGuard<'_, Plans> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Planned {
    fn drop(&mut self) {
        self.0.lock().open -= 1;
    }
}

/// The answer to a requester.
#[derive(Serialize, Deserialize)]
pub(super) enum Answer {
    Done(Box<Collection>),
    /// The tracker's retention differs from the requester's.
    OtherSettings,
    Failed(String),
}

/// The result of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// There is nothing to do.
    Rests,
    /// A thread works.
    Waits,
    /// A step was taken.
    Busy,
}

/// The collector of one tracker.
pub(super) struct Collector {
    settings: Arc<Settings>,
    settings_name: String,
    database: Database,
    planning: Planning,
    stop: Stop,
    stage: Stage,
    /// The requests that this collection answers.
    asked: Vec<Asked>,
    /// Whether it would have been due without a request.
    is_due: bool,
    report: Report,
    last: Option<i64>,
    not_before: Instant,
    looked: Option<Instant>,
}

/// The input of the threads.
struct Settings {
    layout: Layout,
    config: Config,
    rules: Arc<Rules>,
}

enum Stage {
    Rests,
    Choosing(Background<Result<RoaringBitmap, EngineError>>),
    Dropping(RoaringBitmap),
    /// The log has so many bytes; the collector waits until all readers have read them.
    Telling(u64, Instant),
    Surveying(Background<Result<Option<Survey>, EngineError>>),
    Removing(Box<Removal>),
}

/// The data of the collection in progress.
struct Report {
    begun: Instant,
    before: (BTreeMap<&'static str, u64>, u64),
    dropped: u64,
    readers: u64,
}

impl Collector {
    pub(super) fn new(
        layout: Layout,
        config: Config,
        rules: Arc<Rules>,
        database: Database,
        planning: Planning,
        stop: Stop,
    ) -> Result<Self, EngineError> {
        let last = database.last_collection()?.map(|last| last.time);
        let settings_name = name_of_settings(&config);
        let settings = Arc::new(Settings { layout, config, rules });
        let report = Report { begun: Instant::now(), before: Default::default(), dropped: 0, readers: 0 };
        Ok(Self {
            settings,
            settings_name,
            database,
            planning,
            stop,
            stage: Stage::Rests,
            asked: Vec::new(),
            is_due: false,
            report,
            last,
            not_before: Instant::now(),
            looked: None,
        })
    }

    /// Returns whether the next step needs an exclusive section: it removes rows that the graph may look up, so nothing may be
    /// fed.
    pub(super) fn needs_silence(&self) -> bool {
        matches!(&self.stage, Stage::Removing(removal) if removal.is_in_database())
    }

    /// Takes a turn: nothing, or one short step; it ends early if `go_on` returns false.
    pub(super) fn turn(&mut self, writer: &mut IndexWriter, go_on: &mut dyn FnMut() -> bool) -> Turn {
        if self.stop.is_asked() {
            return Turn::Rests;
        }
        match self.advance(writer, go_on) {
            Ok(turn) => turn,
            Err(error) => {
                tracing::warn!("cannot collect, which is tried again later: {error}");
                self.not_before = Instant::now() + PAUSE_AFTER_FAILURE;
                let failed = Answer::Failed(crate::resources::chain(&error));
                self.end(&failed);
                Turn::Rests
            }
        }
    }

    fn advance(&mut self, writer: &mut IndexWriter, go_on: &mut dyn FnMut() -> bool) -> Result<Turn, EngineError> {
        let wanted = self.look();
        if !matches!(self.stage, Stage::Rests) && !wanted {
            self.report(writer)?;
            return Ok(Turn::Busy);
        }
        let (stage, turn) = match std::mem::replace(&mut self.stage, Stage::Rests) {
            Stage::Rests if wanted => {
                let before = measure(&self.settings.layout, &self.database)?;
                self.report = Report { begun: Instant::now(), before, dropped: 0, readers: 0 };
                (self.choose()?, Turn::Busy)
            }
            Stage::Rests => (Stage::Rests, Turn::Rests),
            Stage::Choosing(thread) if thread.is_finished() => (Stage::Dropping(ended(thread)?), Turn::Busy),
            Stage::Dropping(versions) => match self.drop(writer, &versions)? {
                Some(bytes) => (Stage::Telling(bytes, Instant::now() + PATIENCE_WITH_READERS), Turn::Busy),
                None => (Stage::Dropping(versions), Turn::Waits),
            },
            Stage::Telling(bytes, until) => match writer.in_graph() {
                Some(graph) if self.is_told(bytes, until)? => (self.survey(graph)?, Turn::Busy),
                _ => (Stage::Telling(bytes, until), Turn::Waits),
            },
            Stage::Surveying(thread) if thread.is_finished() => match ended(thread)? {
                Some(survey) => (Stage::Removing(Box::new(Removal::begin(survey))), Turn::Busy),
                None => (Stage::Rests, Turn::Rests),
            },
            Stage::Removing(mut removal) => {
                let progress = step(writer, &mut removal, &cleaned_of(&self.settings.rules), go_on)?;
                self.stage = Stage::Removing(removal);
                match progress {
                    Progress::GoesOn => return Ok(Turn::Busy),
                    Progress::Waits => return Ok(Turn::Waits),
                    Progress::Done => {}
                }
                self.report(writer)?;
                (Stage::Rests, Turn::Busy)
            }
            working => (working, Turn::Waits),
        };
        self.stage = stage;
        Ok(turn)
    }

    /// Checks requests and the time; returns whether a collection is wanted.
    fn look(&mut self) -> bool {
        let rests = matches!(self.stage, Stage::Rests);
        if rests {
            self.is_due = Instant::now() >= self.not_before
                && self.settings.config.collects_every().is_some_and(|every| {
                    // A clock that was set back must not delay it for ever.
                    let since = self.last.map(|last| now() - last);
                    since.is_none_or(|since| since < 0 || since.unsigned_abs() >= every.as_secs())
                });
        }
        if self.looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
            self.looked = Some(Instant::now());
            // An unreadable folder must not stop publishing; the requester takes the lock when the tracker ends.
            let asked = requests(&self.settings.layout).unwrap_or_default();
            if rests {
                self.asked.clear();
                for asked in asked {
                    match &asked.settings {
                        Some(name) if *name == self.settings_name => self.asked.push(asked),
                        Some(_) => tell(&self.settings.layout, &asked, &Answer::OtherSettings),
                        None => tell(&self.settings.layout, &asked, &Answer::Done(Box::default())),
                    }
                }
            } else {
                // A requester that is gone or withdrew waits for nothing; a later one gets its own collection.
                for known in &mut self.asked {
                    let now = asked.iter().find(|now| now.name == known.name);
                    known.settings = now.and_then(|now| now.settings.clone());
                }
            }
        }
        self.is_due || self.asked.iter().any(|asked| asked.settings.is_some())
    }

    /// Starts to choose the versions to drop.
    fn choose(&self) -> Result<Stage, EngineError> {
        let (settings, database) = (self.settings.clone(), self.database.clone());
        let thread = Background::begin("tidemill-choose", Urgency::Awaited, move |_| {
            let archive = Archive::open_reader(&settings.layout.versions())?;
            versions_to_drop(&archive, &database, &settings.config)
        });
        Ok(Stage::Choosing(thread.map_err(|source| EngineError::Thread { source })?))
    }

    /// Drops versions, unless a plan is being made or fed; returns the bytes of the log then.
    fn drop(&mut self, writer: &mut IndexWriter, versions: &RoaringBitmap) -> Result<Option<u64>, EngineError> {
        let planning = self.planning.clone();
        let Ok(mut plans) = planning.0.try_lock() else { return Ok(None) };
        if plans.open > 0 {
            return Ok(None);
        }
        let Some(dropped) = drop_beside(writer, versions.clone())? else { return Ok(None) };
        plans.gone.extend(dropped.commits);
        self.report.dropped = dropped.versions;
        self.report.readers = leases(&self.settings.layout)?.len() as u64;
        Ok(Some(writer.archive().log_bytes()))
    }

    /// Returns whether all readers have read so much of the log, or the wait was long enough: entries held by the remaining
    /// readers stay.
    fn is_told(&self, bytes: u64, until: Instant) -> Result<bool, EngineError> {
        let is_over = self.report.dropped == 0 || Instant::now() >= until;
        Ok(is_over || leases(&self.settings.layout)?.iter().all(|read| *read >= bytes))
    }

    /// Starts the survey, once the drops are durable: a reader that appears later will read of them.
    fn survey(&self, graph: Bitmaps) -> Result<Stage, EngineError> {
        let (settings, database) = (self.settings.clone(), self.database.clone());
        let thread = Background::begin("tidemill-survey", Urgency::Awaited, move |unwanted| {
            let Settings { layout, rules, .. } = &*settings;
            let archive = Archive::open_reader(&layout.versions())?;
            let cleaned = cleaned_of(rules);
            let cleaned_of = sweeps_cleaned(rules, archive.kept(), &cleaned);
            let mut go_on = || !unwanted.is_set();
            Ok(survey(layout, &database, &archive, &graph, cleaned_of, &mut go_on)?)
        });
        Ok(Stage::Surveying(thread.map_err(|source| EngineError::Thread { source })?))
    }

    /// Records, reports and answers the result of the collection.
    fn report(&mut self, writer: &IndexWriter) -> Result<(), EngineError> {
        let collected = match &self.stage {
            Stage::Removing(removal) => removal.collected,
            _ => Default::default(),
        };
        let Report { begun, before, dropped, readers } = &self.report;
        let after = measure(&self.settings.layout, &self.database)?;
        let kept = writer.archive().kept().count() as u64;
        let collection = Collection { dropped: *dropped, kept, collected, readers: *readers, ..Collection::default() }
            .measured(before, &after);
        if collected.is_complete {
            collection.note(&self.database)?;
            self.last = Some(now());
        }
        tracing::info!(
            "dropped {} snapshots and removed {} entries in {:.1} s",
            collection.dropped,
            collected.entries,
            begun.elapsed().as_secs_f64()
        );
        self.end(&Answer::Done(Box::new(collection)));
        Ok(())
    }

    /// Ends a collection, whatever its result.
    fn end(&mut self, outcome: &Answer) {
        for asked in std::mem::take(&mut self.asked) {
            tell(&self.settings.layout, &asked, outcome);
        }
        self.is_due = false;
        // A running thread is told to stop, and waited for.
        self.stage = Stage::Rests;
    }
}

fn ended<T>(thread: Background<Result<T, EngineError>>) -> Result<T, EngineError> {
    thread.end().unwrap_or(Err(EngineError::CollectorPanicked))
}

/// Answers a request; a requester that does not get the answer takes the lock when the tracker ends.
fn tell(layout: &Layout, asked: &Asked, outcome: &Answer) {
    let told = serde_json::to_vec(outcome).map(|text| answer(layout, asked, &text));
    match told {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!("cannot answer who asked for a collection: {error}"),
        Err(error) => tracing::warn!("cannot answer who asked for a collection: {error}"),
    }
}
