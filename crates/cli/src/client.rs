//! The REST client: the CLI has no other way into the service.

use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;

use crate::args::{Connection, Level};
use crate::error::CliError;
use crate::token;

/// Longest answer that is read into memory.
const ANSWER_LIMIT: usize = 64 << 20;

/// A connection to a service, in the name of a token.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: String,
    account: String,
    org: String,
    project: String,
}

/// A request body.
pub enum Body {
    /// None.
    Empty,
    /// JSON.
    Json(Value),
    /// YAML text.
    Yaml(String),
}

impl Client {
    /// Connects as the options and the environment say.
    ///
    /// # Errors
    /// When there is no token, or it does not look like one.
    pub fn new(connection: &Connection) -> Result<Self, CliError> {
        let token = match &connection.token {
            Some(token) => token.clone(),
            None => token::read(&connection.data_dir)?,
        };
        let account = token::account(&token)?.to_owned();
        let http = reqwest::Client::builder()
            .user_agent(concat!("slipway/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(std::time::Duration::from_secs(10))
            .no_proxy()
            .build()
            .map_err(|source| CliError::Unreachable {
                url: connection.url.clone(),
                source,
            })?;
        Ok(Self {
            http,
            base: connection.url.trim_end_matches('/').to_owned(),
            token,
            account,
            org: match connection.level {
                Level::Account => String::new(),
                Level::Org | Level::Project => connection.org.clone(),
            },
            project: match connection.level {
                Level::Account | Level::Org => String::new(),
                Level::Project => connection.project.clone(),
            },
        })
    }

    /// The same connection, at the level of the account whatever the options say.
    #[must_use]
    pub fn of_account(&self) -> Self {
        Self {
            org: String::new(),
            project: String::new(),
            ..self.clone()
        }
    }

    /// The account of the token.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// The organization of the options; empty at the level of the account.
    pub fn org(&self) -> &str {
        &self.org
    }

    /// The project of the options; empty at the levels above it.
    pub fn project(&self) -> &str {
        &self.project
    }

    /// Base URL of the service.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// A GET in the scope of the options.
    pub async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, CliError> {
        self.call(Method::GET, path, query, Body::Empty).await
    }

    /// Any call in the scope of the options, answered with JSON (`null` for an empty answer).
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Body,
    ) -> Result<Value, CliError> {
        let what = format!("{method} {path}");
        let scope = [
            ("accountIdentifier", self.account.as_str()),
            ("orgIdentifier", self.org.as_str()),
            ("projectIdentifier", self.project.as_str()),
        ];
        let request = self.request(method, path).query(&scope).query(query);
        let request = match body {
            Body::Empty => request,
            Body::Json(json) => request.json(&json),
            Body::Yaml(text) => request
                .header("content-type", "application/yaml")
                .body(text),
        };
        let text = self.answer(request).await?;
        if text.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).map_err(|why| CliError::Answer {
            what,
            why: why.to_string(),
        })
    }

    /// A GET of plain text, account scope only: the log service.
    pub async fn text(&self, path: &str, query: &[(&str, &str)]) -> Result<String, CliError> {
        self.answer(self.request(Method::GET, path).query(query))
            .await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.base))
            .header("x-api-key", &self.token)
    }

    async fn answer(&self, request: RequestBuilder) -> Result<String, CliError> {
        let unreachable = |source| CliError::Unreachable {
            url: self.base.clone(),
            source,
        };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let text = read_limited(response).await.map_err(unreachable)?;
        if status.is_success() {
            Ok(text)
        } else {
            Err(refusal(status, &text))
        }
    }
}

async fn read_limited(mut response: Response) -> Result<String, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = ANSWER_LIMIT.saturating_sub(bytes.len());
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if bytes.len() >= ANSWER_LIMIT {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn refusal(status: StatusCode, text: &str) -> CliError {
    let json: Value = serde_json::from_str(text).unwrap_or(Value::Null);
    let message = json["message"].as_str().unwrap_or(text).to_owned();
    if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
        return CliError::NotAuthorised { message };
    }
    let told = json["responseMessages"].as_array().into_iter().flatten();
    let warnings = told.filter(|one| one["level"] == "WARN");
    let warnings = warnings.filter_map(|one| one["message"].as_str().map(str::to_owned));
    CliError::Refused {
        status: status.as_u16(),
        code: json["code"].as_str().unwrap_or_default().to_owned(),
        message,
        warnings: warnings.collect(),
    }
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;
    use serde_json::json;

    use super::refusal;

    #[test]
    fn warnings_of_a_refusal_are_no_part_of_its_message() {
        let message = |level: &str, text: &str| json!({"level": level, "message": text});
        let answer = json!({
            "code": "INVALID_REQUEST",
            "message": "p: no such service",
            "responseMessages": [message("ERROR", "p: no such service"), message("WARN", "p: `x` has no effect")],
        });
        let error = refusal(StatusCode::BAD_REQUEST, &answer.to_string());
        assert_eq!(error.to_string(), "p: no such service");
        assert_eq!(error.warnings(), ["p: `x` has no effect"]);
        let plain = refusal(StatusCode::BAD_GATEWAY, "<html>");
        assert_eq!(
            (plain.to_string(), plain.warnings().len()),
            ("<html>".to_owned(), 0)
        );
    }
}
