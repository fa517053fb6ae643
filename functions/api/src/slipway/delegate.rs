//! What a delegate says to the service about its task. Bodies are bare JSON, without an envelope.
//!
//! - `GET  …/tasks/{id}`: claims the task for the delegate in `X-Delegate-Name` and answers with
//!   [`ClaimedTask`]. 404 unknown, 409 taken by another or done, 410 cancelled, 412 when the selectors in
//!   `X-Delegate-Selectors` do not suit.
//! - `POST …/tasks/{id}/logs` with `{"unit","lines":[{"level","out","time"}]}`. Of an errand, which no run waits for, they
//!   are not kept: there is no step whose log they could be.
//! - `POST …/tasks/{id}/result` with the outcome; the first one counts, a later one gets 409.
//! - `GET  …/tasks/{id}/cancelled`: `{"cancelled":true}` when nobody needs the work any more.
//!
//! A task token is never part of any of these: the delegate has it from its activity.

use std::collections::BTreeSet;

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use slipway_engine::error_name::ErrorName;
use slipway_expr::secret::{Piece, SecretRef, SecretText};
use slipway_model::id::{EntityId, Scope};
use slipway_steps::delegate::{ClaimedTask, NAME_HEADER, SELECTORS_HEADER, SecretValue, lacking};
use slipway_steps::shell::task::{Outcome, UNIT};
use slipway_store::StoreError;
use slipway_store::record::{DelegateTaskRecord, LogLine};

use crate::Deps;
use crate::auth::Caller;
use crate::body::Body;
use crate::call::Call;
use crate::error::{ApiError, ApiResult};

/// Longest name of a delegate.
const LONGEST_NAME: usize = 128;

/// Lines of one request, and bytes of one line.
const MOST_LINES: usize = 5_000;
const LONGEST_LINE: usize = 60 * 1024;

/// Time of a task that names none, in seconds: Harness's default for a step.
const DEFAULT_TIMEOUT: u64 = 600;

pub(super) fn routes() -> Router<Deps> {
    Router::new()
        .route("/slipway/api/delegate/tasks/{id}", get(claim))
        .route("/slipway/api/delegate/tasks/{id}/logs", post(logs))
        .route("/slipway/api/delegate/tasks/{id}/result", post(result))
        .route("/slipway/api/delegate/tasks/{id}/cancelled", get(cancelled))
}

fn not_found(id: &str) -> ApiError {
    ApiError::not_found(format!("Delegate task [{id}] does not exist"))
}

fn gone(id: &str) -> ApiError {
    ApiError::new(
        ErrorName::Conflict,
        format!("Delegate task [{id}] was cancelled"),
    )
    .with_status(StatusCode::GONE)
}

/// What a task is for.
struct Purpose {
    /// Where references of secrets are resolved.
    scope: Scope,
    /// Whether its run has ended.
    over: bool,
}

/// A task of the caller's account, with what it is for.
async fn find(deps: &Deps, caller: &Caller, id: &str) -> ApiResult<(DelegateTaskRecord, Purpose)> {
    let task = deps
        .store
        .get_delegate_task(id)
        .await
        .map_err(|error| match error {
            StoreError::NotFound { .. } => not_found(id),
            other => other.into(),
        })?;
    let purpose = match &task.errand_of {
        Some(scope) => Some(Purpose {
            scope: scope.clone(),
            over: false,
        }),
        None => deps.store.find_run(&task.run).await?.map(|run| Purpose {
            over: run.status.is_final(),
            scope: run.scope,
        }),
    };
    let purpose = purpose.filter(|purpose| purpose.scope.account == caller.account);
    Ok((task, purpose.ok_or_else(|| not_found(id))?))
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .trim()
}

fn delegate_name(headers: &HeaderMap) -> ApiResult<&str> {
    let name = header(headers, NAME_HEADER);
    let plain = |c: char| c.is_ascii_graphic() || c == ' ';
    match !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(plain) {
        true => Ok(name),
        false => Err(ApiError::field(
            NAME_HEADER,
            "must name the delegate, in 1 to 128 characters",
        )),
    }
}

