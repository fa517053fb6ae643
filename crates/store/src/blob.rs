//! Large values: compressed, found by the digest of what they hold, in DynamoDB when small and in S3
//! when not.

use std::cell::RefCell;
use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_s3::primitives::ByteStream;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use slipway_plan::Plan;
use zstd::bulk::{Compressor, Decompressor};

use crate::Store;
use crate::dynamo::place;
use crate::error::{StoreError, refused};
use crate::item::{Expression, Item, Row, bytes, number, read_bytes, row, text};
use crate::key;

/// Compressed blobs above this go to S3: an item takes 400 KB with its keys.
const LARGEST_ITEM_BLOB: usize = 100 * 1024;
/// Attributes above this, compressed, become blobs: a node has six of them in one item.
const LARGEST_ATTRIBUTE: usize = 48 * 1024;
/// JSON shorter than this stays readable text.
const LONGEST_TEXT: usize = 4 * 1024;
/// Largest value before compression. Bounds memory, also against a damaged or hostile item.
pub(crate) const LARGEST_VALUE: usize = 64 * 1024 * 1024;
/// How long it is taken for granted that a blob is still there: short of any time after which unused ones are removed.
const REMEMBERED_MS: i64 = 60 * 60 * 1000;
/// zstd's default: beyond it time grows faster than size shrinks.
const LEVEL: i32 = 3;

/// The attribute of a map that names a blob.
const BLOB: &str = "blob";

