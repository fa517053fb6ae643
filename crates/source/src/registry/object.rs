//! Objects of buckets.

use std::collections::BTreeMap;
use std::error::Error;

use aws_sdk_s3::Client;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use slipway_plan::{ArtifactAnswer, FoundArtifact, WantedArtifact};
use slipway_steps::aws::AwsTargets;
use slipway_steps::aws::error::{Doing, failure};
use slipway_steps::secrets::Secrets;

use super::choose::Choice;

/// Where buckets are whose source and connector name no region.
const REGION: &str = "us-east-1";
/// Most objects that are looked through.
const MOST_OBJECTS: usize = 100_000;

pub(super) async fn find(
    targets: &AwsTargets,
    wanted: &WantedArtifact,
    (region, bucket): (Option<&str>, &str),
    choice: &Choice,
    secrets: &mut Secrets<'_>,
) -> Result<ArtifactAnswer, String> {
    if targets.is_own_bucket(bucket) {
        return Err(format!(
            "the bucket {bucket} holds Slipway's own plans and logs: use another one"
        ));
    }
    let (connector, scope) = (&wanted.connector, &wanted.scope);
    let own = connector.spec["credential"]["region"].as_str();
    let region = region.or(own).unwrap_or(REGION);
    let target = targets
        .target(connector, &connector.spec, scope, region, secrets)
        .await
        .map_err(|failure| failure.message)?;
    let key = match choice {
        Choice::Exact(key) => key.clone(),
        _ => newest(&target.s3, (bucket, region), choice).await?,
    };
    object(&target.s3, (bucket, region), key)
        .await
        .map(ArtifactAnswer::Found)
}

/// What an object is.
async fn object(
    s3: &Client,
    (bucket, region): (&str, &str),
    key: String,
) -> Result<FoundArtifact, String> {
    let doing = format!("look up the object {key} of bucket {bucket} in {region}");
    let answer = s3.head_object().bucket(bucket).key(&key).send().await;
    let head = answer.map_err(|error| {
        // Without a body there is no code but the status.
        match status(&error) {
            404 => format!(
                "there is no object {key} in bucket {bucket} in {region}, or no such bucket: check `bucketName` and \
                 `filePath`, or upload it first"
            ),
            _ => told((bucket, region), &doing, error),
        }
    })?;
    let version = head.version_id().filter(|version| *version != "null");
    let mut metadata = BTreeMap::from([
        (
            "fileName".to_owned(),
            key.rsplit('/').next().unwrap_or(&key).to_owned(),
        ),
        (
            "url".to_owned(),
            format!("https://{bucket}.s3.{region}.amazonaws.com/{key}"),
        ),
    ]);
    if let Some(etag) = head.e_tag() {
        metadata.insert("etag".to_owned(), etag.trim_matches('"').to_owned());
    }
    Ok(FoundArtifact {
        digest: version.map(str::to_owned),
        version: key,
        metadata,
    })
}

/// The key of the object that was written last among those that fit.
async fn newest(
    s3: &Client,
    (bucket, region): (&str, &str),
    choice: &Choice,
) -> Result<String, String> {
    let doing = format!("list the objects of bucket {bucket} in {region}");
    let (mut newest, mut seen, mut after) = (None, 0, None);
    loop {
        let page = s3
            .list_objects_v2()
            .bucket(bucket)
            .set_continuation_token(after);
        let page = page.send().await;
        let page = page.map_err(|error| match status(&error) {
            404 => format!("there is no bucket {bucket} in {region}: check `bucketName`"),
            _ => told((bucket, region), &doing, error),
        })?;
        after = page.next_continuation_token;
        for object in page.contents.unwrap_or_default() {
            seen += 1;
            let Some(key) = object.key.filter(|key| choice.fits(key)) else {
                continue;
            };
            // Of two in the same second it is the one whose name comes last.
            let found = (object.last_modified, key);
            if newest.as_ref().is_none_or(|newest| *newest < found) {
                newest = Some(found);
            }
        }
        if after.is_none() {
            let none = || {
                format!(
                    "the bucket {bucket} in {region} has {seen} objects, and none {}",
                    choice.told()
                )
            };
            return newest.map(|(_, key)| key).ok_or_else(none);
        }
        if seen >= MOST_OBJECTS {
            return Err(format!(
                "the bucket {bucket} has more than {MOST_OBJECTS} objects: name one with `filePath`"
            ));
        }
    }
}

fn status<E>(error: &SdkError<E>) -> u16 {
    let raw = error.raw_response();
    raw.map_or(0, |raw| raw.status().as_u16())
}

/// Why S3 does not say what is in a bucket, with what to do.
fn told<E>((bucket, region): (&str, &str), doing: &str, error: SdkError<E>) -> String
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let raw = error.raw_response();
    let actual = raw.and_then(|raw| raw.headers().get("x-amz-bucket-region"));
    match (status(&error), actual) {
        (301 | 307 | 400, Some(actual)) if actual != region => format!(
            "the bucket {bucket} is in {actual} and was looked for in {region}: correct `region` of the artifact source"
        ),
        (403, _) => format!(
            "cannot {doing}: the connector may not (403). Allow its role or user s3:GetObject and s3:ListBucket; without \
             the latter S3 does not even tell what is missing"
        ),
        _ => failure(Doing::with(&doing), error).message,
    }
}
