//! Promise: a commit costs its delta: at most 160 bytes and 4 for each entry it moves, checkpoints included.

use snapshots::*;

/// Numbers that look random and are the same everywhere (xorshift64*, Vigna 2016, "An experimental exploration of
/// Marsaglia's xorshift generators, scrambled").
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) % u64::from(bound)) as u32
    }
}

/// Commits per group, because a thousand syncs would take seconds; each commit is charged [`FRAME`] for a frame.
const GROUP: u32 = 25;

/// Bytes around a group in the log.
const FRAME: f64 = 14.0;

/// A history like that of a large repository: `commits` that each insert and retract entries, two documents and a view.
struct History {
    start: u32,
    commits: u32,
    inserted: u32,
    /// Retracted entries are in runs of this length, at random places.
    run: u32,
    retracted: u32,
}

/// Writes the history; returns the bytes a commit, and the time that the last version takes to rebuild.
fn write(history: &History) -> (f64, std::time::Duration) {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let mut archive = Archive::create_or_open_writer(folder.path()).expect("an empty folder opens");
    let mut numbers = Numbers(0x7469_6465_6d69_6c6c);
    let mut ordinals = OrdinalCounter::resume(0);
    let (mut entries, mut documents) = (roaring::RoaringBitmap::new(), roaring::RoaringBitmap::new());
    let mut group = Vec::new();
    let mut first_bytes = 0;
    let mut parent = None;
    for number in 0..=history.commits {
        let mut changes = Changes::default();
        let fresh = if number == 0 { history.start } else { history.inserted };
        changes.entries.inserted.insert_range(ordinals.take(fresh).expect("there are enough ordinals"));
        let fresh_documents = if number == 0 {
            0..history.start / 12
        } else {
            history.start + number * 2..history.start + number * 2 + 2
        };
        changes.documents.inserted.insert_range(fresh_documents);
        while number > 0 && changes.documents.retracted.len() < 2 {
            changes.documents.retracted.extend(documents.select(numbers.below(documents.len() as u32)));
        }
        while number > 0 && changes.entries.retracted.len() < u64::from(history.retracted) {
            let left = history.retracted - changes.entries.retracted.len() as u32;
            let place = numbers.below(entries.len() as u32 - history.run);
            let run = (place..place + history.run).filter_map(|at| entries.select(at));
            changes.entries.retracted.extend(run.take(left as usize));
        }
        entries = (entries - &changes.entries.retracted) | &changes.entries.inserted;
        documents = (documents - &changes.documents.retracted) | &changes.documents.inserted;
        let hash = blake3::hash(&number.to_le_bytes());
        let commit = CommitId::from_bytes(std::array::from_fn(|at| hash.as_bytes()[at]));
        let version = NewVersion {
            epoch: Epoch::new(u64::from(number) + 1),
            source: SourceId::new(3),
            commit,
            parent,
            base: number.checked_sub(1).map(VersionId::new),
            base_is_parent: true,
            time: 1_764_000_000 + i64::from(number) * 3600 + i64::from(numbers.below(3600)),
            live_tokens: [u64::from(number) * 137 + u64::from(numbers.below(9000)), u64::from(number) * 7].into(),
            digest: Digest::of([&[number as u8; 16]]),
            fingerprint: [1; 16],
            model: [2; 16],
            changes,
        };
        parent = Some(commit);
        let time = Some(version.time * 1000 + i64::from(numbers.below(60_000)));
        let view = Record::View { epoch: version.epoch, view: ViewId::new(1), version: VersionId::new(number), time };
        group.extend([Record::Version(version), view]);
        if number == 0 || number % GROUP == 0 || number == history.commits {
            let appended = archive.append(&group).expect("the versions may follow");
            let newest = appended.last().expect("the group holds a version");
            archive.maybe_checkpoint(*newest).expect("a checkpoint can be considered");
            group.clear();
        }
        if number == 0 {
            first_bytes = archive.bytes().0;
        }
    }
    let (log, checkpoints) = archive.bytes();
    let last = VersionId::new(history.commits);
    let reader = Archive::open_reader(folder.path()).expect("the log reads");
    let started = std::time::Instant::now();
    assert_eq!(reader.bitmaps(last).expect("the version is there").entries, entries);
    let took = started.elapsed();
    let bytes = (log - first_bytes + checkpoints) as f64 / f64::from(history.commits);
    (bytes + FRAME, took)
}

#[test]
fn a_commit_costs_at_most_160_bytes_and_4_for_each_entry_it_moves() {
    let cases = [
        ("mean commit, scattered", History { start: 36_000, commits: 1000, inserted: 21, run: 1, retracted: 18 }),
        ("mean commit, in runs", History { start: 36_000, commits: 1000, inserted: 21, run: 6, retracted: 18 }),
        ("median commit", History { start: 36_000, commits: 1000, inserted: 7, run: 3, retracted: 6 }),
        ("large index, scattered", History { start: 1_000_000, commits: 2000, inserted: 21, run: 1, retracted: 18 }),
        ("large index, in runs", History { start: 1_000_000, commits: 3000, inserted: 21, run: 6, retracted: 18 }),
        ("nothing indexed moves", History { start: 36_000, commits: 500, inserted: 0, run: 1, retracted: 0 }),
    ];
    for (what, history) in cases {
        let moved = f64::from(history.inserted + history.retracted);
        let (bytes, took) = write(&history);
        println!("{what}: {bytes:.0} bytes a commit of {moved} entries, last version rebuilt in {took:?}");
        assert!(bytes <= 160.0 + 4.0 * moved, "{what}: {bytes:.0} bytes a commit");
    }
}
