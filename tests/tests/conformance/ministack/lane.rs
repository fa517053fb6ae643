//! Pipelines one after another, in a local mode of their own, that deploy to a place of their own in ministack.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use slipway_tests::{LocalProcess, checkout};
use tokio::runtime::Handle;

use super::account::Hands;

/// Longest that a run takes here, with all others beside it.
const PATIENCE: Duration = Duration::from_secs(300);

/// Time between two looks at a run.
const PAUSE: Duration = Duration::from_millis(700);

/// A step that fails after all others, so that the stage is rolled back. The golden pipelines are indented alike.
const BROKEN: &str = "
              - step:
                  name: broken
                  identifier: broken
                  type: ShellScript
                  timeout: 1m
                  spec:
                    shell: Bash
                    onDelegate: true
                    source:
                      type: Inline
                      spec:
                        script: exit 1
                    environmentVariables: []
                    outputVariables: []
            rollbackSteps:";

/// How a run is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It deploys.
    Deploys,
    /// A step after the deployment fails: the stage is rolled back, and the account is as it was.
    Undone,
    /// It fails with the words of the lane's row in docs/sandbox-judges.md, and is rolled back.
    Fails,
    /// It says the words of the lane's row and waits, until all other lanes have ended and it is aborted.
    Stalls,
}

/// What is played one after another.
pub(crate) struct Lane {
    /// Names it, its cluster and its groups.
    pub(crate) id: &'static str,
    /// Folders of templates/.
    pub(crate) templates: &'static [&'static str],
    /// Texts of the templates and what takes their places.
    pub(crate) changes: &'static [(&'static str, &'static str)],
    /// The targets of its load balancer, and whether its rules weigh two target groups; none where it needs none.
    pub(crate) balancer: Option<(&'static str, bool)>,
    /// Inputs that take the ARNs of listener, rule, listener and rule.
    pub(crate) arns: &'static [&'static str],
    /// Whether it calls ministack without what stands before it.
    pub(crate) direct: bool,
    /// The input that says the version.
    pub(crate) version: &'static str,
    /// Pipeline, version, and how it ends.
    pub(crate) plays: &'static [(&'static str, &'static str, Ending)],
}

/// A lane that is being played.
pub(crate) struct Open {
    lane: &'static Lane,
    local: LocalProcess,
    hands: Arc<Hands>,
    words: Vec<String>,
    listeners: Vec<String>,
    stalled: Vec<String>,
    runtime: Handle,
    dir: tempfile::TempDir,
}

