//! Logins of GitHub apps: a signed word of the app is traded for a token of one installation, which holds for an hour
//! (docs.github.com: "Generating an installation access token for a GitHub App").

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::signature::RsaKeyPair;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use reqwest::{Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use slipway_clock::Clock;
use slipway_steps::aws::oidc::sign_with;
use slipway_steps::http::address::check;
use slipway_steps::http::request::Request;

use crate::registry::is_loopback;

/// Time for one request.
const REQUEST: Duration = Duration::from_secs(10);

/// Most of an answer, in bytes.
const LARGEST: usize = 256 << 10;

/// A token is not used in its last minutes, so that it outlives the fetch that it is for.
const MARGIN: SignedDuration = SignedDuration::from_mins(5);

/// Tokens that are kept; more apps than this ask again.
const MOST_KEPT: usize = 1_000;

/// An app as it is installed by somebody.
pub(crate) struct App<'a> {
    /// Address of the repository, or of the account.
    pub(crate) repository: &'a Url,
    pub(crate) application: String,
    pub(crate) installation: String,
    pub(crate) key: SecretString,
}

/// Tokens that were given to this process, each for as long as it holds.
#[derive(Default)]
pub(crate) struct AppTokens(Mutex<HashMap<String, (SecretString, Timestamp)>>);

impl AppTokens {
    /// The token of an installation; the one that was given before while it holds.
    ///
    /// # Errors
    /// Why there is none. No secret is in the reason.
    pub(crate) async fn token(&self, app: &App<'_>, clock: &Clock) -> Result<SecretString, String> {
        let url = app.url()?;
        let digest = Sha256::digest(app.key.expose_secret().as_bytes());
        // Whoever has another key gets no token of this one.
        let name = format!("{url} {} {}", app.application, STANDARD.encode(digest));
        let now = clock.now();
        if let Some((token, until)) = self.kept().get(&name)
            && now < *until
        {
            return Ok(token.clone());
        }
        let (token, until) = ask(app, url, now).await?;
        let mut kept = self.kept();
        if kept.len() >= MOST_KEPT {
            kept.retain(|_, (_, until)| now < *until);
        }
        if kept.len() < MOST_KEPT {
            kept.insert(name, (token.clone(), until));
        }
        Ok(token)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, HashMap<String, (SecretString, Timestamp)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl App<'_> {
    /// Where its tokens are given: at the API of github.com, or of the GitHub Enterprise Server of the repository.
    fn url(&self) -> Result<Url, String> {
        let number = |text: &str, field: &str| match text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'.')
        {
            true if !text.is_empty() && text.len() <= 64 => Ok(()),
            _ => Err(format!("its `{field}` is no id of GitHub")),
        };
        number(&self.installation, "installationId")?;
        number(&self.application, "applicationId")?;
        let host = self.repository.host_str().unwrap_or_default();
        let hosted = ["github.com", "www.github.com"].contains(&host);
        let (mut url, below) = match hosted {
            true => (Url::parse("https://api.github.com/"), ""),
            false => (self.repository.join("/"), "api/v3/"),
        };
        if let Ok(url) = &mut url {
            url.set_path(&format!(
                "{below}app/installations/{}/access_tokens",
                self.installation
            ));
        }
        let url = url.map_err(|why| format!("its `url` has no API ({why})"))?;
        check(&url).map_err(|why| format!("its `url` is not used: {why}"))?;
        match url.scheme() == "https" || is_loopback(&url) {
            true => Ok(url),
            false => {
                Err("a login is not sent over http: give the connector an https address".to_owned())
            }
        }
    }

    /// What the app says of itself, signed (RFC 7519, RS256).
    fn word(&self, now: Timestamp) -> Result<String, String> {
        let now = now.as_second();
        // GitHub takes ten minutes at most, and its clock may be behind.
        let claims = json!({"iat": now - 60, "exp": now + 540, "iss": self.application});
        let key = key(self.key.expose_secret())?;
        let header = json!({"alg": "RS256", "typ": "JWT"});
        sign_with(&key, &header, &claims).map_err(|_| "its private key does not sign".to_owned())
    }
}

/// An RSA key in PEM: PKCS #1, as GitHub gives it, or PKCS #8.
fn key(pem: &str) -> Result<RsaKeyPair, String> {
    let wrong = || {
        "its private key is no RSA key in PEM: store the file that GitHub gave for the app"
            .to_owned()
    };
    let begin = pem.find("-----BEGIN ").ok_or_else(wrong)?;
    let rest = &pem[begin + "-----BEGIN ".len()..];
    let (kind, rest) = rest.split_once("-----").ok_or_else(wrong)?;
    let (body, _) = rest.split_once("-----END ").ok_or_else(wrong)?;
    let body: String = body.split_whitespace().collect();
    let der = STANDARD.decode(body).map_err(|_| wrong())?;
    let key = match kind {
        "RSA PRIVATE KEY" => RsaKeyPair::from_der(&der),
        "PRIVATE KEY" => RsaKeyPair::from_pkcs8(&der),
        _ => return Err(wrong()),
    };
    key.map_err(|_| wrong())
}

