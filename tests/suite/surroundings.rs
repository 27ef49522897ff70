//! *Odd surroundings change no answer*: paths, settings, an environment and a store's place that no first user has, and mistakes
//! on the command line, which are named in one line.

use crate::support::{Need, Outside, has};

/// A repository `r` whose paths are odd, with a tag that reads like a date at its first commit, and a store of all of it.
fn tracked() -> Outside {
    let outside = Outside::new();
    let script = "git init -q -b main r && cd r && git config user.name a && git config user.email a@example.org \
        && mkdir 'a[b]' && echo 'The bittern booms.' > 'a[b]/x.md' && printf crane > \"$(printf 'new\\nline.md')\" \
        && printf stork > \"$(printf 'caf\\303\\251.md')\" && git add -A && git commit -q -m 1 && git tag 2026-01-01 \
        && echo egret > later.md && git add -A && git commit -q -m 2 && cd .. && tidemill track r --once --backfill all";
    outside.shell(script).well();
    outside
}

#[test]
fn odd_names_mean_what_they_name() {
    if !has(Need::Root) {
        return;
    }
    let outside = tracked();
    for (command, expected) in [
        ("search bittern --at 2026-01-01 --mode bm25", "a[b]/x.md:1-1"),
        ("search bittern --where 'path:a[b]/x.md' --mode bm25", "a[b]/x.md:1-1"),
        ("search crane --mode bm25", "new\\nline.md:1-1"),
        ("explain \"$(printf 'new\\nline.md')\"", "new\\nline.md in r"),
        ("explain \"$(printf 'cafe\\314\\201.md')\"", "café.md in r"),
        ("search stork --mode bm25 --where \"path:$(printf 'cafe\\314\\201.md')\"", "café.md:1-1"),
    ] {
        let out = outside.shell(&format!("tidemill {command}")).well();
        assert!(out.contains(expected), "{command}: {out}");
    }
    let dated = outside.shell("tidemill search egret --at 2026-01-01 --mode bm25").well();
    assert!(!dated.contains("later.md"), "the tag is meant, not the day: {dated}");
}

#[test]
fn no_part_of_the_environment_is_needed() {
    if !has(Need::Root) {
        return;
    }
    let outside = tracked();
    for with in ["env -i PATH=$PATH", "env -u HOME -u TZ", "LC_ALL=C LANG=C", "TZ=Nowhere/Never", "HOME=/nonexistent"] {
        let search = format!("{with} ./tidemill --data store search stork --mode bm25");
        assert!(outside.shell(&search).well().contains("café.md:1-1"), "{with}");
        outside.shell(&format!("{with} ./tidemill --data store track r --once <&-")).well();
        outside.shell(&format!("{with} ./tidemill --data store status </dev/null")).well();
    }
}

#[test]
fn settings_are_read_with_a_byte_order_mark_and_any_line_ends() {
    if !has(Need::Root) {
        return;
    }
    let outside = tracked();
    outside
        .shell(
            "printf '\\357\\273\\277rules = \"rules.toml\"\\r\\n[[source]]\\r\\npath = \"r\"\\r\\n' > tidemill.toml; \
             printf '\\357\\273\\277[[rule]]\\r\\nname = \"x\"\\r\\nmatch = [\"later.md\"]\\r\\nexclude = true\\r\\n' > rules.toml; \
             tidemill track --once",
        )
        .well();
    let out = outside.shell("tidemill status").well();
    assert!(out.contains("1 excluded"), "{out}");
    outside.shell("printf '\\377\\376r' > tidemill.toml; tidemill status").refused(&["tidemill.toml", "UTF-8"]);
}

#[test]
fn a_store_stands_wherever_its_path_leads() {
    if !has(Need::Root) {
        return;
    }
    let outside = Outside::new();
    for place in ["'my store'", "\"$(printf 'st\\377re')\"", "\"$(printf 'new\\nline')\"", "a/b/c"] {
        let run = |command: &str| outside.shell(&format!("tidemill --data {place} {command}")).well();
        run("track dir:docs --once");
        assert!(run("search heron").contains("heron.md:1-1"), "{place}");
        assert!(run("search heron --json").contains("heron.md"), "{place}");
    }
}

