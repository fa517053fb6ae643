//! Repositories.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::name::{invalid, is_repository};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Fields, epoch};
use crate::page::{Paging, cut};

const PAGING: Paging = Paging {
    token: "nextToken",
    size: "maxResults",
    default: 100,
    most: 1000,
};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Repository {
    pub(super) region: String,
    pub(super) name: String,
    created: Timestamp,
    /// Whether a tag stays with its image.
    pub(super) immutable: bool,
}

/// Key of a repository.
pub(super) fn key(region: &str, name: &str) -> String {
    format!("{region}/{name}")
}

/// The repository that a request names.
pub(super) fn find<'a>(
    account: &'a Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<&'a Repository, ApiError> {
    let name = request.required_text("repositoryName")?;
    let registry = request.text("registryId")?.unwrap_or(&account.id);
    let found = account.ecr.repositories.get(&key(&caller.region, name));
    found
        .filter(|_| registry == account.id)
        .ok_or_else(|| missing(name, registry))
}

fn missing(name: &str, registry: &str) -> ApiError {
    let message = format!(
        "The repository with name '{name}' does not exist in the registry with id '{registry}'"
    );
    ApiError::client("RepositoryNotFoundException", message)
}

impl Repository {
    /// The address of its images.
    pub(super) fn uri(&self, account: &str) -> String {
        let suffix = if self.region.starts_with("cn-") {
            ".cn"
        } else {
            ""
        };
        let (region, name) = (&self.region, &self.name);
        format!("{account}.dkr.ecr.{region}.amazonaws.com{suffix}/{name}")
    }

    fn view(&self, account: &str) -> Value {
        let mutability = match self.immutable {
            true => "IMMUTABLE",
            false => "MUTABLE",
        };
        json!({
            "repositoryArn": format!("arn:aws:ecr:{}:{account}:repository/{}", self.region, self.name),
            "registryId": account,
            "repositoryName": self.name,
            "repositoryUri": self.uri(account),
            "createdAt": epoch(self.created),
            "imageTagMutability": mutability,
            "imageScanningConfiguration": {"scanOnPush": false},
            "encryptionConfiguration": {"encryptionType": "AES256"},
        })
    }
}

/// Whether a request wants tags to stay with their images.
fn immutable(request: Fields<'_>) -> Result<bool, ApiError> {
    match request.text("imageTagMutability")? {
        None | Some("MUTABLE") => Ok(false),
        Some("IMMUTABLE") => Ok(true),
        Some(_) => Err(invalid(
            "imageTagMutability",
            "Member must satisfy enum value set: [MUTABLE, IMMUTABLE]",
        )),
    }
}

pub(super) fn create(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = request.required_text("repositoryName")?;
    if !is_repository(name) {
        let rule = "must satisfy regular expression \
                    '(?:[a-z0-9]+(?:[._-][a-z0-9]+)*/)*[a-z0-9]+(?:[._-][a-z0-9]+)*'";
        return Err(invalid("repositoryName", rule));
    }
    let key = key(&caller.region, name);
    if account.ecr.repositories.get(&key).is_some() {
        let message = format!(
            "The repository with name '{name}' already exists in the registry with id '{}'",
            account.id
        );
        return Err(ApiError::client(
            "RepositoryAlreadyExistsException",
            message,
        ));
    }
    let repository = Repository {
        region: caller.region.clone(),
        name: name.to_owned(),
        created: account.now,
        immutable: immutable(request)?,
    };
    let view = repository.view(&account.id);
    account.ecr.repositories.put(key, repository);
    Ok(json!({"repository": view}))
}

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let registry = request.text("registryId")?.unwrap_or(&account.id);
    let prefix = key(&caller.region, "");
    let names = request.texts("repositoryNames")?;
    let tables = &account.ecr.repositories;
    if !names.is_empty() {
        let found = names.into_iter().map(|name| {
            let found = tables.get(&key(&caller.region, name));
            let found = found.filter(|_| registry == account.id);
            let found = found.ok_or_else(|| missing(name, registry))?;
            Ok(found.view(&account.id))
        });
        let found: Result<Vec<_>, ApiError> = found.collect();
        return Ok(json!({"repositories": found?}));
    }
    let own = registry == account.id;
    let all = tables.under(&prefix).filter(|_| own).map(|(key, _)| key);
    let page = cut(request, &PAGING, false, all)?;
    let views = page.items.iter().filter_map(|key| tables.get(key));
    let views: Vec<_> = views.map(|row| row.view(&account.id)).collect();
    Ok(json!({"repositories": views, "nextToken": page.next_token}))
}

pub(super) fn set_mutability(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    request.required_text("imageTagMutability")?;
    let immutable = immutable(request)?;
    let name = find(account, caller, request)?.name.clone();
    if let Some(row) = account
        .ecr
        .repositories
        .get_mut(&key(&caller.region, &name))
    {
        row.immutable = immutable;
    }
    Ok(json!({
        "registryId": account.id,
        "repositoryName": name,
        "imageTagMutability": if immutable { "IMMUTABLE" } else { "MUTABLE" },
    }))
}
