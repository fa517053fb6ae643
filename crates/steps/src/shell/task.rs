//! What the step and the delegate say to each other.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use slipway_expr::secret::SecretRef;
use slipway_plan::FoundArtifact;

use super::artifacts::{Chosen, Listing};

/// `taskType` of the work.
pub const TASK_TYPE: &str = "ShellScript";

/// The one command unit of scripts, named as Harness names it.
pub const UNIT: &str = "Execute";

/// The work. Every text may hold references of secrets, encoded as [`slipway_expr::SecretText`] says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Payload {
    /// What runs the script.
    #[serde(default, skip_serializing_if = "Shell::is_bash")]
    pub shell: Shell,
    /// The script.
    pub script: String,
    /// Environment variables of the script.
    pub environment: Vec<Environment>,
    /// Variables to report when the script has ended well.
    pub outputs: Vec<Output>,
    /// Where to start it; a directory of its own if not given.
    pub working_directory: Option<String>,
    /// How long it may run, in seconds.
    pub timeout_seconds: u64,
    /// What is asked of the list of artifacts that it writes, if it is to write one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Listing>,
}

/// What runs a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shell {
    /// `bash`.
    #[default]
    Bash,
    /// `pwsh`, PowerShell 7.
    PowerShell,
}

impl Shell {
    fn is_bash(&self) -> bool {
        *self == Self::Bash
    }
}

/// One environment variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// One output variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Its name in expressions.
    pub name: String,
    /// The shell variable that holds it.
    pub variable: String,
    /// Whether its value is a secret.
    pub secret: bool,
}

/// How the work ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// How.
    pub status: Status,
    /// Exit code of the script, if it ended by itself.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// Output variables by name.
    #[serde(default)]
    pub outputs: BTreeMap<String, String>,
    /// Names of those outputs that are secrets.
    #[serde(default)]
    pub secret_outputs: Vec<String>,
    /// References of the secrets in which the service keeps secret outputs, by name. Set by the service
    /// only; what a delegate says here is thrown away ([`Outcome::take_secrets`]).
    #[serde(default)]
    pub secret_references: BTreeMap<String, SecretRef>,
    /// Why it failed, where the exit code does not tell.
    #[serde(default)]
    pub message: Option<String>,
    /// What was chosen from its list of artifacts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Chosen>,
    /// All that is in its list of artifacts, where all were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Vec<FoundArtifact>>,
}

impl Outcome {
    /// Takes the values of secret outputs out, so that the rest can be stored: names and values. The
    /// service keeps each as a secret and notes its reference in [`Outcome::secret_references`].
    pub fn take_secrets(&mut self) -> Vec<(String, SecretString)> {
        self.secret_references.clear();
        let names = self.secret_outputs.iter();
        let taken =
            names.filter_map(|name| Some((name.clone(), self.outputs.remove(name)?.into())));
        taken.collect()
    }
}

/// How a script ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// With exit code 0.
    Success,
    /// With another exit code, by a signal, or it could not be started.
    Failure,
    /// It was killed because its time was up.
    Timeout,
}

/// Whether a text is the name of a shell variable and nothing that a shell would evaluate.
pub fn is_shell_name(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
