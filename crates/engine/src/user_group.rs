//! User groups: people who may approve, and who are told (developer.harness.io, *Add and manage user groups*).
//!
//! A member is named as it calls itself with its token, or by its e-mail address. There are no roles yet, so a group
//! gives no rights but these.

use serde_json::Value;
use slipway_model::id::{EntityId, PrincipalId, Scope};
use slipway_model::{Kind, entity};
use slipway_store::Store;
use slipway_store::record::EntityRecord;

use crate::error::{Doing, RunError};

/// Groups that Harness makes by itself, and everybody who may use the account is a member of.
const EVERYBODY: &[&str] = &[
    "_account_all_users",
    "_organization_all_users",
    "_project_all_users",
];

/// The e-mail address of a person: the name itself where it is one, for there are no profiles.
pub fn email(person: &PrincipalId) -> String {
    match person.as_str().contains('@') {
        true => person.to_string(),
        false => format!("{person}@localhost"),
    }
}

/// What a reference to a group leads to.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// All who may use the account.
    Everybody,
    /// The people who are named.
    Group(UserGroup),
    /// No group has this name, or it cannot be read: nobody.
    Missing,
}

/// A group.
#[derive(Clone, Debug, PartialEq)]
pub struct UserGroup {
    /// `name`.
    pub name: String,
    /// `users`.
    pub users: Vec<String>,
    /// `notificationConfigs`, as written.
    settings: Vec<Value>,
}

impl UserGroup {
    /// Reads a stored group; `None` where its text is damaged.
    pub fn read(record: &EntityRecord) -> Option<Self> {
        let parsed = entity::parse(record.id.as_str(), &record.yaml).ok()?;
        let body = parsed.to_json();
        let texts = |value: &Value| -> Vec<String> {
            let items = value.as_array().into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let settings = body["notificationConfigs"].as_array();
        Some(Self {
            name: record.name.clone(),
            users: texts(&body["users"]),
            settings: settings.cloned().unwrap_or_default(),
        })
    }

    /// Whether somebody is a member, by name or e-mail address.
    pub fn has(&self, who: &str, email: &str) -> bool {
        let mut users = self.users.iter();
        users.any(|user| user.eq_ignore_ascii_case(who) || user.eq_ignore_ascii_case(email))
    }

    /// Where a notification method reaches the group: URLs, keys or addresses, as written. Members get mails where the
    /// group's settings say so, or say nothing of mails.
    pub fn targets(&self, method: &str) -> Vec<&str> {
        let (kind, field) = match method {
            "Slack" => ("SLACK", "slackWebhookUrl"),
            "MsTeams" => ("MSTEAMS", "microsoftTeamsWebhookUrl"),
            "PagerDuty" => ("PAGERDUTY", "pagerDutyKey"),
            "Email" => ("EMAIL", "groupEmail"),
            _ => return Vec::new(),
        };
        let settings = || {
            let mut all = self.settings.iter();
            all.find(|setting| setting["type"] == kind)
        };
        let own = settings().and_then(|setting| setting[field].as_str());
        let mut targets: Vec<&str> = own
            .filter(|target| !target.trim().is_empty())
            .into_iter()
            .collect();
        let all = |setting: &Value| match &setting["sendEmailToAllUsers"] {
            Value::String(text) => text == "true",
            flag => *flag == Value::Bool(true),
        };
        if method == "Email" && settings().is_none_or(all) {
            let users = self.users.iter().map(String::as_str);
            targets.extend(users.filter(|user| user.contains('@')));
        }
        targets
    }
}

/// The group that a reference from `scope` names: `leads`, `org.leads`, `account.leads`.
///
/// # Errors
/// When the store cannot be read.
pub async fn find(store: &Store, scope: &Scope, reference: &str) -> Result<Found, RunError> {
    let (scope, id) = located(scope, reference.trim());
    if EVERYBODY.contains(&id) {
        return Ok(Found::Everybody);
    }
    let id = EntityId::new(id);
    let found = store
        .find_entity(&scope, Kind::UserGroup.key(), None, &id)
        .await;
    let found = found.doing(|| format!("read the user group {reference}"))?;
    let group = found.as_ref().and_then(UserGroup::read);
    Ok(group.map_or(Found::Missing, Found::Group))
}

fn located<'r>(scope: &Scope, reference: &'r str) -> (Scope, &'r str) {
    match (reference.split_once('.'), &scope.org) {
        (Some(("account", id)), _) => (Scope::account(scope.account.clone()), id),
        (Some(("org", id)), Some(org)) => (Scope::org(scope.account.clone(), org.clone()), id),
        _ => (scope.clone(), reference),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::UserGroup;

    fn group(settings: serde_json::Value) -> UserGroup {
        UserGroup {
            name: "Leads".to_owned(),
            users: ["sam", "Alex@example.com", "bo@example.com"]
                .map(str::to_owned)
                .to_vec(),
            settings: settings.as_array().cloned().unwrap_or_default(),
        }
    }

    #[test]
    fn members_go_by_name_or_address() {
        let group = group(json!([]));
        assert!(group.has("sam", "sam@localhost"));
        assert!(group.has("x", "alex@EXAMPLE.com"));
        assert!(!group.has("eve", "eve@localhost"));
    }

    #[test]
    fn each_method_has_its_setting() {
        let all = json!([
            {"type": "SLACK", "slackWebhookUrl": "https://slack"},
            {"type": "EMAIL", "groupEmail": "leads@example.com"},
            {"type": "PAGERDUTY", "pagerDutyKey": "<+secrets.getValue(\"pager\")>"},
            {"type": "MSTEAMS", "microsoftTeamsWebhookUrl": " "},
        ]);
        let named = group(all);
        let members = ["Alex@example.com", "bo@example.com"];
        assert_eq!(named.targets("Slack"), ["https://slack"]);
        assert_eq!(named.targets("Email"), ["leads@example.com"]);
        assert_eq!(
            named.targets("PagerDuty"),
            ["<+secrets.getValue(\"pager\")>"]
        );
        assert!(named.targets("MsTeams").is_empty());
        assert!(named.targets("Webhook").is_empty());
        assert_eq!(group(json!([])).targets("Email"), members);
        let each = group(json!([{"type": "EMAIL", "sendEmailToAllUsers": true}]));
        assert_eq!(each.targets("Email"), members);
        let none = group(json!([{"type": "EMAIL", "sendEmailToAllUsers": false}]));
        assert!(none.targets("Email").is_empty());
    }
}
