//! The reference model: every version as two plain sets, and slow answers to the same questions.
//!
//! In: the same steps as the archive's. Out: the expected answers.

use roaring::RoaringBitmap;
use snapshots::*;
use std::collections::{BTreeMap, BTreeSet};

/// A version as plain sets.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    pub(crate) stated: NewVersion,
    pub(crate) entries: BTreeSet<u32>,
    pub(crate) documents: BTreeSet<u32>,
}

/// All versions and views.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) versions: Vec<Plain>,
    pub(crate) views: BTreeMap<ViewId, VersionId>,
    pub(crate) dropped: BTreeSet<VersionId>,
    /// Every move of every view.
    pub(crate) moves: BTreeMap<ViewId, Vec<Move>>,
    /// Whether moves have times; logs of formats 1 and 2 have none.
    pub(crate) times: bool,
    epoch: u64,
    used: [u32; 2],
    /// How tokens are counted since the last recount.
    tokens_of: Option<Counts>,
}

/// The tokens of an entry, field by field.
type Counts = fn(Ordinal) -> Option<Tokens<u32>>;

/// How a version relates to its base.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Link {
    /// The base is the first parent.
    Parent,
    /// The parent is a commit that the log does not know.
    Gap,
    /// The same commit under other rules.
    Again,
    /// The parent is a version other than the base.
    Sideways,
    /// The commit has no parent, like the first of an orphan branch.
    Root,
}

/// The identity that entry `ordinal` has in these tests.
pub(crate) fn identity(ordinal: Ordinal) -> Option<[u8; 16]> {
    blake3::hash(&ordinal.get().to_le_bytes()).as_bytes()[..16].try_into().ok()
}

/// The token counts that entry `ordinal` has in these tests.
pub(crate) fn tokens(ordinal: Ordinal) -> Option<Tokens<u32>> {
    Some([ordinal.get() % 97 + 1, ordinal.get() % 5].into())
}

/// The token counts that another analyzer gives entry `ordinal`.
pub(crate) fn other_tokens(ordinal: Ordinal) -> Option<Tokens<u32>> {
    Some([ordinal.get() % 89 + 3, ordinal.get() % 7].into())
}

/// The token counts that an analyzer gives entry `ordinal` that knows a third field.
pub(crate) fn tokens_of_three_fields(ordinal: Ordinal) -> Option<Tokens<u32>> {
    Some([ordinal.get() % 89 + 3, ordinal.get() % 7, ordinal.get() % 3].into())
}

/// Returns the tokens of entries together.
fn sum(entries: &BTreeSet<u32>, tokens_of: Counts) -> Tokens {
    let mut sums = Tokens::default();
    for counts in entries.iter().filter_map(|&ordinal| tokens_of(Ordinal::new(ordinal))) {
        sums.add(counts);
    }
    sums
}

/// A commit id that `seed` names.
pub(crate) fn commit(seed: u64) -> CommitId {
    let hash = blake3::hash(&seed.to_le_bytes());
    CommitId::from_bytes(std::array::from_fn(|at| hash.as_bytes()[at]))
}

