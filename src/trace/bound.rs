//! Computes the least cost and the expected result of a history from its epochs alone.
//!
//! In: epochs and contents, and rules. Out: for each epoch the new inputs of each stage, the inserted and retracted entries, and
//! the digest.
//!
//! **Invariant:** it shares the pure functions with the graph ([`convert`], [`chunk`], [`place`]) and nothing else: no
//! dataflow, no memo, no ordinals, no publishing. So where a replay agrees with it, two roads led to one place; its
//! digests are what [`dataflows::reference`] gives for the tree, which a law checks.
//!
//! It is simple rather than fast: plain sets, one thread. It stores seen inputs by their hashes and entries by its own numbers,
//! so a commit's set is a small bitmap.

use super::format::{EpochRecord, TraceStep};
use crate::watch::{Content, Contents, FileMode, FileState};
use dataflows::chunk::{TextChunk, chunk};
use dataflows::clean::convert;
use dataflows::code::{is_manifest, module_name};
use dataflows::data::{Chunk, ChunkingId, DocumentId, DocumentPath, EmbedInput, EntryId, FileChange, TextHash, place};
use dataflows::rules::{EditorConfigs, Rule, Rules, is_editorconfig};
use roaring::RoaringBitmap;
use rustc_hash::{FxHashMap, FxHashSet};
use snapshots::{CommitId, Digest};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The least cost and the expected result of an epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Least {
    /// Contents that were never cleaned before.
    pub cleaned: u64,
    /// Texts that were never cut before.
    pub chunked: u64,
    /// Texts under their cards that were never embedded before.
    pub embedded: u64,
    /// Entries of the commit that its base lacks.
    pub inserted: u64,
    /// Entries of the base that the commit lacks.
    pub retracted: u64,
    /// The digest of all entries of the commit, if the epoch leads to one.
    pub digest: Option<Digest>,
    /// Entries of the commit.
    pub live: u64,
}

/// Follows a history, epoch by epoch.
pub struct Bound {
    rules: Arc<Rules>,
    contents: Arc<dyn Contents>,
    heads: BTreeMap<Option<String>, Head>,
    /// The entries of each commit that was seen.
    commits: FxHashMap<CommitId, RoaringBitmap>,
    texts: FxHashMap<DocumentId, Option<Text>>,
    lists: FxHashMap<ChunkingId, Arc<Vec<Chunk>>>,
    embedded: FxHashSet<EmbedInput>,
    numbers: FxHashMap<EntryId, u32>,
    identities: Vec<EntryId>,
    least: Least,
}

/// The result of cleaning a content.
#[derive(Clone)]
struct Text {
    hash: TextHash,
    /// The text itself, of files that may name a module.
    manifest: Option<Arc<str>>,
}

#[derive(Default)]
struct Head {
    at: Option<CommitId>,
    files: BTreeMap<DocumentPath, FileState>,
    /// What the tree says of encodings.
    settings: EditorConfigs,
    /// The modules that the manifests of a folder name.
    modules: BTreeMap<Vec<u8>, BTreeSet<(String, DocumentPath)>>,
    placed: FxHashMap<DocumentPath, Vec<u32>>,
    alive: RoaringBitmap,
    digest: Digest,
}

impl Bound {
    /// Begins with nothing.
    #[must_use]
    pub fn new(rules: Arc<Rules>, contents: Arc<dyn Contents>) -> Self {
        Self {
            rules,
            contents,
            heads: BTreeMap::new(),
            commits: FxHashMap::default(),
            texts: FxHashMap::default(),
            lists: FxHashMap::default(),
            embedded: FxHashSet::default(),
            numbers: FxHashMap::default(),
            identities: Vec::new(),
            least: Least::default(),
        }
    }

