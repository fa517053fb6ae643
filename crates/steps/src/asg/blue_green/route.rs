//! Listener rules: where production and stage requests go.

use std::collections::BTreeMap;

use aws_sdk_elasticloadbalancingv2::types::{
    Action, ActionTypeEnum, ForwardActionConfig, Rule, TargetGroupTuple,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::super::site::Site;
use super::super::{instances, invalid};
use crate::aws::balancer::keep_client_secrets;
use crate::aws::error::{Doing, failure};
use crate::context::StepContext;
use crate::deployment::Foreign;
use crate::deployment::spec::text;

/// Target groups of a rule with their weights.
pub(super) type Shares = BTreeMap<String, i32>;

/// A rule, and where its requests went when it was looked at first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Route {
    pub(super) listener: String,
    pub(super) rule: String,
    pub(super) shares: Shares,
}

/// What one entry of `loadBalancers` leads to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Routes {
    /// ARN of the load balancer; earlier versions did not write it down.
    #[serde(default)]
    pub(super) balancer: Option<String>,
    pub(super) prod: Route,
    /// `None` where one rule has both target groups (traffic shift).
    pub(super) stage: Option<Route>,
    /// ARN of the target group of what serves.
    pub(super) prod_group: String,
    /// ARN of the target group of what is deployed.
    pub(super) stage_group: String,
}

/// Fields of an entry of `loadBalancers`, which may stand in the spec itself too.
const FIELDS: [&str; 5] = [
    "loadBalancer",
    "prodListener",
    "prodListenerRuleArn",
    "stageListener",
    "stageListenerRuleArn",
];

/// The entries of a spec.
pub(super) fn entries(spec: &Value) -> Vec<&Value> {
    match spec["loadBalancers"].as_array() {
        Some(entries) if !entries.is_empty() => entries.iter().collect(),
        _ => vec![spec],
    }
}

/// Faults of the entries before a run.
pub(super) fn check(spec: &Value) -> Vec<String> {
    if spec["loadBalancers"].is_string() {
        return Vec::new();
    }
    let mut faults = Vec::new();
    for entry in entries(spec) {
        for name in &FIELDS[..3] {
            if text(entry, name).is_none() {
                faults.push(format!("`{name}` of the load balancer is missing"));
            }
        }
        for (name, part) in [
            ("prodListener", ":listener/"),
            ("prodListenerRuleArn", ":listener-rule/"),
            ("stageListener", ":listener/"),
            ("stageListenerRuleArn", ":listener-rule/"),
        ] {
            let written = text(entry, name).filter(|arn| !arn.contains("<+"));
            if written.is_some_and(|arn| !(arn.starts_with("arn:") && arn.contains(part))) {
                faults.push(format!("`{name}` must be an ARN with `{part}`"));
            }
        }
        let stage =
            ["stageListener", "stageListenerRuleArn"].map(|name| text(entry, name).is_some());
        if stage[0] != stage[1] {
            faults.push("`stageListener` and `stageListenerRuleArn` belong together".to_owned());
        }
    }
    faults
}

impl Routes {
    /// Looks at the rules of an entry.
    pub(super) async fn find(
        cx: &StepContext<'_>,
        site: &Site,
        entry: &Value,
    ) -> Result<Self, Failure> {
        let missing = |name: &str| invalid(format!("`{name}` of the load balancer is missing."));
        let required = |name: &str| text(entry, name).ok_or_else(|| missing(name));
        let (listener, rule) = (required("prodListener")?, required("prodListenerRuleArn")?);
        let balancer = check_balancer(site, &required("loadBalancer")?, &listener).await?;
        let prod = Route::find(site, listener, rule).await?;
        let stage = match (
            text(entry, "stageListener"),
            text(entry, "stageListenerRuleArn"),
        ) {
            (Some(listener), Some(rule)) => Some(Route::find(site, listener, rule).await?),
            _ => None,
        };
        let routes = match stage {
            Some(stage) => Self::of_two(prod, stage),
            None => match Self::of_one(&prod) {
                Some(routes) => Ok(routes),
                None => Err(split(cx, site, &prod).await?),
            },
        };
        Ok(Self {
            balancer: Some(balancer),
            ..routes?
        })
    }

