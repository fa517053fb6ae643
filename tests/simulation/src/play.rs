//! Plays a case on the real machines, functions, store and sandbox.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use slipway_engine::abort::abort_run;
use slipway_engine::signal::{self, say};
use slipway_model::id::{NodeId, PrincipalId, RunId};
use slipway_sandbox::{ImageBehaviour, ImageRule};
use slipway_store::record::{NodeRecord, RunRecord};
use slipway_world::{Options, World};
use tokio::time::Instant;

use crate::ast::{Case, Fault, Image, Said, Story, Word};
use crate::faults::Faults;
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
}

enum Event<'c> {
    Start,
    Word(&'c Said),
    Restart,
    Jump(u64),
}

/// Plays a case, in time of its own.
///
/// # Panics
/// When the world cannot be had.
pub fn play(case: &Case, traced: bool) -> Seen {
    fastrand::seed(case.seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(Play::whole(case, traced))
}

struct Play {
    world: World,
    faults: Arc<Faults>,
    from: Instant,
    runs: Vec<RunId>,
}

impl Play {
    async fn whole(case: &Case, traced: bool) -> Seen {
        let faults = Arc::new(Faults::new(
            &case.faults,
            case.seed.is_multiple_of(2),
            traced,
        ));
        let restarts = |fault: &Fault| matches!(fault, Fault::Restart { .. });
        let folder = case.faults.iter().any(restarts).then(|| {
            let memory = std::path::Path::new("/dev/shm");
            match memory.is_dir() {
                true => tempfile::tempdir_in(memory),
                false => tempfile::tempdir(),
            }
            .expect("a folder")
        });
        let options = Options {
            tap: Some(faults.clone()),
            in_memory: true,
            journal: folder.as_ref().map(|folder| folder.path().join("journal")),
            ..Options::default()
        };
        let world = World::with(options).await;
        if case.pipeline.stages().any(|stage| stage.deploys.is_some()) {
            world.apply(&yaml::target()).await;
            world
                .ecs("CreateCluster", &json!({"clusterName": "main"}))
                .await;
            let missing = ImageRule {
                image: "missing:2".to_owned(),
                behaviour: ImageBehaviour::PullFails,
                exit_code: 1,
            };
            world.sandbox.set_image(missing).expect("a rule");
        }
        world.apply(&yaml::pipeline(&case.pipeline)).await;
        let mut play = Self {
            world,
            faults,
            from: Instant::now(),
            runs: Vec::new(),
        };
        play.events(case).await;
        play.see().await
    }

    async fn events(&mut self, case: &Case) {
        let mut events: Vec<(u64, Event<'_>)> = Vec::new();
        events.extend(case.starts.iter().map(|at| (*at, Event::Start)));
        events.extend(case.words.iter().map(|said| (said.at, Event::Word(said))));
        for fault in &case.faults {
            match fault {
                Fault::Restart { at } => events.push((*at, Event::Restart)),
                Fault::Jump { at, by } => events.push((*at, Event::Jump(*by))),
                Fault::Request { .. } | Fault::Invocation { .. } => {}
            }
        }
        events.sort_by_key(|(at, _)| *at);
        for (at, event) in events {
            tokio::time::sleep_until(self.from + Duration::from_secs(at)).await;
            match event {
                Event::Start => {
                    self.faults.note("a run is started");
                    let run = self.world.start("sim").await;
                    self.runs.push(run);
                }
                Event::Word(said) => self.says(said).await,
                Event::Restart => {
                    self.faults.note("Step Functions restarts");
                    self.world.engine.restart().await;
                }
                Event::Jump(by) => {
                    self.faults.note(&format!("the clock jumps by {by} s"));
                    tokio::time::advance(Duration::from_secs(by)).await;
                }
            }
        }
    }

    /// Says a word; what does not fit is refused, as in the model.
    async fn says(&self, said: &Said) {
        let Some(run) = self.runs.get(said.run) else {
            return;
        };
        let runs = &self.world.runs;
        let sam = PrincipalId::new("sam");
        let word = match &said.word {
            Word::Abort => {
                let done = abort_run(runs, run, &sam).await;
                self.heard(&said.word, done.err().map(|error| error.to_string()));
                return;
            }
            Word::Pause => signal::Word::Pause,
            Word::Resume => signal::Word::Resume,
            Word::MarkAsFailed => signal::Word::MarkAsFailed,
            Word::Expire => signal::Word::Expire,
            Word::MarkNode(node) => signal::Word::MarkNodeAsFailed {
                node: NodeId::new(node.as_str()),
            },
            Word::Vote {
                node,
                who,
                approves,
            } => {
                let node = NodeId::new(node.as_str());
                let known = self.world.store.get_node(run, &node).await;
                let known = known.expect("the store is not tapped here");
                let verdict = if *approves { "APPROVE" } else { "REJECT" };
                signal::Word::Step {
                    node,
                    attempt: known.map_or(0, |known| known.attempt),
                    kind: format!("approval:{who}"),
                    says: format!(
                        "{{\"verdict\": \"{verdict}\", \"comments\": \"\", \"inputs\": {{}}}}"
                    ),
                }
            }
            Word::Answer { node, action } => signal::Word::Answer {
                node: NodeId::new(node.as_str()),
                action: (*action).to_owned(),
            },
        };
        let done = say(runs, run, &sam, &word).await;
        self.heard(&said.word, done.err().map(|error| error.to_string()));
    }

    /// Notes what was said, and why it was refused if it was; run ids are not the seed's.
    fn heard(&self, word: &Word, refused: Option<String>) {
        let refused = refused.map(|mut text| {
            for (number, run) in self.runs.iter().enumerate() {
                text = text.replace(run.as_str(), &number.to_string());
            }
            format!(" (refused: {text})")
        });
        let refused = refused.unwrap_or_default();
        self.faults.note(&format!("said {word:?}{refused}"));
    }

    async fn see(&self) -> Seen {
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
            });
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