impl Store {
    /// Stores `content` under its digest and answers with that. Storing the same twice is storing it
    /// once.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] above 64 MiB.
    pub async fn put_blob(&self, content: &[u8]) -> Result<String, StoreError> {
        let digest = digest(content);
        if content.len() > LARGEST_VALUE {
            let what = format!("blob {digest}");
            return Err(StoreError::TooLarge {
                what,
                size: content.len(),
                limit: LARGEST_VALUE,
            });
        }
        if self.is_stored(&digest) {
            return Ok(digest);
        }
        let packed = pack("blob", content)?;
        let key = key::blob(&digest);
        let item = row(&key).with("size", number(content.len()));
        let item = if packed.len() <= LARGEST_ITEM_BLOB {
            item.with("zstd", bytes(packed))
        } else {
            let object = format!("blobs/{digest}");
            self.put_object(&object, packed).await?;
            item.with("object", text(object))
        };
        match self.put(&key, item, Some(Expression::absent())).await {
            // The digest is the same, so the content is.
            Ok(()) | Err(StoreError::Conflict { .. }) => {
                self.inner.stored.put(&digest, self.now_ms());
                Ok(digest)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether this process has stored it not long ago.
    fn is_stored(&self, digest: &str) -> bool {
        let at = self.inner.stored.get(digest);
        at.is_some_and(|at| (0..REMEMBERED_MS).contains(&self.now_ms().saturating_sub(at)))
    }

    /// What was stored under `digest`.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when nothing was, [`StoreError::Unreadable`] when it is not what the
    /// digest says.
    pub async fn get_blob(&self, digest: &str) -> Result<Vec<u8>, StoreError> {
        let key = key::blob(digest);
        let what = format!("blob {digest}");
        let Some(item) = self.get(&key).await? else {
            return Err(StoreError::NotFound { what });
        };
        let content = match read_bytes(&item, "zstd") {
            Some(packed) => unpack(&what, packed)?,
            None => {
                let object = crate::item::read_text(&item, "object").unwrap_or_default();
                unpack(&what, &self.get_object(object).await?)?
            }
        };
        if self::digest(&content) != digest {
            return Err(StoreError::unreadable(
                what,
                "its content does not match its digest",
            ));
        }
        Ok(content)
    }

    /// Stores a plan and answers with its digest.
    ///
    /// # Errors
    /// Those of [`Store::put_blob`].
    pub async fn put_plan(&self, plan: &Plan) -> Result<String, StoreError> {
        let json = serde_json::to_vec(plan).map_err(|e| StoreError::unreadable("a plan", e))?;
        let digest = self.put_blob(&json).await?;
        if self.inner.plans.get(&digest).is_none() {
            self.inner.plans.put(&digest, Arc::new(plan.clone()));
        }
        Ok(digest)
    }

    /// The plan under `digest`; the newest few are kept in memory.
    ///
    /// # Errors
    /// Those of [`Store::get_blob`].
    pub async fn get_plan(&self, digest: &str) -> Result<Arc<Plan>, StoreError> {
        if let Some(plan) = self.inner.plans.get(digest) {
            return Ok(plan);
        }
        let json = self.get_blob(digest).await?;
        let plan = serde_json::from_slice(&json)
            .map_err(|error| StoreError::unreadable(format!("plan {digest}"), error))?;
        let plan = Arc::new(plan);
        self.inner.plans.put(digest, Arc::clone(&plan));
        Ok(plan)
    }

    /// `value` as an attribute: text when short, compressed when longer, a blob when large.
    pub(crate) async fn store_value<T: Serialize + ?Sized>(
        &self,
        what: &str,
        value: &T,
    ) -> Result<AttributeValue, StoreError> {
        let json = serde_json::to_string(value).map_err(|e| StoreError::unreadable(what, e))?;
        if json.len() <= LONGEST_TEXT {
            return Ok(text(json));
        }
        let packed = pack(what, json.as_bytes())?;
        if packed.len() <= LARGEST_ATTRIBUTE {
            return Ok(bytes(packed));
        }
        let digest = self.put_blob(json.as_bytes()).await?;
        Ok(AttributeValue::M(Item::from([(
            BLOB.to_owned(),
            text(digest),
        )])))
    }

    /// Reads what [`Store::store_value`] wrote; `None` when the attribute is not there.
    pub(crate) async fn load_value<T: DeserializeOwned>(
        &self,
        item: &Item,
        name: &str,
    ) -> Result<Option<T>, StoreError> {
        let Some(attribute) = item.get(name) else {
            return Ok(None);
        };
        let what = || format!("{name} of {}", place(item));
        let read = |json: &[u8]| {
            serde_json::from_slice(json)
                .map(Some)
                .map_err(|e| StoreError::unreadable(what(), e))
        };
        match attribute {
            AttributeValue::S(json) => read(json.as_bytes()),
            AttributeValue::B(packed) => read(&unpack(&what(), packed.as_ref())?),
            AttributeValue::M(map) => {
                let digest = crate::item::read_text(map, BLOB).unwrap_or_default();
                read(&self.get_blob(digest).await?)
            }
            _ => Err(StoreError::unreadable(
                what(),
                "it is neither text, bytes nor a blob",
            )),
        }
    }

    pub(crate) async fn put_object(&self, name: &str, body: Vec<u8>) -> Result<(), StoreError> {
        self.count_write();
        let call = self
            .inner
            .s3
            .put_object()
            .bucket(&self.inner.layout.bucket)
            .key(name);
        let answer = call.body(ByteStream::from(body)).send().await;
        answer
            .map(drop)
            .map_err(|error| refused("write an object", name, error))
    }

    pub(crate) async fn get_object(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        self.count_read();
        let call = self
            .inner
            .s3
            .get_object()
            .bucket(&self.inner.layout.bucket)
            .key(name);
        let answer = call
            .send()
            .await
            .map_err(|error| refused("read an object", name, error))?;
        let size = usize::try_from(answer.content_length().unwrap_or(0)).unwrap_or(usize::MAX);
        if size > LARGEST_VALUE {
            let what = format!("object {name}");
            return Err(StoreError::TooLarge {
                what,
                size,
                limit: LARGEST_VALUE,
            });
        }
        let body = answer.body.collect().await;
        let unavailable = |error| StoreError::Unavailable {
            operation: "read an object",
            source: error,
        };
        Ok(body.map_err(|error| unavailable(error.into()))?.to_vec())
    }
}

pub(crate) fn digest(content: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(content)
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

thread_local! {
    /// Kept, because making one takes as long as a usual value does.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = RefCell::new(Compressor::new(LEVEL).ok());
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = RefCell::new(Decompressor::new().ok());
}

pub(crate) fn pack(what: &str, content: &[u8]) -> Result<Vec<u8>, StoreError> {
    let packed = COMPRESSOR.with_borrow_mut(|compressor| match compressor {
        Some(compressor) => compressor.compress(content),
        None => zstd::bulk::compress(content, LEVEL),
    });
    packed.map_err(|error| StoreError::unreadable(what, error))
}

pub(crate) fn unpack(what: &str, packed: &[u8]) -> Result<Vec<u8>, StoreError> {
    let size = Decompressor::upper_bound(packed)
        .ok_or_else(|| StoreError::unreadable(what, "it is not what zstd makes"))?;
    if size > LARGEST_VALUE {
        return Err(StoreError::unreadable(
            what,
            "it unpacks to more than any value may have",
        ));
    }
    let content = DECOMPRESSOR.with_borrow_mut(|decompressor| match decompressor {
        Some(decompressor) => decompressor.decompress(packed, size),
        None => zstd::bulk::decompress(packed, size),
    });
    content.map_err(|error| StoreError::unreadable(what, error))
}