async fn ask(app: &App<'_>, url: Url, now: Timestamp) -> Result<(SecretString, Timestamp), String> {
    let host = url.host_str().unwrap_or_default().to_owned();
    let failed = |why: String| format!("cannot get a token of the GitHub app from {host}: {why}");
    let bearer = SecretString::from(format!("Bearer {}", app.word(now)?));
    let headers = [
        ("authorization", bearer),
        ("accept", "application/vnd.github+json".into()),
        ("x-github-api-version", "2022-11-28".into()),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value));
    let address = SecretString::from(url.to_string());
    let request = Request::new(Method::POST, &address, headers.into(), None).map_err(failed)?;
    let answer = request.keeping(LARGEST).send(REQUEST).await;
    let answer = answer.map_err(|failure| {
        failed(format!(
            "{} Check the connector's `url` and the network",
            failure.message
        ))
    })?;
    if answer.truncated {
        return Err(failed("its answer is too long".to_owned()));
    }
    let status = answer.code;
    let advice = match status {
        200 | 201 => None,
        401 => Some(
            "it does not accept the app's key: check `applicationId`, `privateKeyRef`, and the clock of this machine",
        ),
        403 => Some("the app may not do it: is its installation suspended?"),
        404 => Some("there is no such installation: check `installationId`"),
        _ => Some("try again later"),
    };
    if let Some(advice) = advice {
        return Err(failed(format!("{advice} (status {status})")));
    }
    let said: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let token = said["token"].as_str().filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| failed("its answer has no token".to_owned()))?;
    // One that says nothing of its end is used once.
    let until = said["expires_at"]
        .as_str()
        .and_then(|text| text.parse::<Timestamp>().ok());
    let until = until
        .and_then(|until| until.checked_sub(MARGIN).ok())
        .unwrap_or(now);
    Ok((SecretString::from(token), until))
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
    use aws_lc_rs::rsa::KeySize;
    use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    fn app<'a>(repository: &'a Url, key: &str) -> App<'a> {
        App {
            repository,
            application: "12345".to_owned(),
            installation: "678".to_owned(),
            key: SecretString::from(key),
        }
    }

    #[test]
    fn what_an_app_says_is_signed_by_its_key_and_holds_for_minutes() {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).expect("a key");
        let der: Pkcs8V1Der<'_> = pair.as_der().expect("its form");
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            STANDARD.encode(der.as_ref())
        );
        let repository = Url::parse("https://github.com/acme/shop").expect("a URL");
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().expect("a time");
        let word = app(&repository, &pem).word(now).expect("a word");
        let (said, signature) = word.rsplit_once('.').expect("three parts");
        let signature = URL_SAFE_NO_PAD.decode(signature).expect("base64");
        let known = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref());
        known
            .verify(said.as_bytes(), &signature)
            .expect("a signature");
        let claims = said
            .split('.')
            .nth(1)
            .and_then(|claims| URL_SAFE_NO_PAD.decode(claims).ok());
        let claims: Value = serde_json::from_slice(&claims.expect("base64")).expect("JSON");
        assert_eq!(claims["iss"], "12345");
        assert_eq!(
            claims["exp"].as_i64(),
            claims["iat"].as_i64().map(|at| at + 600)
        );
    }

    #[test]
    fn tokens_are_asked_for_at_the_api_of_the_repositorys_own_host() {
        let table = [
            (
                "https://github.com/acme/shop",
                "https://api.github.com/app/installations/678/access_tokens",
            ),
            (
                "https://git.acme.example/acme/shop",
                "https://git.acme.example/api/v3/app/installations/678/access_tokens",
            ),
            (
                "http://127.0.0.1:9/acme/shop",
                "http://127.0.0.1:9/api/v3/app/installations/678/access_tokens",
            ),
            (
                "http://git.acme.example/acme",
                "no: a login is not sent over http: give the connector an https address",
            ),
        ];
        for (repository, expected) in table {
            let repository = Url::parse(repository).expect("a URL");
            let found = app(&repository, "").url();
            let found = found.map_or_else(|why| format!("no: {why}"), |url| url.to_string());
            assert_eq!(found, expected);
        }
        let repository = Url::parse("https://github.com/acme").expect("a URL");
        let strange = App {
            installation: "1/../../x".to_owned(),
            ..app(&repository, "")
        };
        assert!(strange.url().is_err());
        for pem in [
            "",
            "secret",
            "-----BEGIN PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----",
        ] {
            let why = app(&repository, pem)
                .word(Timestamp::UNIX_EPOCH)
                .expect_err("no key");
            assert!(why.contains("no RSA key in PEM"), "{why}");
        }
    }
}
