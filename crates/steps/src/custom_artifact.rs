//! `CustomArtifact`: an artifact source whose versions a script lists. Source: CustomArtifactConfig in the pipeline schema; docs:
//! continuous-delivery/x-platform-cd-features/services/add-a-custom-artifact-source-for-cd.
//!
//! The script runs on a delegate when the stage begins ([`crate::pin_artifacts`]) and writes JSON into the file that
//! `$HARNESS_ARTIFACT_RESULT_PATH` names. `artifactsArrayPath` leads to the artifacts in it, `versionPath` and the `attributes`
//! to what is told of each. The delegate reads the list ([`crate::shell::artifacts`]).

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use slipway_model::duration;
use slipway_plan::{ArtifactPlace, ArtifactQuestion};

use crate::context::StepContext;
use crate::shell;
use crate::shell::artifacts::{Chosen, Listing};
use crate::shell::task::{Outcome, Payload, Shell, Status, TASK_TYPE};
use crate::step::DelegateWork;
use crate::variable::{Variable, read};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    scripts: Scripts,
    #[serde(default)]
    inputs: Option<Vec<Variable>>,
    #[serde(default)]
    timeout: Option<String>,
    #[serde(default)]
    delegate_selectors: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Scripts {
    fetch_all_artifacts: Fetch,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fetch {
    #[serde(default)]
    artifacts_array_path: Option<String>,
    #[serde(default)]
    version_path: Option<String>,
    #[serde(default)]
    attributes: Option<Vec<Variable>>,
    spec: Script,
}

#[derive(Deserialize)]
struct Script {
    shell: String,
    source: shell::Source,
}

/// What a delegate is given to answer a question about the `number`th source of a stage; `None` where no script is asked.
///
/// # Errors
/// Why the script cannot run.
pub(crate) fn work(
    question: &ArtifactQuestion,
    number: usize,
    cx: &StepContext<'_>,
) -> Result<Option<DelegateWork>, String> {
    let ArtifactPlace::Script { spec } = &question.place else {
        return Ok(None);
    };
    let spec: Spec = read(spec)?;
    let listing = spec.listing(question, number)?;
    let payload = spec.payload(listing, cx.time_left())?;
    let selectors = shell::chosen_selectors(&spec.delegate_selectors, cx);
    Ok(Some(DelegateWork {
        task_type: TASK_TYPE.to_owned(),
        payload: json!(payload),
        selectors: selectors.map_err(|failure| failure.message)?,
        turn: u32::try_from(number).unwrap_or(u32::MAX),
    }))
}

/// What the delegate says came of a script.
///
/// # Errors
/// Why it chose nothing, and what to do.
pub(crate) fn chosen(result: &Value) -> Result<Chosen, String> {
    let outcome: Outcome =
        read(result).map_err(|why| format!("the delegate's answer cannot be read: {why}"))?;
    match (outcome.status, outcome.exit_code) {
        (Status::Success, _) => outcome.artifact.ok_or_else(|| {
            "the delegate ran its script and read no list of artifacts, which delegates of older versions do not know: \
             update the delegate"
                .to_owned()
        }),
        (Status::Timeout, _) => Err(
            "its script did not end in time and was killed: raise the `timeout` of the artifact source if it needs longer"
                .to_owned(),
        ),
        (Status::Failure, code) => Err(match (outcome.message, code) {
            (Some(message), _) => message,
            (None, Some(code)) => {
                format!("its script ended with exit code {code}; the log of this step has its output")
            }
            (None, None) => "its script failed; the log of this step has its output".to_owned(),
        }),
    }
}

impl Spec {
    fn listing(&self, question: &ArtifactQuestion, source: usize) -> Result<Listing, String> {
        let fetch = &self.scripts.fetch_all_artifacts;
        let filled = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        let version = filled(&fetch.version_path).ok_or(
            "`scripts.fetchAllArtifacts.versionPath` is missing: say where the version is in each artifact that the script \
             lists, `version` for instance",
        )?;
        let attributes = fetch.attributes.iter().flatten();
        let attributes: BTreeMap<String, String> = attributes
            .map(|one| Ok((one.name.clone(), one.encoded()?)))
            .collect::<Result<_, String>>()?;
        Ok(Listing {
            source,
            array: filled(&fetch.artifacts_array_path).unwrap_or_else(|| "$".to_owned()),
            version,
            attributes,
            wanted: question
                .version
                .clone()
                .ok_or("it says no version that is wanted")?,
            every: false,
        })
    }

    /// The work, for as long as the script may take and there is time `left`.
    fn payload(&self, listing: Listing, left: Duration) -> Result<Payload, String> {
        let own = self.timeout.as_deref().filter(|text| !text.is_empty());
        let own = own.map(duration::parse).transpose();
        let own = own.map_err(|error| format!("timeout: {error}"))?;
        let script = &self.scripts.fetch_all_artifacts.spec;
        let text = script.source.inline();
        Ok(Payload {
            shell: match script.shell.as_str() {
                "Bash" => Shell::Bash,
                "PowerShell" => Shell::PowerShell,
                other => {
                    return Err(format!(
                        "shell: `{other}` is unknown; use Bash or PowerShell"
                    ));
                }
            },
            script: text
                .ok_or("source: only scripts of type Inline are run")?
                .to_owned(),
            environment: shell::environment(self.inputs.iter().flatten())?,
            outputs: Vec::new(),
            working_directory: None,
            timeout_seconds: shell::whole_seconds(own.map_or(left, |own| own.min(left))),
            artifacts: Some(listing),
        })
    }
}
