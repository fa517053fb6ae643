//! `Invoke`: functions run, in processes of this machine.
//!
//! Python and Node.js handlers of packages are run by the machine's `python3` and `node` ([`runtime`]). The package is
//! unpacked once ([`unpack`]); an execution environment is a process that loads the handler and then answers events, one
//! at a time, as on Lambda ([`environment`]); it is kept for the next event ([`environments`]). It sees nothing of this
//! process's own environment but `PATH`, and its credentials are those of the function's role in this account.
//!
//! What is not AWS's: the process is this user's and not jailed, and memory is not limited; a function that is being
//! updated runs its new code at once; layers are empty; what `Event` accepted is forgotten when the process ends, and
//! neither dead-letter queues nor destinations hear of it.

mod environment;
mod environments;
mod outcome;
mod plan;
mod runtime;
mod unpack;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

pub(crate) use environments::Environments;
pub(super) use unpack::{MOST_BYTES, declared_size};

use super::error::validation;
use super::name::Named;
use super::request::Request;
use crate::Sandbox;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::http::Reply;
use outcome::{Outcome, log_result};
use plan::Plan;

/// The operation's name.
pub(crate) const OPERATION: &str = "Invoke";

/// Largest event, bytes, by how a function is invoked (Lambda quotas, developer guide).
const LARGEST_EVENT: [(Kind, usize); 2] = [(Kind::Waiting, 6 << 20), (Kind::Event, 256 << 10)];
/// Waits before the second and the third attempt at an `Event` (Lambda developer guide, "Asynchronous invocation").
const AGAIN_AFTER: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(120)];
/// Longest `ClientContext`, characters of base64.
const LONGEST_CONTEXT: usize = 3_583;

/// `InvocationType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `RequestResponse`.
    Waiting,
    Event,
    DryRun,
}

/// What a request asks for.
struct Wanted {
    kind: Kind,
    /// `LogType: Tail`.
    tail: bool,
    client_context: Option<String>,
    event: Bytes,
}

impl Wanted {
    fn read(headers: &HeaderMap, body: &Bytes) -> Result<Self, ApiError> {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let kind = match header("x-amz-invocation-type") {
            None | Some("RequestResponse") => Kind::Waiting,
            Some("Event") => Kind::Event,
            Some("DryRun") => Kind::DryRun,
            Some(other) => {
                let constraint =
                    "Member must satisfy enum value set: [Event, RequestResponse, DryRun]";
                return Err(validation("invocationType", other, constraint));
            }
        };
        let tail = match header("x-amz-log-type") {
            None | Some("None") => false,
            Some("Tail") => true,
            Some(other) => {
                let constraint = "Member must satisfy enum value set: [Tail, None]";
                return Err(validation("logType", other, constraint));
            }
        };
        let largest = LARGEST_EVENT.iter().find(|(of, _)| *of == kind);
        if let Some((_, largest)) = largest
            && body.len() > *largest
        {
            return Err(too_large(kind, body.len(), *largest));
        }
        let event = match body.is_empty() {
            true => Bytes::from_static(b"{}"),
            false => body.clone(),
        };
        if let Err(error) = serde_json::from_slice::<Value>(&event) {
            return Err(ApiError::client(
                "InvalidRequestContentException",
                format!("Could not parse request body into json: {error}"),
            ));
        }
        Ok(Self {
            kind,
            tail,
            client_context: client_context(header("x-amz-client-context"))?,
            event,
        })
    }
}

fn too_large(kind: Kind, size: usize, largest: usize) -> ApiError {
    let message = match kind {
        Kind::Event => format!(
            "{size} byte payload is too large for the Event invocation type (limit {largest} bytes)"
        ),
        _ => {
            format!("Request must be smaller than {largest} bytes for the InvokeFunction operation")
        }
    };
    ApiError {
        code: "RequestTooLargeException",
        status: 413,
        message,
    }
}

fn client_context(text: Option<&str>) -> Result<Option<String>, ApiError> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let decoded = STANDARD.decode(text).ok();
    let object = decoded.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    match object {
        Some(Value::Object(_)) if text.len() <= LONGEST_CONTEXT => Ok(Some(text.to_owned())),
        _ => Err(ApiError::client(
            "InvalidRequestContentException",
            "Client context must be a valid Base64-encoded JSON object of at most 3,583 characters.",
        )),
    }
}

/// Carries out an `Invoke`.
pub(crate) async fn serve(
    sandbox: &Sandbox,
    caller: &Caller,
    request: &Request,
    headers: &HeaderMap,
) -> Result<Reply, ApiError> {
    let wanted = Wanted::read(headers, &request.payload)?;
    let found = sandbox.look(|account| {
        let named = Named::of(account, caller, request)?;
        Plan::of(account, caller, &named, &request.address)
    });
    let plan = found.map_err(|error| ApiError::server(error.to_string()))??;
    if wanted.kind == Kind::DryRun {
        return Ok(Reply::empty(204));
    }
    let environments = sandbox.environments().ok_or_else(no_folder)?;
    if wanted.kind == Kind::Event {
        let own = sandbox.clone();
        tokio::spawn(async move { go_on(&own, &plan, &wanted).await });
        return Ok(Reply::empty(202));
    }
    let own = sandbox.clone();
    // A function goes on when its caller has gone away.
    let run = tokio::spawn(async move {
        let request_id = uuid::Uuid::new_v4().to_string();
        let done = environments.run(&own, &plan, &wanted, &request_id).await;
        done.map(|outcome| answered(&plan, &wanted, outcome))
    });
    run.await
        .unwrap_or_else(|_| Err(ApiError::server("The invocation was interrupted.")))
}

fn no_folder() -> ApiError {
    ApiError::server(
        "This sandbox account was opened without a folder for functions, and cannot run any: \
         Sandbox::run_functions_in says where.",
    )
}

fn answered(plan: &Plan, wanted: &Wanted, outcome: Outcome) -> Reply {
    let mut reply = Reply::bytes(200, outcome.payload);
    reply.header("x-amz-executed-version", plan.version.clone());
    if outcome.failed {
        reply.header("x-amz-function-error", "Unhandled".to_owned());
    }
    if wanted.tail {
        reply.header("x-amz-log-result", log_result(&outcome.log));
    }
    reply
}

/// Attempts an `Event` up to three times. Who accepted it does not wait.
async fn go_on(sandbox: &Sandbox, plan: &Plan, wanted: &Wanted) {
    let Some(environments) = sandbox.environments() else {
        return;
    };
    let request_id = uuid::Uuid::new_v4().to_string();
    let mut waits = AGAIN_AFTER.into_iter();
    loop {
        let why = match environments.run(sandbox, plan, wanted, &request_id).await {
            Ok(outcome) if !outcome.failed => return,
            Ok(outcome) => String::from_utf8_lossy(&outcome.payload).into_owned(),
            Err(error) => error.message,
        };
        tracing::warn!(
            function = plan.name,
            request = request_id,
            error = why,
            "an event was not handled"
        );
        let Some(wait) = waits.next() else { return };
        sandbox.clock().sleep(wait).await;
    }
}
