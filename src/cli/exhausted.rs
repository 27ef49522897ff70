//! If a library panics because the system refuses a thread, the program ends, with one line.
//!
//! In: panics, before they are printed. Out: the program's end with status 1 for these; other panics proceed as usual.
//!
//! **Invariant:** nothing is lost, because all promised data is durable. Otherwise a runtime would wait for ever for the thread
//! that such a panic ended.

use super::{end_at_once, output};
use std::any::Any;

/// The messages of tokio, the standard library and rayon.
const NO_THREAD: [&str; 3] = ["spawn worker thread", "failed to spawn thread", "thread pool has not been initialized"];

/// Makes such panics end the program from now on.
pub(super) fn watch() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if is_no_thread(panic.payload()) {
            let why = anyhow::anyhow!(std::io::Error::from_raw_os_error(libc::EAGAIN)).context("cannot start a thread");
            output::say_failure(&why);
            end_at_once(1);
        }
        before(panic);
    }));
}

fn is_no_thread(payload: &(dyn Any + Send)) -> bool {
    let text = payload.downcast_ref::<String>().map(String::as_str).or_else(|| payload.downcast_ref::<&str>().copied());
    text.is_some_and(|text| NO_THREAD.iter().any(|said| text.contains(said)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_libraries_say_without_threads_is_known_and_nothing_else() {
        let said = [
            "OS can't spawn worker thread: Resource temporarily unavailable (os error 11)",
            "failed to spawn thread: Os { code: 11, kind: WouldBlock, message: \"Resource temporarily unavailable\" }",
            "The global thread pool has not been initialized.: ThreadPoolBuildError { kind: IOError(Os { code: 11 }) }",
        ];
        assert!(said.iter().all(|said| is_no_thread(&(*said).to_owned())));
        assert!(is_no_thread(&said[0]));
        assert!(!is_no_thread(&"index out of bounds") && !is_no_thread(&7_u8));
    }
}
