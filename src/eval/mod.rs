//! Evaluation: judged questions, asked of any version in any configuration, and what came of them as figures.
//!
//! In: questions with judgments, and a store. Out: measures with intervals, comparisons of configurations, and for each question
//! that was not answered the stage at which the right answer was lost.
//!
//! ```text
//!  draw: a repository ─► questions          question: JSONL ─┐
//!                                           configuration ───┴─► ask ─► hits ─► measure ─► report ─► page
//!  judging: pooled hits, graded by a person ─► judgments                  └───► stage
//! ```
//!
//! **Invariant:** figures follow from questions, version, configuration and seed alone. A ranked list becomes figures in one place
//! (`measure`), which agrees with a reference implementation to 1e-9.

mod ask;
mod chance;
mod configuration;
pub mod draw;
mod judging;
mod measure;
mod page;
mod question;
mod report;
mod stage;

pub use ask::{Answered, AskError, Asking, DEPTH, ShownHit, ask};
pub use chance::{Interval, Paired};
pub use configuration::Configuration;
pub use judging::{Agreement, Grade, JudgedFile, Pooled, agreement, pool, read_grades};
pub use measure::{METRICS, Measures, Metric, measure};
pub use page::{Sheet, page};
pub use question::{Judgment, Question, QuestionError, Target, add_grades, read_questions};
pub use report::{Comparison, ConfigurationReport, Group, report};
pub use stage::{Fate, Stage, fates};
