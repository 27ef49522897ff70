//! Snapshots as a tool: a store that is checked, mended, bisected, and carried to another machine.
//!
//! **Invariant:** whatever happens to a file of a store, its answers are as before after the next start, or the store is
//! refused by name; never another answer.

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

/// Tracks the whole history; returns how many texts were embedded.
fn track(data: &Path, repo: &Repo) -> Result<u64, EngineError> {
    track_from(data, repo, Some(Backfill::All))
}

fn track_from(data: &Path, repo: &Repo, backfill: Option<Backfill>) -> Result<u64, EngineError> {
    let source = SourceConfig {
        path: repo.path().to_str().unwrap().to_owned(),
        name: Some("engine".to_owned()),
        refs: Vec::new(),
        backfill,
        poll_seconds: None,
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

/// Everything that a store answers as of these commits of the source called `engine`.
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

/// Hurts one file of a copy of a store, and returns what the next start says of it, if it refuses.
fn start_after(hurt: Hurt, file: &Path, data: &Path, repo: &Repo, commits: &[String], before: &str) -> Option<String> {
    let copy = TempDir::new().unwrap();
    copy_folder(data, copy.path());
    let file = copy.path().join(file);
    if hurt != Hurt::Delete && fs::metadata(&file).unwrap().len() == 0 {
        return None;
    }
    hurt.apply(&file);
    if let Err(error) = track(copy.path(), repo) {
        return Some(error.to_string());
    }
    assert_eq!(picture(copy.path(), commits), before, "{hurt:?} {}", file.display());
    assert_eq!(check(copy.path()).findings, [], "{hurt:?} {}", file.display());
    None
}

#[test]
fn whatever_happens_to_a_file_the_answers_are_as_before_or_the_store_is_refused_by_name() {
    let (repo, commits) = history();
    let data = TempDir::new().unwrap();
    track(data.path(), &repo).unwrap();
    let before = picture(data.path(), &commits);
    assert_eq!(check(data.path()).findings, []);
    let mut files = Vec::new();
    files_below(data.path(), &mut files);
    let mut refused = String::new();
    for file in &files {
        let file = file.strip_prefix(data.path()).unwrap();
        for hurt in [Hurt::Delete, Hurt::Flip, Hurt::Cut] {
            // LMDB has no checksums: a wrong byte there is found by `verify`, see below.
            if hurt == Hurt::Flip && file.ends_with("data.mdb") {
                continue;
            }
            if let Some(error) = start_after(hurt, file, data.path(), &repo, &commits, &before) {
                let next = ["backup", "release", "build the store again", "new folder"];
                assert!(next.iter().any(|next| error.contains(next)), "{hurt:?} {}: {error}", file.display());
                writeln!(refused, "{hurt:?} {}", file.display()).unwrap();
            }
        }
    }
    // Everything else is mended: what only these files know cannot be.
    let expected = expect_test::expect![[r"
        Flip FORMAT
        Cut FORMAT
        Delete memo/data.mdb
        Cut memo/data.mdb
        Delete versions/versions.log
    "]];
    expected.assert_eq(&refused);
}

#[test]
fn verify_names_what_was_damaged_and_what_to_do() {
    let (repo, _) = history();
    let data = TempDir::new().unwrap();
    track(data.path(), &repo).unwrap();
    let segment = |extension: &str| {
        let mut files = Vec::new();
        files_below(data.path(), &mut files);
        files.into_iter().find(|file| file.extension().is_some_and(|found| found == extension)).unwrap()
    };
    let cases = [
        (segment("idx"), "lexical"),
        (segment("pos"), "lexical"),
        (segment("tmv"), "vectors"),
        (data.path().join("versions/versions.log"), "log"),
    ];
    for (file, part) in cases {
        for hurt in [Hurt::Delete, Hurt::Flip, Hurt::Cut] {
            let copy = TempDir::new().unwrap();
            copy_folder(data.path(), copy.path());
            hurt.apply(&copy.path().join(file.strip_prefix(data.path()).unwrap()));
            let findings = check(copy.path()).findings;
            assert!(findings.iter().any(|finding| finding.part == part), "{hurt:?} {}: {findings:?}", file.display());
            assert!(findings.iter().all(|finding| !finding.next.is_empty()));
        }
    }
}

#[test]
fn verify_finds_a_wrong_byte_of_a_text_in_the_database() {
    let (repo, _) = history();
    let data = TempDir::new().unwrap();
    track(data.path(), &repo).unwrap();
    let path = data.path().join("memo/data.mdb");
    let mut bytes = fs::read(&path).unwrap();
    let text = b"The lights of the camera follow";
    let places: Vec<usize> = (0..bytes.len() - text.len()).filter(|&at| bytes[at..].starts_with(text)).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at] = b't';
    }
    fs::write(&path, bytes).unwrap();
    let findings = check(data.path()).findings;
    assert!(
        findings.iter().any(|finding| finding.part == "results"
            && finding.problem.contains("not what their names say")
            && finding.paths.iter().any(|path| path.to_string() == "docs/more.md")),
        "{findings:?}"
    );
}

#[test]
fn verify_finds_nothing_beside_a_tracker_that_publishes() {
    let repo = Repo::new();
    for number in 0..60 {
        let text = format!("fn item_{number}() {{ camera({number}); }}\n").repeat(20 + number);
        repo.commit(&[(&format!("src/file_{}.rs", number % 7), &text)]);
    }
    let data = TempDir::new().unwrap();
    let program = env!("CARGO_BIN_EXE_tidemill");
    let mut tracker = Command::new(program)
        .args(["--data", data.path().to_str().unwrap(), "track", repo.path().to_str().unwrap()])
        .args(["--once", "--backfill", "all", "-q"])
        .spawn()
        .unwrap();
    let mut looks = 0;
    loop {
        let ended = tracker.try_wait().unwrap();
        let verify = Command::new(program)
            .args(["--data", data.path().to_str().unwrap(), "snapshots", "verify", "--json"])
            .output()
            .unwrap();
        // At first there is no store, or no version in it.
        let is_early = verify.status.code() == Some(1) && ended.is_none();
        assert!(
            verify.status.success() || is_early,
            "{}{}",
            String::from_utf8_lossy(&verify.stdout),
            String::from_utf8_lossy(&verify.stderr)
        );
        looks += usize::from(verify.status.success());
        if let Some(status) = ended {
            assert!(status.success());
            break;
        }
    }
    assert!(looks > 0);
}

#[test]
fn bisect_finds_the_commit_that_lost_the_answer_in_few_searches() {
    let repo = Repo::new();
    let answer = "/// Steers the harbour pilot through the fog.\nfn steer_pilot() {}\n";
    let mut commits = vec![repo.commit(&[("src/pilot.rs", answer), ("src/other.rs", "fn other() {}\n")])];
    for number in 1..20 {
        let pilot = if number < 13 { answer } else { "fn something_else() {}\n" };
        let other = format!("fn other() {{ step({number}); }}\n");
        commits.push(repo.commit(&[("src/pilot.rs", pilot), ("src/other.rs", &other)]));
    }
    repo.git(&["checkout", "-q", "-b", "side", &commits[2]]);
    let side = repo.commit(&[("src/pilot.rs", "fn aside() {}\n")]);
    repo.git(&["checkout", "-q", "main"]);
    let data = TempDir::new().unwrap();
    let program = env!("CARGO_BIN_EXE_tidemill");
    let tracked = Command::new(program)
        .args(["--data", data.path().to_str().unwrap(), "track", repo.path().to_str().unwrap()])
        .args(["--once", "--backfill", "all", "--ref", "*", "-q"])
        .status()
        .unwrap();
    assert!(tracked.success());

    let searcher = Searcher::open(&Layout::new(data.path())).unwrap();
    let request = Request { mode: Mode::Bm25, k: 3, ..Request::new("harbour pilot fog") };
    let expected = "src/pilot.rs".into();
    let run = |good: &str, bad: &str| {
        let mut steps = 0;
        let found = bisect(&searcher, &request, &expected, good, bad, &mut |_| steps += 1)?;
        assert_eq!(found.searches, steps);
        Ok::<_, BisectError>(found)
    };
    for (good, bad) in [(0, 19), (12, 13), (5, 14), (11, 19)] {
        let found = run(&commits[good], &commits[bad]).unwrap();
        assert_eq!(found.last_good.0.commit.to_string(), commits[12]);
        assert_eq!(found.first_bad.0.commit.to_string(), commits[13]);
        assert_eq!(found.snapshots, bad - good + 1);
        let halvings = (bad - good).next_power_of_two().trailing_zeros() as usize;
        assert!(found.searches <= 2 + halvings, "{} searches from {good} to {bad}", found.searches);
    }
    assert!(matches!(run(&commits[14], &commits[19]), Err(BisectError::NotGood { .. })));
    assert!(matches!(run(&commits[0], &commits[5]), Err(BisectError::NotBad { rank: 1, .. })));
    assert!(matches!(run(&commits[5], &side), Err(BisectError::NotOnLine { .. })));
    assert!(run(&commits[1], &side).is_ok());
}

/// Exports the snapshot at a revision, with the views that stand there.
fn export_at(data: &Path, rev: &str, folder: &Path) -> Exported {
    let program = env!("CARGO_BIN_EXE_tidemill");
    let output = Command::new(program)
        .args(["--data", data.to_str().unwrap(), "snapshots", "export", rev, folder.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Once more, in process: the same bytes.
    let searcher = Searcher::open(&Layout::new(data)).unwrap();
    let selected = searcher.revisions().select(searcher.reader(), None, None, Some(rev)).unwrap().remove(0);
    let (_, source) = searcher.revisions().sources()[0].clone();
    let views = searcher.reader().with_archive(|archive| {
        let standing = searcher.revisions().views_of(selected.source);
        standing
            .filter(|(id, _)| archive.view(*id) == Some(selected.version))
            .map(|(_, name)| name.to_owned())
            .collect()
    });
    let again = folder.with_extension("again");
    let rules = dataflows::rules::Rules::built_in();
    let exported = export(searcher.reader(), &source, selected.version, views, (&rules, 256), &again).unwrap();
    assert_eq!(fs::read(folder.join("MANIFEST")).unwrap(), fs::read(again.join("MANIFEST")).unwrap());
    exported
}

#[test]
fn a_snapshot_is_carried_to_another_store_and_tracked_onwards() {
    let (repo, mut commits) = history();
    let (here, there, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap(), TempDir::new().unwrap());
    track(here.path(), &repo).unwrap();
    let copy = folder.path().join("copy");
    export_at(here.path(), "main", &copy);
    let head = [commits.last().unwrap().clone()];

    let (imported, manifest) = import(&Layout::new(there.path()), &copy, None).unwrap();
    let Imported::Published(published) = imported else { panic!("the store was empty") };
    assert_eq!((published.view.as_deref(), manifest.source.as_str()), (Some("main"), "engine"));
    assert_eq!(picture(there.path(), &head), picture(here.path(), &head));
    assert_eq!(check(there.path()).findings, []);
    // Once more: it is there.
    assert!(matches!(import(&Layout::new(there.path()), &copy, None).unwrap().0, Imported::Known));
    // An unchanged head costs nothing, and what is new costs as much as where everything was tracked.
    commits.push(repo.commit(&[("docs/new.md", "# New\n\nOne text that nobody knows.\n")]));
    let newest = [commits.last().unwrap().clone()];
    assert_eq!(track_from(there.path(), &repo, None).unwrap(), track(here.path(), &repo).unwrap());
    assert_eq!(picture(there.path(), &newest), picture(here.path(), &newest));
    assert_eq!(check(there.path()).findings, []);

    // An older commit goes into a store that has others; the view stays where it is.
    let older = folder.path().join("older");
    export_at(here.path(), &commits[1], &older);
    let Imported::Published(published) = import(&Layout::new(there.path()), &older, None).unwrap().0 else {
        panic!("the store does not have it");
    };
    assert_eq!(published.view, None);
    assert_eq!(picture(there.path(), &commits[1..2]), picture(here.path(), &commits[1..2]));
    assert_eq!(picture(there.path(), &newest), picture(here.path(), &newest));
}

/// Puts the right sums under whatever the files hold now.
fn sign(copy: &Path, change: impl FnOnce(&mut serde_json::Value)) {
    let text = fs::read_to_string(copy.join("MANIFEST")).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    for (name, sum) in manifest["files"].as_object_mut().unwrap() {
        let bytes = fs::read(copy.join(name)).unwrap();
        sum["bytes"] = bytes.len().into();
        sum["blake3"] = blake3::hash(&bytes).to_hex().to_string().into();
    }
    change(&mut manifest);
    let line = manifest.to_string();
    fs::write(copy.join("MANIFEST"), format!("{line}\n{}\n", blake3::hash(line.as_bytes()).to_hex())).unwrap();
}

#[test]
fn a_copy_that_is_damaged_or_made_up_is_refused_and_leaves_nothing() {
    let (repo, commits) = history();
    let (data, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    track(data.path(), &repo).unwrap();
    let good = folder.path().join("good");
    export_at(data.path(), &commits[2], &good);
    let refuse = |what: &str, spoil: &dyn Fn(&Path)| {
        let (copy, store) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        copy_folder(&good, copy.path());
        spoil(copy.path());
        let store = store.path().join("store");
        let error = import(&Layout::new(&store), copy.path(), None).err();
        assert!(error.is_some(), "{what}");
        assert!(!store.exists(), "{what}: the store was touched before the copy was proven");
    };
    let names = ["MANIFEST", "documents", "cleaned", "chunks", "texts", "vectors"];
    for name in names {
        for hurt in [Hurt::Delete, Hurt::Flip, Hurt::Cut] {
            refuse(&format!("{hurt:?} {name}"), &|copy| hurt.apply(&copy.join(name)));
        }
        refuse(&format!("{name} is a folder"), &|copy| {
            fs::remove_file(copy.join(name)).unwrap();
            fs::create_dir(copy.join(name)).unwrap();
        });
    }
    // With the right sums, what does not follow is still refused.
    for (field, value) in [
        ("format", serde_json::json!(7)),
        ("commit", serde_json::json!("../../etc")),
        ("parent", serde_json::json!("x")),
        ("digest", serde_json::json!("00")),
        ("entries", serde_json::json!(1)),
        ("documents", serde_json::json!(u64::MAX)),
        ("tokens", serde_json::json!([1, 2])),
        ("model", serde_json::json!("another")),
        ("analyzer", serde_json::json!("another")),
        ("fingerprint", serde_json::json!("é".repeat(16))),
        ("dimensions", serde_json::json!(3)),
        ("files", serde_json::json!({})),
    ] {
        refuse(field, &|copy| sign(copy, |manifest| manifest[field] = value.clone()));
    }
    for name in &names[1..] {
        refuse(&format!("{name} counts too many records"), &|copy| {
            sign(copy, |manifest| manifest["files"][*name]["records"] = u64::MAX.into());
        });
        refuse(&format!("{name} has a huge record"), &|copy| {
            let mut bytes = fs::read(copy.join(name)).unwrap();
            bytes[..4].copy_from_slice(&u32::MAX.to_le_bytes());
            fs::write(copy.join(name), bytes).unwrap();
            sign(copy, |_| ());
        });
    }
    // Any wrong byte, under the right sum: refused, or without effect on what is proven; never a panic.
    let mut before = None;
    for name in &names[1..] {
        let length = fs::metadata(good.join(name)).unwrap().len() as usize;
        for at in (0..length).step_by(length.div_ceil(9)) {
            let (copy, store) = (TempDir::new().unwrap(), TempDir::new().unwrap());
            copy_folder(&good, copy.path());
            let mut bytes = fs::read(copy.path().join(name)).unwrap();
            bytes[at] ^= 0x41;
            fs::write(copy.path().join(name), bytes).unwrap();
            sign(copy.path(), |_| ());
            if let Ok((_, manifest)) = import(&Layout::new(store.path()), copy.path(), None) {
                let digest = before.get_or_insert_with(|| manifest.digest.clone());
                assert_eq!(*digest, manifest.digest, "{name} {at}");
            }
        }
    }
}

#[test]
fn an_import_that_is_killed_leaves_nothing_visible() {
    let (repo, commits) = history();
    let (data, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    track(data.path(), &repo).unwrap();
    let copy = folder.path().join("copy");
    export_at(data.path(), "main", &copy);
    let program = env!("CARGO_BIN_EXE_tidemill");
    let started = Instant::now();
    let whole = folder.path().join("whole");
    let run = |store: &Path| {
        Command::new(program)
            .args(["--data", store.to_str().unwrap(), "snapshots", "import", copy.to_str().unwrap(), "--name", "other"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    assert!(run(&whole).wait().unwrap().success());
    let whole = started.elapsed();
    let before = picture(data.path(), &commits);
    for part in 1..8 {
        let store = folder.path().join(format!("store-{part}"));
        copy_folder(data.path(), &store);
        let mut import = run(&store);
        std::thread::sleep(Duration::from_nanos(whole.as_nanos() as u64 / 8 * part));
        import.kill().unwrap();
        import.wait().unwrap();
        let searcher = Searcher::open(&Layout::new(&store)).unwrap();
        let names: Vec<&str> = searcher.revisions().sources().iter().map(|(_, source)| source.name.as_str()).collect();
        assert!(names == ["engine"] || names == ["engine", "other"], "{names:?}");
        drop(searcher);
        assert_eq!(check(&store).findings, [], "killed after {part}/8");
        assert!(run(&store).wait().unwrap().success());
        assert_eq!(check(&store).findings, []);
        track(&store, &repo).unwrap();
        let searcher = Searcher::open(&Layout::new(&store)).unwrap();
        assert_eq!(searcher.revisions().sources().len(), 2);
        drop(searcher);
        assert_eq!(picture(&store, &commits), before);
    }
}
