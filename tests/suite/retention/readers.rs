//! Living readers during a collection: they find everything that existed at their last refresh.

use super::{check, commits_of, newest, refuses, tracked};
use crate::support::{Picture, Program};
use std::sync::atomic::{AtomicBool, Ordering};
use tidemill::engine::collect;

#[test]
fn a_reader_that_was_open_answers_as_before_until_it_looks_again() {
    let (repository, line, store, pictures) = tracked(10);
    let (layout, config) = (store.layout(), newest(repository.path(), 3));
    let mut reader = store.searcher();
    let outcome = collect(&layout, &config, &mut || true).unwrap();
    assert_eq!((outcome.dropped, outcome.readers), (7, 1));
    assert!(outcome.collected.held_back > 0, "{outcome:?}");
    // Nothing that it asks for was looked up before.
    for (commit, picture) in line.iter().zip(&pictures) {
        Picture::of(&reader, Some(&commit.to_string())).assert_equals(picture, commit);
    }
    assert_eq!(check(&layout).garbage, outcome.collected.held_back);
    assert!(reader.refresh().unwrap());
    assert_eq!(commits_of(&reader).len(), 3);
    refuses(&reader, line[0]);
    let outcome = collect(&layout, &config, &mut || true).unwrap();
    assert_eq!((outcome.dropped, outcome.collected.held_back), (0, 0));
    assert_eq!(check(&layout).garbage, 0);
    for (commit, picture) in line.iter().zip(&pictures).skip(7) {
        Picture::of(&reader, Some(&commit.to_string())).assert_equals(picture, commit);
    }
}

#[test]
fn searches_that_begin_while_another_process_collects_answer_as_before() {
    let (repository, line, store, pictures) = tracked(40);
    let program = Program::new();
    let settings = program.folder().join("tidemill.toml");
    let data = store.layout().root().to_str().unwrap().to_owned();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looks: Vec<_> = [39, 30]
            .into_iter()
            .map(|at| {
                let (done, store, line, pictures) = (&done, &store, &line, &pictures);
                scope.spawn(move || {
                    let mut looks = 0;
                    while !done.load(Ordering::Relaxed) {
                        let searcher = store.searcher();
                        Picture::of(&searcher, Some(&line[at].to_string())).assert_equals(&pictures[at], at);
                        looks += 1;
                    }
                    looks
                })
            })
            .collect();
        for newest in [35, 30, 25, 20, 15, 12, 10] {
            let path = repository.name();
            let text = format!("[retention]\nnewest = {newest}\n[[source]]\npath = \"{path}\"\nname = \"engine\"\n");
            std::fs::write(&settings, text).unwrap();
            let outcome = program.json(&["--data", &data, "snapshots", "gc", "--json"]).remove(0);
            assert_eq!(outcome["kept"], newest, "{outcome}");
        }
        done.store(true, Ordering::Relaxed);
        assert!(looks.into_iter().all(|thread| thread.join().unwrap() > 0));
    });
    program.json(&["--data", &data, "snapshots", "gc", "--json"]);
    let checked = check(&store.layout());
    assert_eq!((checked.findings, checked.garbage), (Vec::new(), 0));
}
