//! Objects of buckets.

use std::collections::BTreeMap;
use std::error::Error;

use aws_sdk_s3::Client;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::head_object::HeadObjectOutput;
use aws_sdk_s3::primitives::DateTimeFormat;
use aws_sdk_s3::types::Object;
use slipway_plan::{ArtifactAnswer, FoundArtifact, ListedVersion, WantedArtifact};
use slipway_steps::aws::AwsTargets;
use slipway_steps::aws::error::{Doing, failure};
use slipway_steps::secrets::Secrets;

use super::choose::Choice;

/// Where buckets are whose source and connector name no region.
pub(super) const REGION: &str = "us-east-1";
/// Most objects that are looked through.
const MOST_OBJECTS: usize = 100_000;

pub(super) async fn find(
    targets: &AwsTargets,
    wanted: &WantedArtifact,
    (region, bucket): (Option<&str>, &str),
    choice: &Choice,
    secrets: &mut Secrets<'_>,
) -> Result<ArtifactAnswer, String> {
    check_own(targets, bucket)?;
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
    let mut metadata = headers(&head);
    metadata.extend([
        (
            "fileName".to_owned(),
            key.rsplit('/').next().unwrap_or(&key).to_owned(),
        ),
        (
            "url".to_owned(),
            format!("https://{bucket}.s3.{region}.amazonaws.com/{key}"),
        ),
    ]);
    Ok(FoundArtifact {
        digest: version.map(str::to_owned),
        version: key,
        metadata,
    })
}

/// What AWS tells of an object, by the names of the headers, and beside that what its owner wrote about it.
fn headers(head: &HeadObjectOutput) -> BTreeMap<String, String> {
    let modified = head.last_modified();
    let modified = modified.and_then(|time| time.fmt(DateTimeFormat::HttpDate).ok());
    let etag = head.e_tag().map(|etag| etag.trim_matches('"').to_owned());
    let encryption = head.server_side_encryption();
    let version = head.version_id().filter(|version| *version != "null");
    let told = [
        ("etag", etag),
        ("Content-Type", head.content_type().map(str::to_owned)),
        (
            "Content-Length",
            head.content_length().map(|bytes| bytes.to_string()),
        ),
        ("Last-Modified", modified),
        (
            "x-amz-server-side-encryption",
            encryption.map(|encryption| encryption.as_str().to_owned()),
        ),
        ("x-amz-version-id", version.map(str::to_owned)),
    ];
    let told = told
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let own = head.metadata().into_iter().flatten();
    let own = own.map(|(name, value)| (name.clone(), value.clone()));
    own.chain(told).collect()
}

/// The key of the object that was written last among those that fit.
async fn newest(
    s3: &Client,
    (bucket, region): (&str, &str),
    choice: &Choice,
) -> Result<String, String> {
    let objects = objects(s3, (bucket, region)).await?;
    let seen = objects.len();
    let named = objects.into_iter().filter_map(|object| {
        let key = object.key.filter(|key| choice.fits(key))?;
        Some((object.last_modified, key))
    });
    // Of two in the same second it is the one whose name comes last.
    let newest = named.max();
    newest.map(|(_, key)| key).ok_or_else(|| {
        format!(
            "the bucket {bucket} in {region} has {seen} objects, and none {}",
            choice.told()
        )
    })
}

/// All objects, with the times when they were written.
pub(super) async fn list(
    targets: &AwsTargets,
    s3: &Client,
    place: (&str, &str),
) -> Result<Vec<ListedVersion>, String> {
    check_own(targets, place.0)?;
    let objects = objects(s3, place).await?;
    let listed = objects.into_iter().filter_map(|object| {
        let etag = object.e_tag.map(|etag| etag.trim_matches('"').to_owned());
        let written = object.last_modified.and_then(|at| at.to_millis().ok());
        Some(ListedVersion {
            found: FoundArtifact {
                version: object.key?,
                digest: None,
                metadata: etag
                    .map(|etag| ("etag".to_owned(), etag))
                    .into_iter()
                    .collect(),
            },
            at_ms: written,
        })
    });
    Ok(listed.collect())
}

/// Refuses the bucket that holds Slipway's own.
fn check_own(targets: &AwsTargets, bucket: &str) -> Result<(), String> {
    match targets.is_own_bucket(bucket) {
        true => Err(format!(
            "the bucket {bucket} holds Slipway's own plans and logs: use another one"
        )),
        false => Ok(()),
    }
}

/// The objects of a bucket, of all pages.
async fn objects(s3: &Client, (bucket, region): (&str, &str)) -> Result<Vec<Object>, String> {
    let doing = format!("list the objects of bucket {bucket} in {region}");
    let (mut all, mut after) = (Vec::new(), None);
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
        all.extend(page.contents.unwrap_or_default());
        if after.is_none() {
            return Ok(all);
        }
        if all.len() >= MOST_OBJECTS {
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
