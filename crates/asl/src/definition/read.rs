//! Reads a definition into [`Definition`], state by state.
//!
//! Fields and defaults: <https://states-language.net>, and Developer Guide, "Amazon States Language".

use std::collections::HashMap;

use serde_json::Value;

use super::choices::choices;
use super::fields::{Fields, Result, invalid, none_of};
use super::paths::paths;
use super::retry::{catchers, retriers};
use super::task::{needs, task, wait};
use super::{Definition, DefinitionError, Kind, Machine, MachineType, Outer, State, check};

/// Deepest nesting of `Parallel` and `Map`.
const DEEPEST: usize = 64;
/// Longest time in a definition, in seconds (Developer Guide, `TimeoutSeconds`).
pub(super) const LONGEST: u64 = 99_999_999;
/// Longest name of a state.
const LONGEST_NAME: usize = 80;
/// The types of states, in the order of AWS's diagnostics.
const TYPES: [&str; 8] = [
    "Task", "Wait", "Pass", "Succeed", "Fail", "Choice", "Parallel", "Map",
];
/// Reads a definition and checks it.
pub(super) fn read(
    value: &Value,
    kind: MachineType,
    outer: Outer,
) -> std::result::Result<Definition, Vec<DefinitionError>> {
    let mut reader = Reader {
        kind,
        outer,
        machines: Vec::new(),
        errors: Vec::new(),
    };
    let read = reader.read_outer(value);
    match read {
        Ok(timeout_seconds) if reader.errors.is_empty() => Ok(Definition {
            machines: reader.machines.into_iter().flatten().collect(),
            timeout_seconds,
        }),
        read => {
            reader.errors.extend(read.err());
            Err(reader.errors)
        }
    }
}

/// Whether expressions at and below `fields` are JSONata.
pub(super) fn language(fields: &Fields<'_>, outer: bool) -> Result<bool> {
    match fields.text("QueryLanguage")? {
        None => Ok(outer),
        Some("JSONata") => Ok(true),
        Some("JSONPath") if !outer => Ok(false),
        Some("JSONPath") => invalid(
            &fields.path,
            "'QueryLanguage' can not be 'JSONPath' if set to 'JSONata' for whole state machine",
        ),
        Some(_) => none_of(&fields.at("QueryLanguage"), &["JSONPath", "JSONata"]),
    }
}

/// Where a machine or state stands.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The language that it has unless it names one.
    pub(super) jsonata: bool,
    pub(super) depth: usize,
}

impl Place {
    /// In a `Parallel` or `Map`. Its states have the language of the machine, whatever it names itself.
    pub(super) fn deeper(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }
}

pub(super) struct Reader {
    /// What the machine that is being read may contain.
    pub(super) kind: MachineType,
    outer: Outer,
    machines: Vec<Option<Machine>>,
    /// Errors of states: the other states are read all the same, so that all errors are shown at once.
    errors: Vec<DefinitionError>,
}

impl Reader {
    /// Reads the outer machine; gives its timeout.
    fn read_outer(&mut self, value: &Value) -> Result<Option<i64>> {
        let fields = Fields::of(value, "/", false)?;
        let timeout = fields.whole("TimeoutSeconds", 1..=LONGEST)?;
        if let Some(version) = fields.text("Version")?
            && version != "1.0"
        {
            return none_of(&fields.at("Version"), &["1.0"]);
        }
        let place = Place {
            jsonata: language(&fields, false)?,
            depth: 0,
        };
        self.machine(value, "/", place)?;
        Ok(timeout.and_then(|seconds| i64::try_from(seconds).ok()))
    }

    /// Reads a machine and those in it; gives its number.
    pub(super) fn machine(&mut self, value: &Value, path: &str, place: Place) -> Result<usize> {
        if place.depth > DEEPEST {
            return invalid(path, format!("States nest deeper than {DEEPEST}"));
        }
        let number = self.machines.len();
        self.machines.push(None);
        let fields = Fields::of(value, path, place.jsonata)?;
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
        let errors_before = self.errors.len();
        let mut states = HashMap::new();
        for (name, value) in object {
            let path = format!("{states_path}/{name}");
            match self.named_state(name, value, &path, place) {
                Ok(state) => {
                    states.insert(name.clone(), state);
                }
                Err(error) => self.errors.push(error),
            }
        }
        let machine = Machine {
            start_at: fields.required_text("StartAt")?.to_owned(),
            states,
        };
        // Targets are looked for among states that could be read.
        let has_targets = place.depth > 0 || self.outer != Outer::State;
        if self.errors.len() == errors_before && has_targets {
            self.errors.extend(check::machine(&machine, path));
            if path == "/" && self.errors.is_empty() && self.outer == Outer::Machine {
                self.errors.extend(check::end(&machine));
            }
        }
        self.machines[number] = Some(machine);
        Ok(number)
    }

