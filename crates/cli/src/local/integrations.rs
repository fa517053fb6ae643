//! What tasks and distributed maps of state machines reach in local mode: the embedded S3 and DynamoDB.
//!
//! Errors are named as Step Functions names them: by the exception of the SDK for Java behind `S3.` or `DynamoDb.`, and
//! `DynamoDB.` for the optimized integration (recordings of AWS, `shared/asl/vectors`).

use async_trait::async_trait;
use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::primitives::ByteStream;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::{Map, Value, json};
use slipway_asl::{LambdaError, ServiceCall, Services};
use tower::ServiceExt;

/// Largest answer of DynamoDB, with some more: a batch has 16 MiB.
const LARGEST_ANSWER: usize = 32 * 1024 * 1024;
/// Largest object whose text a machine may take in, bytes: results have 256 KiB, files of items many of these.
const LARGEST_OBJECT: i64 = 512 * 1024 * 1024;

/// Reaches the services of local mode for `crates/asl`.
pub struct Integrations {
    /// Of the embedded S3.
    pub s3: aws_sdk_s3::Client,
    /// The embedded services by HTTP, DynamoDB among them.
    pub store: Router,
    /// Holds Slipway's own plans and logs, which no machine may touch.
    pub own_bucket: String,
}

#[async_trait]
impl Services for Integrations {
    async fn call(&self, call: &ServiceCall) -> Result<Value, LambdaError> {
        let (service, optimized) = match call.service.strip_prefix("aws-sdk:") {
            Some(service) => (service, false),
            None => (call.service.as_str(), true),
        };
        match (service, call.action.split_once('.')) {
            ("s3", None) => self.object(&call.action, &call.parameters).await,
            ("dynamodb", None) => self.table(&call.action, &call.parameters, optimized).await,
            _ => Err(elsewhere(call)),
        }
    }

    async fn finish(&self, call: &ServiceCall, _: &Value) -> Result<Value, LambdaError> {
        Err(elsewhere(call))
    }
}

/// No such service stands behind the port.
fn elsewhere(call: &ServiceCall) -> LambdaError {
    LambdaError {
        error_type: "States.TaskFailed".to_owned(),
        message: format!(
            "Local mode has S3 and DynamoDB for state machines: {}:{} of the state {} can be called on AWS only",
            call.service, call.action, call.state
        ),
    }
}

impl Integrations {
    async fn object(&self, action: &str, parameters: &Value) -> Result<Value, LambdaError> {
        let text = |name: &str| parameters.get(name).and_then(Value::as_str);
        let given = |name: &str| text(name).map(str::to_owned);
        let bucket = text("Bucket").unwrap_or_default();
        if bucket == self.own_bucket {
            return Err(s3_error("AccessDenied", "Access Denied", 403));
        }
        match action {
            "getObject" => {
                let call = self.s3.get_object().bucket(bucket);
                let call = call
                    .set_key(given("Key"))
                    .set_version_id(given("VersionId"));
                let found = call.send().await.map_err(|error| refused(&error))?;
                if found
                    .content_length()
                    .is_some_and(|length| length > LARGEST_OBJECT)
                {
                    let why = format!("The object has more than {LARGEST_OBJECT} bytes");
                    return Err(s3_error("EntityTooLarge", &why, 400));
                }
                let (etag, length) = (found.e_tag().map(str::to_owned), found.content_length());
                let bytes = found.body.collect().await;
                let bytes =
                    bytes.map_err(|error| s3_error("InternalError", &error.to_string(), 500))?;
                let body = String::from_utf8_lossy(&bytes.into_bytes()).into_owned();
                Ok(json!({"Body": body, "ContentLength": length, "ETag": etag}))
            }
            "putObject" => {
                let body = match &parameters["Body"] {
                    Value::String(text) => text.clone(),
                    Value::Null => String::new(),
                    other => other.to_string(),
                };
                let call = self.s3.put_object().bucket(bucket).set_key(given("Key"));
                let call = call.set_content_type(given("ContentType"));
                let put = call.body(ByteStream::from(body.into_bytes())).send().await;
                let put = put.map_err(|error| refused(&error))?;
                Ok(json!({"ETag": put.e_tag()}))
            }
            "headObject" => {
                let call = self.s3.head_object().bucket(bucket).set_key(given("Key"));
                let head = call.send().await.map_err(|error| refused(&error))?;
                Ok(json!({"ContentLength": head.content_length(), "ETag": head.e_tag()}))
            }
            "deleteObject" => {
                let call = self.s3.delete_object().bucket(bucket).set_key(given("Key"));
                call.send().await.map_err(|error| refused(&error))?;
                Ok(json!({}))
            }
            "listObjectsV2" => self.list(bucket, parameters).await,
            other => Err(s3_error(
                "NotImplemented",
                &format!("Local mode does not call s3:{other} for state machines"),
                501,
            )),
        }
    }

