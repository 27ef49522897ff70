//! *Exhausted resources are named*: threads, open files, the disk, standard error. A command ends with status 1 and one line that
//! names the limit; it neither panics nor hangs, and published versions stay.

use crate::support::{Need, Outside, has};

fn tracked() -> Outside {
    let outside = Outside::new();
    outside.shell("tidemill track dir:docs --once").well();
    outside
}

#[test]
fn a_standard_error_that_is_full_or_gone_changes_no_exit_status() {
    if !has(Need::Root) {
        return;
    }
    let outside = tracked();
    let failing = "tidemill --data none search x";
    let warning = "TIDEMILL_LOG=debug tidemill search heron";
    for (command, status) in [(failing, 1), (warning, 0), ("tidemill --nonsense", 2), ("tidemill --help", 0)] {
        for standard_error in ["2>/dev/full", "2>&-", "2>/dev/null"] {
            let ended = outside.shell(&format!("{command} {standard_error} >/dev/null"));
            assert_eq!(ended.status, Some(status), "{command} {standard_error}: {ended:?}");
        }
        // A pipe without a reader: the reader is gone before the program is started.
        let script =
            format!("mkfifo pipe; sleep 60 <pipe & exec 3>pipe; kill $!; wait; rm pipe; {command} 2>&3 >/dev/null");
        assert_eq!(outside.shell(&script).status, Some(status), "{command}");
    }
}

#[test]
fn standard_streams_that_are_closed_at_the_start_are_no_files_of_the_store() {
    if !has(Need::Root) {
        return;
    }
    let outside = tracked();
    outside.shell("echo 'A heron more.' >> docs/heron.md; tidemill track dir:docs --once <&- >&- 2>&-").well();
    let found = outside.shell("tidemill search more; tidemill snapshots verify").well();
    assert!(found.contains("A heron more."), "{found}");
}

#[test]
fn logs_in_a_file_have_no_colours() {
    if !has(Need::Root) {
        return;
    }
    let ended = tracked().shell("TIDEMILL_LOG=debug tidemill search heron");
    assert!(ended.err.contains("DEBUG") && !ended.err.contains('\x1b'), "{ended:?}");
}

#[test]
fn few_open_files_are_raised_as_far_as_they_may_be_or_named() {
    if !has(Need::Root) {
        return;
    }
    let outside = tracked();
    let limited = |limits: &str, command: &str| outside.shell(&format!("prlimit --nofile={limits} tidemill {command}"));
    let again = "track dir:docs --once";
    limited("20:20", again).refused(&["Too many open files", "may open 20 files", "`ulimit -n 1024`"]);
    limited("20:4096", again).well();
    assert!(limited("20:20", "search heron").well().contains("heron.md"));
    limited("7:7", "search heron").refused(&["Too many open files", "may open 7 files"]);
    let commit = "git -C r -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m x";
    outside.shell(&format!("git init -q -b main r && {commit}")).well();
    for files in 5..20 {
        let ended = limited(&format!("{files}:{files}"), "track r --once");
        ended.refused(&["Too many open files", &format!("may open {files} files")]);
    }
}

#[test]
fn without_threads_a_search_answers_and_a_tracker_names_the_limit() {
    if !has(Need::Root) {
        return;
    }
    let outside = tracked();
    outside.shell("mkdir mine; chmod 777 mine").well();
    let mut ended_well = 0;
    // One is used by the program that ends it if it hangs.
    for threads in 2..24 {
        // The limit counts what a user runs, so each run has a user of its own.
        let limited = |command: &str| {
            let script = format!("exec prlimit --nproc={threads}:{threads} tidemill {command}");
            outside.other_user(61000 + threads, 65534, &script)
        };
        let found = limited("search heron");
        assert!(found.status == Some(0) && found.out.contains("heron.md"), "{threads} threads: {found:?}");
        let store = format!("--data mine/{threads} track dir:docs --once");
        match limited(&store) {
            ended if ended.status == Some(0) => ended_well += 1,
            ended => ended
                .refused(&["Resource temporarily unavailable", &format!("may have {threads} processes and threads")]),
        }
    }
    assert!(ended_well > 0, "22 threads are enough");
}

#[test]
fn a_full_disk_is_named_wherever_it_is_met_and_nothing_that_was_published_is_lost() {
    if !has(Need::Root) {
        return;
    }
    let outside = tracked();
    let words = "seq 4000 | sed 's/.*/# Heron &\\n\\nWord& stands at weir &./' > docs/many.md; ";
    let mut refused = 0;
    for left in (40..2400).step_by(200) {
        let full = format!(
            "{words} mkdir -p full; mount -t tmpfs -o size=16m t full; cp -r store full/store; \
             left=$(($(df --output=avail full | tail -1) - {left})); head -c ${{left}}k /dev/zero > full/zeros; \
             export TIDEMILL_DATA=full/store; tidemill track dir:docs --once; status=$?; \
             tidemill search weir | grep -q heron.md || status=90; exit $status"
        );
        let ended = outside.shell(&full);
        if ended.status != Some(0) {
            refused += 1;
            ended.refused(&["o space left on device"]);
        }
    }
    assert!(refused > 5, "{refused} of 12 met a full disk");
}

#[test]
fn few_addresses_are_named_and_enough_of_them_are_used() {
    if !has(Need::Root) {
        return;
    }
    let outside = tracked();
    let limited = |megabytes: u32, command: &str| {
        outside.shell(&format!("ulimit -v {}; exec tidemill {command}", u64::from(megabytes) << 10))
    };
    for megabytes in [150, 300, 900, 2000, 2559] {
        for command in ["search heron", "status", "track dir:docs --once", "--data new track dir:docs --once"] {
            limited(megabytes, command).refused(&[&format!("{megabytes} MiB of addresses"), "`ulimit -v`"]);
        }
    }
    for megabytes in [2600, 5000, 17_000, 20_000] {
        assert!(limited(megabytes, "search heron").well().contains("heron.md"));
        limited(megabytes, &format!("--data new{megabytes} track dir:docs --once")).well();
    }
}

#[test]
fn a_control_group_without_threads_is_named_by_its_file() {
    let group = std::path::Path::new("/sys/fs/cgroup/pids/tidemill-test");
    if !has(Need::Root) || std::fs::create_dir_all(group).is_err() || !group.join("pids.max").exists() {
        return;
    }
    let outside = tracked();
    let limited = |most: u32, command: &str| {
        let join = format!("echo {most} > {0}/pids.max; echo $$ > {0}/cgroup.procs", group.display());
        outside.shell(&format!("{join}; exec tidemill {command}"))
    };
    for most in [1, 3, 5, 8, 11] {
        assert!(limited(most, "search heron").well().contains("heron.md"), "{most} threads");
        let allows = format!("tidemill-test/pids.max allows {most} processes and threads");
        limited(most, "track dir:docs --once").refused(&["Resource temporarily unavailable", &allows]);
    }
    limited(64, "track dir:docs --once").well();
    std::fs::remove_dir(group).unwrap();
}
