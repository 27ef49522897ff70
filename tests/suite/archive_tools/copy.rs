//! A snapshot carried to another store, and copies that are damaged, forged or truncated.

use super::*;

/// Exports the snapshot at a revision, with the views that point at it.
fn export_at(data: &Path, rev: &str, folder: &Path) -> Exported {
    let program = env!("CARGO_BIN_EXE_tidemill");
    let output = Command::new(program)
        .args(["--data", data.to_str().unwrap(), "snapshots", "export", rev, folder.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Again, in process: the same bytes.
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
    // Again: the store has it.
    assert!(matches!(import(&Layout::new(there.path()), &copy, None).unwrap().0, Imported::Known));
    // An unchanged head costs nothing, and new content costs as much as in the original store.
    commits.push(repo.commit(&[("docs/new.md", "# New\n\nOne text that nobody knows.\n")]));
    let newest = [commits.last().unwrap().clone()];
    assert_eq!(track_from(there.path(), &repo, None).unwrap(), track(here.path(), &repo).unwrap());
    assert_eq!(picture(there.path(), &newest), picture(here.path(), &newest));
    assert_eq!(check(there.path()).findings, []);

    // An older commit goes into a store with newer ones; the view stays where it is.
    let older = folder.path().join("older");
    export_at(here.path(), &commits[1], &older);
    let Imported::Published(published) = import(&Layout::new(there.path()), &older, None).unwrap().0 else {
        panic!("the store does not have it");
    };
    assert_eq!(published.view, None);
    assert_eq!(picture(there.path(), &commits[1..2]), picture(here.path(), &commits[1..2]));
    assert_eq!(picture(there.path(), &newest), picture(here.path(), &newest));
}

#[test]
fn a_copy_joins_a_source_of_its_name_only_where_that_is_the_same_one() {
    let (repo, _) = history();
    let (here, there, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap(), TempDir::new().unwrap());
    track(here.path(), &repo).unwrap();
    let copy = folder.path().join("copy");
    export_at(here.path(), "main", &copy);
    // Another history under the name `engine`.
    let other = Repo::new();
    other.commit(&[("a.md", "# Other\n\nAnother history.\n")]);
    track(there.path(), &other).unwrap();
    let layout = Layout::new(there.path());
    let refused = import(&layout, &copy, None).err().unwrap().to_string();
    assert!(refused.contains("is another source") && refused.contains("--name"), "{refused}");
    assert!(matches!(import(&layout, &copy, Some("theirs")).unwrap().0, Imported::Published(_)));
    assert_eq!(check(there.path()).findings, []);
    // A copy of a later commit of the one that was imported joins it: their roots are the same.
    repo.commit(&[("docs/later.md", "# Later\n\nA text.\n")]);
    repo.commit(&[("docs/later.md", "# Later\n\nA text, again.\n")]);
    track(here.path(), &repo).unwrap();
    let later = folder.path().join("later");
    export_at(here.path(), "main", &later);
    assert!(matches!(import(&layout, &later, Some("theirs")).unwrap().0, Imported::Published(_)));
}

/// Writes the right checksums for the current files.
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
    // With the right checksums, inconsistent content is still refused.
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
    // Any wrong byte, under the right checksum: refused, or without effect on verified data; never a panic.
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
