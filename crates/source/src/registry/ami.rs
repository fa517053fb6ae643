//! Amazon machine images, by their names.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use slipway_plan::{ArtifactAnswer, FoundArtifact, WantedArtifact};
use slipway_steps::aws::AwsTargets;
use slipway_steps::aws::error::{Doing, failure};
use slipway_steps::secrets::Secrets;

use super::choose::Choice;

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
    let filters = filters.iter();
    let mut filters: Vec<Value> = filters
        .map(|(name, value)| json!({"Name": name, "Value": [value]}))
        .collect();
    if let Choice::Exact(name) = choice {
        filters.push(json!({"Name": "name", "Value": [name]}));
    }
    let request = json!({"Filter": filters, "Owner": ["self"]});
    let doing = format!("look for machine images in {region}");
    let answer = target.ec2.call("DescribeImages", &request).await;
    let answer = answer.map_err(|error| failure(Doing::with(&doing), error).message)?;
    let text = |image: &Value, name: &str| image[name].as_str().unwrap_or_default().to_owned();
    let images = answer["imagesSet"].as_array().into_iter().flatten();
    let fitting = images
        .filter(|image| image["imageState"] == "available" && choice.fits(&text(image, "name")));
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
        metadata: BTreeMap::from([("amiId".to_owned(), id.clone())]),
        digest: Some(id),
    }))
}
