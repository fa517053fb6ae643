//! Steps of Auto Scaling groups against the sandbox account.

mod balanced;
mod blue_green;
mod canary;
mod generic;
mod hooks;
mod instances;
mod others;
mod phased;
mod rolling;
mod strategies;

use std::time::Duration;

use serde_json::{Value, json};
use slipway_model::id::{AccountId, Scope};
use slipway_plan::ConnectorPlan;
use slipway_sandbox::Pace;
use slipway_steps::aws::{Ambient, AwsTarget, AwsTargets, TargetConfig};
use slipway_steps::secrets::Secrets;
use slipway_store::InstanceFilter;
use slipway_store::embedded::in_process;

use crate::world::{World, manifest, scope};
use balanced::Balancer;

/// Longest that anything of these tests goes on by itself.
const QUIET: Duration = Duration::from_secs(400);

/// A world whose stage deploys an Auto Scaling group `web`, and clients that no tap is on.
pub(crate) struct Groups {
    pub(crate) world: World,
    aws: AwsTarget,
    /// The load balancer of the account, where there is one.
    pub(crate) balancer: Option<Balancer>,
}

/// The manifests of a group.
fn configuration(desired: u32) -> Value {
    json!({
        "AutoScalingGroupName": "web",
        "MinSize": 1,
        "MaxSize": 6,
        "DesiredCapacity": desired,
        "AvailabilityZones": ["eu-west-1a", "eu-west-1b"],
        "HealthCheckGracePeriod": 10,
        "Tags": [{"Key": "team", "Value": "shop", "PropagateAtLaunch": true}],
    })
}

fn template(image: &str) -> Value {
    json!({"launchTemplateData": {"imageId": image, "instanceType": "t3.micro"}})
}

fn policy(name: &str) -> Value {
    json!({"policyName": name, "adjustmentType": "ChangeInCapacity", "scalingAdjustment": 1})
}

fn night() -> Value {
    json!({"scheduledActionName": "night", "recurrence": "0 20 * * *", "desiredCapacity": 1})
}

impl Groups {
    pub(crate) async fn new() -> Self {
        Self::of(World::new().await).await
    }

    /// Another account, at a brisk pace, over the same store.
    pub(crate) async fn beside(&self) -> Self {
        Self::of(self.world.beside(Pace::brisk()).await).await
    }

    async fn of(mut world: World) -> Self {
        let config = TargetConfig {
            endpoint_url: Some("http://sandbox.localhost".to_owned()),
            http_client: Some(in_process(world.sandbox.router())),
            ambient: Ambient::Sandbox,
            objects: None,
        };
        let connector = ConnectorPlan {
            reference: "account.aws".to_owned(),
            kind: "Aws".to_owned(),
            spec: json!({"credential": {"type": "InheritFromDelegate"}}),
        };
        let scope = Scope::account(AccountId::new("acme"));
        let mut secrets = Secrets::new(&*world.services.secrets, &scope);
        let targets = AwsTargets::new(config, world.clock.clone());
        let aws = targets
            .target(
                &connector,
                &connector.spec,
                &scope,
                "eu-west-1",
                &mut secrets,
            )
            .await;
        let aws = aws.expect("clients");
        world.infrastructure = json!({"connectorRef": "account.aws", "region": "eu-west-1"});
        let mut groups = Self {
            world,
            aws,
            balancer: None,
        };
        groups.deploys("ami-1", 2);
        groups
    }

    /// Makes a load balancer, whose rules have both target groups if it is `weighted`.
    pub(crate) async fn balance(&mut self, weighted: bool) {
        let (sandbox, now) = (&self.world.sandbox, self.world.clock.now());
        self.balancer = Some(Balancer::new(sandbox, now, weighted).await);
    }

    /// What the stage's service deploys from now on.
    pub(crate) fn deploys(&mut self, image: &str, desired: u32) {
        self.world.manifests = vec![
            manifest("AsgLaunchTemplate", &template(image)),
            manifest("AsgConfiguration", &configuration(desired)),
        ];
    }

