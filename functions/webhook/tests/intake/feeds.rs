//! New artifacts and charts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_engine::gather::{FeedAnswer, FeedErrand, FeedFault, SourceReader};
use slipway_engine::intake::listen;
use slipway_model::id::Scope;
use slipway_model::status::{Failure, Status};
use slipway_plan::{
    ArtifactAnswer, ConnectorPlan, Fetched, ListedVersions, RemoteFiles, WantedArtifact,
};
use slipway_trigger::feed::{Build, Feed};
use slipway_world::World;

use crate::{history, minutes, only_run, runs, said, trigger, world};

pub const DOCKER: &str = "connector:\n  name: hub\n  identifier: hub\n  orgIdentifier: default\n  projectIdentifier: shop\n  type: DockerRegistry\n  spec:\n    dockerRegistryUrl: https://registry.example.com\n    providerType: Other\n    auth: {type: Anonymous}\n";

/// Registries with versions of images, by their path; those that are away have none.
#[derive(Default)]
pub struct Registries {
    images: Mutex<BTreeMap<String, Vec<String>>>,
    asked: Mutex<Vec<String>>,
    busy: Mutex<Busy>,
    /// Who knows what scripts are.
    scripts: Option<Arc<dyn SourceReader>>,
}

/// How many are asked at once.
#[derive(Default)]
struct Busy {
    now: BTreeMap<String, usize>,
    most_of_one: usize,
    most_of_all: usize,
}

impl Busy {
    fn begins(&mut self, host: &str) {
        let of_one = self.now.entry(host.to_owned()).or_default();
        *of_one += 1;
        self.most_of_one = self.most_of_one.max(*of_one);
        self.most_of_all = self.most_of_all.max(self.now.values().sum());
    }

    fn ends(&mut self, host: &str) {
        *self.now.entry(host.to_owned()).or_default() -= 1;
    }
}

impl Registries {
    pub fn has(&self, image: &str, versions: &[&str]) {
        let versions = versions.iter().map(|it| (*it).to_owned()).collect();
        self.images
            .lock()
            .expect("a lock")
            .insert(image.to_owned(), versions);
    }

    /// None yet, where scripts are asked, too.
    pub fn beside(scripts: Arc<dyn SourceReader>) -> Self {
        Self {
            scripts: Some(scripts),
            ..Self::default()
        }
    }

    pub fn asked(&self) -> usize {
        std::mem::take(&mut *self.asked.lock().expect("a lock")).len()
    }
}

#[async_trait]
impl SourceReader for Registries {
    async fn fetch_files(&self, wanted: &[RemoteFiles]) -> Vec<Result<Fetched, String>> {
        wanted
            .iter()
            .map(|_| Err("there is no Git here".to_owned()))
            .collect()
    }

    async fn find_artifacts(
        &self,
        wanted: &[WantedArtifact],
    ) -> Vec<Result<ArtifactAnswer, String>> {
        wanted
            .iter()
            .map(|_| Err("nothing is pinned here".to_owned()))
            .collect()
    }

    async fn list_versions(
        &self,
        _: &WantedArtifact,
        _: usize,
        _: usize,
    ) -> Result<ListedVersions, String> {
        Err("nothing is listed here".to_owned())
    }

    async fn test_connection(&self, _: &ConnectorPlan, _: &Scope) -> Option<Result<(), Failure>> {
        None
    }

    async fn poll_feed(
        &self,
        feed: &Feed,
        connector: Option<&ConnectorPlan>,
        _: &Scope,
        state: Option<&str>,
    ) -> Result<FeedAnswer, FeedFault> {
        let kind = connector.map(|it| it.kind.as_str());
        assert!(matches!(kind, Some("DockerRegistry" | "Aws")), "{kind:?}");
        let image = feed.place["imagePath"]
            .as_str()
            .or_else(|| feed.place["bucketName"].as_str())
            .unwrap_or_default()
            .to_owned();
        self.asked.lock().expect("a lock").push(image.clone());
        let host = connector.map(|it| it.spec["dockerRegistryUrl"].to_string());
        let host = host.unwrap_or_default();
        self.busy.lock().expect("a lock").begins(&host);
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        self.busy.lock().expect("a lock").ends(&host);
        let images = self.images.lock().expect("a lock");
        let Some(versions) = images.get(&image) else {
            return Err(FeedFault {
                message: "the registry is away".to_owned(),
                wait: Some(Duration::from_secs(600)),
            });
        };
        let now = versions.join(" ");
        if state == Some(now.as_str()) {
            return Ok(FeedAnswer::Unchanged);
        }
        let builds = versions.iter().map(Build::of).collect();
        Ok(FeedAnswer::Builds {
            builds,
            state: Some(now),
        })
    }

