//! Entering, running and leaving states.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::scope::{Extra, members};
use super::{Failure, Run, World, state_events, state_of};
use crate::definition::{ChoiceRule, Kind, State, WaitFor};
use crate::history::{EventType, details};
use crate::jsonata::QueryError;
use crate::record::{Phase, Status};
use crate::run::scope::in_state;

/// Longest `Wait`, in seconds (Developer Guide, "Wait workflow state").
const LONGEST_WAIT: f64 = 99_999_999.0;

impl Run {
    /// Takes the next step of a branch that is ready.
    pub(super) fn move_branch(&mut self, id: u32, world: &dyn World) {
        let definition = self.definition();
        let Some((branch, state)) = self
            .branches
            .get(&id)
            .and_then(|branch| Some((branch, state_of(&definition, branch)?)))
        else {
            let failure = Failure::runtime("The state is not in the definition.");
            return self.fail_execution(0, &failure);
        };
        match branch.phase {
            Phase::Enter => self.enter_state(id, state),
            Phase::Run => {}
            _ => return,
        }
        if let Err(failure) = self.run_state(id, state, world) {
            self.fail_state(id, failure);
        }
    }

    fn enter_state(&mut self, id: u32, state: &State) {
        let now_ms = self.now.as_millisecond();
        let Some(branch) = self.branches.get_mut(&id) else {
            return;
        };
        branch.before = branch.previous;
        branch.entered_ms = now_ms;
        branch.retries.clear();
        branch.phase = Phase::Run;
        let entered = details([
            ("name", Some(branch.state.clone().into())),
            ("input", Some(branch.input.clone())),
        ]);
        let event = self.branch_event(id, state_events(&state.kind).0, entered);
        if let Some(branch) = self.branches.get_mut(&id) {
            branch.entered = event;
        }
        self.step.transitions += 1;
    }

    fn run_state(&mut self, id: u32, state: &State, world: &dyn World) -> Result<(), Failure> {
        match &state.kind {
            Kind::Pass | Kind::Succeed => self.finish_state(id, None),
            Kind::Task(task) => self.run_task(id, task, world),
            Kind::Choice(rules) => self.choose(id, state, rules),
            Kind::Wait(wait) => self.start_wait(id, wait),
            Kind::Fail { error, cause } => {
                let error = self.text(id, error.as_ref(), "Error")?;
                let cause = self.text(id, cause.as_ref(), "Cause")?;
                Err(Failure::named(error, cause))
            }
            Kind::Parallel {
                arguments,
                branches,
            } => self.start_parallel(id, arguments.as_ref(), branches),
            Kind::Map(map) => self.start_map(id, map),
        }
    }

