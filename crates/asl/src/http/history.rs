//! `GetExecutionHistory`.

use serde_json::{Value, json};

use super::request::Members;
use super::{executions, page};
use crate::engine::Engine;
use crate::error::ApiError;

/// A page of history, oldest event first unless `reverseOrder`.
pub(super) fn get(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let (number, _) = executions::find(engine, members.required("executionArn")?)?;
    let most = members.max_results(100)?;
    let newest_first = members.flag("reverseOrder", false);
    let data = members.flag("includeExecutionData", true);
    let first = match page::number(members)? {
        Some(first) => first,
        None if newest_first => u64::MAX,
        None => 1,
    };
    let mut events = engine
        .0
        .journal
        .events(number, first, newest_first, most + 1)?;
    let next = events.get(most).map(|event| event.0);
    events.truncate(most);
    let shown: Vec<Value> = events.iter().map(|event| event.wire(data)).collect();
    let mut answer = json!({"events": shown});
    if let Some(next) = next {
        answer["nextToken"] = page::token(&next.to_string()).into();
    }
    Ok(answer)
}
