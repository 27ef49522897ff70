//! The collector of a tracker: it drops and collects when it is due or somebody asks, a step at a time between epochs.
//!
//! In: the writer, whenever nothing is under way. Out: a store without what nobody needs, and answers to those who asked.
//!
//! ```text
//!  Rests ──due, or asked──► Choosing ──► Dropping ──► Telling ──► Surveying ──► Removing ──► Rests: noted, told, answered
//!                           (thread)     one group    readers     (thread)      short steps
//! ```
//!
//! **Invariant:** it works on the publishing thread, so nothing is published during a step, and what was published between two is
//! known to the next. Threads only read. Versions are dropped while no plan is being made or fed, since a plan knows which
//! commits have snapshots. A collection that breaks off, by the tracker's end or by a failure, leaves what the next one finds.

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

/// How long after a failure it is not tried again, but where somebody asks.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(60);
/// How long it is waited until readers that live have read of a drop; most look at the log again with each question.
const PATIENCE_WITH_READERS: Duration = Duration::from_secs(10);
/// How often requests are looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Commits that lost their snapshots while the tracker ran, and the plans that are being fed: while there is one, no snapshot goes.
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
    /// Begins to plan, and returns the commits that lost their snapshots since a plan last began; waits while versions are being
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

/// What is told to whoever asked.
#[derive(Serialize, Deserialize)]
pub(super) enum Answer {
    Done(Box<Collection>),
    /// The tracker keeps other snapshots than whoever asked would.
    OtherSettings,
    Failed(String),
}

/// What a turn came to.
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
    /// Whether it would have been due without them.
    is_due: bool,
    report: Report,
    last: Option<i64>,
    not_before: Instant,
    looked: Option<Instant>,
}

/// What the threads work with.
struct Settings {
    layout: Layout,
    config: Config,
    rules: Arc<Rules>,
}

enum Stage {
    Rests,
    Choosing(Background<Result<RoaringBitmap, EngineError>>),
    Dropping(RoaringBitmap),
    /// The log has so many bytes; until then it is waited that all readers have read them.
    Telling(u64, Instant),
    Surveying(Background<Result<Option<Survey>, EngineError>>),
    Removing(Box<Removal>),
}

/// What is known of the collection that is under way.
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

    /// Returns whether the next step removes what the graph may look up, so that nothing may be fed meanwhile.
    pub(super) fn needs_silence(&self) -> bool {
        matches!(&self.stage, Stage::Removing(removal) if removal.is_in_database())
    }

    /// Takes a turn: nothing, or one short step; it ends early where `go_on` says no.
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

    /// Looks who asks, and at the time; returns whether a collection is wanted.
    fn look(&mut self) -> bool {
        let rests = matches!(self.stage, Stage::Rests);
        if rests {
            self.is_due = Instant::now() >= self.not_before
                && self.settings.config.collects_every().is_some_and(|every| {
                    // A clock that was set back must not put it off for ever.
                    let since = self.last.map(|last| now() - last);
                    since.is_none_or(|since| since < 0 || since.unsigned_abs() >= every.as_secs())
                });
        }
        if self.looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
            self.looked = Some(Instant::now());
            // A folder that cannot be listed is no reason not to publish; who asks takes the lock when the tracker ends.
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
                // Who went away or took it back waits for nothing; who came since gets a collection of its own.
                for known in &mut self.asked {
                    let now = asked.iter().find(|now| now.name == known.name);
                    known.settings = now.and_then(|now| now.settings.clone());
                }
            }
        }
        self.is_due || self.asked.iter().any(|asked| asked.settings.is_some())
    }

    /// Begins to choose what is dropped.
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

    /// Returns whether all readers have read so much of the log, or it was waited long enough: what those hold who have not read
    /// of a drop stays.
    fn is_told(&self, bytes: u64, until: Instant) -> Result<bool, EngineError> {
        let is_over = self.report.dropped == 0 || Instant::now() >= until;
        Ok(is_over || leases(&self.settings.layout)?.iter().all(|read| *read >= bytes))
    }

    /// Begins to look for what nothing needs, once the drops are durable: a reader that is not seen now will read of them.
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

    /// Notes, tells and answers what the collection came to.
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

    /// Ends a collection, however it went.
    fn end(&mut self, outcome: &Answer) {
        for asked in std::mem::take(&mut self.asked) {
            tell(&self.settings.layout, &asked, outcome);
        }
        self.is_due = false;
        // A thread that works is not wanted any more, and waited for.
        self.stage = Stage::Rests;
    }
}

fn ended<T>(thread: Background<Result<T, EngineError>>) -> Result<T, EngineError> {
    thread.end().unwrap_or(Err(EngineError::CollectorPanicked))
}

/// Answers a request; whoever does not get it takes the lock when the tracker ends.
fn tell(layout: &Layout, asked: &Asked, outcome: &Answer) {
    let told = serde_json::to_vec(outcome).map(|text| answer(layout, asked, &text));
    match told {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!("cannot answer who asked for a collection: {error}"),
        Err(error) => tracing::warn!("cannot answer who asked for a collection: {error}"),
    }
}
