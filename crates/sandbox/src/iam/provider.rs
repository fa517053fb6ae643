//! OpenID Connect providers: whose tokens the account takes, and for which audiences.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::names::{invalid, required};
use super::{exists, no_such};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;

/// Most audiences of a provider.
const MOST_CLIENTS: usize = 100;

/// A provider.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Provider {
    /// With its scheme, without a `/` at its end.
    url: String,
    /// Audiences.
    pub(super) clients: Vec<String>,
    thumbprints: Vec<String>,
    created: Timestamp,
}

/// ARN of the provider of a URL in an account.
pub(super) fn arn(account: &str, url: &str) -> String {
    format!(
        "arn:aws:iam::{account}:oidc-provider/{}",
        without_scheme(url)
    )
}

/// The URL as ARNs and conditions have it.
pub(super) fn without_scheme(url: &str) -> &str {
    let url = url.split_once("://").map_or(url, |(_, rest)| rest);
    url.trim_end_matches('/')
}

/// Whether the account has a provider for tokens of `issuer`.
pub(super) fn find<'a>(account: &'a Account, id: &str, issuer: &str) -> Option<&'a Provider> {
    let found = account.iam.providers.get(&arn(id, issuer))?;
    // A loopback provider may be `http`; it is another one than its `https` twin.
    (found.url == issuer.trim_end_matches('/')).then_some(found)
}

fn check_url(url: &str) -> Result<(), ApiError> {
    let uri: http::Uri = url
        .parse()
        .map_err(|_| invalid("Invalid Open ID Connect Provider URL"))?;
    let host = uri.host().unwrap_or_default();
    let loopback = host == "localhost"
        || host.ends_with(".localhost")
        || host == "127.0.0.1"
        || host == "[::1]";
    let scheme = uri.scheme_str().unwrap_or_default();
    if host.is_empty()
        || !(scheme == "https" || (scheme == "http" && loopback))
        || uri.query().is_some()
    {
        return Err(invalid("Invalid Open ID Connect Provider URL"));
    }
    Ok(())
}

pub(super) fn create(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let url = required(request, "Url", 255)?;
    check_url(url)?;
    let owned = |name| -> Result<Vec<String>, ApiError> {
        Ok(request
            .texts(name)?
            .into_iter()
            .map(str::to_owned)
            .collect())
    };
    let (clients, thumbprints) = (owned("ClientIDList")?, owned("ThumbprintList")?);
    if clients.len() > MOST_CLIENTS {
        return Err(too_many());
    }
    let hex = |text: &String| text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !thumbprints.iter().all(hex) {
        return Err(invalid(
            "1 validation error detected: Value at 'thumbprintList' failed to satisfy constraint: Member must have \
             length equal to 40",
        ));
    }
    let arn = arn(&caller.account, url);
    if account.iam.providers.get(&arn).is_some() {
        return Err(exists(format!("Provider with url {url} already exists.")));
    }
    let provider = Provider {
        url: url.trim_end_matches('/').to_owned(),
        clients,
        thumbprints,
        created: account.now,
    };
    account.iam.providers.put(arn.clone(), provider);
    Ok(json!({"OpenIDConnectProviderArn": arn}))
}

fn too_many() -> ApiError {
    ApiError {
        code: "LimitExceeded",
        status: 409,
        message: format!(
            "Cannot exceed quota for ClientIdsPerOpenIdConnectProvider: {MOST_CLIENTS}"
        ),
    }
}

fn missing(arn: &str) -> ApiError {
    no_such(format!("OpenIDConnect Provider not found for arn {arn}"))
}

pub(super) fn get(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let arn = required(request, "OpenIDConnectProviderArn", 2_048)?;
    let provider = account.iam.providers.get(arn).ok_or_else(|| missing(arn))?;
    Ok(json!({
        "Url": without_scheme(&provider.url),
        "ClientIDList": provider.clients,
        "ThumbprintList": provider.thumbprints,
        "CreateDate": format!("{:.0}", provider.created),
    }))
}

pub(super) fn list(
    account: &mut Account,
    caller: &Caller,
    _request: Fields<'_>,
) -> Result<Value, ApiError> {
    let own = arn(&caller.account, "");
    let own = account.iam.providers.under(&own);
    let list: Vec<Value> = own.map(|(arn, _)| json!({"Arn": arn})).collect();
    Ok(json!({"OpenIDConnectProviderList": list}))
}

pub(super) fn delete(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let arn = required(request, "OpenIDConnectProviderArn", 2_048)?;
    match account.iam.providers.take(arn) {
        Some(_) => Ok(json!({})),
        None => Err(missing(arn)),
    }
}

pub(super) fn add_client(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let client = required(request, "ClientID", 255)?.to_owned();
    let provider = changed(account, request)?;
    if !provider.clients.contains(&client) {
        if provider.clients.len() >= MOST_CLIENTS {
            return Err(too_many());
        }
        provider.clients.push(client);
    }
    Ok(json!({}))
}

pub(super) fn remove_client(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let client = required(request, "ClientID", 255)?;
    changed(account, request)?
        .clients
        .retain(|known| known != client);
    Ok(json!({}))
}

fn changed<'a>(
    account: &'a mut Account,
    request: Fields<'_>,
) -> Result<&'a mut Provider, ApiError> {
    let arn = required(request, "OpenIDConnectProviderArn", 2_048)?;
    account
        .iam
        .providers
        .get_mut(arn)
        .ok_or_else(|| missing(arn))
}
