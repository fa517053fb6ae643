//! Operations on activities.

use serde_json::{Value, json};

use super::request::Members;
use super::{page, tags};
use crate::arn;
use crate::engine::Engine;
use crate::error::ApiError;
use crate::history::seconds;
use crate::journal::{Batch, key};
use crate::record::Activity;

/// `CreateActivity`; the same name again gives the same activity.
pub(super) async fn create(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let inner = &engine.0;
    let name = members.required("name")?;
    arn::check_name(name)?;
    let tags = tags::read(members)?;
    let _turn = inner.changes.lock().await;
    let arn = inner.home.activity(name);
    let activity = match find(engine, &arn)? {
        Some(activity) => activity,
        None => {
            let activity = Activity {
                arn: arn.clone(),
                name: name.to_owned(),
                created_ms: inner.clock.now_ms(),
            };
            let mut batch = Batch::default();
            batch.put(key::activity(&arn), &activity)?;
            tags::put(&mut batch, &arn, &tags)?;
            inner.journal.commit(batch).await?;
            inner.activities.add(&arn);
            activity
        }
    };
    Ok(json!({
        "activityArn": activity.arn,
        "creationDate": seconds(activity.created_ms),
    }))
}

/// `DeleteActivity`; no error if it is not there.
pub(super) async fn delete(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let arn = members.required("activityArn")?;
    arn::check(arn, "activity")?;
    let _turn = engine.0.changes.lock().await;
    let mut batch = Batch::default();
    batch.delete(key::activity(arn));
    batch.delete(key::tags(arn));
    engine.0.journal.commit(batch).await?;
    engine.0.activities.remove(arn);
    Ok(json!({}))
}

/// `DescribeActivity`.
pub(super) fn describe(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let arn = members.required("activityArn")?;
    arn::check(arn, "activity")?;
    let activity = find(engine, arn)?.ok_or_else(|| does_not_exist(arn))?;
    Ok(shown(&activity))
}

/// `ListActivities`, by ARN.
pub(super) fn list(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let most = members.max_results(100)?;
    let after = page::place(members)?.unwrap_or_default();
    let mut activities = engine.0.journal.activities(&after, most + 1)?;
    let has_more = activities.len() > most;
    activities.truncate(most);
    let mut answer = json!({"activities": activities.iter().map(shown).collect::<Vec<_>>()});
    if let (true, Some(last)) = (has_more, activities.last()) {
        answer["nextToken"] = page::token(&last.arn).into();
    }
    Ok(answer)
}

fn shown(activity: &Activity) -> Value {
    json!({
        "activityArn": activity.arn,
        "name": activity.name,
        "creationDate": seconds(activity.created_ms),
    })
}

fn find(engine: &Engine, arn: &str) -> Result<Option<Activity>, ApiError> {
    Ok(engine.0.journal.activity(arn)?)
}

/// The API error for an unknown activity.
pub(super) fn does_not_exist(arn: &str) -> ApiError {
    ApiError::new(
        "ActivityDoesNotExist",
        format!("Activity Does Not Exist: '{arn}'"),
    )
}
