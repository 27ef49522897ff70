//! Live documents are separated from dead ones, and only the time of a search changes.

use super::history::answers_from_nothing;
use super::*;
use tantivy::schema::IndexRecordOption;

/// A head with a history: each commit adds some entries and keeps a window of the newest, and a few old ones.
struct Head {
    index: Index,
    /// Entries that died or came back, or were dead when they came.
    deaths: u64,
    moved: u64,
}

impl Head {
    fn new() -> Self {
        Self { index: Index::new(), deaths: 0, moved: 0 }
    }

    fn commit(&mut self, inserted: u32, alive: impl Fn(u32) -> bool) {
        let index = &mut self.index;
        let first = index.items.len() as u32;
        for _ in 0..inserted {
            index.add(item(index.items.len() as u64));
        }
        index.commit();
        let next: RoaringBitmap = (0..index.items.len() as u32).filter(|ordinal| alive(*ordinal)).collect();
        let (came, stayed) = (next.range_cardinality(first..), &index.alive & &next);
        self.deaths += index.alive.len() - stayed.len() + u64::from(inserted) - came + next.len() - stayed.len() - came;
        index.advance(next);
    }

    /// Moves everything that should move; after each step the view advances from the one before.
    fn settle(&mut self, limit: usize) {
        loop {
            let moved = self.index.relocate(limit);
            assert!(moved <= limit as u64);
            self.moved += moved;
            self.index.advance(self.index.alive.clone());
            if moved == 0 {
                return;
            }
        }
    }

    /// Returns how many postings of a term a search of the head reads.
    fn postings(&self) -> u64 {
        let term = tantivy::Term::from_field_text(self.index.view.fields().texts[0], "the");
        let met = self.index.view.segments().filter(|(_, segment)| segment.count() > 0).map(|(reader, _)| {
            let index = reader.inverted_index(term.field()).expect("it is read");
            let postings = index.read_block_postings(&term, IndexRecordOption::Basic).expect("it is read");
            postings.map_or(0, |postings| u64::from(postings.doc_freq()))
        });
        met.sum()
    }
}

proptest! {
    #![proptest_config(crate::index::cases(8))]

    /// Whatever dies, comes back and is moved: the head and every earlier version answer as a fresh index does.
    #[test]
    fn moving_what_is_alive_changes_no_answer(
        steps in prop::collection::vec((0u32..70, 1u32..120, 2u64..12, 1usize..50, 0u8..5), 4..9),
        seed in 0u64..1000,
    ) {
        let mut head = Head::new();
        let mut versions = Vec::new();
        for (at, (inserted, window, revive, limit, then)) in (0u64..).zip(steps) {
            let first = (head.index.items.len() as u32 + inserted).saturating_sub(window);
            head.commit(inserted, |ordinal| {
                ordinal >= first || scatter(u64::from(ordinal), seed + at).is_multiple_of(revive * 4)
            });
            let expected = answers_from_nothing(&head.index);
            versions.push((head.index.alive.clone(), head.index.statistics(), expected.clone()));
            match then {
                0 => {
                    head.moved += head.index.relocate(limit);
                    head.index.advance(head.index.alive.clone());
                }
                1 => {
                    let writer = head.index.writer.take().expect("the writer is open");
                    writer.close().expect("it merges what is left over");
                    head.index.reopen();
                }
                2 => {
                    head.settle(limit);
                    head.index.reopen();
                }
                _ => head.settle(limit),
            }
            let held = head.index.writer().held().clone();
            prop_assert_eq!(held.len(), head.index.items.len() as u64);
            head.index.advance(head.index.alive.clone());
            prop_assert_eq!(&ask(&head.index.view, &head.index.items), &expected);
            let checked = check(head.index.dir.path(), None).expect("it is read");
            prop_assert_eq!((checked.ordinals, checked.damaged), (held, Vec::new()));
        }
        prop_assert!(head.moved <= 4 * head.deaths, "{} moves for {} deaths and revivals", head.moved, head.deaths);
        for (alive, statistics, expected) in versions {
            let searcher = head.index.reader.reload().expect("it loads");
            let view = LexicalView::new(searcher, &head.index.maps, &alive, statistics).expect("it is held");
            prop_assert_eq!(ask(&view, &head.index.items), expected);
        }
    }
}

