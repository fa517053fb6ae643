//! The artifact of a service as the code of a function: a package in S3 or an image in ECR.

use serde_json::{Map, Value, json};
use slipway_model::status::Failure;
use slipway_plan::{ArtifactPlan, ServicePlan};

use crate::context::StepContext;
use crate::deployment::invalid;
use crate::deployment::spec::text;

/// Members of `Code` that name the code itself: the artifact does that.
const OF_ARTIFACT: &[&str] = &[
    "ImageUri",
    "S3Bucket",
    "S3Key",
    "S3ObjectVersion",
    "ZipFile",
];

/// What is deployed.
pub(super) struct Artifact {
    /// `Code` of `CreateFunction`, and members of `UpdateFunctionCode`.
    pub(super) code: Map<String, Value>,
    /// As people call it.
    pub(super) name: String,
    pub(super) is_image: bool,
}

/// The artifact of the stage's service, with what else the definition's `Code` says.
pub(super) fn read(
    cx: &StepContext<'_>,
    service: &ServicePlan,
    written: Option<Value>,
) -> Result<Artifact, Failure> {
    let Some(artifact) = &service.artifact else {
        return Err(invalid(format!(
            "service {} has no primary artifact, and step {} deploys one: a package in S3 (AmazonS3) or an image in \
             ECR (Ecr).",
            service.identifier,
            cx.step().identifier
        )));
    };
    let mut code = match written {
        Some(Value::Object(code)) => code,
        _ => Map::new(),
    };
    code.retain(|name, _| !OF_ARTIFACT.contains(&name.as_str()));
    match artifact.kind.as_str() {
        "AmazonS3" => package(cx, artifact, code),
        "Ecr" => image(cx, artifact, code),
        other => Err(invalid(format!(
            "artifact {} is of type {other}: AWS Lambda takes packages from AmazonS3 and images from Ecr.",
            artifact.identifier
        ))),
    }
}

fn package(
    cx: &StepContext<'_>,
    artifact: &ArtifactPlan,
    mut code: Map<String, Value>,
) -> Result<Artifact, Failure> {
    let spec = cx.evaluate(&artifact.spec)?;
    let field = |name: &str| {
        text(&spec, name).ok_or_else(|| {
            invalid(format!(
                "`{name}` of artifact {} is empty.",
                artifact.identifier
            ))
        })
    };
    let (bucket, key) = (field("bucketName")?, field("filePath")?);
    let name = format!("s3://{bucket}/{key}");
    code.insert("S3Bucket".to_owned(), json!(bucket));
    code.insert("S3Key".to_owned(), json!(key));
    if let Some(version) = artifact.digest() {
        code.insert("S3ObjectVersion".to_owned(), json!(version));
    }
    Ok(Artifact {
        code,
        name,
        is_image: false,
    })
}

fn image(
    cx: &StepContext<'_>,
    artifact: &ArtifactPlan,
    mut code: Map<String, Value>,
) -> Result<Artifact, Failure> {
    let evaluated = cx.evaluate(&json!(artifact.image))?;
    let Some(uri) = evaluated.as_str().filter(|uri| !uri.trim().is_empty()) else {
        return Err(invalid(format!(
            "artifact {} names no image: check its `imagePath`, `region` and `tag`.",
            artifact.identifier
        )));
    };
    code.insert("ImageUri".to_owned(), json!(uri));
    Ok(Artifact {
        code,
        name: uri.to_owned(),
        is_image: true,
    })
}