async fn claim(
    Call(deps, caller, _): Call,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> ApiResult {
    let name = delegate_name(&headers)?;
    let (task, purpose) = find(&deps, &caller, &id).await?;
    if task.cancelled {
        return Err(gone(&id));
    }
    let carried: Vec<String> = header(&headers, SELECTORS_HEADER)
        .split(',')
        .map(|selector| selector.trim().to_owned())
        .filter(|selector| !selector.is_empty())
        .collect();
    if !lacking(&carried, name, &task.selectors).is_empty() {
        return Err(unsuitable(&deps, &task, name, &carried).await?);
    }
    let task = deps
        .store
        .claim_delegate_task(&id, name)
        .await
        .map_err(|error| match error {
            StoreError::Conflict { .. } | StoreError::AlreadyExists { .. } => taken(&id),
            other => other.into(),
        })?;
    let secrets = secrets(&deps, &task, &purpose.scope).await?;
    tracing::info!(
        target: "slipway::audit",
        principal = %caller.principal,
        delegate = name,
        task = %id,
        secrets = secrets.len(),
        action = "claimed",
        "delegate {name} claimed task {id}"
    );
    let timeout = task.payload.get("timeoutSeconds").and_then(Value::as_u64);
    Ok(Json(ClaimedTask {
        id: task.id,
        task_type: task.task_type,
        payload: task.payload,
        secrets,
        selectors: task.selectors,
        timeout_seconds: timeout.unwrap_or(DEFAULT_TIMEOUT),
    })
    .into_response())
}

/// Why a delegate may not have a task. The log of the step says it too, once for each delegate: until another one comes
/// it is all that is to be told of the step. Who gave out an errand reads it of the task.
async fn unsuitable(
    deps: &Deps,
    task: &DelegateTaskRecord,
    name: &str,
    carried: &[String],
) -> ApiResult<ApiError> {
    let lacks = lacking(carried, name, &task.selectors).join(", ");
    let message = format!("Delegate {name} does not carry the selectors {lacks}");
    if deps.store.note_unsuitable(&task.id, name).await? && task.errand_of.is_none() {
        let line = LogLine {
            level: "WARN".to_owned(),
            out: format!("{message}; the step waits for a delegate that does.\n"),
            time: deps.clock.now().to_string(),
        };
        deps.store
            .append_log(&task.run, &task.node, UNIT, &[line])
            .await?;
    }
    Ok(ApiError::new(ErrorName::DelegateUnsuitable, message)
        .with_status(StatusCode::PRECONDITION_FAILED))
}

fn taken(id: &str) -> ApiError {
    let message = format!("Delegate task [{id}] was taken by another delegate or is done");
    ApiError::new(ErrorName::Conflict, message)
}

/// The values of the secrets that a payload refers to, each once. A secret that does not exist ends the
/// task: no delegate could do it, and the step tells its user why.
async fn secrets(
    deps: &Deps,
    task: &DelegateTaskRecord,
    of: &Scope,
) -> ApiResult<Vec<SecretValue>> {
    let mut references = BTreeSet::new();
    collect(&task.payload, &mut references);
    let mut values = Vec::with_capacity(references.len());
    for reference in references {
        let (scope, id) = of.resolve(reference.as_str());
        let value = match deps.secret_values.get(&scope, &id).await {
            Ok(value) => value,
            Err(StoreError::NotFound { .. }) => return Err(give_up(deps, task, &reference).await?),
            Err(error) => return Err(error.into()),
        };
        values.push(SecretValue {
            placeholder: SecretText::secret(reference).encode(),
            value: value.expose_secret().to_owned(),
        });
    }
    Ok(values)
}

async fn give_up(
    deps: &Deps,
    task: &DelegateTaskRecord,
    reference: &SecretRef,
) -> ApiResult<ApiError> {
    let reference = reference.as_str();
    // What a trigger asks for is asked again by itself.
    let then = match task.errand_of {
        Some(_) => "",
        None => " and run again",
    };
    let message = format!("The secret {reference} does not exist: create it{then}.");
    let outcome = json!({"status": "FAILURE", "message": message});
    deps.store.finish_delegate_task(&task.id, &outcome).await?;
    Ok(ApiError::new(ErrorName::Conflict, message))
}

fn collect(value: &Value, into: &mut BTreeSet<SecretRef>) {
    match value {
        Value::String(text) => {
            for piece in SecretText::decode(text).pieces() {
                if let Piece::Secret(reference) = piece {
                    into.insert(reference.clone());
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, into)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Body of a log request.
#[derive(Deserialize)]
struct Lines {
    unit: String,
    lines: Vec<LogLine>,
}

async fn logs(Call(deps, caller, _): Call, Path(id): Path<String>, body: Body) -> ApiResult {
    let (task, _) = find(&deps, &caller, &id).await?;
    if task.result.is_some() {
        return Err(taken(&id));
    }
    let mut body: Lines = serde_json::from_value(body.object()?)
        .map_err(|error| ApiError::invalid(format!("The log cannot be read: {error}")))?;
    if body.lines.len() > MOST_LINES || body.unit.is_empty() || body.unit.len() > LONGEST_NAME {
        let message = format!("must hold a unit and at most {MOST_LINES} lines");
        return Err(ApiError::field("lines", message));
    }
    for line in &mut body.lines {
        tidy(line, &deps);
    }
    if task.errand_of.is_none() {
        deps.store
            .append_log(&task.run, &task.node, &body.unit, &body.lines)
            .await?;
    }
    Ok(Json(json!({})).into_response())
}

/// A line that cannot break the record: of bounded length, with a known level and a time.
fn tidy(line: &mut LogLine, deps: &Deps) {
    if line.out.len() > LONGEST_LINE {
        let end = (0..=LONGEST_LINE)
            .rev()
            .find(|at| line.out.is_char_boundary(*at))
            .unwrap_or(0);
        line.out.truncate(end);
        line.out.push_str("…\n");
    }
    if !["INFO", "WARN", "ERROR"].contains(&line.level.as_str()) {
        "INFO".clone_into(&mut line.level);
    }
    if line.time.parse::<jiff::Timestamp>().is_err() {
        line.time = deps.clock.now().to_string();
    }
}

async fn result(Call(deps, caller, _): Call, Path(id): Path<String>, body: Body) -> ApiResult {
    let (task, purpose) = find(&deps, &caller, &id).await?;
    // Read as what the step will read, so that nonsense is refused here and not there.
    let mut outcome: Outcome = serde_json::from_value(body.object()?)
        .map_err(|error| ApiError::invalid(format!("The result cannot be read: {error}")))?;
    if task.cancelled {
        return Err(gone(&id));
    }
    if task.result.is_some() {
        return Err(taken(&id));
    }
    keep_secrets(&deps, &purpose.scope, &id, &mut outcome).await?;
    deps.store
        .finish_delegate_task(&id, &json!(outcome))
        .await
        .map_err(|error| match error {
            StoreError::Conflict { .. } | StoreError::AlreadyExists { .. } => taken(&id),
            other => other.into(),
        })?;
    Ok(Json(json!({})).into_response())
}

/// Secret outputs are kept as secrets, under a reference that is the same however often the result is
/// posted; the result itself has only the references.
async fn keep_secrets(
    deps: &Deps,
    scope: &Scope,
    task: &str,
    outcome: &mut Outcome,
) -> ApiResult<()> {
    for (name, value) in outcome.take_secrets() {
        let digest = Sha256::digest(format!("{task}\n{name}"));
        let hex: String = digest
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let id = format!("slipway_output_{hex}");
        let reference =
            SecretRef::new(id.as_str()).map_err(|error| ApiError::invalid(error.to_string()))?;
        deps.secret_values
            .put(scope, &EntityId::new(id), &value)
            .await?;
        outcome.secret_references.insert(name, reference);
    }
    Ok(())
}

async fn cancelled(Call(deps, caller, _): Call, Path(id): Path<String>) -> ApiResult {
    let (task, purpose) = find(&deps, &caller, &id).await?;
    let over = task.cancelled || task.result.is_some() || purpose.over;
    Ok(Json(json!({"cancelled": over})).into_response())
}
