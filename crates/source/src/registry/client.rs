//! Requests to one repository of a registry: with its login, within bounds, again where it says so.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{
    ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Client, Method, Response, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use slipway_clock::Clock;
use slipway_model::status::ErrorType;
use slipway_steps::http::address::{self, Resolver};

use super::challenge::{self, Challenge};
use crate::fault::Fault;
use crate::git::login::Login;

/// Time to connect.
const CONNECT: Duration = Duration::from_secs(5);
/// Time for one request with its answer.
const REQUEST: Duration = Duration::from_secs(10);
/// Most of an answer's body, bytes: what registries take for a manifest.
const LARGEST: usize = 4 << 20;
/// Most of a token's answer, bytes.
const LARGEST_TOKEN: usize = 256 << 10;
/// How often a registry that is busy is asked.
const ATTEMPTS: u32 = 3;
/// Longest wait between two attempts, whatever the registry says.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Most redirects.
const REDIRECTS: usize = 3;

/// Kinds of manifests that are taken: a digest is that of the one that the registry chooses among them.
const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json";

/// What came back.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// One repository of one registry.
pub(super) struct Registry<'a> {
    /// Where `/v2/` is below.
    pub(super) base: Url,
    pub(super) repository: &'a str,
    pub(super) login: Option<Login>,
    pub(super) clock: &'a Clock,
    /// The header that the registry asked for.
    authorization: Option<HeaderValue>,
}

/// The one client. It uses no proxy, because behind one the check of addresses would check nothing. Where it is sent on to
/// another host it leaves out `authorization`, and no other header.
pub(crate) fn client() -> Result<&'static Client, String> {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    once(&CLIENT, |attempt| attempt.follow())
}

/// The same, for what is asked with a login in a header of its own: it takes what sends it on to another host, such as the
/// page where people log in, for the answer.
pub(crate) fn client_of_one_host() -> Result<&'static Client, String> {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    once(&CLIENT, |attempt| {
        let asked = attempt.previous().first();
        match asked.is_some_and(|asked| asked.origin() == attempt.url().origin()) {
            true => attempt.follow(),
            false => attempt.stop(),
        }
    })
}

