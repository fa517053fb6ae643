//! Repositories of ECR, and what tasks do whose images are in them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::{Aws, Refusal};

const HOST: &str = "123456789012.dkr.ecr.us-east-1.amazonaws.com";

impl Aws {
    pub(crate) async fn ecr(&self, operation: &str, body: Value) -> Value {
        let answer = self.try_ecr(operation, body).await;
        answer.unwrap_or_else(|refusal| panic!("{operation}: {refusal:?}"))
    }

    /// Pushes a manifest; its digest.
    async fn push(&self, manifest: &str, tag: &str) -> String {
        let body =
            json!({"repositoryName": "shop/web", "imageManifest": manifest, "imageTag": tag});
        let put = self.ecr("PutImage", body).await;
        let digest = put["image"]["imageId"]["imageDigest"].as_str();
        digest.expect("a digest").to_owned()
    }
}

fn said(refusal: Result<Value, Refusal>) -> String {
    let (code, message) = refusal.expect_err("a refusal");
    format!("{code}: {message}")
}

#[tokio::test(start_paused = true)]
async fn a_tag_moves_and_a_digest_stays() {
    let aws = Aws::new();
    let made = aws
        .ecr("CreateRepository", json!({"repositoryName": "shop/web"}))
        .await;
    assert_eq!(
        made["repository"]["repositoryUri"],
        format!("{HOST}/shop/web")
    );
    let first = aws.push("{\"a\": 1}", "v1").await;
    let second = aws.push("{\"a\": 2}", "v1").await;
    assert_ne!(first, second);
    let by = async |id: Value| {
        let body = json!({"repositoryName": "shop/web", "imageIds": [id]});
        aws.ecr("DescribeImages", body).await["imageDetails"][0].clone()
    };
    let now = by(json!({"imageTag": "v1"})).await;
    assert_eq!(
        (now["imageDigest"].as_str(), &now["imageTags"]),
        (Some(second.as_str()), &json!(["v1"]))
    );
    assert_eq!(now["imagePushedAt"], 1_767_225_600.0);
    assert_eq!(
        by(json!({"imageDigest": first})).await["imageTags"],
        Value::Null
    );

    let body =
        json!({"repositoryName": "shop/web", "imageIds": [{"imageTag": "v1"}, {"imageTag": "v2"}]});
    let got = aws.ecr("BatchGetImage", body).await;
    assert_eq!(got["images"][0]["imageManifest"], "{\"a\": 2}");
    assert_eq!(got["failures"][0]["failureCode"], "ImageNotFound");

    aws.push("{\"a\": 3}", "v3").await;
    let list = json!({"repositoryName": "shop/web", "maxResults": 2});
    let page = aws.ecr("ListImages", list.clone()).await;
    assert_eq!(page["imageIds"].as_array().map(Vec::len), Some(2));
    let mut rest = list;
    rest["nextToken"] = page["nextToken"].clone();
    let rest = aws.ecr("ListImages", rest).await;
    assert_eq!(
        (
            rest["imageIds"].as_array().map(Vec::len),
            &rest["nextToken"]
        ),
        (Some(1), &Value::Null)
    );
}

