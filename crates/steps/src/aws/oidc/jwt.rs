//! JSON Web Tokens signed with RSA (RFC 7515, RFC 7518: `RS256`, which every OpenID provider must have and AWS takes).

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// The library refused: no randomness, or a key that is none.
#[derive(Debug, thiserror::Error)]
#[error("the cryptography of this machine refused")]
pub struct Refused;

/// A new private key of 2048 bits, in PKCS #8.
pub(super) fn new_key() -> Result<Vec<u8>, Refused> {
    let pair = KeyPair::generate(KeySize::Rsa2048).map_err(|_| Refused)?;
    let der = pair.as_der().map_err(|_| Refused)?;
    Ok(der.as_ref().to_vec())
}

/// The public half of a private key as a JSON Web Key (RFC 7517).
pub(super) fn public(key_id: &str, pkcs8: &[u8]) -> Result<Value, Refused> {
    let pair = KeyPair::from_pkcs8(pkcs8).map_err(|_| Refused)?;
    let (modulus, exponent) = components(pair.public_key().as_ref()).ok_or(Refused)?;
    Ok(json!({
        "kty": "RSA",
        "use": "sig",
        "alg": "RS256",
        "kid": key_id,
        "n": URL_SAFE_NO_PAD.encode(modulus),
        "e": URL_SAFE_NO_PAD.encode(exponent),
    }))
}

/// A token with these claims, signed with a private key in PKCS #8.
///
/// # Errors
/// When the key is none.
pub fn sign(key_id: &str, pkcs8: &[u8], claims: &Value) -> Result<String, Refused> {
    let pair = KeyPair::from_pkcs8(pkcs8).map_err(|_| Refused)?;
    let header = json!({"alg": "RS256", "typ": "JWT", "kid": key_id});
    sign_with(&pair, &header, claims)
}

/// A token with this header, whose `alg` is `RS256`, and these claims.
///
/// # Errors
/// When this machine has no randomness.
pub fn sign_with(pair: &KeyPair, header: &Value, claims: &Value) -> Result<String, Refused> {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(header), part(claims));
    let mut signature = vec![0; pair.public_modulus_len()];
    let random = SystemRandom::new();
    pair.sign(
        &RSA_PKCS1_SHA256,
        &random,
        signed.as_bytes(),
        &mut signature,
    )
    .map_err(|_| Refused)?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// Modulus and exponent of an `RSAPublicKey` (RFC 8017, A.1.1): a sequence of two positive integers in DER.
fn components(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (sequence, rest) = element(der, 0x30)?;
    if !rest.is_empty() {
        return None;
    }
    let (modulus, rest) = element(sequence, 0x02)?;
    let (exponent, rest) = element(rest, 0x02)?;
    rest.is_empty()
        .then(|| (unsigned(modulus), unsigned(exponent)))
}

/// The content of the element of a tag that `bytes` begin with, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match usize::from(*first) {
        short if short < 0x80 => (short, rest),
        long => {
            let (digits, rest) = rest.split_at_checked(long - 0x80)?;
            let length = digits.iter().try_fold(0_usize, |sum, digit| {
                sum.checked_mul(256)?.checked_add(usize::from(*digit))
            })?;
            (length, rest)
        }
    };
    (*found == tag).then(|| rest.split_at_checked(length))?
}

/// DER puts a zero before a number whose first bit is set.
fn unsigned(number: &[u8]) -> &[u8] {
    match number {
        [0, rest @ ..] if !rest.is_empty() => rest,
        number => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::rsa::PublicKeyComponents;
    use aws_lc_rs::signature::RSA_PKCS1_2048_8192_SHA256;

    #[test]
    fn what_is_signed_is_checked_with_what_is_published() {
        let key = new_key().expect("a key");
        let token = sign("k1", &key, &json!({"sub": "x"})).expect("a token");
        let published = public("k1", &key).expect("a public key");
        assert!(
            !published.to_string().contains("\"d\""),
            "no private part is published"
        );
        let bytes = |name: &str| {
            let text = published[name].as_str().expect("a number");
            URL_SAFE_NO_PAD.decode(text).expect("base64url")
        };
        let components = PublicKeyComponents {
            n: bytes("n"),
            e: bytes("e"),
        };
        assert_eq!(bytes("n").len(), 256);
        assert_eq!(bytes("e"), [1, 0, 1]);
        let (signed, signature) = token.rsplit_once('.').expect("three parts");
        let signature = URL_SAFE_NO_PAD.decode(signature).expect("base64url");
        let check = |message: &str| {
            let message = message.as_bytes();
            components.verify(&RSA_PKCS1_2048_8192_SHA256, message, &signature)
        };
        assert!(check(signed).is_ok());
        assert!(check(&format!("{signed}x")).is_err());
    }

    #[test]
    fn damaged_keys_are_refused() {
        assert!(public("k", b"").is_err());
        assert!(sign("k", b"0", &json!({})).is_err());
        for bytes in [
            &b""[..],
            b"\x30",
            b"\x30\x81",
            b"\x30\x05\x02\x01",
            b"\x02\x01\x01",
        ] {
            assert_eq!(components(bytes), None, "{bytes:?}");
        }
    }
}
