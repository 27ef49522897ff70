//! The program: everything is in the library, so that tests and benches run the same code.

use std::io::Write;

/// The system's allocator keeps most of the memory that a first load has freed, spread over one arena per thread; this one
/// returns it (how soon: `.cargo/config.toml`).
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Spare threads that must be available before the allocator gets one.
const SPARE_THREADS: usize = 8;

fn main() -> std::process::ExitCode {
    // In front of everything that could be refused memory: the allocator would end the process in the midst of it.
    if let Some(why) = tidemill::resources::too_few_addresses() {
        let _ = writeln!(std::io::stderr(), "tidemill: {why}");
        return std::process::ExitCode::FAILURE;
    }
    // It prints a line if it gets no thread. Without its thread, the allocating threads return pages. If threads are scarce, the
    // rest of the program needs them more.
    if tidemill::resources::can_start(SPARE_THREADS).is_ok() {
        let _ = tikv_jemalloc_ctl::background_thread::write(true);
    }
    tidemill::cli::main()
}
