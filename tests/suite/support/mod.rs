//! Support for the laws: real repositories, trackers in process, and pictures of a store's answers.
//!
//! In: edits. Out: all answers of a version, in a form that two stores can be compared by.
//! **Invariant:** nothing here depends on the machine, the clock or the git configuration: identities, dates and seeds
//! are fixed, and every test has folders of its own.

mod fault;
mod folder;
mod history;
mod outsider;
mod picture;
mod program;
mod repository;
mod store;
mod tool;

pub(crate) use fault::{Fault, stride};
pub(crate) use folder::Folder;
pub(crate) use history::{History, Step, steps};
pub(crate) use outsider::{Ended, Outside};
pub(crate) use picture::{Picture, entries};
pub(crate) use program::{Live, Program};
pub(crate) use repository::{Repository, Tree, content_id, files, tree};
pub(crate) use store::{Running, Store, git, work};
pub(crate) use tool::{Need, has};

use proptest::test_runner::{Config, RngSeed};

/// Returns the settings of a property test: so many cases, the same in every run; with `TIDEMILL_HEAVY=1` thirty times as many,
/// different ones in every run.
pub(crate) fn cases(cases: u32) -> Config {
    let heavy = std::env::var_os("TIDEMILL_HEAVY").is_some_and(|value| value == "1");
    let (cases, rng_seed) = if heavy { (cases * 30, RngSeed::Random) } else { (cases, RngSeed::Fixed(20)) };
    // A failure is reported early rather than in its smallest form.
    Config { cases, rng_seed, failure_persistence: None, max_shrink_time: 30_000, ..Config::default() }
}
