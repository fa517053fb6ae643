//! `ShellScript`: runs a script on a delegate. Source: ShellScriptStepInfo in the pipeline schema.
//!
//! The step itself runs nothing. It hands the delegate a payload ([`task::Payload`]) whose texts still hold
//! references of secrets, and turns the delegate's answer ([`task::Outcome`]) into outputs or a failure.

pub mod artifacts;
pub mod task;

use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use slipway_expr::Context as _;
use slipway_expr::secret::SecretText;
use slipway_model::status::{ErrorType, Failure};

use crate::context::StepContext;
use crate::step::{DelegateWork, Progress, Step, Undo};
use crate::variable::{Kind, Variable, flag, is_expression, read, selectors, wrong};
use task::{Environment, Outcome, Output, Payload, Shell, Status, UNIT, is_shell_name};

/// The step.
pub struct ShellScript;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Spec {
    shell: String,
    source: Source,
    #[serde(default)]
    execution_target: Option<ExecutionTarget>,
    #[serde(default)]
    on_delegate: Value,
    #[serde(default)]
    environment_variables: Option<Vec<Variable>>,
    #[serde(default)]
    output_variables: Option<Vec<Variable>>,
    #[serde(default)]
    pub(crate) delegate_selectors: Value,
    #[serde(default)]
    output_alias: Option<OutputAlias>,
    #[serde(default)]
    include_infra_selectors: Value,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Source {
    #[serde(rename = "type")]
    kind: String,
    spec: SourceSpec,
}

#[derive(Deserialize)]
struct SourceSpec {
    script: Option<String>,
}

impl Source {
    /// The script where it is written into the pipeline.
    pub(crate) fn inline(&self) -> Option<&str> {
        self.spec
            .script
            .as_deref()
            .filter(|_| self.kind == "Inline")
    }
}

/// `executionTarget`: an object, or an expression that gave none.
#[derive(Deserialize)]
#[serde(untagged)]
enum ExecutionTarget {
    Host(Host),
    Text(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Host {
    host: Option<String>,
    connector_ref: Option<String>,
    working_directory: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutputAlias {
    key: String,
    scope: AliasScope,
}

impl OutputAlias {
    /// Exported variables never change, and turns of a loop would each write them (docs continuous-delivery/
    /// x-platform-cd-features/cd-steps/utilities/shell-script-step).
    fn check(&self, cx: &StepContext<'_>) -> Result<(), String> {
        if cx.step().iteration.is_some() || cx.stage().iteration.is_some() {
            return Err("outputAlias: variables cannot be exported in a loop".to_owned());
        }
        let scope = match self.scope {
            AliasScope::Pipeline => "pipeline",
            AliasScope::Stage => "stage",
            AliasScope::StepGroup => "stepGroup",
        };
        let known = [format!("{scope}.{}", self.key).into()];
        let names = cx.expressions_with(&[]);
        match names.call("exportedVariables.getValue", &known) {
            Some(Ok(_)) => Err(format!(
                "outputAlias.key: another step has exported `{}` for this {scope} already, and exported variables never \
                 change; choose another key",
                self.key
            )),
            Some(Err(_)) | None => Ok(()),
        }
    }
}

#[derive(Deserialize)]
enum AliasScope {
    Pipeline,
    Stage,
    StepGroup,
}

impl Spec {
    /// What the delegate must carry: with `includeInfraSelectors` also what the connector of the infrastructure asks for
    /// (docs: continuous-delivery/x-platform-cd-features/cd-steps/utilities/shell-script-step).
    fn selectors(&self, cx: &StepContext<'_>) -> Result<Vec<String>, Failure> {
        let mut chosen = chosen_selectors(&self.delegate_selectors, cx)?;
        if flag(&self.include_infra_selectors) == Some(true) {
            let infrastructure = cx.stage().infrastructure.as_ref();
            let connector = infrastructure.and_then(|place| place.connector.as_ref());
            let asked = connector.map(|connector| selectors(&connector.spec["delegateSelectors"]));
            for selector in asked.unwrap_or_default() {
                if !chosen.contains(&selector) {
                    chosen.push(selector);
                }
            }
        }
        Ok(chosen)
    }

    /// What is wrong with it, a message per fault. Before the run (`open`) expressions are taken to become
    /// something right.
    pub(crate) fn faults(&self, open: bool) -> Vec<String> {
        let mut faults = Vec::new();
        let later = |text: &str| open && is_expression(text);
        match self.shell.as_str() {
            "Bash" | "PowerShell" => {}
            text if later(text) => {}
            other => faults.push(format!(
                "shell: `{other}` is unknown; use Bash or PowerShell"
            )),
        }
        match (self.source.kind.as_str(), &self.source.spec.script) {
            ("Inline", Some(_)) => {}
            ("Inline", None) => faults.push("source.spec.script: missing".to_owned()),
            (other, _) => faults.push(format!(
                "source.type: `{other}` is not supported by this version; use Inline"
            )),
        }
        if flag(&self.on_delegate) == Some(false) {
            faults.push(
                "onDelegate: scripts on other hosts are not supported by this version".to_owned(),
            );
        }
        let elsewhere = match &self.execution_target {
            Some(ExecutionTarget::Host(host)) => {
                let named =
                    |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
                named(&host.host) || named(&host.connector_ref)
            }
            Some(ExecutionTarget::Text(text)) => !text.is_empty() && !later(text),
            None => false,
        };
        if elsewhere {
            faults.push(
                "executionTarget: host and connectorRef are not supported by this version; the script \
                 runs on a delegate"
                    .to_owned(),
            );
        }
        for variable in self.output_variables.iter().flatten() {
            let source = shell_variable(variable);
            if !later(&source) && !is_shell_name(&source) {
                faults.push(format!(
                    "outputVariables.{}: `{source}` is no name of a shell variable",
                    variable.name
                ));
            }
        }
        faults
    }

    pub(crate) fn payload(&self, timeout_seconds: u64) -> Result<Payload, String> {
        let environment = environment(self.environment_variables.iter().flatten())?;
        let outputs = self
            .output_variables
            .iter()
            .flatten()
            .map(|variable| Output {
                name: variable.name.clone(),
                variable: shell_variable(variable),
                secret: variable.kind == Kind::Secret,
            });
        let working_directory = match &self.execution_target {
            Some(ExecutionTarget::Host(host)) => host.working_directory.clone(),
            _ => None,
        };
        Ok(Payload {
            shell: match self.shell.as_str() {
                "PowerShell" => Shell::PowerShell,
                _ => Shell::Bash,
            },
            script: self.source.spec.script.clone().unwrap_or_default(),
            environment,
            outputs: outputs.collect(),
            working_directory: working_directory.filter(|text| !text.is_empty()),
            timeout_seconds,
            artifacts: None,
        })
    }
}

/// Variables as the environment of a script.
pub(crate) fn environment<'v>(
    variables: impl Iterator<Item = &'v Variable>,
) -> Result<Vec<Environment>, String> {
    let one = |variable: &Variable| {
        Ok(Environment {
            name: variable.name.clone(),
            value: variable.encoded()?,
        })
    };
    variables.map(one).collect()
}

/// The shell variable that an output variable is read from: its value, or its name if it has none.
fn shell_variable(variable: &Variable) -> String {
    match variable.value.as_str() {
        Some(text) if !text.is_empty() => text.to_owned(),
        _ => variable.name.clone(),
    }
}

#[async_trait]
impl Step for ShellScript {
    fn step_type(&self) -> &'static str {
        "ShellScript"
    }

    fn units(&self) -> &'static [&'static str] {
        &[UNIT]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        match read::<Spec>(spec) {
            Err(message) => vec![message],
            Ok(spec) => spec.faults(true),
        }
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("what a script changes only its author knows; rollbackSteps may undo it")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let step = cx.step().identifier.to_string();
        let spec: Spec = read(cx.spec()).map_err(|message| wrong(&step, &message))?;
        if let Some(result) = cx.delegate_result() {
            let outcome: Outcome = read(result)
                .map_err(|message| wrong(&step, &format!("the delegate's answer: {message}")))?;
            let ended = end(&outcome);
            if let (Err(_), Some(code)) = (&ended, outcome.exit_code) {
                cx.fails_with(json!({"exitCode": code}));
            }
            cx.unit_ended(UNIT, ended.is_ok());
            return ended.map(Progress::Done);
        }
        if let Some(fault) = spec.faults(false).first() {
            return Err(wrong(&step, fault));
        }
        cx.unit_started(UNIT);
        if let Some(alias) = &spec.output_alias {
            alias.check(cx).map_err(|message| wrong(&step, &message))?;
        }
        let payload = spec
            .payload(whole_seconds(cx.time_left()))
            .map_err(|message| wrong(&step, &message))?;
        Ok(Progress::Delegate(DelegateWork {
            task_type: task::TASK_TYPE.to_owned(),
            payload: json!(payload),
            selectors: spec.selectors(cx)?,
            turn: 0,
        }))
    }
}

/// The limit of a script that has so long, in seconds. Rounded up: it has all of its time, and what it reports after that is
/// too late by the step's own clock.
pub(crate) fn whole_seconds(time: Duration) -> u64 {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    millis.div_ceil(1_000).max(1)
}

/// Selectors of the delegate: of the spec, else of the step, else of the stage. What the run brings forth is known by now.
pub(crate) fn chosen_selectors(own: &Value, cx: &StepContext<'_>) -> Result<Vec<String>, Failure> {
    let own = selectors(own);
    if !own.is_empty() {
        return Ok(own);
    }
    let lists = [
        &cx.step().delegate_selectors,
        &cx.stage().delegate_selectors,
    ];
    let Some(list) = lists.into_iter().find(|list| !list.is_empty()) else {
        return Ok(Vec::new());
    };
    let mut chosen = Vec::with_capacity(list.len());
    for text in list {
        let value = cx.evaluate(&json!(text))?;
        chosen.extend(selectors(&value));
    }
    Ok(chosen)
}

/// What a finished script means for the step.
pub(crate) fn end(outcome: &Outcome) -> Result<Value, Failure> {
    match outcome.status {
        Status::Success => Ok(json!({"output": {"outputVariables": outputs(outcome)}})),
        Status::Failure => Err(Failure {
            error: ErrorType::Unknown,
            message: match (&outcome.message, outcome.exit_code) {
                (Some(message), _) => format!("Shell Script execution failed. {message}"),
                (None, Some(code)) => format!(
                    "Shell Script execution failed. The script ended with exit code {code}. Please \
                     check execution logs."
                ),
                (None, None) => {
                    "Shell Script execution failed. Please check execution logs.".to_owned()
                }
            },
            left_behind: None,
        }),
        Status::Timeout => Err(Failure {
            error: ErrorType::Timeout,
            message:
                "Shell Script execution failed. The script did not end in time and was killed; \
                      raise the step's timeout if it needs longer."
                    .to_owned(),
            left_behind: None,
        }),
    }
}

/// Outputs as expressions read them: plain ones are data, encoded so that they cannot be anything else;
/// secret ones are holes that the service's own references fill.
pub(crate) fn outputs(outcome: &Outcome) -> Map<String, Value> {
    let plain = outcome
        .outputs
        .iter()
        .filter(|(name, _)| !outcome.secret_outputs.contains(name))
        .map(|(name, text)| (name.clone(), SecretText::plain(text.as_str())));
    let secret = outcome
        .secret_references
        .iter()
        .map(|(name, reference)| (name.clone(), SecretText::secret(reference.clone())));
    plain
        .chain(secret)
        .map(|(name, text)| (name, Value::String(text.encode())))
        .collect()
}

#[cfg(test)]
mod tests;
