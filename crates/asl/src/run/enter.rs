//! Entering, running and leaving states.

use serde_json::{Map, Value};

use super::scope::{Extra, members};
use super::{Failure, Run, World, state_events, state_of};
use crate::definition::{ChoiceRule, Condition, Kind, State};
use crate::history::{EventType, details};
use crate::record::{Phase, Status};
use crate::run::scope::in_state;

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
        if let Some(trial) = &self.trial {
            branch.retries.resize(state.retry.len(), trial.retries);
        }
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
            Kind::Pass { result, parameters } => {
                let result = self.pass(id, state, result.as_ref(), parameters.as_ref())?;
                self.finish_state(id, result)
            }
            Kind::Succeed => self.finish_state(id, None),
            Kind::Task(task) => self.run_task(id, state, task, world),
            Kind::Choice(rules) => self.choose(id, state, rules),
            Kind::Wait(wait) => self.start_wait(id, state, wait),
            Kind::Fail { error, cause } => {
                let error = self.text(id, error.as_ref(), "Error")?;
                let cause = self.text(id, cause.as_ref(), "Cause")?;
                Err(Failure::named(error, cause))
            }
            Kind::Parallel {
                arguments,
                branches,
            } => self.start_parallel(id, state, arguments.as_ref(), branches),
            Kind::Map(map) => self.start_map(id, state, map),
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
        let effective = self.seen(id, state)?;
        for rule in rules {
            if self.applies(id, &rule.condition, &effective)? {
                return self.take_rule(id, state, rule, &effective);
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

    fn applies(&self, id: u32, condition: &Condition, root: &Value) -> Result<bool, Failure> {
        match condition {
            Condition::Test(test) => self.test(id, test, root),
            Condition::Expression(template) => {
                match self.evaluate(id, Some(template), "Condition", Extra::default())? {
                    Some(Value::Bool(holds)) => Ok(holds),
                    other => {
                        let other = other.unwrap_or_default();
                        Err(self.wrong_type(id, template, "Condition", "boolean", &other))
                    }
                }
            }
        }
    }

    fn take_rule(
        &mut self,
        id: u32,
        state: &State,
        rule: &ChoiceRule,
        effective: &Value,
    ) -> Result<(), Failure> {
        let extra = Extra::of(effective);
        let output = self.evaluate(id, rule.output.as_ref(), "Output", extra)?;
        let assigned = self.evaluate(id, rule.assign.as_ref(), "Assign", extra)?;
        let output = match output {
            Some(output) => output,
            None => self.output_path(id, state, effective.clone())?,
        };
        let exited = Some(EventType::ChoiceStateExited);
        self.exit(id, exited, output, assigned, Some(&rule.next));
        Ok(())
    }

    pub(super) fn input_of(&self, id: u32) -> Value {
        self.branches
            .get(&id)
            .map_or(Value::Null, |branch| branch.input.clone())
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
        let (output, assigned) = if let Some(paths) = &state.paths {
            self.leave_by_paths(id, state, paths, result)?
        } else {
            let extra = Extra::after(result.as_ref());
            let output = self.evaluate(id, state.output.as_ref(), "Output", extra)?;
            let assigned = self.evaluate(id, state.assign.as_ref(), "Assign", extra)?;
            let output = output.or(result).unwrap_or_else(|| self.input_of(id));
            (output, assigned)
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
        self.forget_aside(id);
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
        if let Some(trial) = &mut self.trial {
            trial.leave(output, next, &branch.variables);
            return self.close(Status::Succeeded);
        }
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
