//! Aliases of the manifests: where they point to, and how that is changed.

use serde_json::{Map, Value, json};
use slipway_model::status::Failure;

use super::calls::{self, Changed};
use super::function::{moved, refused};
use super::manifest::{alias_name, short};
use super::site::Site;
use crate::context::StepContext;

/// The versions that an alias points to.
pub(super) fn versions(alias: &Value) -> Vec<&str> {
    let first = alias["FunctionVersion"].as_str();
    let weights = alias["RoutingConfig"]["AdditionalVersionWeights"].as_object();
    let second = weights
        .into_iter()
        .flatten()
        .map(|(version, _)| version.as_str());
    first.into_iter().chain(second).collect()
}

/// Whether an alias is what `wanted` says, a body of `UpdateAlias`.
pub(super) fn is(alias: &Value, wanted: &Value) -> bool {
    let weights = |alias: &Value| match &alias["RoutingConfig"]["AdditionalVersionWeights"] {
        Value::Object(weights) => weights.clone(),
        _ => Map::new(),
    };
    let text = |alias: &Value| alias["Description"].as_str().unwrap_or_default().to_owned();
    alias["FunctionVersion"] == wanted["FunctionVersion"]
        && weights(alias) == weights(wanted)
        && (wanted["Description"].is_null() || text(alias) == text(wanted))
}

/// Where an alias of a function is about to point to.
pub(super) struct Target<'a> {
    pub(super) site: &'a Site,
    pub(super) function: &'a str,
    pub(super) unit: &'static str,
}

impl Target<'_> {
    /// Points the alias of a manifest to `version`, with what else the manifest says.
    pub(super) async fn point(
        &self,
        cx: &mut StepContext<'_>,
        manifest: &Map<String, Value>,
        version: &str,
    ) -> Result<(), Failure> {
        let mut wanted = calls::whole_alias(version);
        for (name, value) in manifest.iter().filter(|(name, _)| *name != "Name") {
            wanted[name.as_str()] = value.clone();
        }
        let name = alias_name(manifest).to_owned();
        let now = calls::alias(self.site, self.function, &name).await?;
        self.set(cx, (&name, now.as_ref()), wanted).await
    }

    /// Makes an alias, which is `now` so, what `wanted` says.
    pub(super) async fn set(
        &self,
        cx: &mut StepContext<'_>,
        (name, now): (&str, Option<&Value>),
        mut wanted: Value,
    ) -> Result<(), Failure> {
        let Self {
            site,
            function,
            unit,
        } = self;
        let (short, version) = (
            short(function),
            wanted["FunctionVersion"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        );
        if now.is_some_and(|now| is(now, &wanted)) {
            cx.info(
                unit,
                format!("Alias {name} for function {short} is at version {version}."),
            );
            return Ok(());
        }
        wanted = cx.secrets().reveal(wanted).await?;
        let changed = match now {
            Some(now) => {
                wanted["RevisionId"] = now["RevisionId"].clone();
                calls::update_alias(site, (function, name), &wanted).await?
            }
            None => {
                wanted["Name"] = json!(name);
                calls::create_alias(site, function, &wanted).await?
            }
        };
        match changed {
            Changed::Done(_) => {
                let done = if now.is_some() { "Updated" } else { "Created" };
                let second = wanted["RoutingConfig"]["AdditionalVersionWeights"].as_object();
                let second = second.and_then(|weights| weights.iter().next());
                let second = second.map_or_else(String::new, |(version, weight)| {
                    format!(" and {} % to version {version}", percent(weight))
                });
                cx.info(
                    unit,
                    format!(
                        "{done} Alias {name} for function {short} with version {version}{second}."
                    ),
                );
                Ok(())
            }
            Changed::Moved => Err(moved(
                site,
                function,
                &format!("its alias {name} was changed"),
            )),
            Changed::Busy | Changed::NotSo(_) if now.is_none() => Err(moved(
                site,
                function,
                &format!("its alias {name} did not exist, and is there now"),
            )),
            Changed::Busy => Err(refused(format!(
                "Alias {name} of function {short} in {site} cannot be changed now."
            ))),
            Changed::NotSo(why) => Err(refused(format!(
                "Cannot change alias {name} of function {short} in {site}: {why}"
            ))),
        }
    }
}

/// A share of 0 to 1 in percent, without noise of the binary number.
fn percent(weight: &Value) -> f64 {
    (weight.as_f64().unwrap_or_default() * 1e6).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_alias_points_to() {
        let alias = json!({"FunctionVersion": "1", "RoutingConfig": {"AdditionalVersionWeights": {"2": 0.07}}});
        assert_eq!(versions(&alias), ["1", "2"]);
        assert!(is(&alias, &alias.clone()));
        assert!(!is(&alias, &calls::whole_alias("1")));
        assert!(is(
            &json!({"FunctionVersion": "1", "Description": ""}),
            &calls::whole_alias("1")
        ));
        assert!(!is(
            &json!({"FunctionVersion": "1"}),
            &json!({"FunctionVersion": "1", "Description": "x"})
        ));
        assert!((percent(&json!(0.07)) - 7.0).abs() < f64::EPSILON);
    }
}
