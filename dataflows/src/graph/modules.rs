//! Assigns modules to folders: the name in the nearest manifest above.
//!
//! In: files, and the texts of manifests. Out: documents with their module.
//!
//! **Invariant:** the module of a folder is a function of the tree alone: the deepest folder at or above it with a named manifest
//! decides; if one folder has several, the name that sorts first. The work goes by folders, not files, so a manifest that changes
//! without changing its name moves no entry.

use super::folders::{Folder, Folders};
use crate::code::module_name;
use crate::data::{Document, DocumentPath, Outcome, TextHash, View};
use crate::memo::Memo;
use crate::stage::Time;
use differential_dataflow::VecCollection;
use std::sync::Arc;

/// Returns the module of every folder with a file, empty without a named manifest.
pub(super) fn of_folders<'s>(
    folders: &Folders<'s>,
    manifests: VecCollection<'s, Time, (View, DocumentPath, TextHash)>,
    memo: Arc<dyn Memo>,
) -> VecCollection<'s, Time, (Folder, String)> {
    let named = manifests
        .flat_map(move |(view, path, text)| {
            let Some(content) = memo.text(text) else {
                memo.lost(format!("the text {text} of {path}"));
                return None;
            };
            let name = module_name(&path, &content)?;
            Some(((view, Box::<[u8]>::from(path.folder())), name))
        })
        .consolidate();
    let candidates = folders.above.clone().join_map(named, |(view, ancestor): &Folder, folder, name: &String| {
        ((*view, folder.clone()), (ancestor.len() + 1, name.clone()))
    });
    // A folder without a manifest above it has the empty name at depth 0, which any other one replaces.
    let none = folders.own.clone().map(|folder| (folder, (0, String::new())));
    candidates.concat(none).reduce(|_folder, names, output| {
        let deepest = names.iter().map(|(name, _)| name.0).max().unwrap_or(0);
        let first = names.iter().filter(|(name, _)| name.0 == deepest).map(|(name, _)| &name.1).min();
        output.push((first.cloned().unwrap_or_default(), 1));
    })
}

/// Gives every document the module of its folder.
pub(super) fn attach<'s>(
    documents: VecCollection<'s, Time, (View, Document)>,
    modules: VecCollection<'s, Time, (Folder, String)>,
) -> VecCollection<'s, Time, (View, Document)> {
    documents.map(|(view, document)| ((view, Box::<[u8]>::from(document.path.folder())), document)).join_map(
        modules,
        |(view, _folder), document, name| {
            let mut document = document.clone();
            if let Outcome::Indexed { module, .. } = &mut document.outcome {
                module.clone_from(name);
            }
            (*view, document)
        },
    )
}
