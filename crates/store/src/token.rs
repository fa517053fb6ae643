//! API tokens, found by the hash of their text: the text itself is nowhere.

use sha2::{Digest as _, Sha256};

use crate::Store;
use crate::error::StoreError;
use crate::item::{Row, json, read_json, row};
use crate::key::{self, Key};
use crate::record::{PersonRecord, TokenRecord};

/// A token that opens something, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidToken {
    /// What it opens.
    pub token: TokenRecord,
    /// Who uses it; `None` where nothing was kept of them yet.
    pub person: Option<PersonRecord>,
}

impl Store {
    /// Stores what the token with this text opens.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn put_token(&self, token: &str, opens: &TokenRecord) -> Result<(), StoreError> {
        let key = key_of(token);
        let item = row(&key).with("body", json("a token", opens)?);
        self.put(&key, item, None).await
    }

    /// What the token with this text opens, if there is one, whether it is still valid or not.
    ///
    /// # Errors
    /// Only when it cannot be read.
    pub async fn get_token(&self, token: &str) -> Result<Option<TokenRecord>, StoreError> {
        match self.get(&key_of(token)).await? {
            Some(item) => read_json("a token", &item, "body"),
            None => Ok(None),
        }
    }

    /// What the token with this text opens at a time (epoch milliseconds), if it is valid: those of somebody who was
    /// removed are not.
    ///
    /// # Errors
    /// Only when it cannot be read.
    pub async fn valid_token(
        &self,
        token: &str,
        now_ms: i64,
    ) -> Result<Option<ValidToken>, StoreError> {
        let found = self.get_token(token).await?;
        let valid = found.filter(|found| {
            let expired = found.valid_to_ms != 0 && found.valid_to_ms <= now_ms;
            // The hash covers the account; a record under it that says otherwise is not trusted.
            let same_account = token.split('.').nth(1) == Some(found.account.as_str());
            !expired && same_account
        });
        let Some(token) = valid else {
            return Ok(None);
        };
        let person = self.find_person(&token.account, &token.principal).await?;
        let left = person
            .as_ref()
            .is_some_and(|person| person.removed.is_some());
        Ok((!left).then_some(ValidToken { token, person }))
    }

    /// Deletes a token; from then on it opens nothing.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn delete_token(&self, token: &str) -> Result<(), StoreError> {
        self.delete(&key_of(token), None).await.map(drop)
    }
}

fn key_of(token: &str) -> Key {
    let digest = Sha256::digest(token.as_bytes());
    let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    key::token(&hash)
}
