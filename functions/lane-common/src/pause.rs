//! Long waits, and waits for people: the machine waits on a token, so that an abort or a signal is seen at once and
//! nothing runs meanwhile.

use slipway_engine::begin::complete;
use slipway_engine::directive::{Directive, Next};
use slipway_engine::error::Doing;
use slipway_engine::error_name::ErrorName;
use slipway_model::id::NodeId;
use slipway_store::record::WaitRecord;

use crate::{Deps, Event, HandlerError};

/// Kind of the wait of a paused lane.
const WAIT: &str = "pause";

/// Notes the token that ends a pause. Where something was said meanwhile, it ends at once.
pub(crate) async fn note(deps: &Deps, event: &Event, token: &str) -> Result<Next, HandlerError> {
    let Some(next) = event.next.as_ref().filter(|next| is_pause(&next.directive)) else {
        let message = format!("lane {} has a token and no pause", event.lane_id);
        return Err(HandlerError::new(ErrorName::InvalidRequest, message));
    };
    let wait = WaitRecord {
        run: event.run_id.clone(),
        node: node(event),
        attempt: 0,
        kind: WAIT.to_owned(),
        token: Some(token.to_owned()),
        task: None,
    };
    let put = deps.runs.store.put_wait(&wait).await;
    put.doing(|| format!("record that lane {} waits", event.lane_id))?;
    // Read after the wait was recorded: who says something either sees the wait, or is heard here.
    let run = deps.runs.store.get_run(&event.run_id).await;
    let run = run.doing(|| format!("read run {}", event.run_id))?;
    if run.status.is_final() {
        // This invocation was stopped for so long that the run has ended without it: nobody else takes the wait away.
        let taken = deps
            .runs
            .store
            .take_wait(&event.run_id, &wait.node, 0, WAIT);
        taken
            .await
            .doing(|| format!("end the wait of lane {}", event.lane_id))?;
    } else if run.abort.is_some() || run.signals.len() > next.heard {
        complete(&deps.runs, token).await?;
    }
    Ok(next.clone())
}

/// Forgets the token of the pause that was just over.
pub(crate) async fn forget(deps: &Deps, event: &Event) -> Result<(), HandlerError> {
    if !event.done().is_some_and(is_pause) {
        return Ok(());
    }
    let store = &deps.runs.store;
    let taken = store.take_wait(&event.run_id, &node(event), 0, WAIT).await;
    taken.doing(|| format!("end the wait of lane {}", event.lane_id))?;
    Ok(())
}

fn is_pause(directive: &Directive) -> bool {
    matches!(directive, Directive::Pause { .. })
}

/// A lane waits as a whole: its id stands for a node's.
fn node(event: &Event) -> NodeId {
    NodeId::new(event.lane_id.as_str())
}
