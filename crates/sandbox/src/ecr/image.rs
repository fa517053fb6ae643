//! Images: what names them, what they are, and what is pulled by a name.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::name::{invalid, is_digest, registry};
use super::repository;
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

/// Most images that one request names.
const MOST_IDS: usize = 100;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Image {
    pub(super) digest: String,
    pub(super) manifest: String,
    pub(super) media_type: String,
    pub(super) tags: BTreeSet<String>,
    pub(super) pushed: Timestamp,
}

/// What a request calls an image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Id<'a> {
    pub(super) digest: Option<&'a str>,
    pub(super) tag: Option<&'a str>,
}

/// Key of an image in the repository of a key.
pub(super) fn key(repository: &str, digest: &str) -> String {
    format!("{repository}@{digest}")
}

/// The images of a repository.
pub(super) fn all<'a>(
    account: &'a Account,
    repository: &str,
) -> impl Iterator<Item = (&'a str, &'a Image)> + use<'a> {
    account.ecr.images.under(&key(repository, ""))
}

/// The image that has a tag now.
pub(super) fn by_tag<'a>(account: &'a Account, repository: &str, tag: &str) -> Option<&'a Image> {
    let mut all = all(account, repository).map(|(_, image)| image);
    all.find(|image| image.tags.contains(tag))
}

impl<'a> Id<'a> {
    /// `imageIds` of a request.
    pub(super) fn read(request: Fields<'a>) -> Result<Vec<Self>, ApiError> {
        let ids = request.objects("imageIds")?;
        if ids.len() > MOST_IDS {
            let rule = format!("Member must have length less than or equal to {MOST_IDS}");
            return Err(invalid("imageIds", &rule));
        }
        let ids = ids.into_iter().map(|id| {
            let (digest, tag) = (
                Fields(id).text("imageDigest")?,
                Fields(id).text("imageTag")?,
            );
            match (digest, tag) {
                (None, None) => Err(invalid("imageIds", "Member must not be null")),
                (Some(digest), _) if !is_digest(digest) => Err(invalid(
                    "imageDigest",
                    "must satisfy regular expression '[a-zA-Z0-9-_+.]+:[a-fA-F0-9]+'",
                )),
                (digest, tag) => Ok(Self { digest, tag }),
            }
        });
        ids.collect()
    }

    /// The image that is called so; with both a digest and a tag it must have both.
    pub(super) fn find(self, account: &'a Account, repository: &str) -> Option<&'a Image> {
        let found = match (self.digest, self.tag) {
            (Some(digest), _) => account.ecr.images.get(&key(repository, digest)),
            (None, Some(tag)) => by_tag(account, repository, tag),
            (None, None) => None,
        };
        found.filter(|image| self.tag.is_none_or(|tag| image.tags.contains(tag)))
    }

    fn view(self) -> Value {
        match (self.digest, self.tag) {
            (Some(digest), Some(tag)) => json!({"imageDigest": digest, "imageTag": tag}),
            (Some(digest), None) => json!({"imageDigest": digest}),
            (None, tag) => json!({"imageTag": tag}),
        }
    }

    /// A failure of a request about several.
    pub(super) fn not_found(self) -> Value {
        json!({
            "imageId": self.view(),
            "failureCode": "ImageNotFound",
            "failureReason": "Requested image not found",
        })
    }
}

impl Image {
    /// As `BatchGetImage` and `PutImage` show it.
    pub(super) fn view(&self, account: &str, repository: &str, tag: Option<&str>) -> Value {
        let id = Id {
            digest: Some(&self.digest),
            tag,
        };
        json!({
            "registryId": account,
            "repositoryName": repository,
            "imageId": id.view(),
            "imageManifest": self.manifest,
            "imageManifestMediaType": self.media_type,
        })
    }

    /// As `DescribeImages` shows it.
    fn detail(&self, account: &str, repository: &str) -> Value {
        let mut detail = json!({
            "registryId": account,
            "repositoryName": repository,
            "imageDigest": self.digest,
            "imageSizeInBytes": self.size(),
            "imagePushedAt": epoch(self.pushed),
            "imageManifestMediaType": self.media_type,
        });
        if !self.tags.is_empty() {
            detail["imageTags"] = json!(self.tags);
        }
        detail
    }

    /// Bytes of the layers that the manifest names.
    fn size(&self) -> u64 {
        let manifest: Value = serde_json::from_str(&self.manifest).unwrap_or_default();
        let layers = manifest["layers"].as_array();
        let sizes = layers.into_iter().flatten();
        sizes.filter_map(|layer| layer["size"].as_u64()).sum()
    }