    /// The same, with a scaling policy and a scheduled action.
    pub(crate) fn scales(&mut self, name: &str) {
        self.world
            .manifests
            .push(manifest("AsgScalingPolicy", &policy(name)));
        self.world
            .manifests
            .push(manifest("AsgScheduledUpdateGroupAction", &night()));
    }

    pub(crate) async fn scaling(&self, action: &str, request: Value) -> Value {
        let answer = self.aws.auto_scaling.call(action, &request).await;
        answer.unwrap_or_else(|error| panic!("{action}: {error:?}"))
    }

    pub(crate) async fn ec2(&self, action: &str, request: Value) -> Value {
        let answer = self.aws.ec2.call(action, &request).await;
        answer.unwrap_or_else(|error| panic!("{action}: {error:?}"))
    }

    /// What a person sees of the account: each group as `name v<version> <healthy>/<desired> of <versions>`, with what
    /// scales it and its marks, and the launch templates.
    pub(crate) async fn account(&self) -> String {
        let found = self.scaling("DescribeAutoScalingGroups", json!({})).await;
        let mut seen = Vec::new();
        for group in list(&found["AutoScalingGroups"]) {
            seen.push(self.group(group).await);
        }
        let templates = self.ec2("DescribeLaunchTemplates", json!({})).await;
        let mut names: Vec<&str> = list(&templates["launchTemplates"])
            .iter()
            .map(|one| one["launchTemplateName"].as_str().unwrap_or("?"))
            .collect();
        names.sort_unstable();
        let mut seen = format!("{} | {}", seen.join(", "), names.join(" "));
        if let Some(balancer) = &self.balancer {
            seen.push_str(&format!(" | {}", balancer.seen().await));
        }
        seen
    }

    async fn group(&self, group: &Value) -> String {
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        let name = text(&group["AutoScalingGroupName"]);
        let (mut healthy, mut versions) = (0, Vec::new());
        for member in list(&group["Instances"]) {
            if member["LifecycleState"] == "InService" && member["HealthStatus"] == "Healthy" {
                healthy += 1;
            }
            versions.push(format!("v{}", text(&member["LaunchTemplate"]["Version"])));
        }
        versions.sort();
        versions.dedup();
        let mut seen = format!(
            "{name} v{} {healthy}/{} of {}",
            text(&group["LaunchTemplate"]["Version"]),
            text(&group["DesiredCapacity"]),
            versions.join("+")
        );
        let of = json!({"AutoScalingGroupName": name});
        let policies = self.scaling("DescribePolicies", of.clone()).await;
        let actions = self.scaling("DescribeScheduledActions", of).await;
        for (list_of, field) in [
            (&policies["ScalingPolicies"], "PolicyName"),
            (
                &actions["ScheduledUpdateGroupActions"],
                "ScheduledActionName",
            ),
        ] {
            for one in list(list_of) {
                seen.push_str(&format!(" {}", text(&one[field])));
            }
        }
        for tag in list(&group["Tags"]) {
            if tag["Key"] == "BG_VERSION" {
                seen.push_str(&format!(" {}", text(&tag["Value"])));
            }
        }
        seen
    }

    /// Waits until nothing goes on by itself any more.
    pub(crate) async fn quiet(&self) {
        self.world.clock.sleep(QUIET).await;
    }

    /// How many instances are counted of each group.
    pub(crate) async fn counted(&self) -> String {
        let filter = InstanceFilter::default();
        let found = self.world.store.list_instances(&scope(), &filter).await;
        let mut counts = std::collections::BTreeMap::<String, usize>::new();
        for instance in found.expect("a list") {
            let group = instance.info["asgName"].as_str().unwrap_or("?").to_owned();
            let version = instance.info["launchTemplateVersion"]
                .as_str()
                .unwrap_or("?");
            let by = if instance.run.is_some() {
                ""
            } else {
                " (not ours)"
            };
            *counts.entry(format!("{group} v{version}{by}")).or_default() += 1;
        }
        let counts = counts.iter().map(|(name, count)| format!("{count} {name}"));
        counts.collect::<Vec<_>>().join(", ")
    }
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
