//! The sandbox account, as boto3 reads and changes it: waiters end when they should, lists page, errors have AWS's codes.
//! `boto3_reads.py` beside this file says what is looked at.

use std::process::Command;

use slipway_tests::{SandboxProcess, checkout};

/// The least that it sees: fewer lines would mean that it stopped looking.
const LEAST: usize = 32;

#[test]
fn boto3_uses_the_sandbox_as_it_uses_aws() {
    let python = std::env::var_os("SLIPWAY_PYTHON_BOTO3").expect(
        "SLIPWAY_PYTHON_BOTO3 names a python3 with boto3; `cargo xtask conformance` sets it",
    );
    let sandbox = SandboxProcess::start(&[]);
    let script = checkout("tests/tests/conformance/boto3_reads.py");
    let output = Command::new(python)
        .arg(script)
        .arg(sandbox.url())
        .output()
        .expect("python3 runs");
    let seen = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{seen}{errors}");
    print!("{seen}");
    assert!(seen.lines().count() >= LEAST, "{seen}");
}
