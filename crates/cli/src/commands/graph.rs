//! A run as the REST API shows it, read into the tree that people see.

use serde_json::Value;

use crate::client::Client;
use crate::commands::entity::segment;
use crate::error::CliError;
use crate::exit::Exit;

/// A run at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its id.
    pub id: String,
    /// Identifier of the pipeline.
    pub pipeline: String,
    /// Where it stands (`API.md` 4.6).
    pub status: String,
    /// Why it failed.
    pub failure: Option<String>,
    /// Stages and what is in them.
    pub nodes: Vec<Node>,
    /// What steps warned of, and notices that nobody got.
    pub warnings: Vec<String>,
}

/// A stage, group or step of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique in the run.
    pub uuid: String,
    /// `identifier` in YAML.
    pub identifier: String,
    /// `name` in YAML.
    pub name: String,
    /// Step type.
    pub step_type: String,
    /// Where it stands.
    pub status: String,
    /// Why it failed.
    pub failure: Option<String>,
    /// Epoch milliseconds.
    pub started: Option<i64>,
    /// Epoch milliseconds.
    pub ended: Option<i64>,
    /// Log keys with the names of their units.
    pub logs: Vec<(String, String)>,
    /// Whom it waits for.
    pub waits: Vec<String>,
    /// Runs of other pipelines that it waits for and that wait for a person.
    pub asking: Vec<String>,
    /// 0 for a stage.
    pub depth: usize,
}

/// Nodes of the API that people need not see.
const HIDDEN: &[&str] = &[
    "PIPELINE_SECTION",
    "STAGES_STEP",
    "NG_EXECUTION",
    "NG_SECTION",
];

/// Fetches a run.
pub async fn fetch(client: &Client, run: &str) -> Result<Run, CliError> {
    let path = format!("/pipeline/api/pipelines/execution/v2/{}", segment(run));
    let answer = client
        .get(&path, &[("renderFullBottomGraph", "true")])
        .await?;
    of_answer(run, &answer).ok_or_else(|| {
        let why = "it has no pipelineExecutionSummary.status".to_owned();
        CliError::Answer { what: path, why }
    })
}

/// A run in the answer to a request for its detail (v2), if it has a status.
pub fn of_answer(run: &str, answer: &Value) -> Option<Run> {
    let summary = &answer["data"]["pipelineExecutionSummary"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let status = text(&summary["status"])?;
    let graph = &answer["data"]["executionGraph"];
    let mut nodes = Vec::new();
    if let Some(root) = graph["rootNodeId"].as_str() {
        walk(graph, root, 0, &mut nodes);
    }
    Some(Run {
        id: text(&summary["planExecutionId"]).unwrap_or_else(|| run.to_owned()),
        pipeline: text(&summary["pipelineIdentifier"]).unwrap_or_default(),
        status,
        failure: text(&summary["failureInfo"]["message"]),
        nodes,
        warnings: messages(&summary["warnings"]),
    })
}

/// The messages of a list of objects that have one.
fn messages(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    let texts = items.filter_map(|item| item["message"].as_str());
    texts.map(str::to_owned).collect()
}

/// Depth limit: a malformed answer with a cycle must end.
const DEPTH: usize = 64;

fn walk(graph: &Value, id: &str, depth: usize, into: &mut Vec<Node>) {
    let node = &graph["nodeMap"][id];
    if node.is_null() || depth > DEPTH {
        return;
    }
    let step_type = node["stepType"].as_str().unwrap_or_default();
    let root = graph["rootNodeId"].as_str() == Some(id);
    let hidden = HIDDEN.contains(&step_type) || (root && node["baseFqn"] == "pipeline");
    if !hidden {
        into.push(read(node, depth));
    }
    let adjacency = &graph["nodeAdjacencyListMap"][id];
    let below = if hidden { depth } else { depth + 1 };
    for child in adjacency["children"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        walk(graph, child, below, into);
    }
    for next in adjacency["nextIds"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        walk(graph, next, depth, into);
    }
}

/// The runs among those that a node waits for that wait for a person themselves.
fn asking(waits: &Value) -> Vec<String> {
    let items = waits.as_array().into_iter().flatten();
    let chained = items.filter(|item| item["type"] == "Pipeline");
    let runs = chained.flat_map(|item| item["runs"].as_array().into_iter().flatten());
    let asks = |run: &&Value| run["status"].as_str().is_some_and(Exit::waits_for_person);
    let ids = runs
        .filter(asks)
        .filter_map(|run| run["planExecutionId"].as_str());
    ids.map(str::to_owned).collect()
}

fn read(node: &Value, depth: usize) -> Node {
    let text = |key: &str| node[key].as_str().unwrap_or_default().to_owned();
    let failure = node["failureInfo"]["message"]
        .as_str()
        .filter(|m| !m.is_empty());
    let task = &node["executableResponses"][0]["task"];
    let strings = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    Node {
        uuid: text("uuid"),
        identifier: text("identifier"),
        name: text("name"),
        step_type: text("stepType"),
        status: text("status"),
        failure: failure.map(str::to_owned),
        started: node["startTs"].as_i64().filter(|ms| *ms > 0),
        ended: node["endTs"].as_i64().filter(|ms| *ms > 0),
        logs: strings(&task["logKeys"])
            .into_iter()
            .zip(strings(&task["units"]))
            .collect(),
        waits: messages(&node["waitsFor"]),
        asking: asking(&node["waitsFor"]),
        depth,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::asking;

    #[test]
    fn a_chained_run_asks_for_the_one_that_waits_for_it() {
        let waits = |kind: &str, status: &str| json!([{"type": kind, "runs": [{"planExecutionId": "r2", "status": status}]}]);
        assert_eq!(asking(&waits("Pipeline", "ApprovalWaiting")), ["r2"]);
        assert_eq!(asking(&waits("Pipeline", "Running")), [""; 0]);
        // Somebody else's run in front of this one asks its own people.
        assert_eq!(asking(&waits("Queue", "ApprovalWaiting")), [""; 0]);
        assert_eq!(asking(&json!(null)), [""; 0]);
    }
}
