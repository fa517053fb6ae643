//! Reads what is inside states: resources, waits, choice rules, retriers and catchers.

use serde_json::Value;

use super::fields::{Fields, Result, invalid};
use super::read::{LONGEST, refuse_jsonpath};
use super::{Catcher, ChoiceRule, Resource, Retrier, StartMode, Task, WaitFor, check};
use crate::template::Template;

pub(super) fn task(fields: &Fields<'_>) -> Result<Task> {
    let arn = fields.required_text("Resource")?;
    let Some(resource) = resource(arn) else {
        return invalid(
            &fields.at("Resource"),
            format!(
                "The resource provided {arn} is not recognized. The value is not a valid resource ARN, \
                 or the resource is not available in this region."
            ),
        );
    };
    let task = Task {
        resource,
        arguments: fields.template("Arguments")?,
        timeout: fields.whole_or_expression("TimeoutSeconds", 1..=LONGEST)?,
        heartbeat: fields.whole_or_expression("HeartbeatSeconds", 1..=LONGEST)?,
    };
    if let (Some(timeout), Some(heartbeat)) =
        (fields.get("TimeoutSeconds"), fields.get("HeartbeatSeconds"))
        && let (Some(timeout), Some(heartbeat)) = (timeout.as_u64(), heartbeat.as_u64())
        && heartbeat >= timeout
    {
        return invalid(
            &fields.at("HeartbeatSeconds"),
            "HeartbeatSeconds must be smaller than TimeoutSeconds",
        );
    }
    Ok(task)
}

fn resource(arn: &str) -> Option<Resource> {
    Some(match arn {
        "arn:aws:states:::lambda:invoke" => Resource::Invoke {
            wait_for_token: false,
        },
        "arn:aws:states:::lambda:invoke.waitForTaskToken" => Resource::Invoke {
            wait_for_token: true,
        },
        "arn:aws:states:::states:startExecution" => Resource::StartExecution(StartMode::Start),
        "arn:aws:states:::states:startExecution.sync" => Resource::StartExecution(StartMode::Sync),
        "arn:aws:states:::states:startExecution.sync:2" => {
            Resource::StartExecution(StartMode::Sync2)
        }
        "arn:aws:states:::states:startExecution.waitForTaskToken" => {
            Resource::StartExecution(StartMode::WaitForToken)
        }
        _ => {
            let parts: Vec<&str> = arn.splitn(7, ':').collect();
            match parts.as_slice() {
                ["arn", "aws", "lambda", _, _, "function", name] if !name.is_empty() => {
                    Resource::Function(arn.to_owned())
                }
                ["arn", "aws", "states", _, _, "activity", name] if !name.is_empty() => {
                    Resource::Activity(arn.to_owned())
                }
                _ => return None,
            }
        }
    })
}

pub(super) fn wait(fields: &Fields<'_>) -> Result<WaitFor> {
    let seconds = fields.whole_or_expression("Seconds", 0..=LONGEST)?;
    let timestamp = fields.text_or_expression("Timestamp")?;
    match (seconds, timestamp) {
        (Some(seconds), None) => Ok(WaitFor::Seconds(seconds)),
        (None, Some(timestamp)) => Ok(WaitFor::Timestamp(timestamp)),
        _ => invalid(
            &fields.path,
            "Exactly one of these fields is required: [Seconds, Timestamp]",
        ),
    }
}

pub(super) fn choices(fields: &Fields<'_>, jsonata: bool) -> Result<Vec<ChoiceRule>> {
    fields.require(&["Choices"])?;
    if !jsonata {
        return invalid(
            &fields.at("Choices"),
            "Choice rules need a query language that this engine runs: set QueryLanguage to JSONata",
        );
    }
    let mut rules = Vec::new();
    for (i, value) in fields.list("Choices")?.iter().enumerate() {
        let rule = Fields::of(value, &format!("{}[{i}]", fields.at("Choices")))?;
        refuse_jsonpath(&rule, true)?;
        rule.allow(&["Condition", "Next", "Comment", "Output", "Assign"])?;
        rule.require(&["Condition", "Next"])?;
        let condition = match rule.get("Condition") {
            Some(Value::Bool(flag)) => Template::Literal((*flag).into()),
            _ => match rule.text_or_expression("Condition")? {
                Some(template) if template.expression().is_some() => template,
                _ => {
                    return invalid(
                        &rule.at("Condition"),
                        "Condition must be a Boolean or a JSONata expression",
                    );
                }
            },
        };
        rules.push(ChoiceRule {
            condition,
            next: rule.required_text("Next")?.to_owned(),
            output: rule.template("Output")?,
            assign: rule.assign()?,
        });
    }
    if rules.is_empty() {
        return invalid(&fields.at("Choices"), "Array must not be empty");
    }
    Ok(rules)
}

pub(super) fn retriers(fields: &Fields<'_>) -> Result<Vec<Retrier>> {
    let mut retriers = Vec::new();
    for (i, value) in fields.list("Retry")?.iter().enumerate() {
        let entry = Fields::of(value, &format!("{}[{i}]", fields.at("Retry")))?;
        entry.allow(&[
            "ErrorEquals",
            "IntervalSeconds",
            "MaxAttempts",
            "BackoffRate",
            "MaxDelaySeconds",
            "JitterStrategy",
            "Comment",
        ])?;
        let backoff_rate = entry.number("BackoffRate")?.unwrap_or(2.0);
        if backoff_rate < 1.0 {
            return invalid(&entry.at("BackoffRate"), "BackoffRate must be at least 1");
        }
        let full_jitter = match entry.text("JitterStrategy")? {
            None | Some("NONE") => false,
            Some("FULL") => true,
            Some(_) => {
                return invalid(
                    &entry.at("JitterStrategy"),
                    "JitterStrategy must be FULL or NONE",
                );
            }
        };
        let attempts = entry.whole("MaxAttempts", 0..=LONGEST)?.unwrap_or(3);
        retriers.push(Retrier {
            errors: entry.errors()?,
            interval_seconds: entry.whole("IntervalSeconds", 1..=LONGEST)?.unwrap_or(1),
            max_attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
            backoff_rate,
            max_delay_seconds: entry.whole("MaxDelaySeconds", 1..=31_622_400)?,
            full_jitter,
        });
    }
    check::all_is_last(retriers.iter().map(|r| &r.errors), &fields.at("Retry"))?;
    Ok(retriers)
}

pub(super) fn catchers(fields: &Fields<'_>, jsonata: bool) -> Result<Vec<Catcher>> {
    let mut catchers = Vec::new();
    for (i, value) in fields.list("Catch")?.iter().enumerate() {
        let entry = Fields::of(value, &format!("{}[{i}]", fields.at("Catch")))?;
        refuse_jsonpath(&entry, jsonata)?;
        entry.allow(&["ErrorEquals", "Next", "Comment", "Output", "Assign"])?;
        catchers.push(Catcher {
            errors: entry.errors()?,
            next: entry.required_text("Next")?.to_owned(),
            output: entry.template("Output")?,
            assign: entry.assign()?,
        });
    }
    check::all_is_last(catchers.iter().map(|c| &c.errors), &fields.at("Catch"))?;
    Ok(catchers)
}
