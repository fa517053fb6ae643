//! What is seen of a case that was played: in the store, in the account, at the server.

use std::time::Duration;

use serde_json::json;
use slipway_model::id::{EntityId, RunId};
use slipway_model::status::Status;
use slipway_store::Page;
use slipway_store::record::{NodeRecord, RunRecord};
use slipway_world::receiver::Receiver;

use crate::ast::{Image, Story};
use crate::notices::Told;
use crate::play::Play;
use crate::yaml;

/// How long nothing may happen any more after the last run has ended: functions that were held up go on.
const AFTERMATH: Duration = Duration::from_secs(1_800);

/// What was seen of a case.
pub struct Seen {
    /// What was seen of each run.
    pub runs: Vec<SeenRun>,
    /// What nobody holds any more should be here.
    pub holds: Vec<String>,
    /// Executions that are open at the end.
    pub open: u64,
    /// Tasks that the delegate did, once per time.
    pub deeds: Vec<String>,
    /// The services of the account that is deployed to.
    pub services: Vec<SeenService>,
    /// What functions did, a line each.
    pub trace: Vec<String>,
    /// Requests of functions to stores, workflows and targets.
    pub requests: [u64; 3],
}

/// What was seen of a service in the account.
#[derive(Debug)]
pub struct SeenService {
    /// Its name.
    pub name: &'static str,
    /// `ACTIVE`, or something else where it does not serve.
    pub status: String,
    /// Tasks that run.
    pub running: u64,
    /// Tasks that should.
    pub desired: u64,
    /// Task definitions that were registered for it.
    pub revisions: usize,
}

/// What was seen of a run.
pub struct SeenRun {
    /// How it came out.
    pub story: Story,
    /// Its record; none if it did not end.
    pub record: Option<RunRecord>,
    /// All attempts of its nodes.
    pub nodes: Vec<NodeRecord>,
    /// When it ended, in milliseconds after the first start.
    pub ended_ms: u64,
    /// Waits that are left.
    pub waits: Vec<String>,
    /// What was different some time after its end.
    pub changed: Option<String>,
    /// The steps that asked the server, once per request.
    pub asked: Vec<String>,
    /// What was told to the server.
    pub told: Told,
    /// The runs that its stages started.
    pub children: Vec<SeenChild>,
}

/// A run that a stage started.
#[derive(Debug)]
pub struct SeenChild {
    /// The stage.
    pub stage: String,
    /// How it ended.
    pub status: Status,
    /// Waits that are left.
    pub waits: usize,
}

impl Play {
    /// Waits for the ends of all runs, and looks.
    pub(crate) async fn see(&self) -> Seen {
        let mut runs = Vec::new();
        for run in &self.runs {
            let ended = self.finish(run).await;
            let (story, record) = self.story(run).await;
            runs.push(SeenRun {
                story,
                record: Some(record).filter(|_| ended),
                nodes: self
                    .world
                    .store
                    .list_nodes(run, None)
                    .await
                    .expect("the nodes"),
                ended_ms: 0,
                waits: Vec::new(),
                changed: None,
                asked: Vec::new(),
                told: Told::new(),
                children: Vec::new(),
            });
        }
        for run in &self.runs {
            for (_, child) in self.runs_of_stages(run).await {
                // One that does not end is still open in what is seen of it.
                self.finish(&child.id).await;
            }
        }
        self.faults.note("all runs have ended");
        tokio::time::sleep(AFTERMATH).await;
        let begun = self.begun_ms();
        for (run, seen) in self.runs.iter().zip(&mut runs) {
            let (later, record) = self.story(run).await;
            if later != seen.story {
                seen.changed = Some(later.told());
            }
            let ended = record.ended_ms.unwrap_or(record.started_ms);
            seen.ended_ms = u64::try_from(ended - begun).unwrap_or(0);
            let waits = self.world.store.list_waits(run).await.expect("the waits");
            seen.asked = self.asked(run);
            seen.told = self.told(run);
            seen.children = self.children(run).await;
            seen.waits = waits
                .iter()
                .map(|wait| format!("{} {}", wait.node, wait.kind))
                .collect();
        }
        Seen {
            runs,
            holds: self.world.holds().await,
            open: self.world.engine.counters().open,
            deeds: self.world.deeds.list(),
            services: self.services().await,
            trace: self.faults.trace(),
            requests: self.faults.counts(),
        }
    }

