//! A server that is asked over HTTP, with the connector's login, and not again while it is busy.

use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
};
use reqwest::{Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use slipway_model::status::ErrorType;
use slipway_steps::http::address;
use slipway_steps::secrets::Secrets;

use super::super::client::{self, Reply, basic, is_loopback};
use super::super::login;
use super::{Poll, Trouble};
use crate::fault::Fault;

/// Most of an answer that is a list, bytes.
pub(super) const LARGEST: usize = 16 << 20;

/// One server.
pub(super) struct Server<'a> {
    poll: &'a Poll<'a>,
    base: Url,
    authorization: Option<HeaderValue>,
    /// What to check where there is nothing.
    check: &'static str,
    pub(super) accept: &'static str,
    pub(super) largest: usize,
}

impl<'a> Server<'a> {
    /// The server that a field of the connector names. `check` is what a person should look at where there is nothing.
    pub(super) async fn of(
        poll: &'a Poll<'a>,
        field: &str,
        check: &'static str,
        secrets: &mut Secrets<'_>,
    ) -> Result<Self, Trouble> {
        let written = poll.address(field)?;
        let authorization = authorization(poll, secrets).await?;
        Self::at(poll, written, authorization, check)
    }

    /// The server at an address.
    pub(super) fn at(
        poll: &'a Poll<'a>,
        written: &str,
        authorization: Option<SecretString>,
        check: &'static str,
    ) -> Result<Self, Trouble> {
        let base = address::url(written).map_err(|why| format!("its address: {why}"))?;
        if authorization.is_some() && base.scheme() == "http" && !is_loopback(&base) {
            let why = "a login is not sent over http: give the connector an https address";
            return Err(why.to_owned().into());
        }
        let authorization = match authorization {
            None => None,
            Some(text) => {
                let header = HeaderValue::from_str(text.expose_secret());
                let why = "the login has characters that none may have";
                let mut header = header.map_err(|_| Fault::login(why))?;
                header.set_sensitive(true);
                Some(header)
            }
        };
        Ok(Self {
            poll,
            base,
            authorization,
            check,
            accept: "application/json",
            largest: LARGEST,
        })
    }

    /// An address below the server's; what is put in cannot lead elsewhere.
    pub(super) fn url(&self, segments: &[&str]) -> Result<Url, Fault> {
        let mut url = self.base.clone();
        match url.path_segments_mut() {
            Ok(mut path) => drop(path.pop_if_empty().extend(segments)),
            Err(()) => return Err("its address cannot have a path".to_owned().into()),
        }
        Ok(url)
    }

    /// Whether requests have a login.
    pub(super) fn logs_in(&self) -> bool {
        self.authorization.is_some()
    }

    /// Whether an address is one of this server.
    pub(super) fn owns(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }

    /// Reads what is at an address; `None` where it did not change since the last time.
    pub(super) async fn changed(&self, url: &Url) -> Result<Option<Reply>, Trouble> {
        let known = &self.poll.known;
        let reply = self.send(Method::GET, url, None, validators(known)).await?;
        Ok((reply.status != 304).then_some(reply))
    }

    /// Reads what is at an address.
    pub(super) async fn get(&self, url: &Url) -> Result<Reply, Trouble> {
        self.send(Method::GET, url, None, HeaderMap::new()).await
    }

    /// Asks with a text.
    pub(super) async fn post(&self, url: &Url, text: String) -> Result<Reply, Trouble> {
        self.send(Method::POST, url, Some(text), HeaderMap::new())
            .await
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        text: Option<String>,
        headers: HeaderMap,
    ) -> Result<Reply, Trouble> {
        let told = |why: String| format!("{}: {why}", self.name());
        let (host, clock) = (host(&self.base), self.poll.asking.clock);
        free(self.poll, &host).map_err(|trouble| trouble.told(told))?;
        let mut request = client::client()?
            .request(method, url.clone())
            .header(ACCEPT, self.accept)
            .headers(headers);
        if let Some(header) = &self.authorization {
            request = request.header(AUTHORIZATION, header.clone());
        }
        if let Some(text) = text {
            request = request.header(CONTENT_TYPE, "text/plain").body(text);
        }
        let sent = request.send().await;
        let response = sent.map_err(|why| {
            let wait = self.poll.held.hold(&host, &HeaderMap::new(), clock);
            Trouble {
                fault: client::unreached(why).told(told),
                wait: Some((host.clone(), wait)),
            }
        })?;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        if is_busy(status, &headers) {
            return Err(busy(self.poll, &host, status, &headers).told(told));
        }
        self.poll.held.release(&host);
        if let Some(fault) = self.refused(status) {
            return Err(fault.told(told).into());
        }
        let body = client::read(response, self.largest).await;
        let body = body.map_err(|fault| fault.told(told))?;
        Ok(Reply {
            status,
            headers,
            body,
        })
    }

