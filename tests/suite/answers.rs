//! *The result of a question*: the requested number of hits, each text once on request, scores that never rise, and a message
//! about unknown words.

use crate::support::{self, Program, Repository, Store, Tree, git};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use tidemill::search::{Hit, ListName, Mode, Request, Searcher};

const WORDS: [&str; 24] = [
    "glacier", "camera", "spawn", "light", "shadow", "river", "index", "query", "heron", "window", "buffer", "signal",
    "mesh", "vertex", "sound", "thread", "scene", "asset", "plugin", "schedule", "system", "entity", "world",
    "texture",
];
const MODES: [Mode; 3] = [Mode::Hybrid, Mode::Bm25, Mode::Vector];

/// Returns the words of a text: the same for the same number.
fn text(number: usize) -> String {
    let word = |place: usize| WORDS[(number * 7 + place * place * (number % 5 + 1)) % WORDS.len()];
    (0..4 + number % 9).map(word).collect::<Vec<_>>().join(" ")
}

/// 1,500 files: 1,200 with one of 300 texts, the rest with several sections, so that a document has several entries.
fn many() -> Tree {
    let mut files = Tree::new();
    for number in 0..1_200 {
        let path = format!("notes/{}/{number}.txt", number % 17);
        files.insert(path.into_bytes(), format!("{}\n", text(number * number % 300)).into_bytes());
    }
    for number in 0..300 {
        let section = |at: usize| format!("# {}\n\n{}\n\n", WORDS[at % WORDS.len()], text(at % 400).repeat(20));
        let sections: String = (0..4).map(|at| section(number * 3 + at)).collect();
        files.insert(format!("guides/{number}.md").into_bytes(), sections.into_bytes());
    }
    files
}

/// Returns a store of these files, and their repository.
fn store() -> (Repository, Store) {
    let repository = Repository::new();
    repository.commit(&many());
    let store = Store::new();
    store.track(git(repository.path(), &["*"], None));
    (repository, store)
}

fn ask(searcher: &Searcher, request: &Request) -> Vec<Hit> {
    searcher.search(request).unwrap().hits
}

fn question() -> impl Strategy<Value = (String, Mode)> {
    let words = prop::collection::vec(prop::sample::select(&WORDS[..]), 1..5);
    (words.prop_map(|words| words.join(" ")), prop::sample::select(&MODES[..]))
}

/// The compared part of a hit.
fn place(hit: &Hit) -> (usize, u32, String, String, Option<usize>, Option<usize>) {
    let ranks = [ListName::BM25, ListName::VECTOR].map(|list| hit.ranks.of(&list).map(|ranked| ranked.rank));
    (hit.rank, hit.score.to_bits(), hit.path.to_string(), hit.text.clone(), ranks[0], ranks[1])
}

#[test]
fn a_larger_k_only_adds_and_scores_never_rise() {
    let (_repository, store) = store();
    let searcher = store.searcher();
    proptest!(support::cases(24), |(
        (query, mode) in question(),
        k in prop_oneof![1_usize..900, Just(200), Just(201), Just(800), Just(801)],
        per_document in 1_usize..4,
        fold: bool,
    )| {
        let request = Request { mode, k, per_document, fold, ..Request::new(&query) };
        let fewer = ask(&searcher, &request);
        let more = ask(&searcher, &Request { k: k + 1, ..request.clone() });
        let all = ask(&searcher, &Request { k: 10_000, ..request });
        prop_assert!(fewer.len() == k || fewer.len() == all.len(), "{} of {} hits", fewer.len(), all.len());
        let places = |hits: &[Hit]| hits.iter().map(place).collect::<Vec<_>>();
        prop_assert_eq!(places(&all[..fewer.len()]), places(&fewer));
        prop_assert_eq!(places(&all[..more.len()]), places(&more));
        prop_assert!(all.is_sorted_by(|left, right| left.score >= right.score), "scores rise");
    });
}

