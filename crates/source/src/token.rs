//! Tokens of Google's and Azure's APIs for the connectors of these clouds (OAuth 2.0, RFC 6749): a form is sent, and the
//! answer has a token. Their SDKs are not needed for it.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use reqwest::{Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use slipway_model::id::Scope;
use slipway_model::status::ErrorType;
use slipway_plan::ConnectorPlan;
use slipway_steps::aws::oidc::sign;
use slipway_steps::http::address;
use slipway_steps::http::request::Request;
use slipway_steps::secrets::Secrets;

use crate::fault::Fault;
use crate::registry::is_loopback;

/// Everything that a service account may do (docs: Google, *OAuth 2.0 scopes*).
pub(crate) const GOOGLE_CLOUD: &str = "https://www.googleapis.com/auth/cloud-platform";
/// Where Google gives tokens, when a key does not say so.
const GOOGLE_TOKENS: &str = "https://oauth2.googleapis.com/token";
/// How long Google lets a claim be good, in seconds.
const GOOGLE_SECONDS: i64 = 3600;
/// Most of an answer that is read, bytes.
const LARGEST: usize = 64 << 10;
/// Most of what a server says about a refusal that is told, characters.
const TOLD: usize = 300;

/// The key of a service account, as Google makes it. Has no `Debug`.
#[derive(Deserialize)]
struct Key {
    client_email: String,
    private_key: String,
    #[serde(default)]
    private_key_id: String,
    token_uri: Option<String>,
}

/// A token for what the connector's service account may do within `extent` (docs: Google, *Using OAuth 2.0 for server to
/// server applications*). `scope` is where the connector's reference was written.
pub(crate) async fn google(
    connector: &ConnectorPlan,
    scope: &Scope,
    extent: &str,
    (now, limit): (Timestamp, Duration),
    secrets: &mut Secrets<'_>,
) -> Result<SecretString, Fault> {
    let credential = &connector.spec["credential"];
    let reference = credential["spec"]["secretKeyRef"].as_str();
    let reference = reference.filter(|_| credential["type"] == "ManualConfig");
    let Some(reference) = reference else {
        return Err(Fault::login(
            "it logs in without a key of a service account, which this version does not: use ManualConfig",
        ));
    };
    let (own, _) = scope.resolve(&connector.reference);
    let written = secrets.value_in(&own, reference).await;
    let written = written.map_err(|failure| Fault::login(failure.message))?;
    let key: Key = serde_json::from_str(written.expose_secret()).map_err(|_| {
        // What the parser says could show a part of the key.
        Fault::login(format!(
            "the secret {reference} is no key of a service account: give it the whole JSON file that Google made"
        ))
    })?;
    let server = key.token_uri.as_deref().unwrap_or(GOOGLE_TOKENS);
    let url = address::url(server).ok().filter(is_google);
    let Some(url) = url else {
        return Err(Fault::login(format!(
            "the key in the secret {reference} names a server for tokens that is not Google's"
        )));
    };
    let claims = json!({
        "iss": key.client_email,
        "scope": extent,
        "aud": server,
        "iat": now.as_second(),
        "exp": now.as_second() + GOOGLE_SECONDS,
    });
    let pkcs8 = pem(&key.private_key);
    let signed = pkcs8.and_then(|der| sign(&key.private_key_id, &der, &claims).ok());
    let Some(signed) = signed else {
        return Err(Fault::login(format!(
            "the `private_key` in the secret {reference} is no RSA key in PKCS #8"
        )));
    };
    let form = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
        ("assertion", &signed),
    ];
    ask(&url, &form, limit).await
}

