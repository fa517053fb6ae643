//! Secrets in the hands of a step: filled in at the last moment, never shown.

use async_trait::async_trait;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use slipway_expr::secret::{Piece, SecretText};
use slipway_model::id::Scope;
use slipway_model::status::{ErrorType, Failure};
use slipway_model::{Kind, entity};
use slipway_store::{SecretStore, Store, StoreError};

use crate::context::told;

/// Values shorter than this are not masked: masking them would corrupt the log and hide nothing.
const SHORTEST_MASKED: usize = 4;

/// What stands in a log where a secret was.
const MASK: &str = "**************";

/// Where values of secrets come from.
#[async_trait]
pub trait SecretSource: Send + Sync {
    /// The value of the secret that `reference` (`account.x`, `org.x`, `x`) names in `scope`.
    /// Fails with the reference and the reason, never with a value.
    async fn value(&self, scope: &Scope, reference: &str) -> Result<SecretString, Failure>;

    /// The spec of a secret that is made of others, as `SSHKey` is: names of secrets, and nothing secret itself.
    /// Fails where there is none, or where definitions of secrets are not read.
    async fn described(&self, _scope: &Scope, reference: &str) -> Result<Value, Failure> {
        Err(Failure {
            error: ErrorType::Authentication,
            message: format!(
                "Cannot read secret {reference}: definitions of secrets are not read here"
            ),
            left_behind: None,
        })
    }
}

/// Secrets of users: their values, and their definitions beside those of all entities.
pub struct KeptSecrets {
    values: SecretStore,
    entities: Store,
}

impl KeptSecrets {
    /// The values in one place, the definitions in the other.
    pub fn new(values: SecretStore, entities: Store) -> Self {
        Self { values, entities }
    }
}

#[async_trait]
impl SecretSource for KeptSecrets {
    async fn value(&self, scope: &Scope, reference: &str) -> Result<SecretString, Failure> {
        SecretSource::value(&self.values, scope, reference).await
    }

    async fn described(&self, scope: &Scope, reference: &str) -> Result<Value, Failure> {
        let (owner, id) = scope.resolve(reference);
        let refused = |message: String| Failure {
            error: ErrorType::Authentication,
            message,
            left_behind: None,
        };
        let kind = Kind::Secret.key();
        let found = self.entities.find_entity(&owner, kind, None, &id).await;
        let found = found.map_err(|error| told(&format!("read secret {reference}"), &error))?;
        let Some(record) = found else {
            let message =
                format!("Cannot read secret {reference}: there is none: create it, and run again");
            return Err(refused(message));
        };
        let parsed = entity::parse(&format!("secret {reference}"), &record.yaml);
        let parsed = parsed.map_err(|_| {
            refused(format!(
                "Cannot read secret {reference}: its definition is broken: save it again"
            ))
        })?;
        let spec = parsed.body().get("spec").map(|spec| spec.to_json());
        Ok(spec.unwrap_or_default())
    }
}

/// Secrets of users, where the API put them.
#[async_trait]
impl SecretSource for SecretStore {
    async fn value(&self, scope: &Scope, reference: &str) -> Result<SecretString, Failure> {
        let (scope, id) = scope.resolve(reference);
        self.get(&scope, &id).await.map_err(|error| {
            let advice = match &error {
                StoreError::NotFound { .. } => ": create it, or give it a value, and run again.",
                _ => "",
            };
            // Not to be allowed to read one looks the same as an outage: the step fails and says so.
            let mut failure = told(&format!("read secret {reference}"), &error);
            failure.message.push_str(advice);
            failure
        })
    }
}

/// The secrets of one step: what was filled in is masked in its log from then on.
pub struct Secrets<'a> {
    source: &'a dyn SecretSource,
    scope: &'a Scope,
    masked: Vec<String>,
}

impl<'a> Secrets<'a> {
    /// Secrets as references in `scope` see them.
    pub fn new(source: &'a dyn SecretSource, scope: &'a Scope) -> Self {
        Self {
            source,
            scope,
            masked: Vec::new(),
        }
    }