#[test]
fn folded_texts_count_once_and_a_document_gives_so_many() {
    let (_repository, store) = store();
    let searcher = store.searcher();
    proptest!(support::cases(24), |(
        (query, mode) in question(),
        k in prop_oneof![1_usize..40, 1_usize..900],
        per_document in 1_usize..4,
        filter in prop::sample::select(&["", "path:notes/*", "path:guides/1*"][..]),
    )| {
        let filter = (!filter.is_empty()).then(|| tidemill::search::Filter::parse(filter).unwrap());
        let request = Request { mode, k: 10_000, per_document: usize::MAX, filter, ..Request::new(&query) };
        let ranked = ask(&searcher, &request);
        // The simple specification: a hit has a new text, and its document has fewer hits than the limit.
        let mut expected: Vec<&Hit> = Vec::new();
        for hit in &ranked {
            let is_double = expected.iter().any(|before| before.text == hit.text);
            let of_document = expected.iter().filter(|before| before.path == hit.path).count();
            if !is_double && of_document < per_document {
                expected.push(hit);
            }
        }
        expected.truncate(k);
        let folded = ask(&searcher, &Request { k, per_document, fold: true, ..request.clone() });
        let named = |hits: &mut dyn Iterator<Item = &Hit>| -> Vec<(String, String)> {
            hits.map(|hit| (hit.path.to_string(), hit.text.clone())).collect()
        };
        prop_assert_eq!(named(&mut folded.iter()), named(&mut expected.into_iter()));
        // And every hit names all paths of its text that pass the filter, its own first.
        let view = searcher.reader().view(&[searcher.revisions().select(searcher.reader(), None, None, None).unwrap()[0].version]).unwrap();
        let passing = match &request.filter {
            Some(filter) => filter.entries(searcher.reader(), &view, &[]).unwrap().entries,
            None => view.entries.clone(),
        };
        let mut paths: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for record in searcher.reader().catalogue().entries(passing.iter().map(snapshots::Ordinal::new)).unwrap() {
            use dataflows::memo::Memo;
            let text = searcher.reader().memo().text(record.entry.text).unwrap();
            paths.entry(text).or_default().insert(record.entry.path.to_string());
        }
        for hit in &folded {
            let all: Vec<String> = hit.paths.iter().map(ToString::to_string).collect();
            prop_assert_eq!(&all[0], &hit.path.to_string());
            prop_assert_eq!(all.iter().cloned().collect::<BTreeSet<_>>(), paths[&hit.text].clone());
            prop_assert_eq!(all.len(), paths[&hit.text].len(), "each once");
        }
    });
}

#[test]
fn three_hundred_identical_texts_are_one_hit_of_five() {
    let repository = Repository::new();
    let mut files = Tree::new();
    for number in 0..300 {
        files.insert(format!("dup/{number}.md").into_bytes(), b"# Title\n\nglacier glacier glacier\n".to_vec());
    }
    for number in 0..20 {
        let other =
            format!("# Other {number}\n\nglacier and a text number {number} with {} further words\n", number * 7919);
        files.insert(format!("oth/{number}.md").into_bytes(), other.into_bytes());
    }
    repository.commit(&files);
    let program = Program::new();
    program.json(&["track", repository.name(), "--once", "--json"]);
    for mode in ["bm25", "vector", "hybrid"] {
        let answer = &program.json(&["search", "glacier", "--mode", mode, "-k", "5", "--fold", "--json"])[0];
        let paths: Vec<usize> =
            answer["hits"].as_array().unwrap().iter().map(|hit| hit["paths"].as_array().unwrap().len()).collect();
        assert_eq!(paths.len(), 5, "{mode}");
        assert_eq!(paths.iter().sum::<usize>(), 304, "{mode}: one hit has three hundred paths");
    }
    let shown = program.run(&["search", "glacier", "-k", "1", "--fold", "--mode", "bm25"]).out;
    assert!(shown.contains("and at 289 more"), "{shown}");
    assert!(shown.contains("\n1 hit in "), "{shown}");
}