impl Model {
    /// Adds a version: `fresh` new entries, the dead ones of `revived` and the live ones of `retracted`, and one fresh document
    /// row in place of a live one.
    pub(crate) fn version(
        &mut self,
        base: Option<VersionId>,
        link: Link,
        fresh: u32,
        revived: &[u32],
        retracted: &[u32],
    ) -> NewVersion {
        self.epoch += 1;
        let number = self.versions.len() as u64;
        let before = base.map(|base| self.versions[base.get() as usize].clone());
        let (mut entries, mut documents) =
            before.as_ref().map(|plain| (plain.entries.clone(), plain.documents.clone())).unwrap_or_default();
        let alive_before = entries.clone();
        let mut changes = Changes::default();

        changes.entries.retracted = retracted.iter().filter(|ordinal| alive_before.contains(ordinal)).collect();
        let revived = revived.iter().filter(|ordinal| **ordinal < self.used[0] && !alive_before.contains(ordinal));
        changes.entries.inserted = revived.copied().chain(self.used[0]..self.used[0] + fresh).collect();
        self.used[0] += fresh;
        entries.retain(|ordinal| !changes.entries.retracted.contains(*ordinal));
        entries.extend(&changes.entries.inserted);
        if fresh > 0 {
            changes.documents.retracted = documents.pop_first().into_iter().collect();
            changes.documents.inserted.insert(self.used[1]);
            documents.insert(self.used[1]);
            self.used[1] += 1;
        }

        let same_rules = before.as_ref().map_or([0; 16], |plain| plain.stated.fingerprint);
        let mut other_rules = same_rules;
        other_rules[0] = other_rules[0].wrapping_add(1);
        let (commit_id, parent, fingerprint) = match (link, &before) {
            (Link::Parent, before) => (commit(number), before.as_ref().map(|plain| plain.stated.commit), same_rules),
            (Link::Again, Some(plain)) => (plain.stated.commit, plain.stated.parent, other_rules),
            (Link::Sideways, Some(_)) => (commit(number), Some(commit(0)), same_rules),
            (Link::Root, _) => (commit(number), None, same_rules),
            _ => (commit(number), Some(commit(number + 1_000_000)), same_rules),
        };
        let ordinals = || entries.iter().map(|&ordinal| Ordinal::new(ordinal));
        let identities: Vec<[u8; 16]> = ordinals().filter_map(identity).collect();
        let live_tokens = sum(&entries, self.tokens_of.unwrap_or(tokens));
        let stated = NewVersion {
            epoch: Epoch::new(self.epoch),
            source: SourceId::new(0),
            commit: commit_id,
            parent,
            base,
            base_is_parent: link == Link::Parent,
            time: 1_764_000_000 + number as i64 * 977 - (number as i64 % 3) * 5000,
            live_tokens,
            digest: Digest::of(&identities),
            fingerprint,
            model: [7; 16],
            changes,
        };
        self.versions.push(Plain { stated: stated.clone(), entries, documents });
        stated
    }

    /// Recounts the tokens of kept and later versions, as another analyzer does.
    pub(crate) fn recount(&mut self, tokens_of: Counts) {
        self.tokens_of = Some(tokens_of);
        for (id, version) in (0..).map(VersionId::new).zip(&mut self.versions) {
            if !self.dropped.contains(&id) {
                version.stated.live_tokens = sum(&version.entries, tokens_of);
            }
        }
    }

    /// Moves a view, or removes it.
    pub(crate) fn view(&mut self, view: ViewId, version: Option<VersionId>) -> Record {
        let epoch = Epoch::new(self.epoch);
        let moves = self.moves.values().map(Vec::len).sum::<usize>() as i64;
        // A clock that is set back occasionally.
        let time = self.times.then_some(1_764_000_000_000 + moves * 40_000 - (moves % 3) * 90_000);
        self.moves.entry(view).or_default().push(Move { epoch, version, time });
        match version {
            Some(version) => {
                self.views.insert(view, version);
                Record::View { epoch, view, version, time }
            }
            None => {
                self.views.remove(&view);
                Record::ViewGone { epoch, view, time }
            }
        }
    }

    /// Drops those of these versions that may be dropped.
    pub(crate) fn drop(&mut self, versions: impl Iterator<Item = VersionId>) -> Option<Record> {
        let may_go =
            |version: &VersionId| !self.dropped.contains(version) && self.views.values().all(|head| head != version);
        let versions: BTreeSet<VersionId> = versions.filter(may_go).collect();
        self.dropped.extend(&versions);
        let versions: RoaringBitmap = versions.into_iter().map(VersionId::get).collect();
        (!versions.is_empty()).then(|| Record::Dropped { epoch: Epoch::new(self.epoch), versions })
    }

    /// Returns the entries that some kept version holds.
    pub(crate) fn reached(&self) -> BTreeSet<u32> {
        let kept = self.versions.iter().zip(0..).filter(|(_, id)| !self.dropped.contains(&VersionId::new(*id)));
        kept.flat_map(|(plain, _)| plain.entries.iter().copied()).collect()
    }

    /// Returns the expected answer for an entry.
    pub(crate) fn introduced(&self, version: VersionId, ordinal: u32) -> Introduced {
        let plain = &self.versions[version.get() as usize];
        if !plain.entries.contains(&ordinal) {
            return Introduced::Absent;
        }
        if plain.stated.parent.is_none() {
            return Introduced::At(version);
        }
        let before = plain.stated.base.map(|base| (base, &self.versions[base.get() as usize]));
        match before {
            Some((base, before))
                if before.entries.contains(&ordinal)
                    && (plain.stated.base_is_parent || before.stated.commit == plain.stated.commit) =>
            {
                self.introduced(base, ordinal)
            }
            Some((_, before)) if before.entries.contains(&ordinal) => Introduced::Before(version),
            _ if plain.stated.base_is_parent => Introduced::At(version),
            _ => Introduced::Before(version),
        }
    }

