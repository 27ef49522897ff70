//! Computes a tree's entries from scratch, with neither graph nor memo.
//!
//! In: the files of one tree. Out: every document's row and every entry, with its text.
//!
//! **Invariant:** this is the yardstick. After any history, what the graph holds for a view equals what this module says
//! of the view's files. It shares the pure functions with the graph ([`convert`], [`chunk`],
//! [`place`]) and nothing else: no epochs, no consolidation, no results kept.

use crate::chunk::{TextChunk, chunk};
use crate::clean::convert;
use crate::code::{is_manifest, module_name};
use crate::data::{
    Charset, Chunk, ContentId, Document, DocumentId, DocumentPath, EmbedInput, FileMode, FileState, Outcome,
    PlacedEntry, SkipReason, StageName, TextHash, place,
};
use crate::memo::{Content, Contents};
use crate::rules::{EditorConfigs, Rules, is_editorconfig};
use std::collections::{BTreeMap, BTreeSet};

/// An entry of the tree, with its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReferenceEntry {
    /// The entry, its card and its lines.
    pub placed: PlacedEntry,
    /// The chunk's text.
    pub text: String,
}

/// Everything that follows from one tree and the rules.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reference {
    /// The row of each file, by path.
    pub documents: Vec<Document>,
    /// Every entry, by path and position.
    pub entries: Vec<ReferenceEntry>,
    /// The distinct inputs of each stage: exactly the work of an empty store.
    pub inputs: Inputs,
}

/// Distinct inputs by stage.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Inputs {
    /// Of the clean stage.
    pub clean: BTreeSet<DocumentId>,
    /// Of the chunk stage.
    pub chunk: BTreeSet<crate::data::ChunkingId>,
    /// Of the embed stage.
    pub embed: BTreeSet<EmbedInput>,
}

/// Computes the entries of a tree from scratch.
#[must_use]
pub fn build(files: &BTreeMap<DocumentPath, FileState>, rules: &Rules, contents: &dyn Contents) -> Reference {
    let mut reference = Reference::default();
    let mut texts = BTreeMap::new();
    let mut settings = EditorConfigs::default();
    let (settings_first, others): (Vec<_>, Vec<_>) = files.iter().partition(|(path, _)| is_editorconfig(path));
    for (path, state) in settings_first.into_iter().chain(others) {
        let charset = charset_of(path, *state, rules, &settings);
        match text_of(path, *state, rules, charset, contents, &mut reference.inputs) {
            Ok(text) => {
                if is_editorconfig(path) {
                    settings.set(path, Some(&text));
                }
                texts.insert(path, text);
            }
            Err(outcome) => {
                let (path, content) = (path.clone(), state.content);
                reference.documents.push(Document { path, content, outcome, charset });
            }
        }
    }
    let modules = modules(&texts);
    for (path, text) in &texts {
        let rule = rules.rule(rules.for_path(path));
        let module = nearest(&modules, path.folder());
        let labels = rule.labels(path);
        let chunking = rule.chunking_id(TextHash::of(text));
        reference.inputs.chunk.insert(chunking);
        let (chunks, texts): (Vec<Chunk>, Vec<String>) =
            chunk(rule, text).into_iter().map(|TextChunk { chunk, text }| (chunk, text)).unzip();
        let placed = place(path, module, &labels, &chunks).zip(texts);
        reference.entries.extend(placed.map(|(placed, text)| ReferenceEntry { placed, text }));
        let outcome = Outcome::Indexed { chunking, module: module.to_owned(), labels };
        let content = files.get(path).map_or_else(ContentId::default, |state| state.content);
        let charset = settings.charset(rule, path);
        reference.documents.push(Document { path: (*path).clone(), content, outcome, charset });
    }
    reference.inputs.embed = reference.entries.iter().map(|entry| entry.placed.embed_input()).collect();
    reference.documents.sort();
    reference
}

/// Returns the encoding that the tree gives a file, if its content is looked at.
fn charset_of(path: &DocumentPath, state: FileState, rules: &Rules, settings: &EditorConfigs) -> Option<Charset> {
    let rule = rules.rule(rules.for_path(path));
    let is_read = state.mode == FileMode::Regular && !rule.excluded();
    is_read.then(|| settings.charset(rule, path)).flatten()
}

fn text_of(
    path: &DocumentPath,
    state: FileState,
    rules: &Rules,
    charset: Option<Charset>,
    contents: &dyn Contents,
    inputs: &mut Inputs,
) -> Result<String, Outcome> {
    let rule = rules.rule(rules.for_path(path));
    match state.mode {
        FileMode::Symlink => return Err(Outcome::Skipped(SkipReason::Symlink)),
        FileMode::Submodule => return Err(Outcome::Skipped(SkipReason::Submodule)),
        FileMode::Regular if rule.excluded() => return Err(Outcome::Skipped(SkipReason::Excluded)),
        FileMode::Regular => {}
    }
    inputs.clean.insert(rule.document_id(state.content, charset));
    match contents.read(state.content, rule.max_bytes()) {
        Ok(Content::Bytes(bytes)) => convert(rule, charset, &bytes).map(|(text, _)| text).map_err(Outcome::Skipped),
        Ok(Content::TooLarge(_)) => Err(Outcome::Skipped(SkipReason::TooLarge)),
        Ok(Content::Absent(reason)) => Err(Outcome::Skipped(reason)),
        Err(error) => Err(Outcome::Fault { stage: StageName::Clean, error: error.to_string() }),
    }
}

/// Returns the module that each folder with a manifest names.
fn modules<'a>(texts: &BTreeMap<&'a DocumentPath, String>) -> BTreeMap<&'a [u8], String> {
    let mut modules: BTreeMap<&[u8], String> = BTreeMap::new();
    for (path, text) in texts {
        if !is_manifest(path) {
            continue;
        }
        if let Some(name) = module_name(path, text) {
            let known = modules.entry(path.folder()).or_insert_with(|| name.clone());
            if name < *known {
                *known = name;
            }
        }
    }
    modules
}

fn nearest<'a>(modules: &'a BTreeMap<&[u8], String>, folder: &[u8]) -> &'a str {
    let mut folder = folder;
    loop {
        if let Some(name) = modules.get(folder) {
            return name;
        }
        if folder.is_empty() {
            return "";
        }
        folder = &folder[..folder.iter().rposition(|&byte| byte == b'/').unwrap_or(0)];
    }
}
