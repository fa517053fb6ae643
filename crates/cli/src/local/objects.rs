//! The embedded S3, as the sandbox account reads it: a function's package is put where `aws s3 cp` puts it.

use aws_sdk_s3::Client;
use aws_sdk_s3::error::ProvideErrorMetadata;
use futures::FutureExt;
use futures::future::BoxFuture;
use slipway_sandbox::{Object, ObjectError, Objects};

/// Reads objects of an S3, but none of one bucket.
pub struct EmbeddedObjects {
    /// Talks to it.
    pub client: Client,
    /// Holds Slipway's own plans and logs, which are nobody's code.
    pub own_bucket: String,
}

impl Objects for EmbeddedObjects {
    fn read(
        &self,
        bucket: String,
        key: String,
        version: Option<String>,
    ) -> BoxFuture<'static, Result<Object, ObjectError>> {
        let own = bucket == self.own_bucket;
        let call = self.client.get_object().bucket(bucket).key(key);
        let call = call.set_version_id(version);
        async move {
            if own {
                return Err(ObjectError {
                    code: "AccessDenied".to_owned(),
                    message: "Access Denied".to_owned(),
                });
            }
            let found = call.send().await.map_err(|error| refused(&error))?;
            let version = found.version_id().map(str::to_owned);
            let read = found.body.collect().await;
            let bytes = read.map_err(|error| ObjectError {
                code: "InternalError".to_owned(),
                message: error.to_string(),
            })?;
            Ok(Object {
                bytes: bytes.into_bytes(),
                version,
            })
        }
        .boxed()
    }
}

fn refused(error: &impl ProvideErrorMetadata) -> ObjectError {
    ObjectError {
        code: error.code().unwrap_or("InternalError").to_owned(),
        message: error
            .message()
            .unwrap_or("The object cannot be read.")
            .to_owned(),
    }
}