    fn errand(&self, feed: &Feed, scope: &Scope) -> Result<Option<FeedErrand>, FeedFault> {
        let work = self.scripts.as_ref().map(|it| it.errand(feed, scope));
        work.unwrap_or(Ok(None))
    }

    fn errand_answer(&self, feed: &Feed, result: &Value) -> Result<FeedAnswer, FeedFault> {
        let scripts = self.scripts.as_ref().expect("who gave it out");
        scripts.errand_answer(feed, result)
    }
}

fn on_image(id: &str, image: &str, conditions: &str) -> String {
    let source = format!(
        "type: Artifact\nspec:\n  type: DockerRegistry\n  spec:\n    connectorRef: hub\n    imagePath: {image}\n    tag: <+trigger.artifact.build>\n{conditions}"
    );
    trigger(id, &source, "")
}

pub async fn registries(world: &World) -> (Arc<Registries>, Arc<dyn SourceReader>) {
    world.apply(DOCKER).await;
    let registries = Arc::new(Registries::default());
    let sources: Arc<dyn SourceReader> = registries.clone();
    (registries, sources)
}

#[tokio::test(start_paused = true)]
async fn a_new_version_starts_one_run_of_each_trigger_that_wants_it() {
    let world = world().await;
    let yaml = slipway_world::yaml::pipeline(&[slipway_world::yaml::stage(
        "build",
        &slipway_world::yaml::says("told", "<+trigger.artifact.build>"),
        "",
        "",
    )]);
    world.apply(&yaml.replace("release", "deploy")).await;
    let (has, sources) = registries(&world).await;
    has.has("shop", &["1.0", "1.1"]);
    let stable =
        "    eventConditions:\n      - {key: version, operator: Regex, value: \"[0-9.]+\"}\n";
    for (id, conditions) in [("all", ""), ("stable", stable)] {
        let yaml = on_image(id, "shop", conditions)
            .replace("pipelineIdentifier: release", "pipelineIdentifier: deploy");
        world.apply(&yaml).await;
    }
    // What was there before the trigger starts nothing.
    world.poll(&sources).await;
    assert_eq!(
        (has.asked(), runs(&world).await.len()),
        (1, 0),
        "two triggers, one request"
    );
    has.has("shop", &["1.0", "1.1", "2.0-rc"]);
    minutes(&world, 1).await;
    let polled = world.poll(&sources).await.expect("an answer");
    assert_eq!(polled, json!({"asked": 1, "failed": 0, "new": 1}));
    let run = world.finish(&only_run(&world).await).await;
    assert_eq!(
        (run.trigger_type.as_str(), run.status),
        ("ARTIFACT", Status::Success)
    );
    assert_eq!(said(&world, &run.id).await, "2.0-rc");
    let at = slipway_store::TriggerPlace {
        pipeline: slipway_model::id::EntityId::new("deploy"),
        ..crate::place("stable")
    };
    let rows = world
        .store
        .list_history(&at, slipway_store::Page::first(9))
        .await
        .expect("rows");
    assert_eq!(
        rows.items[0].status,
        "TRIGGER_DID_NOT_MATCH_EVENT_CONDITION"
    );
    // The same again is nothing new.
    minutes(&world, 1).await;
    world.poll(&sources).await;
    assert_eq!(runs(&world).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_is_away_is_asked_less_and_loses_nothing() {
    let world = world().await;
    let (has, sources) = registries(&world).await;
    has.has("shop", &["1.0"]);
    world.apply(&on_image("all", "shop", "")).await;
    world.poll(&sources).await;
    has.images.lock().expect("a lock").clear();
    has.asked();
    for _ in 0..60 {
        minutes(&world, 1).await;
        world.poll(&sources).await;
    }
    // Every ten minutes, as it wants, then less.
    assert!((3..=7).contains(&has.asked()));
    has.has("shop", &["1.0", "1.1"]);
    for _ in 0..61 {
        minutes(&world, 1).await;
        world.poll(&sources).await;
    }
    only_run(&world).await;
    assert_eq!(history(&world, "all").await.len(), 1);
}

/// Saves a trigger that is there once more, as the API does.
async fn change(world: &World, yaml: &str) {
    let parsed = slipway_model::entity::parse("t.yaml", yaml).expect("YAML");
    let place = crate::place(parsed.head.identifier.as_str());
    let kind = slipway_model::Kind::Trigger.key();
    let store = &world.store;
    let found = store.get_entity(&place.scope, kind, Some(&place.pipeline), &place.trigger);
    let before = found.await.expect("a trigger");
    let now = slipway_store::record::EntityRecord {
        yaml: yaml.to_owned(),
        ..before.clone()
    };
    listen::before_saving(&world.runs, &now)
        .await
        .expect("listed");
    let version = Some(before.version);
    store.put_entity(&now, version).await.expect("stored");
    let taken_off = listen::after_saving(&world.runs, &before, Some(&now)).await;
    taken_off.expect("taken off its list");
}

fn every(id: &str, interval: &str, more: &str) -> String {
    on_image(id, "shop", "")
        .replace(
            "type: Artifact\n",
            &format!("type: Artifact\n    pollInterval: {interval}\n"),
        )
        .replace("  source:", &format!("{more}  source:"))
}

#[tokio::test(start_paused = true)]
async fn a_feed_is_asked_as_often_as_the_trigger_that_wants_it_most() {
    let world = world().await;
    let (has, sources) = registries(&world).await;
    has.has("shop", &["1.0"]);
    let asked_in_an_hour = async || {
        world.poll(&sources).await;
        has.asked();
        for _ in 0..60 {
            minutes(&world, 1).await;
            world.poll(&sources).await;
        }
        has.asked()
    };
    // What is off does not ask, nor does what is disabled.
    world.apply(&every("never", "\"0\"", "")).await;
    world.apply(&every("off", "1m", "  enabled: false\n")).await;
    assert_eq!(asked_in_an_hour().await, 0);
    world.apply(&every("often", "2m", "")).await;
    world.apply(&every("seldom", "2h", "")).await;
    assert_eq!(asked_in_an_hour().await, 30);
    change(&world, &every("often", "\"0\"", "")).await;
    assert!(asked_in_an_hour().await <= 1);
    has.has("shop", &["1.0", "1.1"]);
    for _ in 0..120 {
        minutes(&world, 1).await;
        world.poll(&sources).await;
    }
    let run = only_run(&world).await;
    let run = world.store.get_run(&run).await.expect("a run");
    assert_eq!(run.trigger.expect("a trigger").trigger.as_str(), "seldom");
}

#[tokio::test(start_paused = true)]
async fn a_trigger_hears_of_what_comes_after_it_only() {
    let world = world().await;
    let (has, sources) = registries(&world).await;
    let next = async |versions: &[&str]| {
        has.has("shop", versions);
        minutes(&world, 2).await;
        world.poll(&sources).await;
        runs(&world).await.len()
    };
    has.has("shop", &["1"]);
    world.apply(&on_image("first", "shop", "")).await;
    world.poll(&sources).await;
    assert_eq!(next(&["1", "2"]).await, 1);
    // Another that joins begins with what comes next; saving one again changes nothing for it.
    has.has("shop", &["1", "2", "3"]);
    minutes(&world, 1).await;
    world.apply(&on_image("second", "shop", "")).await;
    let changed = on_image("first", "shop", "").replace("name: first", "name: changed");
    change(&world, &changed).await;
    world.poll(&sources).await;
    assert_eq!(runs(&world).await.len(), 2);
    assert_eq!(next(&["1", "2", "3", "4"]).await, 4);
    // While nobody watches, nothing is new to those who begin to.
    for id in ["first", "second"] {
        let off = on_image(id, "shop", "").replace("  source:", "  enabled: false\n  source:");
        change(&world, &off).await;
    }
    assert_eq!(next(&["1", "2", "3", "4", "5"]).await, 4);
    minutes(&world, 100).await;
    change(&world, &on_image("first", "shop", "")).await;
    assert_eq!(next(&["1", "2", "3", "4", "5", "6"]).await, 4);
    assert_eq!(next(&["1", "2", "3", "4", "5", "6", "7"]).await, 5);
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_cannot_be_asked_is_told_of() {
    let world = world().await;
    let (has, sources) = registries(&world).await;
    let yaml = on_image("all", "shop", "");
    world.apply(&yaml).await;
    let parsed = slipway_model::entity::parse("t.yaml", &yaml).expect("YAML");
    let trigger = slipway_trigger::Trigger::of(&parsed).expect("a trigger");
    let place = crate::place("all");
    let standing = async || {
        slipway_engine::intake::poll::standing(&world.runs, &trigger, &place)
            .await
            .expect("an answer")
    };
    assert_eq!(standing().await, None);
    world.poll(&sources).await;
    let why = standing().await.and_then(|feed| feed.why);
    assert_eq!(why.as_deref(), Some("the registry is away"));
    has.has("shop", &["1"]);
    minutes(&world, 60).await;
    world.poll(&sources).await;
    assert_eq!(standing().await.and_then(|feed| feed.why), None);
}

#[tokio::test(start_paused = true)]
async fn a_crash_anywhere_in_a_poll_starts_one_run_for_each_version() {
    // Most requests read lists in which there is nothing.
    for request in (1..).step_by(7) {
        let mut reached = false;
        for after in [false, true] {
            let world = world().await;
            let (has, sources) = registries(&world).await;
            has.has("shop", &["1.0"]);
            world.apply(&on_image("all", "shop", "")).await;
            world.poll(&sources).await;
            has.has("shop", &["1.0", "1.1", "1.2"]);
            minutes(&world, 1).await;
            world.crash.arm(request, after);
            for _ in 0..4 {
                world.poll(&sources).await;
                minutes(&world, 1).await;
                world.take_in().await;
            }
            reached |= !world.crash.is_armed();
            world.crash.disarm();
            assert_eq!(runs(&world).await.len(), 2, "{request} {after}");
            let rows = history(&world, "all").await;
            assert!(rows.iter().all(|row| row.run.is_some()), "{rows:?}");
        }
        if !reached {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn hosts_are_asked_side_by_side_and_each_by_one_at_a_time() {
    let world = world().await;
    let (has, sources) = registries(&world).await;
    for host in 0..5 {
        // The same host under two names of connectors.
        for (id, url) in [
            (format!("a{host}"), format!("https://r{host}.example.com")),
            (
                format!("b{host}"),
                format!("https://R{host}.example.com/v2/"),
            ),
        ] {
            let yaml = DOCKER
                .replace("hub", &id)
                .replace("https://registry.example.com", &url);
            world.apply(&yaml).await;
            for image in 0..2 {
                let image = format!("{id}_{image}");
                has.has(&image, &["1.0"]);
                let yaml = on_image(&image, &image, "");
                world
                    .apply(&yaml.replace("connectorRef: hub", &format!("connectorRef: {id}")))
                    .await;
            }
        }
    }
    let polled = world.poll(&sources).await.expect("an answer");
    assert_eq!(polled, json!({"asked": 20, "failed": 0, "new": 0}));
    let busy = has.busy.lock().expect("a lock");
    // The two names of one host are told apart here by how they are written, and not by who asks.
    let now = busy
        .now
        .keys()
        .map(|host| host.to_ascii_lowercase().replace("/v2/", ""));
    assert_eq!(now.collect::<std::collections::BTreeSet<_>>().len(), 5);
    assert_eq!((busy.most_of_one, busy.most_of_all), (1, 5));
}

#[tokio::test(start_paused = true)]
async fn a_version_of_several_regions_starts_a_run_when_all_have_it() {
    let world = world().await;
    world
        .apply("connector:\n  name: account\n  identifier: account\n  orgIdentifier: default\n  projectIdentifier: shop\n  type: Aws\n  spec:\n    credential: {type: InheritFromDelegate}\n    delegateSelectors: []\n")
        .await;
    let (has, sources) = registries(&world).await;
    let source = "type: MultiRegionArtifact\nspec:\n  type: DockerRegistry\n  eventConditions:\n    - {key: build, operator: Regex, value: \"[0-9.]+\"}\n  sources:\n    - type: DockerRegistry\n      spec: {connectorRef: hub, imagePath: east, tag: <+trigger.artifact.build>}\n    - type: Ecr\n      spec: {connectorRef: account, region: eu-west-1, imagePath: west, tag: <+trigger.artifact.build>}\n";
    world.apply(&trigger("regions", source, "")).await;
    has.has("east", &["1.0", "1.1"]);
    has.has("west", &["1.0"]);
    let next = async || {
        minutes(&world, 1).await;
        world.poll(&sources).await;
        runs(&world).await.len()
    };
    world.poll(&sources).await;
    assert_eq!(next().await, 0);
    has.has("west", &["1.0", "1.1", "2.0-rc"]);
    assert_eq!(next().await, 1, "1.1 is everywhere now");
    has.has("east", &["1.0", "1.1", "2.0-rc", "2.0"]);
    assert_eq!(
        next().await,
        1,
        "2.0 is not everywhere, and 2.0-rc is none that is wanted"
    );
    let row = history(&world, "regions")
        .await
        .into_iter()
        .find(|row| row.run.is_none());
    assert!(row.is_some_and(|row| row.message.contains("2.0-rc")));
    has.has("west", &["1.0", "1.1", "2.0-rc", "2.0"]);
    assert_eq!(next().await, 2);
    // A region that is away says nothing of any version.
    has.images.lock().expect("a lock").remove("west");
    has.has("east", &["3.0"]);
    assert_eq!(next().await, 2);
}