    fn named_state(
        &mut self,
        name: &str,
        value: &Value,
        path: &str,
        place: Place,
    ) -> Result<State> {
        if name.is_empty() || name.chars().count() > LONGEST_NAME {
            return invalid(
                path,
                format!("A state's name has from 1 to {LONGEST_NAME} characters"),
            );
        }
        self.state(value, path, place)
    }

    fn state(&mut self, value: &Value, path: &str, place: Place) -> Result<State> {
        let fields = Fields::of(value, path, place.jsonata)?;
        let jsonata = language(&fields, place.jsonata)?;
        let fields = fields.in_language(jsonata);
        fields.require(&["Type"])?;
        let name = fields.required_text("Type")?;
        if !TYPES.contains(&name) {
            return invalid(
                &fields.at("Type"),
                format!(
                    "The field 'Type' should have one of these values: [{}]",
                    TYPES.join(", ")
                ),
            );
        }
        fields.refuse_other_language()?;
        fields.allow(&allowed(name, jsonata))?;
        let kind = match name {
            "Pass" => Kind::Pass {
                result: fields.get("Result").cloned(),
                parameters: fields.template("Parameters")?,
            },
            "Succeed" => Kind::Succeed,
            "Task" => {
                let task = task(&fields, self.kind)?;
                if self.outer != Outer::Stored {
                    needs(&fields, &task.resource)?;
                }
                Kind::Task(Box::new(task))
            }
            "Choice" => Kind::Choice(choices(&fields)?),
            "Wait" => Kind::Wait(wait(&fields)?),
            "Fail" => Kind::Fail {
                error: fields.message("Error")?,
                cause: fields.message("Cause")?,
            },
            "Parallel" => self.parallel(&fields, place)?,
            _ => Kind::Map(Box::new(self.map(&fields, place)?)),
        };
        Ok(State {
            next: next(&fields, &kind)?,
            assign: fields.assign()?,
            output: fields.template("Output")?,
            paths: if jsonata { None } else { Some(paths(&fields)?) },
            retry: retriers(&fields)?,
            catch: catchers(&fields)?,
            kind,
        })
    }

    fn parallel(&mut self, fields: &Fields<'_>, place: Place) -> Result<Kind> {
        fields.require(&["Branches"])?;
        let mut branches = Vec::new();
        for (i, branch) in fields.list("Branches")?.iter().enumerate() {
            let path = format!("{}[{i}]", fields.at("Branches"));
            branches.push(self.machine(branch, &path, place.deeper())?);
        }
        if branches.is_empty() {
            return invalid(&fields.at("Branches"), "Value cannot be empty");
        }
        Ok(Kind::Parallel {
            arguments: fields.template(fields.arguments())?,
            branches,
        })
    }
}

/// The fields that a type of state may have.
fn allowed(kind: &str, jsonata: bool) -> Vec<&'static str> {
    let mut names = vec!["Type", "Comment", "QueryLanguage"];
    let own: &[&str] = match kind {
        "Pass" => &["Result", "Parameters", "ResultPath"],
        "Fail" => &["Error", "ErrorPath", "Cause", "CausePath"],
        "Choice" => &["Choices", "Default"],
        "Wait" => &["Seconds", "SecondsPath", "Timestamp", "TimestampPath"],
        "Task" => &[
            "Resource",
            "TimeoutSeconds",
            "TimeoutSecondsPath",
            "HeartbeatSeconds",
            "HeartbeatSecondsPath",
            "Credentials",
        ],
        "Parallel" => &["Branches"],
        "Map" => super::map::FIELDS,
        _ => &[],
    };
    names.extend(own);
    if matches!(kind, "Task" | "Parallel" | "Map") {
        names.extend([
            "Retry",
            "Catch",
            "Arguments",
            "Parameters",
            "ResultSelector",
            "ResultPath",
        ]);
    }
    if !matches!(kind, "Fail" | "Succeed" | "Choice") {
        names.extend(["Next", "End"]);
    }
    if kind != "Fail" {
        names.extend(["Output", "InputPath", "OutputPath"]);
    }
    if !matches!(kind, "Fail" | "Succeed") {
        names.push("Assign");
    }
    if jsonata && kind == "Map" {
        names.retain(|name| *name != "Arguments");
    }
    names
}

/// `Next`, or for a `Choice` its `Default`.
fn next(fields: &Fields<'_>, kind: &Kind) -> Result<Option<String>> {
    match kind {
        Kind::Choice(_) => Ok(fields.text("Default")?.map(str::to_owned)),
        Kind::Succeed | Kind::Fail { .. } => Ok(None),
        _ => {
            let next = fields.text("Next")?;
            // `"End": false` is as good as none.
            let names: &[&str] = if fields.flag("End")? {
                &["Next", "End"]
            } else {
                &["Next"]
            };
            if next.is_none() && names.len() == 1 {
                return invalid(
                    &fields.path,
                    "This object should have only one of the following fields: [Next, End]",
                );
            }
            fields.only_one(names, false)?;
            Ok(next.map(str::to_owned))
        }
    }
}
