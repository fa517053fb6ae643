//! The embedded S3: s3s over a folder.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use axum::Router;
use axum::error_handling::HandleError;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;

use super::keys::{Files, stored};
use super::{ACCESS_KEY, OpenError, SECRET_KEY};

/// Opens the folder, makes the bucket if it is missing and serves it.
pub(super) fn open(folder: &Path, bucket: &str) -> Result<Router, OpenError> {
    let path = folder.join(bucket);
    std::fs::create_dir_all(&path).map_err(|source| OpenError::Io { path, source })?;
    let files = FileSystem::new(folder).map_err(|error| OpenError::Objects {
        path: folder.to_path_buf(),
        reason: format!("{error:?}"),
    })?;
    let mut service = S3ServiceBuilder::new(Files(files));
    service.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
    let service = HandleError::new(service.build(), |error: s3s::HttpError| async move {
        (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:?}"))
    });
    let sync = from_fn_with_state(folder.to_path_buf(), synced);
    let objects = from_fn_with_state(folder.to_path_buf(), only_objects);
    Ok(Router::new()
        .fallback_service(service)
        .layer(sync)
        .layer(objects))
}

/// S3 has no folders: a key that other keys begin with is not there. s3s-fs finds a folder and breaks.
async fn only_objects(State(folder): State<PathBuf>, request: Request, next: Next) -> Response {
    let uri = request.uri();
    let reads = [Method::GET, Method::HEAD].contains(request.method());
    let bucket_and_key = uri.path().trim_matches('/').contains('/');
    let is_folder =
        reads && bucket_and_key && plain(&folder, uri.path()).is_some_and(|path| path.is_dir());
    if !is_folder {
        return next.run(request).await;
    }
    let xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>";
    (StatusCode::NOT_FOUND, xml).into_response()
}

/// s3s-fs renames an object into place and leaves it to the operating system when that reaches the disk;
/// an item that names the object may be there first. So an answer waits for the disk.
async fn synced(State(folder): State<PathBuf>, request: Request, next: Next) -> Response {
    let object = (request.method() == Method::PUT).then(|| request.uri().path().to_owned());
    let response = next.run(request).await;
    let object = object.filter(|_| response.status().is_success());
    let Some(file) = object.and_then(|path| inside(&folder, &path)) else {
        return response;
    };
    match tokio::task::spawn_blocking(move || sync(&file)).await {
        Ok(Ok(())) => response,
        _ => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// The file of an object; `None` for names that are not plain, which Slipway does not use.
fn inside(folder: &Path, path: &str) -> Option<PathBuf> {
    plain(folder, path).filter(|file| file.is_file())
}

/// Where the object of a path would be; `None` for names that are not plain.
fn plain(folder: &Path, path: &str) -> Option<PathBuf> {
    let path = path.strip_prefix('/')?;
    let path = match path.split_once('/') {
        Some((bucket, key)) => format!("{bucket}/{}", stored(key)),
        None => path.to_owned(),
    };
    let path = Path::new(&path);
    let mut parts = path.components();
    parts
        .all(|part| matches!(part, Component::Normal(_)))
        .then(|| folder.join(path))
}

fn sync(file: &Path) -> io::Result<()> {
    File::open(file)?.sync_all()?;
    match file.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