/// A token for what the connector's service principal may do (docs: Microsoft identity platform, *OAuth 2.0 client
/// credentials*). `server` is asked instead of Azure's own, where there is one.
pub(crate) async fn azure(
    connector: &ConnectorPlan,
    scope: &Scope,
    server: Option<&str>,
    limit: Duration,
    secrets: &mut Secrets<'_>,
) -> Result<SecretString, Fault> {
    let (spec, credential) = (&connector.spec, &connector.spec["credential"]);
    let given = &credential["spec"];
    let text = |value: &Value| {
        let text = value.as_str().map(str::trim);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let reference = text(&given["auth"]["spec"]["secretRef"]);
    let reference = reference.filter(|_| credential["type"] == "ManualConfig");
    let Some(reference) = reference else {
        return Err(Fault::login(
            "it logs in without a secret of a service principal, which this version does not: use ManualConfig with a \
             Secret",
        ));
    };
    let missing = |name: &str| Fault::login(format!("it has no `{name}`"));
    let id = text(&given["applicationId"]).ok_or_else(|| missing("applicationId"))?;
    let tenant = text(&given["tenantId"]).ok_or_else(|| missing("tenantId"))?;
    let word = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    if tenant.starts_with('.') || !tenant.bytes().all(word) {
        return Err(Fault::login(format!(
            "its `tenantId` is `{tenant:.100}`, which is neither an id nor a domain"
        )));
    }
    let (usual, api) = match spec["azureEnvironmentType"].as_str() {
        Some("AZURE_US_GOVERNMENT") => (
            "https://login.microsoftonline.us",
            "https://management.usgovcloudapi.net/.default",
        ),
        _ => (
            "https://login.microsoftonline.com",
            "https://management.azure.com/.default",
        ),
    };
    let server = server.unwrap_or(usual);
    let url = address::url(&format!("{server}/{tenant}/oauth2/v2.0/token"))?;
    let (own, _) = scope.resolve(&connector.reference);
    let secret = secrets.value_in(&own, &reference).await;
    let secret = secret.map_err(|failure| Fault::login(failure.message))?;
    let form = [
        ("grant_type", "client_credentials"),
        ("client_id", id.as_str()),
        ("client_secret", secret.expose_secret().trim()),
        ("scope", api),
    ];
    ask(&url, &form, limit).await
}

/// Whether tokens of Google may be asked for there: whoever may write a secret must not have a signature sent elsewhere.
fn is_google(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let known = host == "accounts.google.com" || host.ends_with(".googleapis.com");
    (known && url.scheme() == "https") || is_loopback(url)
}

/// The bytes of a key in PEM (RFC 7468).
fn pem(text: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once("-----BEGIN PRIVATE KEY-----")?;
    let (body, _) = rest.split_once("-----END PRIVATE KEY-----")?;
    let body: String = body.split_whitespace().collect();
    STANDARD.decode(body).ok()
}

/// Sends a form and reads the token in the answer.
async fn ask(url: &Url, form: &[(&str, &str)], limit: Duration) -> Result<SecretString, Fault> {
    let host = url.host_str().unwrap_or_default().to_owned();
    let at = |why: String| format!("{host}, which gives tokens: {why}");
    let mut encoded = url.clone();
    encoded.query_pairs_mut().clear().extend_pairs(form);
    let body = encoded.query().unwrap_or_default().to_owned();
    let kind = SecretString::from("application/x-www-form-urlencoded");
    let headers = vec![("content-type".to_owned(), kind)];
    let address = SecretString::from(url.to_string());
    let request = Request::new(
        Method::POST,
        &address,
        headers,
        Some(SecretString::from(body)),
    );
    let answer = request.map_err(at)?.keeping(LARGEST).send(limit).await;
    let advised = |why: String| format!("{why} Check the network.");
    let answer = answer.map_err(|failure| Fault::from(failure).told(advised))?;
    let said: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    match answer.code {
        200 => match said["access_token"].as_str() {
            Some(token) if !token.is_empty() => Ok(SecretString::from(token)),
            _ => Err(at("its answer has no token".to_owned()).into()),
        },
        400 | 401 | 403 => {
            let why = [&said["error_description"], &said["error"]];
            let why = why.into_iter().find_map(Value::as_str).unwrap_or_default();
            let line = why.lines().next().unwrap_or_default();
            let line: String = line.chars().take(TOLD).collect();
            Err(Fault::login(at(format!(
                "it does not accept the connector's credentials ({}): {line}",
                answer.code
            ))))
        }
        code => {
            let why = at(format!("it answers {code}: try again later"));
            Err(Fault::new(ErrorType::Connectivity, why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_go_to_google_only() {
        for (url, expected) in [
            ("https://oauth2.googleapis.com/token", true),
            ("https://accounts.google.com/o/oauth2/token", true),
            ("http://127.0.0.1:1/token", true),
            ("http://oauth2.googleapis.com/token", false),
            ("https://evilgoogleapis.com/token", false),
            ("https://oauth2.googleapis.com.evil.example/token", false),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(is_google(&url), expected, "{url}");
        }
    }

    #[test]
    fn what_is_no_key_is_none() {
        let key = "-----BEGIN PRIVATE KEY-----\nAAEC\nAw==\n-----END PRIVATE KEY-----\n";
        assert_eq!(pem(key), Some(vec![0, 1, 2, 3]));
        for text in [
            "",
            "AAEC",
            "-----BEGIN PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY----- ! -----END PRIVATE KEY-----",
            "-----BEGIN RSA PRIVATE KEY-----\nAAEC\n-----END RSA PRIVATE KEY-----",
        ] {
            assert_eq!(pem(text), None, "{text}");
        }
    }
}
