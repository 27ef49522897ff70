//! `snapshots export` and `snapshots import`: one snapshot, from one machine to another.
//!
//! In: a revision and a folder. Out: one line that says what was written or published.

use super::Global;
use super::output::{bytes, json_line, line, short};
use crate::api::{self, Place};
use anyhow::Result;
use std::path::Path;

/// Runs `snapshots export`.
pub(super) fn export(global: &Global, rev: &str, folder: &Path, place: &Place) -> Result<()> {
    let copy = global.service()?.export(place, rev, folder)?;
    if global.json {
        return json_line(&copy);
    }
    let size = bytes(copy.bytes.unwrap_or_default());
    let commit = short(&copy.commit);
    line(format!("{commit} of {}: {} entries, {size} in {}", copy.source, copy.live_entries, folder.display()))
}

/// Runs `snapshots import`.
pub(super) fn import(global: &Global, folder: &Path, name: Option<&str>) -> Result<()> {
    let copy = api::import(&global.layout(), folder, name)?;
    if global.json {
        return json_line(&copy);
    }
    let what = if copy.known == Some(true) { "is there already" } else { "is published" };
    let commit = short(&copy.commit);
    line(format!("{commit} of {} {what}: {} entries, digest {}", copy.source, copy.live_entries, copy.digest))
}
