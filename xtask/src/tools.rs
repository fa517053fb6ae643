//! Tools from PyPI, installed once into a virtual environment below the target folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::{run, target};

/// Path of a command that a PyPI package brings, installing it when it is not there yet.
///
/// # Errors
/// When python3 is missing or the package cannot be installed.
pub fn python_tool(command: &str, requirement: &str) -> Result<PathBuf> {
    let venv = environment(requirement);
    let tool = venv.join("bin").join(command);
    if !tool.is_file() {
        install(requirement, &venv)?;
    }
    Ok(tool)
}

/// Path of a python3 that can import a module of a PyPI package, installing it when it is not there yet.
///
/// # Errors
/// When python3 is missing or the package cannot be installed.
pub fn python_with(module: &str, requirement: &str) -> Result<PathBuf> {
    let venv = environment(requirement);
    let python = venv.join("bin/python3");
    let import = format!("import {module}");
    let imports = Command::new(&python).args(["-c", &import]).output();
    if !imports.is_ok_and(|output| output.status.success()) {
        install(requirement, &venv)?;
    }
    Ok(python)
}

fn environment(requirement: &str) -> PathBuf {
    target().join("tools").join(requirement.replace("==", "-"))
}

fn install(requirement: &str, venv: &Path) -> Result<()> {
    eprintln!("installing {requirement} into {}", venv.display());
    run(Command::new("python3").args(["-m", "venv"]).arg(venv))?;
    let pip = venv.join("bin/pip");
    run(Command::new(pip).args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        requirement,
    ]))
}
