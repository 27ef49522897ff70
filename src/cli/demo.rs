//! `demo`: the whole main job on a repository's own history, without preparation.
//!
//! In: the repository in which the program runs. Out: its history tracked, a question answered now and as of an older commit, and
//! the receipt of the work. Run again, it continues.
//!
//! **Invariant:** all output is read back from the store, through the same calls as the other commands; the output names the
//! commands that show the same.

use super::output::{json_line, line, short};
use super::search::{answer_line, show};
use super::track::{Report, track};
use super::{Global, Outcome};
use crate::config::{Backfill, Config, SourceConfig};
use crate::search::{Answer, Request, Searcher, Selected};
use crate::serve::wire::{Summary, SummaryLine, WorkCounts};
use crate::watch::git::GitSource;
use anyhow::{Context, Result};
use clap::Args;
use snapshots::Version;
use std::path::{Path, PathBuf};

/// Number of commits before the head that get snapshots.
const COMMITS: usize = 50;
/// Number of newest snapshots that are shown.
const SHOWN_SNAPSHOTS: usize = 5;
/// Number of hits that are shown, and number of lines of each.
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

    let searcher = Searcher::open(&global.layout())?;
    let newest = searcher.revisions().select(searcher.reader(), Some(&name), None, None)?;
    let newest = newest.first().context("the demo's repository has no version")?;
    let line_of_commits = line_to(&searcher, newest)?;
    let now = Request { source: Some(name), k: SHOWN_HITS, ..Request::new(&args.query) };
    let answer = searcher.search(&now)?;
    let older = telling(&searcher, &now, &answer, &line_of_commits)?;

    if global.json {
        json_line(&SummaryLine { summary })?;
        json_line(&answer_line(&searcher, &now, answer))?;
        if let Some((_, then, answer)) = older {
            json_line(&answer_line(&searcher, &then, answer))?;
        }
        return Ok(Outcome::Done);
    }
    show_snapshots(&searcher, &line_of_commits, &summary)?;
    line("")?;
    line(format!("2. search it now:  tidemill search \"{}\" -k {SHOWN_HITS}", args.query))?;
    show(&answer, false, SHOWN_LINES)?;
    line("")?;
    match older {
        Some((older, _, answer)) => {
            let at = short(&older.commit);
            line(format!(
                "3. search it as of an older commit:  tidemill search \"{}\" -k {SHOWN_HITS} --at {at}",
                args.query
            ))?;
            show(&answer, false, SHOWN_LINES)?;
            let delta = searcher.reader().with_archive(|archive| archive.diff(older.id, newest.version))?;
            line(format!(
                "since then {} entries came and {} went:  tidemill snapshots diff {at} {}",
                delta.inserted.len(),
                delta.retracted.len(),
                short(&newest.commit)
            ))?;
        }
        None => line("3. there is one commit only, so there is no older one to ask")?,
    }
    line("")?;
    show_receipt(&searcher, &summary)?;
    Ok(Outcome::Done)
}

/// Refuses a folder without history, with the advice what to do.
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

/// Returns the name of the repository: the last part of its path.
fn name_of(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().map_or_else(|| "demo".into(), |name| name.to_string_lossy());
    name.strip_suffix(".git").filter(|name| !name.is_empty()).unwrap_or(&name).to_owned()
}

/// Returns the snapshots on the line of first parents that ends at `newest`, oldest first, at most those that the demo
/// asks for.
fn line_to(searcher: &Searcher, newest: &Selected) -> Result<Vec<Version>> {
    let mut versions = searcher.reader().with_archive(|archive| {
        let parent = |version: &Version| archive.version(archive.by_commit(version.source, version.parent?)?).cloned();
        std::iter::successors(archive.version(newest.version).cloned(), parent).take(COMMITS + 1).collect::<Vec<_>>()
    });
    versions.reverse();
    anyhow::ensure!(!versions.is_empty(), "the demo's repository has no version");
    Ok(versions)
}

/// Returns an older commit with its answer: of a few, the first whose answer differs from today's, else the one in the middle.
fn telling<'v>(
    searcher: &Searcher,
    now: &Request,
    answer: &Answer,
    versions: &'v [Version],
) -> Result<Option<(&'v Version, Request, Answer)>> {
    let places = |answer: &Answer| -> Vec<_> {
        answer.hits.iter().map(|hit| (hit.path.clone(), hit.lines, hit.text.clone())).collect()
    };
    let mut found: Option<(&Version, Request, Answer)> = None;
    for quarter in [2, 3, 1, 0] {
        let older = &versions[versions.len() * quarter / 4];
        if Some(&older.commit) == versions.last().map(|newest| &newest.commit) {
            continue;
        }
        let then = Request { at: Some(older.commit.to_string()), ..now.clone() };
        let earlier = searcher.search(&then)?;
        let differs = places(&earlier) != places(answer);
        if differs || found.is_none() {
            found = Some((older, then, earlier));
        }
        if differs {
            break;
        }
    }
    Ok(found)
}

fn show_snapshots(searcher: &Searcher, versions: &[Version], summary: &Summary) -> Result<()> {
    let hidden = versions.len().saturating_sub(SHOWN_SNAPSHOTS);
    if hidden > 0 {
        line(format!("   … {hidden} older snapshots:  tidemill snapshots"))?;
    }
    for version in &versions[hidden..] {
        let receipt = searcher.reader().catalogue().receipt(version.epoch)?.unwrap_or_default();
        line(format!(
            "   {}  {:>6} entries (+{} -{})  from {} new, {} changed, {} removed files; texts embedded: {}",
            short(&version.commit),
            version.statistics.live_entries,
            version.entries.inserted,
            version.entries.retracted,
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

fn show_receipt(searcher: &Searcher, summary: &Summary) -> Result<()> {
    let mut work = WorkCounts::default();
    searcher.reader().catalogue().receipts()?.iter().for_each(|receipt| work.add(receipt));
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