    fn of_two(prod: Route, stage: Route) -> Result<Self, Failure> {
        let only = |route: &Route, which: &str| {
            route.only().ok_or_else(|| {
                invalid(format!(
                    "{which} listener rule {} sends requests to several target groups ({}), and a swap needs one that \
                     gets them all.",
                    route.rule,
                    route.told()
                ))
            })
        };
        let (prod_group, stage_group) = (only(&prod, "prod")?, only(&stage, "stage")?);
        if prod_group == stage_group {
            return Err(invalid(format!(
                "prod listener rule {} and stage listener rule {} send requests to the same target group, \
                 {prod_group}. Give one of them the other target group.",
                prod.rule, stage.rule
            )));
        }
        Ok(Self {
            balancer: None,
            prod,
            stage: Some(stage),
            prod_group,
            stage_group,
        })
    }

    /// One rule with two target groups: the one that gets all requests is the one of production.
    fn of_one(prod: &Route) -> Option<Self> {
        let groups: Vec<(String, i32)> = prod.shares.clone().into_iter().collect();
        let (prod_group, stage_group) = match groups.as_slice() {
            [(prod, weight), (stage, 0)] | [(stage, 0), (prod, weight)] if *weight > 0 => {
                (prod.clone(), stage.clone())
            }
            _ => return None,
        };
        Some(Self {
            balancer: None,
            prod: prod.clone(),
            stage: None,
            prod_group,
            stage_group,
        })
    }

    /// The new version's share of the requests, of 100, and everything else to the old one. With two rules it is all
    /// or nothing.
    pub(super) async fn shift(
        &self,
        cx: &mut StepContext<'_>,
        site: &Site,
        weight: i32,
        unit: &'static str,
    ) -> Result<(), Failure> {
        let (old, new) = (self.prod_group.clone(), self.stage_group.clone());
        match &self.stage {
            None => {
                let shares = Shares::from([(old, 100 - weight), (new, weight)]);
                self.prod.set(cx, site, &shares, unit).await
            }
            Some(stage) => {
                self.prod
                    .set(cx, site, &Shares::from([(new, 1)]), unit)
                    .await?;
                stage.set(cx, site, &Shares::from([(old, 1)]), unit).await
            }
        }
    }

    /// Lets the load balancer check the targets of the old version, whichever rule they are behind: in a target group
    /// that no rule forwards to nothing is healthy, and it must be before production goes there again.
    pub(super) async fn keep_checked(
        &self,
        cx: &mut StepContext<'_>,
        site: &Site,
        unit: &'static str,
    ) -> Result<(), Failure> {
        match &self.stage {
            Some(stage) => {
                let old = Shares::from([(self.prod_group.clone(), 1)]);
                stage.set(cx, site, &old, unit).await
            }
            None => Ok(()),
        }
    }

    /// Refuses rules that forward to a target group that this deployment does not know: somebody else changed them.
    pub(super) async fn check(&self, site: &Site) -> Result<(), Failure> {
        for route in [Some(&self.prod), self.stage.as_ref()]
            .into_iter()
            .flatten()
        {
            let found = look(site, &route.rule).await?;
            let now = forward(&found)
                .map(|action| shares(&action))
                .unwrap_or_default();
            let known = |group: &String| {
                let mut before = [Some(&self.prod), self.stage.as_ref()]
                    .into_iter()
                    .flatten();
                before.any(|one| one.shares.contains_key(group))
            };
            if !now.is_empty() && now.keys().all(known) {
                continue;
            }
            let found = match now.is_empty() {
                true => "it forwards to no target group".to_owned(),
                false => format!("it forwards to {}", told(&now)),
            };
            return Err(Foreign {
                resource: format!("Listener rule {} in {site}", route.rule),
                found,
                put: None,
                before: Some(route.told()),
            }
            .left());
        }
        Ok(())
    }

    /// Everything as it was.
    pub(super) async fn restore(
        &self,
        cx: &mut StepContext<'_>,
        site: &Site,
        unit: &'static str,
    ) -> Result<(), Failure> {
        self.prod.set(cx, site, &self.prod.shares, unit).await?;
        match &self.stage {
            Some(stage) => stage.set(cx, site, &stage.shares, unit).await,
            None => Ok(()),
        }
    }
}

