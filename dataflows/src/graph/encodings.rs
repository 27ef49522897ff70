//! Which encoding the settings of editors give a file.
//!
//! In: files that may be documents, and the cleaned texts of `.editorconfig` files. Out: the same files with the encoding that
//! their tree gives them, and the name of their cleaned text that follows from it.
//!
//! ```text
//! .editorconfig ──► clean ──► chain of each folder below ─┐
//! all other files ────────────────────────────────────────┴─► told: (file, encoding) ──► clean
//! ```
//!
//! **Invariant:** the encoding of a file is a function of its path, its rule and the tree's `.editorconfig` files
//! ([`charset_of`]). These are read as UTF-8 themselves, under names of their own, so nothing here goes round in a circle. A setting
//! that changes moves the files whose encoding it changes; where no file names another encoding than UTF-8, nothing is moved
//! at all.

use super::Parts;
use super::documents::{Candidate, Textual, Told};
use super::folders::Folders;
use crate::data::{Charset, TextHash};
use crate::memo::Memo;
use crate::rules::{EditorConfig, LEVELS, charset_of, is_editorconfig};
use crate::stage::Time;
use differential_dataflow::VecCollection;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Returns the files that say something of others' encodings.
pub(super) fn settings(files: VecCollection<'_, Time, Candidate>) -> VecCollection<'_, Time, Told> {
    files.filter(|(_, path, ..)| is_editorconfig(path)).map(|file| (file, Some(Charset::UTF_8)))
}

/// Gives each other file the encoding that its tree gives it.
pub(super) fn tell<'s>(
    files: VecCollection<'s, Time, Candidate>,
    settings: VecCollection<'s, Time, Textual>,
    folders: &Folders<'s>,
    parts: &Parts,
) -> VecCollection<'s, Time, Told> {
    let mut known = Known::new(parts.memo.clone());
    let named = settings.flat_map(move |(_, (file, _, text))| {
        let (view, path, ..) = file;
        known.get(text).matters().then(|| ((view, Box::<[u8]>::from(path.folder())), text))
    });
    // The nearest first, and none that a root cuts off.
    let above = folders
        .above
        .clone()
        .join_map(named, |(view, ancestor), folder, text| ((*view, folder.clone()), (ancestor.len(), *text)));
    let mut known = Known::new(parts.memo.clone());
    let chains = above.reduce(move |_folder, above, output| {
        let mut chain = Vec::new();
        for ((length, text), _) in above.iter().rev().take(LEVELS) {
            chain.push((*length, *text));
            if known.get(*text).is_root() {
                break;
            }
        }
        if chain.iter().any(|(_, text)| known.get(*text).names_any()) {
            output.push((chain, 1));
        }
    });
    let files = files.filter(|(_, path, ..)| !is_editorconfig(path));
    let by_folder = files.clone().map(|file| ((file.0, Box::<[u8]>::from(file.1.folder())), file));
    let (rules, mut known) = (parts.rules.clone(), Known::new(parts.memo.clone()));
    let told = by_folder.join_map(chains, |_folder, file, chain| (file.clone(), chain.clone()));
    let told = told.flat_map(move |(file, chain): (Candidate, Vec<(usize, TextHash)>)| {
        let above: Vec<_> = chain.into_iter().map(|(length, text)| (length, known.get(text))).collect();
        let charset =
            charset_of(rules.rule(file.3), &file.1, above.iter().map(|(length, config)| (*length, &**config)));
        charset.map(|charset| (file, Some(charset)))
    });
    // Few files are told anything, so they take the place of what all files are without a word.
    let untold = told.clone().map(|(file, _)| (file, None)).negate();
    files.map(|file| (file, None)).concat(untold).concat(told)
}

/// What the texts that were met say.
struct Known {
    memo: Arc<dyn Memo>,
    read: FxHashMap<TextHash, Arc<EditorConfig>>,
}

impl Known {
    fn new(memo: Arc<dyn Memo>) -> Self {
        Self { memo, read: FxHashMap::default() }
    }

    fn get(&mut self, text: TextHash) -> Arc<EditorConfig> {
        let read = self.read.entry(text).or_insert_with(|| match self.memo.text(text) {
            Some(text) => Arc::new(EditorConfig::parse(&text)),
            None => {
                self.memo.lost(format!("the text {text} of an .editorconfig"));
                Arc::default()
            }
        });
        Arc::clone(read)
    }
}
