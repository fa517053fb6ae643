//! Reads a definition into [`Definition`], state by state.
//!
//! Fields and defaults: <https://states-language.net>, and Developer Guide, "Amazon States Language".

use std::collections::HashMap;

use serde_json::Value;

use super::fields::{Fields, Result, invalid};
use super::parts::{catchers, choices, retriers, task, wait};
use super::{Definition, Kind, Machine, MapState, State, check};

/// Deepest nesting of `Parallel` and `Map`.
const DEEPEST: usize = 64;
/// Longest time in a definition, in seconds (Developer Guide, `TimeoutSeconds`).
pub(super) const LONGEST: u64 = 99_999_999;
/// Longest name of a state.
const LONGEST_NAME: usize = 80;
/// Fields whose meaning is JSONPath.
const JSONPATH: [&str; 18] = [
    "InputPath",
    "OutputPath",
    "ResultPath",
    "Parameters",
    "ResultSelector",
    "ItemsPath",
    "Result",
    "SecondsPath",
    "TimestampPath",
    "TimeoutSecondsPath",
    "HeartbeatSecondsPath",
    "ErrorPath",
    "CausePath",
    "MaxConcurrencyPath",
    "Variable",
    "Iterator",
    "And",
    "Or",
];
/// Fields whose meaning depends on the query language.
const TEMPLATES: [&str; 5] = ["Assign", "Output", "Arguments", "Items", "ItemSelector"];

/// Reads a definition and checks it.
pub(crate) fn read(value: &Value) -> Result<Definition> {
    let fields = Fields::of(value, "/")?;
    let timeout = fields.whole("TimeoutSeconds", 1..=LONGEST)?;
    if let Some(version) = fields.text("Version")?
        && version != "1.0"
    {
        return invalid(&fields.at("Version"), "Version must be 1.0");
    }
    let jsonata = language(&fields, false)?;
    let mut reader = Reader {
        machines: Vec::new(),
    };
    reader.machine(value, "/", jsonata, 0)?;
    let definition = Definition {
        machines: reader.machines.into_iter().flatten().collect(),
        timeout_seconds: timeout.and_then(|seconds| i64::try_from(seconds).ok()),
    };
    Ok(definition)
}

/// Whether expressions at and below `fields` are JSONata.
fn language(fields: &Fields<'_>, outer: bool) -> Result<bool> {
    match fields.text("QueryLanguage")? {
        None => Ok(outer),
        Some("JSONata") => Ok(true),
        Some("JSONPath") if !outer => Ok(false),
        Some("JSONPath") => invalid(
            &fields.at("QueryLanguage"),
            "'QueryLanguage' can not be 'JSONPath' if set to 'JSONata' for whole state machine",
        ),
        Some(_) => invalid(
            &fields.at("QueryLanguage"),
            "QueryLanguage must be JSONata or JSONPath",
        ),
    }
}

struct Reader {
    machines: Vec<Option<Machine>>,
}

impl Reader {
    /// Reads a machine and those in it; gives its number.
    fn machine(&mut self, value: &Value, path: &str, jsonata: bool, depth: usize) -> Result<usize> {
        if depth > DEEPEST {
            return invalid(path, format!("States nest deeper than {DEEPEST}"));
        }
        let number = self.machines.len();
        self.machines.push(None);
        let fields = Fields::of(value, path)?;
        fields.allow(&[
            "Comment",
            "StartAt",
            "States",
            "Version",
            "TimeoutSeconds",
            "QueryLanguage",
            "ProcessorConfig",
        ])?;
        fields.require(&["States", "StartAt"])?;
        let states_path = fields.at("States");
        let Some(object) = fields.get("States").and_then(Value::as_object) else {
            return invalid(&states_path, "Expected value of type Object");
        };
        let mut states = HashMap::new();
        for (name, value) in object {
            let path = format!("{states_path}/{name}");
            if name.is_empty() || name.chars().count() > LONGEST_NAME {
                return invalid(
                    &path,
                    format!("A state's name has from 1 to {LONGEST_NAME} characters"),
                );
            }
            states.insert(name.clone(), self.state(value, &path, jsonata, depth)?);
        }
        let machine = Machine {
            start_at: fields.required_text("StartAt")?.to_owned(),
            states,
        };
        check::machine(&machine, path)?;
        self.machines[number] = Some(machine);
        Ok(number)
    }

    fn state(&mut self, value: &Value, path: &str, outer: bool, depth: usize) -> Result<State> {
        let fields = Fields::of(value, path)?;
        fields.require(&["Type"])?;
        let jsonata = language(&fields, outer)?;
        refuse_jsonpath(&fields, jsonata)?;
        let name = fields.required_text("Type")?;
        let kind = match name {
            "Pass" => Kind::Pass,
            "Succeed" => Kind::Succeed,
            "Task" => Kind::Task(task(&fields)?),
            "Choice" => Kind::Choice(choices(&fields, jsonata)?),
            "Wait" => Kind::Wait(wait(&fields)?),
            "Fail" => Kind::Fail {
                error: fields.text_or_expression("Error")?,
                cause: fields.text_or_expression("Cause")?,
            },
            "Parallel" => self.parallel(&fields, jsonata, depth)?,
            "Map" => self.map(&fields, jsonata, depth)?,
            other => {
                return invalid(
                    &fields.at("Type"),
                    format!(
                        "State type '{other}' is not one of Pass, Task, Choice, Wait, Succeed, Fail, Parallel, Map"
                    ),
                );
            }
        };
        fields.allow(allowed(name))?;
        Ok(State {
            next: next(&fields, &kind)?,
            assign: fields.assign()?,
            output: fields.template("Output")?,
            retry: retriers(&fields)?,
            catch: catchers(&fields, jsonata)?,
            kind,
        })
    }

