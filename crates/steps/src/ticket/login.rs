//! The login of a connector of a ticket system. Docs: platform/connectors/ticketing-systems.

use std::time::Duration;

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use slipway_model::status::{ErrorType, Failure};
use slipway_plan::ConnectorPlan;

use super::server::{refused, text};
use super::stop::Stop;
use crate::http::request::Request;
use crate::secrets::Secrets;

/// The header `Authorization` that a connector asks for; a server that gives tokens has this time.
pub(super) async fn authorization(
    connector: &ConnectorPlan,
    spec: &Value,
    time: Duration,
    secrets: &mut Secrets<'_>,
) -> Result<SecretString, Stop> {
    let own = &spec["auth"]["spec"];
    // Both kinds have had the user in the spec itself before they had other ways.
    let (kind, login) = match text(&spec["auth"]["type"]) {
        Some(kind) => (kind, own),
        None => ("UsernamePassword".to_owned(), spec),
    };
    match kind.as_str() {
        "UsernamePassword" => Ok(basic(connector, login, secrets).await?),
        "PersonalAccessToken" => {
            let token = secret(connector, login, "patRef", secrets).await?;
            Ok(bearer(token.expose_secret()))
        }
        "RefreshTokenGrantType" => refreshed(connector, login, time, secrets).await,
        other => {
            let why = format!(
                "its login of type `{other}` is not supported by this version; use UsernamePassword, PersonalAccessToken or RefreshTokenGrantType"
            );
            Err(Stop::Over(refused(connector, &why)))
        }
    }
}

fn bearer(token: &str) -> SecretString {
    SecretString::from(format!("Bearer {}", token.trim()))
}

async fn basic(
    connector: &ConnectorPlan,
    login: &Value,
    secrets: &mut Secrets<'_>,
) -> Result<SecretString, Failure> {
    let user = match text(&login["username"]) {
        Some(plain) => secrets.reveal_text(&plain).await?,
        None => secret(connector, login, "usernameRef", secrets).await?,
    };
    let password = secret(connector, login, "passwordRef", secrets).await?;
    let both = format!("{}:{}", user.expose_secret(), password.expose_secret());
    let encoded = aws_smithy_types::base64::encode(both);
    secrets.hide(&encoded);
    Ok(SecretString::from(format!("Basic {encoded}")))
}

/// A short-lived token for a refresh token (RFC 6749, 6).
async fn refreshed(
    connector: &ConnectorPlan,
    login: &Value,
    time: Duration,
    secrets: &mut Secrets<'_>,
) -> Result<SecretString, Stop> {
    let address =
        text(&login["tokenUrl"]).ok_or_else(|| refused(connector, "it has no tokenUrl"))?;
    let address = secrets.reveal_text(&address).await?;
    let fields = [
        ("refresh_token", "refreshTokenRef"),
        ("client_id", "clientIdRef"),
        ("client_secret", "clientSecretRef"),
    ];
    let mut form =
        Url::parse("http://form").map_err(|error| refused(connector, &error.to_string()))?;
    form.query_pairs_mut()
        .append_pair("grant_type", "refresh_token");
    for (name, field) in fields {
        // A public client has no secret.
        if text(&login[field]).is_none() && name == "client_secret" {
            continue;
        }
        let value = secret(connector, login, field, secrets).await?;
        form.query_pairs_mut()
            .append_pair(name, value.expose_secret());
    }
    if let Some(scope) = text(&login["scope"]) {
        form.query_pairs_mut().append_pair("scope", &scope);
    }
    let body = form.query().unwrap_or_default().to_owned();
    let headers = vec![(
        "content-type".to_owned(),
        SecretString::from("application/x-www-form-urlencoded"),
    )];
    let request = Request::new(reqwest::Method::POST, &address, headers, Some(body.into()));
    let request = request.map_err(|why| refused(connector, &format!("tokenUrl: {why}")))?;
    let answer = request.send(time).await;
    let answer = answer.map_err(later)?;
    let given: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let Some(token) = text(&given["access_token"]).filter(|_| answer.code == 200) else {
        let why = format!(
            "its token server answered HTTP {} and no token",
            answer.code
        );
        let failure = Failure {
            error: ErrorType::Authentication,
            ..refused(connector, &why)
        };
        return Err(match answer.code {
            429 | 500..=599 => later(failure),
            _ => Stop::Over(failure),
        });
    };
    secrets.hide(&token);
    Ok(bearer(&token))
}

/// The token server cannot answer now.
fn later(failure: Failure) -> Stop {
    Stop::Later {
        failure,
        after: None,
        untouched: true,
    }
}

async fn secret(
    connector: &ConnectorPlan,
    login: &Value,
    field: &str,
    secrets: &mut Secrets<'_>,
) -> Result<SecretString, Failure> {
    let reference = text(&login[field])
        .ok_or_else(|| refused(connector, &format!("its login has no {field}")))?;
    secrets.value(&reference).await
}
