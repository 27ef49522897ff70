//! A store with damaged files: checked, repaired at the next start, or refused by name.

use super::*;

/// Damages one file of a copy of a store, and returns the error of the next start, if it refuses.
fn start_after(hurt: Hurt, file: &Path, data: &Path, repo: &Repo, commits: &[String], before: &str) -> Option<String> {
    let copy = TempDir::new().unwrap();
    copy_folder(data, copy.path());
    let file = copy.path().join(file);
    if hurt != Hurt::Delete && fs::metadata(&file).unwrap().len() == 0 {
        return None;
    }
    hurt.apply(&file);
    if let Err(error) = track(copy.path(), repo) {
        return Some(format!("{:#}", anyhow::Error::from(error)));
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
    let refused_by = &|hurt: Hurt| {
        let mut refused = String::new();
        for file in &files {
            let file = file.strip_prefix(data.path()).unwrap();
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
        refused
    };
    let refused: String = std::thread::scope(|scope| {
        let threads = [Hurt::Delete, Hurt::Flip, Hurt::Cut].map(|hurt| scope.spawn(move || refused_by(hurt)));
        threads.map(|thread| thread.join().unwrap()).concat()
    });
    // Everything else is repaired; data that only these files have cannot be.
    let expected = expect_test::expect![[r"
        Delete memo/data.mdb
        Delete versions/versions.log
        Flip FORMAT
        Cut FORMAT
        Cut memo/data.mdb
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
fn verify_finds_a_wrong_byte_in_the_last_group_of_the_log_and_the_next_start_mends_it() {
    let (repo, commits) = history();
    let data = TempDir::new().unwrap();
    track(data.path(), &repo).unwrap();
    let before = picture(data.path(), &commits);
    let log = data.path().join("versions/versions.log");
    let mut bytes = fs::read(&log).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&log, bytes).unwrap();

    let findings = check(data.path()).findings;
    assert!(
        findings.iter().any(|finding| finding.part == "log" && finding.problem.contains("no whole group")),
        "{findings:?}"
    );
    track(data.path(), &repo).unwrap();
    assert_eq!(check(data.path()).findings, []);
    assert_eq!(picture(data.path(), &commits), before);
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
