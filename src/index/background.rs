//! Background work: the result of a maintenance step, and low-priority threads.
//!
//! In: work. Out: its result, once its thread has ended.
//!
//! **Invariant:** a thread reads only immutable data and writes only private files. The owner adopts the result or discards it.
//! Dropping the handle tells the thread to stop, and waits for it. If the processors are too busy for the thread to notice, it is
//! abandoned: it writes under a name that no other code uses, and ends when it notices.
//!
//! The priority is best effort; if the system refuses it, threads share equally.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
};

/// Nice value of a thread whose end is awaited (nice(2)): beside a normal thread it gets a tenth of a processor.
const NICENESS: i32 = 10;
/// How long an unwanted thread is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Disk space that is reserved for commits: background work never fills the disk.
const RESERVED_BYTES: u64 = 256 << 20;

/// Whether an abandoned thread may still be running.
static IS_ANY_LEFT: AtomicBool = AtomicBool::new(false);

/// Returns whether an abandoned thread may still be running: then the process should exit immediately.
pub(crate) fn is_any_left() -> bool {
    IS_ANY_LEFT.load(Ordering::Relaxed)
}

/// The priority of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Urgency {
    /// A user waits for its end, so it makes progress beside any other load, slowly.
    Awaited,
    /// Idle priority (`SCHED_IDLE` of sched(7)): no one waits for it. It yields at once, so a search or a publish does not notice
    /// it; a merely nice thread would delay them for its time slice of a few milliseconds.
    CanWait,
}

/// The work left after a maintenance step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tended {
    /// Nothing, for now.
    Idle,
    /// A thread works on it, and nothing can be done before it ends.
    Waits,
    /// The next step.
    Busy,
}

impl Tended {
    /// Combines the work left by two parts of maintenance.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Busy, _) | (_, Self::Busy) => Self::Busy,
            (Self::Waits, _) | (_, Self::Waits) => Self::Waits,
            _ => Self::Idle,
        }
    }
}

/// Work in a separate thread.
///
/// The thread is not joined: exiting needs a moment of processor time, which an idle-priority thread may have to wait for, and so
/// would the joining thread.
#[derive(Debug)]
pub(crate) struct Background<T> {
    made: Arc<Made<T>>,
    unwanted: Unwanted,
    urgency: Urgency,
}

/// The result of the work, once it is done: nothing if it panicked, or if it was already taken.
#[derive(Debug)]
struct Made<T> {
    state: Mutex<(bool, Option<T>)>,
    done: Condvar,
}

impl<T> Made<T> {
    fn lock(&self) -> MutexGuard<'_, (bool, Option<T>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, made: Option<T>) {
        *self.lock() = (true, made);
        self.done.notify_all();
    }
}

/// Whether the work is unwanted; the thread checks this regularly, and ends as soon as it can.
#[derive(Clone, Default, Debug)]
pub(crate) struct Unwanted(Arc<AtomicBool>);

impl Unwanted {
    /// Marks the work as unwanted.
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether to end.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<T: Send + 'static> Background<T> {
    /// Starts the work in a low-priority thread.
    pub(crate) fn begin(
        name: &str,
        urgency: Urgency,
        work: impl FnOnce(&Unwanted) -> T + Send + 'static,
    ) -> io::Result<Self> {
        let unwanted = Unwanted::default();
        let told = unwanted.clone();
        let made = Arc::new(Made { state: Mutex::new((false, None)), done: Condvar::new() });
        let place = made.clone();
        Builder::new().name(name.to_owned()).spawn(move || {
            let_others_go_first(urgency);
            place.put(catch_unwind(AssertUnwindSafe(|| work(&told))).ok());
        })?;
        Ok(Self { made, unwanted, urgency })
    }
}

impl<T> Background<T> {
    /// Returns whether the work is done.
    pub(crate) fn is_finished(&self) -> bool {
        self.made.lock().0
    }

    /// Returns whether an unrelated wait should not include this work.
    pub(crate) fn is_in_the_way(&self) -> bool {
        self.urgency == Urgency::CanWait && !self.is_finished()
    }

    /// Marks the work as unwanted, and does not wait for its end.
    pub(crate) fn leave(self) {
        self.unwanted.set();
        if !self.is_finished() {
            IS_ANY_LEFT.store(true, Ordering::Relaxed);
        }
        // The drop must not wait.
        self.made.put(None);
    }

    /// Waits until the work is done, and returns its result; nothing if it panicked.
    pub(crate) fn end(self) -> Option<T> {
        let state = self.made.done.wait_while(self.made.lock(), |(is_done, _)| !*is_done);
        state.unwrap_or_else(PoisonError::into_inner).1.take()
    }

