//! Triggers whose owner left the account: names begin with the id of their case in `docs/hostile.md`.

use serde_json::{Value, json};
use slipway_model::{Kind, entity};
use slipway_store::record::{EntityRecord, OutcomeRecord};
use slipway_trigger::Outcome;
use slipway_world::{Api, World};

use crate::{deliver, history, minutes, on_push, place, push, runs, trigger, world};

const PROJECT: &str = "accountIdentifier=acme&orgIdentifier=default&projectIdentifier=shop";

/// An account with people who call its API.
struct People {
    world: World,
    api: Api,
    ann: String,
    bob: String,
}

impl People {
    async fn new() -> Self {
        let world = world().await;
        let api = world.api().await;
        let (ann, bob) = (world.token("ann").await, world.token("bob").await);
        let project =
            json!({"project": {"identifier": "shop", "name": "shop", "orgIdentifier": "default"}});
        let path = "/ng/api/projects?accountIdentifier=acme&orgIdentifier=default";
        let (status, answer) = api.call(&ann, "POST", path, Some(&project)).await;
        assert_eq!(status, 200, "{answer}");
        Self {
            world,
            api,
            ann,
            bob,
        }
    }

    /// Saves a trigger, as new or again.
    async fn save(&self, token: &str, method: &str, id: &str, yaml: &str) {
        let parsed = entity::parse("trigger.yaml", yaml).expect("a trigger");
        let body = json!({(Kind::Trigger.key()): parsed.to_json()});
        let one = if method == "PUT" {
            format!("/{id}")
        } else {
            String::new()
        };
        let path = format!("/pipeline/api/triggers{one}?{PROJECT}&targetIdentifier=release");
        let (status, answer) = self.api.call(token, method, &path, Some(&body)).await;
        assert_eq!(status, 200, "{answer}");
    }

    async fn remove(&self, token: &str, who: &str) -> (u16, Value) {
        let path = format!("/ng/api/user/{who}?accountIdentifier=acme");
        self.api.call(token, "DELETE", &path, None).await
    }

    async fn restore(&self, token: &str, who: &str) -> (u16, Value) {
        let path = "/ng/api/user/users?accountIdentifier=acme";
        let body = json!({"emails": [who]});
        self.api.call(token, "POST", path, Some(&body)).await
    }

    /// What the API says of the state of a trigger.
    async fn standing(&self, token: &str, id: &str) -> Value {
        let path =
            format!("/pipeline/api/triggers/{id}/details?{PROJECT}&targetIdentifier=release");
        let (status, answer) = self.api.call(token, "GET", &path, None).await;
        assert_eq!(status, 200, "{answer}");
        answer["data"]["triggerStatus"].clone()
    }
}

fn stopped(outcome: &OutcomeRecord) -> bool {
    let told = [
        "ann",
        "removed",
        "by bob",
        "saves it again",
        "slipway user restore ann",
    ];
    let all = told.iter().all(|part| outcome.message.contains(part));
    outcome.status == Outcome::TargetDidNotExecute.name() && outcome.run.is_none() && all
}

