//! Lambda functions over time, in REST-JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use slipway_sandbox::{ImageBehaviour, ImageRule, Object, ObjectError, Objects, RoleRule};

use crate::support::{Aws, Refusal};

pub(crate) const FUNCTIONS: &str = "/2015-03-31/functions";
const ROLE: &str = "arn:aws:iam::123456789012:role/shop";

/// Buckets of these tests: one, with packages by key.
struct Bucket(BTreeMap<&'static str, &'static [u8]>);

impl Objects for Bucket {
    fn read(
        &self,
        bucket: String,
        key: String,
        _version: Option<String>,
    ) -> BoxFuture<'static, Result<Object, ObjectError>> {
        let found = self.0.get(key.as_str()).filter(|_| bucket == "code");
        let found = found.map(|bytes| Object {
            bytes: Bytes::from_static(bytes),
            version: None,
        });
        let missing = ObjectError {
            code: "NoSuchKey".to_owned(),
            message: "The specified key does not exist.".to_owned(),
        };
        Box::pin(async move { found.ok_or(missing) })
    }
}

impl Aws {
    /// Status and body, or code and message, of a request to Lambda.
    pub(crate) async fn rest(
        &self,
        method: &str,
        path: &str,
        body: Value,
    ) -> Result<(u16, Value), Refusal> {
        let authorization = self.authorization().replace("/ecs/", "/lambda/");
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = Request::builder()
            .method(method)
            .uri(format!("http://sandbox{path}"));
        let request = request
            .header("authorization", authorization)
            .body(Body::from(body));
        let response = self.send(request.expect("a request")).await;
        let status = response.status().as_u16();
        let code = response.headers().get("x-amzn-errortype").cloned();
        let bytes = response
            .into_body()
            .collect()
            .await
            .expect("a body")
            .to_bytes();
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        match code {
            None => Ok((status, body)),
            Some(code) => {
                let message = body["Message"].as_str().unwrap_or_default().to_owned();
                Err((
                    format!("{status} {}", code.to_str().expect("text")),
                    message,
                ))
            }
        }
    }

    pub(crate) async fn lambda(&self, method: &str, path: &str, body: Value) -> Value {
        match self.rest(method, &format!("{FUNCTIONS}{path}"), body).await {
            Ok((_, answer)) => answer,
            Err(refusal) => panic!("{method} {path}: {refusal:?}"),
        }
    }

    pub(crate) async fn refusal(&self, method: &str, path: &str, body: Value) -> String {
        let refused = self.rest(method, &format!("{FUNCTIONS}{path}"), body).await;
        let (code, message) = refused.expect_err("a refusal");
        format!("{code}: {message}")
    }

    /// An account with packages of S3.
    pub(crate) fn with_packages() -> Self {
        let aws = Self::new();
        let packages: BTreeMap<&str, &[u8]> = BTreeMap::from([
            ("shop-1.zip", &b"PK\x03\x04one"[..]),
            ("shop-2.zip", &b"PK\x03\x04two!"[..]),
            ("shop.txt", &b"not a package"[..]),
        ]);
        aws.sandbox.read_objects_from(Arc::new(Bucket(packages)));
        aws
    }

    /// Creates the function `shop`, and waits for it.
    pub(crate) async fn shop(&self) {
        self.lambda("POST", "", function("shop")).await;
        self.pass(10).await;
    }

    pub(crate) async fn publish(&self, key: &str) -> Value {
        let code = json!({"S3Bucket": "code", "S3Key": key});
        self.lambda("PUT", "/shop/code", code).await;
        self.pass(10).await;
        let version = self.lambda("POST", "/shop/versions", json!({})).await;
        self.pass(10).await;
        version["Version"].clone()
    }

    /// State and update of a function or version.
    async fn state(&self, name: &str) -> String {
        let found = self
            .lambda("GET", &format!("/{name}/configuration"), Value::Null)
            .await;
        let text = |name: &str| found[name].as_str().unwrap_or("-").to_owned();
        format!(
            "{} {} {}",
            text("Version"),
            text("State"),
            text("LastUpdateStatus")
        )
    }
}

/// `CreateFunction` of a package.
pub(crate) fn function(name: &str) -> Value {
    json!({
        "FunctionName": name, "Runtime": "nodejs22.x", "Handler": "index.handler", "Role": ROLE,
        "Code": {"S3Bucket": "code", "S3Key": "shop-1.zip"},
    })
}

