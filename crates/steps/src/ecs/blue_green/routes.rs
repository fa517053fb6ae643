//! The rules that a blue-green deployment works with, and what they told of the two target groups.

use serde::{Deserialize, Serialize};
use slipway_model::status::Failure;

use super::super::site::Site;
use super::balancer::{self, Place, Rule};
use super::forward::Forward;
use super::spec::Create;
use crate::deployment::invalid;

/// A rule and how it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Route {
    pub(super) place: Place,
    pub(super) forward: Forward,
}

impl From<&Rule> for Route {
    fn from(rule: &Rule) -> Self {
        Self {
            place: rule.place.clone(),
            forward: rule.forward.clone(),
        }
    }
}

/// The rules and target groups of a deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Routes {
    /// ARN of the load balancer; earlier versions did not write it down.
    #[serde(default)]
    pub(super) balancer: Option<String>,
    pub(super) prod: Route,
    /// `None` with a traffic shift, which has one rule for both versions.
    pub(super) stage: Option<Route>,
    /// ARN of the target group of what serves.
    pub(super) prod_group: String,
    /// ARN of the target group of what is deployed.
    pub(super) stage_group: String,
}

impl Routes {
    /// Looks at the rules that the spec names.
    pub(super) async fn find(site: &Site, spec: &Create) -> Result<Self, Failure> {
        let places: Vec<&Place> = [Some(&spec.prod), spec.stage.as_ref()]
            .into_iter()
            .flatten()
            .collect();
        let (balancer, found) = balancer::find(site, &spec.balancer, &places).await?;
        let (prod, stage) = (found.first(), found.get(1));
        let prod = prod.ok_or_else(|| invalid("no rule was found.".to_owned()))?;
        let routes = match stage {
            Some(stage) => Self::of_two(prod, stage),
            None => Self::of_one(prod, spec.stage_group.as_deref()),
        };
        Ok(Self {
            balancer: Some(balancer),
            ..routes?
        })
    }

    /// Two rules, each with a target group of its own.
    fn of_two(prod: &Rule, stage: &Rule) -> Result<Self, Failure> {
        let group = |rule: &Rule, which: &str| {
            let only = rule.forward.only().map(str::to_owned);
            only.ok_or_else(|| {
                invalid(format!(
                    "{which} listener rule {} shares its requests between target groups ({}), and a swap needs one \
                     that gets them all. Finish the traffic shift, or use `isTrafficShift: true`.",
                    rule.place.rule, rule.forward
                ))
            })
        };
        let (prod_group, stage_group) = (group(prod, "prod")?, group(stage, "stage")?);
        Ok(Self {
            balancer: None,
            prod: prod.into(),
            stage: Some(stage.into()),
            prod_group,
            stage_group,
        })
    }

    /// One rule with two target groups.
    fn of_one(prod: &Rule, stage_group: Option<&str>) -> Result<Self, Failure> {
        let rule = &prod.place.rule;
        let [one, two] = prod.forward.groups.as_slice() else {
            return Err(invalid(format!(
                "listener rule {rule} forwards to {} target groups ({}), and a traffic shift needs exactly two: one \
                 for the version that serves and one for the next.",
                prod.forward.groups.len(),
                prod.forward
            )));
        };
        let of = |stage: &str, prod_group: &str| Self {
            balancer: None,
            prod: prod.into(),
            stage: None,
            prod_group: prod_group.to_owned(),
            stage_group: stage.to_owned(),
        };
        match stage_group {
            Some(group) if group == one.group => Ok(of(&one.group, &two.group)),
            Some(group) if group == two.group => Ok(of(&two.group, &one.group)),
            Some(group) => Err(invalid(format!(
                "`stageTargetGroupArn` {group} is none of the target groups of listener rule {rule}: {}.",
                prod.forward
            ))),
            // Harness asks for it always; where one of the two gets no requests there is no doubt.
            None if one.weight == 0 && two.weight > 0 => Ok(of(&one.group, &two.group)),
            None if two.weight == 0 && one.weight > 0 => Ok(of(&two.group, &one.group)),
            None => Err(invalid(format!(
                "`stageTargetGroupArn` is missing: listener rule {rule} sends requests to both of its target groups \
                 ({}), as a traffic shift that did not end leaves them. Send all of them to one first: by `slipway rollback` of \
                 the run that shifted them, if it succeeded, or by an EcsBlueGreenTrafficShift of type Standalone on this rule \
                 in a stage of its own. Which of them is for the new version is plain then; only where no version runs in \
                 either, `stageTargetGroupArn` is to say it.",
                prod.forward
            ))),
        }
    }

    /// Whether both versions are in one target group.
    pub(super) fn is_shared(&self) -> bool {
        self.prod_group == self.stage_group
    }

    /// Whether the requests are shifted by weights.
    pub(super) fn is_shift(&self) -> bool {
        self.stage.is_none()
    }

    /// Weight of the new version's target group before it was deployed.
    pub(super) fn stage_weight(&self) -> i32 {
        match self.is_shift() {
            true => self.prod.forward.weight(&self.stage_group),
            false => 0,
        }
    }

    /// The rules with what they are to forward to when the new version serves alone.
    pub(super) fn swapped(&self) -> Vec<(&Route, Forward)> {
        let prod = (
            &self.prod,
            Forward::to(&self.stage_group).sticky_as(&self.prod.forward),
        );
        let stage = self.stage.as_ref().map(|stage| {
            let forward = Forward::to(&self.prod_group).sticky_as(&stage.forward);
            (stage, forward)
        });
        [Some(prod), stage].into_iter().flatten().collect()
    }

    /// The rules with what they forwarded to before.
    pub(super) fn original(&self) -> Vec<(&Route, Forward)> {
        let routes = [Some(&self.prod), self.stage.as_ref()];
        let routes = routes.into_iter().flatten();
        routes.map(|route| (route, route.forward.clone())).collect()
    }

    /// Whether a rule forwards only to target groups that this deployment knows: else somebody changed it.
    pub(super) fn knows(&self, forward: &Forward) -> bool {
        let known = |group: &str| {
            group == self.prod_group
                || group == self.stage_group
                || self
                    .original()
                    .iter()
                    .any(|(_, forward)| forward.groups.iter().any(|one| one.group == group))
        };
        forward.groups.iter().all(|one| known(&one.group))
    }
}
