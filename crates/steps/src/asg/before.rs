//! What a deployment writes down before its first change, and how a group is put back from that, unless somebody else
//! changed it since.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_model::status::Failure;

use super::group::{self, Group, Standing};
use super::hooks::Hooks;
use super::instances::{By, Counted};
use super::scaling::Scaling;
use super::site::Site;
use super::template::{self, Look, Version};
use super::wrong;
use crate::context::StepContext;
use crate::deployment::Foreign;

/// A group before a deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Before {
    /// As AWS showed it, without its instances.
    pub(super) group: Group,
    /// What its next instance would have been started from.
    pub(super) version: Option<Version>,
    pub(super) scaling: Scaling,
    /// Its lifecycle hooks, where the deployment changes them.
    #[serde(default)]
    pub(super) hooks: Option<Hooks>,
    /// Who had deployed its version; `None` where an earlier version of Slipway wrote it down.
    #[serde(default)]
    pub(super) by: Option<By>,
}

/// Fields of a group that are history or follow from others.
const NOT_KEPT: &[&str] = &["Instances", "SuspendedProcesses", "WarmPoolSize"];

impl Before {
    pub(super) async fn look(
        cx: &StepContext<'_>,
        site: &Site,
        group: &Group,
        template: &Look,
    ) -> Result<Self, Failure> {
        let mut kept = group.clone();
        if let Value::Object(fields) = &mut kept.0 {
            fields.retain(|name, _| !NOT_KEPT.contains(&name.as_str()));
        }
        let version = template::in_use(site, group, template).await?;
        Ok(Self {
            by: Some(By::noted(cx, group.name(), version.as_ref()).await?),
            group: kept,
            version,
            scaling: Scaling::describe(site, group.name()).await?,
            hooks: None,
        })
    }

    /// It as a group that is counted.
    pub(super) fn counted(&self, strategy: &str, production: bool) -> Counted {
        Counted {
            name: self.group.name().to_owned(),
            version: self.version.clone(),
            strategy: strategy.to_owned(),
            production,
            by: self.by.clone(),
        }
    }

    /// Writes the lifecycle hooks down too, where a configuration has some.
    pub(super) async fn look_at_hooks(
        &mut self,
        site: &Site,
        configuration: &Value,
    ) -> Result<(), Failure> {
        if Hooks::of(configuration).is_some() {
            self.hooks = Some(Hooks::describe(site, self.group.name()).await?);
        }
        Ok(())
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

    /// Whether a group starts its instances from what it started them from before, or from what this run made of it.
    pub(super) fn is_still(&self, now: &Group, made: &[Version]) -> bool {
        // As it is written: of `$Latest` this run may have made a version without hearing of it.
        let untouched = now.template() == self.group.template()
            && now.0["LaunchConfigurationName"] == self.group.0["LaunchConfigurationName"];
        let mut known = self.version.iter().chain(made);
        untouched || known.any(|version| now.uses(version))
    }

    /// Refuses a group that starts its instances from something else than before and than what this run made of it.
    pub(super) fn check(&self, site: &Site, now: &Group, made: &[Version]) -> Result<(), Failure> {
        if self.is_still(now, made) {
            return Ok(());
        }
        Err(Foreign {
            resource: format!("Auto Scaling group {} in {site}", self.group.name()),
            found: format!("it starts instances from {}", now.told_template()),
            put: made.last().map(Version::told),
            before: Some(match &self.version {
                Some(version) => version.told(),
                None => "its launch configuration".to_owned(),
            }),
        }
        .left())
    }

    /// The same, for a look of its own.
    pub(super) async fn look_again(&self, site: &Site, made: &[Version]) -> Result<Group, Failure> {
        let name = self.group.name();
        let Standing::There(now) = group::describe(site, name).await? else {
            return Err(wrong(format!(
                "Auto Scaling group {name} in {site} cannot be put back: it no longer exists, somebody or something \
                 else deleted it."
            )));
        };
        self.check(site, &now, made)?;
        Ok(*now)
    }

    /// Puts settings, tags, target groups and what scales it back; its instances stay as they are. `made` are the versions
    /// that this run let it start instances from. What scales it comes back also where the settings cannot.
    pub(super) async fn restore(
        &self,
        cx: &mut StepContext<'_>,
        site: &Site,
        (sent, made): (&[String], &[Version]),
        unit: &'static str,
    ) -> Result<(), Failure> {
        let name = self.group.name();
        let now = self.look_again(site, made).await?;
        let settings = self.restore_settings(cx, site, (sent, &now), unit).await;
        let scaling = self.restore_scaling(cx, site, unit).await;
        settings.and(scaling)?;
        cx.info(unit, format!("Updated Asg {name} successfully"));
        Ok(())
    }

    async fn restore_scaling(
        &self,
        cx: &mut StepContext<'_>,
        site: &Site,
        unit: &'static str,
    ) -> Result<(), Failure> {
        let name = self.group.name();
        let has = Scaling::describe(site, name).await?;
        self.scaling.replace(cx, (site, name), &has, unit).await?;
        match &self.hooks {
            Some(hooks) => hooks.replace(cx, (site, name), unit).await,
            None => Ok(()),
        }
    }

    async fn restore_settings(
        &self,
        cx: &mut StepContext<'_>,
        site: &Site,
        (sent, now): (&[String], &Group),
        unit: &'static str,
    ) -> Result<(), Failure> {
        let name = self.group.name();
        let document = group::restore_document(&self.group, self.version.as_ref(), sent);
        cx.info(unit, format!("Updating Asg {name} back to what it was"));
        let doing = format!("put Auto Scaling group {name} back");
        site.scaling("UpdateAutoScalingGroup", &document, &doing)
            .await?;
        group::restore_tags(site, &self.group, now).await?;
        group::set_target_groups(site, now, &self.group.target_groups(), true).await
    }
}
