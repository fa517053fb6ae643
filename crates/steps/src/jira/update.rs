//! `JiraUpdate`: sets fields of an issue, adds comments, moves it to another status. Source: JiraUpdateStepInfo in
//! the pipeline schema.
//!
//! After a crash it goes on: fields are set again, which changes nothing; a comment is looked for among the newest
//! ones before it is added again; an issue that has the status already is not moved.

use std::collections::BTreeSet;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::approval::{key, key_fault};
use super::client::{Jira, Transition};
use super::{Given, field, field_faults};
use crate::context::StepContext;
use crate::step::{Progress, Step, Undo};
use crate::ticket::{Stop, Tries, UNIT, go_on, tell};
use crate::variable::{read, wrong};

/// The step.
pub struct JiraUpdate;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    issue_key: String,
    #[serde(default)]
    fields: Option<Vec<Given>>,
    #[serde(default)]
    transition_to: Option<TransitionTo>,
    #[serde(rename = "connectorRef")]
    _connector_ref: Value,
    #[serde(default, rename = "projectKey")]
    _project_key: Value,
    #[serde(default, rename = "issueType")]
    _issue_type: Value,
    #[serde(default, rename = "delegateSelectors")]
    _delegate_selectors: Value,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TransitionTo {
    status: String,
    #[serde(default)]
    transition_name: Option<String>,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct State {
    #[serde(default)]
    fields_set: bool,
    /// Comments, by their place in `fields`, that were about to be added.
    #[serde(default)]
    comments_sent: BTreeSet<usize>,
    /// Those that were.
    #[serde(default)]
    comments_added: BTreeSet<usize>,
    /// It was about to be moved.
    #[serde(default)]
    moving: bool,
    #[serde(default)]
    moved: bool,
    #[serde(default)]
    tries: Tries,
}

#[async_trait]
impl Step for JiraUpdate {
    fn step_type(&self) -> &'static str {
        "JiraUpdate"
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
        faults.extend(key_fault(&spec.issue_key));
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
    let key = key(&spec.issue_key)?;
    let jira = Jira::of(cx).await?;
    let given = spec.fields.as_deref().unwrap_or_default();
    if !state.fields_set {
        set_fields(key, given, &jira, cx).await?;
        state.fields_set = true;
    }
    for (place, comment) in given.iter().enumerate().filter(|(_, one)| one.is_comment()) {
        if !state.comments_added.contains(&place) {
            add_comment(key, place, &comment.text(), &jira, state, cx).await?;
        }
    }
    if let Some(to) = spec.transition_to.as_ref().filter(|to| to.says_something())
        && !state.moved
    {
        move_to(key, to, &jira, state, cx).await?;
        state.moved = true;
    }
    let issue = jira.issue(cx, key).await?;
    let (outputs, left_out) = issue.outputs();
    tell(cx, &issue.key, &issue.url, &left_out);
    Ok(outputs)
}

async fn set_fields(
    key: &str,
    given: &[Given],
    jira: &Jira,
    cx: &mut StepContext<'_>,
) -> Result<(), Stop> {
    if given.iter().all(Given::is_comment) {
        return Ok(());
    }
    let known = jira.editable(cx, key).await?;
    let fields = field::encode(given, &known, jira, cx).await?;
    let names: Vec<&str> = given
        .iter()
        .filter(|one| !one.is_comment())
        .map(Given::name)
        .collect();
    jira.edit(cx, key, fields).await?;
    cx.info(UNIT, format!("Set {} of {key}", names.join(", ")));
    Ok(())
}

async fn add_comment(
    key: &str,
    place: usize,
    text: &str,
    jira: &Jira,
    state: &mut State,
    cx: &mut StepContext<'_>,
) -> Result<(), Stop> {
    if state.comments_sent.contains(&place) {
        // What comes from Jira is masked: so is what is looked for.
        let revealed = cx.secrets().reveal(json!(text)).await?;
        let own = cx.secrets().mask(revealed.as_str().unwrap_or_default());
        let there = jira.comments(cx, key).await?;
        if there.iter().any(|comment| comment.trim() == own.trim()) {
            state.comments_added.insert(place);
            return Ok(());
        }
    }
    state.comments_sent.insert(place);
    cx.save(state).await?;
    jira.comment(cx, key, text).await?;
    state.comments_added.insert(place);
    cx.info(UNIT, format!("Added a comment to {key}"));
    Ok(())
}

impl TransitionTo {
    fn name(&self) -> &str {
        self.transition_name.as_deref().unwrap_or_default().trim()
    }

    fn says_something(&self) -> bool {
        !self.status.trim().is_empty() || !self.name().is_empty()
    }

    /// Whether a way out of a status is the wanted one.
    fn is(&self, way: &Transition) -> bool {
        let same = |wanted: &str, own: &str| wanted.is_empty() || own.eq_ignore_ascii_case(wanted);
        same(self.status.trim(), &way.to) && same(self.name(), &way.name)
    }
}

async fn move_to(
    key: &str,
    to: &TransitionTo,
    jira: &Jira,
    state: &mut State,
    cx: &mut StepContext<'_>,
) -> Result<(), Stop> {
    let issue = jira.issue(cx, key).await?;
    let now = issue.text("status").unwrap_or_default().to_owned();
    let there = now.eq_ignore_ascii_case(to.status.trim());
    // A named way may lead back to where the issue is; after a crash that is as good as having gone it.
    if there && (to.name().is_empty() || state.moving) {
        cx.info(UNIT, format!("{key} is in status {now}"));
        return Ok(());
    }
    let ways = jira.transitions(cx, key).await?;
    let Some(way) = ways.iter().find(|way| to.is(way)) else {
        let ways: Vec<_> = ways
            .iter()
            .map(|way| format!("{} to {}", way.name, way.to))
            .collect();
        let ways = if ways.is_empty() {
            "nothing".to_owned()
        } else {
            ways.join(", ")
        };
        let name = match to.name() {
            "" => String::new(),
            name => format!(" by transition `{name}`"),
        };
        return Err(Stop::over(format!(
            "{key} cannot be moved to status `{}`{name}: from `{now}` its workflow offers {ways}.",
            to.status.trim()
        )));
    };
    state.moving = true;
    cx.save(state).await?;
    jira.transit(cx, key, &way.id).await?;
    cx.info(UNIT, format!("Moved {key} from {now} to {}", way.to));
    Ok(())
}