fn once(
    client: &'static OnceLock<Client>,
    follow: impl Fn(Attempt) -> Action + Send + Sync + 'static,
) -> Result<&'static Client, String> {
    if let Some(client) = client.get() {
        return Ok(client);
    }
    let redirect = Policy::custom(move |attempt| {
        if attempt.previous().len() > REDIRECTS {
            return attempt.error("it redirects too often");
        }
        match address::check(attempt.url()) {
            Ok(()) => follow(attempt),
            Err(why) => attempt.error(why),
        }
    });
    let built = Client::builder()
        .dns_resolver(Resolver)
        .no_proxy()
        .redirect(redirect)
        .connect_timeout(CONNECT)
        .timeout(REQUEST)
        .user_agent(concat!("slipway/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| format!("cannot set up an HTTP client: {error}"))?;
    Ok(client.get_or_init(|| built))
}

/// Whether an address is this machine's own.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let address: Option<std::net::IpAddr> = host.parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

impl<'a> Registry<'a> {
    pub(super) fn new(
        registry: &str,
        repository: &'a str,
        login: Option<Login>,
        clock: &'a Clock,
    ) -> Result<Self, String> {
        let base = address::url(registry).map_err(|why| format!("its address: {why}"))?;
        if login.is_some() && base.scheme() == "http" && !is_loopback(&base) {
            return Err(
                "a login is not sent over http: give the connector an https address".to_owned(),
            );
        }
        Ok(Self {
            base,
            repository,
            login,
            clock,
            authorization: None,
        })
    }

    /// The address of something of the repository.
    pub(super) fn url(&self, rest: &str) -> Result<Url, String> {
        let base = self.base.as_str().trim_end_matches('/');
        let text = format!("{base}/v2/{}/{rest}", self.repository);
        Url::parse(&text).map_err(|why| format!("its address: {why}"))
    }

    /// Asks once, logs in where it must, and waits where the registry is busy.
    pub(super) async fn ask(&mut self, method: Method, url: &Url) -> Result<Reply, Fault> {
        let mut asked_in = false;
        let mut attempt = 1;
        loop {
            let response = self.send(method.clone(), url, &HeaderMap::new()).await?;
            let status = response.status().as_u16();
            if status == 401 && !asked_in {
                asked_in = true;
                self.authorization = Some(self.log_in(response.headers()).await?);
                continue;
            }
            if matches!(status, 429 | 500 | 502..=504) && attempt < ATTEMPTS {
                attempt += 1;
                self.clock.sleep(wait(response.headers())).await;
                continue;
            }
            let headers = response.headers().clone();
            let body = read(response, LARGEST).await?;
            return Ok(Reply {
                status,
                headers,
                body,
            });
        }
    }

    /// Reads once and logs in where it must. Who asks again and again waits by itself.
    pub(super) async fn ask_once(
        &mut self,
        url: &Url,
        headers: &HeaderMap,
    ) -> Result<Reply, Fault> {
        let mut response = self.send(Method::GET, url, headers).await?;
        if response.status() == 401 {
            self.authorization = Some(self.log_in(response.headers()).await?);
            response = self.send(Method::GET, url, headers).await?;
        }
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let body = read(response, LARGEST).await?;
        Ok(Reply {
            status,
            headers,
            body,
        })
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: &HeaderMap,
    ) -> Result<Response, Fault> {
        let mut request = client()?
            .request(method, url.clone())
            .header(ACCEPT, MANIFESTS)
            .headers(headers.clone());
        if let Some(header) = &self.authorization {
            request = request.header(AUTHORIZATION, header.clone());
        }
        request.send().await.map_err(unreached)
    }

    /// The header that answers a challenge.
    async fn log_in(&self, headers: &HeaderMap) -> Result<HeaderValue, Fault> {
        let all = headers.get_all(WWW_AUTHENTICATE).iter();
        let mut challenges = all.filter_map(|value| challenge::read(value.to_str().ok()?));
        let secret = match (challenges.next(), &self.login) {
            (
                Some(Challenge::Bearer {
                    realm,
                    service,
                    scope,
                }),
                _,
            ) => {
                let token = self.token(&realm, service, scope).await?;
                SecretString::from(format!("Bearer {}", token.expose_secret()))
            }
            (Some(Challenge::Basic), Some(login)) => basic(login),
            (Some(Challenge::Basic), None) => {
                return Err(Fault::login(
                    "it asks for a login, and the connector has none",
                ));
            }
            (None, _) => {
                return Err(Fault::login(
                    "it asks for a login in a way that is not known here",
                ));
            }
        };
        let header = HeaderValue::from_str(secret.expose_secret());
        let mut header =
            header.map_err(|_| "its token has characters that none may have".to_owned())?;
        header.set_sensitive(true);
        Ok(header)
    }

    /// A token for reading the repository.
    async fn token(
        &self,
        realm: &str,
        service: Option<String>,
        scope: Option<String>,
    ) -> Result<SecretString, Fault> {
        let at = |why: String| format!("the server that it takes tokens from: {why}");
        let mut url = address::url(realm).map_err(at)?;
        let safe = url.scheme() == "https" || is_loopback(&url);
        if !safe && (self.login.is_some() || self.base.scheme() == "https") {
            return Err(at("it is asked over https only".to_owned()).into());
        }
        let own = format!("repository:{}:", self.repository);
        // What the registry asks for, but nothing of other repositories.
        let scope = scope.filter(|scope| scope.starts_with(&own) && !scope.contains(' '));
        let scope = scope.unwrap_or_else(|| format!("{own}pull"));
        {
            let mut query = url.query_pairs_mut();
            if let Some(service) = &service {
                query.append_pair("service", service);
            }
            // Without a repository it is only about the login.
            if !self.repository.is_empty() {
                query.append_pair("scope", &scope);
            }
        }
        let mut request = client()?.get(url);
        if let Some(login) = &self.login {
            let mut header = HeaderValue::from_str(basic(login).expose_secret())
                .map_err(|_| at("the login has characters that none may have".to_owned()))?;
            header.set_sensitive(true);
            request = request.header(AUTHORIZATION, header);
        }
        let response = request.send().await;
        let response = response.map_err(|why| unreached(why).told(at))?;
        let status = response.status().as_u16();
        if matches!(status, 401 | 403) {
            return Err(Fault::login(match self.login {
                Some(_) => {
                    "it does not accept the connector's login: check its user and password, and that they may \
                            read the repository"
                }
                None => "it gives no token without a login, and the connector has none",
            }));
        }
        if matches!(status, 429 | 500..) {
            let why = at(format!("it answers {status}: try again later"));
            return Err(Fault::new(ErrorType::Connectivity, why));
        }
        if !response.status().is_success() {
            return Err(at(format!("it answers {status}")).into());
        }
        let body = read(response, LARGEST_TOKEN).await;
        let body = body.map_err(|fault| fault.told(at))?;
        let answer: Value =
            serde_json::from_slice(&body).map_err(|_| at("its answer is not JSON".to_owned()))?;
        let token = answer["token"].as_str().or(answer["access_token"].as_str());
        match token.filter(|token| !token.is_empty()) {
            Some(token) => Ok(SecretString::from(token)),
            None => Err(at("its answer has no token".to_owned()).into()),
        }
    }
}

/// The header of a login.
pub(crate) fn basic(login: &Login) -> SecretString {
    use base64::Engine as _;
    let pair = format!("{}:{}", login.user, login.password.expose_secret());
    let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
    SecretString::from(format!("Basic {encoded}"))
}

/// How long a registry that is busy wants to be left alone, within limits; a date counts as a second.
fn wait(headers: &HeaderMap) -> Duration {
    let told = headers
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok());
    let seconds = told
        .and_then(|told| told.trim().parse::<u64>().ok())
        .unwrap_or(1);
    Duration::from_secs(seconds).clamp(Duration::from_millis(500), LONGEST_WAIT)
}

/// The body of an answer that is not too large.
pub(crate) async fn read(mut response: Response, most: usize) -> Result<Vec<u8>, Fault> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreached)? {
        if body.len() + chunk.len() > most {
            return Err(format!("its answer has more than {most} bytes").into());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Why there is no answer. Addresses are left out: those of tokens tell what they are for.
pub(crate) fn unreached(error: reqwest::Error) -> Fault {
    let (kind, what) = match () {
        () if error.is_timeout() => (ErrorType::Timeout, "it does not answer in time"),
        () if error.is_connect() => (ErrorType::Connectivity, "it cannot be reached"),
        () => (ErrorType::Connectivity, "it breaks off"),
    };
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    let why = format!("{what} ({cause}): check the address and the network");
    Fault::new(kind, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_what_the_registry_says_within_limits() {
        for (told, seconds) in [
            ("3", 3.0),
            ("0", 0.5),
            ("86400", 5.0),
            ("soon", 1.0),
            ("-1", 1.0),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(told));
            assert_eq!(wait(&headers).as_secs_f64(), seconds, "{told}");
        }
        assert_eq!(wait(&HeaderMap::new()).as_secs_f64(), 1.0);
    }
}
