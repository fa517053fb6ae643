//! `slipway trigger`: what triggers there are, what came of their events, what a delivery would start, and a delivery by
//! hand.

use std::path::Path;

use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::args::{DeliveryArgs, Format, TriggerCommand};
use crate::client::{Body, Client};
use crate::commands::entity::segment;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{self, Column};

const TRIGGERS: &[Column] = &[
    ("IDENTIFIER", "/identifier"),
    ("TYPE", "/type"),
    ("ENABLED", "/enabled"),
    (
        "LAST EVENT",
        "@/lastTriggerExecutionDetails/lastExecutionTime",
    ),
    ("STATUS", "/lastTriggerExecutionDetails/lastExecutionStatus"),
    ("NEXT", "@/nextExecutionTime"),
    ("URL", "/webhookUrl"),
];
const HISTORY: &[Column] = &[
    ("AT", "@/eventCreatedAt"),
    ("STATUS", "/finalStatus"),
    ("RUN", "/targetExecutionSummary/planExecutionId"),
    ("MESSAGE", "/message"),
    ("EVENT", "/eventCorrelationId"),
];
const VERDICTS: &[Column] = &[
    ("TRIGGER", "/triggerIdentifier"),
    ("PIPELINE", "/pipelineIdentifier"),
    ("FIRES", "/fires"),
    ("STATUS", "/status"),
    ("WHY", "/message"),
];
const EVENTS: &[Column] = &[("EVENT", "/eventId")];
const DEAD: &[Column] = &[
    ("EVENT", "/eventId"),
    ("AT", "@/receivedAt"),
    ("ATTEMPTS", "/attempts"),
    ("WHY", "/message"),
];

/// Does what was asked for.
///
/// # Errors
/// When there is no such pipeline or trigger, or the payload cannot be read.
pub async fn trigger(
    client: &Client,
    format: Option<Format>,
    command: &TriggerCommand,
) -> Result<Exit, CliError> {
    match command {
        TriggerCommand::List { pipeline, limit } => {
            let limit = limit.to_string();
            let query = [("targetIdentifier", pipeline.as_str()), ("size", &limit)];
            let answer = client.get("/pipeline/api/triggers", &query).await?;
            let mut rows = content(&answer);
            if output::format(format) == Format::Table {
                rows.iter_mut().for_each(say_why);
            }
            output::rows(format, TRIGGERS, &rows)?;
        }
        TriggerCommand::History {
            id,
            pipeline,
            page,
            limit,
        } => {
            let path = format!("/pipeline/api/triggers/eventHistory/{}", segment(id));
            let (page, limit) = (page.to_string(), limit.to_string());
            let query = [
                ("targetIdentifier", pipeline.as_str()),
                ("page", &page),
                ("size", &limit),
            ];
            let answer = client.get(&path, &query).await?;
            output::rows(format, HISTORY, &content(&answer))?;
        }
        TriggerCommand::Test(delivery) => return test(client, format, delivery).await,
        TriggerCommand::Fire(delivery) => {
            let body = Body::Json(body_of(delivery)?);
            let path = "/slipway/api/triggers/fire";
            let answer = client.call(Method::POST, path, &[], body).await?;
            let ids = answer["data"]["eventCorrelationIds"].as_array().cloned();
            let ids = ids.unwrap_or_default().into_iter();
            let rows: Vec<Value> = ids.map(|id| json!({"eventId": id})).collect();
            output::rows(format, EVENTS, &rows)?;
        }
        TriggerCommand::Dead => {
            let answer = client.get("/slipway/api/events/dead", &[]).await?;
            let rows = answer["data"].as_array().cloned().unwrap_or_default();
            output::rows(format, DEAD, &rows)?;
        }
        TriggerCommand::Redrive { event } => {
            let path = format!("/slipway/api/events/{}/redrive", segment(event));
            client.call(Method::POST, &path, &[], Body::Empty).await?;
            output::rows(format, EVENTS, &[json!({"eventId": event})])?;
        }
    }
    Ok(Exit::Succeeded)
}

/// Succeeds where a trigger would fire.
async fn test(
    client: &Client,
    format: Option<Format>,
    delivery: &DeliveryArgs,
) -> Result<Exit, CliError> {
    let body = Body::Json(body_of(delivery)?);
    let path = "/slipway/api/triggers/test";
    let answer = client.call(Method::POST, path, &[], body).await?;
    let rows = answer["data"].as_array().cloned().unwrap_or_default();
    if rows.is_empty() {
        anstream::eprintln!(
            "no trigger listens to this: `slipway trigger list` says what there is"
        );
    }
    output::rows(format, VERDICTS, &rows)?;
    let fires = rows.iter().any(|row| row["fires"] == true);
    Ok(if fires { Exit::Succeeded } else { Exit::Failed })
}

/// Of a trigger that can start nothing now, or may hear of nothing, why stands where others have their last event's outcome.
fn say_why(row: &mut Value) {
    let standing = &row["triggerStatus"];
    if standing["status"] != "FAILED" {
        return;
    }
    // A webhook that could not be registered may have been added by hand: what it brought counts.
    let heard = row["lastTriggerExecutionDetails"].is_object();
    let reads = standing["validationStatus"]["statusResult"] != "FAILED"
        && standing["pollingSubscriptionStatus"]["statusResult"] != "FAILED";
    if heard && reads {
        return;
    }
    let why = standing["detailMessages"][0].as_str();
    let why = why.map_or_else(|| "FAILED".to_owned(), |why| format!("FAILED: {why}"));
    if !row["lastTriggerExecutionDetails"].is_object() {
        row["lastTriggerExecutionDetails"] = json!({});
    }
    row["lastTriggerExecutionDetails"]["lastExecutionStatus"] = why.into();
}

fn content(answer: &Value) -> Vec<Value> {
    answer["data"]["content"]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

fn body_of(delivery: &DeliveryArgs) -> Result<Value, CliError> {
    let mut headers = Map::new();
    for header in &delivery.headers {
        let (name, value) = header.split_once(':').ok_or_else(|| {
            CliError::Usage(format!(
                "--header {header}: it must have the form `Name: value`"
            ))
        })?;
        headers.insert(name.trim().to_owned(), value.trim().into());
    }
    let payload = match &delivery.payload {
        Some(path) => read(path)?,
        None => String::new(),
    };
    Ok(json!({
        "triggerIdentifier": delivery.trigger,
        "pipelineIdentifier": delivery.pipeline,
        "headers": headers,
        "payload": payload,
    }))
}

/// The text of a file, or of standard input for `-`.
fn read(path: &Path) -> Result<String, CliError> {
    let read = match path == Path::new("-") {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(path),
    };
    read.map_err(|source| CliError::File {
        what: format!("reading the payload {}", path.display()),
        source,
    })
}