    fn has(&self, status: Option<&str>) -> bool {
        match status {
            Some("TAGGED") => !self.tags.is_empty(),
            Some("UNTAGGED") => self.tags.is_empty(),
            _ => true,
        }
    }
}

/// `filter.tagStatus`.
fn status(request: Fields<'_>) -> Result<Option<&str>, ApiError> {
    match request.object("filter")? {
        Some(filter) => Fields(filter).text("tagStatus"),
        None => Ok(None),
    }
}

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = &repository::find(account, caller, request)?.name;
    let place = repository::key(&caller.region, name);
    let ids = Id::read(request)?;
    if !ids.is_empty() {
        let mut details = Vec::new();
        for id in ids {
            let Some(image) = id.find(account, &place) else {
                let quoted = |text: Option<&str>| format!("'{}'", text.unwrap_or("null"));
                let message = format!(
                    "The image with imageId {{imageDigest:{}, imageTag:{}}} does not exist within the repository \
                     with name '{name}' in the registry with id '{}'",
                    quoted(id.digest),
                    quoted(id.tag),
                    account.id
                );
                return Err(ApiError::client("ImageNotFoundException", message));
            };
            details.push(image.detail(&account.id, name));
        }
        return Ok(json!({"imageDetails": details}));
    }
    let status = status(request)?;
    let keys = all(account, &place).filter(|(_, image)| image.has(status));
    let page = cut(request, &PAGING, false, keys.map(|(key, _)| key))?;
    let details = page
        .items
        .iter()
        .filter_map(|key| account.ecr.images.get(key));
    let details: Vec<_> = details
        .map(|image| image.detail(&account.id, name))
        .collect();
    Ok(json!({"imageDetails": details, "nextToken": page.next_token}))
}

/// An entry for each tag, and one for each image without any.
pub(super) fn list(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = &repository::find(account, caller, request)?.name;
    let place = repository::key(&caller.region, name);
    let status = status(request)?;
    let images = all(account, &place).filter(|(_, image)| image.has(status));
    let mut entries: Vec<String> = images
        .flat_map(|(_, image)| {
            let tags = image.tags.iter().map(String::as_str);
            let none = image.tags.is_empty().then_some("");
            let names = tags.chain(none);
            names
                .map(|tag| format!("{} {tag}", image.digest))
                .collect::<Vec<_>>()
        })
        .collect();
    entries.sort();
    let page = cut(request, &PAGING, false, entries.iter().map(String::as_str))?;
    let ids = page.items.iter().filter_map(|entry| entry.split_once(' '));
    let ids = ids.map(|(digest, tag)| {
        let id = Id {
            digest: Some(digest),
            tag: (!tag.is_empty()).then_some(tag),
        };
        id.view()
    });
    let ids: Vec<_> = ids.collect();
    Ok(json!({"imageIds": ids, "nextToken": page.next_token}))
}

pub(super) fn get(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = &repository::find(account, caller, request)?.name;
    let place = repository::key(&caller.region, name);
    let ids = Id::read(request)?;
    if ids.is_empty() {
        return Err(invalid("imageIds", "Member must not be null"));
    }
    let (mut images, mut failures) = (Vec::new(), Vec::new());
    for id in ids {
        match id.find(account, &place) {
            Some(image) => images.push(image.view(&account.id, name, id.tag)),
            None => failures.push(id.not_found()),
        }
    }
    Ok(json!({"images": images, "failures": failures}))
}

/// What becomes of an image that is pulled.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pulled {
    /// Not in a registry of this account.
    Elsewhere,
    /// A registry of this account has no such repository, or the repository no such image.
    Missing,
    /// The image is here.
    Here {
        /// `sha256:…`.
        digest: String,
        /// Its name by a tag, the one that was asked for or else its first, so that what is said about images by their
        /// names holds for their digests too.
        name: String,
    },
}

/// Looks for an image as task definitions and functions name it.
pub(crate) fn pull(account: &Account, image: &str) -> Pulled {
    let (named, digest) = match image.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (image, None),
    };
    let (uri, tag) = match named.rsplit_once(':') {
        Some((uri, tag)) if !tag.contains('/') => (uri, Some(tag)),
        _ => (named, None),
    };
    let mut all = account.ecr.repositories.iter();
    let Some((place, _)) = all.find(|(_, row)| row.uri(&account.id) == uri) else {
        // A registry of this account has what was put into it, and nothing else.
        return match registry(image) {
            Some((own, ..)) if own == account.id => Pulled::Missing,
            _ => Pulled::Elsewhere,
        };
    };
    let tag = tag.or(digest.is_none().then_some("latest"));
    let Some(found) = (Id {
        digest,
        tag: tag.filter(|_| digest.is_none()),
    })
    .find(account, place) else {
        return Pulled::Missing;
    };
    let tag = tag.or(found.tags.first().map(String::as_str));
    Pulled::Here {
        digest: found.digest.clone(),
        name: match tag {
            Some(tag) => format!("{uri}:{tag}"),
            None => image.to_owned(),
        },
    }
}
