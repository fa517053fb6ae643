//! Amazon machine images.
//!
//! Images are registered with `RegisterImage`. An id that was not registered is an image of this account all the
//! same, so that a pipeline alone can show what happens; what it does follows from rules of images
//! (`PUT /_sandbox/images`, with the id as the image), and without one from the end of the id:
//!
//! | ends with | what it is |
//! |---|---|
//! | `404` | no image at all |
//! | `403` | a private image of another account |
//! | `dead` | its instances end shortly after their start |
//! | `bad` | its instances run and never pass their health checks |

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::Filters;
use super::request::{page, required};
use super::{shown, template};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields};
use crate::image::ImageBehaviour;

/// Account of the images that belong to somebody else.
const OTHER_ACCOUNT: &str = "999999999999";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Image {
    id: String,
    name: String,
    owner: String,
    public: bool,
    created: Timestamp,
    architecture: String,
    tags: Document,
}

impl Image {
    fn view(&self) -> Value {
        json!({
            "imageId": self.id,
            "imageLocation": format!("{}/{}", self.owner, self.name),
            "imageState": "available",
            "imageOwnerId": self.owner,
            "isPublic": self.public,
            "architecture": self.architecture,
            "imageType": "machine",
            "name": self.name,
            "rootDeviceType": "ebs",
            "rootDeviceName": "/dev/xvda",
            "virtualizationType": "hvm",
            "creationDate": self.created.to_string(),
            "tagSet": shown::tags(&self.tags),
        })
    }
}

fn key(region: &str, id: &str) -> String {
    format!("{region}/{id}")
}

/// What instances of an image do.
pub(crate) fn behaviour(account: &Account, id: &str) -> ImageBehaviour {
    let rules = account.images.iter().map(|(_, rule)| rule);
    let mut named = rules.filter(|rule| rule.matches(id)).peekable();
    if named.peek().is_some() {
        return crate::image::behaviour(named, id).0;
    }
    if id.ends_with("dead") {
        ImageBehaviour::Exits
    } else if id.ends_with("bad") {
        ImageBehaviour::Unhealthy
    } else {
        ImageBehaviour::Runs
    }
}

/// An image that this account may use; who may not is told that it does not exist.
pub(crate) fn usable(account: &Account, region: &str, id: &str) -> Result<(), ApiError> {
    if id.starts_with("resolve:ssm:") {
        return Ok(());
    }
    let hex = id.strip_prefix("ami-").unwrap_or_default();
    if hex.is_empty() || !hex.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(ApiError::client(
            "InvalidAMIID.Malformed",
            format!("Invalid id: \"{id}\""),
        ));
    }
    let known = account.ec2.images.get(&key(region, id));
    let visible = match known {
        Some(image) => image.public || image.owner == account.id,
        None => !id.ends_with("404") && !id.ends_with("403"),
    };
    if visible {
        return Ok(());
    }
    Err(ApiError::client(
        "InvalidAMIID.NotFound",
        format!("The image id '[{id}]' does not exist"),
    ))
}

/// `RegisterImage`. `OwnerId` and `Public` are not AWS's: they make an image of another account.
pub(super) fn register(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = required(request, "Name")?;
    let prefix = format!("{}/", caller.region);
    let owner = request.text("OwnerId")?.unwrap_or(&account.id).to_owned();
    let same = |(_, row): &(&str, &Image)| row.name == name && row.owner == owner;
    let known = account.ec2.images.under(&prefix).find(same);
    if let Some((_, known)) = known {
        return Err(ApiError::client(
            "InvalidAMIName.Duplicate",
            format!("AMI name {name} is already in use by AMI {}", known.id),
        ));
    }
    let id = format!("ami-{}", account.draw_hex(17));
    let image = Image {
        id: id.clone(),
        name: name.to_owned(),
        owner,
        public: request.text("Public")? == Some("true"),
        created: account.now,
        architecture: request.text("Architecture")?.unwrap_or("x86_64").to_owned(),
        tags: template::tags(request, "image")?,
    };
    account.ec2.images.put(key(&caller.region, &id), image);
    Ok(json!({"imageId": id}))
}

pub(super) fn deregister(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let id = required(request, "ImageId")?;
    usable(account, &caller.region, id)?;
    account.ec2.images.take(&key(&caller.region, id));
    Ok(json!({"return": true}))
}

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let (ids, owners) = (request.texts("ImageId")?, request.texts("Owner")?);
    let filters = Filters::read(request)?;
    let mut images: Vec<Image> = Vec::new();
    for (_, image) in account.ec2.images.under(&format!("{}/", caller.region)) {
        if image.public || image.owner == account.id {
            images.push(image.clone());
        }
    }
    for id in &ids {
        usable(account, &caller.region, id)?;
        if !images.iter().any(|image| image.id == *id) {
            images.push(unregistered(account, id));
        }
    }
    let mut chosen = Vec::new();
    for image in images {
        let owned = owners.iter().any(|owner| match *owner {
            "self" => image.owner == account.id,
            "amazon" | "aws-marketplace" => false,
            owner => image.owner == owner,
        });
        let asked = ids.is_empty() || ids.contains(&image.id.as_str());
        if asked && (owners.is_empty() || owned) && filters.fit(|name| field(&image, name))? {
            chosen.push(image);
        }
    }
    chosen.sort_by(|a, b| a.id.cmp(&b.id));
    let page = page(
        request,
        (1, 1_000),
        chosen.iter().map(|image| image.id.as_str()),
    )?;
    let shown = chosen.iter().filter(|image| page.items.contains(&image.id));
    let views: Vec<Value> = shown.map(Image::view).collect();
    Ok(json!({"imagesSet": views, "nextToken": page.next_token}))
}

fn unregistered(account: &Account, id: &str) -> Image {
    Image {
        id: id.to_owned(),
        name: id.to_owned(),
        owner: match id.ends_with("403") {
            true => OTHER_ACCOUNT.to_owned(),
            false => account.id.clone(),
        },
        public: false,
        created: account.now,
        architecture: "x86_64".to_owned(),
        tags: Document::new(),
    }
}

fn field(image: &Image, name: &str) -> Option<Vec<String>> {
    Some(match name {
        "image-id" => vec![image.id.clone()],
        "name" => vec![image.name.clone()],
        "state" => vec!["available".to_owned()],
        "owner-id" => vec![image.owner.clone()],
        "is-public" => vec![image.public.to_string()],
        "architecture" => vec![image.architecture.clone()],
        "tag-key" => image.tags.keys().cloned().collect(),
        name => {
            let tag = name.strip_prefix("tag:")?;
            let value = image.tags.get(tag).and_then(Value::as_str);
            value.map(str::to_owned).into_iter().collect()
        }
    })
}