    fn parallel(&mut self, fields: &Fields<'_>, jsonata: bool, depth: usize) -> Result<Kind> {
        fields.require(&["Branches"])?;
        let mut branches = Vec::new();
        for (i, branch) in fields.list("Branches")?.iter().enumerate() {
            let path = format!("{}[{i}]", fields.at("Branches"));
            branches.push(self.machine(branch, &path, jsonata, depth + 1)?);
        }
        if branches.is_empty() {
            return invalid(&fields.at("Branches"), "Array must not be empty");
        }
        Ok(Kind::Parallel {
            arguments: fields.template("Arguments")?,
            branches,
        })
    }

    fn map(&mut self, fields: &Fields<'_>, jsonata: bool, depth: usize) -> Result<Kind> {
        fields.require(&["ItemProcessor"])?;
        let path = fields.at("ItemProcessor");
        let Some(processor) = fields.get("ItemProcessor") else {
            return invalid(&path, "Expected value of type Object");
        };
        let inner = Fields::of(processor, &path)?;
        if let Some(config) = inner.get("ProcessorConfig") {
            let config = Fields::of(config, &inner.at("ProcessorConfig"))?;
            if config.text("Mode")?.is_some_and(|mode| mode != "INLINE") {
                return invalid(
                    &config.at("Mode"),
                    "Map runs inline here: distributed mode is not supported by this engine",
                );
            }
        }
        Ok(Kind::Map(MapState {
            items: fields.template("Items")?,
            selector: fields.template("ItemSelector")?,
            max_concurrency: fields.whole_or_expression("MaxConcurrency", 0..=LONGEST)?,
            processor: self.machine(processor, &path, jsonata, depth + 1)?,
        }))
    }
}

pub(super) fn refuse_jsonpath(fields: &Fields<'_>, jsonata: bool) -> Result<()> {
    if let Some(name) = JSONPATH.iter().find(|name| fields.has(name)) {
        let message = if jsonata {
            format!("The QueryLanguage 'JSONata' does not support the field '{name}'")
        } else {
            format!(
                "The field '{name}' needs the query language JSONPath, which this engine does not run: \
                 set QueryLanguage to JSONata"
            )
        };
        return invalid(&fields.at(name), message);
    }
    if !jsonata && let Some(name) = TEMPLATES.iter().find(|name| fields.has(name)) {
        return invalid(
            &fields.at(name),
            format!(
                "The field '{name}' is read by the query language: set QueryLanguage to JSONata"
            ),
        );
    }
    Ok(())
}

fn allowed(kind: &str) -> &'static [&'static str] {
    match kind {
        "Pass" => &[
            "Type",
            "Comment",
            "QueryLanguage",
            "Next",
            "End",
            "Assign",
            "Output",
        ],
        "Succeed" => &["Type", "Comment", "QueryLanguage", "Output"],
        "Fail" => &["Type", "Comment", "QueryLanguage", "Error", "Cause"],
        "Choice" => &[
            "Type",
            "Comment",
            "QueryLanguage",
            "Choices",
            "Default",
            "Assign",
            "Output",
        ],
        "Wait" => &[
            "Type",
            "Comment",
            "QueryLanguage",
            "Next",
            "End",
            "Assign",
            "Output",
            "Seconds",
            "Timestamp",
        ],
        "Task" => &[
            "Type",
            "Comment",
            "QueryLanguage",
            "Next",
            "End",
            "Assign",
            "Output",
            "Resource",
            "Arguments",
            "TimeoutSeconds",
            "HeartbeatSeconds",
            "Retry",
            "Catch",
            "Credentials",
        ],
        "Parallel" => &[
            "Type",
            "Comment",
            "QueryLanguage",
            "Next",
            "End",
            "Assign",
            "Output",
            "Arguments",
            "Branches",
            "Retry",
            "Catch",
        ],
        _ => &[
            "Type",
            "Comment",
            "QueryLanguage",
            "Next",
            "End",
            "Assign",
            "Output",
            "Items",
            "ItemSelector",
            "ItemProcessor",
            "MaxConcurrency",
            "Label",
            "Retry",
            "Catch",
            // Accepted as AWS accepts them; they have a meaning in distributed mode only.
            "ToleratedFailureCount",
            "ToleratedFailurePercentage",
        ],
    }
}

/// `Next`, or for a `Choice` its `Default`.
fn next(fields: &Fields<'_>, kind: &Kind) -> Result<Option<String>> {
    match kind {
        Kind::Choice(_) => Ok(fields.text("Default")?.map(str::to_owned)),
        Kind::Succeed | Kind::Fail { .. } => Ok(None),
        _ => match (fields.text("Next")?, fields.flag("End")?) {
            (Some(next), false) => Ok(Some(next.to_owned())),
            (None, true) => Ok(None),
            (None, false) => invalid(&fields.path, "These fields are required: [Next or End]"),
            (Some(_), true) => invalid(
                &fields.path,
                "These fields cannot be present together: [Next, End]",
            ),
        },
    }
}
