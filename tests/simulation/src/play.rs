//! Plays a case on the real machines, functions, store and sandbox.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use slipway_engine::abort::abort_run;
use slipway_engine::signal::{self, say};
use slipway_engine::stage_word::StageWord;
use slipway_model::id::{NodeId, PrincipalId, RunId, StageId};
use slipway_sandbox::{ImageBehaviour, ImageRule};
use slipway_world::receiver::Receiver;
use slipway_world::{Options, World};
use tokio::time::Instant;

use crate::ast::{Case, Fault, Said, Stop, Word};
use crate::faults::{Faults, Traced};
use crate::seen::Seen;
use crate::yaml;

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
pub fn play(case: &Case, traced: Traced) -> Seen {
    fastrand::seed(case.seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(Play::whole(case, traced))
}

/// A case while it is played.
pub(crate) struct Play {
    pub(crate) world: World,
    pub(crate) server: Option<Receiver>,
    /// The stages that run other pipelines.
    pub(crate) chained: Vec<String>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) from: Instant,
    pub(crate) runs: Vec<RunId>,
}

impl Play {
    async fn whole(case: &Case, traced: Traced) -> Seen {
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
        let server = match case.has_server() {
            true => Some(Receiver::new().await),
            false => None,
        };
        let options = Options {
            tap: Some(faults.clone()),
            in_memory: true,
            real_servers: server.is_some(),
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
        let mut text = yaml::pipeline(&case.pipeline, case.notices.is_some());
        if let Some(server) = &server {
            server.go_away(case.notices.unwrap_or(0));
            text = text.replace(yaml::SERVER, server.url("").trim_end_matches('/'));
        }
        if let Some(freeze) = case.freeze {
            world.apply(&yaml::freeze(freeze)).await;
        }
        world.apply(slipway_world::yaml::LEADS).await;
        for child in yaml::children(&case.pipeline) {
            world.apply(&child).await;
        }
        world.apply(&text).await;
        let mut play = Self {
            world,
            server,
            chained: stages_with_children(case),
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
                Fault::Request { .. } | Fault::Invocation { .. } | Fault::Token { .. } => {}
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
        let runs = &self.world.people;
        let sam = PrincipalId::new("sam");
        let word = match &said.word {
            Word::Abort => {
                let done = abort_run(runs, run, &sam).await;
                self.heard(&said.word, done.err().map(|error| error.to_string()));
                return;
            }
            Word::AbortStage(stage) => of_stage(stage, StageWord::Abort),
            Word::StopStage(stage, Stop::Fail) => of_stage(stage, StageWord::MarkAsFailed),
            Word::StopStage(stage, Stop::Expire) => of_stage(stage, StageWord::Expire),
            Word::StopStage(stage, Stop::RollBack) => of_stage(stage, StageWord::RollBack),
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
}

fn of_stage(stage: &str, word: StageWord) -> signal::Word {
    signal::Word::Stage {
        stage: StageId::new(stage),
        word,
    }
}

fn stages_with_children(case: &Case) -> Vec<String> {
    let stages = case.pipeline.stages();
    let chained = stages.filter(|stage| stage.child().is_some());
    chained.map(|stage| stage.id.clone()).collect()
}
