//! Errors as clients see them: the one place where a domain error gets its HTTP status and code.
//!
//! The body is that of the Harness API: a JSON object with a non-empty `message`, because Terraform's
//! provider crashes without one. A 5xx is only for what may succeed when tried again or is a defect:
//! clients retry those up to ten times.

use std::error::Error as _;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use slipway_engine::error_name::ErrorName;
use slipway_model::{Diagnostic, Severity};
use slipway_store::StoreError;

use crate::envelope::correlation_id;

/// A request that was refused or failed.
#[derive(Debug)]
pub struct ApiError {
    name: ErrorName,
    status: StatusCode,
    message: String,
    /// Field and what is wrong with it.
    errors: Vec<(String, String)>,
    /// What is only worth a warning, and not why it was refused.
    warnings: Vec<String>,
    /// Seconds after which trying again makes sense.
    retry_after: Option<u32>,
}

/// What a controller answers.
pub type ApiResult<T = Response> = Result<T, ApiError>;

/// The status of each error name; everything that no client can do anything about is a 500.
fn status_of(name: ErrorName) -> StatusCode {
    match name {
        ErrorName::InvalidRequest
        | ErrorName::PlanRefused
        | ErrorName::Unsupported
        | ErrorName::Frozen
        | ErrorName::AlreadyExists => StatusCode::BAD_REQUEST,
        ErrorName::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorName::Forbidden => StatusCode::FORBIDDEN,
        ErrorName::NotFound => StatusCode::NOT_FOUND,
        ErrorName::Conflict | ErrorName::InfrastructureBusy | ErrorName::DelegateUnsuitable => {
            StatusCode::CONFLICT
        }
        ErrorName::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorName::StoreUnavailable | ErrorName::WorkflowUnavailable => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl ApiError {
    /// An error with the status that belongs to its name.
    pub fn new(name: ErrorName, message: impl Into<String>) -> Self {
        Self {
            name,
            status: status_of(name),
            message: message.into(),
            errors: Vec::new(),
            warnings: Vec::new(),
            retry_after: None,
        }
    }

    /// 400: the request cannot be understood.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorName::InvalidRequest, message)
    }

    /// 400: a field is missing or wrong.
    pub fn field(field: &str, error: impl Into<String>) -> Self {
        let error = error.into();
        let mut this = Self::invalid(format!("{field}: {error}"));
        this.errors.push((field.to_owned(), error));
        this
    }

    /// 400: Harness knows it, this version does not do it.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorName::Unsupported, message)
    }

    /// 404.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorName::NotFound, message)
    }

    /// 401. One text for every reason, so that nothing can be learnt from it.
    pub fn unauthenticated() -> Self {
        Self::new(
            ErrorName::Unauthenticated,
            "Token is not valid, is expired, or was not given: send it as x-api-key",
        )
    }

    /// 403. One text for every reason.
    pub fn forbidden() -> Self {
        Self::new(
            ErrorName::Forbidden,
            "The token does not permit this request",
        )
    }

    /// Another status than the one that belongs to the name, for what HTTP itself tells apart.
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Adds a `Retry-After` header.
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// 400: a document was refused by the language.
    pub fn diagnostics(name: ErrorName, found: &[Diagnostic]) -> Self {
        let errors = found.iter().filter(|d| d.severity == Severity::Error);
        let shown: Vec<String> = errors.clone().map(ToString::to_string).collect();
        let mut this = Self::new(name, shown.join("\n")).noticed(found);
        if this.message.is_empty() {
            this.message = "The document was refused".to_owned();
        }
        this.errors = errors
            .map(|d| (d.path.clone(), d.message.clone()))
            .collect();
        this
    }

    /// Adds the warnings of a document that was refused, which are no reason for it.
    pub fn noticed(mut self, found: &[Diagnostic]) -> Self {
        let warnings = found.iter().filter(|d| d.severity == Severity::Warning);
        self.warnings = warnings.map(ToString::to_string).collect();
        self
    }

    /// What it is.
    pub fn name(&self) -> ErrorName {
        self.name
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The text for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    fn body(&self, correlation: &str) -> Value {
        let code = self.name.rest_code();
        let kind = if self.errors.is_empty() {
            "ERROR"
        } else {
            "FAILURE"
        };
        let errors: Vec<Value> = self
            .errors
            .iter()
            .map(|(field, error)| json!({"fieldId": field, "error": error}))
            .collect();
        let message = |level: &str, text: &str| {
            json!({
                "code": code,
                "level": level,
                "message": text,
                "exception": null,
                "failureTypes": [],
            })
        };
        let mut messages = vec![message("ERROR", &self.message)];
        messages.extend(self.warnings.iter().map(|text| message("WARN", text)));
        json!({
            "status": kind,
            "code": code,
            "message": self.message,
            "correlationId": correlation,
            "detailedMessage": null,
            "errors": errors,
            "responseMessages": messages,
            "metadata": null,
        })
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let correlation = correlation_id();
        if self.status.is_server_error() {
            tracing::error!(correlation, error = %self.name, "{}", self.message);
        }
        let mut response = (self.status, Json(self.body(&correlation))).into_response();
        if let Some(seconds) = self.retry_after {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The cause goes into the log, not to the client: it may name tables and hosts.
fn log_cause(error: &dyn std::error::Error) {
    let mut cause = error.source();
    while let Some(inner) = cause {
        tracing::warn!(%error, cause = %inner, "a request failed");
        cause = inner.source();
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        if error.source().is_some() {
            log_cause(&error);
        }
        let name = match &error {
            StoreError::NotFound { .. } => ErrorName::NotFound,
            StoreError::AlreadyExists { .. } => ErrorName::AlreadyExists,
            StoreError::Conflict { .. } => ErrorName::Conflict,
            StoreError::TooLarge { .. } => ErrorName::TooLarge,
            StoreError::Invalid { .. } => ErrorName::InvalidRequest,
            StoreError::Throttled { .. } | StoreError::Unavailable { .. } => {
                ErrorName::StoreUnavailable
            }
            StoreError::Unreadable { .. } => ErrorName::StoreUnreadable,
        };
        Self::new(name, error.to_string())
    }
}
