//! Files of a bucket.

use std::fmt;

use aws_sdk_s3::Client;
use aws_sdk_s3::error::ProvideErrorMetadata;
use slipway_plan::remote::MOST_FILES;
use slipway_plan::{Fetched, RemoteFiles};
use slipway_steps::aws::AwsTargets;
use slipway_steps::aws::error::{Doing, failure};
use slipway_steps::secrets::Secrets;

use crate::collect::Collected;
use crate::nearest::instead;

/// Reads the objects that are named, and of folders all objects below them.
pub(crate) async fn read(
    targets: &AwsTargets,
    secrets: &mut Secrets<'_>,
    wanted: &RemoteFiles,
    bucket: &str,
    region: &str,
) -> Result<Fetched, String> {
    if targets.is_own_bucket(bucket) {
        return Err(format!(
            "the bucket {bucket} holds Slipway's own plans and logs: use another one"
        ));
    }
    let (connector, scope) = (&wanted.connector, &wanted.scope);
    let target = targets
        .target(connector, &connector.spec, scope, region, secrets)
        .await
        .map_err(|failure| failure.message)?;
    let bucket = Bucket {
        client: target.s3,
        name: bucket,
        region,
    };
    let mut found = Collected::default();
    for path in &wanted.paths {
        bucket.read(path, &mut found).await?;
    }
    Ok(Fetched {
        commit: None,
        branch: None,
        files: found.into_files(),
    })
}

struct Bucket<'a> {
    client: Client,
    name: &'a str,
    region: &'a str,
}

/// What a call is for, in words that follow "Cannot".
struct Call<'a>(&'a str, &'a str, &'a Bucket<'a>);

impl fmt::Display for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(verb, what, bucket) = self;
        write!(
            f,
            "{verb} {what} of bucket {} in {}",
            bucket.name, bucket.region
        )
    }
}

impl Bucket<'_> {
    /// Adds the object of this key, or, where there is none, those below it.
    async fn read(&self, path: &str, found: &mut Collected) -> Result<(), String> {
        if !path.is_empty() && self.object(path, found).await? {
            return Ok(());
        }
        let folder = if path.is_empty() {
            String::new()
        } else {
            format!("{path}/")
        };
        let keys = self.list(&folder).await?;
        if keys.is_empty() {
            let parent = path
                .rsplit_once('/')
                .map_or(String::new(), |(parent, _)| format!("{parent}/"));
            let near = self.list(&parent).await?;
            let near = instead(path, near.iter().map(String::as_str));
            return Err(format!(
                "there is no object or folder {path} in bucket {} in {}{near}",
                self.name, self.region
            ));
        }
        for key in keys {
            // It may be gone since it was listed; then it is not there any more.
            self.object(&key, found).await?;
        }
        Ok(())
    }

    /// Adds the object of a key; whether there is one.
    async fn object(&self, key: &str, found: &mut Collected) -> Result<bool, String> {
        let doing = Call("read", key, self);
        let answer = self.client.get_object().bucket(self.name).key(key).send();
        let mut object = match answer.await {
            Ok(object) => object,
            Err(error) if error.code() == Some("NoSuchKey") => return Ok(false),
            Err(error) => return Err(failure(Doing::with(&doing), error).message),
        };
        let told = object.content_length.unwrap_or_default();
        found.room_for(key, u64::try_from(told).unwrap_or_default())?;
        let mut content = Vec::new();
        loop {
            let chunk = object.body.try_next().await;
            let chunk =
                chunk.map_err(|why| format!("Cannot {doing}: the answer ended early: {why}"))?;
            let Some(chunk) = chunk else { break };
            content.extend_from_slice(&chunk);
            // A length that was not told, or not truly.
            found.room_for(key, content.len() as u64)?;
        }
        found.add(key, content)?;
        Ok(true)
    }

    /// Keys of objects below a prefix, in order: one more than may be read, so that too many are seen.
    async fn list(&self, prefix: &str) -> Result<Vec<String>, String> {
        let most = MOST_FILES + 1;
        let mut keys: Vec<String> = Vec::new();
        let mut after = None;
        loop {
            let page = self
                .client
                .list_objects_v2()
                .bucket(self.name)
                .prefix(prefix);
            let page = page.set_continuation_token(after).send().await;
            let page = page.map_err(|error| {
                let what = format!("the objects below {prefix:?}");
                failure(Doing::with(&Call("list", &what, self)), error).message
            })?;
            let listed = page.contents.unwrap_or_default().into_iter();
            // A key that ends with `/` is how consoles show an empty folder.
            keys.extend(
                listed
                    .filter_map(|object| object.key)
                    .filter(|key| !key.ends_with('/')),
            );
            after = page.next_continuation_token;
            if after.is_none() || keys.len() >= most {
                keys.sort();
                keys.truncate(most);
                return Ok(keys);
            }
        }
    }
}
