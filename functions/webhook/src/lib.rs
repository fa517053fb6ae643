//! Takes webhooks: verifies who sent them over the raw bytes, keeps each happening once, and answers. What it starts is
//! started later, by the function `trigger`.
//!
//! The paths are those of the official API (API 4.10). Nothing of a body is parsed before it is verified where the
//! triggers have secrets, and no body is read beyond its limit.

mod keys;
mod secrets;
mod told;
mod wanted;

use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use slipway_engine::error::RunError;
use slipway_engine::intake::again::may_be_mended;
use slipway_engine::intake::handler::Handler;
use slipway_engine::intake::listen::read_trigger;
use slipway_engine::intake::url;
use slipway_engine::intake::{Happening, OLDEST_MS, Offer, accept, secret_key};
use slipway_engine::runs::Runs;
use slipway_model::Kind;
use slipway_model::id::{AccountId, EntityId, OrgId, ProjectId, Scope};
use slipway_store::{Accept, SecretStore, TriggerPlace};
use slipway_trigger::webhook::{self, Heard};
use slipway_trigger::{Delivery, Event, MOST_BODY, Provider, Source, signature};
use subtle::ConstantTimeEq as _;

use secrets::Secrets;
use told::Told;
use wanted::AllWanted;

/// Longest id of a delivery that is kept.
const LONGEST_DELIVERY: usize = 200;

/// What lives as long as the function.
#[derive(Clone)]
pub struct Deps {
    /// Facts and time.
    pub runs: Runs,
    /// Values of the triggers' secrets.
    pub secrets: SecretStore,
    /// Has handled what was accepted.
    pub handler: Handler,
    state: Arc<Kept>,
}

/// What is kept between two deliveries.
#[derive(Default)]
struct Kept {
    secrets: Secrets,
    wanted: AllWanted,
    told: Told,
    key: tokio::sync::OnceCell<Vec<u8>>,
}

impl Deps {
    /// What the function needs of the world.
    pub fn new(
        runs: Runs,
        secrets: SecretStore,
        lambda: aws_sdk_lambda::Client,
        function: String,
    ) -> Self {
        Self {
            runs,
            secrets,
            handler: Handler { lambda, function },
            state: Arc::default(),
        }
    }
}

/// The paths of webhooks, with and without `/gateway`.
pub fn router(deps: Deps) -> Router {
    let custom = "/pipeline/api/webhook/custom";
    let routes = Router::new()
        .route("/ng/api/webhook", post(git))
        .route("/pipeline/api/webhook/trigger", post(git))
        .route(custom, post(custom_v1))
        .route(&format!("{custom}/v2"), post(custom_v2))
        .route(&format!("{custom}/{{token}}/v3"), post(custom_v3));
    Router::new()
        .nest("/gateway", routes.clone())
        .merge(routes)
        .layer(DefaultBodyLimit::disable())
        .with_state(deps)
}

/// Why a delivery is not taken.
#[derive(Debug)]
enum Refused {
    /// It is not signed as the triggers want it.
    Unauthenticated(String),
    /// There is nothing at this URL, or it is not for this sender: both look the same.
    NotFound,
    /// It cannot be understood.
    Invalid(String),
    /// It is too large.
    TooLarge,
    /// It is not the body that was sent with this id before.
    Altered,
    /// The store does not answer.
    Unavailable(String),
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, code, message) = match self {
            Self::Unauthenticated(why) => (StatusCode::UNAUTHORIZED, "INVALID_TOKEN", why),
            Self::NotFound => (
                StatusCode::NOT_FOUND,
                "RESOURCE_NOT_FOUND",
                "There is no such webhook".to_owned(),
            ),
            Self::Invalid(why) => (StatusCode::BAD_REQUEST, "INVALID_REQUEST", why),
            Self::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "INVALID_REQUEST",
                format!("The body is larger than {} MiB", MOST_BODY >> 20),
            ),
            Self::Altered => (
                StatusCode::CONFLICT,
                "INVALID_REQUEST",
                "Another body came with the id of this delivery before: the first stands"
                    .to_owned(),
            ),
            Self::Unavailable(why) => {
                tracing::error!(error = why, "a delivery could not be kept");
                (
                    StatusCode::SERVICE_UNAVAILABLE,
                    "SERVICE_UNAVAILABLE",
                    "The delivery could not be kept: send it again".to_owned(),
                )
            }
        };
        let body = json!({
            "status": "ERROR",
            "code": code,
            "message": message,
            "correlationId": uuid::Uuid::new_v4().to_string(),
            "detailedMessage": null,
            "responseMessages": [],
            "metadata": null,
        });
        (status, Json(body)).into_response()
    }
}