#[test]
fn mistakes_on_the_command_line_are_named_in_one_line() {
    if !has(Need::Root) {
        return;
    }
    let outside = tracked();
    for (command, words) in [
        ("search ''", ["the query is empty", "words"]),
        ("search '  '", ["the query is empty", "words"]),
        ("search x --where 'path:a['", ["--where at column 6", "`a[`"]),
        ("search x --source ''", ["there is no source", "the store has r"]),
        ("search x --view nothing", ["there is no view `nothing`", "the store has main"]),
        ("search x --at 0000", ["cannot find the revision `0000`", "snapshots list"]),
        ("track '' --once", ["there is nothing at \"\"", "dir:PATH"]),
        ("track nowhere --once", ["there is nothing at \"nowhere\"", "dir:PATH"]),
        ("track docs/heron.md --once", ["docs/heron.md is a file", "dir:PATH"]),
        ("track docs --once", ["no git repository at docs", "dir:docs"]),
    ] {
        outside.shell(&format!("tidemill {command}")).refused(&words);
    }
    let silent = outside.shell("tidemill search '!!! ??? ...'");
    assert!(silent.err.contains("the query has no word to look for"), "{silent:?}");
    for command in ["search bittern", "search bittern --json", "snapshots list", "status"] {
        let full = outside.shell(&format!("tidemill {command} >/dev/full"));
        full.refused(&["cannot write to standard output", "No space left on device"]);
    }
}

#[test]
fn a_folder_that_becomes_a_file_keeps_what_was_indexed() {
    if !has(Need::Root) {
        return;
    }
    let outside = Outside::new();
    outside.shell("tidemill track dir:docs --once; mv docs away; echo file > docs").well();
    outside.shell("tidemill track dir:docs --once").refused(&["what was indexed of it stays", "Not a directory"]);
    assert!(outside.shell("tidemill search heron").well().contains("heron.md"));
    outside.shell("rm docs; mv away docs; tidemill track dir:docs --once").well();
}

#[test]
fn a_store_on_a_read_only_mount_answers_while_it_is_collected() {
    if !has(Need::Root) {
        return;
    }
    let outside = tracked();
    let script = "printf '[[source]]\\npath = \"r\"\\n[retention]\\nnewest = 1\\ntags = false\\n' > tidemill.toml; \
        mkdir ro; mount --bind store ro; mount -o remount,ro,bind ro; \
        for i in 1 2 3 4; do tidemill --data ro search bittern --mode bm25 || touch failed; done > found & \
        tidemill snapshots gc > gone; wait; grep -c 'x.md:1-1' found; ls failed 2>/dev/null; tidemill snapshots verify";
    let out = outside.shell(script).well();
    assert!(out.starts_with("4\n") && !out.contains("failed"), "{out}");
}

#[test]
fn whatever_a_file_monitor_says_in_a_sparse_index_the_disk_counts() {
    if !has(Need::Root) {
        return;
    }
    let outside = Outside::new();
    let script = "git init -q -b main s && cd s && git config user.name a && git config user.email a@example.org \
        && mkdir -p a b/c && echo heron > a/x.md && echo stork > b/c/y.md && echo crane > z.md && git add -A && git commit -q -m 1 \
        && git config core.fsmonitor /bin/true && git sparse-checkout set --cone --sparse-index a \
        && git update-index --fsmonitor && git update-index --fsmonitor-valid a/x.md && echo 'heron egret' > a/x.md; \
        cd .. && tidemill track s --worktree --once";
    outside.shell(script).well();
    for (word, path) in [("egret", "a/x.md"), ("stork", "b/c/y.md"), ("crane", "z.md")] {
        let out = outside.shell(&format!("tidemill search {word} --view worktree --mode bm25")).well();
        assert!(out.contains(path), "{word}: {out}");
    }
}