#[tokio::test(start_paused = true)]
async fn a9_a_trigger_whose_owner_was_removed_starts_nothing_and_says_so() {
    let people = People::new().await;
    let (world, api) = (&people.world, &people.api);
    people
        .save(&people.ann, "POST", "anns", &on_push("anns", ""))
        .await;
    people
        .save(&people.bob, "POST", "bobs", &on_push("bobs", ""))
        .await;
    let hooks = world.hooks();
    deliver(&hooks, "d-1", &push("0", "a", "2026-01-01T00:00:00Z")).await;
    assert_eq!(runs(world).await.len(), 2);
    assert_eq!(
        people.standing(&people.bob, "anns").await["status"],
        "SUCCESS"
    );

    let (status, answer) = people.remove(&people.bob, "ann").await;
    assert_eq!((status, &answer["data"]), (200, &json!(true)), "{answer}");
    minutes(world, 1).await;
    let (status, _) = deliver(&hooks, "d-2", &push("a", "b", "2026-01-01T00:01:00Z")).await;
    assert_eq!(status, 200, "the sender is answered as ever");
    let [anns, bobs] = [history(world, "anns").await, history(world, "bobs").await];
    assert_eq!((anns.len(), bobs.len()), (2, 2));
    assert!(stopped(&anns[0]), "{:?}", anns[0]);
    assert!(bobs[0].run.is_some(), "{:?}", bobs[0]);
    assert_eq!(runs(world).await.len(), 3);
    let standing = people.standing(&people.bob, "anns").await;
    assert_eq!(standing["status"], "FAILED");
    let why = standing["detailMessages"][0].as_str().unwrap_or_default();
    assert!(why.contains("ann") && why.contains("bob"), "{why}");

    // What would start is told in the same words.
    let body = push("b", "c", "2026-01-01T00:02:00Z");
    let test = json!({"headers": {"x-github-event": "push"}, "payload": body});
    let path = format!("/slipway/api/triggers/test?{PROJECT}");
    let (status, told) = api.call(&people.bob, "POST", &path, Some(&test)).await;
    assert_eq!(status, 200, "{told}");
    let told = told["data"].as_array().expect("verdicts");
    let of = |id: &str| told.iter().find(|one| one["triggerIdentifier"] == id);
    let (anns, bobs) = (of("anns").expect("one"), of("bobs").expect("one"));
    assert_eq!(
        (&anns["fires"], &bobs["fires"]),
        (&json!(false), &json!(true))
    );
    assert!(
        anns["message"]
            .to_string()
            .contains("slipway user restore ann"),
        "{anns}"
    );

    // She comes back, and all of it with her; the event that was refused stays refused.
    let (status, answer) = people.restore(&people.bob, "ann").await;
    let added = json!({"addUserResponseMap": {"ann": "USER_ADDED_SUCCESSFULLY"}});
    assert_eq!((status, &answer["data"]), (200, &added), "{answer}");
    assert_eq!(
        people.standing(&people.ann, "anns").await["status"],
        "SUCCESS"
    );
    minutes(world, 1).await;
    deliver(&hooks, "d-3", &body).await;
    assert_eq!(runs(world).await.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a9_who_saves_a_trigger_again_is_its_owner() {
    let people = People::new().await;
    let world = &people.world;
    let yaml = on_push("main", "");
    people.save(&people.ann, "POST", "main", &yaml).await;
    people.remove(&people.bob, "ann").await;
    let hooks = world.hooks();
    deliver(&hooks, "d-1", &push("0", "a", "2026-01-01T00:00:00Z")).await;
    assert!(stopped(&history(world, "main").await[0]));
    // The text is the same: it is another person who saves it.
    people.save(&people.bob, "PUT", "main", &yaml).await;
    assert_eq!(
        people.standing(&people.bob, "main").await["status"],
        "SUCCESS"
    );
    minutes(world, 1).await;
    deliver(&hooks, "d-2", &push("a", "b", "2026-01-01T00:01:00Z")).await;
    assert_eq!(runs(world).await.len(), 1);
    // Of a trigger that is theirs already nothing is written again.
    let stored = async || {
        let place = place("main");
        let found = world.store.find_entity(
            &place.scope,
            "trigger",
            Some(&place.pipeline),
            &place.trigger,
        );
        found.await.expect("read").expect("a trigger")
    };
    let before: EntityRecord = stored().await;
    people.save(&people.bob, "PUT", "main", &yaml).await;
    assert_eq!(stored().await, before);
}

#[tokio::test(start_paused = true)]
async fn a9_a_trigger_goes_on_when_a_token_ends_or_nobody_knows_who_saved_it() {
    let people = People::new().await;
    let world = &people.world;
    // As an earlier version kept it.
    world.apply(&on_push("old", "")).await;
    people
        .save(&people.ann, "POST", "anns", &on_push("anns", ""))
        .await;
    world
        .store
        .delete_token(&people.ann)
        .await
        .expect("deleted");
    let hooks = world.hooks();
    deliver(&hooks, "d-1", &push("0", "a", "2026-01-01T00:00:00Z")).await;
    assert_eq!(runs(world).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a9_schedules_and_calls_by_url_of_one_who_was_removed_start_nothing_either() {
    let people = People::new().await;
    let world = &people.world;
    let every = "type: Scheduled\nspec:\n  type: Cron\n  spec:\n    type: UNIX\n    expression: \"*/5 * * * *\"\n";
    people
        .save(&people.ann, "POST", "clock", &trigger("clock", every, ""))
        .await;
    let custom = "type: Webhook\nspec:\n  type: Custom\n  spec: {}\n";
    people
        .save(
            &people.ann,
            "POST",
            "called",
            &trigger("called", custom, ""),
        )
        .await;
    people.remove(&people.bob, "ann").await;
    minutes(world, 6).await;
    world.take_in().await.expect("an answer");
    let path = format!(
        "/pipeline/api/webhook/custom/v2?{PROJECT}&pipelineIdentifier=release&triggerIdentifier=called"
    );
    let hooks = world.hooks();
    let body = "{\"a\": 1}";
    let (status, answer) = hooks
        .post(&path, &[("x-api-key", &*people.bob)], body)
        .await;
    assert_eq!(status, 200, "{answer}");
    for id in ["clock", "called"] {
        let told = history(world, id).await;
        assert!(
            !told.is_empty() && told.iter().all(stopped),
            "{id}: {told:?}"
        );
    }
    assert!(runs(world).await.is_empty());
    // Her own token opens nothing there.
    let (status, answer) = hooks
        .post(&path, &[("x-api-key", &*people.ann)], body)
        .await;
    assert_eq!(status, 401, "{answer}");
}
