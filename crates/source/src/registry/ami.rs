//! Amazon machine images, by their names.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_plan::{ArtifactAnswer, FoundArtifact, ListedVersion, WantedArtifact};
use slipway_steps::aws::error::{Doing, code, failure};
use slipway_steps::aws::{AwsTarget, AwsTargets, is_image_id};
use slipway_steps::secrets::Secrets;

use super::choose::Choice;

/// Most pages of images.
const MOST_PAGES: usize = 100;

pub(super) async fn find(
    targets: &AwsTargets,
    wanted: &WantedArtifact,
    (region, filters): (&str, &[(String, String)]),
    choice: &Choice,
    secrets: &mut Secrets<'_>,
) -> Result<ArtifactAnswer, String> {
    let (connector, scope) = (&wanted.connector, &wanted.scope);
    let target = targets
        .target(connector, &connector.spec, scope, region, secrets)
        .await
        .map_err(|failure| failure.message)?;
    if let Choice::Exact(id) = choice
        && is_image_id(id)
    {
        return by_id(&target, id, (region, &connector.reference)).await;
    }
    let mut filters = written(filters);
    if let Choice::Exact(name) = choice {
        filters.push(json!({"Name": "name", "Value": [name]}));
    }
    let text = |image: &Value, name: &str| image[name].as_str().unwrap_or_default().to_owned();
    let fits = |image: &Value| {
        // One that was deregistered, failed or is not made yet cannot be started.
        image["imageState"] == "available" && choice.fits(&text(image, "name"))
    };
    let images = owned(&target, filters, region).await?;
    let fitting = images.iter().filter(|image| fits(image));
    let newest = fitting.max_by_key(|image| text(image, "creationDate"));
    let Some(image) = newest else {
        return Err(format!(
            "there is no available machine image {} among those with its tags and filters that the account of the \
             connector {} owns in {region}: check `version`, `tags` and `filters`",
            choice.told(),
            connector.reference
        ));
    };
    let id = text(image, "imageId");
    Ok(ArtifactAnswer::Found(FoundArtifact {
        version: text(image, "name"),
        metadata: told(image),
        digest: Some(id),
    }))
}

/// What `<+artifact.metadata.…>` tells of an image.
fn told(image: &Value) -> BTreeMap<String, String> {
    let fields = [
        ("amiId", "imageId"),
        ("name", "name"),
        ("creationDate", "creationDate"),
        ("ownerId", "imageOwnerId"),
    ];
    let known = fields.into_iter().filter_map(|(name, field)| {
        let text = image[field].as_str().filter(|text| !text.is_empty())?;
        Some((name.to_owned(), text.to_owned()))
    });
    known.collect()
}

/// Codes of EC2 for an image that there is not, or not for this account.
const UNKNOWN: &[&str] = &[
    "InvalidAMIID.NotFound",
    "InvalidAMIID.Malformed",
    "InvalidAMIID.Unavailable",
];

/// The image of an id, whoever owns it: it may be public or shared.
async fn by_id(
    target: &AwsTarget,
    id: &str,
    (region, connector): (&str, &str),
) -> Result<ArtifactAnswer, String> {
    let request = json!({"ImageId": [id]});
    let answer = match target.ec2.call("DescribeImages", &request).await {
        Ok(answer) => answer,
        Err(error) if code(&error).is_some_and(|code| UNKNOWN.contains(&code)) => Value::Null,
        Err(error) => {
            let doing = format!("look for the machine image {id} in {region}");
            return Err(failure(Doing::with(&doing), error).message);
        }
    };
    let image = &answer["imagesSet"][0];
    match image["imageState"].as_str() {
        Some("available") => Ok(ArtifactAnswer::Found(FoundArtifact {
            version: id.to_owned(),
            metadata: told(image),
            digest: Some(id.to_owned()),
        })),
        Some(state) => Err(format!(
            "the machine image {id} in {region} is {state}, and only one that is available can be started"
        )),
        None => Err(format!(
            "AWS knows no machine image {id} in {region} that the account of the connector {connector} may use: check \
             the id and the region; an image of another account must be shared with this one"
        )),
    }
}

/// The machine images of the account that can be started.
pub(super) async fn list(
    target: &AwsTarget,
    filters: &[(String, String)],
    region: &str,
) -> Result<Vec<ListedVersion>, String> {
    let images = owned(target, written(filters), region).await?;
    let available = images
        .iter()
        .filter(|image| image["imageState"] == "available");
    let text = |image: &Value, name: &str| image[name].as_str().unwrap_or_default().to_owned();
    let listed = available.map(|image| {
        let made: Option<Timestamp> = text(image, "creationDate").parse().ok();
        ListedVersion {
            found: FoundArtifact {
                version: text(image, "name"),
                digest: Some(text(image, "imageId")),
                metadata: BTreeMap::new(),
            },
            at_ms: made.map(Timestamp::as_millisecond),
        }
    });
    Ok(listed.collect())
}

/// Filters as `DescribeImages` takes them.
fn written(filters: &[(String, String)]) -> Vec<Value> {
    filters
        .iter()
        .map(|(name, value)| json!({"Name": name, "Value": [value]}))
        .collect()
}

/// The images of the account itself, of all pages.
async fn owned(
    target: &AwsTarget,
    filters: Vec<Value>,
    region: &str,
) -> Result<Vec<Value>, String> {
    let mut request = json!({"Filter": filters, "Owner": ["self"]});
    let doing = format!("look for machine images in {region}");
    let mut images = Vec::new();
    for _ in 0..MOST_PAGES {
        let answer = target.ec2.call("DescribeImages", &request).await;
        let mut answer = answer.map_err(|error| failure(Doing::with(&doing), error).message)?;
        if let Some(page) = answer["imagesSet"].as_array_mut() {
            images.append(page);
        }
        match answer["nextToken"]
            .as_str()
            .filter(|token| !token.is_empty())
        {
            Some(token) => request["NextToken"] = json!(token),
            None => return Ok(images),
        }
    }
    Err(format!(
        "the account has more than {} machine images with these tags and filters in {region}: give more `filters`",
        images.len()
    ))
}
