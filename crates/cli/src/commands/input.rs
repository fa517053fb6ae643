//! `slipway input`: what a step asks for when it begins (`executionInput()`), and the values.

use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::args::{AskedArgs, Format};
use crate::client::{Body, Client};
use crate::commands::entity::segment;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{self, Column};

const COLUMNS: &[Column] = &[
    ("FIELD", "/field"),
    ("DEFAULT", "/default"),
    ("ALLOWED", "/allowedValues"),
    ("PATTERN", "/regex"),
];

/// Gives a step its inputs; without any, shows what it asks for.
///
/// # Errors
/// When the step does not ask, or not for these, or a value is not allowed.
pub async fn input(
    client: &Client,
    format: Option<Format>,
    args: &AskedArgs,
) -> Result<Exit, CliError> {
    let path = format!(
        "/slipway/api/runs/{}/inputs/{}",
        segment(&args.run),
        segment(&args.step)
    );
    if args.inputs.is_empty() && !args.defaults {
        let found = client.get(&path, &[]).await?;
        let rows = found.pointer("/data/inputs").and_then(Value::as_array);
        output::rows(format, COLUMNS, rows.map_or(&[], Vec::as_slice))?;
        return Ok(Exit::Succeeded);
    }
    let values = args.inputs.iter().map(|input| match input.split_once('=') {
        Some((field, value)) => Ok((field.to_owned(), Value::from(value))),
        None => Err(CliError::Usage(format!("`{input}`: expected FIELD=VALUE"))),
    });
    let values: Map<String, Value> = values.collect::<Result<_, _>>()?;
    let body = Body::Json(json!({"inputs": values}));
    client.call(Method::POST, &path, &[], body).await?;
    let run = &args.run;
    anstream::eprintln!("noted; `slipway get run {run}` shows where it stands");
    Ok(Exit::Succeeded)
}
