//! `cargo xtask …`: set-up, tests, conformance, simulation, benchmarks and packages. Nothing needs to be installed before.

mod package;
mod tools;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};

/// The project's tasks.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run every test that needs nothing but this checkout, Rust, git and python3.
    Test {
        /// Passed on to `cargo test`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Run the tests that read ../shared; fails when it is not there.
    Conformance {
        /// Passed on to `cargo test`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Play random pipelines with faults in virtual time against a model; fails with what does not hold.
    Simulate {
        /// Passed on: `--seeds N --from N --jobs N --most N --limit SECONDS`, or `--deliveries N`; `-- --help` tells more.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Measure, print and judge nothing.
    Bench {
        /// Passed on to the benchmark.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Build one zip per Lambda function into the target folder.
    Package {
        /// Processor of the functions.
        #[arg(long, value_enum, default_value_t = package::Arch::X86_64)]
        arch: package::Arch,
    },
}

fn main() -> Result<()> {
    match Cli::parse().task {
        Task::Test { rest } => test(&rest),
        Task::Conformance { rest } => conformance(&rest),
        Task::Simulate { rest } => simulate(&rest),
        Task::Bench { rest } => bench(&rest),
        Task::Package { arch } => package::package(arch),
    }
}

fn test(rest: &[String]) -> Result<()> {
    let lint = tools::python_tool("cfn-lint", "cfn-lint==1.58.0")?;
    // End-to-end tests start the binary as users do. One of the tests beside it: with their features for all of it, nothing
    // is built twice.
    run(cargo().args([
        "build",
        "--workspace",
        "--bin",
        "slipway",
        "--test",
        "calls",
    ]))?;
    run(cargo()
        .args(["test", "--workspace"])
        .args(rest)
        .env("SLIPWAY_CFN_LINT", lint))
}

fn conformance(rest: &[String]) -> Result<()> {
    let shared = root().join("../shared");
    if !shared.join("corpus/INDEX.csv").is_file() {
        bail!(
            "conformance reads the corpus, the schemas and the vectors in {}, and they are not there",
            shared.display()
        );
    }
    // The client that plays vectors through an HTTP endpoint needs it.
    let python = tools::python_with("boto3", "boto3==1.44.5")?;
    // It pins a botocore of its own.
    let aws = tools::python_tool("aws", "awscli==1.46.3")?;
    // Another account than the sandbox.
    let ministack = tools::python_tool("ministack", "ministack==1.5.33")?;
    // With the features of all tests, which are built then.
    run(cargo()
        .args(["build", "--workspace", "--bin", "slipway"])
        .args(["--example", "vectors"]))?;
    let arguments = [
        "test",
        "--workspace",
        "--features",
        "slipway-tests/conformance",
    ];
    run(cargo()
        .args(arguments)
        .args(["--test", "conformance"])
        .args(rest)
        .env("SLIPWAY_SHARED", shared)
        .env("SLIPWAY_PYTHON_BOTO3", python)
        .env("SLIPWAY_AWS_CLI", aws)
        .env("SLIPWAY_MINISTACK", ministack))
}

fn simulate(rest: &[String]) -> Result<()> {
    let mut command = cargo();
    command.args(["run", "--profile", "simulation", "--package"]);
    command.args(["slipway-simulation", "--bin", "simulate", "--"]);
    run(command.args(rest))
}

fn bench(rest: &[String]) -> Result<()> {
    run(cargo().args(["build", "--release", "--package", "slipway-cli"]))?;
    for bench in [
        "language",
        "expressions",
        "local",
        "waiting",
        "calls",
        "intake",
    ] {
        let arguments = ["bench", "--package", "slipway-tests", "--bench", bench];
        run(cargo().args(arguments).arg("--").args(rest))?;
    }
    Ok(())
}

/// The cargo that runs this task.
fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// The checkout.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Where cargo puts what it builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn run(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command
        .status()
        .with_context(|| format!("starting {shown}"))?;
    if !status.success() {
        bail!("{shown} ended with {status}");
    }
    Ok(())
}
