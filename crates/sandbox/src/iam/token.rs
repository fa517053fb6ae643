//! Identity tokens: what is in them, and whether the provider's published keys signed them.

use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::{
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::Value;

use crate::account::Account;
use crate::error::ApiError;
use crate::iam::provider;
use crate::keys::Documents;

/// Largest token that STS takes.
const LONGEST: usize = 20_000;

/// A token, not checked yet.
#[derive(Debug)]
pub(crate) struct Token<'a> {
    /// What was signed: header and claims as they came.
    signed: &'a str,
    signature: Vec<u8>,
    header: Value,
    claims: Value,
}

pub(super) fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::client("InvalidIdentityToken", message)
}

impl<'a> Token<'a> {
    /// Takes a token apart (RFC 7515, compact form).
    pub(crate) fn parse(text: &'a str) -> Result<Self, ApiError> {
        let parse = || {
            let (signed, signature) = text.rsplit_once('.')?;
            let (header, claims) = signed.split_once('.')?;
            let json = |part: &str| -> Option<Value> {
                serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
            };
            Some(Self {
                signed,
                signature: URL_SAFE_NO_PAD.decode(signature).ok()?,
                header: json(header)?,
                claims: json(claims)?,
            })
        };
        let parsed = (text.len() <= LONGEST).then(parse).flatten();
        parsed.filter(|token| token.claims.is_object()).ok_or_else(|| {
            invalid(
                "The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)",
            )
        })
    }

    /// A claim that is a text; empty when there is none.
    pub(crate) fn claim(&self, name: &str) -> &str {
        self.claims[name].as_str().unwrap_or_default()
    }

    /// Audiences: one, or a list.
    fn audiences(&self) -> Vec<&str> {
        match &self.claims["aud"] {
            Value::String(one) => vec![one],
            Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// Checks the token for the account `id` against its provider and the keys that this one publishes now. Gives the
    /// audience that counted.
    pub(crate) fn check(
        &self,
        account: &Account,
        id: &str,
        keys: &Value,
    ) -> Result<String, ApiError> {
        let issuer = self.claim("iss");
        let Some(provider) = provider::find(account, id, issuer) else {
            return Err(no_provider(issuer));
        };
        self.check_signature(keys)?;
        self.check_times(account.now)?;
        let mut audiences = self.audiences().into_iter();
        let audience =
            audiences.find(|audience| provider.clients.iter().any(|known| known == audience));
        let audience = audience.ok_or_else(|| invalid("Incorrect token audience"))?;
        match self.claim("sub").is_empty() {
            true => Err(invalid("Missing a required claim: sub")),
            false => Ok(audience.to_owned()),
        }
    }

    fn check_signature(&self, keys: &Value) -> Result<(), ApiError> {
        let algorithm = self.header["alg"].as_str().unwrap_or_default();
        // "none", and HMAC with the public key, are not on the list.
        let parameters = match algorithm {
            "RS256" => &RSA_PKCS1_2048_8192_SHA256,
            "RS384" => &RSA_PKCS1_2048_8192_SHA384,
            "RS512" => &RSA_PKCS1_2048_8192_SHA512,
            _ => return Err(invalid("The token's signature algorithm is not supported.")),
        };
        let wanted = &self.header["kid"];
        let mut listed = keys["keys"].as_array().into_iter().flatten();
        let key =
            listed.find(|key| key["kty"] == "RSA" && (wanted.is_null() || &key["kid"] == wanted));
        let key = key.ok_or_else(unreachable)?;
        let number = |name: &str| {
            let text = key[name].as_str().unwrap_or_default();
            URL_SAFE_NO_PAD.decode(text).unwrap_or_default()
        };
        let key = PublicKeyComponents {
            n: number("n"),
            e: number("e"),
        };
        key.verify(parameters, self.signed.as_bytes(), &self.signature)
            .map_err(|_| invalid("The token's signature is invalid."))
    }

    fn check_times(&self, now: Timestamp) -> Result<(), ApiError> {
        let now = now.as_second();
        let Some(ends) = self.claims["exp"].as_i64() else {
            return Err(invalid("Missing a required claim: exp"));
        };
        if self.claims["iat"].as_i64().is_none() {
            return Err(invalid("Missing a required claim: iat"));
        }
        if now >= ends {
            return Err(ApiError::client(
                "ExpiredTokenException",
                format!(
                    "Token expired: current date/time {now} must be before the expiration date/time {ends}"
                ),
            ));
        }
        // STS allows for clocks that differ by five minutes.
        match self.claims["nbf"]
            .as_i64()
            .is_some_and(|begins| begins > now + 300)
        {
            true => Err(invalid("The token is not valid yet.")),
            false => Ok(()),
        }
    }
}

pub(crate) fn no_provider(issuer: &str) -> ApiError {
    invalid(format!(
        "No OpenIDConnect provider found in your account for {issuer}"
    ))
}

/// Whether the account `id` takes tokens of `issuer`.
pub(crate) fn is_known(account: &Account, id: &str, issuer: &str) -> bool {
    provider::find(account, id, issuer).is_some()
}

/// There is no key to check a token with.
pub(crate) fn unreachable() -> ApiError {
    invalid(
        "Couldn't retrieve verification key from your identity provider, please reference \
         AssumeRoleWithWebIdentity documentation for requirements",
    )
}

/// The keys that the provider of `issuer` publishes, found as OpenID Connect Discovery says.
pub(crate) async fn published(documents: &dyn Documents, issuer: &str) -> Result<Value, ApiError> {
    let failed = |why: String| {
        let mut error = unreachable();
        error.message.push_str(&format!(" ({why})"));
        error
    };
    let read = async |url: String| {
        let text = documents.read(url.clone()).await;
        let text = text.map_err(|error| failed(format!("{url}: {error}")))?;
        serde_json::from_str::<Value>(&text).map_err(|_| failed(format!("{url} is not JSON")))
    };
    let base = issuer.trim_end_matches('/');
    let configuration = read(format!("{base}/.well-known/openid-configuration")).await?;
    if configuration["issuer"].as_str() != Some(issuer) {
        return Err(failed(format!(
            "{base} calls itself {}",
            configuration["issuer"]
        )));
    }
    match configuration["jwks_uri"].as_str() {
        None => Err(failed("the configuration names no jwks_uri".to_owned())),
        Some(url) => read(url.to_owned()).await,
    }
}
