//! Sending one request and reading its answer, within bounds.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, Method, Response, Url};
use secrecy::{ExposeSecret, SecretString};
use slipway_model::status::{ErrorType, Failure};

use super::address::{self, Resolver};

/// Most of an answer's body that is kept, in bytes: what the value of an expression may have.
pub const BODY_LIMIT: usize = 256 * 1024;

/// Longest a request may take: a lane does not wait for servers inside of one call for longer.
const LONGEST: Duration = Duration::from_secs(60);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Most redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// A request, ready to be sent. Holds secrets, and so has no `Debug`.
pub struct Request {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<SecretString>,
    keeps: usize,
}

/// What a server said.
pub struct Answer {
    /// The status code.
    pub code: u16,
    /// The body, as text.
    pub body: String,
    /// Whether there was more of it than is kept.
    pub truncated: bool,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
}

/// The method of this name, in any case.
pub fn method(name: &str) -> Option<Method> {
    let known = [
        Method::GET,
        Method::HEAD,
        Method::OPTIONS,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ];
    known
        .into_iter()
        .find(|method| method.as_str().eq_ignore_ascii_case(name.trim()))
}

impl Request {
    /// A request, or what is wrong with it; the message holds no secret.
    ///
    /// # Errors
    /// When the URL may not be asked ([`address`]), or a header cannot be one.
    pub fn new(
        method: Method,
        url: &SecretString,
        headers: Vec<(String, SecretString)>,
        body: Option<SecretString>,
    ) -> Result<Self, String> {
        let url = address::url(url.expose_secret()).map_err(|fault| format!("url: {fault}"))?;
        let mut map = HeaderMap::new();
        for (key, value) in headers {
            let name = HeaderName::try_from(key.trim())
                .map_err(|_| format!("headers: `{key:.60}` is no name of a header"))?;
            let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| {
                format!("headers: the value of {name} has characters that none may have")
            })?;
            value.set_sensitive(true);
            map.append(name, value);
        }
        Ok(Self {
            method,
            url,
            headers: map,
            body,
            keeps: BODY_LIMIT,
        })
    }

    /// Keeps more, or less, of the answer's body than [`BODY_LIMIT`], in bytes.
    pub fn keeping(self, bytes: usize) -> Self {
        Self {
            keeps: bytes,
            ..self
        }
    }

    /// Whether sending it twice is sending it once (RFC 9110, 9.2.2).
    pub fn is_idempotent(&self) -> bool {
        !matches!(self.method, Method::POST | Method::PATCH)
    }

    /// Sends it. Redirects of GET and HEAD are followed; headers are not shown to another origin.
    pub async fn send(&self, time: Duration) -> Result<Answer, Failure> {
        let client = client()?;
        let mut url = self.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let mut request = client.request(self.method.clone(), url.clone());
            if url.origin() == self.url.origin() {
                request = request.headers(self.headers.clone());
            }
            if let Some(body) = &self.body {
                request = request.body(body.expose_secret().to_owned());
            }
            let sent = request.timeout(time.min(LONGEST)).send().await;
            let response = sent.map_err(|error| self.failure(error))?;
            match self.redirect(&response)? {
                Some(next) => url = next,
                None => {
                    let answer = read(response, self.keeps).await;
                    return answer.map_err(|error| self.failure(error));
                }
            }
        }
        Err(self.fault(
            ErrorType::Connectivity,
            "it was redirected more than 5 times",
        ))
    }

    fn redirect(&self, response: &Response) -> Result<Option<Url>, Failure> {
        let redirects = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
        if !redirects || !matches!(self.method, Method::GET | Method::HEAD) {
            return Ok(None);
        }
        let Some(location) = response.headers().get(LOCATION) else {
            return Ok(None);
        };
        let next = location
            .to_str()
            .ok()
            .and_then(|to| response.url().join(to).ok());
        let Some(next) = next else {
            return Err(self.fault(
                ErrorType::Connectivity,
                "it was redirected to what is no URL",
            ));
        };
        address::check(&next).map_err(|fault| {
            self.fault(ErrorType::Connectivity, &format!("redirected: {fault}"))
        })?;
        Ok(Some(next))
    }

    fn fault(&self, error: ErrorType, why: &str) -> Failure {
        let host = self.url.host_str().unwrap_or_default();
        Failure {
            error,
            message: format!("The request {} to {host} failed: {why}.", self.method),
            left_behind: None,
        }
    }

    fn failure(&self, error: reqwest::Error) -> Failure {
        let kind = if error.is_timeout() {
            ErrorType::Timeout
        } else {
            ErrorType::Connectivity
        };
        let error = error.without_url();
        let mut why = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            why.push_str(&format!(": {cause}"));
            source = cause.source();
        }
        self.fault(kind, &why)
    }
}

async fn read(mut response: Response, limit: usize) -> Result<Answer, reqwest::Error> {
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after = retry_after
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    let code = response.status().as_u16();
    let mut bytes = Vec::new();
    let mut truncated = false;
    while let Some(chunk) = response.chunk().await? {
        let room = limit - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            truncated = true;
            break;
        }
    }
    Ok(Answer {
        code,
        body: String::from_utf8_lossy(&bytes).into_owned(),
        truncated,
        retry_after,
    })
}

/// The one client. It uses no proxy, because behind one the check of addresses would check nothing.
fn client() -> Result<&'static Client, Failure> {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    if let Some(client) = CLIENT.get() {
        return Ok(client);
    }
    let client = Client::builder()
        .dns_resolver(Resolver)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("slipway/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| Failure {
            error: ErrorType::Connectivity,
            message: format!("Cannot set up an HTTP client: {error}."),
            left_behind: None,
        })?;
    Ok(CLIENT.get_or_init(|| client))
}
