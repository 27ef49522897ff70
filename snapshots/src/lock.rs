//! The lock that keeps a second writer out.
//!
//! In: an open file. Out: an exclusive advisory lock on it, held until the file is closed, by the system too.
//!
//! **Invariant:** whoever really holds the lock keeps everybody else out; one that is about to be given back does not.
//!
//! The system ties the lock to the open file, of which a process that is just being started by another thread holds a copy
//! until it runs its own program. So a lock that was given back can look held for a moment.

use std::fs::{File, TryLockError};
use std::time::{Duration, Instant};

/// How long a held lock is tried again: far longer than starting a program takes, and short for whoever is refused.
const PATIENCE: Duration = Duration::from_millis(250);
const WAIT: Duration = Duration::from_millis(5);

/// Locks a file for one writer, unless another one holds it and goes on holding it.
///
/// # Errors
/// [`TryLockError::WouldBlock`] where it is held, after a quarter of a second; whatever else the system says at once.
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
