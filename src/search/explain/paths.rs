//! Interprets a typed path: from the source's root, from the current folder, or absolute.
//!
//! In: bytes as typed. Out: paths inside a source, the likeliest first.
//!
//! **Invariant:** a path from the source's root comes before one from the current folder. Only links are read; the caller looks
//! up the document at a path.

use dataflows::data::DocumentPath;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// How a path was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// From the source's root.
    Source,
    /// From the current folder.
    Folder,
    /// As an absolute path.
    Absolute,
}

impl Taken {
    /// Returns its name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Folder => "folder",
            Self::Absolute => "absolute",
        }
    }
}

/// Returns the paths inside a source with this root that a path typed in `folder` may mean.
pub(super) fn candidates(asked: &OsStr, folder: &Path, root: Option<&Path>) -> Vec<(Taken, DocumentPath)> {
    let asked = Path::new(asked);
    let inside = |path: &Path| root.and_then(|root| below(path, root));
    let mut found = Vec::new();
    if asked.is_absolute() {
        found.extend(inside(asked).map(|path| (Taken::Absolute, path)));
    } else {
        found.extend(plain(asked).and_then(|path| document(&path)).map(|path| (Taken::Source, path)));
        found.extend(inside(&folder.join(asked)).map(|path| (Taken::Folder, path)));
    }
    found
}

/// Returns an absolute path relative to a root, through links as well.
fn below(path: &Path, root: &Path) -> Option<DocumentPath> {
    let path = plain(path)?;
    let direct = path.strip_prefix(root).ok().and_then(document);
    direct.or_else(|| document(real(&path).strip_prefix(real(root)).ok()?))
}

/// Resolves links before the last part: the last part may be missing, or a link that is a document itself.
fn real(path: &Path) -> PathBuf {
    for above in path.ancestors().skip(1) {
        if let Ok(real) = above.canonicalize() {
            return real.join(path.strip_prefix(above).unwrap_or(path));
        }
    }
    path.to_owned()
}

/// Removes `.` and `..` from a path; nothing if it leads above its start.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !plain.pop() {
                    return None;
                }
            }
            part => plain.push(part),
        }
    }
    Some(plain)
}

fn document(path: &Path) -> Option<DocumentPath> {
    let bytes = path.as_os_str().as_bytes();
    (!bytes.is_empty()).then(|| DocumentPath::new(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(asked: &str, folder: &str, root: Option<&str>, expected: &[(Taken, &str)]) {
        let found = candidates(OsStr::new(asked), Path::new(folder), root.map(Path::new));
        let expected: Vec<_> = expected.iter().map(|(taken, path)| (*taken, DocumentPath::from(*path))).collect();
        assert_eq!(found, expected, "{asked} in {folder} of {root:?}");
    }

    #[test]
    fn a_path_is_taken_from_the_root_from_the_folder_or_absolute() {
        use Taken::{Absolute, Folder, Source};
        let root = Some("/no/such/engine");
        check("src/lib.rs", "/elsewhere", root, &[(Source, "src/lib.rs")]);
        check("./src//lib.rs", "/elsewhere", None, &[(Source, "src/lib.rs")]);
        check("lib.rs", "/no/such/engine/src", root, &[(Source, "lib.rs"), (Folder, "src/lib.rs")]);
        check("../a/b", "/no/such/engine/src", root, &[(Folder, "a/b")]);
        check("/no/such/engine/a/../b", "/elsewhere", root, &[(Absolute, "b")]);
        check("/no/such/other/b", "/elsewhere", root, &[]);
        check("../../x", "/no/such/engine/src", root, &[]);
        check("/no/such/engine", "/elsewhere", root, &[]);
    }

    #[test]
    fn links_in_front_of_a_path_lead_into_the_source() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("engine");
        std::fs::create_dir(&root).unwrap();
        std::os::unix::fs::symlink(&root, folder.path().join("link")).unwrap();
        let asked = folder.path().join("link/gone/file.rs");
        let found = candidates(asked.as_os_str(), Path::new("/"), Some(&root));
        assert_eq!(found, [(Taken::Absolute, DocumentPath::from("gone/file.rs"))]);
    }
}
