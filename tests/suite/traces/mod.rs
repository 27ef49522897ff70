//! Traces: a replay gives what was recorded, and *a replay is a proof*.
//!
//! [`file`] tests the file alone, [`replayed`] the engine, [`live`] live recording, [`redacted`] redaction.

mod file;
mod live;
mod redacted;
mod replayed;

use crate::support::Repository;
use dataflows::embed::Embedder;
use dataflows::rules::Rules;
use snapshots::CommitId;
use std::path::Path;
use std::sync::Arc;
use tidemill::embedders::StaticModel;
use tidemill::trace::record::{Recording, line, record};
use tidemill::trace::redact::Redactor;
use tidemill::trace::{About, Trace, Written};
use tidemill::watch::git::{Commit, GitSource};

/// Records the whole line of first parents that ends at a commit.
fn record_all(repository: &Repository, out: &Path, last: CommitId, redactor: Option<Redactor>) -> Written {
    let source = GitSource::open(repository.path()).unwrap();
    let commits: Vec<Commit> = source.first_parents(last, |_| false, None).unwrap();
    let first = commits[0].id.to_string();
    assert_eq!(line(&source, &first, &last.to_string()).unwrap(), commits, "a range is the line between its ends");
    let rules = Arc::new(Rules::built_in());
    let about = About {
        source: "engine".to_owned(),
        range: format!("{} commits", commits.len()),
        fingerprint: rules.fingerprint().to_bytes(),
        model: StaticModel::new().fingerprint().to_bytes(),
        rules: String::new(),
        redacted: redactor.is_some(),
        corpus: [0; 32],
    };
    let view = "main".to_owned();
    let (progress, stop) = (&mut |_| {}, &|| false);
    record(out, Recording { source, commits, view, about, rules, digests: None, redactor, progress, stop })
        .unwrap()
        .unwrap()
}

fn open(path: &Path) -> Arc<Trace> {
    Arc::new(Trace::open(path).unwrap())
}