    /// The steps of a run that asked the server.
    fn asked(&self, run: &RunId) -> Vec<String> {
        let got = self.server.iter().flat_map(Receiver::got);
        let steps = got.filter_map(|got| {
            let (of, step) = got.query.strip_prefix("run=")?.split_once("&step=")?;
            (of == run.as_str()).then(|| step.to_owned())
        });
        steps.collect()
    }

    /// The events of a run that the server was told.
    fn told(&self, run: &RunId) -> Told {
        let mut told = Told::new();
        let bodies = self.server.iter().flat_map(Receiver::got);
        let events = bodies.flat_map(|got| {
            let data = got.body["eventData"].clone();
            // What was missed meanwhile comes in one message.
            match data["eventType"].as_str() {
                Some("Digest") => data["events"].as_array().cloned().unwrap_or_default(),
                _ => vec![data],
            }
        });
        for data in events {
            let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
            if text("planExecutionId") == run.as_str() {
                let event = (
                    text("eventType"),
                    text("stageIdentifier"),
                    text("stepIdentifier"),
                );
                *told.entry(event).or_default() += 1;
            }
        }
        told
    }

    /// The runs that stages of a run started.
    async fn children(&self, run: &RunId) -> Vec<SeenChild> {
        let mut children = Vec::new();
        for (stage, child) in self.runs_of_stages(run).await {
            let waits = self.world.store.list_waits(&child.id).await;
            children.push(SeenChild {
                stage,
                status: child.status,
                waits: waits.expect("the waits").len(),
            });
        }
        children
    }

    /// The same as they are recorded, each with its stage.
    async fn runs_of_stages(&self, run: &RunId) -> Vec<(String, RunRecord)> {
        let (scope, store) = (slipway_world::scope(), &self.world.store);
        let mut runs = Vec::new();
        for stage in &self.chained {
            let pipeline = EntityId::new(yaml::child_of(stage));
            let found = store
                .list_runs(&scope, Some(&pipeline), Page::first(100))
                .await;
            let started = found.expect("the runs").items.into_iter();
            let own = started.filter(|child| {
                let parent = child.parent.as_ref();
                parent.is_some_and(|parent| parent.run == *run)
            });
            runs.extend(own.map(|child| (stage.clone(), child)));
        }
        runs
    }

    async fn services(&self) -> Vec<SeenService> {
        let mut services = Vec::new();
        for name in [Image::Good, Image::Missing].map(Image::service) {
            let family = json!({"familyPrefix": name});
            let listed = self.world.ecs("ListTaskDefinitions", &family).await;
            let wanted = json!({"cluster": "main", "services": [name]});
            let described = self.world.ecs("DescribeServices", &wanted).await;
            let service = &described["services"][0];
            services.push(SeenService {
                name,
                status: service["status"].as_str().unwrap_or("absent").to_owned(),
                running: service["runningCount"].as_u64().unwrap_or(0),
                desired: service["desiredCount"].as_u64().unwrap_or(0),
                revisions: listed["taskDefinitionArns"].as_array().map_or(0, Vec::len),
            });
        }
        services
    }

    /// The time on the clock at which the case began.
    fn begun_ms(&self) -> i64 {
        let gone = i64::try_from(self.from.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.world.runs.clock.now_ms() - gone
    }

    /// Waits until a run's execution has ended; whether it did within any sensible time.
    async fn finish(&self, run: &RunId) -> bool {
        let mut pause = Duration::from_secs(60);
        for _ in 0..1_000 {
            if self.world.has_ended(run).await {
                return true;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 5 / 4).min(Duration::from_secs(3_600));
        }
        false
    }

    async fn story(&self, run: &RunId) -> (Story, RunRecord) {
        let record = self.world.store.get_run(run).await.expect("the run");
        let nodes = self
            .world
            .store
            .list_nodes(run, None)
            .await
            .expect("the nodes");
        let mut story = Story {
            run: Some(format!("{:?}", record.status)),
            ..Story::default()
        };
        for stage in &record.stages {
            story.note(stage.id.as_str(), 0, stage.status);
        }
        for node in &nodes {
            let known = story.nodes.get(node.id.as_str());
            if known.is_none_or(|(attempt, _)| *attempt <= node.attempt) {
                story.note(node.id.as_str(), node.attempt, node.status);
            }
        }
        (story, record)
    }
}
