//! What a deployment writes down before its first change, and how a group is put back from that.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_model::status::Failure;

use super::group::{self, Group, Standing};
use super::scaling::Scaling;
use super::site::Site;
use super::template::{self, Look, Version};
use super::wrong;
use crate::context::StepContext;

/// A group before a deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Before {
    /// As AWS showed it, without its instances.
    pub(super) group: Group,
    /// What its next instance would have been started from.
    pub(super) version: Option<Version>,
    pub(super) scaling: Scaling,
}

/// Fields of a group that are history or follow from others.
const NOT_KEPT: &[&str] = &["Instances", "SuspendedProcesses", "WarmPoolSize"];

impl Before {
    pub(super) async fn look(site: &Site, group: &Group, template: &Look) -> Result<Self, Failure> {
        let mut kept = group.clone();
        if let Value::Object(fields) = &mut kept.0 {
            fields.retain(|name, _| !NOT_KEPT.contains(&name.as_str()));
        }
        Ok(Self {
            group: kept,
            version: template::in_use(site, group, template).await?,
            scaling: Scaling::describe(site, group.name()).await?,
        })
    }

    /// Sentence about what the group was.
    pub(super) fn told(&self) -> String {
        let sizes = self.group.sizes();
        let number = self.version.as_ref().map_or("?", |version| &version.number);
        format!(
            "Auto Scaling group {} with {} instances of version {number} of its launch template",
            self.group.name(),
            sizes.desired
        )
    }

    /// Puts settings, tags, target groups and what scales it back; its instances stay as they are.
    pub(super) async fn restore(
        &self,
        cx: &mut StepContext<'_>,
        site: &Site,
        sent: &[String],
        unit: &'static str,
    ) -> Result<(), Failure> {
        let name = self.group.name();
        let Standing::There(now) = group::describe(site, name).await? else {
            return Err(wrong(format!(
                "Auto Scaling group {name} in {site} cannot be put back: it no longer exists, somebody or something \
                 else deleted it."
            )));
        };
        let document = group::restore_document(&self.group, self.version.as_ref(), sent);
        cx.info(unit, format!("Updating Asg {name} back to what it was"));
        let doing = format!("put Auto Scaling group {name} back");
        site.scaling("UpdateAutoScalingGroup", &document, &doing)
            .await?;
        group::restore_tags(site, &self.group, &now).await?;
        group::set_target_groups(site, &now, &self.group.target_groups(), true).await?;
        let has = Scaling::describe(site, name).await?;
        self.scaling.replace(cx, (site, name), &has, unit).await?;
        cx.info(unit, format!("Updated Asg {name} successfully"));
        Ok(())
    }
}
