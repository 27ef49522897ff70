//! Threads that let others go first: whoever publishes or searches.
//!
//! In: the thread that runs. Out: a lower priority of it. **Invariant:** it is a wish; where the system refuses it, they share.

/// How long such a thread lets others go first (nice(2)): beside one that does not it gets a tenth of a processor.
const NICENESS: i32 = 10;

/// Lowers the priority of the thread that calls.
pub(crate) fn let_others_go_first() {
    let _ = rustix::process::nice(NICENESS);
}