    /// Adds an epoch; returns its least cost.
    pub fn take(&mut self, epoch: &EpochRecord) -> Least {
        self.least = Least::default();
        let name = epoch.head().map(str::to_owned);
        let mut head = self.heads.remove(&name).unwrap_or_default();
        for path in self.dirty(&mut head, &epoch.changes) {
            self.place_again(&mut head, &path);
        }
        match &epoch.step {
            TraceStep::Commit { commit, parent, .. } => {
                // A known commit only moves its view.
                if !self.commits.contains_key(commit) {
                    let base = parent.filter(|parent| self.commits.contains_key(parent)).or(head.at);
                    let nothing = RoaringBitmap::new();
                    let before = base.and_then(|base| self.commits.get(&base)).unwrap_or(&nothing);
                    self.least.inserted = head.alive.difference_len(before);
                    self.least.retracted = before.difference_len(&head.alive);
                    self.commits.insert(*commit, head.alive.clone());
                }
                self.least.digest = Some(head.digest);
                self.least.live = head.alive.len();
                head.at = Some(*commit);
                self.heads.insert(name, head);
            }
            TraceStep::Point { .. } => {
                self.heads.insert(name, head);
            }
            TraceStep::Leave { .. } => {}
        }
        self.least
    }

    /// Applies changes; returns the paths whose entries may differ.
    fn dirty(&mut self, head: &mut Head, changes: &[FileChange]) -> BTreeSet<DocumentPath> {
        for FileChange { path, after, .. } in changes {
            match after {
                Some(state) => head.files.insert(path.clone(), *state),
                None => head.files.remove(path),
            };
        }
        let told_otherwise = self.told_otherwise(head, changes);
        let mut dirty = BTreeSet::new();
        let mut folders: BTreeMap<Vec<u8>, Option<String>> = BTreeMap::new();
        for path in changes.iter().map(|change| change.path.clone()).chain(told_otherwise) {
            dirty.insert(path.clone());
            if is_manifest(&path) {
                let folder = path.folder().to_vec();
                let state = head.files.get(&path).copied();
                let named = state.and_then(|state| self.named_module(&head.settings, &path, state));
                let modules = head.modules.entry(folder.clone()).or_default();
                folders.entry(folder).or_insert_with(|| first(modules));
                modules.retain(|(_, manifest)| *manifest != path);
                modules.extend(named.map(|name| (name, path.clone())));
            }
        }
        for (folder, before) in folders {
            let Some(modules) = head.modules.get(&folder) else { continue };
            if first(modules) != before {
                let below = head.files.keys().filter(|path| is_below(path, &folder)).cloned();
                dirty.extend(below);
            }
        }
        dirty
    }

    /// Takes over what `.editorconfig` files say now; returns the files to which they give another encoding than before.
    fn told_otherwise(&mut self, head: &mut Head, changes: &[FileChange]) -> Vec<DocumentPath> {
        let before = head.settings.clone();
        let changed = || changes.iter().map(|change| &change.path).filter(|path| is_editorconfig(path));
        for path in changed() {
            let text = head.files.get(path).and_then(|state| self.read(&before, path, *state));
            head.settings.set(path, text.as_deref());
        }
        let folders: BTreeSet<&[u8]> = changed().map(DocumentPath::folder).collect();
        let below = head.files.keys().filter(|path| folders.iter().any(|folder| is_below(path, folder)));
        let differs = |path: &&DocumentPath| {
            let rule = self.rules.rule(self.rules.for_path(path));
            before.charset(rule, path) != head.settings.charset(rule, path)
        };
        below.filter(differs).cloned().collect()
    }

    /// Returns the cleaned text of a file, if it has one.
    fn read(&self, settings: &EditorConfigs, path: &DocumentPath, state: FileState) -> Option<String> {
        let rule = self.rules.rule(self.rules.for_path(path));
        if state.mode != FileMode::Regular || rule.excluded() {
            return None;
        }
        let Ok(Content::Bytes(bytes)) = self.contents.read(state.content, rule.max_bytes()) else { return None };
        convert(rule, settings.charset(rule, path), &bytes).ok().map(|(text, _)| text)
    }

    fn named_module(&mut self, settings: &EditorConfigs, path: &DocumentPath, state: FileState) -> Option<String> {
        let text = self.text(settings, path, state)?;
        module_name(path, text.manifest.as_deref()?)
    }

