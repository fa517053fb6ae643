//! Which triggers are read for a delivery, of accounts that have many.

use slipway_engine::intake::listen::{after_saving, before_saving};
use slipway_model::id::EntityId;
use slipway_store::TriggerPlace;
use slipway_store::record::{EntityRecord, OutcomeRecord};
use slipway_world::{World, scope};

use crate::{deliver, history, on_push, place, push, runs, world};

/// Reads of the store for one delivery until its event is handled.
async fn reads(world: &World, hooks: &slipway_world::Hooks, id: &str, push: &str) -> u64 {
    let before = world.store.reads();
    let (status, answer) = deliver(hooks, id, push).await;
    assert_eq!(status, 200, "{answer}");
    world.store.reads() - before
}

/// Pushes to `main`, one after the other.
fn nth(number: usize) -> String {
    let state = |number: usize| char::from(b"abcdef"[number % 6]).to_string();
    let at = format!("2026-01-01T00:{number:02}:00Z");
    push(&state(number), &state(number + 1), &at)
}

#[tokio::test(start_paused = true)]
async fn a_delivery_reads_no_more_for_two_thousand_triggers_of_other_repositories() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    reads(&world, &hooks, "d-0", &nth(0)).await;
    let alone = reads(&world, &hooks, "d-1", &nth(1)).await;
    for number in 0..2_000 {
        let at = TriggerPlace {
            trigger: EntityId::new(format!("t{number}")),
            ..place("main")
        };
        let said = format!(r#"{{"secrets":["hook"],"repository":"other-{number}"}}"#);
        let listed = world.store.listen("webhook/Github", &at, &said).await;
        listed.expect("listed");
    }
    // The list itself is read once.
    reads(&world, &hooks, "d-2", &nth(2)).await;
    let among = reads(&world, &hooks, "d-3", &nth(3)).await;
    assert_eq!(among, alone);
    assert_eq!(runs(&world).await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_list_in_memory_is_read_anew_when_a_trigger_comes_or_goes() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    deliver(&hooks, "d-0", &nth(0)).await;
    world.put_secret("other", "another secret").await;
    world.apply(&on_push("second", "")).await;
    deliver(&hooks, "d-1", &nth(1)).await;
    assert_eq!(history(&world, "second").await.len(), 1);
    let gone = stored(&world, "second").await;
    let kind = slipway_model::Kind::Trigger.key();
    let deleted =
        world
            .store
            .delete_entity(&gone.scope, kind, gone.parent.as_ref(), &gone.id, None);
    deleted.await.expect("deleted");
    after_saving(&world.runs, &gone, None)
        .await
        .expect("taken off");
    deliver(&hooks, "d-2", &nth(2)).await;
    assert_eq!(history(&world, "second").await.len(), 1);
    assert_eq!(history(&world, "main").await.len(), 3);
}

async fn stored(world: &World, trigger: &str) -> EntityRecord {
    let kind = slipway_model::Kind::Trigger.key();
    let (scope, at) = (scope(), place(trigger));
    let found = world
        .store
        .find_entity(&scope, kind, Some(&at.pipeline), &at.trigger);
    found.await.expect("an answer").expect("a trigger")
}

/// Whoever saves a trigger may die between its list and the trigger itself.
#[tokio::test(start_paused = true)]
async fn a_trigger_that_is_being_changed_is_heard_as_what_it_is_and_as_what_it_becomes() {
    let world = world().await;
    world.apply(&on_push("main", "")).await;
    let hooks = world.hooks();
    let old = stored(&world, "main").await;
    let new = EntityRecord {
        yaml: old.yaml.replace("repoName: shop", "repoName: billing"),
        ..old.clone()
    };
    before_saving(&world.runs, &new).await.expect("listed");
    deliver(&hooks, "d-0", &nth(0)).await;
    assert_eq!(
        history(&world, "main").await.len(),
        1,
        "it is still the old one"
    );
    world
        .store
        .put_entity(&new, Some(old.version))
        .await
        .expect("saved");
    let of_billing = |number| nth(number).replace("acme/shop", "acme/billing");
    deliver(&hooks, "d-1", &of_billing(1)).await;
    assert_eq!(history(&world, "main").await.len(), 2);
    after_saving(&world.runs, &old, Some(&new))
        .await
        .expect("listed");
    deliver(&hooks, "d-2", &of_billing(2)).await;
    deliver(&hooks, "d-3", &nth(3)).await;
    assert_eq!(history(&world, "main").await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_trigger_follows_its_connector_to_another_repository() {
    let world = world().await;
    let connector = |url: &str, kind: &str| {
        format!(
            "connector:\n  name: git\n  identifier: git\n  orgIdentifier: default\n  projectIdentifier: shop\n  type: Github\n  spec:\n    url: {url}\n    type: {kind}\n    authentication: {{type: Http, spec: {{type: UsernameToken, spec: {{username: alex, tokenRef: hook}}}}}}\n"
        )
    };
    world
        .apply(&connector("https://github.com/acme/shop", "Repo"))
        .await;
    let yaml = on_push("main", "").replace("repoName: shop", "connectorRef: git");
    world.apply(&yaml).await;
    let account = yaml.replace(": main", ": account").replace(
        "connectorRef: git",
        "connectorRef: git\n          repoName: billing",
    );
    world.apply(&account).await;
    let hooks = world.hooks();
    let of_billing = |number| nth(number).replace("acme/shop", "acme/billing");
    deliver(&hooks, "d-0", &nth(0)).await;
    deliver(&hooks, "d-1", &of_billing(1)).await;
    let rows = async || {
        let rows = [
            history(&world, "main").await,
            history(&world, "account").await,
        ];
        rows.map(|rows| rows.len())
    };
    // A connector to one repository is about that one, whatever else the trigger names.
    assert_eq!(rows().await, [1, 1]);
    let kind = slipway_model::Kind::Connector.key();
    let id = EntityId::new("git");
    let found = world.store.find_entity(&scope(), kind, None, &id).await;
    let found = found.expect("an answer").expect("a connector");
    let of_many = EntityRecord {
        yaml: connector("https://github.com/acme", "Account"),
        ..found.clone()
    };
    let put = world.store.put_entity(&of_many, Some(found.version)).await;
    put.expect("saved");
    deliver(&hooks, "d-2", &of_billing(2)).await;
    let told = history(&world, "main").await;
    let of_many = |row: &&OutcomeRecord| row.status == "VALIDATION_FAILED_FOR_TRIGGER";
    assert_eq!(told.iter().filter(of_many).count(), 1, "{told:?}");
    assert_eq!(rows().await, [2, 2]);
    deliver(&hooks, "d-3", &nth(3)).await;
    assert_eq!(
        rows().await[1],
        2,
        "the account's billing, and no other repository"
    );
}
