//! Resource limits of the process (threads, open files, memory, disk), and the messages when one is reached.
//!
//! In: an error, or a number of threads. Out: which limit was reached, its value, and how to raise it.
//!
//! **Invariant:** this module never changes a result: an error stays an error, and its text names the true cause.

use rustix::process::{Resource, getrlimit, setrlimit};
use std::error::Error;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

/// A disk with less free space counts as full: the database writes so many pages at once.
const FULL_BELOW: u64 = 1 << 20;
/// What the program takes of addresses beside the map of its database: code, model, threads and their heaps.
pub const OWN_ADDRESSES: u64 = 3 << 29;
/// With less it does not start: its smallest map, and its own.
const LEAST_ADDRESSES: u64 = OWN_ADDRESSES + (1 << 30);
/// Where so few are allowed, a thread is refused for want of addresses.
const FEW_ADDRESSES: u64 = 4 << 30;
/// So many files are opened as a probe: as many as one step of any library opens.
const PROBED_FILES: usize = 8;

/// Raises the limit of open files as far as the process may raise it.
///
/// The usual soft limit, 1024, is for programs that use select(2); none here does.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // A limit that cannot be raised is reported when it is reached.
        let _ = setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, ..limit });
    }
}

/// Tells whether so many more threads can start, by starting them for a moment.
///
/// Libraries start threads and panic or wait for ever if the system refuses; after this check that is rare.
///
/// # Errors
/// The system's error for the first refused thread.
pub fn can_start(threads: usize) -> io::Result<()> {
    let (hold, held) = mpsc::channel::<()>();
    let held = std::sync::Arc::new(std::sync::Mutex::new(held));
    let mut started = Vec::with_capacity(threads);
    let mut outcome = Ok(());
    for _ in 0..threads {
        let held = held.clone();
        // Ends when the sender is dropped, one after the other.
        let wait = move || drop(held.lock().map(|held| held.recv()));
        match std::thread::Builder::new().name("tidemill-probe".to_owned()).spawn(wait) {
            Ok(thread) => started.push(thread),
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    drop(hold);
    started.into_iter().for_each(|thread| drop(thread.join()));
    outcome
}

/// Tells whether so many more files can be opened, by opening them for a moment.
///
/// # Errors
/// The system's error for the first refused file.
pub fn can_open(files: usize) -> io::Result<()> {
    (0..files).map(|_| File::open("/dev/null")).collect::<io::Result<Vec<_>>>().map(drop)
}

/// Starts the thread pool that a search uses, or uses only the calling thread if the system refuses.
///
/// For the main thread of a program that only searches: another thread would wait for this one.
pub fn start_pool() {
    let builder = rayon::ThreadPoolBuilder::new();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let started = match can_start(threads) {
        Ok(()) => builder.build_global(),
        Err(_) => builder.num_threads(1).use_current_thread().build_global(),
    };
    if let Err(error) = started {
        // It runs already, or the system's error appears again when the pool is needed.
        tracing::debug!("the pool of threads: {error}");
    }
}

/// Returns an error and its causes as one text; a cause that repeats earlier text is left out.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |error| (**error).source());
    causes.fold(error.to_string(), |text, cause| match cause.to_string() {
        cause if text.contains(&cause) => text,
        cause => format!("{text}: {cause}"),
    })
}

/// Tells whether the limit of open files caused an error.
#[must_use]
pub fn is_out_of_files(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<io::Error>().is_some_and(says_out_of_files) {
            return true;
        }
        next = error.source();
    }
    false
}

fn says_out_of_files(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Returns the system's error if it refuses to open more files: libraries treat a file that they could not open as missing.
#[must_use]
pub fn refuses_files() -> Option<io::Error> {
    can_open(PROBED_FILES).err().filter(says_out_of_files)
}

/// Returns the full-disk error if LMDB reports a truncated write as an I/O error.
#[must_use]
pub fn or_disk_full(error: io::Error, folder: &Path) -> io::Error {
    if error.raw_os_error() != Some(libc::EIO) {
        return error;
    }
    match rustix::fs::statvfs(folder) {
        Ok(disk) if disk.f_bavail.saturating_mul(disk.f_frsize) < FULL_BELOW => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize) >> 10;
            let text = format!("no space left on device ({free} KiB free)");
            io::Error::new(io::ErrorKind::StorageFull, text)
        }
        _ => error,
    }
}

