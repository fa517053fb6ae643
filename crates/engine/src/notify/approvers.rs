//! Telling the user groups of an approval that they are asked, and what was answered: no rule of the pipeline says so.

use serde_json::json;
use slipway_model::id::{RunId, Scope};
use slipway_plan::NotificationPlan;

use super::{Event, Notice};
use crate::runs::Runs;
use crate::user_group::{self, Found};

/// The methods by which approvers are told; PagerDuty is not among them (developer.harness.io, *Using manual Harness
/// approval stages*, "Approval notifications to approvers").
const TELLING_APPROVERS: [&str; 3] = ["Slack", "Email", "MsTeams"];

/// Rules that tell the user groups of an approval: one for each group and method, in a fixed order.
pub fn approver_rules(groups: &[String]) -> Vec<NotificationPlan> {
    let each = groups
        .iter()
        .flat_map(|group| TELLING_APPROVERS.iter().map(move |method| (group, method)));
    let rules = each.map(|(group, method)| NotificationPlan {
        name: format!("approvers in {group}"),
        enabled: true,
        events: Vec::new(),
        method: Some(json!({"type": method, "spec": {"userGroups": [group]}})),
        template: None,
        message: None,
        fault: None,
    });
    rules.collect()
}

impl Runs {
    /// Tells the user groups of an approval of an event, each where its settings say. Neither waits nor fails, as
    /// [`Runs::tell`].
    pub async fn tell_approvers(
        &self,
        run: &RunId,
        scope: &Scope,
        groups: &[String],
        event: &Event,
    ) {
        let mut notices = Vec::new();
        for (group, methods) in groups.iter().zip(0_usize..) {
            let found = match user_group::find(&self.store, scope, group).await {
                Ok(Found::Group(found)) => found,
                Ok(Found::Everybody | Found::Missing) => continue,
                Err(error) => {
                    tracing::error!(
                        run.id = %run,
                        error = %error.full_text(),
                        "approvers are not told: their group cannot be read"
                    );
                    continue;
                }
            };
            for (method, number) in TELLING_APPROVERS.iter().zip(0_usize..) {
                if !found.targets(method).is_empty() {
                    notices.push(Notice {
                        run_id: run.clone(),
                        rule: methods * TELLING_APPROVERS.len() + number,
                        receiver: 0,
                        event: event.clone(),
                    });
                }
            }
        }
        self.start_notices(notices).await;
    }
}

#[cfg(test)]
mod tests {
    use super::super::receivers;
    use super::{TELLING_APPROVERS, approver_rules};

    #[test]
    fn approvers_have_a_rule_for_each_group_and_method() {
        let rules = approver_rules(&["leads".to_owned(), "account.ops".to_owned()]);
        let shown: Vec<String> = rules
            .iter()
            .filter_map(|rule| rule.method.as_ref())
            .map(|method| format!("{} {}", method["type"], method["spec"]["userGroups"]))
            .collect();
        assert_eq!(shown.len(), 2 * TELLING_APPROVERS.len());
        assert_eq!(shown[0], "\"Slack\" [\"leads\"]");
        assert_eq!(shown[4], "\"Email\" [\"account.ops\"]");
        assert!(rules.iter().all(|rule| receivers(rule) == 1));
    }
}
