//! Writes the results of a map run to S3.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::effect::{ServiceCall, Services};

/// Outputs of the children that succeeded, and the indexes of those that failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Results {
    succeeded: Vec<Value>,
    failed: Vec<Value>,
}

/// Sorts the outcomes of children.
pub(crate) fn results(outcomes: Option<&BTreeMap<usize, Option<Value>>>, map_run: &str) -> Results {
    let mut results = Results::default();
    for (index, outcome) in outcomes.into_iter().flatten() {
        match outcome {
            Some(output) => results.succeeded.push(json!({
                "MapRunArn": map_run,
                "Index": index,
                "Status": "SUCCEEDED",
                "Output": output.to_string(),
            })),
            None => results.failed.push(json!({
                "MapRunArn": map_run,
                "Index": index,
                "Status": "FAILED",
            })),
        }
    }
    results
}

/// Writes the results and a manifest below the prefix; gives the result of the `Map` state. The error is
/// the cause of `States.ResultWriterFailed`.
pub(crate) async fn write(
    services: &dyn Services,
    call: &ServiceCall,
    map_run: &str,
    results: &Results,
) -> Result<Value, String> {
    let text = |name: &str| call.parameters.get(name).and_then(Value::as_str);
    let Some(bucket) = text("Bucket") else {
        return Err("The parameter Bucket is required".to_owned());
    };
    let run = map_run.rsplit(':').next().unwrap_or_default();
    let folder = match text("Prefix").unwrap_or_default().trim_end_matches('/') {
        "" => run.to_owned(),
        prefix => format!("{prefix}/{run}"),
    };
    let mut files = Vec::new();
    for (name, list) in [
        ("SUCCEEDED", &results.succeeded),
        ("FAILED", &results.failed),
    ] {
        let mut entries = Vec::new();
        if !list.is_empty() {
            let key = format!("{folder}/{name}_0.json");
            let body = Value::Array(list.clone()).to_string();
            entries.push(json!({"Key": key, "Size": body.len()}));
            put(services, call, bucket, &key, body).await?;
        }
        files.push((name.to_owned(), Value::Array(entries)));
    }
    files.push(("PENDING".to_owned(), json!([])));
    let manifest = json!({
        "DestinationBucket": bucket,
        "MapRunArn": map_run,
        "ResultFiles": Value::Object(files.into_iter().collect()),
    });
    let key = format!("{folder}/manifest.json");
    put(services, call, bucket, &key, manifest.to_string()).await?;
    Ok(json!({
        "MapRunArn": map_run,
        "ResultWriterDetails": {"Bucket": bucket, "Key": key},
    }))
}

async fn put(
    services: &dyn Services,
    call: &ServiceCall,
    bucket: &str,
    key: &str,
    body: String,
) -> Result<(), String> {
    let call = ServiceCall {
        parameters: json!({"Bucket": bucket, "Key": key, "Body": body}),
        ..call.clone()
    };
    match services.call(&call).await {
        Ok(_) => Ok(()),
        Err(error) => Err(error.message),
    }
}
