//! Approvals: `/v1/orgs/{org}/projects/{project}/approvals/execution/{run}` and
//! `/pipeline/api/approvals/{id}/harness/activity`.
//!
//! An approval is an attempt of a step of one of [`TYPES`]; its id is `<run>.<node>.<attempt>`. People answer those of
//! type `HarnessApproval`, where they are members of one of its user groups; a ticket or a script decides the others.

mod shown;

use axum::Json;
use axum::Router;
use axum::extract::{Extension, Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;
use slipway_engine::error_name::ErrorName;
use slipway_engine::signal::{Word, say};
use slipway_model::id::PrincipalId;
use slipway_model::status::Status;
use slipway_steps::approval::{
    Activity, Approval, KIND, Refusal, Verdict, activities, admit, deciding,
};
use slipway_store::record::{NodeRecord, RunRecord};

use crate::Deps;
use crate::auth::Caller;
use crate::body::Body;
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::execution::find;
use crate::pipeline::v1;
use crate::query::Query;
use crate::user_group::check_member;
use shown::{id_of, show, status};

/// Step types that are approvals, and types of approvals.
const TYPES: [&str; 4] = [
    "CustomApproval",
    BY_PEOPLE,
    "JiraApproval",
    "ServiceNowApproval",
];

/// The type that people answer.
const BY_PEOPLE: &str = "HarnessApproval";

pub(crate) fn routes() -> Router<Deps> {
    let mut routes = Router::new().route(
        "/pipeline/api/approvals/{id}/harness/activity",
        post(activity),
    );
    // Clients use both spellings.
    for prefix in ["", "/pipeline/api"] {
        let path =
            format!("{prefix}/v1/orgs/{{org}}/projects/{{project}}/approvals/execution/{{id}}");
        routes = routes.route(&path, get(list).post(by_callback));
    }
    routes
}

/// What somebody says.
#[derive(Debug, Deserialize)]
struct Said {
    action: Verdict,
    #[serde(default)]
    comments: Option<String>,
    #[serde(default, alias = "approver_inputs", rename = "approverInputs")]
    inputs: Option<Vec<Given>>,
}

#[derive(Debug, Deserialize)]
struct Given {
    name: String,
    #[serde(default)]
    value: Value,
}

async fn list(
    State(deps): State<Deps>,
    Extension(caller): Extension<Caller>,
    query: Query,
    Path((org, project, id)): Path<(String, String, String)>,
) -> ApiResult<Response> {
    let run = of_project(&deps, &caller, &query, (&org, &project), &id).await?;
    let status = query.one("approval_status")?;
    let node = query.one("node_execution_id")?;
    let kind = query.one("approval_type")?;
    let mut shown = Vec::new();
    for record in approvals(&deps, &run).await? {
        let approval = show(&deps, &run, &record).await?;
        let fits = node.is_none_or(|node| node == record.id.as_str())
            && kind.is_none_or(|kind| kind == record.node_type)
            && status.is_none_or(|status| approval["status"] == status);
        shown.extend(fits.then_some(approval));
    }
    Ok(Json(Value::Array(shown)).into_response())
}

/// The activity of an approval that is named by the `callbackId` of its spec.
async fn by_callback(
    State(deps): State<Deps>,
    Extension(caller): Extension<Caller>,
    query: Query,
    Path((org, project, id)): Path<(String, String, String)>,
    body: Body,
) -> ApiResult<Response> {
    let callback = query.required("callback_id")?;
    let run = of_project(&deps, &caller, &query, (&org, &project), &id).await?;
    let named = |record: &NodeRecord| {
        record.node_type == BY_PEOPLE
            && read(record).is_ok_and(|approval| approval.callback_id.as_deref() == Some(callback))
    };
    let mut records = approvals(&deps, &run).await?.into_iter();
    let Some(record) = records.find(named) else {
        let message = format!(
            "Run {} has no approval with the callback id {callback}",
            run.id
        );
        return Err(ApiError::new(ErrorName::NotFound, message));
    };
    let shown = note(&deps, &caller, &run, record, &body).await?;
    Ok(Json(shown).into_response())
}

async fn activity(
    State(deps): State<Deps>,
    Extension(caller): Extension<Caller>,
    query: Query,
    Path(id): Path<String>,
    body: Body,
) -> ApiResult {
    let unknown = || ApiError::new(ErrorName::NotFound, format!("There is no approval {id}"));
    let (run, _) = id.split_once('.').ok_or_else(unknown)?;
    let run = find(&deps, &caller, &query, run).await?;
    let mut records = approvals(&deps, &run).await?.into_iter();
    let record = records
        .find(|record| id_of(record) == id)
        .ok_or_else(unknown)?;
    Ok(success(note(&deps, &caller, &run, record, &body).await?))
}

/// Records what somebody said.
async fn note(
    deps: &Deps,
    caller: &Caller,
    run: &RunRecord,
    record: NodeRecord,
    body: &Body,
) -> ApiResult<Value> {
    let said: Said = serde_json::from_value(body.object()?)
        .map_err(|error| invalid(format!("The activity cannot be read: {error}")))?;
    if record.node_type != BY_PEOPLE {
        return Err(invalid(shown::not_by_hand(&record)));
    }
    if record.status != Status::ApprovalWaiting {
        let message = format!("The approval waits no more; it is {}", status(&record));
        return Err(ApiError::new(ErrorName::Conflict, message));
    }
    let approval = read(&record)?;
    let (groups, accounts) = (approval.groups(), approval.accounts());
    check_member(deps, &run.scope, caller, &groups, &accounts).await?;
    // What the approver before gave stands where this one gives nothing else.
    let before = activities(&run.signals, &record.id, record.attempt);
    check_first(&approval, &record, caller, &before)?;
    let before = before.into_iter().last().map(|last| last.inputs);
    let mut given: IndexMap<String, String> = before
        .into_iter()
        .flatten()
        .map(|(name, value)| (name, text(value)))
        .collect();
    let said_now = said.inputs.into_iter().flatten();
    given.extend(said_now.map(|given| (given.name, text(given.value))));
    let activity = admit(
        &approval,
        run.triggered_by.as_str(),
        caller.principal.as_str(),
        said.action,
        said.comments.as_deref().unwrap_or_default(),
        &given,
    );
    let activity = activity.map_err(|refusal| match refusal {
        Refusal::NotAllowed(message) => ApiError::new(ErrorName::Forbidden, message),
        Refusal::Invalid(message) => invalid(message),
    })?;
    put(deps, run, &record, &caller.principal, &activity).await?;
    let decided = check_counts(deps, run, &record, caller, &approval).await?;
    tracing::info!(
        target: "slipway::audit",
        principal = %caller.principal,
        token.id = %caller.token.id,
        run.id = %run.id,
        node.id = %record.id,
        action = ?activity.verdict,
        "{} answered the approval {}", caller.principal, record.name
    );
    let mut shown = show(deps, run, &record).await?;
    // The step hears it a moment later, and ends.
    if let Some(verdict) = decided {
        shown["status"] = word(verdict).into();
    }
    Ok(shown)
}

/// What an approval is after a verdict.
fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Approve => "APPROVED",
        Verdict::Reject => "REJECTED",
    }
}