/// Ten dead documents for each live one, scattered over all segments: a search of the head reads as much as in a fresh index, and
/// little more, however commits continue.
#[test]
fn what_a_search_meets_follows_the_living_and_not_the_history() {
    let mut head = Head::new();
    let survives = |ordinal: u32, age: u32| age < 20 || scatter(u64::from(ordinal), 1).is_multiple_of(16);
    for commit in 0..14 {
        let next = (commit + 1) * 160;
        head.commit(160, |ordinal| survives(ordinal, next - ordinal));
        head.settle(200);
    }
    let (dead, living) = (head.index.items.len() as u64 - head.index.alive.len(), head.index.alive.len());
    assert!(dead >= 10 * living, "{dead} dead, {living} alive");
    let mut fresh = Head::new();
    for ordinal in &head.index.alive {
        let Item { identity, text, name } = &head.index.items[ordinal as usize];
        fresh.index.add(Item { identity: *identity, text: text.clone(), name: name.clone() });
    }
    let count = fresh.index.items.len() as u32;
    fresh.commit(0, |ordinal| ordinal < count);
    let (met, least) = (head.postings(), fresh.postings());
    assert!(10 * met <= 13 * least, "{met} postings met, {least} in an index of the living");
    assert!(head.moved > 0 && head.moved <= 4 * head.deaths, "{} moves for {} deaths", head.moved, head.deaths);
    assert_eq!(ask(&head.index.view, &head.index.items), answers_from_nothing(&head.index));
}

#[test]
fn what_was_moved_is_collected_like_anything_else() {
    let mut head = Head::new();
    head.commit(100, |_| true);
    head.commit(20, |ordinal| ordinal.is_multiple_of(5));
    head.settle(7);
    assert_eq!(head.moved, head.index.alive.len());
    let dead = (0u32..120).filter(|ordinal| !ordinal.is_multiple_of(5)).collect();
    let writer = head.index.writer();
    writer.remove(&dead).expect("they are removed");
    writer.compact(&mut || true).expect("it is compacted");
    let held = head.index.writer().held().clone();
    assert_eq!(held, head.index.alive);
    head.index.advance(head.index.alive.clone());
    assert_eq!(ask(&head.index.view, &head.index.items), answers_from_nothing(&head.index));
    assert_eq!(head.index.relocate(7), 0);
}

#[test]
fn an_older_searcher_and_a_killed_step_have_every_entry_once() {
    let mut head = Head::new();
    head.commit(60, |_| true);
    head.commit(10, |ordinal| ordinal.is_multiple_of(4));
    let before = std::fs::read(head.index.dir.path().join("meta.json")).expect("it is there");
    let other = LexicalReader::open(head.index.dir.path()).expect("a second door");
    let (alive, statistics) = (head.index.alive.clone(), head.index.statistics());
    let view = |searcher| LexicalView::new(searcher, &OrdinalMaps::new(), &alive, statistics).expect("it is held");
    let old = view(other.searcher());
    let expected = ask(&old, &head.index.items);
    assert!(head.index.relocate(9) > 0);
    assert_eq!(ask(&old, &head.index.items), expected);
    assert_eq!(ask(&view(other.searcher()), &head.index.items), expected);
    assert_eq!(ask(&view(other.reload().expect("it loads")), &head.index.items), expected);
    // As if the process had ended before the last step: the files exist, and no list names them.
    drop(head.index.writer.take());
    std::fs::write(head.index.dir.path().join("meta.json"), before).expect("it is written");
    head.index.reopen();
    assert_eq!(ask(&view(other.reload().expect("it loads")), &head.index.items), expected);
    assert!(head.index.relocate(5) > 0);
    assert_eq!(ask(&view(other.reload().expect("it loads")), &head.index.items), expected);
}

#[test]
fn a_copy_is_taken_over_when_nobody_waits_and_not_before() {
    let mut head = Head::new();
    head.commit(60, |_| true);
    head.commit(1, |ordinal| ordinal.is_multiple_of(4));
    head.index.copied(9);
    // Entries that are committed meanwhile are in other segments.
    head.commit(5, |ordinal| ordinal.is_multiple_of(4) || ordinal > 60);
    assert_eq!(head.index.relocate(9), 9);
    head.index.advance(head.index.alive.clone());
    assert_eq!(ask(&head.index.view, &head.index.items), answers_from_nothing(&head.index));
    assert_eq!(head.index.writer().held().len(), 66);
}

