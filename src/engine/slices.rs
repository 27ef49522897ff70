//! Cuts a step that changes very many files into slices: memory follows a slice and not the step.
//!
//! In: the changes of one step, and the unchanged files that it moves. Out: the same changes in groups, to be fed to the graph
//! one after the other.
//!
//! ```text
//!  files below manifests that change, out ──► manifests ──► those files back in, and all others
//! ```
//!
//! **Invariant:** after the last slice the graph holds what it would hold had all been fed at once, and on the way no stage
//! is given an input that it would not have been given then. Two things reach from file to file: the module that a manifest
//! names for all that stands below it, and the encoding that an `.editorconfig` gives. So manifests, which word stands for both
//! here, come before what arrives below them, all of them in one
//! slice; and what stands below one that changes leaves first, lest it be placed in a module that it never had. That holds
//! of files that stay as they are too, where they are many: the slice of the manifest would place all of them anew.
//!
//! A first load removes nothing, so manifests go first, and that is all.

use dataflows::code::is_manifest;
use dataflows::data::{DocumentPath, FileChange, FileState, folders_up};
use dataflows::rules::is_editorconfig;
use std::collections::HashSet;

/// Most files of one slice, apart from manifests: some 40,000 entries of an engine's sources, which take a few kilobytes each
/// until they are published.
pub(super) const SLICE_CHANGES: usize = 4096;

/// Most slices in progress: one being published, one being processed, and one waiting.
pub(super) const OPEN_SLICES: usize = 3;

/// Says whether a file may change what becomes of others, beside and below it.
pub(super) fn speaks_below(path: &DocumentPath) -> bool {
    is_manifest(path) || is_editorconfig(path)
}

/// Cuts the changes of a step into parts of at most `most` changes, and the last; `standing` are unchanged files that are removed
/// while manifests change.
pub(super) fn slices(
    changes: Vec<FileChange>,
    standing: Vec<(DocumentPath, FileState)>,
    most: usize,
) -> (Vec<Vec<FileChange>>, Vec<FileChange>) {
    if changes.len() + standing.len() <= most {
        return (Vec::new(), changes);
    }
    let (manifests, others): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| speaks_below(&change.path));
    let folders: HashSet<Box<[u8]>> = manifests.iter().map(|change| change.path.folder().into()).collect();
    let is_below = |change: &FileChange| folders_up(change.path.folder()).any(|folder| folders.contains(folder));
    let (mut leaving, mut rest) = (Vec::new(), Vec::with_capacity(others.len()));
    for change in others {
        if change.before.is_some() && is_below(&change) {
            let FileChange { path, before, after } = change;
            if after.is_some() {
                rest.push(FileChange { path: path.clone(), before: None, after });
            }
            leaving.push(FileChange { path, before, after: None });
        } else {
            rest.push(change);
        }
    }
    let is_mixed = !standing.is_empty();
    for (path, state) in standing {
        leaving.push(FileChange { path: path.clone(), before: Some(state), after: None });
        rest.push(FileChange { path, before: None, after: Some(state) });
    }
    if is_mixed {
        // In the order of a single epoch, so that neighbours are stored side by side.
        rest.sort_unstable_by(|left, right| left.path.cmp(&right.path));
    }
    let mut parts = cut(leaving, most);
    if !manifests.is_empty() {
        parts.push(manifests);
    }
    parts.extend(cut(rest, most));
    let last = parts.pop().unwrap_or_default();
    (parts, last)
}

