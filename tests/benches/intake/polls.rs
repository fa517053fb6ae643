//! Ten thousand triggers on images of fifty registries, counted in virtual time: who is asked for what, and what a poll of
//! all costs beside the registries.

use std::sync::Arc;
use std::time::Instant;

use slipway_engine::gather::SourceReader;
use slipway_world::registries::Registries;
use slipway_world::{Options, World, minutes};

use crate::Failure;

const REGISTRIES: usize = 50;
/// In each registry.
const REPOSITORIES: usize = 40;
/// On each repository.
const TRIGGERS: usize = 5;

/// Prints what polls of some minutes ask.
pub(crate) fn measure() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()?;
    runtime.block_on(count());
    Ok(())
}

async fn count() {
    let world = World::with(Options {
        in_memory: true,
        hollow: true,
        ..Options::default()
    })
    .await;
    let steps = slipway_world::yaml::wait("first", "1s");
    let stage = slipway_world::yaml::stage("build", &steps, "", "");
    world.apply(&slipway_world::yaml::pipeline(&[stage])).await;
    Registries::watched(&world, REGISTRIES, REPOSITORIES, TRIGGERS).await;
    let registries = Arc::new(Registries::default());
    let sources: Arc<dyn SourceReader> = registries.clone();
    println!(
        "\npolls: {} triggers on {} repositories of {REGISTRIES} registries",
        REGISTRIES * REPOSITORIES * TRIGGERS,
        REGISTRIES * REPOSITORIES,
    );
    for minute in 0..5 {
        if minute == 3 {
            registries.goes_away(Registries::url(7));
        }
        let began = Instant::now();
        world.poll(&sources).await;
        let took = began.elapsed();
        let asked = registries.asked();
        let sum = |of: fn(&slipway_world::registries::Asked) -> usize| {
            asked.values().map(of).sum::<usize>()
        };
        let most = asked
            .values()
            .map(|asked| asked.times)
            .max()
            .unwrap_or_default();
        println!(
            "  minute {minute}: {} requests, {} of them for everything, at most {most} for one repository; {:.1} s besides them",
            sum(|asked| asked.times),
            sum(|asked| asked.for_all),
            took.as_secs_f64()
        );
        minutes(&world, 1).await;
    }
}
