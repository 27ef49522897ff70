//! An interrupt ends a tracker within a second, whatever it does, and the next tracker publishes the rest.

use crate::support::{Program, Repository, tree};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Files that each take a while to cut, but not too long.
fn slow_files(number: usize) -> Vec<(String, String)> {
    let text = |index: usize| format!("// {index}\n") + &"fn a(b: C<D>) -> E { f(g, |h| i?) }\n".repeat(25_000);
    (0..number).map(|index| (format!("src/file_{index}.rs"), text(index))).collect()
}

/// Returns the workers of a tracker, by the numbers of their processes.
fn workers_of(tracker: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |number: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(1)?.parse().ok());
        parent == Some(tracker)
    };
    numbers.filter(is_child).collect()
}

/// Waits for something that must come.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn repository(number: usize) -> Repository {
    let repository = Repository::new();
    let files = slow_files(number);
    repository.commit(&tree(files.iter().map(|(path, text)| (path.as_str(), text.as_str()))));
    repository
}

fn digest(lines: &[Value]) -> &Value {
    &lines.iter().find(|line| line.get("digest").is_some()).unwrap()["digest"]
}

#[test]
fn an_interrupt_ends_a_first_load_and_the_next_start_completes_it() {
    let repository = repository(10);
    let alone = Program::new();
    let expected = alone.json(&["track", repository.name(), "--once", "--json"]);
    for (signal, arguments) in [("INT", &["--once", "--json"][..]), ("TERM", &["--json"][..])] {
        let program = Program::new();
        let mut tracker = program.start(&[&["track", repository.name()], arguments].concat());
        wait_until("a worker is at work", || !workers_of(tracker.id()).is_empty());
        tracker.signal(signal);
        let asked = Instant::now();
        assert_eq!(tracker.end(), Some(0), "{signal}");
        assert!(asked.elapsed() < Duration::from_secs(2), "{signal}: {:?}", asked.elapsed());
        // Nothing of the current epoch is published.
        program.refuses(&["snapshots", "list"], &["the store has no version yet"]);
        let next = program.json(&["track", repository.name(), "--once", "--json"]);
        assert_eq!(digest(&next), digest(&expected), "{signal}");
    }
}

#[test]
fn a_tracker_that_is_killed_leaves_no_worker() {
    let repository = repository(8);
    let program = Program::new();
    let mut tracker = program.start(&["track", repository.name(), "--json"]);
    wait_until("a worker is at work", || !workers_of(tracker.id()).is_empty());
    let workers = workers_of(tracker.id());
    tracker.kill();
    let is_gone = |worker: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{worker}/stat")).unwrap_or_default();
        // A zombie, whose status is not reaped yet, holds nothing.
        stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('Z'))
    };
    wait_until("every worker ends", || workers.iter().all(is_gone));
}
