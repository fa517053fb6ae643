//! Transactions that were done, by the token that the caller gave them: the same again is answered and not done again.
//!
//! DynamoDB remembers a `ClientRequestToken` for ten minutes, and an SDK gives one to every transaction. dynoxide would
//! do this itself, but it looks at all that it remembers at every transaction: with 50,000 of them in ten minutes that is
//! more work than the transactions.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dynoxide::DynoxideError;
use serde_json::Value;

/// How long DynamoDB knows a token.
const REMEMBERED: Duration = Duration::from_secs(10 * 60);
/// A transaction and what it is known by, as digests.
type Digest = u64;

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

/// A digest of a request's content that does not depend on the order of the fields of its objects.
pub(super) fn digest(request: &Value) -> Digest {
    let mut hasher = DefaultHasher::new();
    match request {
        Value::Object(fields) => {
            let fields = fields.iter().map(|field| {
                let mut hasher = DefaultHasher::new();
                (field.0, digest(field.1)).hash(&mut hasher);
                hasher.finish()
            });
            (0u8, fields.fold(0, Digest::wrapping_add)).hash(&mut hasher);
        }
        Value::Array(items) => {
            (1u8, items.len()).hash(&mut hasher);
            items.iter().for_each(|item| digest(item).hash(&mut hasher));
        }
        Value::String(text) => (2u8, text).hash(&mut hasher),
        other => (3u8, other.to_string()).hash(&mut hasher),
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_is_known_for_ten_minutes_and_for_one_request_only() {
        let (mut known, now) = (Known::default(), Instant::now());
        let (first, other) = (digest(&json!([1])), digest(&json!([2])));
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
        let of = |text: &str| digest(&serde_json::from_str(text).unwrap());
        assert_eq!(
            of(r#"{"a": 1, "b": [true]}"#),
            of(r#"{"b": [true], "a": 1}"#)
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