    /// The server, for messages.
    pub(super) fn name(&self) -> String {
        let connector = self.poll.connector;
        format!(
            "{} {} (connector {})",
            connector.kind, self.base, connector.reference
        )
    }

    fn refused(&self, status: u16) -> Option<Fault> {
        Some(match status {
            200 | 304 => return None,
            401 | 403 if self.authorization.is_some() => Fault::login(format!(
                "it does not accept the connector's login, or the login may not read this ({status}): check its user and \
                 password"
            )),
            401 | 403 => Fault::login(format!(
                "it asks for a login ({status}), and the connector has none"
            )),
            // Azure DevOps shows its page for signing in.
            203 | 302 if self.authorization.is_some() => Fault::login(format!(
                "it asks to sign in ({status}), and does not accept the connector's login: check that its token is right and \
                 not over"
            )),
            404 => Fault::from(format!("it has no such thing (404): check {}", self.check)),
            status => Fault::from(format!(
                "it answers {status}, which it should not: check the connector's address"
            )),
        })
    }
}

/// The body of an answer as JSON.
pub(super) fn json(server: &Server<'_>, reply: &Reply) -> Result<Value, Fault> {
    serde_json::from_slice(&reply.body).map_err(|why| {
        format!(
            "{}: its answer is not JSON ({why}): check the connector's address",
            server.name()
        )
        .into()
    })
}

/// The host that is left alone where it is busy, with its port.
pub(super) fn host(url: &Url) -> String {
    let name = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{name}:{port}"),
        None => name.to_owned(),
    }
}

/// Nothing is asked of a host that is left alone.
pub(super) fn free(poll: &Poll<'_>, host: &str) -> Result<(), Trouble> {
    let Some(wait) = poll.held.wait(host, poll.asking.clock) else {
        return Ok(());
    };
    let why = format!(
        "it is left alone for {} s more, because it was busy or broken",
        wait.as_secs().max(1)
    );
    Err(Trouble {
        fault: Fault::new(ErrorType::Connectivity, why),
        wait: Some((host.to_owned(), wait)),
    })
}

/// Whether an answer says that a host wants to be left alone. GitHub says 403 for it.
pub(super) fn is_busy(status: u16, headers: &HeaderMap) -> bool {
    let none_left = headers
        .get("x-ratelimit-remaining")
        .is_some_and(|left| left == "0");
    matches!(status, 429 | 500..=599)
        || (status == 403 && (none_left || headers.contains_key("retry-after")))
}

/// Leaves a host alone.
pub(super) fn busy(poll: &Poll<'_>, host: &str, status: u16, headers: &HeaderMap) -> Trouble {
    let wait = poll.held.hold(host, headers, poll.asking.clock);
    let what = match status {
        500.. => "it has an error of its own",
        _ => "it has been asked too often",
    };
    let why = format!(
        "{what} ({status}); it is left alone for {} s",
        wait.as_secs()
    );
    Trouble {
        fault: Fault::new(ErrorType::Connectivity, why),
        wait: Some((host.to_owned(), wait)),
    }
}

/// The headers that ask for what changed.
pub(super) fn validators(known: &super::Known) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut put = |name: HeaderName, value: &Option<String>| {
        let value = value.as_deref().map(HeaderValue::from_str);
        if let Some(Ok(value)) = value {
            headers.insert(name, value);
        }
    };
    put(IF_NONE_MATCH, &known.etag);
    // Of both the tag decides (RFC 9110, 13.1.3).
    put(IF_MODIFIED_SINCE, &known.modified);
    headers
}

/// `ETag` and `Last-Modified` of an answer.
pub(super) fn validators_of(headers: &HeaderMap) -> (Option<String>, Option<String>) {
    let text = |name: HeaderName| {
        let value = headers.get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    (text(ETAG), text(LAST_MODIFIED))
}

/// The header of a connector's login; `None` where it has none.
pub(super) async fn authorization(
    poll: &Poll<'_>,
    secrets: &mut Secrets<'_>,
) -> Result<Option<SecretString>, Fault> {
    let connector = poll.connector;
    let (scope, _) = poll.scope.resolve(&connector.reference);
    let auth = &connector.spec["auth"];
    if auth["type"] == "Bearer Token(HTTP Header)" {
        let reference = auth["spec"]["tokenRef"].as_str().unwrap_or_default();
        let token = secrets.value_in(&scope, reference).await;
        let token = token.map_err(Fault::from)?;
        return Ok(Some(SecretString::from(format!(
            "Bearer {}",
            token.expose_secret()
        ))));
    }
    let login = login::login(connector, &scope, secrets).await;
    let login = login.map_err(Fault::login)?;
    Ok(login.as_ref().map(basic))
}
