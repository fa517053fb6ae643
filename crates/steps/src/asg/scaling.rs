//! What scales a group: policies, scheduled actions, and the metrics that it tells.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use slipway_model::status::Failure;

use super::manifest::Documents;
use super::site::{Ask, Site};
use crate::aws::document::fields;
use crate::context::StepContext;
use crate::deployment::spec::text;

/// Policies and scheduled actions, as requests without the group's name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Scaling {
    policies: Vec<Value>,
    actions: Vec<Value>,
}

/// One kind of what scales, or of what else a group has by name.
pub(super) struct Kind {
    pub(super) what: &'static str,
    /// Field of its name.
    pub(super) name: &'static str,
    pub(super) put: &'static str,
    pub(super) delete: &'static str,
}

const POLICY: Kind = Kind {
    what: "scaling policy",
    name: "PolicyName",
    put: "PutScalingPolicy",
    delete: "DeletePolicy",
};

const ACTION: Kind = Kind {
    what: "scheduled action",
    name: "ScheduledActionName",
    put: "PutScheduledUpdateGroupAction",
    delete: "DeleteScheduledAction",
};

impl Scaling {
    /// What the manifests say.
    pub(super) fn of_manifests(documents: &Documents) -> Self {
        Self {
            policies: documents.policies.clone(),
            actions: documents.actions.clone(),
        }
    }

    /// What a group has.
    pub(super) async fn describe(site: &Site, group: &str) -> Result<Self, Failure> {
        let policies = all(site, "DescribePolicies", "ScalingPolicies", group).await?;
        let actions = all(
            site,
            "DescribeScheduledActions",
            "ScheduledUpdateGroupActions",
            group,
        );
        let actions = actions.await?;
        let mut scaling = Self {
            policies: requests(policies, "AutoScaling.PutScalingPolicy"),
            actions: requests(actions, "PutScheduledUpdateGroupAction"),
        };
        for action in &mut scaling.actions {
            // The same as `StartTime`, which AWS shows twice.
            if let Some(fields) = action.as_object_mut()
                && fields.contains_key("StartTime")
            {
                fields.shift_remove("Time");
            }
        }
        Ok(scaling)
    }

    /// What of these `new` has nothing of the same name for, in words.
    pub(super) fn lost_in(&self, new: &Self) -> Vec<String> {
        let kinds = [
            (POLICY, &self.policies, &new.policies),
            (ACTION, &self.actions, &new.actions),
        ];
        let lost = kinds.into_iter().flat_map(|(kind, has, gets)| {
            let gone = has.iter().filter(move |one| {
                let mut kept = gets.iter();
                !kept.any(|kept| kept[kind.name] == one[kind.name])
            });
            gone.filter_map(move |one| Some(format!("{} {}", kind.what, text(one, kind.name)?)))
        });
        lost.collect()
    }

    /// Gives a group these, and takes away the others of `has`.
    pub(super) async fn replace(
        &self,
        cx: &mut StepContext<'_>,
        (site, group): (&Site, &str),
        has: &Self,
        unit: &'static str,
    ) -> Result<(), Failure> {
        for (kind, wanted, found) in [
            (POLICY, &self.policies, &has.policies),
            (ACTION, &self.actions, &has.actions),
        ] {
            if wanted.is_empty() && found.is_empty() {
                continue;
            }
            let place = (site, group);
            for one in wanted.iter().filter(|one| !found.contains(one)) {
                put(cx, place, &kind, one, unit).await?;
            }
            let gone = |one: &&Value| !wanted.iter().any(|kept| kept[kind.name] == one[kind.name]);
            for one in found.iter().filter(gone) {
                take(cx, place, &kind, one, unit).await?;
            }
        }
        Ok(())
    }
}

pub(super) async fn put(
    cx: &mut StepContext<'_>,
    (site, group): (&Site, &str),
    kind: &Kind,
    one: &Value,
    unit: &'static str,
) -> Result<(), Failure> {
    let (what, name) = (kind.what, text(one, kind.name).unwrap_or_default());
    let mut request = cx.secrets().reveal(one.clone()).await?;
    request["AutoScalingGroupName"] = json!(group);
    let doing = format!("attach {what} {name} to Auto Scaling group {group}");
    site.scaling(kind.put, &request, &doing).await?;
    cx.info(unit, format!("Attached {what} with name: {name}"));
    Ok(())
}

pub(super) async fn take(
    cx: &mut StepContext<'_>,
    (site, group): (&Site, &str),
    kind: &Kind,
    one: &Value,
    unit: &'static str,
) -> Result<(), Failure> {
    let (what, name) = (kind.what, text(one, kind.name).unwrap_or_default());
    let request = json!({"AutoScalingGroupName": group, kind.name: name});
    let doing = format!("detach {what} {name} from Auto Scaling group {group}");
    let ask = Ask {
        action: kind.delete,
        request: &request,
        doing: &doing,
    };
    site.scaling_unless(ask, (&["ValidationError"], "not found"))
        .await?;
    cx.info(unit, format!("Detached {what} with name: {name}"));
    Ok(())
}

async fn all(site: &Site, action: &str, list: &str, group: &str) -> Result<Vec<Value>, Failure> {
    let doing = format!("look at what scales Auto Scaling group {group}");
    let (mut found, mut next) = (Vec::new(), Value::Null);
    loop {
        let request = json!({"AutoScalingGroupName": group, "NextToken": next});
        let mut page = site.scaling(action, &request, &doing).await?;
        found.extend(page[list].as_array().cloned().unwrap_or_default());
        next = page["NextToken"].take();
        if next.is_null() {
            return Ok(found);
        }
    }
}

/// Answers as the requests that would make them again.
fn requests(found: Vec<Value>, shape: &str) -> Vec<Value> {
    let request = |one: Value| {
        let kept = fields(shape).filter(|field| *field != "AutoScalingGroupName");
        let kept = kept.filter_map(|field| Some((field.to_owned(), one.get(field)?.clone())));
        let kept: Map<String, Value> = kept.filter(|(_, value)| !value.is_null()).collect();
        Value::Object(kept)
    };
    found.into_iter().map(request).collect()
}

/// Enables or disables the metrics that the additional configuration names.
pub(super) async fn set_metrics(
    cx: &mut StepContext<'_>,
    (site, group): (&Site, &str),
    documents: &Documents,
    unit: &'static str,
) -> Result<(), Failure> {
    for document in &documents.metrics {
        let metrics = &document["metrics"];
        let flag = [&metrics["enableMetrics"], &metrics["enableMetrices"]];
        let enable = flag
            .iter()
            .any(|flag| **flag == json!(true) || **flag == json!("true"));
        let collection = metrics["metricsCollection"]
            .as_array()
            .into_iter()
            .flatten();
        let collection: Vec<&Value> = collection.collect();
        let names: Vec<String> = collection
            .iter()
            .filter_map(|one| text(one, "metric"))
            .collect();
        let granularity = collection.iter().find_map(|one| text(one, "granularity"));
        let mut request = json!({"AutoScalingGroupName": group, "Metrics": names});
        let (action, told) = match enable {
            true => {
                request["Granularity"] = json!(granularity.unwrap_or_else(|| "1Minute".to_owned()));
                ("EnableMetricsCollection", "Enabled")
            }
            false => ("DisableMetricsCollection", "Disabled"),
        };
        let doing = format!("set the metrics of Auto Scaling group {group}");
        site.scaling(action, &request, &doing).await?;
        cx.info(
            unit,
            format!("{told} metrics of Asg {group}: {}", names.join(", ")),
        );
    }
    Ok(())
}