#[test]
fn what_was_not_asked_for_or_stands_nowhere_is_said() {
    let repository = Repository::new();
    repository
        .commit(&support::tree([("a.md", "# Heron\n\nThe heron SpawnCameras at dawn.\n"), ("b.txt", "glacier\n")]));
    let program = Program::new();
    program.json(&["track", repository.name(), "--once", "--json"]);
    let answer = |arguments: &[&str]| program.json(&[&["search", "--json"], arguments].concat()).remove(0);
    for mode in ["hybrid", "bm25", "vector"] {
        let found = answer(&["heron Xqzzv spawn_cameras flurbl flurbl", "--mode", mode]);
        assert_eq!(found["unknown_terms"], serde_json::json!(["Xqzzv", "flurbl"]), "{mode}");
        assert_eq!(found["dropped_terms"], 0);
        let run = program.run(&["search", "xqzzv flurbl", "--mode", mode]);
        assert!(
            run.err.contains("no word of the query stands anywhere") && run.err.contains("xqzzv, flurbl"),
            "{}",
            run.err
        );
        assert_eq!(program.run(&["search", "xqzzv flurbl", "--mode", mode, "--json"]).err, "", "JSON says it itself");
    }
    // Unrelated hits of the vector index are marked, and only those.
    for mode in ["hybrid", "vector"] {
        let marks = |query: &str| -> Vec<(String, bool)> {
            let hits = answer(&[query, "--mode", mode])["hits"].as_array().unwrap().clone();
            hits.iter().map(|hit| (hit["path"].as_str().unwrap().to_owned(), hit["weak"] == true)).collect()
        };
        let nonsense = marks("xqzzv flurbl");
        assert!(!nonsense.is_empty() && nonsense.iter().all(|(_, weak)| *weak), "{mode}: {nonsense:?}");
        for query in ["heron at dawn", "spawn a camera"] {
            let found = marks(query);
            assert!(found.contains(&("a.md".to_owned(), false)), "{mode}: {found:?}");
        }
        assert!(program.run(&["search", "xqzzv flurbl", "--mode", mode]).out.contains("  (weak)\n"));
        assert!(!program.run(&["search", "heron", "--mode", mode, "-k", "1"]).out.contains("(weak)"));
    }
    assert_eq!(program.run(&["search", "heron"]).err, "", "nothing to say");
    let partly = program.run(&["search", "heron flurbl"]);
    assert_eq!(partly.err, "not found anywhere in what was searched: flurbl\n");
    let phrase = program.run(&["search", "\"dawn heron\"", "--mode", "bm25"]);
    assert!(phrase.err.contains("no phrase in quotes"), "{}", phrase.err);
    let nothing = program.run(&["search", "?!", "--mode", "bm25"]);
    assert!(nothing.err.contains("no word to look for"), "{}", nothing.err);

    let many: String = (0..70_u8)
        .map(|number| format!("{}{} ", char::from(b'a' + number % 26), "x".repeat(1 + usize::from(number))))
        .collect();
    assert_eq!(answer(&[&many])["dropped_terms"], 6);
    assert!(program.run(&["search", &many]).err.contains("6 terms left out"));
}

#[test]
fn a_query_of_a_megabyte_is_answered_soon_and_a_longer_one_refused() {
    let (_repository, store) = store();
    let searcher = store.searcher();
    let text = |bytes: usize| -> String {
        let mut text: String =
            (0..).map(|number: u32| format!("word{number} \"glacier river {number}\" ")).take(bytes / 32).collect();
        text.truncate(bytes);
        text
    };
    let started = std::time::Instant::now();
    let answer = searcher.search(&Request::new(text(1 << 20))).unwrap();
    assert!(answer.dropped_terms > 10_000 && answer.hits.len() == 10, "{}", answer.dropped_terms);
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
    let refused = searcher.search(&Request::new("word ".repeat(1 << 18))).unwrap_err();
    assert!(refused.to_string().contains("1310720 bytes"), "{refused}");
}
