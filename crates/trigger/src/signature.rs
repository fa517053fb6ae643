//! Whether a delivery comes from who knows the secret, as each provider shows that (SECURITY 7.3).
//!
//! A signature is over the raw bytes of the body. Of the schemes that a provider has, the strongest that the delivery
//! claims to follow decides: who sends a wrong signature is not asked for a weaker one. Comparisons take the same time
//! wherever two values differ.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::{Delivery, Provider};

/// How far the time of a Standard Webhooks delivery may be from ours, in seconds.
const TOLERANCE: u64 = 300;

/// Most signatures in one header: two secrets overlap while they are rotated, and nobody rotates ten at once.
const MOST_SIGNATURES: usize = 10;

/// Why a delivery is not believed. Says nothing of secrets and signatures: it goes into the audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unauthenticated {
    /// There is no secret to compare with, or it is empty.
    NoSecret,
    /// The header that authenticates is not there.
    Missing(&'static str),
    /// The header comes twice.
    Doubled(&'static str),
    /// The header cannot be read.
    Malformed(&'static str, &'static str),
    /// What it says is wrong.
    Wrong(&'static str),
    /// The time that was signed is too far from now.
    Stale,
    /// This provider does not post to us.
    NotOverHttp(Provider),
}

impl std::fmt::Display for Unauthenticated {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::NoSecret => {
                f.write_str("there is no secret to verify the delivery with: give the trigger one")
            }
            Self::Missing(header) => write!(
                f,
                "the delivery is not signed: the header {header} is missing"
            ),
            Self::Doubled(header) => write!(f, "the header {header} comes twice"),
            Self::Malformed(header, wanted) => write!(
                f,
                "the header {header} cannot be read: {wanted} is expected"
            ),
            Self::Wrong(header) => write!(
                f,
                "the header {header} does not fit the body and the secret of the trigger: both sides must have the same secret"
            ),
            Self::Stale => write!(
                f,
                "the delivery was signed more than {TOLERANCE} seconds before or after now: compare the clocks"
            ),
            Self::NotOverHttp(provider) => write!(
                f,
                "events of {} come from EventBridge, never over HTTP",
                provider.name()
            ),
        }
    }
}

impl std::error::Error for Unauthenticated {}

/// Verifies a delivery with any of some secrets: while one is rotated there are two.
///
/// # Errors
/// Why it is not believed.
pub fn verify(
    provider: Provider,
    secrets: &[&str],
    delivery: &Delivery,
    now_ms: i64,
) -> Result<(), Unauthenticated> {
    if provider == Provider::AwsCodeCommit {
        return Err(Unauthenticated::NotOverHttp(provider));
    }
    let secrets: Vec<&str> = secrets
        .iter()
        .copied()
        .filter(|it| !it.is_empty())
        .collect();
    if secrets.is_empty() {
        return Err(Unauthenticated::NoSecret);
    }
    let claim = Claim {
        secrets: &secrets,
        delivery,
    };
    match provider {
        Provider::Github => claim.github(),
        Provider::Gitlab => match claim.has(STANDARD_WEBHOOKS) {
            true => claim.standard_webhooks(now_ms),
            false => claim.plain("x-gitlab-token"),
        },
        Provider::Bitbucket => claim.prefixed("x-hub-signature"),
        Provider::AzureRepo => claim.azure(),
        Provider::Harness | Provider::HarnessArtifactRegistry => claim.harness(),
        Provider::Custom => claim.custom(now_ms),
        Provider::AwsCodeCommit => Err(Unauthenticated::NotOverHttp(provider)),
    }
}

/// Whether a header's name says that its value authenticates the sender. Such headers are in no event, no expression
/// and no log.
pub fn is_credential(header: &str) -> bool {
    let name = header.to_ascii_lowercase();
    let words = [
        "authorization",
        "signature",
        "token",
        "secret",
        "password",
        "cookie",
        "credential",
        "api-key",
        "apikey",
        "access-key",
        "event-auth",
    ];
    words.iter().any(|word| name.contains(word))
}

const STANDARD_WEBHOOKS: &str = "webhook-signature";

/// What a delivery claims, and what it may be true of.
struct Claim<'d> {
    secrets: &'d [&'d str],
    delivery: &'d Delivery,
}

