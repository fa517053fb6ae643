//! `JiraCreate`: creates an issue. Source: JiraCreateStepInfo in the pipeline schema.
//!
//! Jira has no way to make a repeated request harmless. So the issue gets a label of this attempt of the step
//! (`slipway-` and 16 digits), and what may have been created before a crash is looked for by it. Jira's search
//! finds new issues after some seconds; the step looks three times, ten seconds apart, before it creates again.
//! Where issues of the type have no labels, a request that may have arrived is not sent again: the step fails
//! and says so.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::client::Jira;
use super::issue::Issue;
use super::{Given, field, field_faults};
use crate::context::StepContext;
use crate::step::{Progress, Step, Undo};
use crate::ticket::{Stop, Tries, UNIT, go_on, is_name, marker, tell};
use crate::variable::{is_expression, read, wrong};

/// How often an issue that may be there is looked for, and the wait between.
const LOOKS: u32 = 3;
const BETWEEN_LOOKS: Duration = Duration::from_secs(10);

/// Id of the field for labels.
const LABELS: &str = "labels";

/// The step.
pub struct JiraCreate;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    project_key: String,
    issue_type: String,
    #[serde(default)]
    fields: Option<Vec<Given>>,
    #[serde(rename = "connectorRef")]
    _connector_ref: Value,
    #[serde(default, rename = "delegateSelectors")]
    _delegate_selectors: Value,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct State {
    /// The request was about to be sent.
    #[serde(default)]
    sent: bool,
    /// The label that it carried.
    #[serde(default)]
    label: Option<String>,
    /// How often the issue was looked for since.
    #[serde(default)]
    looks: u32,
    /// The issue, once it is there.
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    tries: Tries,
}

#[async_trait]
impl Step for JiraCreate {
    fn step_type(&self) -> &'static str {
        "JiraCreate"
    }

    fn units(&self) -> &'static [&'static str] {
        &[UNIT]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        let spec: Spec = match read(spec) {
            Ok(spec) => spec,
            Err(message) => return vec![message],
        };
        let mut faults = field_faults(spec.fields.as_deref().unwrap_or_default());
        if !is_expression(&spec.project_key) && !is_name(spec.project_key.trim()) {
            faults.push("projectKey: it is no key of a project, such as SHOP".to_owned());
        }
        faults
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("an issue tells what was done; it is not taken back")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let step = cx.step().identifier.to_string();
        let spec: Spec = read(cx.spec()).map_err(|message| wrong(&step, &message))?;
        let mut state: State = cx.saved()?;
        if let Some(rest) = state.tries.early(cx) {
            return Ok(Progress::Again(rest));
        }
        let worked = work(&spec, &mut state, cx).await;
        go_on(worked, &mut state, |state| &mut state.tries, cx).await
    }
}

async fn work(spec: &Spec, state: &mut State, cx: &mut StepContext<'_>) -> Result<Value, Stop> {
    let jira = Jira::of(cx).await?;
    if state.key.is_none() && state.sent {
        state.key = look_for(&jira, state, cx).await?;
    }
    let key = match &state.key {
        Some(key) => key.clone(),
        None => {
            let key = create(spec, &jira, state, cx).await?;
            state.key = Some(key.clone());
            cx.save(state).await?;
            cx.info(UNIT, format!("Created {}", jira.link(&key)));
            key
        }
    };
    match jira.issue(cx, &key).await {
        Ok(issue) => {
            let (outputs, left_out) = issue.outputs();
            tell(cx, &issue.key, &issue.url, &left_out);
            Ok(outputs)
        }
        Err(Stop::Missing(failure) | Stop::Odd(failure) | Stop::Over(failure)) => {
            cx.warn(
                UNIT,
                format!("The new issue cannot be read: {}", failure.message),
            );
            let issue = Issue::bare(&key, jira.link(&key));
            Ok(issue.outputs().0)
        }
        Err(later) => Err(later),
    }
}

/// What may have been created before a crash.
async fn look_for(
    jira: &Jira,
    state: &mut State,
    cx: &mut StepContext<'_>,
) -> Result<Option<String>, Stop> {
    let Some(label) = state.label.clone() else {
        return Err(Stop::over(
            "Slipway was interrupted while it created an issue and cannot know whether Jira did so: issues of this type have no labels, by which it could be found. Look at the project, then run the step again if there is no new issue.",
        ));
    };
    let found = jira.labelled(cx, &label).await?;
    if let Some(key) = found.into_iter().next() {
        cx.info(
            UNIT,
            format!("Found {}, created before an interruption", jira.link(&key)),
        );
        return Ok(Some(key));
    }
    if state.looks < LOOKS {
        state.looks += 1;
        return Err(Stop::Wait(BETWEEN_LOOKS));
    }
    state.sent = false;
    Ok(None)
}

async fn create(
    spec: &Spec,
    jira: &Jira,
    state: &mut State,
    cx: &mut StepContext<'_>,
) -> Result<String, Stop> {
    let (project, issue_type) = (spec.project_key.trim(), spec.issue_type.trim());
    if !is_name(project) {
        return Err(Stop::over(format!(
            "projectKey: `{}` is no key of a project.",
            crate::ticket::text::words(project)
        )));
    }
    let given = spec.fields.as_deref().unwrap_or_default();
    let known = jira.creatable(cx, project, issue_type).await?;
    let mut fields = field::encode(given, &known, jira, cx).await?;
    fields.insert("project".to_owned(), json!({"key": project}));
    fields.insert("issuetype".to_owned(), json!({"name": issue_type}));
    state.label = known.contains_key(LABELS).then(|| marker(cx));
    if let Some(label) = &state.label {
        let labels = fields.entry(LABELS).or_insert_with(|| json!([]));
        if let Value::Array(labels) = labels {
            labels.push(label.as_str().into());
        }
    }
    let mut body = json!({"fields": fields});
    let comments: Vec<_> = given
        .iter()
        .filter(|one| one.is_comment())
        .map(|one| json!({"add": {"body": one.text()}}))
        .collect();
    if !comments.is_empty() {
        body["update"] = json!({"comment": comments});
    }
    cx.info(
        UNIT,
        format!("Creating a {issue_type} in project {project}"),
    );
    state.sent = true;
    state.looks = 0;
    cx.save(state).await?;
    let created = jira.create(cx, body).await;
    if let Err(Stop::Later {
        untouched: true, ..
    }) = created
    {
        state.sent = false;
    }
    created
}
