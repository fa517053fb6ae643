//! Who runs handlers: the machine's own interpreters.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;
use tokio::sync::OnceCell;

use super::plan::not_runnable;
use crate::error::ApiError;

/// A language whose handlers can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runtime {
    Python,
    Node,
}

/// The programs that run between an environment and a handler, and the files that they are in.
pub(super) const BOOTSTRAPS: [(&str, &str); 2] = [
    ("bootstrap.py", include_str!("bootstrap.py")),
    ("bootstrap.cjs", include_str!("bootstrap.cjs")),
];

impl Runtime {
    /// The language of a runtime's name.
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            _ if name.starts_with("python3.") => Some(Self::Python),
            _ if name.starts_with("nodejs") => Some(Self::Node),
            _ => None,
        }
    }

    /// Arguments of the interpreter, for the bootstrap in this folder.
    pub(super) fn arguments(self, folder: &Path) -> Vec<PathBuf> {
        match self {
            // Unbuffered, and nothing is written beside the code, which on Lambda cannot be written to.
            Self::Python => vec!["-u".into(), "-B".into(), folder.join(BOOTSTRAPS[0].0)],
            Self::Node => vec![folder.join(BOOTSTRAPS[1].0)],
        }
    }

    fn program(self) -> &'static str {
        match self {
            Self::Python => "python3",
            Self::Node => "node",
        }
    }

    /// Arguments that make the interpreter say where it is.
    fn question(self) -> [&'static str; 2] {
        match self {
            Self::Python => ["-c", "import sys; print(sys.executable)"],
            Self::Node => ["-p", "process.execPath"],
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Python => {
                "Install Python 3.8 or newer, or start the account with a PATH that has it"
            }
            Self::Node => {
                "Install Node.js 18 or newer, or start the account with a PATH that has it"
            }
        }
    }
}

/// Where the interpreters are, once somebody looked.
#[derive(Debug, Default)]
pub(super) struct Interpreters {
    python: OnceCell<PathBuf>,
    node: OnceCell<PathBuf>,
}

impl Interpreters {
    /// The interpreter itself. What `PATH` names may be a script that chooses one, and takes its time.
    pub(super) async fn find(&self, runtime: Runtime) -> Result<PathBuf, ApiError> {
        let known = match runtime {
            Runtime::Python => &self.python,
            Runtime::Node => &self.node,
        };
        let asked = known.get_or_try_init(|| ask(runtime, runtime.program()));
        asked.await.cloned()
    }
}

async fn ask(runtime: Runtime, program: &str) -> Result<PathBuf, ApiError> {
    let asked = Command::new(program)
        .args(runtime.question())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await;
    let why = match asked {
        Err(error) => error.to_string(),
        Ok(output) => {
            let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if output.status.success() && !path.is_empty() {
                return Ok(path.into());
            }
            String::from_utf8_lossy(&output.stderr).trim().to_owned()
        }
    };
    Err(not_runnable(format!(
        "The handler is run by the machine's {program}, which cannot be started ({why}). {}.",
        runtime.advice()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_machine_without_the_interpreter_is_told_what_to_install() {
        let missing = ask(Runtime::Node, "slipway-no-such-node").await;
        let missing = missing.expect_err("there is none");
        assert_eq!(missing.code, "InvalidRuntimeException");
        let said = &missing.message;
        assert!(
            said.contains("slipway-no-such-node") && said.contains("Install Node.js"),
            "{said}"
        );
        let python = ask(Runtime::Python, "python3")
            .await
            .expect("tests need it");
        assert!(python.is_absolute(), "{}", python.display());
    }
}
