//! How data flows through states in JSONPath: what they see, and what becomes of their results.
//!
//! `InputPath`, then `Parameters`, the work, `ResultSelector`, `ResultPath` and `OutputPath`: Developer
//! Guide, "Processing input and output". In JSONata states the same calls change nothing.

use serde_json::{Map, Value};

use super::scope::{Extra, in_state};
use super::{Failure, Run};
use crate::choice::Test;
use crate::definition::{Kind, PathField, Paths, ResultPath, State};
use crate::template::Template;

impl Run {
    /// The state's input after `InputPath`, kept for `inspectionData`.
    pub(super) fn seen(&mut self, id: u32, state: &State) -> Result<Value, Failure> {
        let effective = self.effective(id, state)?;
        if state.paths.is_some() {
            self.note("afterInputPath", &effective);
        }
        Ok(effective)
    }

    /// The state's input after `InputPath`.
    pub(super) fn effective(&self, id: u32, state: &State) -> Result<Value, Failure> {
        let input = self.input_of(id);
        let Some(paths) = &state.paths else {
            return Ok(input);
        };
        self.path_field(id, &paths.input, "InputPath", input)
    }

    /// The value after `OutputPath`.
    pub(super) fn output_path(
        &self,
        id: u32,
        state: &State,
        value: Value,
    ) -> Result<Value, Failure> {
        match &state.paths {
            None => Ok(value),
            Some(paths) => self.path_field(id, &paths.output, "OutputPath", value),
        }
    }

    fn path_field(
        &self,
        id: u32,
        field: &PathField,
        name: &str,
        value: Value,
    ) -> Result<Value, Failure> {
        match field {
            PathField::Whole => Ok(value),
            PathField::Nothing => Ok(Value::Object(Map::new())),
            PathField::Query(query) => self.query(id, query, name, &value),
        }
    }

    /// `Arguments` or `Parameters`; the effective input without them.
    pub(super) fn arguments(
        &mut self,
        id: u32,
        state: &State,
        template: Option<&Template>,
        extra: Extra<'_>,
    ) -> Result<Value, Failure> {
        let effective = self.effective(id, state)?;
        let jsonpath = state.paths.is_some();
        if jsonpath && !matches!(state.kind, Kind::Parallel { .. }) {
            self.note("afterInputPath", &effective);
        }
        let extra = Extra {
            root: Some(&effective),
            ..extra
        };
        let arguments = self.evaluate(id, template, "Arguments", extra)?;
        let arguments = arguments.unwrap_or(effective);
        let note = if jsonpath {
            "afterParameters"
        } else {
            "afterArguments"
        };
        if !matches!(state.kind, Kind::Parallel { .. }) {
            self.note(note, &arguments);
        }
        Ok(arguments)
    }

    /// The result of a `Pass`; none in JSONata, where `Output` says everything.
    pub(super) fn pass(
        &mut self,
        id: u32,
        state: &State,
        result: Option<&Value>,
        parameters: Option<&Template>,
    ) -> Result<Option<Value>, Failure> {
        if state.paths.is_none() {
            return Ok(None);
        }
        if let Some(result) = result {
            self.note("result", result);
            return Ok(Some(result.clone()));
        }
        self.arguments(id, state, parameters, Extra::default())
            .map(Some)
    }

    /// Output and variables of a JSONPath state that has done its work.
    pub(super) fn leave_by_paths(
        &mut self,
        id: u32,
        state: &State,
        paths: &Paths,
        result: Option<Value>,
    ) -> Result<(Value, Option<Value>), Failure> {
        let Some(result) = result else {
            let effective = self.seen(id, state)?;
            let assigned =
                self.evaluate(id, state.assign.as_ref(), "Assign", Extra::of(&effective))?;
            return Ok((self.output_path(id, state, effective)?, assigned));
        };
        let selected = self.evaluate(
            id,
            paths.selector.as_ref(),
            "ResultSelector",
            Extra::of(&result),
        )?;
        let selected = selected.unwrap_or(result);
        self.note("afterResultSelector", &selected);
        let assigned = self.evaluate(id, state.assign.as_ref(), "Assign", Extra::of(&selected))?;
        let merged = self.merge(id, &paths.result, selected)?;
        self.note("afterResultPath", &merged);
        Ok((self.output_path(id, state, merged)?, assigned))
    }

    /// The state's input with `result` in the place that `ResultPath` names.
    pub(super) fn merge(
        &self,
        id: u32,
        path: &ResultPath,
        result: Value,
    ) -> Result<Value, Failure> {
        let input = self.input_of(id);
        path.merge(input, result).ok_or_else(|| {
            let message = "Unable to apply ReferencePath to the input: the path leads through a value that is neither an object nor an array";
            let cause = self
                .branches
                .get(&id)
                .map_or_else(String::new, |branch| in_state(branch, message));
            Failure::new("States.ResultPathMatchFailure", cause)
        })
    }

    /// Whether a choice rule's condition holds for `root`.
    pub(super) fn test(&self, id: u32, test: &Test, root: &Value) -> Result<bool, Failure> {
        let Some(branch) = self.branches.get(&id) else {
            return Ok(false);
        };
        self.with_bindings(branch, Extra::of(root), |bindings| test.holds(bindings))
            .map_err(|error| self.failed_query(id, error))
    }
}
