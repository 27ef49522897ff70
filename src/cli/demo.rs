//! `demo`: the whole main job on this repository's own history, nothing to prepare.
//!
//! In: the repository that the program is run in. Out: its history tracked, a question answered now and as of an older
//! commit, and the receipt of the work. Run again, it continues where it was.
//!
//! **Invariant:** everything it prints is read back from the store, through the same calls as the other commands; the
//! commands that show the same stand beside it.

use super::output::{json_line, line, short};
use super::search::show;
use super::track::{Report, track};
use super::{Global, Outcome};
use crate::api::wire::{SearchAnswer, Summary, SummaryLine};
use crate::api::{Place, Service, Snapshot};
use crate::config::{Backfill, Config, SourceConfig};
use crate::search::Request;
use crate::watch::git::GitSource;
use anyhow::{Context, Result};
use clap::Args;
use std::path::{Path, PathBuf};

/// How many commits before the head get snapshots.
const COMMITS: usize = 50;
/// How many of the newest snapshots are shown.
const SHOWN_SNAPSHOTS: usize = 5;
/// How many hits are shown, and of each so many lines.
const SHOWN_HITS: usize = 3;
const SHOWN_LINES: usize = 4;

#[derive(Args, Debug)]
pub(super) struct DemoArgs {
    /// Another repository to show it on.
    #[arg(default_value = ".", value_name = "PATH")]
    repository: PathBuf,
    /// Another question to ask.
    #[arg(long, default_value = "which entries are alive in a version", value_name = "QUESTION")]
    query: String,
}

/// Runs `demo`.
pub(super) fn run(global: &Global, args: &DemoArgs) -> Result<Outcome> {
    check_history(&args.repository)?;
    let name = name_of(&args.repository);
    if !global.json {
        line(format!("1. track {name}: its head and up to {COMMITS} commits before it, a snapshot each"))?;
    }
    let source = SourceConfig {
        path: args.repository.to_string_lossy().into_owned(),
        name: Some(name.clone()),
        backfill: Some(Backfill::Commits(COMMITS)),
        ..SourceConfig::default()
    };
    let config = Config { sources: vec![source], is_complete: false, ..global.config()? };
    let report = Report::of_progress(global);
    let summary = track(global.layout(), config, report.clone(), true)?;
    report.finish();

    let service = global.service()?;
    let place = Place { source: Some(name.clone()), view: None };
    let snapshots = service.line(&place, COMMITS + 1)?;
    let newest = snapshots.last().context("the demo's repository has no version")?.0.commit.clone();
    let now = Request { source: Some(name), k: SHOWN_HITS, ..Request::new(&args.query) };
    let answer = service.search(&now)?;
    let older = telling(&service, &now, &answer, &snapshots)?;

    if global.json {
        json_line(&SummaryLine { summary })?;
        json_line(&answer)?;
        if let Some((_, answer)) = older {
            json_line(&answer)?;
        }
        return Ok(Outcome::Done);
    }
    show_snapshots(&snapshots, &summary)?;
    line("")?;
    line(format!("2. search it now:  tidemill search \"{}\" -k {SHOWN_HITS}", args.query))?;
    show(&answer, false, SHOWN_LINES)?;
    line("")?;
    match older {
        Some((older, answer)) => {
            let at = short(&older);
            line(format!(
                "3. search it as of an older commit:  tidemill search \"{}\" -k {SHOWN_HITS} --at {at}",
                args.query
            ))?;
            show(&answer, false, SHOWN_LINES)?;
            let changes = service.diff(&place, [&older, &newest])?;
            let came = changes.iter().filter(|change| change.op == "+").count();
            line(format!(
                "since then {came} entries came and {} went:  tidemill snapshots diff {at} {}",
                changes.len() - came,
                short(&newest)
            ))?;
        }
        None => line("3. there is one commit only, so there is no older one to ask")?,
    }
    line("")?;
    show_receipt(&service, &summary)?;
    Ok(Outcome::Done)
}

/// Refuses a folder without history, with what to do about it.
fn check_history(path: &Path) -> Result<()> {
    let git = GitSource::open(path)
        .context("the demo tracks a git repository with its history; clone this project with git, or name a repository: `tidemill demo PATH`")?;
    let Some(head) = git.heads(&[])?.heads.first().map(|head| head.commit.id) else { return Ok(()) };
    let newest = git.first_parents(head, |_| false, Some(2))?;
    let is_cut = newest.len() == 1 && newest.iter().any(|commit| commit.first_parent.is_some());
    anyhow::ensure!(
        !is_cut,
        "{} is a shallow clone of one commit, and the demo shows a history; fetch it with `git fetch --unshallow`",
        path.display()
    );
    Ok(())
}

