//! What goes away: tags, images, repositories.

use serde_json::{Value, json};

use super::image::{self, Id};
use super::repository;
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;

pub(super) fn repository(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = repository::find(account, caller, request)?.name.clone();
    let place = repository::key(&caller.region, &name);
    let images: Vec<String> = image::all(account, &place)
        .map(|(key, _)| key.to_owned())
        .collect();
    if !images.is_empty() && request.flag("force")? != Some(true) {
        let message = format!(
            "The repository with name '{name}' in registry with id '{}' cannot be deleted because it still contains \
             images",
            account.id
        );
        return Err(ApiError::client("RepositoryNotEmptyException", message));
    }
    for key in images {
        account.ecr.images.take(&key);
    }
    account.ecr.repositories.take(&place);
    Ok(json!({"repository": {"registryId": account.id, "repositoryName": name}}))
}

/// A tag goes without its image; an image goes with all its tags, or with its last one.
pub(super) fn images(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = repository::find(account, caller, request)?.name.clone();
    let place = repository::key(&caller.region, &name);
    let (mut gone, mut failures) = (Vec::new(), Vec::new());
    for id in Id::read(request)? {
        let Some(found) = id.find(account, &place).cloned() else {
            failures.push(id.not_found());
            continue;
        };
        let key = image::key(&place, &found.digest);
        let Some(tag) = id
            .tag
            .filter(|_| found.tags.len() > 1 && id.digest.is_none())
        else {
            account.ecr.images.take(&key);
            let tags = found.tags.iter();
            gone.extend(tags.map(|tag| json!({"imageDigest": found.digest, "imageTag": tag})));
            if found.tags.is_empty() {
                gone.push(json!({"imageDigest": found.digest}));
            }
            continue;
        };
        if let Some(row) = account.ecr.images.get_mut(&key) {
            row.tags.remove(tag);
        }
        gone.push(json!({"imageDigest": found.digest, "imageTag": tag}));
    }
    Ok(json!({"imageIds": gone, "failures": failures}))
}
