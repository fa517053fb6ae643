//! Connectors: `/ng/api/connectors`.

use axum::Router;
use axum::extract::{Extension, Path, State};
use axum::routing::{get, post};
use serde_json::{Value, json};
use slipway_model::entity::Kind;
use slipway_model::status::ErrorType;
use slipway_plan::ConnectorPlan;
use slipway_steps::aws::assumes_role;
use slipway_store::StoreError;
use slipway_store::record::{ConnectionRecord, EntityRecord};

use crate::Deps;
use crate::auth::Caller;
use crate::body::Body;
use crate::bundle;
use crate::call::Call;
use crate::entity::{self, Filter, Place};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::page::Page;
use crate::query::Query;

/// Types that Terraform's provider can decode; it panics on any other, even inside a list.
const DECODABLE: &[&str] = &[
    "AppDynamics",
    "Artifactory",
    "Aws",
    "AwsKms",
    "AwsSecretManager",
    "Azure",
    "AzureArtifacts",
    "AzureKeyVault",
    "AzureRepo",
    "Bitbucket",
    "CEAws",
    "CEAzure",
    "CEK8sCluster",
    "CustomHealth",
    "CustomSecretManager",
    "Datadog",
    "DockerRegistry",
    "Dynatrace",
    "ElasticSearch",
    "Gcp",
    "GcpCloudCost",
    "GcpKms",
    "GcpSecretManager",
    "Git",
    "Github",
    "Gitlab",
    "HttpHelmRepo",
    "JDBC",
    "Jenkins",
    "Jira",
    "K8sCluster",
    "NewRelic",
    "Nexus",
    "OciHelmRepo",
    "PagerDuty",
    "Pdc",
    "Prometheus",
    "Rancher",
    "ServiceNow",
    "Splunk",
    "Spot",
    "SumoLogic",
    "Tas",
    "TerraformCloud",
    "Vault",
];

pub(crate) fn routes() -> Router<Deps> {
    Router::new()
        .route(
            "/ng/api/connectors",
            get(list_by_query).post(create).put(update),
        )
        .route("/ng/api/connectors/listV2", post(list))
        .route(
            "/ng/api/connectors/testConnection/{id}",
            post(test_connection),
        )
        .route("/ng/api/connectors/{id}", get(one).delete(remove))
}

/// A connector as every answer wraps it.
pub(crate) fn render(record: &EntityRecord) -> Value {
    json!({
        "connector": bundle::object(Kind::Connector, record),
        "createdAt": record.created_ms,
        "lastModifiedAt": record.updated_ms,
        "status": record.connection.as_ref().map(status),
        "activityDetails": {"lastActivityTime": record.updated_ms},
        "harnessManaged": false,
        "entityValidityDetails": {"valid": true, "invalidYaml": null},
        "governanceMetadata": null,
        "isFavorite": false,
    })
}

fn place(caller: &Caller, query: &Query, id: &str) -> ApiResult<Place> {
    Place::of(query.scope(caller)?, Kind::Connector, id)
}