impl From<RunError> for Refused {
    fn from(error: RunError) -> Self {
        Self::Unavailable(error.full_text())
    }
}

impl From<slipway_store::StoreError> for Refused {
    fn from(error: slipway_store::StoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// One value of the query; two that differ are none.
fn one(uri: &Uri, key: &str) -> Result<Option<String>, Refused> {
    let found = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri);
    let found = found.map_err(|_| Refused::Invalid("The query cannot be read".to_owned()))?;
    let mut named = found.0.into_iter().filter(|(name, _)| name == key);
    let Some((_, value)) = named.next() else {
        return Ok(None);
    };
    match named.all(|(_, other)| other == value) {
        true => Ok(Some(value).filter(|value| !value.is_empty())),
        false => Err(Refused::Invalid(format!(
            "{key} is given twice with different values"
        ))),
    }
}

fn must(uri: &Uri, key: &str) -> Result<String, Refused> {
    one(uri, key)?.ok_or_else(|| Refused::Invalid(format!("{key}: must not be empty")))
}

/// The account of a delivery, and the organization and project where the URL names them.
fn scope_of(uri: &Uri) -> Result<Scope, Refused> {
    let account = AccountId::new(must(uri, "accountIdentifier")?);
    let org = one(uri, "orgIdentifier")?.map(OrgId::new);
    let project = one(uri, "projectIdentifier")?.map(ProjectId::new);
    Ok(match (org, project) {
        (Some(org), Some(project)) => Scope::project(account, org, project),
        (Some(org), None) => Scope::org(account, org),
        _ => Scope::account(account),
    })
}

/// Reads a request up to the limit of bodies.
async fn delivery(headers: &HeaderMap, body: Body) -> Result<Delivery, Refused> {
    let announced = headers.get(header::CONTENT_LENGTH);
    let announced = announced
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.parse::<u64>().ok());
    if announced.is_some_and(|length| length > MOST_BODY as u64) {
        return Err(Refused::TooLarge);
    }
    let body = axum::body::to_bytes(body, MOST_BODY)
        .await
        .map_err(|error| {
            let cause = std::error::Error::source(&error);
            match cause.is_some_and(|cause| cause.is::<http_body_util::LengthLimitError>()) {
                true => Refused::TooLarge,
                false => Refused::Invalid("The body ended before it was complete".to_owned()),
            }
        })?;
    let readable = headers.iter().filter_map(|(name, value)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    });
    Ok(Delivery {
        headers: readable.collect(),
        body: body.into(),
    })
}

/// A webhook of a Git provider, for all triggers of the account (or project) that listen to it.
async fn git(State(deps): State<Deps>, request: Request) -> Result<Response, Refused> {
    let (parts, body) = request.into_parts();
    let within = scope_of(&parts.uri)?;
    let delivery = delivery(&parts.headers, body).await?;
    let Some(provider) = webhook::provider_of(&delivery) else {
        let why = "No provider sends such headers: a webhook of any other sender goes to the URL of its trigger";
        return Err(Refused::Invalid(why.to_owned()));
    };
    let Some(signed) = verified(&deps, &within, provider, &delivery).await? else {
        let why = format!("no trigger of this account listens to {}", provider.name());
        return Ok(ignored(&why));
    };
    let heard = webhook::read(provider, &delivery).map_err(Refused::Invalid)?;
    let events = match heard {
        Heard::Ignored(why) => {
            tracing::info!(account = %within.account, provider = provider.name(), "delivery ignored: {why}");
            return Ok(ignored(&why));
        }
        heard => heard.events(),
    };
    let mut first = None;
    for (part, event) in events.into_iter().enumerate() {
        let happening = |event: Event| Happening::Webhook {
            event: Box::new(event),
            to: None,
            within: within.org.is_some().then(|| within.clone()),
            signed: signed.clone(),
            by_hand: false,
        };
        let id = take(&deps, &within.account, (part, event), happening, &delivery).await?;
        first.get_or_insert(id);
    }
    Ok(success(json!(first)))
}

/// The secrets of listening triggers that a delivery is signed with; `None` where no trigger listens. A delivery that none
/// of the triggers would believe is refused before it is read.
async fn verified(
    deps: &Deps,
    within: &Scope,
    provider: Provider,
    delivery: &Delivery,
) -> Result<Option<Vec<String>>, Refused> {
    let wanted = deps.state.wanted.of(deps, within, provider).await?;
    let Some(wanted) = wanted else {
        return Ok(None);
    };
    let mut signed = Vec::new();
    let mut why = None;
    for (scope, id) in &wanted.secrets {
        let verdict = deps
            .state
            .secrets
            .verify(deps, (scope, id), provider, delivery)
            .await;
        match verdict {
            Ok(()) => signed.push(secret_key(scope, id)),
            Err(error) => why = Some(error),
        }
    }
    match why {
        Some(why) if signed.is_empty() && !wanted.open => {
            tell_refused(deps, within, provider, &why);
            Err(Refused::Unauthenticated(why))
        }
        _ => Ok(Some(signed)),
    }
}

