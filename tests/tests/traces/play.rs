//! Plays a story: says the words at their moments, through the REST API, and waits until every run has ended.

use serde_json::{Value, json};
use slipway_cli::commands::graph::{Run, of_answer};

use crate::case::Case;
use crate::others::Others;
use crate::place::{Answer, Call, Place};
use crate::words::{When, Word};

/// Who looks.
const WATCHER: &str = "alex";

const EXECUTE: &str = "/pipeline/api/pipeline/execute";

/// Looks at most; what takes longer does not end.
const LOOKS: usize = 20_000;

/// What was played.
pub(crate) struct Played {
    /// The runs that were started, by their ids.
    pub(crate) runs: Vec<String>,
    /// What was said: when, about which run, what, and what came of it.
    pub(crate) said: Vec<(i64, usize, String)>,
}

/// One story at a place.
pub(crate) struct Story<'a> {
    pub(crate) place: &'a dyn Place,
    pub(crate) case: &'a Case,
    pub(crate) others: &'a Others,
    played: Played,
}

/// Plays a story to its end.
pub(crate) async fn play<'a>(
    place: &'a dyn Place,
    case: &'a Case,
    others: &'a Others,
) -> Story<'a> {
    let played = Played {
        runs: Vec::new(),
        said: Vec::new(),
    };
    let mut story = Story {
        place,
        case,
        others,
        played,
    };
    story.set_up().await;
    for word in &case.words {
        story.word(word).await;
    }
    for run in 0..story.played.runs.len() {
        let ended = |run: &Run| is_final(&run.status);
        story.until(run, "its end", &ended).await;
    }
    story
}