    async fn list(&self, bucket: &str, parameters: &Value) -> Result<Value, LambdaError> {
        let given = |name: &str| {
            parameters
                .get(name)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let most = parameters.get("MaxKeys").and_then(Value::as_i64);
        let call = self
            .s3
            .list_objects_v2()
            .bucket(bucket)
            .set_prefix(given("Prefix"))
            .set_start_after(given("StartAfter"))
            .set_continuation_token(given("ContinuationToken"))
            .set_max_keys(most.and_then(|most| i32::try_from(most).ok()));
        let page = call.send().await.map_err(|error| refused(&error))?;
        let item = |object: &aws_sdk_s3::types::Object| {
            json!({
                "Etag": object.e_tag(),
                "Key": object.key(),
                "LastModified": object.last_modified().map(aws_sdk_s3::primitives::DateTime::secs),
                "Size": object.size(),
                "StorageClass": "STANDARD",
            })
        };
        let mut answer = Map::new();
        let contents: Vec<Value> = page.contents().iter().map(item).collect();
        answer.insert("KeyCount".to_owned(), json!(contents.len()));
        answer.insert("Contents".to_owned(), Value::Array(contents));
        answer.insert("IsTruncated".to_owned(), json!(page.is_truncated()));
        answer.insert("Name".to_owned(), json!(bucket));
        if let Some(next) = page.next_continuation_token() {
            answer.insert("NextContinuationToken".to_owned(), json!(next));
        }
        Ok(Value::Object(answer))
    }

    /// Any action of DynamoDB: its wire has the names of the machine's parameters already.
    async fn table(
        &self,
        action: &str,
        parameters: &Value,
        optimized: bool,
    ) -> Result<Value, LambdaError> {
        let mut letters = action.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let operation: String = first.into_iter().chain(letters).collect();
        let failed =
            |code: &str, why: &str, status: u16| dynamodb_error(code, why, status, optimized);
        let request = Request::post("/")
            .header(header::CONTENT_TYPE, "application/x-amz-json-1.0")
            .header("x-amz-target", format!("DynamoDB_20120810.{operation}"))
            .body(Body::from(parameters.to_string()));
        let request =
            request.map_err(|error| failed("ValidationException", &error.to_string(), 400))?;
        let answer = match self.store.clone().oneshot(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        let status = answer.status();
        let body = axum::body::to_bytes(answer.into_body(), LARGEST_ANSWER).await;
        let body = body.map_err(|error| failed("InternalServerError", &error.to_string(), 500))?;
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        if status == StatusCode::OK {
            return Ok(answer);
        }
        let text = |name: &str| answer.get(name).and_then(Value::as_str);
        let code = text("__type").unwrap_or("InternalServerError");
        let code = code.rsplit('#').next().unwrap_or(code);
        let why = text("message")
            .or_else(|| text("Message"))
            .unwrap_or("The call failed.");
        Err(failed(code, why, status.as_u16()))
    }
}

fn dynamodb_error(code: &str, why: &str, status: u16, optimized: bool) -> LambdaError {
    // Version 1 of the SDK for Java behind the optimized integration, version 2 behind the others.
    let (service, general) = match optimized {
        true => ("DynamoDB", "AmazonDynamoDBException"),
        false => ("DynamoDb", "DynamoDbException"),
    };
    let modelled = code != "ValidationException" && code.ends_with("Exception");
    let id = uuid::Uuid::now_v7();
    let message = match optimized {
        true => format!(
            "{why} (Service: AmazonDynamoDBv2; Status Code: {status}; Error Code: {code}; Request ID: {id}; Proxy: null)"
        ),
        false => format!("{why} (Service: {service}, Status Code: {status}, Request ID: {id})"),
    };
    LambdaError {
        error_type: format!("{service}.{}", if modelled { code } else { general }),
        message,
    }
}

fn refused(error: &impl ProvideErrorMetadata) -> LambdaError {
    let code = error.code().unwrap_or("InternalError");
    let status = match code {
        "NoSuchKey" | "NoSuchBucket" | "NotFound" | "NoSuchVersion" => 404,
        "AccessDenied" => 403,
        "InternalError" => 500,
        _ => 400,
    };
    let told = match code {
        "NoSuchKey" => "The specified key does not exist.",
        "NoSuchBucket" => "The specified bucket does not exist",
        _ => error
            .message()
            .unwrap_or("The object cannot be read or written."),
    };
    s3_error(code, told, status)
}

fn s3_error(code: &str, why: &str, status: u16) -> LambdaError {
    let name = match code {
        "NoSuchKey" | "NoSuchBucket" => format!("S3.{code}Exception"),
        _ => "S3.S3Exception".to_owned(),
    };
    let id = uuid::Uuid::now_v7();
    LambdaError {
        error_type: name,
        message: format!("{why} (Service: S3, Status Code: {status}, Request ID: {id})"),
    }
}