    /// The value of one secret, named in the scope of the run.
    pub async fn value(&mut self, reference: &str) -> Result<SecretString, Failure> {
        self.value_in(&self.scope.clone(), reference).await
    }

    /// The value of one secret, named in another scope (that of a connector, for instance).
    pub async fn value_in(
        &mut self,
        scope: &Scope,
        reference: &str,
    ) -> Result<SecretString, Failure> {
        let value = self.source.value(scope, reference).await?;
        self.remember(value.expose_secret());
        Ok(value)
    }

    /// What a secret is made of that is named in another scope; see [`SecretSource::described`].
    pub async fn described_in(&self, scope: &Scope, reference: &str) -> Result<Value, Failure> {
        self.source.described(scope, reference).await
    }

    /// `text` with its secrets filled in.
    pub async fn reveal_text(&mut self, text: &str) -> Result<SecretString, Failure> {
        let mut out = String::with_capacity(text.len());
        for piece in SecretText::decode(text).pieces() {
            match piece {
                Piece::Plain(plain) => out.push_str(plain),
                Piece::Secret(reference) => {
                    out.push_str(self.value(reference.as_str()).await?.expose_secret());
                }
            }
        }
        Ok(SecretString::from(out))
    }

    /// `value` with the secrets in all its texts filled in. The result goes to where it is meant for and
    /// nowhere else: not to progress, outputs or logs.
    pub async fn reveal(&mut self, mut value: Value) -> Result<Value, Failure> {
        let mut open: Vec<&mut Value> = vec![&mut value];
        while let Some(next) = open.pop() {
            match next {
                Value::String(text) => {
                    *text = self.reveal_text(text).await?.expose_secret().to_owned();
                }
                Value::Array(items) => open.extend(items.iter_mut()),
                Value::Object(fields) => open.extend(fields.values_mut()),
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        Ok(value)
    }

    /// `text` without the secrets that were filled in so far.
    pub fn mask(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for value in &self.masked {
            if text.contains(value.as_str()) {
                text = text.replace(value.as_str(), MASK);
            }
        }
        text
    }

    /// Masks `value` from now on: what a secret was made into (the header of a login, for instance).
    pub fn hide(&mut self, value: &str) {
        self.remember(value);
    }

    fn remember(&mut self, value: &str) {
        let base64 = aws_smithy_types::base64::encode(value);
        let forms = [value, value.trim_end(), base64.trim_end_matches('=')];
        let lines = value.lines().filter(|_| value.contains('\n'));
        for form in forms.into_iter().chain(lines) {
            if form.len() >= SHORTEST_MASKED && !self.masked.iter().any(|known| known == form) {
                self.masked.push(form.to_owned());
            }
        }
        // The longest first, so that a secret that holds another is masked whole.
        self.masked
            .sort_by_key(|known| std::cmp::Reverse(known.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slipway_model::id::AccountId;

    struct Fixed;

    #[async_trait]
    impl SecretSource for Fixed {
        async fn value(&self, _scope: &Scope, reference: &str) -> Result<SecretString, Failure> {
            Ok(SecretString::from(format!("value of {reference}")))
        }
    }

    #[tokio::test]
    async fn what_was_filled_in_is_masked_in_every_form() {
        let scope = Scope::account(AccountId::new("acme"));
        let mut secrets = Secrets::new(&Fixed, &scope);
        let mut text = SecretText::plain("login ");
        text.push(&SecretText::secret(
            slipway_expr::secret::SecretRef::new("account.token").expect("a reference"),
        ));
        let document = serde_json::json!({"list": [{"env": text.encode()}], "n": 1});

        assert_eq!(
            secrets.mask("value of account.token"),
            "value of account.token"
        );
        let revealed = secrets.reveal(document).await.expect("known secrets");

        assert_eq!(revealed["list"][0]["env"], "login value of account.token");
        assert_eq!(secrets.mask("<value of account.token>"), "<**************>");
        let base64 = aws_smithy_types::base64::encode("value of account.token");
        assert!(!secrets.mask(&base64).contains("dmFsdWUg"));
    }
}