/// A line in the audit trail.
fn tell_refused(deps: &Deps, within: &Scope, provider: Provider, why: &str) {
    if deps.state.told.one_more(deps.runs.clock.now_ms()) {
        tracing::warn!(
            target: "slipway::audit",
            account = %within.account,
            provider = provider.name(),
            action = "refused",
            "a delivery was refused: {why}"
        );
    }
}

/// The same of a delivery for a trigger that is not there, whose names are whatever its sender wrote.
fn tell_gone(deps: &Deps, place: &TriggerPlace) {
    if deps.state.told.one_more(deps.runs.clock.now_ms()) {
        tracing::info!(
            target: "slipway::audit",
            account = told::shown(place.scope.account.as_str()),
            trigger.id = told::shown(place.trigger.as_str()),
            action = "ignored",
            "a delivery for a trigger that is gone"
        );
    }
}

/// Keeps an event, of which a delivery may bring several, and has it handled. Answers with its id.
async fn take(
    deps: &Deps,
    account: &AccountId,
    (part, event): (usize, Event),
    happening: impl FnOnce(Event) -> Happening,
    delivery: &Delivery,
) -> Result<String, Refused> {
    let now_ms = deps.runs.clock.now_ms();
    if let Some(happened_ms) = event.happened_ms
        && now_ms.saturating_sub(happened_ms) > OLDEST_MS
    {
        let why = "it happened more than 90 days ago: an old delivery is not played again";
        return Err(Refused::Invalid(format!("The event is too old: {why}")));
    }
    let sent_as = event.delivery.clone();
    let sent_as = sent_as.filter(|id| id.len() <= LONGEST_DELIVERY);
    let provider = event.provider;
    let happening = happening(event);
    // A sender numbers its messages, not the URLs that each goes to.
    let to = match &happening {
        Happening::Webhook { to: Some(to), .. } => to.key(),
        _ => String::new(),
    };
    let offer = Offer {
        account: account.clone(),
        happening,
        delivery: sent_as.map(|id| format!("{}:{to}:{part}:{id}", provider.name())),
        body: delivery.body.clone(),
    };
    let (record, accepted) = accept(&deps.runs, offer).await?;
    match accepted {
        Accept::New => deps.handler.wake(&record.id).await,
        Accept::Known(id) => {
            if may_be_mended(&deps.runs, &id).await? {
                deps.handler.ask_again(&id).await;
            }
            return Ok(id);
        }
        Accept::Altered(id) => {
            tracing::warn!(
                target: "slipway::audit",
                account = %account,
                event.id = id,
                action = "refused",
                "another body came with the id of a delivery"
            );
            return Err(Refused::Altered);
        }
    }
    Ok(record.id)
}

fn success(data: Value) -> Response {
    Json(json!({
        "status": "SUCCESS",
        "data": data,
        "metaData": null,
        "correlationId": uuid::Uuid::new_v4().to_string(),
    }))
    .into_response()
}

fn ignored(why: &str) -> Response {
    Json(json!({
        "status": "SUCCESS",
        "data": null,
        "metaData": {"ignored": why},
        "correlationId": uuid::Uuid::new_v4().to_string(),
    }))
    .into_response()
}

async fn custom_v1(State(deps): State<Deps>, request: Request) -> Result<Response, Refused> {
    let taken = custom(&deps, None, request).await?;
    Ok(match taken {
        Some((id, _)) => success(json!(id)),
        None => ignored("there is no trigger of this name"),
    })
}

async fn custom_v2(State(deps): State<Deps>, request: Request) -> Result<Response, Refused> {
    custom(&deps, None, request).await.map(in_v2)
}

async fn custom_v3(
    State(deps): State<Deps>,
    Path(token): Path<String>,
    request: Request,
) -> Result<Response, Refused> {
    custom(&deps, Some(&token), request).await.map(in_v2)
}

fn in_v2(taken: Option<(String, String)>) -> Response {
    match taken {
        Some((id, api)) => success(json!({
            "eventCorrelationId": id,
            "apiUrl": api,
            "uiUrl": null,
            "uiSetupUrl": null,
        })),
        None => ignored("there is no trigger of this name"),
    }
}