    /// Returns what cleaning makes of a file, and counts it the first time.
    fn text(&mut self, settings: &EditorConfigs, path: &DocumentPath, state: FileState) -> Option<Text> {
        let rule = self.rules.rule(self.rules.for_path(path));
        if state.mode != FileMode::Regular || rule.excluded() {
            return None;
        }
        let id = rule.document_id(state.content, settings.charset(rule, path));
        let known = self.texts.get(&id).cloned();
        if let Some(known) = &known
            && (known.as_ref().is_none_or(|text| text.manifest.is_some()) || !is_manifest(path))
        {
            return known.clone();
        }
        let text = self.read(settings, path, state);
        if known.is_none() {
            self.least.cleaned += 1;
        }
        let found = text.map(|text| {
            let hash = TextHash::of(&text);
            let chunking = rule.chunking_id(hash);
            if let std::collections::hash_map::Entry::Vacant(list) = self.lists.entry(chunking) {
                self.least.chunked += 1;
                list.insert(Arc::new(cut(rule, &text)));
            }
            Text { hash, manifest: is_manifest(path).then(|| text.into()) }
        });
        self.texts.insert(id, found.clone());
        found
    }

    /// Removes the entries of a path and adds its current ones.
    fn place_again(&mut self, head: &mut Head, path: &DocumentPath) {
        for number in head.placed.remove(path).unwrap_or_default() {
            head.alive.remove(number);
            head.digest.remove(&self.identities[number as usize].to_bytes());
        }
        let Some(state) = head.files.get(path).copied() else { return };
        let Some(text) = self.text(&head.settings, path, state) else { return };
        let rules = self.rules.clone();
        let rule = rules.rule(rules.for_path(path));
        let Some(list) = self.list(&head.settings, rule.chunking_id(text.hash), path, state) else { return };
        let module = nearest(&head.modules, path.folder());
        let labels = rule.labels(path);
        let mut placed = Vec::with_capacity(list.len());
        for one in place(path, &module, &labels, &list) {
            self.least.embedded += u64::from(self.embedded.insert(one.embed_input()));
            let id = one.entry.id();
            let number = *self.numbers.entry(id).or_insert_with(|| {
                self.identities.push(id);
                (self.identities.len() - 1) as u32
            });
            head.alive.insert(number);
            head.digest.add(&id.to_bytes());
            placed.push(number);
        }
        head.placed.insert(path.clone(), placed);
    }

    /// Returns the chunks of a text; cuts it if another rule with the same cleaning and different cutting cleaned it.
    fn list(
        &mut self,
        settings: &EditorConfigs,
        chunking: ChunkingId,
        path: &DocumentPath,
        state: FileState,
    ) -> Option<Arc<Vec<Chunk>>> {
        if let Some(list) = self.lists.get(&chunking) {
            return Some(list.clone());
        }
        let rule = self.rules.rule(self.rules.for_path(path));
        let list = Arc::new(cut(rule, &self.read(settings, path, state)?));
        self.least.chunked += 1;
        self.lists.insert(chunking, list.clone());
        Some(list)
    }
}

fn cut(rule: &Rule, text: &str) -> Vec<Chunk> {
    chunk(rule, text).into_iter().map(|TextChunk { chunk, .. }| chunk).collect()
}

fn first(modules: &BTreeSet<(String, DocumentPath)>) -> Option<String> {
    modules.first().map(|(name, _)| name.clone())
}

fn is_below(path: &DocumentPath, folder: &[u8]) -> bool {
    folder.is_empty() || path.as_bytes().strip_prefix(folder).is_some_and(|rest| rest.starts_with(b"/"))
}

fn nearest(modules: &BTreeMap<Vec<u8>, BTreeSet<(String, DocumentPath)>>, folder: &[u8]) -> String {
    let mut folder = folder;
    loop {
        if let Some(name) = modules.get(folder).and_then(first) {
            return name;
        }
        if folder.is_empty() {
            return String::new();
        }
        folder = &folder[..folder.iter().rposition(|&byte| byte == b'/').unwrap_or(0)];
    }
}