impl Route {
    async fn find(site: &Site, listener: String, rule: String) -> Result<Self, Failure> {
        let own = listener.replacen(":listener/", ":listener-rule/", 1);
        if !rule.starts_with(&format!("{own}/")) {
            return Err(invalid(format!(
                "listener rule {rule} is not a rule of listener {listener}."
            )));
        }
        let found = look(site, &rule).await?;
        let shares = forward(&found)
            .map(|action| shares(&action))
            .unwrap_or_default();
        if shares.is_empty() {
            return Err(invalid(format!(
                "listener rule {rule} forwards to no target group, and a blue-green deployment needs one."
            )));
        }
        Ok(Self {
            listener,
            rule,
            shares,
        })
    }

    /// The only target group that gets requests.
    fn only(&self) -> Option<String> {
        if self.shares.len() == 1 {
            return self.shares.keys().next().cloned();
        }
        let mut reached = self.shares.iter().filter(|(_, weight)| **weight > 0);
        match (reached.next(), reached.next()) {
            (Some((only, _)), None) => Some(only.clone()),
            _ => None,
        }
    }

    /// Where its requests went, for people.
    pub(super) fn told(&self) -> String {
        told(&self.shares)
    }

    /// Sends the requests of the rule there, unless they go there already. Its other actions stay.
    async fn set(
        &self,
        cx: &mut StepContext<'_>,
        site: &Site,
        wanted: &Shares,
        unit: &'static str,
    ) -> Result<(), Failure> {
        let found = look(site, &self.rule).await?;
        let mut actions = found.actions().to_vec();
        let last = actions.iter().rposition(is_forward);
        let Some(action) = last.and_then(|at| actions.get_mut(at)) else {
            return Err(invalid(format!(
                "listener rule {} was changed by somebody or something else: it forwards to no target group any more.",
                self.rule
            )));
        };
        if same(&shares(action), wanted) {
            return Ok(());
        }
        write(action, wanted);
        keep_client_secrets(&mut actions);
        let told = Self {
            shares: wanted.clone(),
            ..self.clone()
        };
        cx.info(
            unit,
            format!(
                "Updating Listener Rule {} to forward to {}",
                self.rule,
                told.told()
            ),
        );
        let doing = format!("change listener rule {} in {site}", self.rule);
        let elb = &site.aws.elb;
        if found.is_default() == Some(true) {
            let call = elb.modify_listener().listener_arn(&self.listener);
            let call = call.set_default_actions(Some(actions)).send().await;
            call.map_err(|error| failure(Doing::with(&doing), error))?;
        } else {
            let call = elb.modify_rule().rule_arn(&self.rule);
            let call = call.set_actions(Some(actions)).send().await;
            call.map_err(|error| failure(Doing::with(&doing), error))?;
        }
        Ok(())
    }
}

/// A rule of which no target group gets all requests beside another one, and what leads on.
async fn split(cx: &StepContext<'_>, site: &Site, prod: &Route) -> Result<Failure, Failure> {
    let most = prod.shares.iter().max_by_key(|(_, weight)| **weight);
    let advice = match most {
        Some((most, _)) if prod.shares.len() == 2 => {
            let run = instances::run_beside(cx).await?;
            let run = run.map_or_else(String::new, |run| format!(", here run {run}"));
            let command = command(site, prod, most).await?;
            format!(
                "A traffic shift that did not end leaves it so. Take the run back that shifted them, if it succeeded \
                 (`slipway rollback <run>`{run}), or send all requests to the target group of the version that is to stay; to \
                 the one that gets most of them now: {command}."
            )
        }
        _ => {
            "Give it a second one with weight 0, or name a stage listener and its rule.".to_owned()
        }
    };
    Ok(invalid(format!(
        "listener rule {} must have exactly two target groups of which one gets all requests, and it has: {}. {advice}",
        prod.rule,
        prod.told()
    )))
}

