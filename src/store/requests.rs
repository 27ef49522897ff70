//! Requests for garbage collection to a tracker with the store open: one file asks, another answers.
//!
//! In: from the requester, the identifier of its settings. Out: to the tracker, the requesters; and back, the result.
//!
//! ```text
//!  asks     requests/PROCESS-MOMENT, locked ──► polls for the answer, and for the writer's lock ──► … ──► removes both
//!  tracker  polls for locked files ──► collects ──► requests/PROCESS-MOMENT.answer, by a rename
//! ```
//!
//! **Invariant:** a request says that a process waits, and under which settings. It contains no instruction: the tracker's own
//! settings decide what is dropped and removed. The system releases a request when its process ends, however it ends; the
//! remaining file is ignored and removed with its answer. An unreadable file is no request, and no answer.

use super::layout::io;
use super::shared::{create_file, make_folder, open_file};
use super::{Layout, StoreError};
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Longest request that is read; an honest one has some fifty bytes.
const MAX_REQUEST: u64 = 256;
/// Longest answer that is read; an honest one has some thousand bytes.
const MAX_ANSWER: u64 = 1 << 20;
/// Most files per poll.
const MAX_FILES: usize = 256;
/// How often a request that was removed between creation and locking is made again.
const ATTEMPTS: usize = 64;
/// The content of a withdrawn request.
const NEVER_MIND: &str = "never mind";

/// A request, as long as the requester waits. Withdrawn when dropped, and by the system when the process ends.
#[derive(Debug)]
pub struct CollectionRequest {
    file: File,
    path: PathBuf,
}

/// A requester of a collection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The request's name.
    pub name: String,
    /// The identifier of its settings; nothing if it was withdrawn.
    pub settings: Option<String>,
}

impl CollectionRequest {
    /// Asks the writer of the store for a collection under settings with this identifier.
    ///
    /// # Errors
    /// If the store's folder cannot be written.
    pub fn make(layout: &Layout, settings: &str) -> Result<Self, StoreError> {
        let folder = layout.requests();
        make_folder(&folder).map_err(io("make the folder", &folder))?;
        for _ in 0..ATTEMPTS {
            let moment = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
            let path = folder.join(format!("{}-{moment:x}", std::process::id()));
            let new = path.with_extension("new");
            let mut file = create_file(&new).map_err(io("make", &new))?;
            let made = file.lock().and_then(|()| file.write_all(line(settings).as_bytes()));
            match made.and_then(|()| fs::rename(&new, &path)) {
                Ok(()) => return Ok(Self { file, path }),
                // A poll took it for an abandoned one before it was locked.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(io("make", &path)(source)),
            }
        }
        Err(io("make a request in", &folder)(ErrorKind::WouldBlock.into()))
    }

    /// Withdraws the request; what was removed until then is still answered.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn take_back(&mut self) -> Result<(), StoreError> {
        let written = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.write_all(line(NEVER_MIND).as_bytes()));
        written.map_err(io("write", &self.path))
    }

    /// Returns the answer, once it exists.
    #[must_use]
    pub fn answer(&self) -> Option<Vec<u8>> {
        read(&answer_path(&self.path), MAX_ANSWER)
    }
}

impl Drop for CollectionRequest {
    fn drop(&mut self) {
        // The next tracker removes what remains.
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(answer_path(&self.path));
    }
}

/// Returns the unanswered requesters, and removes abandoned files.
///
/// # Errors
/// If the folder cannot be listed.
pub fn requests(layout: &Layout) -> Result<Vec<Asked>, StoreError> {
    let folder = layout.requests();
    let listing = match fs::read_dir(&folder) {
        Ok(listing) => listing,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(io("list", &folder)(source)),
    };
    let mut asked = Vec::new();
    for entry in listing.take(MAX_FILES) {
        let name = entry.map_err(io("list", &folder))?.file_name();
        // Names of another form are not ours.
        let Some(name) = name.to_str().filter(|name| is_ours(name)) else { continue };
        let path = folder.join(name);
        match path.extension() {
            None if answer_path(&path).exists() => {
                look(&path);
            }
            None => asked.extend(look(&path).map(|settings| Asked { name: name.to_owned(), settings })),
            // One that is being created; it is locked as soon as it exists, except for an instant.
            Some(extension) if extension == "new" => drop(look(&path)),
            Some(_) => {
                if !path.with_extension("").exists() {
                    let _ = fs::remove_file(&path);
                }
            }
        }
    }
    asked.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(asked)
}

