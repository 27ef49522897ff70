//! The location and the name of a source, from the given path.
//!
//! In: a configured path. Out: its location and its name. **Invariant:** both follow from the path as given: a link keeps its own
//! name and is followed again whenever the source is opened, so neither depends on its target. `.`, a trailing slash and
//! `repo/.git` for `repo` make no difference; `..` is resolved as by the system.

use crate::config::SourceConfig;
use std::path::{Component, Path, PathBuf};

/// Returns the location of a path, without following links in it.
pub(super) fn place_of(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // After a link `..` leads elsewhere than the text says, so the part before it is resolved.
    let parts: Vec<Component<'_>> = absolute.components().collect();
    let behind = parts.iter().rposition(|part| *part == Component::ParentDir).map_or(0, |last| last + 1);
    let front: PathBuf = parts[..behind].iter().collect();
    let mut place = if behind == 0 { PathBuf::new() } else { front.canonicalize().unwrap_or(front) };
    place.extend(&parts[behind..]);
    place
}

/// Returns the location of a configured source.
pub(super) fn source_place(config: &SourceConfig) -> PathBuf {
    match config.path.strip_prefix("dir:") {
        Some(path) => place_of(Path::new(path)),
        None => {
            let place = place_of(Path::new(&config.path));
            match place.parent() {
                Some(work_tree) if place.file_name().is_some_and(|name| name == ".git") => work_tree.to_owned(),
                _ => place,
            }
        }
    }
}

/// Returns the name of a configured source, found or not: its own name, or the last part of its path without `.git`.
pub(super) fn source_name(config: &SourceConfig) -> String {
    config.name.clone().unwrap_or_else(|| name_of(&source_place(config)))
}

/// Returns the last part of a path, without a trailing `.git`.
pub(super) fn name_of(place: &Path) -> String {
    let last = place.file_name().map_or_else(|| "source".into(), |name| name.to_string_lossy());
    match last.strip_suffix(".git") {
        Some(stem) if !stem.is_empty() => stem.to_owned(),
        _ => last.into_owned(),
    }
}

/// Tells whether two paths are one location: by their text, or because they lead to one folder now.
pub(super) fn is_same_place(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_last_part_of_the_path_as_it_was_given() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("engine/docs")).unwrap();
        std::os::unix::fs::symlink("engine/docs", root.join("link")).unwrap();
        let named = |path: &str| {
            let config =
                SourceConfig { path: path.replace("R/", &format!("{}/", root.display())), ..Default::default() };
            (
                source_name(&config),
                source_place(&config).strip_prefix(&root).map(|place| place.display().to_string()).ok(),
            )
        };
        for (path, name, place) in [
            ("R/engine", "engine", "engine"),
            ("R/engine/", "engine", "engine"),
            ("R/engine/.", "engine", "engine"),
            ("R/engine/.git", "engine", "engine"),
            ("R/engine.git", "engine", "engine.git"),
            ("R/engine/docs/..", "engine", "engine"),
            ("R/link", "link", "link"),
            ("dir:R/link/", "link", "link"),
            ("R/link/..", "engine", "engine"),
            ("R/link/../docs", "docs", "engine/docs"),
            ("dir:R/engine/.git", ".git", "engine/.git"),
            ("R/not/there", "there", "not/there"),
        ] {
            assert_eq!(named(path), (name.to_owned(), Some(place.to_owned())), "{path}");
        }
        let here = std::env::current_dir().unwrap();
        let here = here.file_name().unwrap().to_str().unwrap();
        assert_eq!([named(".").0, named("./").0], [here, here]);
        assert_eq!(named("/").0, "source");
        assert!(is_same_place(&root.join("link"), &root.join("engine/docs")));
        assert!(!is_same_place(&root.join("link"), &root.join("nowhere")));
    }
}
