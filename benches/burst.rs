//! How long until a directory is consistent again after very many files were written at once, as by a checkout or an unpacked
//! archive?
//!
//! `cargo bench --bench burst` writes 20,000 files (`TIDEMILL_BENCH_FILES`) into a directory that is tracked live. It prints the
//! time from the last write until the last file is published, the number of epochs, and the peak resident memory. Every file must
//! be published, and the result must equal what a second tracker finds on disk.

mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use support::Machine;

fn main() {
    let files: u64 = std::env::var("TIDEMILL_BENCH_FILES").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000);
    let folder = tempfile::tempdir().expect("a folder for temporary files can be made");
    let (notes, data) = (folder.path().join("notes"), folder.path().join("data"));
    std::fs::create_dir(&notes).expect("the folder can be made");
    std::fs::write(notes.join("first.txt"), "The first file.\n").expect("the file can be written");

    let track = |flags: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidemill"));
        command.arg("track").arg(format!("dir:{}", notes.display())).arg("--data").arg(&data).arg("--json").args(flags);
        command.stdout(Stdio::piped()).stderr(Stdio::inherit());
        command
    };
    let mut tracker = track(&["--poll", "1h"]).spawn().expect("the program starts");
    let mut lines = BufReader::new(tracker.stdout.take().expect("it was asked for")).lines();
    let mut next = || -> Value {
        let line = lines.next().expect("the program goes on").expect("lines can be read");
        serde_json::from_str(&line).expect("every line is JSON")
    };
    next();

    let began = Instant::now();
    let bytes: u64 = (0..files).map(|number| write(&notes, number)).sum();
    let written = Instant::now();
    let (mut added, mut epochs, mut commit) = (0, 0, Value::Null);
    while added < files {
        let line = next();
        added += line["documents"]["added"].as_u64().expect("a line has the number of documents");
        epochs += 1;
        commit = line["commit"].clone();
    }
    let after = written.elapsed();
    let peak = support::memory_megabytes(tracker.id(), "VmHWM");
    // No work is in progress, so ending it at once loses nothing.
    tracker.kill().and_then(|()| tracker.wait()).expect("the program can be ended");

    let again = track(&["--once"]).output().expect("the program starts");
    assert!(again.status.success());
    let again = String::from_utf8(again.stdout).expect("the program prints UTF-8");
    assert_eq!(again.lines().count(), 1, "what was published is what the disk holds: {again}");

    println!("{}", Machine::name());
    println!("\n| what | figure |\n|---|---|");
    println!("| files, bytes | {files}, {:.1} MB |", bytes as f64 / 1e6);
    println!("| writing them | {:.1} s |", (written - began).as_secs_f64());
    println!("| consistent after the last write | {:.1} s |", after.as_secs_f64());
    println!("| epochs | {epochs} |");
    println!("| peak resident memory | {peak:.0} MB |");
    println!("| version | {commit} |");
}

/// Writes a file of some fifty lines that no other file shares; returns its bytes.
fn write(folder: &Path, number: u64) -> u64 {
    let path = folder.join(format!("d{}/d{}/f{number}.rs", number % 40, number / 40 % 25));
    let functions = (0..10).map(|n| {
        format!(
            "/// Turns wheel {n} of mill {number}.\nfn turn_{number}_{n}(tide: u32) -> u32 {{\n    tide + {}\n}}\n\n",
            number * n
        )
    });
    let text: String = functions.collect();
    std::fs::create_dir_all(path.parent().expect("it stands in a folder")).expect("the folder can be made");
    std::fs::write(path, &text).expect("the file can be written");
    text.len() as u64
}
