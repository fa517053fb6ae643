//! The Amazon machine image of an artifact.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;
use slipway_plan::ServicePlan;

use super::site::{Ask, Site};
use super::{PREPARE, invalid, wrong};
use crate::aws::is_image_id;
use crate::context::StepContext;

/// Codes of EC2 for an image that there is not, or not for this account.
const UNKNOWN: &[&str] = &[
    "InvalidAMIID.NotFound",
    "InvalidAMIID.Malformed",
    "InvalidAMIID.Unavailable",
];

/// What the service says of its image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Wanted {
    /// An id or a name.
    version: String,
    /// `Filter`s of EC2, made of the artifact's tags and filters.
    filters: Vec<Value>,
}

impl Wanted {
    /// The artifact of the service, if it is an image.
    pub(super) fn of_service(
        cx: &StepContext<'_>,
        service: &ServicePlan,
    ) -> Result<Option<Self>, Failure> {
        let Some(artifact) = &service.artifact else {
            return Ok(None);
        };
        if artifact.kind != "AmazonMachineImage" {
            return Err(invalid(format!(
                "the artifact of service {} is a {}, and an Auto Scaling group starts instances from an \
                 AmazonMachineImage.",
                service.identifier, artifact.kind
            )));
        }
        let spec = cx.evaluate(&artifact.spec)?;
        let version = match (artifact.digest(), &artifact.tag) {
            // Found by its name when the run was planned.
            (Some(id), _) => id.to_owned(),
            (None, Some(tag)) => cx
                .evaluate(&json!(tag))?
                .as_str()
                .unwrap_or_default()
                .trim()
                .to_owned(),
            (None, None) => String::new(),
        };
        if version.is_empty() {
            return Err(invalid(format!(
                "the artifact of service {} has no `version`: give the name or the id of an image.",
                service.identifier
            )));
        }
        Ok(Some(Self {
            version,
            filters: filters(&spec),
        }))
    }

    /// The id of the image, which is there and which this account may use.
    pub(super) async fn find(
        &self,
        cx: &mut StepContext<'_>,
        site: &Site,
    ) -> Result<String, Failure> {
        let version = &self.version;
        let doing = format!("look for the image `{version}`");
        if is_image_id(version) {
            let request = json!({"ImageId": [version]});
            let ask = Ask {
                action: "DescribeImages",
                request: &request,
                doing: &doing,
            };
            let found = site.ec2_unless(ask, UNKNOWN).await?;
            let found = found.as_ref().map(|found| &found["imagesSet"][0]);
            return match found {
                Some(image) if image["imageState"] == "available" => Ok(version.clone()),
                Some(image) if image.is_object() => Err(wrong(format!(
                    "Image {version} in {site} cannot be used: its state is {}, and it must be available.",
                    image["imageState"].as_str().unwrap_or("unknown")
                ))),
                _ => Err(wrong(format!(
                    "Image {version} cannot be used in {site}: AWS knows no such image there that this account may \
                     use. Check its id and region; an image of another account must be shared with this one."
                ))),
            };
        }
        let mut filters = self.filters.clone();
        filters.push(json!({"Name": "name", "Value": [version]}));
        let request = json!({"Filter": filters, "Owner": ["self"]});
        let found = site.ec2("DescribeImages", &request, &doing).await?;
        let images = found["imagesSet"].as_array();
        let images = images.into_iter().flatten();
        let available = images.filter(|image| image["imageState"] == "available");
        let newest =
            available.max_by_key(|image| image["creationDate"].as_str().unwrap_or_default());
        let id = newest.and_then(|image| image["imageId"].as_str());
        let Some(id) = id else {
            return Err(wrong(format!(
                "There is no image named `{version}` with the artifact's tags and filters among those that this \
                 account owns in {site}. Check `version`, `tags` and `filters` of the artifact."
            )));
        };
        cx.info(PREPARE, format!("Image {version} is {id}"));
        Ok(id.to_owned())
    }
}

/// `tags` and `filters` of an artifact as EC2 wants them: Harness writes `ami-name` for `name`.
fn filters(spec: &Value) -> Vec<Value> {
    let of = |field: &str| {
        let items = spec[field].as_array().into_iter().flatten();
        items
            .filter_map(|item| Some((item["name"].as_str()?, item["value"].as_str()?)))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect::<Vec<_>>()
    };
    let tags = of("tags").into_iter();
    let tags = tags.map(|(name, value)| (format!("tag:{name}"), value));
    let own = of("filters").into_iter().map(|(name, value)| {
        let bare = name.strip_prefix("ami-").unwrap_or(&name);
        (bare.to_owned(), value)
    });
    let all = tags.chain(own);
    all.map(|(name, value)| json!({"Name": name, "Value": [value]}))
        .collect()
}
