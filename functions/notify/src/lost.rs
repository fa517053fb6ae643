//! Messages that never reached their receiver: the run that they are about warns of them, so that somebody who looks at it
//! learns that nobody was told.

use serde_json::Value;
use slipway_engine::notify::{Event, Notice};
use slipway_engine::signal::warn;
use slipway_model::id::NodeId;

use crate::rule::Rule;
use crate::{Deps, HandlerError, facts, rules};

/// Longest reason that is kept, in characters.
const LONGEST: usize = 500;

/// Notes in its run that a notice was given up, with the error that the machine ended with; whether it did.
///
/// # Errors
/// What reading and writing the store can fail with.
pub(crate) async fn tell(
    deps: &Deps,
    notice: &Notice,
    error: &Value,
) -> Result<bool, HandlerError> {
    if is_not_meant(deps, notice).await? {
        return Ok(false);
    }
    let says = format!(
        "Nobody was told of {}: {}",
        notice.event.name(),
        reason(error)
    );
    let whole_run = NodeId::new("");
    warn(&deps.runs, &notice.run_id, whole_run, &notice.id(), says).await?;
    Ok(true)
}

/// Whether nobody expects the notice: approvals try every method, and their groups have settings for a few.
async fn is_not_meant(deps: &Deps, notice: &Notice) -> Result<bool, HandlerError> {
    let of_approval = matches!(
        notice.event,
        Event::ApprovalRequired { .. } | Event::ApprovalAnswered { .. }
    );
    if !of_approval {
        return Ok(false);
    }
    let facts = facts(deps, notice).await?;
    let planned = rules(deps, &facts, notice).await?;
    let Some(planned) = planned.get(notice.rule) else {
        return Ok(true);
    };
    let mut rule = Rule::new(deps, &facts, notice, planned);
    let reached = rule.turn_to(&deps.runs.store, notice.receiver).await;
    Ok(reached.is_err())
}

/// Why, as the function told the machine: the message of its error, which holds no secrets.
fn reason(error: &Value) -> String {
    let cause = error["Cause"].as_str().unwrap_or_default();
    let told: Option<Value> = serde_json::from_str(cause).ok();
    let message = told.as_ref().and_then(|told| told["errorMessage"].as_str());
    let text = match message.unwrap_or(cause).trim() {
        "" => error["Error"].as_str().unwrap_or("it was given up"),
        text => text,
    };
    text.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::reason;

    #[test]
    fn the_reason_is_the_message_of_the_function() {
        let cause = json!({"errorType": "DeliveryRefused", "errorMessage": "rule `ops`: HTTP 404"});
        let told = json!({"Error": "DeliveryRefused", "Cause": cause.to_string()});
        assert_eq!(reason(&told), "rule `ops`: HTTP 404");
        assert_eq!(
            reason(&json!({"Error": "States.Timeout"})),
            "States.Timeout"
        );
        assert_eq!(
            reason(&json!({"Error": "E", "Cause": "no JSON"})),
            "no JSON"
        );
    }
}
