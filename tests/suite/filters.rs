//! *A filter lets pass exactly what its terms say of each entry*: in random histories, at every snapshot, whether the rows were read
//! for this filter or one before.

use crate::support::{self, History, Step, Store, git, steps};
use dataflows::data::{Card, DocumentPath};
use proptest::prelude::*;
use snapshots::{Ordinal, VersionId};
use tidemill::search::Filter;

type Says = fn(&DocumentPath, &Card) -> bool;

/// Expressions, and what they say in plain Rust.
const FILTERS: [(&str, Says); 8] = [
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
            // The newest last: its rows are read behind those that are known.
            for version in versions {
                let view = reader.view(&[version]).unwrap();
                let entries = reader.catalogue().entries_with_cards(view.entries.iter().map(Ordinal::new)).unwrap();
                for (expression, says) in FILTERS {
                    reader.let_go();
                    let passing = Filter::parse(expression).unwrap().entries(reader, &view).unwrap();
                    let expected = view.entries.iter().zip(&entries);
                    let expected = expected.filter(|(_, (record, card))| says(&record.entry.path, card));
                    prop_assert_eq!(passing, expected.map(|(ordinal, _)| ordinal).collect(), "{}", expression);
                }
            }
        }
    }
}
