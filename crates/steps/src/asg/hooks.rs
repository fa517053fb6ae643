//! Lifecycle hooks of groups (Auto Scaling user guide, "Add lifecycle hooks"). `CreateAutoScalingGroup` takes them with
//! the group, and `UpdateAutoScalingGroup` does not: later deployments put and delete them one by one.
//!
//! A configuration with `LifecycleHookSpecificationList`, also an empty one, says which hooks the group has. Without it
//! the hooks stay as they are: other tools put theirs on groups too. A group that is made like a base group gets its hooks.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use slipway_model::status::Failure;

use super::scaling::{Kind, put, take};
use super::site::Site;
use crate::aws::document::fields;
use crate::context::StepContext;

const HOOK: Kind = Kind {
    what: "lifecycle hook",
    name: "LifecycleHookName",
    put: "PutLifecycleHook",
    delete: "DeleteLifecycleHook",
};

/// Where a configuration says them.
pub(super) const FIELD: &str = "LifecycleHookSpecificationList";

/// What AWS sets where nobody says it (`PutLifecycleHook`).
const DEFAULTS: [(&str, &str); 2] = [("DefaultResult", "ABANDON"), ("HeartbeatTimeout", "3600")];

/// Hooks as requests without the group's name; every leaf is a text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Hooks(Vec<Value>);

impl Hooks {
    /// What a configuration says; `None` where it does not speak of hooks.
    pub(super) fn of(configuration: &Value) -> Option<Self> {
        let written = configuration[FIELD].as_array()?;
        Some(Self(written.iter().map(request).collect()))
    }

    /// As a configuration says it; `None` where there are none.
    pub(super) fn written(self) -> Option<Value> {
        (!self.0.is_empty()).then(|| Value::Array(self.0))
    }

    /// What a group has.
    pub(super) async fn describe(site: &Site, group: &str) -> Result<Self, Failure> {
        let doing = format!("look at the lifecycle hooks of Auto Scaling group {group}");
        let asked = json!({"AutoScalingGroupName": group});
        let answer = site
            .scaling("DescribeLifecycleHooks", &asked, &doing)
            .await?;
        let found = answer["LifecycleHooks"].as_array().into_iter().flatten();
        Ok(Self(found.map(request).collect()))
    }

    /// Their names in brackets, for people; nothing where there are none.
    pub(super) fn told(&self) -> String {
        let names = self.0.iter();
        let names: Vec<&str> = names.filter_map(|one| one[HOOK.name].as_str()).collect();
        match names.is_empty() {
            true => String::new(),
            false => format!(" (the group has {})", names.join(", ")),
        }
    }

    /// Gives a group these, and takes the others away.
    pub(super) async fn replace(
        &self,
        cx: &mut StepContext<'_>,
        place: (&Site, &str),
        unit: &'static str,
    ) -> Result<(), Failure> {
        let has = Self::describe(place.0, place.1).await?;
        for one in self.0.iter().filter(|one| !has.0.contains(one)) {
            put(cx, place, &HOOK, one, unit).await?;
        }
        let named = |one: &Value| self.0.iter().any(|kept| kept[HOOK.name] == one[HOOK.name]);
        for one in has.0.iter().filter(|one| !named(one)) {
            take(cx, place, &HOOK, one, unit).await?;
        }
        Ok(())
    }
}

fn request(shown: &Value) -> Value {
    let text = |value: &Value| match value {
        Value::Number(number) => json!(number.to_string()),
        value => value.clone(),
    };
    let kept = fields("AutoScaling.LifecycleHookSpecification");
    let kept = kept.filter_map(|name| Some((name.to_owned(), text(shown.get(name)?))));
    let mut kept: Map<String, Value> = kept.filter(|(_, value)| !value.is_null()).collect();
    for (name, value) in DEFAULTS {
        kept.entry(name).or_insert_with(|| json!(value));
    }
    Value::Object(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_aws_shows() {
        let written = json!({"LifecycleHookSpecificationList": [
            {"LifecycleHookName": "warm", "LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING", "HeartbeatTimeout": 60},
        ]});
        let shown = json!({
            "LifecycleHookName": "warm", "AutoScalingGroupName": "web", "HeartbeatTimeout": "60", "GlobalTimeout": "6000",
            "LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING", "DefaultResult": "ABANDON",
        });
        assert_eq!(Hooks::of(&written), Some(Hooks(vec![request(&shown)])));
        assert_eq!(Hooks::of(&json!({})), None);
        let none = json!({"LifecycleHookSpecificationList": []});
        assert_eq!(Hooks::of(&none), Some(Hooks::default()));
    }
}
