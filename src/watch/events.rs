//! File events as a hint to look: one kernel watcher, its health, and a wake-up that coalesces.
//!
//! In: folders to watch. Out: each event once, handed to a closure, and a wake-up for whoever waits.
//!
//! **Invariant:** losing events loses time only. Whoever waits also polls; every failure to watch is kept as a sentence
//! that `status` can show, and is forgotten once watching works again.
//!
//! Reading a file makes events of its own (`open`), which would wake the reader for ever, so mere access is dropped
//! here and nothing else is. A watcher thread that died has dropped the closure, and with it its share of the wake-up:
//! that is how its death is seen, and [`Events::revive`] starts it again.

use notify::event::{AccessKind, AccessMode};
use notify::{Config, ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tokio::sync::Notify;

/// How well file events reach a source, for `status`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventState {
    /// Why events are not (all) to be had and polling alone notices changes, if that is so.
    pub warning: Option<String>,
    /// When the last event came.
    pub last_event: Option<SystemTime>,
    /// How often the watcher's thread died and was started again.
    pub restarts: u32,
    /// The warning that was logged last and still holds: while it stays the same it is not logged again.
    logged: Option<String>,
}

/// What is told of every event that is more than access; an error counts as "anything may have happened".
type Handler = dyn Fn(Result<&Event, &notify::Error>) + Send + Sync;

/// A kernel watcher with its health.
pub(super) struct Events {
    watcher: Option<RecommendedWatcher>,
    shared: Arc<Shared>,
    /// Held by the watcher's closure too; alone here, it says that the watcher's thread is gone.
    alive: Arc<()>,
}

struct Shared {
    wake: Notify,
    state: Mutex<EventState>,
    handler: Box<Handler>,
}

impl Events {
    /// Starts a watcher that watches nothing yet, and hands every event to `handler` on a thread of its own.
    ///
    /// It never fails: where the system grants no watcher, [`Self::state`] says so.
    #[must_use]
    pub(super) fn start(handler: impl Fn(Result<&Event, &notify::Error>) + Send + Sync + 'static) -> Self {
        let shared = Arc::new(Shared {
            wake: Notify::new(),
            state: Mutex::new(EventState::default()),
            handler: Box::new(handler),
        });
        let mut events = Self { watcher: None, shared, alive: Arc::new(()) };
        events.launch();
        events
    }

    /// Watches one folder, without those inside it; a folder that is watched already stays so.
    ///
    /// Returns whether it is watched now. A folder that is gone is no failure of the watcher.
    pub(super) fn watch(&mut self, folder: &Path) -> bool {
        self.add(folder, RecursiveMode::NonRecursive)
    }

    /// Watches a folder with all that is inside it, or comes to be.
    pub(super) fn watch_all(&mut self, folder: &Path) -> bool {
        self.add(folder, RecursiveMode::Recursive)
    }

    /// Starts the watcher again if its thread died; returns whether it did, and so whether folders must be added anew.
    pub(super) fn revive(&mut self) -> bool {
        if self.watcher.is_some() && Arc::strong_count(&self.alive) > 1 {
            return false;
        }
        self.launch();
        if self.watcher.is_some() {
            self.shared.lock().restarts += 1;
        }
        self.watcher.is_some()
    }

    /// Forgets the warning, before all folders are added again; says so if it has not come back since this was last called.
    pub(super) fn clear_warning(&self) {
        if self.watcher.is_some() {
            let mut state = self.shared.lock();
            if state.warning.take().is_none()
                && let Some(logged) = state.logged.take()
            {
                tracing::info!("file events arrive again, after: {logged}");
            }
        }
    }

    /// Waits for the next event; events that came while nobody waited count as one.
    pub(super) async fn event(&self) {
        self.shared.wake.notified().await;
    }

    /// Returns how well events arrive.
    #[must_use]
    pub(super) fn state(&self) -> EventState {
        self.shared.lock().clone()
    }

    fn launch(&mut self) {
        let shared = Arc::clone(&self.shared);
        let alive = Arc::clone(&self.alive);
        let closure = move |event: notify::Result<Event>| {
            let _ = &alive;
            shared.handle(event);
        };
        // Links lead out of the source, so none is followed.
        let config = Config::default().with_follow_symlinks(false);
        // The watcher counts on a thread of its own, and panics where it has none.
        let started = crate::resources::can_start(1).map_err(notify::Error::io);
        self.watcher = match started.and_then(|()| RecommendedWatcher::new(closure, config)) {
            Ok(watcher) => Some(watcher),
            Err(error) => {
                self.shared.warn(&error, Path::new("anything"));
                None
            }
        };
    }

    fn add(&mut self, folder: &Path, mode: RecursiveMode) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        match watcher.watch(folder, mode) {
            Ok(()) => true,
            Err(error) => {
                self.shared.warn(&error, folder);
                false
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, EventState> {
        // The state is replaced field by field, so a panic elsewhere leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, event: notify::Result<Event>) {
        match &event {
            Ok(event) if is_access(event.kind) => return,
            Ok(event) => {
                self.lock().last_event = Some(SystemTime::now());
                (self.handler)(Ok(event));
            }
            Err(error) => {
                self.warn(error, error.paths.first().map_or(Path::new("a folder"), PathBuf::as_path));
                (self.handler)(Err(error));
            }
        }
        self.wake.notify_one();
    }

    /// Keeps the first warning: the ones that follow are its echo.
    fn warn(&self, error: &notify::Error, folder: &Path) {
        // A folder that is gone is the concern of the look that follows.
        if is_gone(&error.kind) {
            return;
        }
        let cause = match &error.kind {
            ErrorKind::MaxFilesWatch => "the limit fs.inotify.max_user_watches is reached; raise it".to_owned(),
            ErrorKind::Io(error) if error.raw_os_error() == Some(libc::EMFILE) => {
                "the limit fs.inotify.max_user_instances (or of open files) is reached; raise it".to_owned()
            }
            ErrorKind::Io(error) => error.to_string(),
            ErrorKind::Generic(cause) => cause.clone(),
            ErrorKind::PathNotFound => "it is not there".to_owned(),
            ErrorKind::WatchNotFound => "it was not watched".to_owned(),
            ErrorKind::InvalidConfig(_) => "the system does not take the watcher's settings".to_owned(),
        };
        let warning = format!("cannot watch {}, polling instead: {cause}", folder.display());
        let mut state = self.lock();
        if state.warning.is_none() {
            if state.logged.as_ref() != Some(&warning) {
                tracing::warn!("{warning}");
                state.logged = Some(warning.clone());
            }
            state.warning = Some(warning);
        }
    }
}

/// Tells whether a folder cannot be watched because it is not there.
fn is_gone(kind: &ErrorKind) -> bool {
    match kind {
        ErrorKind::PathNotFound | ErrorKind::WatchNotFound => true,
        ErrorKind::Io(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
        _ => false,
    }
}

/// Tells whether an event only says that somebody looked.
fn is_access(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}
