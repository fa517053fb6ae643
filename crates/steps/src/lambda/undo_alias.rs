//! Aliases on the way back from a release.

use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::ROLLBACK;
use super::alias::{Target, is, versions};
use super::calls;
use super::function::LATEST;
use super::manifest::{alias_name, short};
use super::undo::Undoing;
use crate::context::StepContext;
use crate::deployment::Foreign;

impl Undoing {
    /// Aliases as they were; those that pointed to `$LATEST` come back after it.
    pub(super) async fn aliases(
        &mut self,
        cx: &mut StepContext<'_>,
        latest: bool,
    ) -> Result<bool, Failure> {
        for manifest in &self.documents.aliases {
            let name = alias_name(manifest);
            let was = self.data.alias(name);
            let to_latest = was.is_some_and(|was| was["FunctionVersion"] == LATEST);
            if to_latest != latest {
                continue;
            }
            let now = calls::alias(&self.site, self.name(), name).await?;
            self.alias(cx, name, (was, now)).await?;
        }
        Ok(true)
    }

    async fn alias(
        &self,
        cx: &mut StepContext<'_>,
        name: &str,
        (was, now): (Option<&Value>, Option<Value>),
    ) -> Result<(), Failure> {
        if let Some(now) = &now {
            self.check_alias(name, was, now)?;
        }
        match (was, now) {
            (None, None) => Ok(()),
            (None, Some(_)) => {
                calls::delete_alias(&self.site, self.name(), name).await?;
                cx.info(
                    ROLLBACK,
                    format!("Deleted Alias {name}, which this run created"),
                );
                Ok(())
            }
            (Some(was), Some(now)) if is(&now, was) => Ok(()),
            (Some(was), now) => {
                let mut wanted =
                    calls::whole_alias(was["FunctionVersion"].as_str().unwrap_or_default());
                wanted["Description"] = json!(was["Description"].as_str().unwrap_or_default());
                if was["RoutingConfig"].is_object() {
                    wanted["RoutingConfig"] = was["RoutingConfig"].clone();
                }
                let target = Target {
                    site: &self.site,
                    function: self.name(),
                    unit: ROLLBACK,
                };
                target.set(cx, (name, now.as_ref()), wanted).await
            }
        }
    }

    /// An alias that somebody pointed elsewhere is theirs.
    fn check_alias(&self, name: &str, was: Option<&Value>, now: &Value) -> Result<(), Failure> {
        let mut ours: Vec<&str> = was.map(versions).unwrap_or_default();
        ours.extend(self.data.version());
        ours.extend(self.versions());
        let routed = self
            .documents
            .aliases
            .iter()
            .filter(|alias| alias_name(alias) == name);
        let routed: Vec<Value> = routed.map(|alias| Value::Object(alias.clone())).collect();
        ours.extend(routed.iter().flat_map(versions));
        match versions(now)
            .into_iter()
            .find(|version| !ours.contains(version))
        {
            None => Ok(()),
            Some(other) => {
                let target = |alias: &Value| {
                    let version = alias["FunctionVersion"].as_str().unwrap_or_default();
                    format!("version {version}")
                };
                Err(Foreign {
                    resource: format!(
                        "Alias {name} of function {} in {}",
                        short(self.name()),
                        self.site
                    ),
                    found: format!("it points to version {other}"),
                    put: self
                        .version_put()
                        .map(|version| format!("version {version}")),
                    before: was.map(target),
                }
                .left())
            }
        }
    }
}
