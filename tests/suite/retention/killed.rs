//! Collections that end hard: killed at any moment, or by a limit on writes, as on a full disk.

use super::{check, tracked};
use crate::support::{Picture, Program};
use std::process::Command;
use std::time::Duration;

#[test]
fn a_collection_that_is_killed_at_any_moment_loses_nothing_that_is_kept() {
    let (repository, line, store, pictures) = tracked(60);
    let program = Program::new();
    let data = store.layout().root().to_str().unwrap().to_owned();
    let collect = ["--data", &data, "snapshots", "gc", "--json"];
    let mut killed = 0;
    let looks = |kept: usize| {
        let checked = check(&store.layout());
        assert_eq!(checked.findings, [], "{kept} kept");
        let searcher = store.searcher();
        for (commit, picture) in line.iter().zip(&pictures).skip(60 - kept).step_by(9) {
            Picture::of(&searcher, Some(&commit.to_string())).assert_equals(picture, commit);
        }
    };
    for (round, kept) in (1..14).rev().map(|kept| 4 * kept).enumerate() {
        let text =
            format!("[retention]\nnewest = {kept}\n[[source]]\npath = \"{}\"\nname = \"engine\"\n", repository.name());
        std::fs::write(program.folder().join("tidemill.toml"), text).unwrap();
        if round % 4 == 3 {
            // No file may grow beyond some blocks: whatever is written next fails, or ends the process.
            let limited = Command::new("sh")
                .args(["-c", "ulimit -f $0; exec \"$@\"", &(round * 16).to_string(), env!("CARGO_BIN_EXE_tidemill")])
                .args(collect)
                .current_dir(program.folder())
                .output()
                .unwrap();
            killed += usize::from(!limited.status.success());
        } else {
            let mut live = program.start(&collect);
            std::thread::sleep(Duration::from_millis(15 + 11 * round as u64));
            killed += usize::from(live.line_within(Duration::ZERO).is_none());
            live.kill();
        }
        looks(kept);
    }
    assert!(killed > 3, "{killed} of 13 were ended in the middle");
    let outcome = program.json(&collect).remove(0);
    assert_eq!((&outcome["complete"], &outcome["kept"]), (&true.into(), &4.into()), "{outcome}");
    assert_eq!(check(&store.layout()).garbage, 0);
    looks(4);
}
