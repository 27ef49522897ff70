//! *A filter passes exactly the entries that match its terms*: in random histories, at every snapshot, whether the rows were read
//! for this filter or an earlier one.

use crate::support::{self, History, Program, Repository, Step, Store, git, steps, tree};
use dataflows::data::{Card, DocumentPath};
use proptest::prelude::*;
use snapshots::{Ordinal, VersionId};
use tidemill::search::Filter;

type Says = fn(&DocumentPath, &Card) -> bool;

/// Expressions, with the same in plain Rust.
const FILTERS: [(&str, Says); 9] = [
    ("kind:CODE AND !language:Rust", |_, card| card.kind.as_str() == "code" && card.language != "rust"),
    ("kind:code", |_, card| card.kind.as_str() == "code"),
    ("!kind:code", |_, card| card.kind.as_str() != "code"),
    ("path:**/*.md", |path, _| path.display().ends_with(".md")),
    ("language:rust symbol:*camera*", |_, card| card.language == "rust" && card.symbol.contains("camera")),
    ("!path:**/*.rs module:?*", |path, card| !path.display().ends_with(".rs") && !card.module.is_empty()),
    ("label.nothing:*", |_, card| card.labels.iter().any(|(label, _)| label == "nothing")),
    ("!label.nothing:*", |_, card| card.labels.iter().all(|(label, _)| label != "nothing")),
    ("!symbol:*", |_, _| false),
];

proptest! {
    #![proptest_config(support::cases(6))]

    #[test]
    fn what_passes_is_what_the_terms_say(steps in steps(6..16)) {
        let mut history = History::new();
        let store = Store::new();
        for step in steps.into_iter().chain([Step::Sync]) {
            history.take(step);
            if !matches!(step, Step::Sync | Step::Restart) {
                continue;
            }
            store.track(git(history.repository.path(), &["*"], None));
            let searcher = store.searcher();
            let reader = searcher.reader();
            let versions: Vec<VersionId> = reader.with_archive(|archive| archive.kept().map(|version| version.id).collect());
            // The newest last: its rows are read after the known ones.
            for version in versions {
                let view = reader.view(&[version]).unwrap();
                let entries = reader.catalogue().entries_with_cards(view.entries.iter().map(Ordinal::new)).unwrap();
                for (expression, says) in FILTERS {
                    reader.let_go();
                    let passing = Filter::parse(expression).unwrap().entries(reader, &view, &[]).unwrap().entries;
                    let expected = view.entries.iter().zip(&entries);
                    let expected = expected.filter(|(_, (record, card))| says(&record.entry.path, card));
                    prop_assert_eq!(passing, expected.map(|(ordinal, _)| ordinal).collect(), "{}", expression);
                }
            }
        }
    }
}

#[test]
fn what_people_paste_means_the_path_that_it_is() {
    let repository = Repository::new();
    let paths = [
        "app/[slug]/page.tsx",
        "app/[[...all]]/page.tsx",
        "{{cookie}}/x.py",
        "my docs/read me.md",
        "my docs/kind:code and more.md",
        "docs/Stra\u{df}enba\u{308}ume.md",
    ];
    repository.commit(&tree(paths.map(|path| (path, "heron\n"))));
    let program = Program::new();
    program.json(&["track", repository.name(), "--once", "--json"]);
    let answer =
        |filter: &str| program.json(&["search", "heron", "--json", "--per-doc", "9", "--where", filter]).remove(0);
    let found = |filter: &str| -> Vec<String> {
        let hits = answer(filter)["hits"].as_array().unwrap().clone();
        let mut found: Vec<String> = hits.iter().map(|hit| hit["path"].as_str().unwrap().to_owned()).collect();
        found.sort();
        found
    };
    for path in paths {
        let absolute = format!("{}/{path}", repository.name());
        for typed in [path, &absolute, &format!("./{path}")] {
            assert_eq!(found(&format!("path:\"{typed}\"")), [path], "{typed}");
        }
    }
    // A word that is a term ends the path; quotes keep it together.
    for (typed, path) in [
        ("path:my docs/read me.md", paths[3]),
        ("path:my docs/read me.md kind:document", paths[3]),
        ("kind:document AND path:my docs/read me.md AND !language:rust", paths[3]),
        (r"path:my\ docs/read\ me.md", paths[3]),
        ("path:docs/Stra\u{df}enb\u{e4}u*", paths[5]),
        ("path:docs/Stra\u{df}enb\u{e4}ume.md", paths[5]),
        ("path:{{cookie}}", paths[2]),
        ("path:app/\\[slug\\]/*", paths[0]),
    ] {
        assert_eq!(found(typed), [path], "{typed}");
    }
    for folder in
        ["path:app", "path:app/", "path:./app/*", "path:app\\", "path:app AND kind:CODE", "path:app language:T*"]
    {
        let both: Vec<String> = vec![paths[1].to_owned(), paths[0].to_owned()];
        assert_eq!(found(folder), both, "{folder}");
    }
    assert_eq!(answer("path:app")["empty_filters"], serde_json::json!([]));
    assert_eq!(answer("path:ap kind:code")["empty_filters"], serde_json::json!(["path:ap"]));
}

#[test]
fn a_filter_that_lets_nothing_pass_is_named() {
    let repository = Repository::new();
    repository.commit(&tree([("a.md", "heron\n"), ("b.rs", "fn heron() {}\n")]));
    let program = Program::new();
    program.json(&["track", repository.name(), "--once", "--json"]);
    let said = |filter: &str| program.run(&["search", "heron", "--where", filter]).err;
    assert_eq!(said("path:app/x kind:code"), "no document matches `path:app/x`\n");
    assert_eq!(said("path:a.md kind:code"), "no document matches `path:a.md kind:code`\n");
    assert_eq!(
        said("language:elvish symbol:\"no such\" kind:code"),
        "no document matches `language:elvish`, or `symbol:\"no such\"`\n"
    );
    assert_eq!(said("kind:code"), "");
    let said = program.run(&["search", "glacier", "--where", "kind:code", "--mode", "bm25"]).err;
    assert!(said.contains("no word of the query stands anywhere"), "{said}");
    let said = program.run(&["search", "fn", "--where", "path:a.md", "--mode", "bm25"]).err;
    assert!(said.contains("no entry that passes --where holds a word of the query"), "{said}");
    program.refuses(&["search", "x", "--where", "path:b.rs kind:codes"], &["column 16", "code, document, data, text"]);
    program
        .refuses(&["search", "x", "--where", "path:b.rs colour:blue"], &["column 11", "`colour:blue`", "path, kind"]);
    program.refuses(&["search", "x", "--where", "path:no such.rs"], &["column 9", "`such.rs`", "KEY:PATTERN"]);
    program.refuses(&["search", "x", "--where", "symbol:operator["], &["column 8", "backslash"]);
}