/// Returns what the repository is called: the last part of its path.
fn name_of(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().map_or_else(|| "demo".into(), |name| name.to_string_lossy());
    name.strip_suffix(".git").filter(|name| !name.is_empty()).unwrap_or(&name).to_owned()
}

/// Returns an older commit with its answer: of a few, the first that answers
/// otherwise than now, else the one half-way back.
fn telling(
    service: &Service,
    now: &Request,
    answer: &SearchAnswer,
    snapshots: &[Snapshot],
) -> Result<Option<(String, SearchAnswer)>> {
    let places = |answer: &SearchAnswer| -> Vec<_> {
        answer.hits.iter().map(|hit| (hit.path.path.clone(), hit.lines, hit.text.clone())).collect()
    };
    let mut found: Option<(String, SearchAnswer)> = None;
    for quarter in [2, 3, 1, 0] {
        let older = &snapshots[snapshots.len() * quarter / 4].0.commit;
        if Some(older) == snapshots.last().map(|newest| &newest.0.commit) {
            continue;
        }
        let earlier = service.search(&Request { at: Some(older.clone()), ..now.clone() })?;
        let differs = places(&earlier) != places(answer);
        if differs || found.is_none() {
            found = Some((older.clone(), earlier));
        }
        if differs {
            break;
        }
    }
    Ok(found)
}

fn show_snapshots(snapshots: &[Snapshot], summary: &Summary) -> Result<()> {
    let hidden = snapshots.len().saturating_sub(SHOWN_SNAPSHOTS);
    if hidden > 0 {
        line(format!("   … {hidden} older snapshots:  tidemill snapshots"))?;
    }
    for (snapshot, receipt) in &snapshots[hidden..] {
        let receipt = receipt.clone().unwrap_or_default();
        line(format!(
            "   {}  {:>6} entries (+{} -{})  from {} new, {} changed, {} removed files; texts embedded: {}",
            short(&snapshot.commit),
            snapshot.live_entries,
            snapshot.inserted,
            snapshot.retracted,
            receipt.added,
            receipt.changed,
            receipt.removed,
            receipt.embedded,
        ))?;
    }
    if summary.epochs == 0 {
        return line(format!("   every commit has its snapshot already: no work, {:.1} s", summary.seconds));
    }
    line(format!("   {} snapshots made in {:.1} s", summary.epochs, summary.seconds))
}

fn show_receipt(service: &Service, summary: &Summary) -> Result<()> {
    let work = service.work()?;
    line("4. the receipt of the work:  tidemill status")?;
    line(format!(
        "   this run: {} texts embedded, {} entries inserted, {} retracted",
        summary.embedded, summary.inserted, summary.retracted
    ))?;
    line(format!(
        "   in all:   {} contents cleaned, {} texts cut, {} embedded, each of them once; {} answers from the memo",
        work.cleaned, work.chunked, work.embedded, work.cache_hits
    ))?;
    line("   run it again: it continues, and an unchanged head costs no work")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn git(folder: &Path, arguments: &[&str]) {
        let done = Command::new("git")
            .current_dir(folder)
            .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
            .args(arguments)
            .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
            .output()
            .unwrap();
        assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    #[test]
    fn a_folder_without_history_is_refused_with_the_next_step() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let refusal = |path: &Path| check_history(path).unwrap_err().to_string();
        assert!(refusal(folder.path()).contains("clone this project with git"));
        git(folder.path(), &["init", "-q", "-b", "main", "repo"]);
        for message in ["one", "two"] {
            git(&path("repo"), &["commit", "-q", "--allow-empty", "-m", message]);
        }
        check_history(&path("repo")).unwrap();
        let url = format!("file://{}", path("repo").display());
        git(folder.path(), &["clone", "-q", "--depth", "1", &url, "one"]);
        assert!(refusal(&path("one")).contains("git fetch --unshallow"));
        git(folder.path(), &["clone", "-q", "--depth", "2", &url, "two"]);
        check_history(&path("two")).unwrap();
    }

    #[test]
    fn a_repository_is_called_by_the_last_part_of_its_path() {
        let folder = tempfile::tempdir().unwrap();
        for (path, name) in [("engine.git", "engine"), ("engine", "engine"), (".git", ".git")] {
            std::fs::create_dir(folder.path().join(path)).unwrap();
            assert_eq!(name_of(&folder.path().join(path)), name);
        }
    }
}