    fn text(
        &self,
        id: u32,
        template: Option<&crate::template::Template>,
        field: &str,
    ) -> Result<Option<String>, Failure> {
        let Some(template) = template else {
            return Ok(None);
        };
        match self.evaluate(id, Some(template), field, Extra::default())? {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong_type(id, template, field, "string", &other)),
        }
    }

    fn choose(&mut self, id: u32, state: &State, rules: &[ChoiceRule]) -> Result<(), Failure> {
        for rule in rules {
            let value = self.evaluate(id, Some(&rule.condition), "Condition", Extra::default())?;
            match value {
                Some(Value::Bool(true)) => return self.take_rule(id, rule),
                Some(Value::Bool(false)) => {}
                other => {
                    let other = other.unwrap_or_default();
                    return Err(self.wrong_type(
                        id,
                        &rule.condition,
                        "Condition",
                        "boolean",
                        &other,
                    ));
                }
            }
        }
        if state.next.is_some() {
            return self.finish_state(id, None);
        }
        let cause = self.branches.get(&id).map_or_else(String::new, |branch| {
            in_state(
                branch,
                "Failed to transition out of the state. The state does not point to a next state.",
            )
        });
        Err(Failure::new("States.NoChoiceMatched", cause))
    }

    fn take_rule(&mut self, id: u32, rule: &ChoiceRule) -> Result<(), Failure> {
        let output = self.evaluate(id, rule.output.as_ref(), "Output", Extra::default())?;
        let assigned = self.evaluate(id, rule.assign.as_ref(), "Assign", Extra::default())?;
        let output = output.unwrap_or_else(|| self.input_of(id));
        let exited = Some(EventType::ChoiceStateExited);
        self.exit(id, exited, output, assigned, Some(&rule.next));
        Ok(())
    }

    fn input_of(&self, id: u32) -> Value {
        self.branches
            .get(&id)
            .map_or(Value::Null, |branch| branch.input.clone())
    }

    fn start_wait(&mut self, id: u32, wait: &WaitFor) -> Result<(), Failure> {
        let until = match wait {
            WaitFor::Seconds(template) => {
                let value = self.evaluate(id, Some(template), "Seconds", Extra::default())?;
                let value = value.unwrap_or_default();
                let Some(seconds) = value.as_f64() else {
                    return Err(self.wrong_type(id, template, "Seconds", "number", &value));
                };
                self.wait_end(id, seconds)?
            }
            WaitFor::Timestamp(template) => {
                let value = self.evaluate(id, Some(template), "Timestamp", Extra::default())?;
                let value = value.unwrap_or_default();
                let Some(text) = value.as_str() else {
                    return Err(self.wrong_type(id, template, "Timestamp", "string", &value));
                };
                let Some(at) = extended_offset(text) else {
                    return Err(self.failed_query(
                        id,
                        QueryError {
                            message: format!(
                                "The Timestamp field cannot be parsed as an ISO-8601 extended offset date-time format string: {text}"
                            ),
                            location: Some("Timestamp".to_owned()),
                        },
                    ));
                };
                at.as_millisecond()
            }
        };
        self.set_phase(id, Phase::Wait { until_ms: until });
        if until <= self.now.as_millisecond() {
            self.finish_wait(id);
        }
        Ok(())
    }

    fn wait_end(&self, id: u32, seconds: f64) -> Result<i64, Failure> {
        if seconds.fract() != 0.0 || !(0.0..=LONGEST_WAIT).contains(&seconds) {
            return Err(self.failed_query(
                id,
                QueryError {
                    message: format!(
                        "The Seconds field must be a whole number from 0 to 99999999, but was: {seconds}"
                    ),
                    location: Some("Seconds".to_owned()),
                },
            ));
        }
        #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
        let seconds = seconds as i64;
        Ok(self.now.as_millisecond() + seconds * 1000)
    }

    /// Ends a `Wait` whose time has come.
    pub(super) fn finish_wait(&mut self, id: u32) {
        self.set_phase(id, Phase::Run);
        if let Err(failure) = self.finish_state(id, None) {
            self.fail_state(id, failure);
        }
    }

    /// Leaves a state that succeeded. `result` is `$states.result`; without one the input goes on.
    pub(super) fn finish_state(&mut self, id: u32, result: Option<Value>) -> Result<(), Failure> {
        let definition = self.definition();
        let Some(state) = self
            .branches
            .get(&id)
            .and_then(|branch| state_of(&definition, branch))
        else {
            return Ok(());
        };
        let output = self.evaluate_result(id, state.output.as_ref(), "Output", result.as_ref())?;
        let assigned =
            self.evaluate_result(id, state.assign.as_ref(), "Assign", result.as_ref())?;
        let output = match (output, result) {
            (Some(output), _) => output,
            (None, Some(result)) => result,
            (None, None) => self.input_of(id),
        };
        let exited = state_events(&state.kind).1;
        self.exit(id, exited, output, assigned, state.next.as_deref());
        Ok(())
    }

    /// Records the exit, keeps the variables, and goes on.
    pub(super) fn exit(
        &mut self,
        id: u32,
        exited: Option<EventType>,
        output: Value,
        assigned: Option<Value>,
        next: Option<&str>,
    ) {
        let assigned = members(assigned);
        if let Some(kind) = exited {
            let name = self.branches.get(&id).map(|b| b.state.clone().into());
            let left = details([
                ("name", name),
                ("output", Some(output.clone())),
                ("assignedVariables", assigned.clone().map(sorted)),
            ]);
            self.branch_event(id, kind, left);
        }
        let Some(branch) = self.branches.get_mut(&id) else {
            return;
        };
        branch.variables.extend(assigned.unwrap_or_default());
        self.step.dirty.insert(id);
        match next {
            Some(next) => {
                next.clone_into(&mut branch.state);
                branch.input = output;
                branch.phase = Phase::Enter;
                self.ready.push_back(id);
            }
            None => self.finish_branch(id, output),
        }
    }

    /// A branch has reached its end.
    fn finish_branch(&mut self, id: u32, output: Value) {
        let Some(branch) = self.branches.get(&id) else {
            return;
        };
        match branch.parent {
            Some((parent, _)) => self.finish_child(parent, id, output),
            None => {
                let previous = branch.previous;
                self.execution.output = Some(output.to_string());
                let done = details([("output", Some(output))]);
                self.event(EventType::ExecutionSucceeded, previous, done);
                self.close(Status::Succeeded);
            }
        }
    }
}

/// AWS shows assigned variables by name.
fn sorted(variables: Map<String, Value>) -> Value {
    let mut pairs: Vec<(String, Value)> = variables.into_iter().collect();
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    Value::Object(pairs.into_iter().collect())
}

/// A time in the form that `Timestamp` demands: date, `T`, time, and `Z` or an offset.
fn extended_offset(text: &str) -> Option<Timestamp> {
    let time = text.get(10..)?.strip_prefix('T')?;
    let has_offset = time.ends_with('Z') || time.contains('+') || time.contains('-');
    has_offset.then(|| text.parse().ok()).flatten()
}
