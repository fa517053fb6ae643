//! Values of secrets, in AWS Secrets Manager: nowhere else.

use aws_sdk_secretsmanager::Client;
use secrecy::{ExposeSecret, SecretString};
use slipway_model::id::{EntityId, Scope};

use crate::error::{StoreError, refused};
use crate::key;

/// Largest value that Secrets Manager takes, in bytes (its "Quotas" page).
const LARGEST_SECRET: usize = 65_536;

/// Secrets of users by scope and identifier. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SecretStore {
    client: Client,
    /// First part of every name, so that policies can name them.
    prefix: String,
}

impl SecretStore {
    /// Secrets whose names begin with `prefix` (`slipway` in `infra/app.yaml`).
    pub fn new(client: Client, prefix: impl Into<String>) -> Self {
        Self {
            client,
            prefix: prefix.into(),
        }
    }

    /// Stores a value; one that was there becomes the previous version.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] above 64 KiB.
    pub async fn put(
        &self,
        scope: &Scope,
        id: &EntityId,
        value: &SecretString,
    ) -> Result<(), StoreError> {
        let (name, what) = (self.name(scope, id), describe(id));
        let size = value.expose_secret().len();
        if size > LARGEST_SECRET {
            return Err(StoreError::TooLarge {
                what,
                size,
                limit: LARGEST_SECRET,
            });
        }
        let text = value.expose_secret();
        let put = self
            .client
            .put_secret_value()
            .secret_id(&name)
            .secret_string(text)
            .send()
            .await;
        let error = match put {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        if !error
            .as_service_error()
            .is_some_and(|e| e.is_resource_not_found_exception())
        {
            return Err(refused("write a secret", &what, error));
        }
        let created = self
            .client
            .create_secret()
            .name(&name)
            .secret_string(text)
            .send()
            .await;
        created
            .map(drop)
            .map_err(|error| refused("create a secret", &what, error))
    }

    /// A value.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is none.
    pub async fn get(&self, scope: &Scope, id: &EntityId) -> Result<SecretString, StoreError> {
        let what = describe(id);
        let got = self
            .client
            .get_secret_value()
            .secret_id(self.name(scope, id))
            .send()
            .await;
        match got {
            Ok(answer) => match answer.secret_string {
                Some(text) => Ok(SecretString::from(text)),
                None => Err(StoreError::unreadable(what, "it holds bytes and not text")),
            },
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(|e| e.is_resource_not_found_exception()) =>
            {
                Err(StoreError::NotFound { what })
            }
            Err(error) => Err(refused("read a secret", &what, error)),
        }
    }

    /// A value, and the one before it where it was changed not longer than `overlap_ms` before `now_ms`: both sides of a
    /// shared secret cannot change it at one moment.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is none.
    pub async fn recent(
        &self,
        scope: &Scope,
        id: &EntityId,
        overlap_ms: i64,
        now_ms: i64,
    ) -> Result<Vec<SecretString>, StoreError> {
        let what = describe(id);
        let get = || {
            let call = self.client.get_secret_value();
            call.secret_id(self.name(scope, id))
        };
        let current = get().send().await.map_err(|error| {
            let gone = error
                .as_service_error()
                .is_some_and(|e| e.is_resource_not_found_exception());
            match gone {
                true => StoreError::NotFound { what: what.clone() },
                false => refused("read a secret", &what, error),
            }
        })?;
        let changed_ms = current.created_date.and_then(|at| at.to_millis().ok());
        let mut values: Vec<SecretString> =
            current.secret_string.into_iter().map(Into::into).collect();
        if changed_ms.is_none_or(|at| now_ms.saturating_sub(at) > overlap_ms) {
            return Ok(values);
        }
        match get().version_stage("AWSPREVIOUS").send().await {
            Ok(before) => values.extend(before.secret_string.map(SecretString::from)),
            // It was never changed.
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(|e| e.is_resource_not_found_exception()) => {}
            Err(error) => return Err(refused("read a secret", &what, error)),
        }
        Ok(values)
    }

    /// Deletes a value for good; nothing happens when there is none.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn delete(&self, scope: &Scope, id: &EntityId) -> Result<(), StoreError> {
        let call = self.client.delete_secret().secret_id(self.name(scope, id));
        match call.force_delete_without_recovery(true).send().await {
            Ok(_) => Ok(()),
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(|e| e.is_resource_not_found_exception()) =>
            {
                Ok(())
            }
            Err(error) => Err(refused("delete a secret", &describe(id), error)),
        }
    }

    /// A secret of Slipway itself, which no reference of a user can name: a key, for instance. `None` when there is none.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn own(&self, name: &str) -> Result<Option<SecretString>, StoreError> {
        let got = self
            .client
            .get_secret_value()
            .secret_id(self.own_name(name));
        match got.send().await {
            Ok(answer) => Ok(answer.secret_string.map(SecretString::from)),
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(|e| e.is_resource_not_found_exception()) =>
            {
                Ok(None)
            }
            Err(error) => Err(refused("read a secret", name, error)),
        }
    }

    /// Makes a secret of Slipway itself.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] when somebody was faster.
    pub async fn create_own(&self, name: &str, value: &SecretString) -> Result<(), StoreError> {
        let create = self.client.create_secret().name(self.own_name(name));
        let created = create.secret_string(value.expose_secret()).send().await;
        match created {
            Ok(_) => Ok(()),
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(|e| e.is_resource_exists_exception()) =>
            {
                Err(StoreError::AlreadyExists {
                    what: name.to_owned(),
                })
            }
            Err(error) => Err(refused("create a secret", name, error)),
        }
    }

    /// Gives a secret of Slipway itself another value.
    ///
    /// # Errors
    /// When the service refuses, or there is no such secret.
    pub async fn replace_own(&self, name: &str, value: &SecretString) -> Result<(), StoreError> {
        let put = self
            .client
            .put_secret_value()
            .secret_id(self.own_name(name));
        let put = put.secret_string(value.expose_secret()).send().await;
        put.map(drop)
            .map_err(|error| refused("write a secret", name, error))
    }

    /// `prefix-own/name`: names of users' secrets begin with `prefix/`.
    fn own_name(&self, name: &str) -> String {
        format!("{}-own/{name}", self.prefix)
    }

    /// `prefix/account/org/project/id`: identifiers of Harness are letters, digits, `_` and `$`, of which
    /// Secrets Manager takes all but `$`, and no escape of [`key::part`] either.
    fn name(&self, scope: &Scope, id: &EntityId) -> String {
        let name = format!(
            "{}/{}/{}",
            self.prefix,
            key::scope(scope),
            key::part(id.as_str())
        );
        name.replace('%', "=").replace('$', "+")
    }
}

fn describe(id: &EntityId) -> String {
    format!("secret {id}")
}
