//! `AwsLambdaTrafficShift`: gives the canary its share of the traffic, or all of it.

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::alias::{Target, versions};
use super::calls;
use super::function::{moved, refused, vanished};
use super::instances::{self, Change};
use super::manifest::{Documents, alias_name};
use super::ready::{Ready, ready};
use super::release::State;
use super::site::Site;
use super::snapshot::RollbackData;
use crate::context::StepContext;
use crate::deployment::manifest::kept;
use crate::deployment::{invalid, told};
use crate::step::{Progress, Step, Undo};
use crate::variable::is_expression;

/// The step.
pub struct TrafficShift;

/// Its command unit.
const SHIFT: &str = "Traffic Shift";
/// Its field.
const PERCENTAGE: &str = "trafficPercentage";

#[async_trait]
impl Step for TrafficShift {
    fn step_type(&self) -> &'static str {
        "AwsLambdaTrafficShift"
    }

    fn units(&self) -> &'static [&'static str] {
        &[SHIFT]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        let mut faults = crate::deployment::spec::check(
            spec,
            &[(PERCENTAGE, crate::deployment::spec::Kind::Other)],
        );
        let value = &spec[PERCENTAGE];
        if !value.as_str().is_some_and(is_expression)
            && let Err(fault) = percentage(value)
        {
            faults.push(fault);
        }
        faults
    }

    fn undo(&self) -> Undo {
        Undo::Step("AwsLambdaCanaryRollback")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(SHIFT);
        let result = shift(cx).await;
        told(cx, self.units(), result)
    }
}

