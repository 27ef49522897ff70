//! Snapshots as a tool: a store is checked, repaired, bisected, and carried to another machine.
//!
//! **Invariant:** after damage to any file of a store, either the next start restores its answers, or the store is refused by
//! name; it never gives another answer.

mod bisect;
mod copy;
mod damage;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tidemill::config::{Backfill, Config, SourceConfig};
use tidemill::embedders::StaticModel;
use tidemill::engine::{EngineError, Imported, Stop, Tracker, TrackerOptions, import};
use tidemill::index::audit::{Audit, audit};
use tidemill::index::copy::{Exported, export};
use tidemill::search::{BisectError, Mode, Request, Searcher, bisect};
use tidemill::store::Layout;

/// A repository, driven through the git program.
struct Repo(TempDir);

impl Repo {
    fn new() -> Self {
        let repo = Self(TempDir::new().unwrap());
        repo.git(&["init", "-q", "-b", "main"]);
        repo
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn git(&self, args: &[&str]) -> String {
        let date = "2026-01-02T03:04:05Z";
        let identity = ["NAME", "EMAIL"].map(|what| [format!("GIT_AUTHOR_{what}"), format!("GIT_COMMITTER_{what}")]);
        let output = Command::new("git")
            .args(args)
            .current_dir(self.path())
            .envs(identity.into_iter().flatten().map(|name| (name, "test@example.org")))
            .envs([("GIT_AUTHOR_DATE", date), ("GIT_COMMITTER_DATE", date), ("GIT_CONFIG_GLOBAL", "/dev/null")])
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Writes files, commits them and returns the commit.
    fn commit(&self, files: &[(&str, &str)]) -> String {
        for (path, text) in files {
            let path = self.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "a change"]);
        self.git(&["rev-parse", "HEAD"])
    }
}

/// A small history: code, headings, a manifest, an edit, a deletion and a revert.
fn history() -> (Repo, Vec<String>) {
    let repo = Repo::new();
    let code = "/// Spawns a camera that looks at the player.\nfn spawn_camera() {\n    camera();\n}\n\nfn despawn_light() {}\n";
    let guide = "# Guide\n\nHow to move the camera.\n\n## Lights\n\nA light is spawned with the world.\n";
    let mut commits = vec![repo.commit(&[
        ("Cargo.toml", "[package]\nname = \"tide\"\n"),
        ("src/camera.rs", code),
        ("docs/guide.md", guide),
        ("notes.txt", "A plain note about the tide and its lights.\n"),
        ("binary.dat", "\0\0\0\0"),
    ])];
    commits.push(repo.commit(&[("src/camera.rs", &code.replace("camera();", "camera(1);"))]));
    commits.push(repo.commit(&[("docs/more.md", "# More\n\nThe lights of the camera follow the player.\n")]));
    fs::remove_file(repo.path().join("notes.txt")).unwrap();
    commits.push(repo.commit(&[("src/camera.rs", code)]));
    (repo, commits)
}

/// Tracks the whole history; returns the number of embedded texts.
fn track(data: &Path, repo: &Repo) -> Result<u64, EngineError> {
    track_from(data, repo, Some(Backfill::All))
}

fn track_from(data: &Path, repo: &Repo, backfill: Option<Backfill>) -> Result<u64, EngineError> {
    let source = SourceConfig {
        path: repo.path().to_str().unwrap().to_owned(),
        name: Some("engine".to_owned()),
        backfill,
        ..SourceConfig::default()
    };
    let embedded = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let count = embedded.clone();
    let options = TrackerOptions {
        layout: Layout::new(data),
        config: Config { sources: vec![source], ..Config::default() },
        on_published: Box::new(move |published| {
            count.fetch_add(published.receipt.embedded, std::sync::atomic::Ordering::Relaxed);
        }),
        stop: Stop::default(),
    };
    Tracker::open(options)?.catch_up()?;
    Ok(embedded.load(std::sync::atomic::Ordering::Relaxed))
}

fn check(data: &Path) -> Audit {
    use dataflows::embed::Embedder;
    let model = StaticModel::new();
    audit(&Layout::new(data), model.fingerprint(), model.dimensions() as u32).unwrap()
}

/// All answers of a store as of these commits of the source called `engine`.
fn picture(data: &Path, commits: &[String]) -> String {
    let searcher = Searcher::open(&Layout::new(data)).unwrap();
    let digests: BTreeMap<String, String> = searcher.reader().with_archive(|archive| {
        archive.versions().iter().map(|version| (version.commit.to_string(), version.digest.to_string())).collect()
    });
    let mut picture = String::new();
    for commit in commits {
        writeln!(picture, "{commit} {}", digests[commit]).unwrap();
        for query in ["spawn camera", "light", "the tide note"] {
            for mode in [Mode::Hybrid, Mode::Bm25, Mode::Vector] {
                writeln!(picture, "{query} {mode:?}").unwrap();
                let (at, source) = (Some(commit.clone()), Some("engine".to_owned()));
                let request = Request { mode, k: 20, at, source, ..Request::new(query) };
                for hit in searcher.search(&request).unwrap().hits {
                    let (lines, bits) = (hit.lines.map(|lines| (lines.first, lines.last)), hit.score.to_bits());
                    let symbol = &hit.card.symbol;
                    writeln!(picture, "{} {bits:x} {} {lines:?} {symbol} {:?}", hit.rank, hit.path, hit.text).unwrap();
                }
            }
        }
    }
    picture
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { files_below(&path, found) } else { found.push(path) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Hurt {
    Delete,
    Flip,
    Cut,
}

impl Hurt {
    fn apply(self, file: &Path) {
        let mut bytes = fs::read(file).unwrap();
        match self {
            Self::Delete => return fs::remove_file(file).unwrap(),
            Self::Flip => {
                let middle = bytes.len() / 2;
                if let Some(byte) = bytes.get_mut(middle) {
                    *byte ^= 0x10;
                }
            }
            Self::Cut => bytes.truncate(bytes.len() / 2),
        }
        fs::write(file, bytes).unwrap();
    }
}
