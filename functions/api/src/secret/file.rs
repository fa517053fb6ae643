//! Secret files: `/ng/api/v2/secrets/files`. The content is a value like any other and goes where values go.

use axum::Router;
use axum::extract::Path;
use axum::routing::{post, put};
use secrecy::SecretString;
use serde_json::Value;
use slipway_model::entity::{Kind, Parsed};
use slipway_model::{Code, Diagnostic};

use super::value::{self, LARGEST};
use super::{create_with, render, update_with};
use crate::Deps;
use crate::auth::Caller;
use crate::bundle;
use crate::call::Call;
use crate::entity::Draft;
use crate::error::{ApiError, ApiResult};
use crate::multipart::Form;
use crate::query::Query;

pub(super) fn routes() -> Router<Deps> {
    Router::new()
        .route("/ng/api/v2/secrets/files", post(create))
        .route("/ng/api/v2/secrets/files/{id}", put(update))
}

/// What an applied file without content should tell its author.
pub(super) fn without_content(parsed: &Parsed) -> Diagnostic {
    let message = "the content of a secret file does not stand in YAML: send it to /ng/api/v2/secrets/files/{identifier}";
    Diagnostic::at(Code::MissingField, parsed.body(), message)
        .path("secret.spec")
        .warning()
}

/// The secret of a form: its description as JSON in `spec`.
fn draft(caller: &Caller, query: &Query, form: &Form, id: Option<&str>) -> ApiResult<Draft> {
    let text = form
        .text("spec")?
        .ok_or_else(|| ApiError::field("spec", "must not be empty"))?;
    let mut body: Value = serde_json::from_str(text)
        .map_err(|error| ApiError::field("spec", format!("is not JSON: {error}")))?;
    value::take(&mut body)?;
    let scope = bundle::scope(caller, query, Kind::Secret, &body)?;
    let draft = bundle::draft(scope, Kind::Secret, &body, id)?;
    match draft.entity_type.as_deref() {
        Some("SecretFile") => Ok(draft),
        _ => Err(ApiError::field("type", "must be SecretFile")),
    }
}

fn content(form: &Form) -> ApiResult<Option<SecretString>> {
    let Some(bytes) = form.bytes("file").filter(|bytes| !bytes.is_empty()) else {
        return Ok(None);
    };
    if bytes.len() > LARGEST {
        return Err(ApiError::field(
            "file",
            format!("is longer than {LARGEST} bytes"),
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| {
        ApiError::unsupported(
            "Secret files that are not UTF-8 text are not supported by this version: keep them in base64",
        )
    })?;
    Ok(Some(SecretString::from(text)))
}

async fn create(Call(deps, caller, query): Call, form: Form) -> ApiResult {
    let draft = draft(&caller, &query, &form, None)?;
    let content = content(&form)?.ok_or_else(|| ApiError::field("file", "must not be empty"))?;
    let saved = create_with(&deps, &caller, draft, Some(content)).await?;
    Ok(saved.answer(render))
}

/// An update without a file changes everything but the content.
async fn update(Call(deps, caller, query): Call, Path(id): Path<String>, form: Form) -> ApiResult {
    let draft = draft(&caller, &query, &form, Some(&id))?;
    let saved = update_with(&deps, &caller, draft, content(&form)?).await?;
    Ok(saved.answer(render))
}
