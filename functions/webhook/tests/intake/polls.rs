//! Many triggers on artifacts of many registries, counted. `cargo xtask bench` does it with ten thousand of them.

use std::sync::Arc;

use serde_json::json;
use slipway_engine::gather::SourceReader;
use slipway_world::registries::{Asked, Registries};
use slipway_world::{Options, World, minutes};

use crate::{furnish, runs};

const REGISTRIES: usize = 50;
/// In each registry.
const REPOSITORIES: usize = 2;
/// On each repository.
const TRIGGERS: usize = 10;

#[tokio::test(start_paused = true)]
async fn a_thousand_triggers_over_fifty_registries_ask_once_for_each_repository() {
    let world = World::with(Options {
        in_memory: true,
        hollow: true,
        ..Options::default()
    })
    .await;
    furnish(&world).await;
    Registries::watched(&world, REGISTRIES, REPOSITORIES, TRIGGERS).await;
    let registries = Arc::new(Registries::default());
    let sources: Arc<dyn SourceReader> = registries.clone();
    let all = REGISTRIES * REPOSITORIES;
    let each = |times, for_all| {
        let asked = registries.asked();
        asked.len() == all
            && asked
                .values()
                .all(|asked| *asked == Asked { times, for_all })
    };
    let polled = world.poll(&sources).await.expect("an answer");
    assert_eq!(polled, json!({"asked": all, "failed": 0, "new": 0}));
    assert!(each(1, 1));
    // From then on each is asked only for what is new since.
    for _ in 0..3 {
        minutes(&world, 1).await;
        world.poll(&sources).await.expect("an answer");
        assert!(each(1, 0));
    }
    // One registry is away: it is asked less and less, and the others as before.
    registries.goes_away(Registries::url(7));
    for _ in 0..15 {
        minutes(&world, 1).await;
        world.poll(&sources).await.expect("an answer");
    }
    for ((registry, image), asked) in registries.asked() {
        let times = if registry == Registries::url(7) {
            4
        } else {
            15
        };
        assert_eq!(asked, Asked { times, for_all: 0 }, "{registry} {image}");
    }
    assert!(runs(&world).await.is_empty());
    // What is new in one repository starts a run of each of its triggers, and nothing else.
    registries.has_newer((Registries::url(3), "image1".to_owned()));
    minutes(&world, 1).await;
    let polled = world.poll(&sources).await.expect("an answer");
    assert_eq!(polled["new"], json!(1));
    assert_eq!(runs(&world).await.len(), TRIGGERS);
}
