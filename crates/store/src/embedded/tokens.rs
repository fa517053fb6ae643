//! Transactions that were done, by the token that the caller gave them: the same again is answered and not done again.
//!
//! DynamoDB remembers a `ClientRequestToken` for ten minutes, and an SDK gives one to every transaction. dynoxide would
//! do this itself, but it looks at all that it remembers at every transaction: with 50,000 of them in ten minutes that is
//! more work than the transactions.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dynoxide::DynoxideError;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// How long DynamoDB knows a token.
const REMEMBERED: Duration = Duration::from_secs(10 * 60);
/// What a transaction asks for, as a digest.
pub(super) type Digest = u64;

/// The tokens of the last ten minutes.
#[derive(Default)]
pub(super) struct Tokens(Mutex<Known>);

#[derive(Default)]
pub(super) struct Known {
    /// Digest of the request by its token.
    requests: HashMap<Box<[u8]>, Digest>,
    /// The same tokens, oldest first.
    oldest: VecDeque<(Instant, Box<[u8]>)>,
}

impl Tokens {
    /// Held while a transaction is looked up, done and noted, so that two with one token are not both done.
    pub(super) fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Whether the transaction `request` was done under `token` before.
    ///
    /// # Errors
    /// When another one was.
    pub(super) fn was_done(
        &mut self,
        token: &str,
        request: Digest,
        now: Instant,
    ) -> Result<bool, DynoxideError> {
        while let Some((at, _)) = self.oldest.front()
            && now.saturating_duration_since(*at) >= REMEMBERED
        {
            if let Some((_, token)) = self.oldest.pop_front() {
                self.requests.remove(&token);
            }
        }
        match self.requests.get(&*short(token)) {
            None => Ok(false),
            Some(known) if *known == request => Ok(true),
            Some(_) => Err(DynoxideError::IdempotentParameterMismatchException(
                "An error occurred (IdempotentParameterMismatchException)".to_owned(),
            )),
        }
    }

    /// Notes that a transaction was done.
    pub(super) fn note(&mut self, token: &str, request: Digest, now: Instant) {
        let token = short(token);
        if self.requests.insert(token.clone(), request).is_none() {
            self.oldest.push_back((now, token));
        }
    }
}

/// A token in few bytes: SDKs give UUIDs. Text of 16 bytes is a token of its own, so that one is kept with its length.
fn short(token: &str) -> Box<[u8]> {
    match uuid::Uuid::try_parse(token) {
        Ok(id) if id.hyphenated().to_string() == token => Box::from(*id.as_bytes()),
        _ => [token.as_bytes(), &[0]].concat().into_boxed_slice(),
    }
}

/// The digest of a transaction that a request asks for.
///
/// # Errors
/// When it is not JSON.
pub(super) fn digest(request: &[u8]) -> serde_json::Result<Digest> {
    #[derive(serde::Deserialize)]
    struct Asked {
        #[serde(rename = "TransactItems", default)]
        items: Content,
    }
    serde_json::from_slice::<Asked>(request).map(|asked| asked.items.0)
}

/// A digest of a JSON value that does not depend on the order of the fields of its objects, made while it is read: the
/// values of a transaction are needed once only, by the database.
#[derive(Default)]
struct Content(Digest);

impl Content {
    fn of(kind: u8, value: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        (kind, value).hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Content;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Content, A::Error> {
        let mut all: Digest = 0;
        while let Some((name, value)) = fields.next_entry::<String, Content>()? {
            all = all.wrapping_add(Content::of(6, (name, value.0)).0);
        }
        Ok(Content::of(0, all))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content, A::Error> {
        let mut hasher = DefaultHasher::new();
        let mut count = 0_usize;
        while let Some(item) = items.next_element::<Content>()? {
            item.0.hash(&mut hasher);
            count += 1;
        }
        Ok(Content::of(1, (count, hasher.finish())))
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::of(2, text))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Content, E> {
        Ok(Content::of(3, number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Content, E> {
        Ok(Content::of(3, number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Content, E> {
        Ok(Content::of(3, number.to_string()))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Content, E> {
        Ok(Content::of(4, flag))
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::of(5, ()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(items: &str) -> Digest {
        let request = format!(r#"{{"ClientRequestToken": "t", "TransactItems": {items}}}"#);
        digest(request.as_bytes()).expect("JSON")
    }

    #[test]
    fn a_token_is_known_for_ten_minutes_and_for_one_request_only() {
        let (mut known, now) = (Known::default(), Instant::now());
        let (first, other) = (of("[1]"), of("[2]"));
        for token in ["6ba7b810-9dad-41d1-80b4-00c04fd430c8", "mine", ""] {
            assert!(!known.was_done(token, first, now).unwrap());
            known.note(token, first, now);
        }
        let later = now + REMEMBERED - Duration::from_millis(1);
        assert!(known.was_done("mine", first, later).unwrap());
        assert!(known.was_done("mine", other, later).is_err());
        assert!(!known.was_done("minex", first, later).unwrap());
        // A second answer to the same does not make it younger.
        known.note("mine", first, later);
        let end = now + REMEMBERED;
        for token in ["6ba7b810-9dad-41d1-80b4-00c04fd430c8", "mine", ""] {
            assert!(!known.was_done(token, other, end).unwrap());
        }
        assert_eq!((known.requests.len(), known.oldest.len()), (0, 0));
    }

    #[test]
    fn tokens_of_the_same_bytes_differ() {
        let id = "61616161-6161-6161-6161-616161616161";
        let texts = [
            id,
            &id.to_uppercase(),
            "aaaaaaaaaaaaaaaa",
            "6161616161616161",
        ];
        let short: std::collections::HashSet<_> = texts.iter().map(|text| short(text)).collect();
        // Without letters it has no other case.
        assert_eq!(short.len(), 3);
    }

    #[test]
    fn the_order_of_fields_is_nothing_and_that_of_items_something() {
        assert_eq!(
            of(r#"{"a": 1, "b": [true]}"#),
            of(r#"{"b": [true], "\u0061": 1}"#)
        );
        let others = [
            r#"{"a": 1, "b": [true, null]}"#,
            r#"{"a": [true], "b": 1}"#,
            r#"{"a": 1, "b": "true"}"#,
            r#"{"a": 1, "b": true}"#,
            r#"{"a": "1", "b": [true]}"#,
            "[]",
            "{}",
            "null",
            "\"\"",
        ];
        let mut seen = std::collections::HashSet::from([of(r#"{"a": 1, "b": [true]}"#)]);
        for other in others {
            assert!(seen.insert(of(other)), "{other}");
        }
        assert_ne!(of("[1, 2]"), of("[2, 1]"));
    }
}
