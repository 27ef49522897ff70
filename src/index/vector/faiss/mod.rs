//! FAISS behind a safe interface: the search of a segment, and the centroids of a large one.
//!
//! In: checked rows: dimensions fit, components are finite. Out: the best live positions; centroids.
//!
//! **Invariant:** all `unsafe` of the program is in this module. No pointer outlives the call that made it, except an index's
//! own, which is freed with its owner. FAISS's own files are never read or written, because its readers are not hardened
//! (`docs/decisions/0002-faiss-from-source.md`).
//!
//! OpenMP runs with one thread: nested, its threads took one question from 0.65 ms to 24 ms. So does OpenBLAS, if that is the
//! BLAS in use: its threads would not have the low priority of the thread that computes centroids.

#![expect(unsafe_code, reason = "FAISS is reached through its C interface, and only here")]

mod centres;
mod scan;

pub(super) use centres::deal_out;
pub(super) use scan::FaissScan;

use super::VectorError;
use faiss_sys as sys;
use std::ffi::{CStr, c_char, c_int, c_void};

/// Rows that are widened and passed on at a time.
const BLOCK_ROWS: usize = 1024;

unsafe extern "C" {
    /// Sets the number of OpenMP threads for regions that the calling thread enters (OpenMP 5.2, section 18.2.1).
    safe fn omp_set_num_threads(threads: c_int);
    /// Returns the address of a symbol, or null (POSIX; a null handle searches all loaded libraries).
    fn dlsym(handle: *mut c_void, symbol: *const c_char) -> *mut c_void;
    /// Ends the process without the exit handlers of libraries (POSIX).
    safe fn _exit(status: c_int) -> !;
}

/// Limits OpenBLAS to the calling thread.
fn blas_uses_one_thread() {
    // SAFETY: the name is a string that ends in a null byte.
    let address = unsafe { dlsym(std::ptr::null_mut(), c"openblas_set_num_threads".as_ptr()) };
    if !address.is_null() {
        // SAFETY: that is what OpenBLAS's function of this name takes and returns (`cblas.h`).
        let set = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(c_int)>(address) };
        set(1);
    }
}

/// Ends the process immediately: an abandoned thread may be in the middle of a product, and OpenBLAS frees its data during a
/// normal exit.
pub(crate) fn end_at_once(code: u8) -> ! {
    _exit(c_int::from(code))
}

/// Returns whether the processor has the instructions for which FAISS is compiled (`.cargo/config.toml`).
pub(super) fn processor_is_able() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("fma")
            && std::arch::is_x86_feature_detected!("f16c")
            && std::arch::is_x86_feature_detected!("popcnt")
    }
    #[cfg(not(target_arch = "x86_64"))]
    true
}

/// Turns FAISS's status into a result, with its own message.
fn check(action: &'static str, status: c_int) -> Result<(), VectorError> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: null, or a string that lives until the next failure in this thread; it is copied at once.
    let message = unsafe {
        let message = sys::faiss_get_last_error();
        if message.is_null() { None } else { Some(CStr::from_ptr(message).to_string_lossy().into_owned()) }
    };
    Err(VectorError::Faiss { action, message: message.unwrap_or_else(|| format!("status {status}")) })
}

fn no_memory(action: &'static str) -> VectorError {
    VectorError::Faiss { action, message: "no index came back".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::background::Unwanted;
    use crate::index::vector::rows::Rows;
    use half::f16;

    #[test]
    fn centres_are_found_in_the_thread_that_calls() {
        let rows =
            Rows::from_parts(8, (0..64).collect(), (0..512u16).map(|n| f16::from_f32(f32::from(n % 7))).collect());
        deal_out(&rows.unwrap(), 4, &Unwanted::default()).unwrap();
        // SAFETY: the name is a string that ends in a null byte.
        let address = unsafe { dlsym(std::ptr::null_mut(), c"openblas_get_num_threads".as_ptr()) };
        if !address.is_null() {
            // SAFETY: that is what OpenBLAS's function of this name takes and returns (`cblas.h`).
            let threads = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(address) };
            assert_eq!(threads(), 1);
        }
    }
}
