//! What a story came to, without times and ids: the same in virtual time, in a real process, and however often that is
//! killed.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::json;
use slipway_world::receiver::Receiver;

use crate::play::Story;

/// Where the outcome begins in a golden trace.
pub(crate) const HEAD: &str = "\nOutcome\n";

/// The step whose ends tell in which order runs had their turns.
const TURN: &str = "turn";

/// The cluster that is deployed to.
pub(crate) const CLUSTER: &str = "shop";

/// Runs with their stages and steps, turns, what ECS has, who was told what.
pub(crate) async fn outcome(story: &Story<'_>) -> String {
    let mut told = String::new();
    let mut turns = Vec::new();
    let ids = &story.played().runs;
    for number in 0..ids.len() {
        let run = story.look(number).await;
        let number = number + 1;
        let _ = writeln!(
            told,
            "run {number}: {}{}",
            run.status,
            why(run.failure.as_deref(), ids)
        );
        for node in &run.nodes {
            let indent = "  ".repeat(node.depth + 1);
            let why = why(node.failure.as_deref(), ids);
            let _ = writeln!(told, "{indent}{}: {}{why}", node.identifier, node.status);
            if node.identifier == TURN {
                turns.push((node.ended, format!("run {number}")));
            }
        }
    }
    turns.sort();
    if turns.len() > 1 {
        let turns: Vec<_> = turns.into_iter().map(|(_, run)| run).collect();
        let _ = writeln!(told, "turns: {}", turns.join(", "));
    }
    let tickets = story.case.tickets(story.others);
    told + &account(story).await + &tickets + &notices(&story.case.name, &story.others.receiver)
}

/// What the account that is deployed to has of the story's service.
async fn account(story: &Story<'_>) -> String {
    let name = &story.case.name;
    if !story.case.deploys() {
        return String::new();
    }
    let family = json!({"familyPrefix": name});
    let definitions = story.place.ecs("ListTaskDefinitions", &family).await;
    let definitions = definitions["taskDefinitionArns"]
        .as_array()
        .map_or(0, Vec::len);
    let wanted = json!({"cluster": CLUSTER, "services": [name]});
    let found = story.place.ecs("DescribeServices", &wanted).await;
    let service = &found["services"][0];
    let definition = service["taskDefinition"].as_str().unwrap_or("none");
    let definition = definition.rsplit('/').next().unwrap_or_default();
    format!(
        "ECS: {definitions} task definitions; service {name} runs {} of {} tasks of {definition}, {}\n",
        service["runningCount"], service["desiredCount"], service["status"]
    )
}

/// Each message once, whatever came twice.
fn notices(name: &str, receiver: &Receiver) -> String {
    let got = receiver.got();
    let got = got
        .iter()
        .filter(|got| got.path.starts_with(&format!("{name}/")));
    let messages: BTreeSet<String> = got
        .map(|got| {
            let data = &got.body["eventData"];
            let fields = ["eventType", "stageIdentifier", "stepIdentifier"];
            let words = fields.iter().filter_map(|field| data[field].as_str());
            let words: Vec<_> = words.collect();
            format!("told {}: {}\n", got.path, words.join(" "))
        })
        .collect();
    messages.into_iter().collect()
}

pub(crate) fn why(failure: Option<&str>, runs: &[String]) -> String {
    failure.map_or_else(String::new, |failure| {
        format!(": {}", unnumbered(&plain(failure, runs)))
    })
}

/// Numbers of runs have gaps, where a start was cut short.
fn unnumbered(text: &str) -> String {
    match text.split_once(" of the same pipeline") {
        Some((before, after)) => {
            let before = before.trim_end_matches(|c: char| c.is_ascii_digit());
            format!("{before}N of the same pipeline{after}")
        }
        None => text.to_owned(),
    }
}

/// Shortest word with digits that is taken for an id.
const ID: usize = 16;

/// A text without ids: runs by their numbers, others as `ID`.
pub(crate) fn plain(text: &str, runs: &[String]) -> String {
    let mut text = text.replace('\n', " ");
    for (number, run) in runs.iter().enumerate() {
        text = text.replace(run, &(number + 1).to_string());
    }
    let part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let mut told = String::new();
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| part(c) != part(first)).unwrap_or(rest.len());
        let word = &rest[..end];
        let digits = word.chars().filter(char::is_ascii_digit).count();
        let id = part(first) && word.len() >= ID && digits >= 4 && !word.contains("--");
        told.push_str(if id { "ID" } else { word });
        rest = &rest[end..];
    }
    told.trim_end().to_owned()
}
