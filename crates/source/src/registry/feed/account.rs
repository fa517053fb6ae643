//! What an AWS account has: tags of ECR, objects of a bucket, machine images.

use slipway_plan::ListedVersion;
use slipway_steps::aws::AwsTarget;
use slipway_steps::secrets::Secrets;

use super::super::{ami, ecr, object};
use super::{Listed, Poll, Trouble, build, in_order};
use crate::fault::Fault;

/// The client of a feed's account, in the region of the feed, the connector, or where most are.
pub(super) async fn target(
    poll: &Poll<'_>,
    region: Option<&str>,
    secrets: &mut Secrets<'_>,
) -> Result<(AwsTarget, String), Fault> {
    let (connector, scope) = (poll.connector, poll.scope);
    let own = connector.spec["credential"]["region"].as_str();
    let region = region.or(own).unwrap_or(object::REGION);
    let targets = poll.asking.targets;
    let target = targets.target(connector, &connector.spec, scope, region, secrets);
    Ok((target.await?, region.to_owned()))
}

pub(super) async fn ask(
    poll: &Poll<'_>,
    kind: &str,
    secrets: &mut Secrets<'_>,
) -> Result<Listed, Trouble> {
    let region = match kind {
        "AmazonS3" => poll.text("region"),
        _ => Some(poll.must("region")?),
    };
    let (target, region) = target(poll, region, secrets).await?;
    let all = match kind {
        "Ecr" => {
            let place = ecr::Place {
                region: &region,
                registry: poll.text("registryId"),
                repository: poll.must("imagePath")?,
            };
            place.list(&target).await?
        }
        "AmazonS3" => {
            let place = (poll.must("bucketName")?, region.as_str());
            object::list(poll.asking.targets, &target.s3, place).await?
        }
        _ => ami::list(&target, &filters(poll), &region).await?,
    };
    let all = all.into_iter().map(|listed| {
        let at = listed.at_ms.unwrap_or_default();
        (at, told(poll, kind, listed))
    });
    let all = in_order(all.collect());
    Ok(all
        .into_iter()
        .map(|(_, build)| build)
        .collect::<Vec<_>>()
        .into())
}

/// What conditions and expressions know of a version.
fn told(poll: &Poll<'_>, kind: &str, listed: ListedVersion) -> slipway_trigger::feed::Build {
    let version = listed.found.version;
    let digest = listed.found.digest;
    match kind {
        "Ecr" => {
            let image = poll.text("imagePath").unwrap_or_default();
            build(
                &version,
                [
                    ("image", Some(format!("{image}:{version}"))),
                    ("tag", Some(version.clone())),
                    ("SHA", digest),
                ],
            )
        }
        "AmazonS3" => {
            let bucket = poll.text("bucketName").unwrap_or_default();
            let name = version.rsplit('/').next().unwrap_or(&version);
            build(
                &version,
                [
                    ("key", Some(version.clone())),
                    ("fileName", Some(name.to_owned())),
                    ("bucketName", Some(bucket.to_owned())),
                    ("etag", listed.found.metadata.get("etag").cloned()),
                ],
            )
        }
        _ => build(
            &version,
            [("name", Some(version.clone())), ("amiId", digest)],
        ),
    }
}

/// Filters of EC2, made of `tags` and `filters`: Harness writes `ami-name` for `name`.
fn filters(poll: &Poll<'_>) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (field, prefix) in [("tags", "tag:"), ("filters", "")] {
        for item in poll.place[field].as_array().into_iter().flatten() {
            let (Some(name), Some(value)) = (item["name"].as_str(), item["value"].as_str()) else {
                continue;
            };
            let name = match prefix {
                "" => name.strip_prefix("ami-").unwrap_or(name),
                _ => name,
            };
            all.push((format!("{prefix}{name}"), value.to_owned()));
        }
    }
    all
}
