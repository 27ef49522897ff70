//! The lock that excludes a second writer.
//!
//! In: an open file. Out: an exclusive advisory lock on it, held until the file is closed, also by the system.
//!
//! **Invariant:** while a writer holds the lock, no other writer gets it. A lock that is about to be released does not refuse a
//! new writer.
//!
//! The system ties the lock to the open file. A child process that another thread is starting holds a copy of that file until its
//! exec. So a released lock can look held for a moment.

use std::fs::{File, TryLockError};
use std::time::{Duration, Instant};

/// How long a held lock is tried again: far longer than starting a program takes, and still short for a refused writer.
const PATIENCE: Duration = Duration::from_millis(250);
const WAIT: Duration = Duration::from_millis(5);

/// Locks a file for one writer, unless another writer holds it for longer.
///
/// # Errors
/// [`TryLockError::WouldBlock`] if it is held, after a quarter of a second; any other system error at once.
pub fn lock_for_writer(file: &File) -> Result<(), TryLockError> {
    let given_up = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < given_up => std::thread::sleep(WAIT),
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_given_back_in_a_moment_is_had_and_one_that_is_held_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let open =
            || File::options().create(true).truncate(false).write(true).open(folder.path().join("lock")).unwrap();
        let held = open();
        held.try_lock().unwrap();
        assert!(matches!(lock_for_writer(&open()), Err(TryLockError::WouldBlock)));
        let giving_back = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(40));
            drop(held);
        });
        lock_for_writer(&open()).unwrap();
        giving_back.join().unwrap();
    }
}
