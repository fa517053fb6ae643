//! The embedded S3: s3s over a folder.

use std::path::Path;

use axum::Router;
use axum::error_handling::HandleError;
use axum::http::StatusCode;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;

use super::{ACCESS_KEY, OpenError, SECRET_KEY};

/// Opens the folder, makes the bucket if it is missing and serves it.
pub(super) fn open(folder: &Path, bucket: &str) -> Result<Router, OpenError> {
    let path = folder.join(bucket);
    std::fs::create_dir_all(&path).map_err(|source| OpenError::Io { path, source })?;
    let files = FileSystem::new(folder).map_err(|error| OpenError::Objects {
        path: folder.to_path_buf(),
        reason: format!("{error:?}"),
    })?;
    let mut service = S3ServiceBuilder::new(files);
    service.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
    let service = HandleError::new(service.build(), |error: s3s::HttpError| async move {
        (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:?}"))
    });
    Ok(Router::new().fallback_service(service))
}
