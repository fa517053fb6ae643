//! Scaling activities: what a group did and why.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::group::{Group, key, not_found};
use super::request::page;
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Activity {
    id: String,
    description: String,
    cause: String,
    at: Timestamp,
    /// Why it failed, if it did.
    failed: Option<String>,
}

impl Activity {
    pub(super) fn done(account: &mut Account, description: String, cause: &str) -> Self {
        Self {
            id: account.draw_uuid(),
            description,
            cause: format!("At {:.0} {cause}", account.now),
            at: account.now,
            failed: None,
        }
    }

    pub(super) fn failed(
        account: &mut Account,
        description: &str,
        cause: &str,
        reason: String,
    ) -> Self {
        let mut activity = Self::done(account, description.to_owned(), cause);
        activity.failed = Some(reason);
        activity
    }

    fn view(&self, group: &Group) -> Value {
        json!({
            "ActivityId": self.id,
            "AutoScalingGroupName": group.name,
            "AutoScalingGroupARN": group.arn,
            "Description": self.description,
            "Cause": self.cause,
            "StartTime": self.at.to_string(),
            "EndTime": self.at.to_string(),
            "StatusCode": if self.failed.is_some() { "Failed" } else { "Successful" },
            "StatusMessage": self.failed,
            "Progress": 100,
            "Details": "{}",
        })
    }
}

/// `DescribeScalingActivities` of a group, newest first.
pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let ids = request.texts("ActivityIds")?;
    let groups = &account.autoscaling.groups;
    let groups: Vec<&Group> = match request.text("AutoScalingGroupName")? {
        Some(name) => match groups.get(&key(&caller.region, name)) {
            Some(group) => vec![group],
            None => return Err(not_found(name)),
        },
        None => groups
            .under(&format!("{}/", caller.region))
            .map(|(_, row)| row)
            .collect(),
    };
    let all = groups
        .iter()
        .flat_map(|group| group.activities.iter().map(move |one| (*group, one)));
    let mut all: Vec<(String, &Group, &Activity)> = all
        .filter(|(_, one)| ids.is_empty() || ids.contains(&one.id.as_str()))
        .enumerate()
        .map(|(at, (group, one))| (format!("{at:06}"), group, one))
        .collect();
    let page = page(request, (100, 100), all.iter().map(|(at, ..)| at.as_str()))?;
    all.retain(|(at, ..)| page.items.contains(at));
    let views: Vec<Value> = all.iter().map(|(_, group, one)| one.view(group)).collect();
    Ok(json!({"Activities": views, "NextToken": page.next_token}))
}