fn image(uri: &str) -> Value {
    let uri = format!("123456789012.dkr.ecr.us-east-1.amazonaws.com/{uri}");
    json!({"FunctionName": "shop", "PackageType": "Image", "Role": ROLE, "Code": {"ImageUri": uri}})
}

#[tokio::test(start_paused = true)]
async fn a_function_is_pending_then_active_and_changes_one_at_a_time() {
    let aws = Aws::with_packages();
    let mut trace = Vec::new();
    let made = aws.lambda("POST", "", function("shop")).await;
    assert_eq!(
        (&made["State"], &made["CodeSize"]),
        (&json!("Pending"), &json!(7))
    );
    assert_eq!(
        made["FunctionArn"],
        "arn:aws:lambda:us-east-1:123456789012:function:shop"
    );
    trace.push(aws.state("shop").await);
    trace.push(
        aws.refusal("PUT", "/shop/configuration", json!({"Timeout": 9}))
            .await,
    );
    trace.push(aws.refusal("POST", "/shop/versions", json!({})).await);
    aws.pass(4).await;
    trace.push(aws.state("shop").await);
    let published = aws
        .lambda("POST", "/shop/versions", json!({"Description": "first"}))
        .await;
    assert_eq!(
        published["FunctionArn"],
        "arn:aws:lambda:us-east-1:123456789012:function:shop:1"
    );
    assert_eq!(published["Description"], "first");
    trace.push(aws.state("shop:1").await);
    let again = aws.lambda("POST", "/shop/versions", json!({})).await;
    assert_eq!(again["Version"], "1", "nothing has changed");
    aws.pass(4).await;
    trace.push(aws.state("shop:1").await);
    let changed = aws
        .lambda("PUT", "/shop/configuration", json!({"Timeout": 9}))
        .await;
    assert_eq!(changed["Timeout"], 9);
    trace.push(aws.state("shop").await);
    trace.push(
        aws.refusal(
            "PUT",
            "/shop/code",
            json!({"S3Bucket": "code", "S3Key": "shop-2.zip"}),
        )
        .await,
    );
    aws.pass(4).await;
    let next = aws.lambda("POST", "/shop/versions", json!({})).await;
    assert_eq!(
        (&next["Version"], &next["Timeout"]),
        (&json!("2"), &json!(9))
    );
    let first = aws
        .lambda("GET", "/shop:1/configuration", Value::Null)
        .await;
    assert_eq!(first["Timeout"], 3, "a version does not change");
    insta::assert_snapshot!(trace.join("\n"), @"
    $LATEST Pending InProgress
    409 ResourceConflictException: The operation cannot be performed at this time. The function is currently in the following state: Pending
    409 ResourceConflictException: The operation cannot be performed at this time. The function is currently in the following state: Pending
    $LATEST Active Successful
    1 Pending InProgress
    1 Active Successful
    $LATEST Active InProgress
    409 ResourceConflictException: The operation cannot be performed at this time. An update is in progress for resource: arn:aws:lambda:us-east-1:123456789012:function:shop
    ");
}

#[tokio::test(start_paused = true)]
async fn the_code_is_what_s3_or_the_request_holds() {
    let aws = Aws::with_packages();
    aws.shop().await;
    let one = aws.lambda("GET", "/shop", Value::Null).await;
    let location = one["Code"]["Location"].as_str().expect("a place");
    let path = location.split_once("/_sandbox").expect("of the sandbox").1;
    let request = Request::get(format!("/_sandbox{path}")).body(Body::empty());
    let downloaded = aws.send(request.expect("a request")).await;
    let bytes = downloaded
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    assert_eq!(&bytes[..], b"PK\x03\x04one");

    let dry = json!({"S3Bucket": "code", "S3Key": "shop-2.zip", "DryRun": true});
    let tried = aws.lambda("PUT", "/shop/code", dry).await;
    assert_ne!(tried["CodeSha256"], one["Configuration"]["CodeSha256"]);
    let still = aws.lambda("GET", "/shop/configuration", Value::Null).await;
    assert_eq!(still, one["Configuration"], "nothing was done");

    let inline = json!({"ZipFile": STANDARD.encode(b"PK\x03\x04two!")});
    let sent = aws.lambda("PUT", "/shop/code", inline).await;
    assert_eq!(sent["CodeSha256"], tried["CodeSha256"], "the same package");
    aws.pass(10).await;
    let mut said = Vec::new();
    for code in [
        json!({"S3Bucket": "code", "S3Key": "none.zip"}),
        json!({"S3Bucket": "code", "S3Key": "shop.txt"}),
        json!({"S3Bucket": "code"}),
        json!({"ImageUri": "123456789012.dkr.ecr.us-east-1.amazonaws.com/shop:1"}),
        json!({"ZipFile": "*"}),
        json!({}),
        json!({"S3Bucket": "code", "S3Key": "shop-1.zip", "RevisionId": "old"}),
    ] {
        said.push(aws.refusal("PUT", "/shop/code", code).await);
    }
    insta::assert_snapshot!(said.join("\n"), @"
    400 InvalidParameterValueException: Error occurred while GetObject. S3 Error Code: NoSuchKey. S3 Error Message: The specified key does not exist.
    400 InvalidParameterValueException: Could not unzip uploaded file. Please check your file, then try to upload again.
    400 InvalidParameterValueException: Please provide S3Key with S3Bucket.
    400 InvalidParameterValueException: Please don't provide ImageUri when updating a function with packageType Zip.
    400 SerializationException: ZipFile is not base64.
    400 InvalidParameterValueException: Please provide a source for function code.
    412 PreconditionFailedException: The RevisionId provided does not match the latest RevisionId. Call the GetFunction/GetFunctionConfiguration API to retrieve the latest RevisionId for your resource.
    ");
}

#[tokio::test(start_paused = true)]
async fn what_fails_says_why_and_when() {
    let aws = Aws::with_packages();
    let rule = ImageRule {
        image: "123456789012.dkr.ecr.us-east-1.amazonaws.com/shop:bad".to_owned(),
        behaviour: ImageBehaviour::Exits,
        exit_code: 1,
    };
    aws.sandbox.set_image(rule).expect("a rule");
    let named = json!({"repositoryName": "shop"});
    let mut said = vec![aws.refusal("POST", "", image("shop:good")).await];
    aws.ecr("CreateRepository", named).await;
    for tag in ["good", "bad"] {
        let manifest = json!({"tag": tag}).to_string();
        let put = json!({"repositoryName": "shop", "imageManifest": manifest, "imageTag": tag});
        aws.ecr("PutImage", put).await;
    }
    said.push(aws.refusal("POST", "", image("shop:missing")).await);
    aws.lambda("POST", "", image("shop:bad")).await;
    aws.pass(4).await;
    said.push(aws.state("shop").await);
    aws.pass(4).await;
    said.push(aws.state("shop").await);
    let broken = aws.lambda("GET", "/shop", Value::Null).await;
    said.push(broken["Configuration"]["StateReason"].to_string());
    said.push(broken["Code"]["ResolvedImageUri"].to_string());
    let good = image("shop:good")["Code"].clone();
    aws.lambda("PUT", "/shop/code", good).await;
    aws.pass(8).await;
    said.push(aws.state("shop").await);
    let full = json!({"VpcConfig": {"SubnetIds": ["subnet-full-1"], "SecurityGroupIds": ["sg-1"]}});
    aws.lambda("PUT", "/shop/configuration", full).await;
    aws.pass(8).await;
    said.push(aws.state("shop").await);
    said.push(aws.refusal("POST", "/shop/versions", json!({})).await);
    insta::assert_snapshot!(said.join("\n"), @r#"
    400 InvalidParameterValueException: Source image 123456789012.dkr.ecr.us-east-1.amazonaws.com/shop:good does not exist. Provide a valid source image.
    400 InvalidParameterValueException: Source image 123456789012.dkr.ecr.us-east-1.amazonaws.com/shop:missing does not exist. Provide a valid source image.
    $LATEST Pending InProgress
    $LATEST Failed Failed
    "The image is not valid: its entry point does not start."
    "123456789012.dkr.ecr.us-east-1.amazonaws.com/shop@sha256:8ee5b8c87c5e449240dbdd399b3afb3cdc74fee226caff5d4e961d5828a7f934"
    $LATEST Active Successful
    $LATEST Active Failed
    409 ResourceConflictException: The operation cannot be performed at this time. The last update of the function failed: The subnet subnet-full-1 has no addresses left for network interfaces.
    "#);
}

#[tokio::test(start_paused = true)]
async fn limits_and_roles() {
    let aws = Aws::with_packages();
    aws.shop().await;
    let role = |name: &str| format!("arn:aws:iam::123456789012:role/{name}");
    let rule = RoleRule {
        arn: role("nobody"),
        external_id: None,
        denied: true,
    };
    aws.sandbox.set_role(rule).expect("a rule");
    let long = "x".repeat(5_000);
    let mut said = vec![aws.refusal("POST", "", function("shop")).await];
    for (member, value) in [
        ("FunctionName", json!("x".repeat(65))),
        ("FunctionName", json!("shop one")),
        ("Role", json!(role("not-passable"))),
        ("Role", json!(role("nobody"))),
        ("Role", json!("shop")),
        ("Role", Value::Null),
        ("Handler", Value::Null),
        ("Runtime", json!("cobol")),
        ("Runtime", json!("nodejs8.10")),
        ("Timeout", json!(901)),
        ("Timeout", json!("9")),
        ("MemorySize", json!(64)),
        ("PackageType", json!("Tar")),
        ("Code", Value::Null),
        ("Environment", json!({"Variables": {"AWS_REGION": "x"}})),
        ("Environment", json!({"Variables": {"LONG": long}})),
        ("Layers", json!(["a", "b", "c", "d", "e", "f"])),
        ("Tags", json!({"aws:x": "y"})),
    ] {
        let mut wrong = function("other");
        wrong[member] = value;
        said.push(aws.refusal("POST", "", wrong).await);
    }
    insta::assert_snapshot!(said.join("\n"), @r"
    409 ResourceConflictException: Function already exist: shop
    400 ValidationException: 1 validation error detected: Value 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' at 'functionName' failed to satisfy constraint: Member must have length less than or equal to 64
    400 ValidationException: 1 validation error detected: Value 'shop one' at 'functionName' failed to satisfy constraint: Member must satisfy regular expression pattern: (arn:(aws[a-zA-Z-]*)?:lambda:)?([a-z]{2}(-gov)?-[a-z]+-\d{1}:)?(\d{12}:)?(function:)?([a-zA-Z0-9-_]+)(:(\$LATEST|[a-zA-Z0-9-_]+))?
    403 AccessDeniedException: User: arn:aws:iam::123456789012:root is not authorized to perform: iam:PassRole on resource: arn:aws:iam::123456789012:role/not-passable because no identity-based policy allows the iam:PassRole action
    400 InvalidParameterValueException: The role defined for the function cannot be assumed by Lambda.
    400 ValidationException: 1 validation error detected: Value 'shop' at 'role' failed to satisfy constraint: Member must satisfy regular expression pattern: arn:(aws[a-zA-Z-]*)?:iam::\d{12}:role/?[a-zA-Z_0-9+=,.@\-_/]+
    400 ValidationException: 1 validation error detected: Value null at 'role' failed to satisfy constraint: Member must not be null
    400 InvalidParameterValueException: Runtime and Handler are mandatory parameters for functions created with deployment packages.
    400 InvalidParameterValueException: Value cobol at 'runtime' failed to satisfy constraint: Member must satisfy enum value set: [dotnet10, dotnet6, dotnet8, dotnetcore1.0, dotnetcore2.0, dotnetcore2.1, dotnetcore3.1, go1.x, java11, java17, java21, java25, java8, java8.al2, nodejs, nodejs10.x, nodejs12.x, nodejs14.x, nodejs16.x, nodejs18.x, nodejs20.x, nodejs22.x, nodejs24.x, nodejs4.3, nodejs4.3-edge, nodejs6.10, nodejs8.10, provided, provided.al2, provided.al2023, python2.7, python3.10, python3.11, python3.12, python3.13, python3.14, python3.6, python3.7, python3.8, python3.9, ruby2.5, ruby2.7, ruby3.2, ruby3.3, ruby3.4] or be a valid ARN
    400 InvalidParameterValueException: The runtime parameter of nodejs8.10 is no longer supported for creating or updating AWS Lambda functions. We recommend you use a supported runtime while creating or updating functions.
    400 ValidationException: 1 validation error detected: Value '901' at 'timeout' failed to satisfy constraint: Member must have value less than or equal to 900
    400 SerializationException: Timeout: a string can not be converted to Integer
    400 ValidationException: 1 validation error detected: Value '64' at 'memorySize' failed to satisfy constraint: Member must have value greater than or equal to 128
    400 ValidationException: 1 validation error detected: Value 'Tar' at 'packageType' failed to satisfy constraint: Member must satisfy enum value set: [Zip, Image]
    400 ValidationException: 1 validation error detected: Value null at 'code' failed to satisfy constraint: Member must not be null
    400 InvalidParameterValueException: Lambda was unable to configure your environment variables because the environment variables you have provided contains reserved keys that are currently not supported for modification. Reserved keys used in this request: AWS_REGION
    400 InvalidParameterValueException: Lambda was unable to configure your environment variables because the environment variables you have provided exceeded the 4KB limit.
    400 InvalidParameterValueException: Layers consume more than the available size or are more than 5.
    400 InvalidParameterValueException: Tags beginning with aws: are reserved.
    ");
}

#[tokio::test(start_paused = true)]
async fn names_pages_tags_and_the_rest() {
    let aws = Aws::with_packages();
    for number in 0..60 {
        aws.lambda("POST", "", function(&format!("f{number:02}")))
            .await;
    }
    aws.pass(10).await;
    let first = aws.lambda("GET", "", Value::Null).await;
    assert_eq!(first["Functions"].as_array().map(Vec::len), Some(50));
    let marker = first["NextMarker"].as_str().expect("more");
    let rest = aws
        .lambda("GET", &format!("?Marker={marker}&MaxItems=20"), Value::Null)
        .await;
    assert_eq!(rest["Functions"][0]["FunctionName"], "f50");
    assert_eq!(
        (
            rest["Functions"].as_array().map(Vec::len),
            &rest["NextMarker"]
        ),
        (Some(10), &Value::Null)
    );

    let arn = "arn%3Aaws%3Alambda%3Aus-east-1%3A123456789012%3Afunction%3Af01";
    for name in [
        "f01",
        "123456789012:function:f01",
        "function:f01",
        arn,
        "f01?Qualifier=$LATEST",
    ] {
        let found = aws.lambda("GET", &format!("/{name}"), Value::Null).await;
        assert_eq!(found["Configuration"]["FunctionName"], "f01", "{name}");
    }
    let tags = format!("/2017-03-31/tags/{arn}");
    aws.rest("POST", &tags, json!({"Tags": {"team": "shop", "old": "1"}}))
        .await
        .expect("tagged");
    aws.rest("DELETE", &format!("{tags}?tagKeys=old"), Value::Null)
        .await
        .expect("untagged");
    let tagged = aws.rest("GET", &tags, Value::Null).await.expect("tags");
    assert_eq!(tagged.1, json!({"Tags": {"team": "shop"}}));

    let reserve = |count: i64| json!({"ReservedConcurrentExecutions": count});
    aws.rest("PUT", "/2017-10-31/functions/f01/concurrency", reserve(10))
        .await
        .expect("reserved");
    let kept = aws.lambda("GET", "/f01", Value::Null).await;
    assert_eq!(kept["Concurrency"], reserve(10));
    let (code, _) = aws
        .rest("PUT", "/2017-10-31/functions/f02/concurrency", reserve(891))
        .await
        .expect_err("too many");
    assert_eq!(code, "400 InvalidParameterValueException");

    let url = "/2021-10-31/functions/f01/url";
    let made = aws
        .rest("POST", url, json!({"AuthType": "NONE"}))
        .await
        .expect("a URL");
    assert_eq!(made.0, 201);
    assert!(
        aws.rest("POST", url, json!({"AuthType": "NONE"}))
            .await
            .is_err()
    );
    aws.rest("DELETE", url, Value::Null).await.expect("gone");
    assert_eq!(
        aws.rest("GET", url, Value::Null).await.expect_err("gone").0,
        "404 ResourceNotFoundException"
    );

    let allow = json!({"StatementId": "api", "Action": "lambda:InvokeFunction", "Principal": "apigateway.amazonaws.com"});
    aws.lambda("POST", "/f01/policy", allow.clone()).await;
    assert!(
        aws.refusal("POST", "/f01/policy", allow)
            .await
            .starts_with("409")
    );
    aws.lambda("DELETE", "/f01/policy/api", Value::Null).await;
    assert!(
        aws.refusal("GET", "/f01/policy", Value::Null)
            .await
            .starts_with("404")
    );
    let unknown = aws.refusal("POST", "/f01/retries", json!({})).await;
    assert!(
        unknown.contains("does not implement the operation POST"),
        "{unknown}"
    );
}
