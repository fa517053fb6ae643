//! API tokens, found by the hash of their text.

use crate::Store;
use crate::error::StoreError;
use crate::item::{Row, json, read_json, row};
use crate::key;
use crate::record::TokenRecord;

impl Store {
    /// Stores what the token with this hash opens.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn put_token(&self, hash: &str, token: &TokenRecord) -> Result<(), StoreError> {
        let key = key::token(hash);
        let item = row(&key).with("body", json("a token", token)?);
        self.put(&key, item, None).await
    }

    /// What the token with this hash opens, if there is one.
    ///
    /// # Errors
    /// Only when it cannot be read.
    pub async fn get_token(&self, hash: &str) -> Result<Option<TokenRecord>, StoreError> {
        match self.get(&key::token(hash)).await? {
            Some(item) => read_json("a token", &item, "body"),
            None => Ok(None),
        }
    }

    /// Deletes a token; from then on it opens nothing.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn delete_token(&self, hash: &str) -> Result<(), StoreError> {
        self.delete(&key::token(hash), None).await.map(drop)
    }
}
