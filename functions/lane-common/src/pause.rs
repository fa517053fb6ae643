//! Long waits, and waits for people: the machine waits on a token, so that an abort or a signal is seen at once and
//! nothing runs meanwhile.

use slipway_engine::begin::complete;
use slipway_engine::directive::{Directive, MOST_TURNS, Next, PAUSE_WAIT};
use slipway_engine::error::Doing;
use slipway_engine::error_name::ErrorName;
use slipway_engine::woken::words;
use slipway_model::id::NodeId;
use slipway_store::record::WaitRecord;

use crate::{Deps, Event, HandlerError};

/// Notes the token that ends a pause. Where something was said meanwhile, it ends at once.
pub(crate) async fn note(deps: &Deps, event: &Event, token: &str) -> Result<Next, HandlerError> {
    let Some(next) = event.next.as_ref().filter(|next| is_pause(&next.directive)) else {
        let message = format!("lane {} has a token and no pause", event.lane_id);
        return Err(HandlerError::new(ErrorName::InvalidRequest, message));
    };
    let wait = WaitRecord {
        run: event.run_id.clone(),
        node: node(event),
        attempt: number(next),
        kind: PAUSE_WAIT.to_owned(),
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
        end(deps, event, next).await?;
    } else if run.abort.is_some() || words(&run) > next.heard {
        complete(&deps.runs, token).await?;
        // Who was told before, while this invocation was slow, does not come again to take it away.
        end(deps, event, next).await?;
    }
    Ok(next.clone())
}

/// Forgets the token of the pause that was just over.
pub(crate) async fn forget(deps: &Deps, event: &Event) -> Result<(), HandlerError> {
    match &event.next {
        Some(next) if is_pause(&next.directive) => end(deps, event, next).await,
        _ => Ok(()),
    }
}

async fn end(deps: &Deps, event: &Event, pause: &Next) -> Result<(), HandlerError> {
    let (run, store) = (&event.run_id, &deps.runs.store);
    let taken = store
        .take_wait(run, &node(event), number(pause), PAUSE_WAIT)
        .await;
    taken.doing(|| format!("end the wait of lane {}", event.lane_id))?;
    Ok(())
}

/// Tells the pauses of a lane apart: a write that comes late must not replace the token of the next one.
fn number(pause: &Next) -> u32 {
    pause.part.wrapping_mul(MOST_TURNS).wrapping_add(pause.turn)
}

fn is_pause(directive: &Directive) -> bool {
    matches!(directive, Directive::Pause { .. })
}

/// A lane waits as a whole: its id stands for a node's.
fn node(event: &Event) -> NodeId {
    NodeId::new(event.lane_id.as_str())
}