    /// Marks the work as unwanted, waits a while for its end, and still returns its result if there is one.
    pub(crate) fn give_up(self) -> Option<T> {
        self.abandon()
    }

    /// Waits at most so long for the end of the work, and returns whether it is done.
    pub(crate) fn is_finished_within(&self, patience: Duration) -> bool {
        let waited = self.made.done.wait_timeout_while(self.made.lock(), patience, |(is_done, _)| !*is_done);
        waited.unwrap_or_else(PoisonError::into_inner).0.0
    }

    fn abandon(&self) -> Option<T> {
        self.unwanted.set();
        if !self.is_finished_within(PATIENCE) {
            IS_ANY_LEFT.store(true, Ordering::Relaxed);
        }
        self.made.lock().1.take()
    }
}

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        self.abandon();
    }
}

/// Returns whether so many bytes can be written to a folder without using the space that commits need; true if the system does
/// not tell.
pub(crate) fn has_room(folder: &Path, bytes: u64) -> bool {
    let Ok(disk) = rustix::fs::statvfs(folder) else { return true };
    let has_room = disk.f_bavail.saturating_mul(disk.f_frsize) >= bytes.saturating_add(RESERVED_BYTES);
    if !has_room {
        tracing::debug!("the disk of {} has no room for upkeep", folder.display());
    }
    has_room
}

/// Lowers the priority of the calling thread permanently: it cannot be raised again.
pub(crate) fn let_others_go_first(urgency: Urgency) {
    let _ = match urgency {
        Urgency::Awaited => rustix::process::nice(NICENESS).is_ok(),
        Urgency::CanWait => {
            let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
            set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy).is_ok()
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn work_that_is_dropped_is_told_and_waited_for() {
        let (ended, told) = channel();
        let work = Background::begin("waits", Urgency::Awaited, move |unwanted| {
            while !unwanted.is_set() {
                std::thread::yield_now();
            }
            ended.send(()).unwrap();
        });
        let work = work.unwrap();
        assert!(!work.is_finished());
        drop(work);
        assert_eq!(told.try_recv(), Ok(()), "it has ended");
        let work = Background::begin("gives up", Urgency::CanWait, |unwanted| {
            while !unwanted.is_set() {
                std::thread::yield_now();
            }
            7
        });
        let work = work.unwrap();
        assert!(work.is_in_the_way());
        assert_eq!(work.give_up(), Some(7));
        let (ended, told) = channel();
        let left = Background::begin("is left", Urgency::Awaited, move |unwanted| {
            while !unwanted.is_set() {
                std::thread::yield_now();
            }
            ended.send(()).unwrap();
        });
        let left = left.unwrap();
        assert!(!left.is_in_the_way(), "a user waits for it");
        left.leave();
        assert!(is_any_left());
        told.recv().unwrap();
        assert_eq!(
            Background::begin("panics", Urgency::CanWait, |_| panic!("as it should")).unwrap().end(),
            None::<()>
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_can_wait_gets_what_others_leave_and_nothing_else_does() {
        // proc_pid_stat(5): the nineteenth field is the niceness, the forty-first the policy, 5 for SCHED_IDLE.
        let own = |_: &Unwanted| {
            let told = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let behind_name: Vec<String> = told.rsplit_once(") ").unwrap().1.split(' ').map(str::to_owned).collect();
            (behind_name[16].clone(), behind_name[38].clone())
        };
        let run = |urgency| Background::begin("tells", urgency, own).unwrap().end().unwrap();
        let before = own(&Unwanted::default());
        assert_eq!(run(Urgency::CanWait).1, "5");
        assert_eq!(run(Urgency::Awaited).1, before.1);
        assert!(run(Urgency::Awaited).0.parse::<i32>().unwrap() > before.0.parse().unwrap());
        assert_eq!(own(&Unwanted::default()), before, "only the threads themselves");
    }

    #[test]
    fn work_that_can_wait_fills_no_disk() {
        let folder = std::env::temp_dir();
        let disk = rustix::fs::statvfs(&folder).unwrap();
        assert!(!has_room(&folder, disk.f_bavail * disk.f_frsize));
        assert!(!has_room(&folder, u64::MAX));
        assert!(has_room(&folder.join("is not there"), 0));
    }

    #[test]
    fn parts_of_upkeep_go_on_while_one_of_them_does() {
        use Tended::{Busy, Idle, Waits};
        assert_eq!((Idle.and(Idle), Idle.and(Waits), Waits.and(Busy), Busy.and(Idle)), (Idle, Waits, Busy, Busy));
    }
}