impl Open {
    pub(crate) fn new(
        lane: &'static Lane,
        (front, ministack): (&str, &str),
        hands: &Arc<Hands>,
        rows: &BTreeMap<String, Vec<String>>,
    ) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let url = if lane.direct { ministack } else { front };
        Self {
            lane,
            local: LocalProcess::start_against(url, &dir.path().join("data")),
            hands: hands.clone(),
            words: rows.get(lane.id).cloned().unwrap_or_default(),
            listeners: Vec::new(),
            stalled: Vec::new(),
            runtime: Handle::current(),
            dir,
        }
    }

    /// Plays all; answers with what was not as expected.
    pub(crate) fn play(mut self) -> (Self, Vec<String>) {
        let lane = self.lane;
        let runtime = self.runtime.clone();
        let _entered = runtime.enter();
        let mut request = json!({"call": "open", "lane": lane.id});
        if let Some((kind, weighted)) = lane.balancer {
            request["kind"] = kind.into();
            request["weighted"] = weighted.into();
        }
        let opened = self.hands.ask(&request);
        let arns = opened["listeners"].as_array().into_iter().flatten();
        self.listeners = arns.filter_map(Value::as_str).map(str::to_owned).collect();
        self.apply();
        let mut faults = Vec::new();
        for (pipeline, version, ending) in lane.plays {
            let begun = Instant::now();
            let result = match ending {
                Ending::Deploys => self.deploys(pipeline, version),
                Ending::Undone => self.undone(pipeline, version),
                Ending::Fails => self.fails(pipeline, version),
                Ending::Stalls => {
                    self.stalled.push(self.start(pipeline, version));
                    Ok(())
                }
            };
            let took = begun.elapsed().as_secs();
            println!("{}: {pipeline} {version}: {ending:?}, {took} s", lane.id);
            faults.extend(
                result
                    .err()
                    .map(|why| format!("{pipeline} {version}: {why}")),
            );
        }
        (self, faults)
    }

    /// Applies the templates, each pipeline also with a step that fails.
    fn apply(&self) {
        for folder in self.lane.templates {
            let files = std::fs::read_dir(checkout("templates").join(folder)).expect("templates");
            for file in files {
                let path = file.expect("a file").path();
                let text = std::fs::read_to_string(&path).expect("a text");
                let text = self.changed(text);
                let name = path
                    .file_name()
                    .expect("a name")
                    .to_string_lossy()
                    .into_owned();
                if name == "pipeline.yaml" {
                    self.apply_text("broken.yaml", &broken(&text));
                }
                self.apply_text(&name, &text);
            }
        }
    }

    fn changed(&self, text: String) -> String {
        let id = self.lane.id;
        let names = [
            "cluster",
            "family",
            "AutoScalingGroupName",
            "asgName",
            "loadBalancer",
        ];
        let named = names.iter().fold(text, |text, field| {
            text.replace(&format!(" {field}: shop"), &format!(" {field}: {id}"))
        });
        let changes = self.lane.changes.iter();
        changes.fold(named, |text, (from, to)| text.replace(from, to))
    }

    fn apply_text(&self, name: &str, text: &str) {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).expect("a file");
        let applied = self
            .local
            .slipway(&["apply", "-f", path.to_str().expect("text")]);
        let why = String::from_utf8_lossy(&applied.stderr);
        assert!(applied.status.success(), "{}: {name}: {why}", self.lane.id);
    }

    fn start(&self, pipeline: &str, version: &str) -> String {
        let versioned = format!("{}={version}", self.lane.version);
        let arns = self.lane.arns.iter().zip(&self.listeners);
        let inputs: Vec<String> = arns
            .map(|(name, arn)| format!("{name}={arn}"))
            .chain([versioned])
            .collect();
        let mut line = vec!["run", pipeline, "-o", "json"];
        for input in &inputs {
            line.extend(["--input", input.as_str()]);
        }
        let started = self.local.json(&line);
        started["run"].as_str().expect("a run id").to_owned()
    }

    fn run(&self, run: &str) -> (String, String) {
        let found = self.local.json(&["get", "run", run, "-o", "json"]);
        let text = |pointer: &str| {
            let value = found.pointer(pointer).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        (text("/status"), text("/failureInfo/message"))
    }

    /// Waits until a run is over, and approves what waits for it meanwhile: status and message.
    fn over(&self, run: &str) -> Result<(String, String), String> {
        let begun = Instant::now();
        loop {
            let (status, message) = self.run(run);
            match status.as_str() {
                "Success" | "Failed" | "Aborted" | "Expired" | "Errored" => {
                    return Ok((status, message));
                }
                "ApprovalWaiting" => {
                    self.local.slipway(&["approve", run]);
                }
                _ => {}
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("still {status}: {}", self.log(run)));
            }
            self.runtime.block_on(tokio::time::sleep(PAUSE));
        }
    }

    fn log(&self, run: &str) -> String {
        let log = self.local.slipway(&["logs", run]);
        String::from_utf8_lossy(&log.stdout).into_owned()
    }

    fn seen(&self) -> Value {
        let (lane, listeners) = (self.lane.id, &self.listeners);
        let function = self.lane.version == "version";
        let request =
            json!({"call": "seen", "lane": lane, "listeners": listeners, "function": function});
        self.hands.ask(&request)
    }

    fn deploys(&self, pipeline: &str, version: &str) -> Result<(), String> {
        let before = self.seen();
        let (status, message) = self.over(&self.start(pipeline, version))?;
        if status != "Success" {
            return Err(format!("{status}: {message}"));
        }
        match self.seen() == before {
            true => Err(format!("nothing was deployed: {before}")),
            false => Ok(()),
        }
    }

    fn undone(&self, pipeline: &str, version: &str) -> Result<(), String> {
        let before = self.seen();
        let (status, message) = self.over(&self.start(&format!("{pipeline}_broken"), version))?;
        if status != "Failed" || !message.contains("The stage was rolled back cleanly") {
            return Err(format!("{status}: {message}"));
        }
        if !message.contains("Step broken") {
            return Err(format!("failed before its end: {message}"));
        }
        let after = self.seen();
        match after == before {
            true => Ok(()),
            false => Err(format!("not as before: {after}, but {before}")),
        }
    }

    fn fails(&self, pipeline: &str, version: &str) -> Result<(), String> {
        let (status, message) = self.over(&self.start(pipeline, version))?;
        let told = self
            .words
            .iter()
            .all(|words| message.contains(words.as_str()));
        match status == "Failed" && told && !self.words.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "{status}: {message}, but listed is {:?}",
                self.words
            )),
        }
    }

    /// Ends what waits; tells what no longer did, or did not say why.
    pub(crate) fn still_stalled(mut self) -> Vec<String> {
        let mut faults = Vec::new();
        for run in std::mem::take(&mut self.stalled) {
            let (status, message) = self.run(&run);
            if status != "Running" {
                let id = self.lane.id;
                faults.push(format!("{id}: no longer waits: {status}: {message}"));
                continue;
            }
            self.local.slipway(&["abort", &run]);
            let ended = self.over(&run);
            let log = self.log(&run);
            let told = self.words.iter().all(|words| log.contains(words.as_str()));
            if ended.is_err() || !told || self.words.is_empty() {
                let (id, words) = (self.lane.id, &self.words);
                faults.push(format!("{id}: said {log}, but listed is {words:?}"));
            }
        }
        faults
    }
}

/// A pipeline under another identifier, with a step that fails after all others.
fn broken(text: &str) -> String {
    let text = text.replacen("\n            rollbackSteps:", BROKEN, 1);
    let (head, rest) = text.split_once("\n  orgIdentifier:").expect("a pipeline");
    format!("{head}_broken\n  orgIdentifier:{rest}")
}
