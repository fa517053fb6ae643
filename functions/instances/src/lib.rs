//! The function of the instance sweep: counts what runs of everything that was ever deployed, every ten
//! minutes. (After a deployment its step counts at once.)

mod wiring;

use std::time::Duration;

use serde_json::{Value, json};
use slipway_engine::error_name::ErrorName;
use slipway_steps::{StepServices, instances};
use slipway_store::StoreError;
use slipway_store::record::DeployedRecord;
use tokio::task::JoinSet;
use uuid::Uuid;

pub use slipway_engine::error::HandlerError;
pub use wiring::wire;

/// One sweep at a time: the second of two that overlap ends at once.
const LEASE: &str = "instance-sweep";

/// Longer than a sweep may take (the function's limit in `infra/app.yaml` is below it), so that a lease
/// that a crash left behind is over before the next sweep but one.
const LEASE_TIME: Duration = Duration::from_secs(900);

/// Targets that are asked side by side.
const AT_ONCE: usize = 8;

/// What lives as long as the function.
#[derive(Clone)]
pub struct Deps {
    /// Store, clock, target accounts, secrets.
    pub services: StepServices,
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Deployments whose instances were counted.
    pub counted: usize,
    /// Deployments whose target did not answer: the last known instances are kept.
    pub failed: usize,
    /// Another sweep was under way; nothing was done.
    pub skipped: bool,
}

/// Counts everything once.
///
/// # Errors
/// When the store does not answer. A target that does not answer stops only its own count.
pub async fn sweep(deps: &Deps) -> Result<Swept, HandlerError> {
    let store = &deps.services.store;
    let holder = Uuid::new_v4().to_string();
    let taken = store.take_lease(LEASE, &holder, LEASE_TIME).await;
    if !taken.map_err(|why| failed("take the lease of the sweep", &why))? {
        return Ok(Swept {
            skipped: true,
            ..Swept::default()
        });
    }
    let swept = sweep_all(deps).await;
    let released = store.release_lease(LEASE, &holder).await;
    released.map_err(|why| failed("give the lease of the sweep back", &why))?;
    swept
}

/// Answers the event of the schedule.
///
/// # Errors
/// As [`sweep`].
pub async fn answer(deps: &Deps, _event: Value) -> Result<Value, HandlerError> {
    let swept = Box::pin(sweep(deps)).await?;
    Ok(json!({"counted": swept.counted, "failed": swept.failed, "skipped": swept.skipped}))
}

async fn sweep_all(deps: &Deps) -> Result<Swept, HandlerError> {
    let deployed = deps.services.store.list_deployed().await;
    let mut left = deployed
        .map_err(|why| failed("list what was deployed", &why))?
        .into_iter();
    let mut swept = Swept::default();
    let mut at_work = JoinSet::new();
    loop {
        while at_work.len() < AT_ONCE
            && let Some(deployed) = left.next()
        {
            let services = deps.services.clone();
            at_work.spawn(async move { count(&services, &deployed).await });
        }
        match at_work.join_next().await {
            None => return Ok(swept),
            Some(Ok(true)) => swept.counted += 1,
            Some(Ok(false) | Err(_)) => swept.failed += 1,
        }
    }
}

/// Counts one deployment; `false` when that did not work. What goes wrong here concerns this one alone.
async fn count(services: &StepServices, deployed: &DeployedRecord) -> bool {
    let why = match instances::count(services, deployed).await {
        Ok(found) => match services.store.put_instances(deployed, &found).await {
            Ok(()) => return true,
            Err(why) => failed("store the instances", &why).message,
        },
        Err(why) => why.message,
    };
    tracing::warn!(
        service = %deployed.service,
        infrastructure = %deployed.infrastructure,
        error = %why,
        "cannot count instances; the last known ones are kept"
    );
    if let Err(error) = services.store.note_uncounted(deployed, &why).await {
        tracing::warn!(service = %deployed.service, %error, "cannot note that instances were not counted");
    }
    false
}

fn failed(doing: &str, why: &StoreError) -> HandlerError {
    HandlerError::new(
        ErrorName::StoreUnavailable,
        format!("cannot {doing}: {why}"),
    )
}
