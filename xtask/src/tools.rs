//! Tools from PyPI, installed once into a virtual environment below the target folder.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::{run, target};

/// Path of a command that a PyPI package brings, installing it when it is not there yet.
///
/// # Errors
/// When python3 is missing or the package cannot be installed.
pub fn python_tool(command: &str, requirement: &str) -> Result<PathBuf> {
    let venv = target().join("tools").join(requirement.replace("==", "-"));
    let tool = venv.join("bin").join(command);
    if !tool.is_file() {
        eprintln!("installing {requirement} into {}", venv.display());
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        let pip = venv.join("bin/pip");
        run(Command::new(pip).args([
            "install",
            "--quiet",
            "--disable-pip-version-check",
            requirement,
        ]))?;
    }
    Ok(tool)
}