impl Story<'_> {
    pub(crate) fn played(&self) -> &Played {
        &self.played
    }

    /// A path in the story's project.
    fn path(&self, path: &str) -> String {
        let sign = if path.contains('?') { '&' } else { '?' };
        let project = &self.case.name;
        format!("{path}{sign}orgIdentifier=default&projectIdentifier={project}&moduleType=cd")
    }

    async fn set_up(&self) {
        let name = &self.case.name;
        let project =
            format!("project:\n  name: {name}\n  identifier: {name}\n  orgIdentifier: default\n");
        for yaml in [project, self.case.yaml(self.others)] {
            let body = json!({"files": [{"file": format!("{name}.yaml"), "yaml": yaml}]});
            let call = Call::post(self.path("/slipway/api/apply"), Some(body));
            let answer = self.place.call(WATCHER, &call, true).await;
            let rows = answer.body["data"].as_array().cloned().unwrap_or_default();
            assert!(!rows.is_empty(), "{name}: {}", answer.body);
            for row in rows {
                let refused = row["result"] == "refused";
                assert!(!refused, "{name}: {row:#}");
            }
        }
    }

    async fn word(&mut self, word: &Word) {
        let kill = word.who.is_none();
        if kill && !self.place.kills() {
            return;
        }
        if let Some(when) = &word.when {
            let wanted = format!("{} is {}", when.node, when.status);
            let reached = |run: &Run| is_at(run, when) || (kill && is_final(&run.status));
            self.until(when.run, &wanted, &reached).await;
        }
        let Some(who) = &word.who else {
            return self.place.kill().await;
        };
        self.place.about_to_say().await;
        let at = self.place.now_ms();
        if let Some((ticket, state)) = word.moves() {
            self.others.moves(ticket, state);
            self.played.said.push((at, word.run, word.text.clone()));
            return;
        }
        let answer = self.say(who, word).await;
        self.place.has_said().await;
        let name = &self.case.name;
        // What is repeated because its answer was lost may have been said before.
        let repeated = answer.again && answer.status == 409 && !word.refused;
        let taken = answer.status < 300 || repeated;
        assert_eq!(taken, !word.refused, "{name}: {}: {answer:?}", word.text);
        let mut text = word.text.clone();
        if word.refused {
            let why = answer.body["message"].as_str().unwrap_or_default();
            text = format!(
                "{}, and may not ({}): {why}",
                &text["refused ".len()..],
                answer.status
            );
        }
        let run = if word.adds_run() && !word.refused {
            self.played.runs.len() - 1
        } else {
            word.run
        };
        self.played.said.push((at, run, text));
    }

    /// Says it, and keeps the id of the run that it adds.
    async fn say(&mut self, who: &str, word: &Word) -> Answer {
        if word.refused || !word.adds_run() {
            let call = self.call_of(word).await;
            return self.place.call(who, &call, true).await;
        }
        let before = self.count().await;
        let call = self.call_of(word).await;
        let mut answer = self.place.call(who, &call, false).await;
        let id = loop {
            let id = answer.body.pointer("/data/planExecution/uuid");
            if let Some(id) = id.and_then(Value::as_str) {
                break id.to_owned();
            }
            assert_eq!(
                answer.status, 0,
                "{}: {}: {answer:?}",
                self.case.name, word.text
            );
            // The answer was lost. What it asked for happened, or not.
            match self.newest(before).await {
                Some(id) => break id,
                None => answer = self.place.call(who, &call, false).await,
            }
        };
        self.played.runs.push(id);
        Answer {
            status: 200,
            ..answer
        }
    }

    async fn call_of(&self, word: &Word) -> Call {
        let run = self.played.runs.get(word.run).map_or("", String::as_str);
        let first = word.rest.first().map_or("", String::as_str);
        let interrupt = |kind: &str| {
            Call::put(self.path(&format!("{EXECUTE}/interrupt/{run}?interruptType={kind}")))
        };
        match word.verb.as_str() {
            "starts" if first == "only" => {
                let body = json!({"stageIdentifiers": word.rest[1..]});
                Call::post(self.path(&format!("{EXECUTE}/release/stages")), Some(body))
            }
            "starts" => Call::post(self.path(&format!("{EXECUTE}/release")), inputs(word)),
            "approves" | "rejects" => self.vote(run, first, word).await,
            "answers" => Call::put(self.path(&format!(
                "{EXECUTE}/manualIntervention/interrupt/{run}/{first}?interruptType={}",
                word.rest[1]
            ))),
            "gives" => {
                let inputs: serde_json::Map<String, Value> = word
                    .values()
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value.into()))
                    .collect();
                let path = format!("/slipway/api/runs/{run}/inputs/{first}");
                Call::post(self.path(&path), Some(json!({"inputs": inputs})))
            }
            "begins" => {
                let path = format!("/slipway/api/runs/{run}/stages/{first}/start");
                Call::post(self.path(&path), None)
            }
            "fails" if word.rest.is_empty() => interrupt("UserMarkedFailAll"),
            "fails" => Call::put(self.path(&format!(
                "{EXECUTE}/interrupt/{run}/{first}?interruptType=UserMarkedFailure"
            ))),
            "pauses" => interrupt("PauseAll"),
            "resumes" => interrupt("ResumeAll"),
            "aborts" if word.rest.is_empty() => interrupt("AbortAll"),
            "aborts" => Call::put(self.path(&format!(
                "{EXECUTE}/interrupt/{run}/{first}?interruptType=AbortAll"
            ))),
            "retries" => {
                let from: String = word
                    .rest
                    .iter()
                    .map(|stage| format!("&retryStages={stage}"))
                    .collect();
                let query = format!("planExecutionId={run}&runAllStages=false{from}");
                Call::post(self.path(&format!("{EXECUTE}/retry/release?{query}")), None)
            }
            "reruns" => Call::post(self.path(&format!("{EXECUTE}/rerun/{run}/release")), None),
            "undoes" => {
                let path = format!("/slipway/api/runs/{run}/rollback");
                Call::post(self.path(&path), Some(json!({})))
            }
            "notes" => Call::put(self.path(&format!(
                "/pipeline/api/pipelines/execution/{run}/notes?notesForPipelineExecution={first}"
            ))),
            other => panic!("{}: nobody can {other}", self.case.name),
        }
    }

    async fn vote(&self, run: &str, step: &str, word: &Word) -> Call {
        let project = &self.case.name;
        let list = format!("/v1/orgs/default/projects/{project}/approvals/execution/{run}");
        let answer = self.place.call(WATCHER, &Call::get(list), true).await;
        let ids = answer.body.as_array().into_iter().flatten();
        let mut ids = ids.filter_map(|approval| approval["id"].as_str());
        let of_step = format!(".{step}.");
        let id = ids.find(|id| id.contains(&of_step));
        let id = id.unwrap_or_else(|| panic!("{project}: no approval {step}: {}", answer.body));
        let action = if word.verb == "approves" {
            "APPROVE"
        } else {
            "REJECT"
        };
        let inputs: Vec<Value> = word
            .values()
            .into_iter()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        let body = json!({"action": action, "comments": "", "approverInputs": inputs});
        let path = format!("/pipeline/api/approvals/{id}/harness/activity");
        Call::post(self.path(&path), Some(body))
    }

    /// Ids of the runs of the pipeline, newest first.
    async fn ids(&self) -> Vec<String> {
        let path =
            self.path("/pipeline/api/pipelines/execution/summary?pipelineIdentifier=release");
        let answer = self
            .place
            .call(WATCHER, &Call::post(path, None), true)
            .await;
        let runs = answer
            .body
            .pointer("/data/content")
            .and_then(Value::as_array);
        let runs = runs.unwrap_or_else(|| panic!("no runs: {}", answer.body));
        let ids = runs
            .iter()
            .filter_map(|run| run["planExecutionId"].as_str());
        ids.map(str::to_owned).collect()
    }

    async fn count(&self) -> usize {
        self.ids().await.len()
    }

    /// The newest run, where there are more than before.
    async fn newest(&self, before: usize) -> Option<String> {
        let ids = self.ids().await;
        (ids.len() > before).then(|| ids[0].clone())
    }

    /// A run as the API shows it.
    pub(crate) async fn look(&self, run: usize) -> Run {
        let id = &self.played.runs[run];
        let path = format!("/pipeline/api/pipelines/execution/v2/{id}?renderFullBottomGraph=true");
        let call = Call::get(self.path(&path));
        let answer = self.place.call(WATCHER, &call, true).await;
        of_answer(id, &answer.body).unwrap_or_else(|| panic!("no run {id}: {}", answer.body))
    }

    async fn until(&self, run: usize, what: &str, reached: &dyn Fn(&Run) -> bool) {
        for _ in 0..LOOKS {
            self.place.pass().await;
            let seen = self.look(run).await;
            if reached(&seen) {
                return;
            }
            let name = &self.case.name;
            let late = is_final(&seen.status);
            assert!(
                !late,
                "{name}: {what} is never seen in run {}: {seen:#?}",
                run + 1
            );
        }
        panic!("{}: {what} does not come", self.case.name);
    }
}

/// Values of variables of the pipeline.
fn inputs(word: &Word) -> Option<Value> {
    let variables: Vec<Value> = word
        .values()
        .into_iter()
        .map(|(name, value)| json!({"name": name, "type": "String", "value": value}))
        .collect();
    let pipeline = json!({"identifier": "release", "variables": variables});
    (!variables.is_empty()).then(|| json!({"pipeline": pipeline}))
}

fn is_at(run: &Run, when: &When) -> bool {
    let mut nodes = run.nodes.iter();
    match when.node.as_str() {
        "run" => run.status == when.status,
        name => nodes.any(|node| node.identifier == name && node.status == when.status),
    }
}

/// Whether a run has ended.
pub(crate) fn is_final(status: &str) -> bool {
    slipway_cli::exit::Exit::of_status(status).is_some()
}
