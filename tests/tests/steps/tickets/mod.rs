//! Steps of ticket systems against servers that behave as the real ones do, on a real port; and scripts that approve.

mod custom;
mod jira;
mod runs;
mod service_now;

use std::time::Duration;

use serde_json::{Value, json};
use slipway_model::status::Failure;
use slipway_plan::ConnectorPlan;
use slipway_steps::Progress;

use crate::common::call;
use crate::world::World;
use slipway_world::ticket::{Server, System};

/// A world whose step has a connector to a server.
async fn world_of<S: System>(kind: &str, server: &Server<S>) -> World {
    let mut world = World::new().await;
    let url = if kind == "Jira" {
        "jiraUrl"
    } else {
        "serviceNowUrl"
    };
    world.step_connector = Some(ConnectorPlan {
        reference: "account.tracker".to_owned(),
        kind: kind.to_owned(),
        spec: json!({url: server.url, "auth": {"type": "UsernamePassword",
            "spec": {"username": "sam", "passwordRef": "account.password"}}}),
    });
    world
}

/// Lets time pass at once, which a test with real connections must do by hand.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time + Duration::from_millis(1)).await;
    tokio::time::resume();
}

/// Calls a step until it ends, through its waits and through the death of the process where the server is told to
/// bring it about.
async fn run<S: System>(
    world: &World,
    server: &Server<S>,
    step: &str,
    spec: &Value,
) -> Result<Value, Failure> {
    for _ in 0..60 {
        let progress = tokio::select! {
            progress = call(world, step, spec, None) => progress?,
            () = server.hung() => continue,
        };
        match progress {
            Progress::Done(outputs) => return Ok(outputs),
            Progress::Again(time) | Progress::Hold { time, .. } => pass(time).await,
            Progress::Delegate(work) => panic!("no delegate is asked: {work:?}"),
        }
    }
    panic!("{step} does not end")
}

/// One call of a step that does not end.
async fn waits(world: &World, step: &str, spec: &Value) -> Duration {
    match call(world, step, spec, None).await {
        Ok(Progress::Again(time) | Progress::Hold { time, .. }) => time,
        other => panic!("{step} does not wait: {other:?}"),
    }
}
