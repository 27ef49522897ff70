//! File events as a hint to look: one kernel watcher, its health, and a coalescing wake-up.
//!
//! In: folders to watch. Out: each event once, passed to a closure, and a wake-up for the waiting task.
//!
//! **Invariant:** a lost event costs time only, because the waiting task also polls. Every failure to watch is kept as a sentence
//! for `status`, and is cleared once watching works again.
//!
//! Reading a file causes events (`open`), which would wake the reader for ever. So mere access events are dropped here, and no
//! others. A watcher thread that dies drops the closure, and with it its share of the wake-up. That shows its death, and
//! [`Events::revive`] starts it again.

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
    /// The reason why events are missing and only polling notices changes, if that is so.
    pub warning: Option<String>,
    /// When the last event came.
    pub last_event: Option<SystemTime>,
    /// How often the watcher's thread died and was started again.
    pub restarts: u32,
    /// The last logged warning that still holds. It is not logged again while it stays the same.
    logged: Option<String>,
}

/// Called for every event that is more than access; an error means "anything may have happened".
type Handler = dyn Fn(Result<&Event, &notify::Error>) + Send + Sync;

/// A kernel watcher with its health.
pub(super) struct Events {
    watcher: Option<RecommendedWatcher>,
    shared: Arc<Shared>,
    /// The watcher's closure holds the second reference; a count of one means that the watcher's thread is gone.
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

    /// Watches a folder with all that it contains now or later.
    pub(super) fn watch_all(&mut self, folder: &Path) -> bool {
        self.add(folder, RecursiveMode::Recursive)
    }

    /// Starts the watcher again if its thread died. Returns whether it did, so that the caller adds all folders again.
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

    /// Clears the warning before all folders are added again; logs its end if it has not come back since the last call.
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

    /// Waits for the next event; events between two waits count as one.
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
        // The watcher assumes that a thread can start, and panics if it cannot.
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

    /// Keeps the first warning, because later ones usually follow from it.
    fn warn(&self, error: &notify::Error, folder: &Path) {
        // The next look handles a missing folder.
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

/// Tells whether an event only reports an access.
fn is_access(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}