fn strings(body: &Value, field: &str) -> Vec<String> {
    let items = body.get(field).and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

async fn list(
    state: State<Deps>,
    caller: Extension<Caller>,
    query: Query,
    body: Body,
) -> ApiResult {
    let body = body.object()?;
    filtered(state, caller, query, &body).await
}

async fn list_by_query(state: State<Deps>, caller: Extension<Caller>, query: Query) -> ApiResult {
    filtered(state, caller, query, &Value::Null).await
}

async fn filtered(
    State(deps): State<Deps>,
    Extension(caller): Extension<Caller>,
    query: Query,
    body: &Value,
) -> ApiResult {
    let filter = Filter {
        search: query.one("searchTerm")?.map(str::to_owned),
        identifiers: strings(body, "connectorIdentifiers"),
        types: strings(body, "types"),
    };
    let (scope, page) = (query.scope(&caller)?, Page::ng(&query)?);
    let (found, total) = entity::list(&deps, &scope, Kind::Connector, None, &filter, page).await?;
    Ok(success(
        page.render(found.iter().map(render).collect(), total),
    ))
}

async fn one(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let record = entity::get(&deps, &place(&caller, &query, &id)?).await?;
    let mut shown = render(&record);
    if let Some(id) = external_id(&deps, &record, &shown["connector"]).await? {
        shown["slipwayExternalId"] = id.into();
    }
    Ok(success(shown))
}

/// The external id that Slipway gives for an AWS connector whose own names none, for the trust policy of its role.
async fn external_id(
    deps: &Deps,
    record: &EntityRecord,
    connector: &Value,
) -> ApiResult<Option<String>> {
    match deps.aws.issuer() {
        Some(issuer) if assumes_role(&connector["spec"]) => {
            let made = issuer.external_ids().of(&record.scope, &record.id).await?;
            Ok(Some(made))
        }
        _ => Ok(None),
    }
}

fn draft(caller: &Caller, query: &Query, body: &Value) -> ApiResult<entity::Draft> {
    let scope = bundle::scope(caller, query, Kind::Connector, body)?;
    let draft = bundle::draft(scope, Kind::Connector, body, None)?;
    check_type(draft.entity_type.as_deref())?;
    Ok(draft)
}

/// Refuses a type that would later break the clients that list it.
pub(crate) fn check_type(given: Option<&str>) -> ApiResult<()> {
    let given = given.ok_or_else(|| ApiError::field("type", "must not be empty"))?;
    match DECODABLE.contains(&given) {
        true => Ok(()),
        false => Err(ApiError::field(
            "type",
            format!("`{given}` is not a type of connector"),
        )),
    }
}

async fn create(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let draft = draft(&caller, &query, &body.object()?)?;
    let saved = entity::create(&deps, &caller, draft).await?;
    Ok(saved.answer(render))
}

async fn update(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let draft = draft(&caller, &query, &body.object()?)?;
    let before = entity::get(&deps, &draft.place).await?;
    if before.entity_type != draft.entity_type {
        return Err(ApiError::field("type", "of a connector cannot be changed"));
    }
    let saved = entity::update(&deps, &caller, draft).await?;
    Ok(saved.answer(render))
}

/// Tries what a connector leads to, and keeps what came of it. Of types that are not tested it says so honestly: clients
/// read `UNKNOWN` as neither good nor bad.
async fn test_connection(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let place = place(&caller, &query, &id)?;
    let record = entity::get(&deps, &place).await?;
    let found = bundle::object(Kind::Connector, &record);
    let connector = ConnectorPlan {
        reference: id,
        kind: found["type"].as_str().unwrap_or_default().to_owned(),
        spec: found["spec"].clone(),
    };
    let tested = deps.sources.test_connection(&connector, &record.scope);
    let Some(tested) = tested.await else {
        return Ok(success(untested(&connector.kind, deps.clock.now_ms())));
    };
    let tested_ms = deps.clock.now_ms();
    let before = record.connection.as_ref();
    let connection = ConnectionRecord {
        tested_ms,
        connected_ms: match tested {
            Ok(()) => Some(tested_ms),
            Err(_) => before.and_then(|before| before.connected_ms),
        },
        failure: tested.err(),
    };
    match deps.store.put_connection(&record, &connection).await {
        // It was changed meanwhile; what was found is about the connector as it was.
        Ok(()) | Err(StoreError::Conflict { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let mut shown = status(&connection);
    shown["delegateId"] = Value::Null;
    Ok(success(shown))
}

fn untested(kind: &str, now_ms: i64) -> Value {
    let why = format!(
        "Connectors of type {kind} are not tested by this version; the first run tries them"
    );
    json!({
        "status": "UNKNOWN",
        "errors": [{"reason": "UNKNOWN", "message": why, "code": 0}],
        "errorSummary": why,
        "testedAt": now_ms,
        "delegateId": null,
    })
}

/// What the last test of a connection said, as Harness words it.
fn status(connection: &ConnectionRecord) -> Value {
    let failure = connection.failure.as_ref();
    let errors = failure.map(|failure| {
        json!({
            "reason": failure.error,
            "message": failure.message,
            "code": code(failure.error),
        })
    });
    json!({
        "status": match failure {
            None => "SUCCESS",
            Some(_) => "FAILURE",
        },
        "errorSummary": failure.map(|failure| &failure.message),
        "errors": errors.into_iter().collect::<Vec<_>>(),
        "testedAt": connection.tested_ms,
        "lastTestedAt": connection.tested_ms,
        "lastConnectedAt": connection.connected_ms,
        "lastAlertSent": null,
    })
}

/// The number of an error: the HTTP status that says the same.
fn code(error: ErrorType) -> u16 {
    match error {
        ErrorType::Authentication => 401,
        ErrorType::Authorization => 403,
        ErrorType::Connectivity => 502,
        ErrorType::Timeout => 504,
        _ => 400,
    }
}

async fn remove(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    entity::delete(&deps, &caller, &place(&caller, &query, &id)?).await?;
    Ok(success(Value::Bool(true)))
}