impl Claim<'_> {
    fn has(&self, header: &str) -> bool {
        let headers = &self.delivery.headers;
        headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case(header))
    }

    fn header(&self, name: &'static str) -> Result<&str, Unauthenticated> {
        match self.delivery.header(name) {
            Some(value) => Ok(value),
            None if self.has(name) => Err(Unauthenticated::Doubled(name)),
            None => Err(Unauthenticated::Missing(name)),
        }
    }

    /// Any of the secrets suffices. All are tried, so that the time does not tell which.
    fn any(
        &self,
        header: &'static str,
        holds: impl Fn(&str) -> bool,
    ) -> Result<(), Unauthenticated> {
        let right = self.secrets.iter().map(|secret| holds(secret));
        match right.fold(false, |any, one| any | one) {
            true => Ok(()),
            false => Err(Unauthenticated::Wrong(header)),
        }
    }

    /// The header is the secret.
    fn plain(&self, header: &'static str) -> Result<(), Unauthenticated> {
        let sent = self.header(header)?;
        self.any(header, |secret| same(sent, secret))
    }

    /// The header is the HMAC in hexadecimal digits.
    fn hex(&self, header: &'static str) -> Result<(), Unauthenticated> {
        let sent = hex(self.header(header)?);
        let sent = sent.ok_or(Unauthenticated::Malformed(
            header,
            "an HMAC-SHA256 in hexadecimal digits",
        ))?;
        self.any(header, |secret| {
            mac_is(secret.as_bytes(), &[&self.delivery.body], &sent)
        })
    }

    /// The same behind `sha256=`. Another digest is refused, even where it is right.
    fn prefixed(&self, header: &'static str) -> Result<(), Unauthenticated> {
        let sent = self.header(header)?.strip_prefix("sha256=").and_then(hex);
        let sent = sent.ok_or(Unauthenticated::Malformed(
            header,
            "`sha256=` and an HMAC in hexadecimal digits",
        ))?;
        self.any(header, |secret| {
            mac_is(secret.as_bytes(), &[&self.delivery.body], &sent)
        })
    }

    /// GitHub, and Gitea and Forgejo, which send the same events and sign them under names of their own too: each
    /// signature that is there must be right. The SHA-1 that GitHub sends beside it does not count.
    fn github(&self) -> Result<(), Unauthenticated> {
        let own = ["x-forgejo-signature", "x-gitea-signature"];
        let present: Vec<&'static str> = own.into_iter().filter(|name| self.has(name)).collect();
        for header in &present {
            self.hex(header)?;
        }
        match present.is_empty() || self.has("x-hub-signature-256") {
            true => self.prefixed("x-hub-signature-256"),
            false => Ok(()),
        }
    }

    /// Azure signs nothing: the secret is the password of basic authentication, or a header of its own.
    fn azure(&self) -> Result<(), Unauthenticated> {
        if self.has("authorization") {
            return self.basic();
        }
        let mut tokens = self
            .delivery
            .headers
            .iter()
            .filter(|(name, _)| is_credential(name));
        let (_, sent) = tokens
            .next()
            .ok_or(Unauthenticated::Missing("Authorization"))?;
        if tokens.next().is_some() {
            return Err(Unauthenticated::Doubled("that has the secret"));
        }
        self.any("that has the secret", |secret| same(sent, secret))
    }

    fn basic(&self) -> Result<(), Unauthenticated> {
        let header = "authorization";
        let malformed =
            Unauthenticated::Malformed(header, "`Basic` and base64 of user and password");
        let (scheme, encoded) = self
            .header(header)?
            .split_once(' ')
            .ok_or(malformed.clone())?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return Err(malformed);
        }
        let decoded = STANDARD
            .decode(encoded.trim())
            .map_err(|_| malformed.clone())?;
        let decoded = String::from_utf8(decoded).map_err(|_| malformed.clone())?;
        let (_, password) = decoded.split_once(':').ok_or(malformed)?;
        self.any(header, |secret| same(password, secret))
    }

    fn harness(&self) -> Result<(), Unauthenticated> {
        match self.has("x-gitness-signature") && !self.has("x-harness-signature") {
            true => self.hex("x-gitness-signature"),
            false => self.hex("x-harness-signature"),
        }
    }

    /// Who posts to a custom webhook says by a header how it signs: as a Git provider does (whose other events a custom
    /// trigger may listen to), by Standard Webhooks, as the registries Artifactory and Nexus do, or with the secret itself
    /// (Harbor).
    fn custom(&self, now_ms: i64) -> Result<(), Unauthenticated> {
        let any = |names: &[&str]| names.iter().any(|name| self.has(name));
        if any(&[
            "x-hub-signature-256",
            "x-forgejo-signature",
            "x-gitea-signature",
        ]) {
            return self.github();
        }
        if self.has(STANDARD_WEBHOOKS) {
            return self.standard_webhooks(now_ms);
        }
        if self.has("x-hub-signature") {
            return self.prefixed("x-hub-signature");
        }
        if any(&["x-harness-signature", "x-gitness-signature"]) {
            return self.harness();
        }
        if self.has("x-jfrog-event-auth") {
            // Plain, or an HMAC where Artifactory is told to sign; which of both the secret cannot tell.
            let signed = self.hex("x-jfrog-event-auth");
            return signed.or_else(|_| self.plain("x-jfrog-event-auth"));
        }
        if self.has("x-nexus-webhook-signature") {
            return self.nexus();
        }
        if self.has("x-gitlab-token") {
            return self.plain("x-gitlab-token");
        }
        match self.has("authorization") {
            true => self.authorization(),
            false => Err(Unauthenticated::Missing("X-Hub-Signature-256")),
        }
    }

    /// The secret, alone or behind `Bearer`.
    fn authorization(&self) -> Result<(), Unauthenticated> {
        let sent = self.header("authorization")?;
        let (scheme, rest) = sent.split_once(' ').unwrap_or(("", sent));
        let token = match scheme.eq_ignore_ascii_case("bearer") {
            true => rest,
            false => sent,
        };
        self.any("authorization", |secret| same(token, secret))
    }

    /// Nexus has nothing but SHA-1; as an HMAC it still holds.
    fn nexus(&self) -> Result<(), Unauthenticated> {
        let header = "x-nexus-webhook-signature";
        let sent = hex(self.header(header)?);
        let sent = sent.ok_or(Unauthenticated::Malformed(
            header,
            "an HMAC-SHA1 in hexadecimal digits",
        ))?;
        self.any(header, |secret| {
            let mac = Hmac::<Sha1>::new_from_slice(secret.as_bytes());
            mac.is_ok_and(|mac| {
                mac.chain_update(&self.delivery.body)
                    .verify_slice(&sent)
                    .is_ok()
            })
        })
    }

    /// `webhook-id`, `webhook-timestamp` and `webhook-signature` of Standard Webhooks.
    fn standard_webhooks(&self, now_ms: i64) -> Result<(), Unauthenticated> {
        let id = self.header("webhook-id")?;
        let time = self.header("webhook-timestamp")?;
        let signatures = self.header(STANDARD_WEBHOOKS)?;
        let malformed =
            Unauthenticated::Malformed("webhook-timestamp", "seconds since 1970 in digits");
        if !time.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(malformed);
        }
        let seconds: i64 = time.parse().map_err(|_| malformed)?;
        if seconds.abs_diff(now_ms.div_euclid(1000)) > TOLERANCE {
            return Err(Unauthenticated::Stale);
        }
        let sent: Vec<Vec<u8>> = signatures
            .split(' ')
            .take(MOST_SIGNATURES)
            .filter_map(|one| STANDARD.decode(one.strip_prefix("v1,")?).ok())
            .collect();
        if sent.is_empty() {
            return Err(Unauthenticated::Malformed(
                STANDARD_WEBHOOKS,
                "`v1,` and base64 of an HMAC-SHA256",
            ));
        }
        let signed: [&[u8]; 5] = [
            id.as_bytes(),
            b".",
            time.as_bytes(),
            b".",
            &self.delivery.body,
        ];
        self.any(STANDARD_WEBHOOKS, |secret| {
            let key = match secret.strip_prefix("whsec_") {
                Some(encoded) => STANDARD.decode(encoded).unwrap_or_default(),
                None => secret.as_bytes().to_vec(),
            };
            let right = sent.iter().map(|sent| mac_is(&key, &signed, sent));
            !key.is_empty() && right.fold(false, |any, one| any | one)
        })
    }
}

/// Whether two texts are equal, in a time that tells nothing of where they differ or how long the secret is.
fn same(sent: &str, secret: &str) -> bool {
    let [sent, secret] = [sent, secret].map(|text| Sha256::digest(text.as_bytes()));
    bool::from(sent.as_slice().ct_eq(secret.as_slice()))
}

fn mac_is(key: &[u8], parts: &[&[u8]], sent: &[u8]) -> bool {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return false;
    };
    for part in parts {
        mac.update(part);
    }
    mac.verify_slice(sent).is_ok()
}

/// Bytes of hexadecimal digits, at most as many as any HMAC has.
fn hex(text: &str) -> Option<Vec<u8>> {
    if text.is_empty() || text.len() > 128 || text.len() % 2 == 1 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| match pair {
            [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
            _ => None,
        })
        .collect()
}
