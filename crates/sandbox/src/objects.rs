//! Where the objects of S3 are that the account's services read: S3 itself is not part of the sandbox.

use std::fmt;

use bytes::Bytes;
use futures::future::BoxFuture;

/// Reads objects for the account. Without one there is no bucket.
pub trait Objects: Send + Sync {
    /// The object at `key`, or the given version of it.
    fn read(
        &self,
        bucket: String,
        key: String,
        version: Option<String>,
    ) -> BoxFuture<'static, Result<Object, ObjectError>>;
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its content.
    pub bytes: Bytes,
    /// Its version, in a bucket that keeps versions.
    pub version: Option<String>,
}

/// Why an object cannot be read, as S3 says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectError {
    /// S3's code: `NoSuchBucket`, `NoSuchKey`, `AccessDenied`.
    pub code: String,
    /// S3's message.
    pub message: String,
}

impl ObjectError {
    /// The answer where there is no bucket.
    pub(crate) fn no_bucket() -> Self {
        Self {
            code: "NoSuchBucket".to_owned(),
            message: "The specified bucket does not exist".to_owned(),
        }
    }
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "S3 Error Code: {}. S3 Error Message: {}",
            self.code, self.message
        )
    }
}
