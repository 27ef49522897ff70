//! *What people see*: no text of a document or of its name controls their terminal, lines end at the terminal's width, and times
//! say to whom they belong.

use crate::support::{Program, Repository, Tree};
use std::os::unix::ffi::OsStrExt;

/// Characters that must never be printed raw.
fn is_active(sign: char) -> bool {
    (sign.is_control() && !matches!(sign, '\n' | '\t'))
        || matches!(sign, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[test]
fn no_name_and_no_text_drives_a_terminal() {
    let repository = Repository::new();
    let name = "a/\u{1b}[2J\r\u{202e}gpj.\u{2066}rs";
    let text = "// heron \u{1b}]0;title\u{7}\u{202e}\u{2069}\rover\nfn heron_\u{202a}x() {}\n";
    repository.commit(&Tree::from([(b"plain.md".to_vec(), b"# Heron\n".to_vec())]));
    repository.commit(&Tree::from([
        (name.as_bytes().to_vec(), text.as_bytes().to_vec()),
        (b"q.md".to_vec(), b"# \x1b[31mHeron\x00".to_vec()),
    ]));
    let program = Program::new();
    let mut shown = vec![program.run(&["track", repository.name(), "--once", "--backfill", "1", "-v"])];
    for arguments in [
        &["search", "heron"][..],
        &["search", "heron", "--explain", "--fold"],
        &["search", "heron", "--where", name],
        &["search", "heron", "--where", &format!("path:{name}x")],
        &["search", name, "--at", name],
        &["explain", name],
        &["explain", "q.md"],
        &["status"],
        &["snapshots", "list"],
        &["snapshots", "diff", "main~1", "main"],
        &["bisect", "heron", "--expect", "plain.md", "--good", "main~1", "--bad", "main"],
        &["track", name],
    ] {
        shown.push(program.run(arguments));
    }
    for run in &shown {
        assert!(!run.out.contains(is_active) && !run.err.contains(is_active), "{run:?}");
    }
    assert!(shown[1].out.contains(r"a/\u{1b}[2J\r\u{202e}gpj.\u{2066}rs:"), "{}", shown[1].out);
    assert!(shown[1].out.contains(r"heron \u{1b}]0;title\u{7}\u{202e}"), "{}", shown[1].out);
    // JSON is for programs: the text is whole.
    let hits = &program.json(&["search", "heron", "--json"])[0]["hits"];
    assert!(hits.as_array().unwrap().iter().any(|hit| hit["text"].as_str().unwrap().contains('\u{1b}')));
}

#[test]
fn long_lines_are_cut_for_people_and_whole_in_json() {
    let repository = Repository::new();
    let long = format!("heron {}", "渲染 and words ".repeat(200));
    let path = format!("{}/x.txt", "deep".repeat(60));
    repository.commit(&Tree::from([(path.clone().into_bytes(), long.clone().into_bytes())]));
    let program = Program::new();
    program.json(&["track", repository.name(), "--once", "--json"]);
    let shown = program.run(&["search", "heron"]).out;
    let text: Vec<&str> = shown.lines().filter(|line| line.starts_with("     heron")).collect();
    assert!(text[0].ends_with('…') && text[0].chars().count() <= 400, "{}", text[0]);
    assert!(shown.contains(&path), "a path is shown whole");
    let hit = &program.json(&["search", "heron", "--json"])[0]["hits"][0];
    assert!(hit["text"].as_str().unwrap().len() > 2_000);
    assert!(!hit["text"].as_str().unwrap().contains('…'));
}

#[test]
fn what_is_not_utf8_can_be_asked_for() {
    let repository = Repository::new();
    let odd = b"src/na\xefve.txt";
    repository.commit(&Tree::from([(odd.to_vec(), b"heron\n".to_vec()), (b"src/b.txt".to_vec(), b"heron\n".to_vec())]));
    let program = Program::new();
    program.json(&["track", repository.name(), "--once", "--json"]);
    let filter = std::ffi::OsStr::from_bytes(b"path:src/na\xefve.txt");
    let run = program.run_with(&["search".as_ref(), "heron".as_ref(), "--json".as_ref(), "--where".as_ref(), filter]);
    let answer: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(answer["hits"].as_array().unwrap().len(), 1, "{run:?}");
    assert_eq!(answer["hits"][0]["path"], String::from_utf8_lossy(odd).into_owned());
    let run = program.run_with(&["search".as_ref(), std::ffi::OsStr::from_bytes(b"heron \xef")]);
    assert_eq!(run.status, Some(0), "{run:?}");
}

#[test]
fn an_epoch_waits_for_others_and_says_what_it_took_itself() {
    let repository = Repository::new();
    for number in 0..30_u32 {
        let file =
            |at: u32| (format!("{at}.txt").into_bytes(), format!("heron {number} {}\n", at * number).into_bytes());
        repository.commit(&(0..40).map(file).collect());
    }
    let program = Program::new();
    let mut lines = program.json(&["track", repository.name(), "--once", "--json", "--backfill", "all"]);
    let summary = lines.pop().unwrap();
    assert_eq!(lines.len(), 30);
    let ms = |line: &serde_json::Value, key: &str| line["ms"][key].as_f64().unwrap();
    for line in &lines {
        let (total, waited) = (ms(line, "total"), ms(line, "waited"));
        assert!((0.0..=total).contains(&waited), "{line}");
        assert!(total - waited >= ms(line, "apply") * 0.99 - 0.01, "applying is an epoch's own work: {line}");
    }
    // The epochs' own times add up to at most the total time, whatever they waited for.
    let own: f64 = lines.iter().map(|line| ms(line, "total") - ms(line, "waited")).sum();
    let seconds = summary["summary"]["seconds"].as_f64().unwrap();
    assert!(own <= seconds * 3_000.0, "{own} ms in {seconds} s: finding, the graph and writing go side by side");
    let waited: f64 = lines.iter().map(|line| ms(line, "waited")).sum();
    assert!(waited > 0.0, "thirty epochs at once wait for each other");
}

#[test]
fn help_tells_the_options_of_a_command_from_those_of_all() {
    let program = Program::new();
    for command in
        ["track", "search", "snapshots", "dump", "status", "explain", "bisect", "record", "replay", "bench", "demo"]
    {
        let help = program.run(&[command, "--help"]).out;
        let (own, global) = help.split_once("Global options:").unwrap_or_else(|| panic!("{help}"));
        for option in ["--data", "--config", "--json", "--quiet", "--verbose"] {
            assert!(global.contains(option) && !own.contains(&format!("{option} ")), "{command} {option}: {help}");
        }
    }
}
