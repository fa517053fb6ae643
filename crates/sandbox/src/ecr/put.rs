//! Images that are pushed: a manifest, and a tag for it.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::image::{self, Image};
use super::name::{invalid, is_tag};
use super::repository;
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;

/// Largest manifest, bytes.
const LARGEST: usize = 4_194_304;

/// Kind of a manifest that names none.
const DOCKER: &str = "application/vnd.docker.distribution.manifest.v2+json";

pub(super) fn put(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let repository = repository::find(account, caller, request)?.clone();
    let manifest = request.required_text("imageManifest")?;
    if manifest.len() > LARGEST {
        let rule = format!("Member must have length less than or equal to {LARGEST}");
        return Err(invalid("imageManifest", &rule));
    }
    let Ok(Value::Object(document)) = serde_json::from_str(manifest) else {
        return Err(invalid("ImageManifest", "Invalid JSON syntax"));
    };
    let media_type = match request.text("imageManifestMediaType")? {
        Some(given) => given,
        None => document
            .get("mediaType")
            .and_then(Value::as_str)
            .unwrap_or(DOCKER),
    };
    let tag = request.text("imageTag")?;
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return Err(invalid(
            "imageTag",
            "must satisfy regular expression '[a-zA-Z0-9_][a-zA-Z0-9-._]{0,127}'",
        ));
    }
    let digest = format!("sha256:{}", hex(&Sha256::digest(manifest)));
    if let Some(given) = request
        .text("imageDigest")?
        .filter(|given| *given != digest)
    {
        let message = format!(
            "The calculated digest '{digest}' does not match the provided digest '{given}'"
        );
        return Err(ApiError::client(
            "ImageDigestDoesNotMatchException",
            message,
        ));
    }
    let place = repository::key(&repository.region, &repository.name);
    let held = tag.and_then(|tag| image::by_tag(account, &place, tag));
    let held = held.map(|image| image.digest.clone());
    let name = &repository.name;
    match (&held, tag) {
        (Some(held), Some(tag)) if *held == digest => {
            let message = format!(
                "Image with digest '{digest}' and tag '{tag}' already exists in the repository with name '{name}' in \
                 registry with id '{}'",
                account.id
            );
            return Err(ApiError::client("ImageAlreadyExistsException", message));
        }
        (Some(_), Some(tag)) if repository.immutable => {
            let message = format!(
                "The image tag '{tag}' already exists in the '{name}' repository and cannot be overwritten because \
                 the repository is immutable."
            );
            return Err(ApiError::client("ImageTagAlreadyExistsException", message));
        }
        _ => {}
    }
    if let (Some(held), Some(tag)) = (held, tag)
        && let Some(row) = account.ecr.images.get_mut(&image::key(&place, &held))
    {
        row.tags.remove(tag);
    }
    let key = image::key(&place, &digest);
    let mut image = account.ecr.images.take(&key).unwrap_or_else(|| Image {
        digest: digest.clone(),
        manifest: manifest.to_owned(),
        media_type: media_type.to_owned(),
        tags: Default::default(),
        pushed: account.now,
    });
    image.tags.extend(tag.map(str::to_owned));
    let view = image.view(&account.id, name, tag);
    account.ecr.images.put(key, image);
    Ok(json!({"image": view}))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
