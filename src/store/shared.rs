//! Files that several users of one store create and use: leases, requests, LMDB's lock table.
//!
//! In: a path. Out: a file or folder with the permissions of its folder, opened without waiting.
//!
//! **Invariant:** every user who may read and write the folder may read and write the files created here, whatever the umask of
//! the first process. Existing files keep their mode.

use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Creates a new file for reading and writing, with the mode of its folder.
///
/// # Errors
/// If it exists, or the folder refuses.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    if let Some(mode) = mode_around(path) {
        // The umask of this process may exclude users whom the folder admits; if the mode cannot be changed it stays.
        let _ = file.set_permissions(Permissions::from_mode(mode & 0o666));
    }
    Ok(file)
}

/// Creates a folder with the mode of its parent, unless it exists.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => {
            if let Some(mode) = mode_around(path) {
                let _ = fs::set_permissions(path, Permissions::from_mode(mode & 0o2777));
            }
            Ok(())
        }
    }
}

fn mode_around(path: &Path) -> Option<u32> {
    fs::metadata(path.parent()?).ok().map(|folder| folder.permissions().mode())
}

/// Opens a regular file for reading: neither a link, nor a pipe that would block.
///
/// # Errors
/// If it cannot be opened; [`ErrorKind::InvalidInput`] if it is no regular file.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let no_file = || io::Error::new(ErrorKind::InvalidInput, "it is not a file; remove it");
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = file.map_err(|error| if error.raw_os_error() == Some(libc::ELOOP) { no_file() } else { error })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(no_file()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn what_is_made_is_as_open_as_the_folder_around_it() {
        let folder = tempfile::tempdir().unwrap();
        for (around, file, inner) in [(0o2775, 0o664, 0o2775), (0o700, 0o600, 0o700), (0o755, 0o644, 0o755)] {
            let root = folder.path().join(format!("{around:o}"));
            fs::create_dir(&root).unwrap();
            fs::set_permissions(&root, Permissions::from_mode(around)).unwrap();
            create_file(&root.join("file")).unwrap();
            make_folder(&root.join("folder")).unwrap();
            assert_eq!((mode(&root.join("file")), mode(&root.join("folder"))), (file, inner), "{around:o}");
        }
    }

    #[test]
    fn what_was_there_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("folder");
        fs::create_dir(&inner).unwrap();
        fs::set_permissions(&inner, Permissions::from_mode(0o711)).unwrap();
        make_folder(&inner).unwrap();
        assert_eq!(mode(&inner), 0o711);
        fs::write(folder.path().join("file"), "").unwrap();
        assert_eq!(create_file(&folder.path().join("file")).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert!(make_folder(&folder.path().join("file")).is_err());
    }
}