    /// Fails unless the archive gives all of this model's answers.
    pub(crate) fn check(&self, archive: &Archive) {
        assert_eq!(archive.versions().len(), self.versions.len());
        assert_eq!(archive.views().map(|(view, head)| (view, head.version)).collect::<BTreeMap<_, _>>(), self.views);
        for (view, moves) in &self.moves {
            assert_eq!(archive.moves(*view), moves);
        }
        let (mut used_entries, mut used_documents) = (0, 0);
        for (plain, version) in self.versions.iter().zip(archive.versions()) {
            let stated = &plain.stated;
            let bitmaps = archive.bitmaps(version.id).expect("every version has bitmaps");
            assert!(bitmaps.entries.iter().eq(plain.entries.iter().copied()), "entries of version {}", version.id);
            assert!(bitmaps.documents.iter().eq(plain.documents.iter().copied()), "documents of {}", version.id);
            assert_eq!(archive.changes(version.id).expect("every version has changes"), stated.changes);
            let expected = Version {
                id: version.id,
                epoch: stated.epoch,
                source: stated.source,
                commit: stated.commit,
                parent: stated.parent,
                base: stated.base,
                base_is_parent: stated.base_is_parent,
                time: stated.time,
                statistics: Statistics {
                    live_entries: plain.entries.len() as u64,
                    live_tokens: stated.live_tokens,
                    live_documents: plain.documents.len() as u64,
                },
                digest: stated.digest,
                fingerprint: stated.fingerprint,
                model: stated.model,
                entries: moved(&stated.changes.entries),
                documents: moved(&stated.changes.documents),
                bytes: version.bytes,
            };
            assert_eq!(*version, expected);
            used_entries = used_entries.max(stated.changes.entries.inserted.max().map_or(0, |last| last + 1));
            used_documents = used_documents.max(stated.changes.documents.inserted.max().map_or(0, |last| last + 1));
            let of_commit = |kept: bool| {
                let ids = (0..).map(VersionId::new).zip(&self.versions);
                let found = ids
                    .filter(|(id, other)| other.stated.commit == stated.commit && !(kept && self.dropped.contains(id)));
                found.map(|(id, _)| id).last()
            };
            let newest = archive.by_commit(stated.source, stated.commit);
            assert_eq!(newest, of_commit(true), "the newest kept version of a commit wins");
            assert_eq!(archive.last_of_commit(stated.source, stated.commit), of_commit(false));
            let (found, dropped) =
                (archive.find_commits(&stated.commit.to_string()), archive.find_dropped(&stated.commit.to_string()));
            assert_eq!((found.len(), dropped.len()), if newest.is_some() { (1, 0) } else { (0, 1) });
            assert_eq!(archive.is_dropped(version.id), self.dropped.contains(&version.id));
        }
        assert!(
            archive.kept().map(|version| version.id).eq((0..self.versions.len() as u32)
                .map(VersionId::new)
                .filter(|version| !self.dropped.contains(version)))
        );
        assert!(archive.dropped().map(|(version, _)| version).eq(self.dropped.iter().copied()));
        assert!(archive.dropped().all(|(_, end)| end <= archive.log_bytes()));
        assert!(archive.reached().expect("every change can be read").entries.iter().eq(self.reached()));
        assert_eq!((archive.used_entries(), archive.used_documents()), (used_entries, used_documents));
        let Some(last) = archive.versions().last() else { return };
        let ordinals: Vec<Ordinal> = (0..used_entries + 2).map(Ordinal::new).collect();
        let expected: Vec<Introduced> =
            ordinals.iter().map(|ordinal| self.introduced(last.id, ordinal.get())).collect();
        assert_eq!(archive.introduced(last.id, &ordinals).expect("the version is there"), expected);
        let first = &self.versions[0].entries;
        let (from, to): (RoaringBitmap, RoaringBitmap) =
            (first.iter().collect(), self.versions[last.id.get() as usize].entries.iter().collect());
        let diff = archive.diff(VersionId::new(0), last.id).expect("both versions are there");
        assert_eq!(diff, Delta { inserted: &to - &from, retracted: &from - &to });
    }
}

fn moved(delta: &Delta) -> Moved {
    Moved { inserted: delta.inserted.len(), retracted: delta.retracted.len() }
}
