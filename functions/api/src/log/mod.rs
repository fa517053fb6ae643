//! Step logs: `/log-service`. Lines are NDJSON; a log that has nothing yet is an empty 200.

mod key;
mod source;
mod stream;

use axum::Json;
use axum::Router;
use axum::body::Body as HttpBody;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::StreamExt as _;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use crate::Deps;
use crate::auth::Caller;
use crate::call::Call;
use crate::error::{ApiError, ApiResult};
use crate::token::{NewToken, Permission, mint_token};
use source::Sections;

/// Largest text behind a download link: clients refuse more than 2 MB.
const DOWNLOAD_LIMIT: usize = 1_900_000;

/// How long a token of the log service is good for, in milliseconds.
const TOKEN_LIFE_MS: i64 = 3_600_000;

pub(crate) fn routes() -> Router<Deps> {
    Router::new()
        .route("/log-service/blob", get(blob))
        .route("/log-service/blob/download", post(download))
        .route("/log-service/blob/text", get(text))
        .route("/log-service/stream", get(stream))
        .route("/log-service/token", get(token))
}

fn ndjson(body: HttpBody) -> Response {
    ([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response()
}

/// All lines below a key, streamed so that a log of any size costs little memory.
async fn blob(Call(deps, caller, query): Call) -> ApiResult {
    let sections = Sections::find(&deps, &caller, query.required("key")?).await?;
    let lines = sections.lines(&deps).map(|chunk| {
        chunk.map(|lines| lines.concat()).map_err(|error| {
            tracing::warn!(%error, "a log could not be read to its end");
            std::io::Error::other("the log could not be read to its end")
        })
    });
    Ok(ndjson(HttpBody::from_stream(lines)))
}

/// A link under `/gateway/log-service/`, as clients reduce it to that.
async fn download(Call(deps, caller, query): Call, request: Request) -> ApiResult {
    let prefix = query.required("prefix")?;
    // A prefix that names nothing is told now, not behind the link.
    Sections::find(&deps, &caller, prefix).await?;
    let path = format!(
        "/gateway/log-service/blob/text?accountID={}&prefix={}",
        utf8_percent_encode(caller.account.as_str(), NON_ALPHANUMERIC),
        utf8_percent_encode(prefix, NON_ALPHANUMERIC)
    );
    let link = match base(request.headers()) {
        Some(base) => format!("{base}{path}"),
        None => path,
    };
    Ok(Json(json!({"status": "success", "link": link})).into_response())
}

/// The service's own address as the client wrote it; clients replace it by their base URL anyway.
fn base(headers: &HeaderMap) -> Option<String> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let host = text("host")?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b".-:[]".contains(&b);
    let scheme = match text("x-forwarded-proto") {
        Some("https") => "https",
        _ => "http",
    };
    host.bytes()
        .all(plain)
        .then(|| format!("{scheme}://{host}"))
}

/// The text behind a link: the end of what is below the prefix when it is more than clients take.
async fn text(Call(deps, caller, query): Call) -> ApiResult {
    let sections = Sections::find(&deps, &caller, query.required("prefix")?).await?;
    let mut kept = std::collections::VecDeque::new();
    let (mut size, mut left_out) = (0, 0_u64);
    let mut chunks = std::pin::pin!(sections.lines(&deps));
    while let Some(chunk) = chunks.next().await {
        for line in chunk? {
            size += line.len();
            kept.push_back(line);
            while size > DOWNLOAD_LIMIT {
                let Some(first) = kept.pop_front() else { break };
                size -= first.len();
                left_out += 1;
            }
        }
    }
    let mut text = String::with_capacity(size + 200);
    if left_out > 0 {
        let note = json!({
            "level": "WARN", "pos": 0, "args": null, "time": deps.clock.now().to_string(),
            "out": format!("{left_out} earlier lines are left out: read them with the key of their step\n"),
        });
        text.push_str(&format!("{note}\n"));
    }
    text.extend(kept);
    Ok(ndjson(HttpBody::from(text)))
}

/// Server-sent events of one command unit while it goes on.
async fn stream(Call(deps, caller, query): Call) -> ApiResult {
    let sections = Sections::find(&deps, &caller, query.required("key")?).await?;
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    let events = stream::events(deps, sections);
    Ok((headers, HttpBody::from_stream(events)).into_response())
}

/// A token that is good for reading logs and nothing else.
async fn token(State(deps): State<Deps>, Extension(caller): Extension<Caller>) -> ApiResult {
    let now_ms = deps.clock.now_ms();
    let new = NewToken {
        account: caller.account,
        principal: caller.principal,
        name: "log service".to_owned(),
        permission: Permission::Logs,
        now_ms,
        valid_to_ms: now_ms + TOKEN_LIFE_MS,
    };
    let token = mint_token(&deps.store, new)
        .await
        .map_err(|error| match error {
            crate::token::MintError::Store(source) => ApiError::from(source),
            other => ApiError::invalid(other.to_string()),
        })?;
    Ok(([(header::CONTENT_TYPE, "text/plain")], token).into_response())
}
