//! `dump`: every live entry, so that two stores can be compared with `diff`.
//!
//! In: a revision. Out: one JSON object a line, sorted by source, path and position; no ordinals, which depend on history.

use super::output::json_line;
use super::{Global, Outcome, Place};
use anyhow::Result;
use clap::Args;

#[derive(Args, Debug)]
pub(super) struct DumpArgs {
    /// As of a commit, tag, branch, BRANCH~N or time.
    #[arg(long, value_name = "REV")]
    at: Option<String>,
    #[command(flatten)]
    place: Place,
}

/// Runs `dump`.
pub(super) fn run(global: &Global, args: &DumpArgs) -> Result<Outcome> {
    let place = args.place.clone().into();
    global.service()?.dump(&place, args.at.as_deref(), |entry| json_line(&entry))?;
    Ok(Outcome::Done)
}
