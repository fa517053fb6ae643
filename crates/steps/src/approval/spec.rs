//! The spec of an approval.

use std::collections::HashSet;

use indexmap::IndexMap;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Map, Value};
use slipway_engine::user_group::email;
use slipway_model::id::PrincipalId;

use super::input::Input;
use crate::variable::{flag, is_expression};

/// How the time of an automatic approval is written: `2026-01-31 06:30 PM`.
const DEADLINE: &str = "%Y-%m-%d %I:%M %p";

/// Most people that an approval can want.
const MOST_APPROVERS: usize = 1_000;

/// `spec` of a `HarnessApproval`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Approval {
    /// Shown to those who are asked.
    #[serde(default)]
    pub approval_message: Option<String>,
    /// Whether they are shown the run so far.
    #[serde(default)]
    pub include_pipeline_execution_history: Value,
    /// Whether an approval rejects what earlier runs wait for at the same step.
    #[serde(default)]
    pub is_auto_reject_enabled: Value,
    /// A name by which clients find it.
    #[serde(default)]
    pub callback_id: Option<String>,
    /// Who may answer.
    pub approvers: Approvers,
    /// What they are asked for.
    #[serde(default)]
    pub approver_inputs: Vec<Input>,
    #[serde(default)]
    auto_approval: Option<AutoApproval>,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

/// `approvers`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Approvers {
    minimum_count: Value,
    #[serde(default)]
    disallow_pipeline_executor: Value,
    /// User groups whose members are asked.
    #[serde(default)]
    pub user_groups: Value,
    /// Service accounts that are asked.
    #[serde(default)]
    pub service_accounts: Value,
    /// People who may not answer.
    #[serde(default)]
    disallowed_user_emails: Value,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AutoApproval {
    action: String,
    #[serde(default)]
    comments: Option<String>,
    scheduled_deadline: Deadline,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Deadline {
    time_zone: String,
    time: String,
}

impl Approval {
    /// Faults that show before it runs; what is an expression is looked at when it is known.
    pub(super) fn faults(&self) -> Vec<String> {
        let open = |value: &Value| value.as_str().is_some_and(is_expression);
        let mut faults = Vec::new();
        if !open(&self.approvers.minimum_count) {
            faults.extend(self.count().err());
        }
        let known = |auto: &AutoApproval| {
            let deadline = &auto.scheduled_deadline;
            !is_expression(&deadline.time) && !is_expression(&deadline.time_zone)
        };
        if self.auto_approval.as_ref().is_some_and(known) {
            faults.extend(self.automatic().err());
        }
        let nobody =
            |list: &Value| list.is_null() || list.as_array().is_some_and(|items| items.is_empty());
        if nobody(&self.approvers.user_groups) && nobody(&self.approvers.service_accounts) {
            faults.push(
                "approvers: nobody may answer; name user groups or service accounts".to_owned(),
            );
        }
        faults.extend(self.approver_inputs.iter().filter_map(Input::fault));
        let mut names = HashSet::new();
        for input in &self.approver_inputs {
            if !names.insert(input.name.as_str()) {
                let name = &input.name;
                faults.push(format!(
                    "approverInputs.{name}: another input has this name"
                ));
            }
        }
        faults
    }

    /// How many people must approve.
    ///
    /// # Errors
    /// When it is no whole number from 1 to [`MOST_APPROVERS`].
    pub fn count(&self) -> Result<usize, String> {
        let count = match &self.approvers.minimum_count {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        count
            .and_then(|count| usize::try_from(count).ok())
            .filter(|count| (1..=MOST_APPROVERS).contains(count))
            .ok_or_else(|| {
                format!(
                    "approvers.minimumCount: expected a whole number from 1 to {MOST_APPROVERS}"
                )
            })
    }

    /// When it is approved without anybody's word, if it is.
    ///
    /// # Errors
    /// When time or time zone cannot be read.
    pub fn automatic(&self) -> Result<Option<Timestamp>, String> {
        let Some(auto) = &self.auto_approval else {
            return Ok(None);
        };
        if auto.action != "APPROVE" {
            return Err(format!(
                "autoApproval.action: `{}`; APPROVE is the only one",
                auto.action
            ));
        }
        let Deadline { time_zone, time } = &auto.scheduled_deadline;
        let zone = TimeZone::get(time_zone)
            .map_err(|_| format!("autoApproval.scheduledDeadline.timeZone: `{time_zone}` is no time zone, such as Asia/Kolkata"))?;
        let time = DateTime::strptime(DEADLINE, time)
            .map_err(|_| format!("autoApproval.scheduledDeadline.time: `{time}`; expected a time such as 2026-01-31 06:30 PM"))?;
        let zoned = zone.to_ambiguous_zoned(time).compatible();
        zoned
            .map(|zoned| Some(zoned.timestamp()))
            .map_err(|error| format!("autoApproval.scheduledDeadline: {error}"))
    }

    /// Whether it is approved at a time without anybody's word.
    pub(super) fn is_automatic(&self) -> bool {
        self.auto_approval.is_some()
    }

    /// What stands beside an automatic approval.
    pub(super) fn automatic_comments(&self) -> String {
        let auto = self.auto_approval.as_ref();
        auto.and_then(|auto| auto.comments.clone())
            .unwrap_or_default()
    }

    /// References to the user groups whose members are asked. An expression may have named several in one text.
    pub fn groups(&self) -> Vec<String> {
        let listed = crate::variable::selectors(&self.approvers.user_groups);
        let names = listed
            .iter()
            .flat_map(|text| text.split(','))
            .map(str::trim);
        names
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// Names of the service accounts that are asked.
    pub fn accounts(&self) -> Vec<String> {
        crate::variable::selectors(&self.approvers.service_accounts)
    }

    /// Whether who started the run may not approve it.
    pub fn bars_executor(&self) -> bool {
        flag(&self.approvers.disallow_pipeline_executor) == Some(true)
    }

    /// Whether somebody is named as one who may not answer, by the e-mail address or the name.
    pub fn bars(&self, who: &str) -> bool {
        let barred = crate::variable::selectors(&self.approvers.disallowed_user_emails);
        let email = email(&PrincipalId::new(who));
        let is =
            |name: &String| name.eq_ignore_ascii_case(who) || name.eq_ignore_ascii_case(&email);
        barred.iter().any(is)
    }

    /// Whether an approval rejects what earlier runs wait for.
    pub fn rejects_earlier(&self) -> bool {
        flag(&self.is_auto_reject_enabled) == Some(true)
    }

    /// The inputs as they are when nobody gives any.
    pub(super) fn defaults(&self) -> Map<String, Value> {
        let inputs = self.approver_inputs.iter();
        inputs
            .map(|input| (input.name.clone(), input.default().into()))
            .collect()
    }

    /// The inputs with what was given, checked.
    ///
    /// # Errors
    /// A message for each that is missing, unknown or not allowed.
    pub fn filled(
        &self,
        given: &IndexMap<String, String>,
    ) -> Result<Map<String, Value>, Vec<String>> {
        let mut faults = Vec::new();
        for name in given.keys() {
            if !self.approver_inputs.iter().any(|input| input.name == *name) {
                faults.push(format!("`{name}` is not asked for"));
            }
        }
        let mut filled = Map::new();
        for input in &self.approver_inputs {
            match input.take(given.get(&input.name).map(String::as_str)) {
                Ok(value) => drop(filled.insert(input.name.clone(), value.into())),
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() {
            Ok(filled)
        } else {
            Err(faults)
        }
    }
}