fn cut(changes: Vec<FileChange>, most: usize) -> Vec<Vec<FileChange>> {
    let mut parts = Vec::with_capacity(changes.len().div_ceil(most.max(1)));
    let mut changes = changes.into_iter().peekable();
    while changes.peek().is_some() {
        parts.push(changes.by_ref().take(most.max(1)).collect());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataflows::data::{ContentId, DocumentPath, FileMode, FileState};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    type Tree = BTreeMap<DocumentPath, FileState>;

    const PATHS: [&str; 14] = [
        ".editorconfig",
        "a/b/.editorconfig",
        "Cargo.toml",
        "a/Cargo.toml",
        "a/package.json",
        "a/b/c/Cargo.toml",
        "main.rs",
        "a/one.rs",
        "a/two.rs",
        "a/b/three.rs",
        "a/b/c/four.rs",
        "ab/five.rs",
        "z/six.rs",
        "z/y/seven.rs",
    ];

    fn tree() -> impl Strategy<Value = Tree> {
        prop::collection::vec(prop::option::of(0..3_u8), PATHS.len()).prop_map(|contents| {
            let files = PATHS.into_iter().zip(contents);
            files
                .filter_map(|(path, content)| {
                    let content = ContentId::from_bytes([content?; 20]);
                    Some((path.into(), FileState { content, mode: FileMode::Regular }))
                })
                .collect()
        })
    }

    /// A file with its state, and the manifests that decide its module.
    type Placed = (DocumentPath, FileState, Vec<(DocumentPath, FileState)>);

    /// Returns the placement of every file: the manifests of the nearest folder above it that has any.
    fn placed(tree: &Tree) -> BTreeSet<Placed> {
        let nearest = |path: &DocumentPath| {
            let manifests_in = |folder: &[u8]| -> Vec<_> {
                let beside = tree.iter().filter(|(other, _)| speaks_below(other) && other.folder() == folder);
                beside.map(|(path, state)| (path.clone(), *state)).collect()
            };
            folders_up(path.folder()).map(manifests_in).find(|found| !found.is_empty()).unwrap_or_default()
        };
        tree.iter().map(|(path, state)| (path.clone(), *state, nearest(path))).collect()
    }

    proptest! {
        #[test]
        fn slices_lead_to_the_same_tree_and_place_nothing_that_neither_end_has(
            before in tree(),
            after in tree(),
            most in 1..6_usize,
            takes_out in any::<bool>(),
        ) {
            let changes = crate::watch::changes(&before, &after);
            let changed: Vec<&DocumentPath> = changes.iter().map(|change| &change.path).collect();
            let manifests: Vec<&DocumentPath> = changed.iter().copied().filter(|path| speaks_below(path)).collect();
            let is_moved = |path: &DocumentPath| {
                folders_up(path.folder()).any(|folder| manifests.iter().any(|manifest| manifest.folder() == folder))
            };
            let stays = before.iter().filter(|(path, _)| !changed.contains(path) && !speaks_below(path));
            let moved = stays.filter(|(path, _)| takes_out && is_moved(path));
            let standing: Vec<_> = moved.map(|(path, state)| (path.clone(), *state)).collect();
            let together = changes.len() + standing.len();
            let (parts, last) = slices(changes.clone(), standing, most);
            prop_assert_eq!(parts.is_empty(), together <= most);
            let is_cut = !parts.is_empty();
            let ends = &placed(&before) | &placed(&after);
            let mut tree = before;
            for slice in parts.into_iter().chain([last]) {
                prop_assert!(slice.len() <= most || slice.iter().all(|change| speaks_below(&change.path)));
                let is_of_manifests = slice.iter().any(|change| speaks_below(&change.path));
                let placed_before = placed(&tree);
                for FileChange { path, before, after } in slice {
                    prop_assert_eq!(tree.get(&path).copied(), before, "{}", path);
                    match after {
                        Some(state) => tree.insert(path, state),
                        None => tree.remove(&path),
                    };
                }
                let placed = placed(&tree);
                if is_cut && takes_out && is_of_manifests {
                    let others = |place: &&Placed| !speaks_below(&place.0);
                    let moved: Vec<_> = placed.symmetric_difference(&placed_before).filter(others).collect();
                    prop_assert!(moved.is_empty(), "{:?} moved with a manifest", moved);
                }
                for place in placed {
                    prop_assert!(ends.contains(&place), "{:?} was placed in between", place);
                }
            }
            prop_assert_eq!(tree, after);
        }
    }
}