#[test]
fn a_copy_of_what_left_its_segment_meanwhile_is_thrown_away() {
    let mut head = Head::new();
    head.commit(60, |_| true);
    head.commit(10, |ordinal| ordinal.is_multiple_of(4));
    head.index.copied(200);
    // One of the copied documents dies and is collected.
    let dead = RoaringBitmap::from([8]);
    head.index.writer().remove(&dead).expect("it is removed");
    let alive = &head.index.alive - &dead;
    head.index.advance(alive);
    let before = head.index.writer().held().clone();
    assert!(!before.contains(8));
    assert!(head.index.relocate(200) > 0, "it is copied again");
    assert_eq!(*head.index.writer().held(), before, "and what was collected does not come back");
    head.index.advance(head.index.alive.clone());
    assert_eq!(ask(&head.index.view, &head.index.items), answers_from_nothing(&head.index));
    let merged = head.index.writer().merge_all();
    merged.expect("what was copied is merged like anything else");
    assert_eq!(*head.index.writer().held(), before);
    // Its files are removed too once they are merged: those of one segment are left.
    let files = std::fs::read_dir(head.index.dir.path()).expect("it is read").map(|file| file.expect("a file").path());
    let (own, other): (Vec<_>, Vec<_>) = files.partition(|file| file.extension().is_some_and(|kind| kind == "term"));
    assert_eq!(own.len(), 1, "{own:?} and {other:?}");
}

#[test]
fn a_writer_that_ends_beside_a_copy_leaves_nothing_of_it() {
    let mut head = Head::new();
    head.commit(60, |_| true);
    head.commit(10, |ordinal| ordinal.is_multiple_of(4));
    let expected = answers_from_nothing(&head.index);
    head.index.copied(200);
    assert!(head.index.dir.path().join("copied").exists());
    head.index.reopen();
    assert!(!head.index.dir.path().join("copied").exists());
    head.index.advance(head.index.alive.clone());
    assert_eq!(ask(&head.index.view, &head.index.items), expected);
    assert!(head.index.relocate(200) > 0);
}

#[test]
fn large_merges_wait_while_commits_follow_each_other_and_small_ones_do_not() {
    let mut head = Head::new();
    head.index.writer().let_large_merges_wait(true);
    (0..16).for_each(|_| head.commit(65, |_| true));
    assert_eq!(head.index.segments(), 16);
    (0..64).for_each(|_| head.commit(1, |_| true));
    let merged = |index: &mut Index, most: usize| {
        let begun = std::time::Instant::now();
        while index.segments() > most {
            assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{} segments", index.segments());
            index.relocate(200);
        }
    };
    merged(&mut head.index, 16 + 15);
    assert!(head.index.segments() > 16);
    head.index.writer().let_large_merges_wait(false);
    merged(&mut head.index, 8);
    head.index.advance(head.index.alive.clone());
    assert_eq!(ask(&head.index.view, &head.index.items), answers_from_nothing(&head.index));
}

#[test]
fn what_nobody_needs_is_forgotten_in_short_steps_and_its_space_given_back() {
    let mut head = Head::new();
    head.commit(60, |_| true);
    head.commit(10, |ordinal| ordinal.is_multiple_of(4));
    let other = LexicalReader::open(head.index.dir.path()).expect("a second door");
    let (alive, statistics) = (head.index.alive.clone(), head.index.statistics());
    let view = |searcher| LexicalView::new(searcher, &OrdinalMaps::new(), &alive, statistics).expect("it is held");
    let expected = ask(&view(other.searcher()), &head.index.items);
    // Written entries that no version names yet stay as well.
    let below = head.index.writer().next_ordinal() - 2;
    let wanted = &alive | &RoaringBitmap::from_iter(below..below + 2);
    let (mut removed, mut steps) = (0, 0);
    loop {
        match head.index.writer().forget(&alive, below).expect("nothing goes wrong") {
            Forgotten::Some(entries) => {
                (removed, steps) = (removed + entries, steps + 1);
                // Concurrent searches find every entry that stays.
                assert_eq!(ask(&view(other.reload().expect("it loads")), &head.index.items), expected);
            }
            Forgotten::Later => std::thread::sleep(std::time::Duration::from_millis(1)),
            Forgotten::All => break,
        }
    }
    assert!(removed > 0 && steps > 0);
    assert_eq!(*head.index.writer().held(), wanted);
    let searcher = other.reload().expect("it loads");
    assert!(searcher.segment_readers().iter().all(|segment| !segment.has_deletes()), "their space is given back");
    assert_eq!(ask(&view(searcher), &head.index.items), expected);
    // Merges continue as before.
    head.commit(10, |ordinal| wanted.contains(ordinal) || ordinal >= 70);
    assert_eq!(head.index.writer().forget(&wanted, 0).expect("nothing goes wrong"), Forgotten::All);
}
