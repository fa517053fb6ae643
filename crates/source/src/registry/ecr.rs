//! Amazon ECR, asked as AWS and not as a registry: no token is needed, and the connector's role is enough.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use slipway_plan::{ArtifactAnswer, FoundArtifact, ListedVersion, WantedArtifact};
use slipway_steps::aws::error::{Doing, code, failure};
use slipway_steps::aws::{AwsTarget, AwsTargets};
use slipway_steps::secrets::Secrets;

use super::choose::Choice;

/// Most pages of tags, of a thousand each.
const MOST_PAGES: usize = 100;

/// Where an image is.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) region: &'a str,
    pub(super) registry: Option<&'a str>,
    pub(super) repository: &'a str,
}

pub(super) async fn find(
    targets: &AwsTargets,
    wanted: &WantedArtifact,
    place: Place<'_>,
    choice: &Choice,
    secrets: &mut Secrets<'_>,
) -> Result<ArtifactAnswer, String> {
    let (connector, scope) = (&wanted.connector, &wanted.scope);
    let target = targets
        .target(connector, &connector.spec, scope, place.region, secrets)
        .await
        .map_err(|failure| failure.message)?;
    let found = match choice {
        Choice::Exact(tag) => place.image(&target, tag.clone(), None).await,
        Choice::Digest(digest) => place.image(&target, String::new(), Some(digest)).await,
        Choice::Last(_) => match place.last(&target, choice).await {
            Ok(tag) => place.image(&target, tag, None).await,
            Err(why) => Err(why),
        },
    };
    let found = match found {
        Ok(found) => found,
        Err(Why::NoRepository(_)) if targets.is_sandbox() => {
            return Ok(ArtifactAnswer::Unasked(format!(
                "the sandbox account has no repository {} in {}; its images are looked up once there is one",
                place.repository, place.region
            )));
        }
        Err(Why::NoRepository(why) | Why::Other(why)) => return Err(why),
    };
    let digest = found.digest.as_deref().unwrap_or_default();
    if let Some(given) = wanted
        .question
        .digest
        .as_deref()
        .filter(|given| *given != digest)
    {
        return Err(format!(
            "the image {} in {} is {digest}, and `digest` says {given}: correct `digest`, or find out who moved the tag",
            found.version, place.repository
        ));
    }
    Ok(ArtifactAnswer::Found(found))
}

/// Why there is no image.
enum Why {
    NoRepository(String),
    Other(String),
}

impl Place<'_> {
    async fn call(
        &self,
        target: &AwsTarget,
        action: &str,
        mut request: Value,
        doing: &str,
    ) -> Result<Value, Why> {
        request["repositoryName"] = json!(self.repository);
        if let Some(registry) = self.registry {
            request["registryId"] = json!(registry);
        }
        let answer = target.ecr.call(action, &request).await;
        answer.map_err(|error| {
            let code = code(&error).unwrap_or_default().to_owned();
            let doing = format!("{doing} of ECR repository {} in {}", self.repository, self.region);
            let message = failure(Doing::with(&doing), error).message;
            match code.as_str() {
                "RepositoryNotFoundException" => Why::NoRepository(format!(
                    "{message} Check `imagePath`, `region` and `registryId`, and which account the connector leads to."
                )),
                "ImageNotFoundException" => Why::Other(format!("{message} Check `tag`, or push the image first.")),
                _ => Why::Other(message),
            }
        })
    }

    /// What an image is.
    async fn image(
        &self,
        target: &AwsTarget,
        tag: String,
        digest: Option<&str>,
    ) -> Result<FoundArtifact, Why> {
        let (id, doing) = match digest {
            Some(digest) => (
                json!({"imageDigest": digest}),
                format!("look up the image {digest}"),
            ),
            None => (json!({"imageTag": tag}), format!("look up the image {tag}")),
        };
        let request = json!({"imageIds": [id]});
        let answer = self.call(target, "DescribeImages", request, &doing).await?;
        let image = &answer["imageDetails"][0];
        let Some(digest) = image["imageDigest"].as_str() else {
            return Err(Why::Other(format!(
                "cannot {doing}: ECR's answer names no digest"
            )));
        };
        let registry = image["registryId"].as_str();
        let metadata = registry.map(|id| ("registryId".to_owned(), id.to_owned()));
        Ok(FoundArtifact {
            version: tag,
            digest: Some(digest.to_owned()),
            metadata: metadata.into_iter().collect::<BTreeMap<_, _>>(),
        })
    }

    /// All tags with the times when their images were pushed.
    pub(super) async fn list(&self, target: &AwsTarget) -> Result<Vec<ListedVersion>, String> {
        let mut request = json!({"filter": {"tagStatus": "TAGGED"}, "maxResults": 1000});
        let mut all = Vec::new();
        for _ in 0..MOST_PAGES {
            let page = self
                .call(target, "DescribeImages", request.clone(), "list the images")
                .await;
            let page = page.map_err(|why| match why {
                Why::NoRepository(why) | Why::Other(why) => why,
            })?;
            for image in page["imageDetails"].as_array().into_iter().flatten() {
                // Seconds, with a fraction.
                let at_ms = image["imagePushedAt"]
                    .as_f64()
                    .map(|at| (at * 1000.0) as i64);
                let tags = image["imageTags"].as_array().into_iter().flatten();
                all.extend(tags.filter_map(Value::as_str).map(|tag| ListedVersion {
                    found: FoundArtifact {
                        version: tag.to_owned(),
                        digest: image["imageDigest"].as_str().map(str::to_owned),
                        metadata: BTreeMap::new(),
                    },
                    at_ms,
                }));
            }
            match page["nextToken"].as_str() {
                Some(next) => request["nextToken"] = json!(next),
                None => return Ok(all),
            }
        }
        Err(format!(
            "the ECR repository {} has more than {} tags: they are not listed",
            self.repository,
            all.len()
        ))
    }

    /// The last tag by name that fits (docs: `lastPublished` is the last in lexical order, for images).
    async fn last(&self, target: &AwsTarget, choice: &Choice) -> Result<String, Why> {
        let (mut last, mut seen) = (None::<String>, 0);
        let mut request = json!({"filter": {"tagStatus": "TAGGED"}, "maxResults": 1000});
        for _ in 0..MOST_PAGES {
            let page = self
                .call(target, "ListImages", request.clone(), "list the tags")
                .await?;
            let ids = page["imageIds"].as_array().into_iter().flatten();
            for tag in ids.filter_map(|id| id["imageTag"].as_str()) {
                seen += 1;
                if choice.fits(tag) && last.as_deref().is_none_or(|last| last < tag) {
                    last = Some(tag.to_owned());
                }
            }
            let Some(next) = page["nextToken"].as_str() else {
                return last.ok_or_else(|| {
                    Why::Other(format!(
                        "the ECR repository {} in {} has {seen} tags, and none {}",
                        self.repository,
                        self.region,
                        choice.told()
                    ))
                });
            };
            request["nextToken"] = json!(next);
        }
        Err(Why::Other(format!(
            "the ECR repository {} has more than {seen} tags: name a tag",
            self.repository
        )))
    }
}