/// The command that sends all requests of a rule to one of its target groups.
async fn command(site: &Site, route: &Route, to: &str) -> Result<String, Failure> {
    let found = look(site, &route.rule).await?;
    let shares = route.shares.keys();
    let shares = shares
        .map(|group| json!({"TargetGroupArn": group, "Weight": if group == to { 100 } else { 0 }}));
    let shares: Vec<Value> = shares.collect();
    let actions = json!([{"Type": "forward", "ForwardConfig": {"TargetGroups": shares}}]);
    let region = &site.aws.region;
    let command = match found.is_default() {
        Some(true) => format!(
            "`aws elbv2 modify-listener --region {region} --listener-arn {} --default-actions '{actions}'`",
            route.listener
        ),
        _ => format!(
            "`aws elbv2 modify-rule --region {region} --rule-arn {} --actions '{actions}'`",
            route.rule
        ),
    };
    Ok(match found.actions().len() {
        0 | 1 => command,
        _ => format!("{command} (it sets all actions: write the rule's others before this one)"),
    })
}

/// The target groups that a rule sends requests to. The weight of an only one means nothing.
pub(super) fn reached(rule: &Rule) -> Vec<String> {
    let shares = forward(rule)
        .map(|action| shares(&action))
        .unwrap_or_default();
    let only = shares.len() == 1;
    let reached = shares.into_iter().filter(|(_, weight)| only || *weight > 0);
    reached.map(|(group, _)| group).collect()
}

fn told(shares: &Shares) -> String {
    let shares = shares.iter();
    let shares = shares.map(|(group, weight)| format!("{group} with weight {weight}"));
    shares.collect::<Vec<_>>().join(", ")
}

/// A load balancer, which is named or given by its ARN, must have the listener. Answers with its ARN.
async fn check_balancer(site: &Site, balancer: &str, listener: &str) -> Result<String, Failure> {
    let doing = format!("look at listener {listener} of load balancer {balancer} in {site}");
    let found = site.aws.elb.describe_listeners().listener_arns(listener);
    let found = found.send().await;
    let found = found.map_err(|error| failure(Doing::with(&doing), error))?;
    let of = found
        .listeners()
        .first()
        .and_then(|one| one.load_balancer_arn());
    let fits = |arn: &&str| *arn == balancer || arn.split('/').nth(2) == Some(balancer);
    if let Some(arn) = of.filter(fits) {
        return Ok(arn.to_owned());
    }
    Err(invalid(format!(
        "listener {listener} is not of load balancer {balancer}, but of {}.",
        of.unwrap_or("none")
    )))
}

async fn look(site: &Site, rule: &str) -> Result<Rule, Failure> {
    let doing = format!("look at listener rule {rule} in {site}");
    let found = site.aws.elb.describe_rules().rule_arns(rule).send().await;
    let found = found.map_err(|error| failure(Doing::with(&doing), error))?;
    let found = found.rules.unwrap_or_default().into_iter().next();
    found.ok_or_else(|| invalid(format!("there is no listener rule {rule}.")))
}

fn is_forward(action: &Action) -> bool {
    action.r#type() == Some(&ActionTypeEnum::Forward)
}

fn forward(rule: &Rule) -> Option<Action> {
    rule.actions()
        .iter()
        .rev()
        .find(|one| is_forward(one))
        .cloned()
}

fn shares(action: &Action) -> Shares {
    let tuples = action
        .forward_config()
        .map(ForwardActionConfig::target_groups);
    let tuples = tuples.unwrap_or_default().iter();
    let mut shares: Shares = tuples
        .filter_map(|tuple| {
            Some((
                tuple.target_group_arn()?.to_owned(),
                tuple.weight().unwrap_or(1),
            ))
        })
        .collect();
    if let (true, Some(group)) = (shares.is_empty(), action.target_group_arn()) {
        shares.insert(group.to_owned(), 1);
    }
    shares
}

/// The weight of an only target group means nothing.
fn same(one: &Shares, other: &Shares) -> bool {
    one == other || (one.len() == 1 && one.keys().eq(other.keys()))
}

fn write(action: &mut Action, wanted: &Shares) {
    let stickiness = action
        .forward_config()
        .and_then(|config| config.target_group_stickiness_config().cloned());
    let tuples = wanted.iter().map(|(group, weight)| {
        TargetGroupTuple::builder()
            .target_group_arn(group)
            .weight(*weight)
            .build()
    });
    action.target_group_arn = None;
    action.forward_config = Some(
        ForwardActionConfig::builder()
            .set_target_groups(Some(tuples.collect()))
            .set_target_group_stickiness_config(stickiness)
            .build(),
    );
}
