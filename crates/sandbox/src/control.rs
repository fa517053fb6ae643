//! `/_sandbox/…`: the account's own controls on HTTP, for tests and demonstrations.
//!
//! | path | GET | PUT | DELETE |
//! |---|---|---|---|
//! | `/_sandbox/faults` | faults in force | add a [`Fault`] | `?id=` one, or all |
//! | `/_sandbox/images` | rules | set an [`ImageRule`] | `?image=` one, or all |
//! | `/_sandbox/roles` | roles with conditions | set a [`RoleRule`] | `?arn=` one, or all |
//! | `/_sandbox/regions` | | `{"region": "ap-east-1", "enabled": true}` | |
//! | `/_sandbox/calls` | recent calls, `?service=&operation=` | | |
//! | `/_sandbox/code/{digest}` | a package of a Lambda function | | |
//! | `/_sandbox/resources` | what exists, `?kind=` | | |
//! | `/_sandbox/traffic` | where requests went, `?listener=&since=&rate=` | | |

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::StoreError;
use crate::fault::Fault;
use crate::image::ImageRule;
use crate::{ActiveFault, Call, Requests, RuleTraffic, Sandbox, lambda};

/// A role with conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RoleRule {
    /// ARN of the role.
    pub arn: String,
    /// The external id that `AssumeRole` must give.
    #[serde(default)]
    pub external_id: Option<String>,
    /// Whether nobody may assume the role.
    #[serde(default)]
    pub denied: bool,
}

pub(crate) fn routes() -> Router<Sandbox> {
    Router::new()
        .route(
            "/_sandbox/faults",
            get(faults).put(add_fault).delete(remove_faults),
        )
        .route(
            "/_sandbox/images",
            get(images).put(set_image).delete(remove_images),
        )
        .route(
            "/_sandbox/roles",
            get(roles).put(set_role).delete(remove_roles),
        )
        .route("/_sandbox/regions", put(set_region))
        .route("/_sandbox/calls", get(calls))
        .route("/_sandbox/code/{name}", get(code))
        .route("/_sandbox/traffic", get(traffic))
}

/// What a control request names; which member counts depends on the path.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Selection {
    id: Option<u64>,
    image: Option<String>,
    arn: Option<String>,
    service: Option<String>,
    operation: Option<String>,
}

async fn faults(State(sandbox): State<Sandbox>) -> Json<Vec<ActiveFault>> {
    Json(sandbox.faults().list())
}

async fn add_fault(State(sandbox): State<Sandbox>, Json(fault): Json<Fault>) -> Response {
    let id = sandbox.faults().add(fault);
    Json(json!({"id": id})).into_response()
}

async fn remove_faults(
    State(sandbox): State<Sandbox>,
    Query(selection): Query<Selection>,
) -> StatusCode {
    match selection.id {
        None => sandbox.faults().clear(),
        Some(id) if !sandbox.faults().remove(id) => return StatusCode::NOT_FOUND,
        Some(_) => {}
    }
    StatusCode::NO_CONTENT
}

async fn images(State(sandbox): State<Sandbox>) -> Response {
    shown(sandbox.images())
}

async fn set_image(State(sandbox): State<Sandbox>, Json(rule): Json<ImageRule>) -> Response {
    done(sandbox.set_image(rule))
}

async fn remove_images(
    State(sandbox): State<Sandbox>,
    Query(selection): Query<Selection>,
) -> Response {
    done(sandbox.remove_images(selection.image.as_deref()))
}

async fn roles(State(sandbox): State<Sandbox>) -> Response {
    shown(sandbox.roles())
}

async fn set_role(State(sandbox): State<Sandbox>, Json(rule): Json<RoleRule>) -> Response {
    done(sandbox.set_role(rule))
}

async fn remove_roles(
    State(sandbox): State<Sandbox>,
    Query(selection): Query<Selection>,
) -> Response {
    done(sandbox.remove_roles(selection.arn.as_deref()))
}

/// Whether the account opted in to a region.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RegionRule {
    region: String,
    enabled: bool,
}

async fn set_region(State(sandbox): State<Sandbox>, Json(rule): Json<RegionRule>) -> Response {
    done(sandbox.set_region(&rule.region, rule.enabled))
}

async fn calls(
    State(sandbox): State<Sandbox>,
    Query(selection): Query<Selection>,
) -> Json<Vec<Call>> {
    let mut calls = sandbox.calls();
    calls.retain(|call| {
        let same = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        same(&selection.service, call.service) && same(&selection.operation, &call.operation)
    });
    Json(calls)
}

/// Whose traffic to show: see [`Sandbox::traffic`] and [`RuleTraffic::requests`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Watched {
    /// ARN of a listener.
    listener: String,
    since: Option<Timestamp>,
    /// Requests per second; 1 without a word.
    rate: Option<f64>,
}

/// A rule's traffic together with what it means in requests.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Counted {
    #[serde(flatten)]
    traffic: RuleTraffic,
    requests: Requests,
}

async fn traffic(State(sandbox): State<Sandbox>, Query(watched): Query<Watched>) -> Response {
    let rate = watched.rate.unwrap_or(1.0);
    match sandbox.traffic(&watched.listener, watched.since) {
        Err(error) => failed(&error),
        Ok(None) => {
            let message = format!("There is no listener {}.", watched.listener);
            (StatusCode::NOT_FOUND, message).into_response()
        }
        Ok(Some(rules)) => {
            let rules = rules.into_iter().map(|traffic| Counted {
                requests: traffic.requests(rate),
                traffic,
            });
            Json(rules.collect::<Vec<_>>()).into_response()
        }
    }
}

/// A package, where `GetFunction` says that it is.
async fn code(State(sandbox): State<Sandbox>, Path(name): Path<String>) -> Response {
    let key = lambda::code::package_key(&name);
    let package =
        sandbox.look(|account| account.lambda.packages.get(&key).map(|kept| kept.bytes()));
    match package {
        Err(error) => failed(&error),
        Ok(Some(bytes)) => bytes.into_response(),
        Ok(None) => {
            let message = "There is no such package, or it is too large to be kept.";
            (StatusCode::NOT_FOUND, message).into_response()
        }
    }
}

fn done(result: Result<(), StoreError>) -> Response {
    match result {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => failed(&error),
    }
}

fn shown<T: Serialize>(result: Result<T, StoreError>) -> Response {
    match result {
        Ok(found) => Json(found).into_response(),
        Err(error) => failed(&error),
    }
}

pub(crate) fn failed(error: &StoreError) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
}