/// Returns the advice for an error with this text, if a limit or a permission is its cause.
#[must_use]
pub fn next_step(text: &str) -> Option<String> {
    let says = |number: i32, words: &str| text.contains(&format!("(os error {number})")) || text.contains(words);
    if says(libc::EMFILE, "Too many open files") {
        let limit = getrlimit(Resource::Nofile).current.map_or_else(|| "more".to_owned(), |limit| limit.to_string());
        return Some(format!("this process may open {limit} files: raise the limit, as with `ulimit -n 1024`"));
    }
    if text.contains(&format!("(os error {})", libc::ENFILE)) {
        return Some(
            "the system has all the files open that it may: raise fs.file-max, or end other programs".to_owned(),
        );
    }
    if says(libc::EAGAIN, "Resource temporarily unavailable") {
        return Some(threads());
    }
    if text.contains(&format!("(os error {})", libc::ENOMEM)) {
        return Some(addresses().map_or_else(|| "the system has no memory left".to_owned(), of_addresses));
    }
    if text.contains(&format!("(os error {})", libc::EROFS)) {
        return Some("mount it for writing, or give another folder as --data".to_owned());
    }
    if [libc::EACCES, libc::EPERM].iter().any(|number| text.contains(&format!("(os error {number})"))) {
        let user = rustix::process::geteuid().as_raw();
        return Some(format!("give the user {user} the right to, or give another folder as --data"));
    }
    if text.contains(&format!("(os error {})", libc::EFBIG)) {
        return Some("files may not become larger: raise `ulimit -f`".to_owned());
    }
    None
}

/// Says which limit of threads is the lowest, as far as that is known: those that ran when one was refused may have ended since.
fn threads() -> String {
    let addresses = addresses().filter(|bytes| *bytes < FEW_ADDRESSES);
    if let Some(bytes) = addresses {
        return of_addresses(bytes);
    }
    let of_user = getrlimit(Resource::Nproc).current;
    if let Some((file, most)) = group_limit().filter(|(_, most)| of_user.is_none_or(|of_user| *most < of_user)) {
        return format!("{} allows {most} processes and threads: raise it", file.display());
    }
    match of_user {
        Some(most) => {
            format!("this user may have {most} processes and threads: raise the limit, as with `ulimit -u 4096`")
        }
        None => "the system has no thread left: see kernel.threads-max and pid_max".to_owned(),
    }
}

fn of_addresses(bytes: u64) -> String {
    format!("this process may use {} MiB of addresses: raise `ulimit -v`", bytes >> 20)
}

/// Returns how many bytes of addresses this process may use, if that is limited.
#[must_use]
pub fn addresses() -> Option<u64> {
    getrlimit(Resource::As).current
}

/// Says why the program cannot run where so few addresses are allowed that it would be ended in the midst of its work.
#[must_use]
pub fn too_few_addresses() -> Option<String> {
    let bytes = addresses().filter(|bytes| *bytes < LEAST_ADDRESSES)?;
    Some(format!("cannot run in so few addresses, {} MiB are needed; {}", LEAST_ADDRESSES >> 20, of_addresses(bytes)))
}

/// Returns the control group at or above that of this process that allows the fewest threads, if one limits them.
fn group_limit() -> Option<(PathBuf, u64)> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (kind, path) = (parts.nth(1)?, parts.next()?);
        match kind {
            "" => Some((Path::new("/sys/fs/cgroup"), path)),
            "pids" => Some((Path::new("/sys/fs/cgroup/pids"), path)),
            _ => None,
        }
    });
    let (root, path) = group?;
    let folder = root.join(path.trim_start_matches('/'));
    let number = |file: &Path| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let limits = folder.ancestors().take_while(|folder| folder.starts_with(root)).filter_map(|folder| {
        let file = folder.join("pids.max");
        let most = number(&file)?;
        Some((file, most))
    });
    limits.min_by_key(|(_, most)| *most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_can_be_had_are_had_and_end() {
        can_start(4).unwrap();
        let names = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = names.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        assert_eq!(names.filter(|name| name.starts_with("tidemill-probe")).count(), 0);
    }

    #[test]
    fn an_error_of_a_limit_says_how_to_raise_it_and_no_other_does() {
        let step = |number: i32| next_step(&format!("cannot open a: {}", io::Error::from_raw_os_error(number)));
        assert!(step(libc::EMFILE).unwrap().contains("`ulimit -n 1024`"));
        assert!(next_step("cannot open a: failed to open 'a': Too many open files").is_some());
        assert!(step(libc::EAGAIN).is_some());
        assert!(step(libc::EFBIG).unwrap().contains("`ulimit -f`"));
        assert_eq!(step(libc::ENOENT), None);
        assert_eq!(next_step("cannot read the file 11"), None);
    }

    #[test]
    fn a_write_that_was_cut_short_on_a_disk_with_room_stays_what_it_was() {
        let failed = or_disk_full(io::Error::from_raw_os_error(libc::EIO), Path::new("/"));
        assert_eq!(failed.raw_os_error(), Some(libc::EIO));
        let failed = or_disk_full(io::Error::from_raw_os_error(libc::EIO), Path::new("/proc"));
        assert_eq!(
            (failed.kind(), failed.to_string().contains("no space left on device")),
            (io::ErrorKind::StorageFull, true)
        );
    }
}