#[tokio::test(start_paused = true)]
async fn what_ecr_refuses_it_refuses_in_its_own_words() {
    let aws = Aws::new();
    let mut all = Vec::new();
    let named = json!({"repositoryName": "shop/web"});
    all.push(said(aws.try_ecr("DescribeImages", named.clone()).await));
    all.push(said(
        aws.try_ecr("CreateRepository", json!({"repositoryName": "Shop"}))
            .await,
    ));
    let fixed = json!({"repositoryName": "shop/web", "imageTagMutability": "IMMUTABLE"});
    aws.ecr("CreateRepository", fixed.clone()).await;
    all.push(said(aws.try_ecr("CreateRepository", fixed).await));
    aws.push("{\"a\": 1}", "v1").await;
    let mut put =
        json!({"repositoryName": "shop/web", "imageManifest": "{\"a\": 1}", "imageTag": "v1"});
    all.push(said(aws.try_ecr("PutImage", put.clone()).await));
    put["imageManifest"] = json!("{\"a\": 2}");
    all.push(said(aws.try_ecr("PutImage", put.clone()).await));
    put["imageManifest"] = json!("no");
    all.push(said(aws.try_ecr("PutImage", put).await));
    let gone = json!({"repositoryName": "shop/web", "imageIds": [{"imageTag": "v9"}]});
    all.push(said(aws.try_ecr("DescribeImages", gone).await));
    let other = json!({"repositoryName": "shop/web", "registryId": "999999999999"});
    all.push(said(aws.try_ecr("ListImages", other).await));
    all.push(said(aws.try_ecr("DeleteRepository", named).await));
    all.push(said(aws.try_ecr("StartImageScan", json!({})).await));
    insta::assert_snapshot!(all.join("\n"), @"
    RepositoryNotFoundException: The repository with name 'shop/web' does not exist in the registry with id '123456789012'
    InvalidParameterException: Invalid parameter at 'repositoryName' failed to satisfy constraint: 'must satisfy regular expression '(?:[a-z0-9]+(?:[._-][a-z0-9]+)*/)*[a-z0-9]+(?:[._-][a-z0-9]+)*''
    RepositoryAlreadyExistsException: The repository with name 'shop/web' already exists in the registry with id '123456789012'
    ImageAlreadyExistsException: Image with digest 'sha256:f9d86028c6e0d64e225186f96acb69338b2c59764df79162107f5c4bb34d1310' and tag 'v1' already exists in the repository with name 'shop/web' in registry with id '123456789012'
    ImageTagAlreadyExistsException: The image tag 'v1' already exists in the 'shop/web' repository and cannot be overwritten because the repository is immutable.
    InvalidParameterException: Invalid parameter at 'ImageManifest' failed to satisfy constraint: 'Invalid JSON syntax'
    ImageNotFoundException: The image with imageId {imageDigest:'null', imageTag:'v9'} does not exist within the repository with name 'shop/web' in the registry with id '123456789012'
    RepositoryNotFoundException: The repository with name 'shop/web' does not exist in the registry with id '999999999999'
    RepositoryNotEmptyException: The repository with name 'shop/web' in registry with id '123456789012' cannot be deleted because it still contains images
    UnknownOperationException: The sandbox account does not implement the operation StartImageScan.
    ");
    aws.ecr(
        "DeleteRepository",
        json!({"repositoryName": "shop/web", "force": true}),
    )
    .await;
    assert_eq!(
        aws.ecr("DescribeRepositories", json!({})).await["repositories"],
        json!([])
    );
}

/// Deploys an image, and tells of the first task of it that has this status for good.
async fn deployed(aws: &Aws, image: &str, status: &str) -> String {
    let arn = aws.register(image).await;
    let body = json!({"cluster": "c", "service": "web", "taskDefinition": arn});
    aws.ecs("UpdateService", body).await;
    for _ in 0..60 {
        aws.pass(5).await;
        let wanted = json!({"cluster": "c", "desiredStatus": status});
        let listed = aws.ecs("ListTasks", wanted).await;
        if listed["taskArns"].as_array().is_none_or(Vec::is_empty) {
            continue;
        }
        let body = json!({"cluster": "c", "tasks": listed["taskArns"]});
        let tasks = aws.ecs("DescribeTasks", body).await;
        let mut tasks = tasks["tasks"].as_array().into_iter().flatten();
        let ours = |task: &&Value| {
            task["taskDefinitionArn"] == arn.as_str() && task["lastStatus"] == status
        };
        if let Some(task) = tasks.find(ours) {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let digest = text(&task["containers"][0]["imageDigest"]);
            return text(&task["stoppedReason"]) + &digest;
        }
    }
    format!("no task of {image} is {status}")
}

#[tokio::test(start_paused = true)]
async fn tasks_start_where_their_repository_has_the_image() {
    let aws = Aws::new();
    let surge = json!({"minimumHealthyPercent": 100, "maximumPercent": 200});
    aws.steady_service(1, surge).await;
    // There is no such repository, whatever the image is called.
    let nowhere = deployed(&aws, &format!("{HOST}/shop/web:v1"), "STOPPED").await;
    let expected =
        format!("failed to resolve ref {HOST}/shop/web:v1: {HOST}/shop/web:v1: not found");
    assert!(nowhere.contains(&expected), "{nowhere}");
    // What is in other registries is not known.
    let other = HOST.replace("123456789012", "210987654321");
    let any = deployed(&aws, &format!("{other}/shop/web:v1"), "RUNNING").await;
    assert!(any.starts_with("sha256:"), "{any}");
    let named = json!({"repositoryName": "shop/web"});
    aws.ecr("CreateRepository", named).await;
    let digest = aws.push("{\"a\": 1}", "v1").await;
    assert_ne!(any, digest);
    for name in [":v1".to_owned(), format!("@{digest}")] {
        let image = format!("{HOST}/shop/web{name}");
        assert_eq!(deployed(&aws, &image, "RUNNING").await, digest, "{image}");
    }
    let gone = deployed(&aws, &format!("{HOST}/shop/web:v2"), "STOPPED").await;
    let expected = "shop/web:v2: not found";
    assert!(
        gone.contains("CannotPullContainerError") && gone.contains(expected),
        "{gone}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_for_docker_login() {
    let aws = Aws::new();
    let given = aws.ecr("GetAuthorizationToken", json!({})).await;
    let [one] = given["authorizationData"]
        .as_array()
        .expect("data")
        .as_slice()
    else {
        panic!("{given}");
    };
    assert_eq!(one["proxyEndpoint"], format!("https://{HOST}"));
    let token = one["authorizationToken"].as_str().expect("a token");
    let decoded = STANDARD.decode(token).expect("base64");
    assert!(decoded.starts_with(b"AWS:") && decoded.len() > 20);
    // It is good for twelve hours.
    assert_eq!(one["expiresAt"], 1_767_225_600.0 + 43_200.0);
    let again = aws
        .ecr(
            "GetAuthorizationToken",
            json!({"registryIds": ["210987654321"]}),
        )
        .await;
    let again = &again["authorizationData"][0];
    assert_ne!(again["authorizationToken"], one["authorizationToken"]);
    assert_eq!(
        again["proxyEndpoint"],
        "https://210987654321.dkr.ecr.us-east-1.amazonaws.com"
    );
    let refused = said(
        aws.try_ecr("GetAuthorizationToken", json!({"registryIds": ["mine"]}))
            .await,
    );
    assert!(
        refused.starts_with("InvalidParameterException"),
        "{refused}"
    );
}
