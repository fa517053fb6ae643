//! The golden traces: each story on the real machines, in virtual time. `SLIPWAY_TRACES=write` writes them anew.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_world::{Api, Options, World};

use crate::case::{Case, all, folder};
use crate::others::{Others, Vault};
use crate::outcome::{CLUSTER, HEAD, outcome};
use crate::place::{Answer, Call, Place};
use crate::play::play;
use crate::show;

/// Who speaks in stories.
pub(crate) const PEOPLE: [&str; 3] = ["alex", "kim", "sam"];

/// Time between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// A world as a place.
struct Virtual<'a> {
    world: &'a World,
    api: Api,
    tokens: BTreeMap<&'static str, String>,
}

#[async_trait(?Send)]
impl Place for Virtual<'_> {
    async fn call(&self, who: &str, call: &Call, _repeated: bool) -> Answer {
        let token = &self.tokens[who];
        let answer = self
            .api
            .call(token, call.method, &call.path, call.body.as_ref());
        let (status, body) = answer.await;
        Answer {
            status,
            body,
            again: false,
        }
    }

    async fn ecs(&self, operation: &str, body: &Value) -> Value {
        self.world.ecs(operation, body).await
    }

    async fn pass(&self) {
        self.world.runs.clock.sleep(PAUSE).await;
    }

    fn now_ms(&self) -> i64 {
        self.world.runs.clock.now_ms()
    }
}

/// The trace of a story.
async fn trace(case: &Case) -> String {
    let others = Others::new().await;
    let world = World::with(Options {
        in_memory: true,
        real_servers: case.calls(),
        secrets: Arc::new(Vault),
        ..Options::default()
    })
    .await;
    let mut tokens = BTreeMap::new();
    for who in PEOPLE {
        tokens.insert(who, world.token(who).await);
    }
    let place = Virtual {
        api: world.api().await,
        world: &world,
        tokens,
    };
    world
        .ecs("CreateCluster", &json!({"clusterName": CLUSTER}))
        .await;
    let story = play(&place, case, &others).await;
    // What others do after the end: notices, tasks that come and go.
    for _ in 0..60 {
        place.pass().await;
    }
    for run in &story.played().runs {
        let id = slipway_model::id::RunId::new(run);
        world.assert_clean(&id).await;
    }
    assert_eq!(
        world.holds().await,
        [""; 0],
        "{}: somebody holds something",
        case.name
    );
    let events = show::events(&world, &story).await;
    let outcome = outcome(&story).await;
    format!("{}\n\n{events}{HEAD}{outcome}", case.about)
}

#[tokio::test(start_paused = true)]
async fn each_story_has_its_golden_trace() {
    let write = std::env::var("SLIPWAY_TRACES").is_ok_and(|what| what == "write");
    let mut wrong = Vec::new();
    for case in all() {
        let trace = trace(&case).await;
        if write {
            std::fs::write(case.trace(), &trace).expect("written");
        } else if case.golden() != trace {
            wrong.push(format!("{}:\n{trace}", case.trace().display()));
        }
    }
    assert!(
        wrong.is_empty(),
        "traces are not as they were; if they should be, write them with SLIPWAY_TRACES=write:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn the_list_names_every_trace() {
    let list = std::fs::read_to_string(folder().join("README.md")).expect("the list");
    let named = |word: &str| word.ends_with(".trace.txt)").then(|| word.to_owned());
    let links = list.split(['(', ' ', ',']).filter_map(named);
    let mut listed: Vec<String> = links.collect();
    listed.sort();
    listed.dedup();
    let files: Vec<String> = all()
        .iter()
        .map(|case| format!("{}.trace.txt)", case.name))
        .collect();
    assert_eq!(listed, files);
}
