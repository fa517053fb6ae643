//! The script of a `CustomArtifact` trigger, which lists the versions that there are. Source: `custom_artifact` in the trigger
//! schema. `timeout` and `delegateSelectors` are those that services have.
//!
//! A delegate runs it without a run ([`slipway_engine`]'s errands) and reads the list as it does for services
//! ([`crate::shell::artifacts`]), but tells all of it. `metadata` names what is told of each version, by its path.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use slipway_expr::{Context, Limits, Segment};
use slipway_model::duration;
use slipway_model::id::Scope;
use slipway_plan::{ArtifactVersion, FoundArtifact};

use crate::shell;
use crate::shell::artifacts::Listing;
use crate::shell::task::{Outcome, Payload, Shell, Status, TASK_TYPE};
use crate::step::DelegateWork;
use crate::variable::{Variable, read, selectors};

/// Time of a script whose trigger says none: Harness's default for a step.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Longest time that a script may have.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    script: Option<String>,
    #[serde(default)]
    artifacts_array_path: Option<String>,
    #[serde(default)]
    version_path: Option<String>,
    #[serde(default)]
    inputs: Option<Vec<Variable>>,
    #[serde(default)]
    metadata: BTreeMap<String, Value>,
    #[serde(default)]
    timeout: Option<String>,
    #[serde(default)]
    delegate_selectors: Value,
}

/// What expressions can know without a run: where the trigger is, and secrets, which stay references.
struct Names<'a>(&'a Scope);

impl Context for Names<'_> {
    fn lookup(&self, path: &[Segment]) -> Option<slipway_expr::Value> {
        let path: Vec<&str> = path.iter().map(Segment::key).collect::<Option<_>>()?;
        let found = match path.as_slice() {
            ["account", "identifier"] => self.0.account.as_str(),
            ["org", "identifier"] => self.0.org.as_ref()?.as_str(),
            ["project", "identifier"] => self.0.project.as_ref()?.as_str(),
            _ => return None,
        };
        Some(found.into())
    }
}

/// What a delegate is given to list the versions of a trigger of `scope`, and for how long it may take. `place` is the spec
/// of the trigger.
///
/// # Errors
/// Why the script cannot run.
pub fn work(place: &Value, scope: &Scope) -> Result<(DelegateWork, Duration), String> {
    let evaluated = slipway_expr::evaluate_json(place, &Names(scope), &Limits::default());
    let (place, _) = evaluated.map_err(|why| {
        format!(
            "{}: a trigger has no run, whose expressions it could know beside secrets; write a fixed value",
            why.full_text()
        )
    })?;
    let spec: Spec = read(&place)?;
    let filled = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let script = filled(&spec.script)
        .ok_or("`script` of the trigger is missing: let it list the versions that there are")?;
    let version = filled(&spec.version_path).ok_or(
        "`versionPath` of the trigger is missing: say where the version is in each artifact that the script lists, \
         `version` for instance",
    )?;
    let timeout = match filled(&spec.timeout) {
        None => TIMEOUT,
        Some(text) => duration::parse(&text).map_err(|why| format!("timeout: {why}"))?,
    };
    let timeout = timeout.min(LONGEST);
    let attributes = spec
        .metadata
        .iter()
        .map(|(name, path)| match path.as_str() {
            Some(path) => Ok((name.clone(), path.to_owned())),
            None => Err(format!(
                "metadata.{name}: it is no path such as assets[0].downloadUrl"
            )),
        });
    let payload = Payload {
        shell: Shell::Bash,
        script,
        environment: shell::environment(spec.inputs.iter().flatten())?,
        outputs: Vec::new(),
        working_directory: None,
        timeout_seconds: shell::whole_seconds(timeout),
        artifacts: Some(Listing {
            source: 0,
            array: filled(&spec.artifacts_array_path).unwrap_or_else(|| "$".to_owned()),
            version,
            attributes: attributes.collect::<Result<_, String>>()?,
            wanted: ArtifactVersion::Last,
            every: true,
        }),
    };
    let work = DelegateWork {
        task_type: TASK_TYPE.to_owned(),
        payload: json!(payload),
        selectors: selectors(&spec.delegate_selectors),
        turn: 0,
    };
    Ok((work, timeout))
}

/// The versions that a delegate says there are, by name.
///
/// # Errors
/// Why it tells none, and what to do.
pub fn versions(result: &Value) -> Result<Vec<FoundArtifact>, String> {
    let outcome: Outcome =
        read(result).map_err(|why| format!("the delegate's answer cannot be read: {why}"))?;
    match (outcome.status, outcome.exit_code) {
        (Status::Success, _) => outcome.artifacts.ok_or_else(|| {
            "the delegate ran its script and did not tell the whole list, which delegates of older versions do not know: \
             update the delegate"
                .to_owned()
        }),
        (Status::Timeout, _) => Err(
            "its script did not end in time and was killed: raise the `timeout` of the trigger if it needs longer"
                .to_owned(),
        ),
        (Status::Failure, code) => Err(match (outcome.message, code) {
            (Some(message), _) => message,
            (None, Some(code)) => format!(
                "its script ended with exit code {code}: run it where the delegate runs to see what it writes, which is \
                 not kept"
            ),
            (None, None) => {
                "its script failed: run it where the delegate runs to see what it writes, which is not kept".to_owned()
            }
        }),
    }
}

#[cfg(test)]
#[path = "artifact_feed_tests.rs"]
mod tests;