/// Above 0 and at most 100, also written as a text.
fn percentage(value: &Value) -> Result<f64, String> {
    let number = match value {
        Value::Null => {
            return Err(format!(
                "`{PERCENTAGE}` is missing: how much of the traffic the new version gets, above 0 and at most 100"
            ));
        }
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let number = number.filter(|number: &f64| *number > 0.0 && *number <= 100.0);
    number.ok_or_else(|| format!("`{PERCENTAGE}` must be a number above 0 and at most 100"))
}

/// What is to be shifted.
struct Shift {
    site: Site,
    documents: Documents,
    data: RollbackData,
    state: State,
    version: String,
    percentage: f64,
}

async fn shift(cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
    let percentage =
        percentage(&cx.spec()[PERCENTAGE]).map_err(|fault| invalid(format!("{fault}.")))?;
    let canary = cx
        .saved_by::<State>("AwsLambdaCanaryDeploy")?
        .map(|(_, state)| state);
    let known = canary.and_then(|state| {
        Some((
            state.rollback.clone()?,
            state.version.clone()?,
            state.documents.clone()?,
            state,
        ))
    });
    let Some((data, version, key, state)) = known else {
        return Err(invalid(format!(
            "step {} shifts traffic to a canary, and no AwsLambdaCanaryDeploy step of stage {} has deployed one.",
            cx.step().identifier,
            cx.stage().identifier
        )));
    };
    let shift = Shift {
        site: Site::of_stage(cx).await?,
        documents: kept(cx, &key).await?,
        data,
        state,
        version,
        percentage,
    };
    if shift.documents.aliases.is_empty() {
        return Err(invalid(format!(
            "traffic of function {} cannot be shifted: the service has no AwsLambdaFunctionAliasDefinition manifest.",
            shift.documents.short_name()
        )));
    }
    shift.go(cx).await
}

impl Shift {
    async fn go(self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let name = self.documents.name();
        match ready(&self.site, name, &self.version).await? {
            Ready::Yes => {}
            Ready::NotYet(reason) => {
                return Err(refused(format!(
                    "Version {} of function {} in {} gets no traffic: it is not Active ({reason}).",
                    self.version,
                    self.documents.short_name(),
                    self.site
                )));
            }
        }
        for alias in &self.documents.aliases {
            self.alias(cx, alias_name(alias)).await?;
        }
        let short = self.documents.short_name().to_owned();
        cx.info(
            SHIFT,
            format!(
                "Version {} of function {short} gets {} % of the traffic",
                self.version, self.percentage
            ),
        );
        if self.percentage >= 100.0 {
            let deployed =
                instances::Deployed::new(&self.documents, &self.version, &self.state.sha256);
            let change = Change::Deployed(self.data.replaced());
            instances::note(cx, &self.site, &deployed, change).await?;
        } else {
            let version = (short.as_str(), self.version.as_str());
            instances::shares_alone(cx, &self.site, version).await?;
        }
        cx.unit_ended(SHIFT, true);
        Ok(Progress::Done(json!({"output": {
            "functionName": short,
            "version": self.version,
            "trafficPercentage": self.percentage,
        }})))
    }

    async fn alias(&self, cx: &mut StepContext<'_>, alias: &str) -> Result<(), Failure> {
        let function = self.documents.name();
        let Some(now) = calls::alias(&self.site, function, alias).await? else {
            return Err(vanished(&self.site, &format!("{function}:{alias}")));
        };
        // The version that keeps the rest.
        let base = self
            .data
            .alias(alias)
            .and_then(|alias| alias["FunctionVersion"].as_str());
        let base = base.or(self.data.version()).unwrap_or(&self.version);
        let ours = |version: &&str| *version == base || *version == self.version;
        let first = now["FunctionVersion"].as_str().unwrap_or_default();
        if !ours(&first) {
            let what = format!("its alias {alias} points to version {first}, and was at {base}");
            return Err(moved(&self.site, function, &what));
        }
        // A second version of before this canary loses its share to this one.
        for other in versions(&now).into_iter().filter(|version| !ours(version)) {
            cx.warn(
                SHIFT,
                format!(
                    "Alias {alias} also pointed to version {other}, which gets no traffic any more"
                ),
            );
        }
        let wanted = if self.percentage >= 100.0 || base == self.version {
            calls::whole_alias(&self.version)
        } else {
            json!({
                "FunctionVersion": base,
                "RoutingConfig": {"AdditionalVersionWeights": {&self.version: self.percentage / 100.0}},
            })
        };
        let target = Target {
            site: &self.site,
            function,
            unit: SHIFT,
        };
        target.set(cx, (alias, Some(&now)), wanted).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_above_0_and_at_most_100() {
        let table = [
            (json!({"trafficPercentage": 10}), ""),
            (json!({"trafficPercentage": 0.5}), ""),
            (json!({"trafficPercentage": "100"}), ""),
            (
                json!({"trafficPercentage": "<+pipeline.variables.share>"}),
                "",
            ),
            (
                json!({"trafficPercentage": 0}),
                "`trafficPercentage` must be a number above 0 and at most 100",
            ),
            (
                json!({"trafficPercentage": 101}),
                "`trafficPercentage` must be a number above 0 and at most 100",
            ),
            (
                json!({"trafficPercentage": -1}),
                "`trafficPercentage` must be a number above 0 and at most 100",
            ),
            (
                json!({"trafficPercentage": "NaN"}),
                "`trafficPercentage` must be a number above 0 and at most 100",
            ),
            (
                json!({"trafficPercentage": "half"}),
                "`trafficPercentage` must be a number above 0 and at most 100",
            ),
            (
                json!({"trafficPercentage": [1]}),
                "`trafficPercentage` must be a number above 0 and at most 100",
            ),
            (
                json!({}),
                "`trafficPercentage` is missing: how much of the traffic the new version gets, above 0 and at most 100",
            ),
            (
                json!({"trafficPercentage": 5, "trafficPercent": 6}),
                "`trafficPercent` is not a field of this step; did you mean `trafficPercentage`?",
            ),
        ];
        for (spec, faults) in table {
            assert_eq!(TrafficShift.check(&spec).join("; "), faults, "{spec}");
        }
    }
}
