//! The program: everything is in the library, so that tests and benches run the same code.

/// The system's allocator keeps most of what a first load has freed, spread over one arena a thread; this one gives it
/// back (how soon: `.cargo/config.toml`).
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    tidemill::cli::main()
}
