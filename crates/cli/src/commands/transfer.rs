//! `slipway export` and `slipway import`: everything that people wrote in an account.

use std::io::Read;

use reqwest::Method;
use serde_json::Value;

use crate::args::ImportArgs;
use crate::client::{Body, Client};
use crate::error::CliError;
use crate::exit::Exit;

/// Prints all that people wrote, as `slipway import` takes it.
///
/// # Errors
/// When the service cannot be reached.
pub async fn export(client: &Client) -> Result<Exit, CliError> {
    let answer = client.get("/slipway/api/export", &[]).await?;
    let export = &answer["data"];
    anstream::println!("{export:#}");
    tell_secrets(export);
    Ok(Exit::Succeeded)
}

/// Takes an export in.
///
/// # Errors
/// When the file cannot be read, or the service refuses it.
pub async fn import(client: &Client, args: &ImportArgs) -> Result<Exit, CliError> {
    let name = args.file.display();
    let text = if args.file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(&args.file)
    };
    let text = text.map_err(|error| CliError::Usage(format!("cannot read {name}: {error}")))?;
    let export: Value = serde_json::from_str(&text)
        .map_err(|error| CliError::Usage(format!("{name} is no export: {error}")))?;
    let path = "/slipway/api/import";
    let answer = client
        .call(Method::POST, path, &[], Body::Json(export))
        .await?;
    let done = &answer["data"];
    anstream::eprintln!(
        "imported {}, {} were there already",
        done["imported"],
        done["unchanged"]
    );
    tell_secrets(done);
    Ok(Exit::Succeeded)
}

fn tell_secrets(answer: &Value) {
    let secrets = answer["secretsWithoutValue"].as_array();
    for secret in secrets.into_iter().flatten().filter_map(Value::as_str) {
        anstream::eprintln!("the value of the secret {secret} is no part of the export");
    }
}
