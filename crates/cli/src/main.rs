//! The binary `slipway`.

use std::process::ExitCode;

use clap::Parser;
use slipway_cli::args::Cli;

// Local mode is a great many small allocations, by several threads: glibc's allocator takes a sixth of its time.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    slipway_cli::main(Cli::parse()).into()
}
