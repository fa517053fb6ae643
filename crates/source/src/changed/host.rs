//! A provider's API: asked over https with the connector's login, within bounds.

use reqwest::header::{ACCEPT, HeaderMap, HeaderValue, LINK};
use reqwest::{Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use slipway_model::id::Scope;
use slipway_model::status::ErrorType;
use slipway_plan::ConnectorPlan;
use slipway_steps::http::address;
use slipway_steps::secrets::Secrets;

use super::place::Place;
use crate::fault::Fault;
use crate::git::Allowed;
use crate::git::login::{self as git_login, Login};
use crate::registry::client::{self, basic, is_loopback};

/// Most of one answer, bytes.
const LARGEST: usize = 16 << 20;

/// Most of a refusal, bytes, and what is told of it, characters.
const LONGEST_REFUSAL: usize = 64 << 10;
const LONGEST_SAID: usize = 300;

/// The header of most logins.
const AUTHORIZATION: &str = "authorization";

/// How a login is sent.
#[derive(Clone, Copy)]
pub(crate) enum Sent {
    /// User and password.
    Basic,
    /// The password alone, as `Bearer`.
    Bearer,
    /// The password alone, under another name.
    Named(&'static str),
}

/// A login, and whether it is a user with a password of their own rather than a token.
pub(crate) struct Known {
    login: Login,
    pub(crate) is_password: bool,
    /// Whether somebody wrote a user beside the token.
    pub(crate) has_user: bool,
}

/// The login for the API of a connector, whose repository is at `place`; `None` where it has none.
pub(crate) async fn login(
    connector: &ConnectorPlan,
    place: &Place,
    scope: &Scope,
    allowed: Allowed<'_>,
    secrets: &mut Secrets<'_>,
) -> Result<Option<Known>, Fault> {
    let (scope, _) = scope.resolve(&connector.reference);
    let access = &connector.spec["apiAccess"];
    let authentication = &connector.spec["authentication"];
    let kind = access["type"].as_str().filter(|kind| !kind.is_empty());
    // What is for the API has the form of what is for Git.
    let (connector, kind) = match kind {
        Some(kind) => {
            let kind = if kind == "Token" { "OAuth" } else { kind };
            let wrapped = serde_json::json!({"authentication": {"spec": {"type": kind, "spec": access["spec"]}}});
            let connector = ConnectorPlan {
                spec: wrapped,
                ..connector.clone()
            };
            (connector, kind.to_owned())
        }
        // A plain Git connector has at the top what those of code hosts have in `authentication`.
        None if authentication["type"] == "Ssh" || connector.spec["type"] == "Ssh" => {
            return Err(Fault::login(
                "it logs in over SSH, which the API does not take: give it `apiAccess` with a token",
            ));
        }
        None => {
            let kind = authentication["spec"]["type"].as_str().unwrap_or_default();
            (connector.clone(), kind.to_owned())
        }
    };
    let found = git_login::to_repository(&connector, &place.host, &scope, allowed, secrets).await;
    let login = found.map_err(Fault::login)?;
    Ok(login.map(|login| Known {
        login,
        is_password: kind == "UsernamePassword",
        has_user: !matches!(
            kind.as_str(),
            "OAuth" | "AccessToken" | "GithubApp" | "GitHubApp"
        ),
    }))
}

/// One API.
pub(crate) struct Host {
    base: Url,
    header: Option<(&'static str, HeaderValue)>,
    accept: &'static str,
}

impl Host {
    /// The API at an address.
    pub(crate) fn new(base: Url, login: Option<Known>, sent: Sent) -> Result<Self, Fault> {
        address::check(&base).map_err(|why| format!("its address: {why}"))?;
        if login.is_some() && base.scheme() == "http" && !is_loopback(&base) {
            let why = "a login is not sent over http: give the connector an https address";
            return Err(why.to_owned().into());
        }
        let header = match login {
            None => None,
            Some(Known { login, .. }) => {
                let (name, text) = match sent {
                    Sent::Basic => (AUTHORIZATION, basic(&login)),
                    Sent::Bearer => {
                        let token = login.password.expose_secret();
                        let text = SecretString::from(format!("Bearer {token}"));
                        (AUTHORIZATION, text)
                    }
                    Sent::Named(name) => (name, login.password),
                };
                let header = HeaderValue::from_str(text.expose_secret());
                let why = "the login has characters that none may have";
                let mut header = header.map_err(|_| Fault::login(why))?;
                header.set_sensitive(true);
                Some((name, header))
            }
        };
        Ok(Self {
            base,
            header,
            accept: "application/json",
        })
    }

    /// An address below that of the API; what is put in cannot lead elsewhere.
    pub(crate) fn url(&self, segments: &[&str], query: &[(&str, &str)]) -> Result<Url, Fault> {
        let mut url = self.base.clone();
        match url.path_segments_mut() {
            Ok(mut path) => drop(path.pop_if_empty().extend(segments)),
            Err(()) => return Err("its address cannot have a path".to_owned().into()),
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    /// Whether an address is one of this API.
    pub(crate) fn owns(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }

    /// Reads what is at an address.
    pub(crate) async fn get(&self, url: &Url) -> Result<(Value, HeaderMap), Fault> {
        self.ask(Method::GET, url, None).await
    }

    /// Reads or changes what is at an address; null where there is no answer.
    pub(crate) async fn ask(
        &self,
        method: Method,
        url: &Url,
        body: Option<&Value>,
    ) -> Result<(Value, HeaderMap), Fault> {
        let told = |why: String| format!("{}: {why}", self.base);
        let mut request = client::client_of_one_host()?
            .request(method.clone(), url.clone())
            .header(ACCEPT, self.accept);
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some((name, header)) = &self.header {
            request = request.header(*name, header.clone());
        }
        let sent = request.send().await;
        let response = sent.map_err(|why| client::unreached(why).told(told))?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        if let Some(fault) = self.refused(status, &headers) {
            // What is asked for is known; what is given may be wrong in ways that only its words tell.
            let said = match method {
                Method::GET => String::new(),
                _ => said(
                    &client::read(response, LONGEST_REFUSAL)
                        .await
                        .unwrap_or_default(),
                ),
            };
            return Err(fault.told(|why| told(why + &said)));
        }
        let body = client::read(response, LARGEST).await;
        let body = body.map_err(|fault| fault.told(told))?;
        if body.is_empty() {
            return Ok((Value::Null, headers));
        }
        let answer = serde_json::from_slice(&body);
        let answer = answer.map_err(|_| {
            told("its answer is not JSON: check the connector's address".to_owned())
        })?;
        Ok((answer, headers))
    }

    fn refused(&self, status: u16, headers: &HeaderMap) -> Option<Fault> {
        let none_left = headers
            .get("x-ratelimit-remaining")
            .is_some_and(|left| left == "0");
        let busy = (status == 403 && (none_left || headers.contains_key("retry-after")))
            || matches!(status, 408 | 429 | 500..);
        Some(match status {
            200..=204 => return None,
            _ if busy => Fault::new(
                ErrorType::Connectivity,
                format!("it is busy or broken ({status})"),
            ),
            401 | 403 if self.header.is_some() => Fault::login(format!(
                "it does not accept the connector's login, or the login may not read this ({status}): check its token, and \
                 that it may read the API"
            )),
            401 | 403 => Fault::login(format!(
                "it asks for a login ({status}), and the connector has none: give it `apiAccess`"
            )),
            404 => Fault::from(
                "it has no such repository, pull request or commit, or the connector's login may not see it (404)"
                    .to_owned(),
            ),
            300..=399 => Fault::from(format!(
                "it sends the request on to another address ({status}), which its login is not for: check the connector's \
                 address, and whether the repository has moved"
            )),
            status => Fault::from(format!(
                "it answers {status}, which it should not: check the connector's address"
            )),
        })
    }
}

/// What a refusal says: each provider has another place for it.
fn said(body: &[u8]) -> String {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let places = ["/message", "/error/message", "/error_description", "/error"];
    let own = places.iter().filter_map(|at| answer.pointer(at));
    let listed = answer["errors"].as_array().into_iter().flatten();
    let listed = listed.map(|one| one.get("message").unwrap_or(one));
    let said: Vec<&str> = own.chain(listed).filter_map(Value::as_str).collect();
    let said: String = said.join("; ").chars().take(LONGEST_SAID).collect();
    match said.is_empty() {
        true => said,
        false => format!(": it says `{said}`"),
    }
}

/// Whether a list goes on (RFC 8288).
pub(crate) fn has_next(headers: &HeaderMap) -> bool {
    let links = headers.get_all(LINK).iter();
    links
        .filter_map(|value| value.to_str().ok())
        .any(|link| link.contains("rel=\"next\"") || link.contains("rel=next"))
}