/// Each person counts once: a second word of the same one is refused, with what is still wanted.
fn check_first(
    approval: &Approval,
    record: &NodeRecord,
    caller: &Caller,
    before: &[Activity],
) -> ApiResult<()> {
    let who = caller.principal.as_str();
    if !before.iter().any(|said| said.who == who) {
        return Ok(());
    }
    let wanted = approval.count().unwrap_or(1).saturating_sub(before.len());
    let message = format!(
        "{who} has answered the approval {} already; {wanted} more by others must follow",
        record.identifier
    );
    Err(ApiError::new(ErrorName::Conflict, message))
}

/// What has been decided, if it has. Who is overtaken by a word that decides is told so: theirs is written, and does not
/// count.
async fn check_counts(
    deps: &Deps,
    run: &RunRecord,
    record: &NodeRecord,
    caller: &Caller,
    approval: &Approval,
) -> ApiResult<Option<Verdict>> {
    let run = deps.store.get_run(&run.id).await?;
    let said = activities(&run.signals, &record.id, record.attempt);
    let own = said
        .iter()
        .position(|one| one.who == caller.principal.as_str());
    let decides = deciding(&said, approval.count().unwrap_or(1));
    let (Some(own), Some(decides)) = (own, decides) else {
        return Ok(None);
    };
    match said.get(decides).filter(|_| own > decides) {
        None => Ok(said.get(decides).map(|said| said.verdict)),
        Some(first) => {
            let came = word(first.verdict);
            let message = format!(
                "The approval waits no more; it is {came}: {} was faster, and what {} said does not count",
                first.who, caller.principal
            );
            Err(ApiError::new(ErrorName::Conflict, message))
        }
    }
}

async fn put(
    deps: &Deps,
    run: &RunRecord,
    record: &NodeRecord,
    who: &PrincipalId,
    activity: &Activity,
) -> ApiResult<()> {
    let says = serde_json::to_string(activity)
        .map_err(|error| ApiError::new(ErrorName::Internal, error.to_string()))?;
    let word = Word::Step {
        node: record.id.clone(),
        attempt: record.attempt,
        kind: format!("{KIND}{who}"),
        says,
    };
    Ok(say(&deps.runs, &run.id, who, &word).await?)
}

async fn of_project(
    deps: &Deps,
    caller: &Caller,
    query: &Query,
    (org, project): (&str, &str),
    id: &str,
) -> ApiResult<RunRecord> {
    let scope = v1::scope(caller, org, project)?;
    let run = find(deps, caller, query, id).await?;
    if run.scope != scope {
        let message = format!("There is no execution {id} in this project");
        return Err(ApiError::new(ErrorName::NotFound, message));
    }
    Ok(run)
}

/// The approvals of a run that have begun.
async fn approvals(deps: &Deps, run: &RunRecord) -> ApiResult<Vec<NodeRecord>> {
    let nodes = deps.store.list_nodes(&run.id, None).await?;
    Ok(nodes
        .into_iter()
        .filter(|node| TYPES.contains(&node.node_type.as_str()))
        .collect())
}

fn read(record: &NodeRecord) -> ApiResult<Approval> {
    serde_json::from_value(record.spec.clone()).map_err(|error| {
        invalid(format!(
            "The spec of {} cannot be read: {error}",
            record.name
        ))
    })
}

fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn invalid(message: String) -> ApiError {
    ApiError::new(ErrorName::InvalidRequest, message)
}