/// A webhook for one trigger; its id and where to ask what became of it. `None` where there is no such trigger, to who knows
/// its URL or has a token of the API; all others hear the same as where it is not for them. A disabled one has it in its
/// history.
async fn custom(
    deps: &Deps,
    token: Option<&str>,
    request: Request,
) -> Result<Option<(String, String)>, Refused> {
    let (parts, body) = request.into_parts();
    let uri = &parts.uri;
    let place = place_of(uri)?;
    if let Some(token) = token {
        let right = url::url_token(deps.key().await?, &place);
        // A longer or shorter token is compared with itself: what it is compared with must not show in the time.
        let same = token.len() == right.len();
        if !bool::from(token.as_bytes().ct_eq(right.as_bytes())) || !same {
            return Err(Refused::NotFound);
        }
    }
    let delivery = delivery(&parts.headers, body).await?;
    // A URL that nobody can guess, and a token of the API, say as much as a signature.
    let known = token.is_some() || keys::is_token(deps, &place.scope.account, &delivery).await?;
    let kind = Kind::Trigger.key();
    let store = &deps.runs.store;
    let found = store.find_entity(&place.scope, kind, Some(&place.pipeline), &place.trigger);
    let found = found.await?;
    let trigger = found.and_then(|record| read_trigger(&record).ok());
    let provider = trigger.as_ref().and_then(|trigger| match &trigger.source {
        Source::Webhook(spec) => Some(spec.provider),
        _ => None,
    });
    let (Some(trigger), Some(provider)) = (trigger, provider) else {
        tell_gone(deps, &place);
        if known {
            return Ok(None);
        }
        deps.state
            .secrets
            .verify_nobodys(deps, &place, &delivery)
            .await;
        return Err(stranger(deps, &delivery).await?);
    };
    if let Some(secret) = &trigger.secret
        && !known
    {
        let (scope, id) = place.scope.resolve(secret);
        let named = (&scope, id.as_str());
        let verdict = deps.state.secrets.verify(deps, named, provider, &delivery);
        if let Err(why) = verdict.await {
            tell_refused(deps, &place.scope, provider, &why);
            return Err(stranger(deps, &delivery).await?);
        }
    }
    let heard = webhook::read(provider, &delivery).map_err(Refused::Invalid)?;
    let mut first = None;
    for (part, event) in heard.events().into_iter().enumerate() {
        let to = place.clone();
        let happening = move |event: Event| Happening::Webhook {
            event: Box::new(event),
            to: Some(to),
            within: None,
            signed: Vec::new(),
            by_hand: false,
        };
        let id = take(
            deps,
            &place.scope.account,
            (part, event),
            happening,
            &delivery,
        )
        .await?;
        first.get_or_insert(id);
    }
    Ok(first.map(|id| {
        let base = deps.runs.url.as_deref().unwrap_or_default();
        let path = "/pipeline/api/webhook/triggerExecutionDetailsV2";
        let api = format!(
            "{base}/gateway{path}/{id}?accountIdentifier={}",
            place.scope.account
        );
        (id, api)
    }))
}

/// What somebody hears who shows nothing by which to be known: what is wrong with the signature, as any trigger would say it,
/// and nothing of whether there is one.
async fn stranger(deps: &Deps, delivery: &Delivery) -> Result<Refused, Refused> {
    let nobodys: String = deps
        .key()
        .await?
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let now_ms = deps.runs.clock.now_ms();
    let why = match signature::verify(Provider::Custom, &[&nobodys], delivery, now_ms) {
        Ok(()) => String::new(),
        Err(why) => format!("{why}, "),
    };
    Ok(Refused::Unauthenticated(format!(
        "{why}or there is no trigger of this name: post to the URL of the trigger, sign with its secret, or send a token of \
         the API as x-api-key"
    )))
}

fn place_of(uri: &Uri) -> Result<TriggerPlace, Refused> {
    let account = AccountId::new(must(uri, "accountIdentifier")?);
    let org = OrgId::new(must(uri, "orgIdentifier")?);
    let project = ProjectId::new(must(uri, "projectIdentifier")?);
    Ok(TriggerPlace {
        scope: Scope::project(account, org, project),
        pipeline: EntityId::new(must(uri, "pipelineIdentifier")?),
        trigger: EntityId::new(must(uri, "triggerIdentifier")?),
    })
}

impl Deps {
    /// What tokens of URLs are made with.
    async fn key(&self) -> Result<&[u8], Refused> {
        let key = self.state.key.get_or_try_init(|| url::key(&self.secrets));
        Ok(key.await?.as_slice())
    }
}
