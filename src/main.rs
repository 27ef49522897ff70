//! The program: everything is in the library, so that tests and benches run the same code.

fn main() -> std::process::ExitCode {
    tidemill::cli::main()
}
