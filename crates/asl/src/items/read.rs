//! Reads items out of S3, through the engine's services.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::Items;
use crate::definition::InputType;
use crate::effect::{ServiceCall, Services};

/// Most items of one map run: they are kept in memory.
const MOST_ITEMS: usize = 1_000_000;

/// Reads the items that `call` leads to. The error is the cause of `States.ItemReaderFailed`.
pub(crate) async fn read(
    services: &dyn Services,
    call: &ServiceCall,
    input: &InputType,
) -> Result<Items, String> {
    let text = |name: &str| {
        let text = call.parameters.get(name).and_then(Value::as_str);
        text.unwrap_or_default()
    };
    if call.action == "listObjectsV2" {
        return Ok(Items {
            source: format!("S3://{}", text("Bucket")),
            ..Items::array(list(services, call).await?)
        });
    }
    let body = object(services, call).await?;
    let items = match input {
        InputType::Manifest => Items::array(manifest(services, call, &body).await?),
        input => parse(input, &body)?,
    };
    Ok(Items {
        source: format!("S3://{}/{}", text("Bucket"), text("Key")),
        ..items
    })
}

async fn object(services: &dyn Services, call: &ServiceCall) -> Result<String, String> {
    let answer = services.call(call).await.map_err(|error| error.message)?;
    match answer.get("Body").and_then(Value::as_str) {
        Some(body) => Ok(body.to_owned()),
        None => Err("The object has no text".to_owned()),
    }
}

/// All objects under a prefix, page by page.
async fn list(services: &dyn Services, call: &ServiceCall) -> Result<Vec<Value>, String> {
    let mut call = call.clone();
    let mut items = Vec::new();
    loop {
        let mut page = services.call(&call).await.map_err(|error| error.message)?;
        if let Some(Value::Array(contents)) = page.get_mut("Contents").map(Value::take) {
            items.extend(contents);
        }
        let next = page.get("NextContinuationToken").cloned();
        match next {
            Some(token) if items.len() < MOST_ITEMS && !token.is_null() => {
                call.parameters["ContinuationToken"] = token;
            }
            _ => return Ok(items),
        }
    }
}

/// The rows of the CSV files that an S3 inventory names, by the columns of its schema.
async fn manifest(
    services: &dyn Services,
    call: &ServiceCall,
    body: &str,
) -> Result<Vec<Value>, String> {
    let manifest: Value =
        serde_json::from_str(body).map_err(|error| format!("The manifest is not JSON: {error}"))?;
    let text = |name: &str| manifest.get(name).and_then(Value::as_str);
    if text("fileFormat").is_some_and(|format| format != "CSV") {
        return Err("Only inventories in CSV can be read".to_owned());
    }
    let columns = text("fileSchema").ok_or("The manifest has no fileSchema")?;
    let headers: Vec<String> = columns
        .split(',')
        .map(|name| name.trim().to_owned())
        .collect();
    let bucket = text("destinationBucket").map(|arn| arn.trim_start_matches("arn:aws:s3:::"));
    let mut items = Vec::new();
    let files = manifest.get("files").and_then(Value::as_array);
    for file in files.into_iter().flatten() {
        let key = file.get("key").and_then(Value::as_str).unwrap_or_default();
        let bucket = bucket.map_or_else(
            || call.parameters.get("Bucket").cloned().unwrap_or_default(),
            Value::from,
        );
        let file = ServiceCall {
            parameters: json!({"Bucket": bucket, "Key": key}),
            ..call.clone()
        };
        let input = InputType::Csv {
            headers: Some(headers.clone()),
            delimiter: b',',
        };
        items.extend(parse(&input, &object(services, &file).await?)?.values);
    }
    Ok(items)
}

/// The items in the text of an object.
pub(crate) fn parse(input: &InputType, body: &str) -> Result<Items, String> {
    let items = match input {
        InputType::Json { pointer } => json_items(body, pointer.as_deref())?,
        InputType::JsonLines => {
            let lines = body.lines().filter(|line| !line.trim().is_empty());
            let values = lines.map(|line| {
                serde_json::from_str(line).map_err(|error| format!("A line is not JSON: {error}"))
            });
            Items::array(values.collect::<Result<_, _>>()?)
        }
        InputType::Csv { headers, delimiter } => {
            Items::array(csv_items(body, headers.as_deref(), *delimiter)?)
        }
        InputType::Manifest => Items::array(Vec::new()),
    };
    if items.values.len() > MOST_ITEMS {
        return Err(format!("There are more than {MOST_ITEMS} items"));
    }
    Ok(items)
}

/// The pairs of an object only where a pointer leads to it: AWS was recorded to refuse a file that is an object.
fn json_items(body: &str, pointer: Option<&str>) -> Result<Items, String> {
    let mut value: Value =
        serde_json::from_str(body).map_err(|error| format!("The object is not JSON: {error}"))?;
    let items = match pointer {
        None if value.is_object() => None,
        None => Items::of(value),
        Some(pointer) => value
            .pointer_mut(pointer)
            .map(Value::take)
            .and_then(Items::of),
    };
    items.ok_or_else(|| "Attempting to map over non-iterable node.".to_owned())
}

/// Rows as objects: columns without a header are dropped, missing ones are empty.
fn csv_items(body: &str, given: Option<&[String]>, delimiter: u8) -> Result<Vec<Value>, String> {
    let mut rows = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(body.as_bytes())
        .into_records();
    let headers: Vec<String> = match given {
        Some(headers) => headers.to_vec(),
        None => match rows.next() {
            Some(row) => row.map_err(unreadable)?.iter().map(str::to_owned).collect(),
            None => Vec::new(),
        },
    };
    let unique: HashSet<&String> = headers.iter().collect();
    if unique.len() != headers.len() {
        return Err("CSV headers cannot contain duplicates.".to_owned());
    }
    let mut items = Vec::new();
    for row in rows {
        let row = row.map_err(unreadable)?;
        let members: Map<String, Value> = headers
            .iter()
            .enumerate()
            .map(|(i, header)| (header.clone(), row.get(i).unwrap_or_default().into()))
            .collect();
        items.push(Value::Object(members));
    }
    Ok(items)
}

fn unreadable(error: csv::Error) -> String {
    format!("The CSV cannot be read: {error}")
}