/// Answers a request; the requester may be gone.
///
/// # Errors
/// If the file cannot be written.
pub fn answer(layout: &Layout, asked: &Asked, answer: &[u8]) -> Result<(), StoreError> {
    let path = answer_path(&layout.requests().join(&asked.name));
    let temporary = path.with_extension("part");
    let written = fs::write(&temporary, answer).and_then(|()| fs::rename(&temporary, &path));
    written.map_err(io("write", &path))
}

/// Returns the content of a request with a waiting process, or removes it if there is none.
fn look(path: &Path) -> Option<Option<String>> {
    let file = open_file(path).ok()?;
    match file.try_lock() {
        Ok(()) => {
            let _ = fs::remove_file(path);
            None
        }
        Err(TryLockError::WouldBlock) => {
            let text = String::from_utf8(read(path, MAX_REQUEST)?).ok()?;
            let text = text.lines().next()?.trim();
            Some(if text == NEVER_MIND { None } else { Some(text.to_owned()) })
        }
        Err(TryLockError::Error(_)) => None,
    }
}

/// Reads a file that is not too long.
fn read(path: &Path, most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path).ok()?.take(most + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= most).then_some(bytes)
}

fn is_ours(name: &str) -> bool {
    let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
    stem.len() <= 64
        && stem.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        && matches!(extension, "" | "new" | "answer" | "part")
}

fn answer_path(request: &Path) -> PathBuf {
    request.with_extension("answer")
}

/// Returns a line of fixed length, so that it is overwritten as a whole.
fn line(text: &str) -> String {
    format!("{text:<63}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(layout: &Layout) -> Vec<Option<String>> {
        requests(layout).unwrap().into_iter().map(|asked| asked.settings).collect()
    }

    #[test]
    fn a_request_holds_while_somebody_waits_and_is_answered_once() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        assert_eq!(names(&layout), []);
        let mut first = CollectionRequest::make(&layout, "abc").unwrap();
        let second = CollectionRequest::make(&layout, "def").unwrap();
        assert_eq!(names(&layout).len(), 2);
        first.take_back().unwrap();
        assert!(names(&layout).contains(&None) && names(&layout).contains(&Some("def".to_owned())));
        drop(first);
        let asked = requests(&layout).unwrap();
        assert_eq!((asked.len(), second.answer()), (1, None));
        answer(&layout, &asked[0], b"done").unwrap();
        assert_eq!((names(&layout).len(), second.answer()), (0, Some(b"done".to_vec())));
        drop(second);
        assert_eq!(names(&layout), []);
        assert_eq!(fs::read_dir(layout.requests()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_left_behind_is_swept_and_what_is_no_request_does_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        let held = CollectionRequest::make(&layout, "abc").unwrap();
        let place = |name: &str| layout.requests().join(name);
        // Files of killed processes.
        for left in ["1-a", "2-b.new", "3-c.answer"] {
            fs::write(place(left), "abc\n").unwrap();
        }
        // A planted file.
        fs::write(place("../outside"), "kept").unwrap();
        std::os::unix::fs::symlink(folder.path().join("outside"), place("4-d")).unwrap();
        fs::create_dir(place("5-e")).unwrap();
        fs::write(place("no name of ours"), "x").unwrap();
        let pipe = std::process::Command::new("mkfifo").arg(place("6-f")).status().unwrap();
        assert!(pipe.success());
        let (long, odd) = (File::create(place("7-a")).unwrap(), File::create(place("8-b")).unwrap());
        (&long).write_all(&[b'a'; 4096]).unwrap();
        (&odd).write_all(&[0xff, 0xfe, b'\n']).unwrap();
        long.lock().unwrap();
        odd.lock().unwrap();
        assert_eq!(names(&layout), [Some("abc".to_owned())]);
        for left in ["1-a", "2-b.new", "3-c.answer"] {
            assert!(!place(left).exists(), "{left}");
        }
        assert_eq!(fs::read_to_string(folder.path().join("outside")).unwrap(), "kept");
        fs::write(answer_path(&held.path), vec![0; MAX_ANSWER as usize + 1]).unwrap();
        assert_eq!(held.answer(), None);
    }
}
