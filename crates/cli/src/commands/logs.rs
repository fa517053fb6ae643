//! `slipway logs`: what the steps of a run printed.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use slipway_clock::Clock;

use crate::args::LogsArgs;
use crate::client::Client;
use crate::commands::graph::{self, Node};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

/// Prints logs once, or until the run ends.
pub async fn logs(client: &Client, clock: &Clock, args: &LogsArgs) -> Result<Exit, CliError> {
    let mut printed = HashMap::new();
    loop {
        let run = graph::fetch(client, &args.run).await?;
        let chosen: Vec<&Node> = run
            .nodes
            .iter()
            .filter(|n| args.step.as_ref().is_none_or(|s| *s == n.identifier))
            .collect();
        if let (Some(step), true) = (&args.step, chosen.is_empty()) {
            let why = format!("run {} has no step {step}", run.id);
            return Err(CliError::Usage(why));
        }
        for node in chosen {
            print(client, node, &mut printed).await?;
        }
        let ended = Exit::of_status(&run.status);
        match (args.follow, ended) {
            (false, _) => return Ok(Exit::Succeeded),
            (true, Some(exit)) => return Ok(exit),
            (true, None) => clock.sleep(Duration::from_millis(500)).await,
        }
    }
}

/// Prints the lines of a node's units that were not printed yet.
async fn print(
    client: &Client,
    node: &Node,
    printed: &mut HashMap<String, usize>,
) -> Result<(), CliError> {
    for (key, unit) in &node.logs {
        let query = [("accountID", client.account()), ("key", key.as_str())];
        let text = client.text("/gateway/log-service/blob", &query).await?;
        let before = printed.get(key).copied().unwrap_or(0);
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        if before == 0 && !lines.is_empty() {
            anstream::eprintln!("--- {} / {unit}", node.identifier);
        }
        for line in lines.iter().skip(before) {
            output::line(output::visible(&readable(line)).trim_end())?;
        }
        printed.insert(key.clone(), lines.len());
    }
    Ok(())
}

fn readable(line: &str) -> String {
    match serde_json::from_str::<Value>(line) {
        Ok(json) => json["out"].as_str().unwrap_or(line).to_owned(),
        Err(_) => line.to_owned(),
    }
}
