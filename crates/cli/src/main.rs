//! The binary `slipway`.

use std::process::ExitCode;

use clap::Parser;
use slipway_cli::args::Cli;

fn main() -> ExitCode {
    slipway_cli::main(Cli::parse()).into()
}
