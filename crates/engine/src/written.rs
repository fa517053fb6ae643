//! Faults of a pipeline or a template as it is written, before anybody runs it.
//!
//! A run is refused for them, or would fail in the middle. `slipway validate` tells them, and whoever saves the
//! pipeline is warned: Harness keeps a draft that cannot run yet. The rules are those of a run, asked early: the planner's
//! ([`slipway_plan::draft`]), the engine's for failure strategies, and each step's own for its `spec`. Where an expression
//! or a runtime input may still put something right, nothing is said. Names in expressions that nothing can have are
//! warnings ([`variables`]).

mod variables;

use std::collections::HashSet;

use slipway_model::id::Scope;
use slipway_model::{Code, Diagnostic, Diagnostics, Kind, Parsed, Ref, schema};
use slipway_plan::{Entities, Found, Reference, Request, draft};

use crate::check::action_fault;
use crate::start::StepTypes;

/// The faults that show in an entity, and as warnings what this version does not do yet; none for kinds that say nothing
/// of a run. `entities` are those that are at hand; `scope` is where it lives.
pub fn faults(
    entity: &Parsed,
    scope: &Scope,
    entities: &dyn Entities,
    steps: &StepTypes,
) -> Vec<Diagnostic> {
    let mut walk = Walk {
        scope,
        entities,
        steps,
        undoing: false,
        out: Diagnostics::default(),
    };
    match entity.head.kind {
        Kind::Pipeline => {
            walk.out.extend(draft(&Request {
                pipeline: entity,
                inputs: &[],
                scope,
                entities,
                runnable: &steps.runnable,
                chosen: None,
                trigger: None,
            }));
            walk.below(entity.body());
        }
        Kind::Template => {
            let kind = entity.head.entity_type.as_deref();
            match (entity.body().get("spec"), kind) {
                (Some(body), Some("Pipeline")) => walk.below(body),
                (Some(body), Some("Stage")) => walk.element(body, "stage"),
                (Some(body), Some("StepGroup")) => walk.element(body, "stepGroup"),
                (Some(body), Some("Step")) => walk.element(body, "step"),
                _ => {}
            }
        }
        _ => {}
    }
    let mut found = walk.out.into_vec();
    let undeclared = variables::undeclared(entity, &found);
    found.extend(undeclared);
    found
}

/// Keys of lists that hold stages or steps.
const LISTS: &[&str] = &["stages", "steps", "rollbackSteps"];

struct Walk<'s> {
    scope: &'s Scope,
    entities: &'s dyn Entities,
    steps: &'s StepTypes,
    /// Whether it is among rollback steps.
    undoing: bool,
    out: Diagnostics,
}

impl Walk<'_> {
    fn fault(&mut self, at: Ref<'_>, message: &str) {
        self.out
            .push_with(|| Diagnostic::at(Code::BadValue, at, message));
    }

    fn list(&mut self, list: Ref<'_>) {
        for item in list.items() {
            for kind in ["stage", "step", "stepGroup", "insert"] {
                if let Some(element) = item.get(kind) {
                    self.element(element, kind);
                }
            }
            if let Some(branches) = item.get("parallel") {
                self.list(branches);
            }
        }
    }

    /// What is in a pipeline, a stage, a step group or an insert.
    fn below(&mut self, holder: Ref<'_>) {
        let inner = [
            Some(holder),
            holder.at(&["spec", "execution"]),
            holder.at(&["spec", "environment", "provisioner"]),
        ];
        for holder in inner.into_iter().flatten() {
            for key in LISTS {
                let Some(list) = holder.get(key) else {
                    continue;
                };
                let around = self.undoing;
                self.undoing |= *key == "rollbackSteps";
                self.list(list);
                self.undoing = around;
            }
        }
    }

    fn element(&mut self, element: Ref<'_>, kind: &str) {
        let strategies = element.get("failureStrategies").into_iter();
        for strategy in strategies.flat_map(Ref::items) {
            if let Some(action) = strategy.at(&["onFailure", "action"]) {
                self.action(action, kind == "stepGroup");
                self.rolls_back(action);
            }
        }
        if let Some(strategy) = element.get("strategy") {
            self.turns(strategy);
        }
        match kind {
            "step" => self.step(element),
            _ => self.below(element),
        }
    }

    /// Warns of a loop that runs its element no time at all.
    fn turns(&mut self, strategy: Ref<'_>) {
        let counts = [&["parallelism"][..], &["repeat", "times"]];
        for count in counts.iter().filter_map(|path| strategy.at(path)) {
            if count.text().map(str::trim) == Some("0") {
                self.out.warn_with(|| {
                    let message = "a loop of 0 turns: what loops is skipped";
                    Diagnostic::at(Code::BadValue, count, message)
                });
            }
        }
    }

    /// The action of a failure strategy.
    fn action(&mut self, action: Ref<'_>, of_group: bool) {
        let Some(kind) = action.get("type").filter(|kind| !kind.is_expression()) else {
            return;
        };
        let spec = action.get("spec");
        let json = spec.map_or(serde_json::Value::Null, Ref::to_json);
        let Some(message) = kind
            .text()
            .and_then(|kind| action_fault(kind, &json, of_group))
        else {
            return;
        };
        // The message begins with the field that it is about.
        let named = message.split('`').nth(1);
        let at = spec.and_then(|spec| spec.get(named?)).unwrap_or(action);
        if !is_open(at) {
            self.fault(at, &message);
        }
    }

    /// Warns of an action of a rollback step that rolls back: a rollback is not rolled back.
    fn rolls_back(&mut self, action: Ref<'_>) {
        if !self.undoing {
            return;
        }
        let later = ["onRetryFailure", "onTimeout"]
            .iter()
            .filter_map(|field| action.at(&["spec", field, "action"]));
        for action in std::iter::once(action).chain(later) {
            let Some(kind @ ("StageRollback" | "PipelineRollback")) = action.get_text("type")
            else {
                continue;
            };
            self.out.warn_with(|| {
                let message = format!(
                    "a rollback is not rolled back: `{kind}` of a rollback step leaves the steps after it out, and rolls \
                     nothing else back; `Ignore` goes on with them"
                );
                Diagnostic::at(Code::BadValue, action, message)
            });
        }
    }

    /// The `spec` of a step, by the step's own rules.
    fn step(&mut self, step: Ref<'_>) {
        let Some(kind) = step.get("type").filter(|kind| !kind.is_expression()) else {
            return;
        };
        let spec = step.get("spec").unwrap_or(step);
        let json = schema::step_spec(step);
        let found = kind.text().map(|kind| (self.steps.faults)(kind, &json));
        for message in found.into_iter().flatten() {
            let (at, message) = place(spec, &message);
            if !is_open(at) {
                self.fault(at, message);
            }
        }
        if let Some(approvers) = spec.get("approvers") {
            self.approvers(approvers);
        }
    }

    /// Tells of an approval that asks for more people than its groups have, where all of them are at hand.
    fn approvers(&mut self, approvers: Ref<'_>) {
        let Some(count) = approvers.get("minimumCount") else {
            return;
        };
        let wanted = count.text().and_then(|text| text.trim().parse().ok());
        let groups = approvers.get("userGroups");
        let groups: Vec<_> = groups.into_iter().flat_map(Ref::items).collect();
        let (Some(wanted), false) = (wanted, groups.is_empty()) else {
            return;
        };
        let members = groups.iter().map(|group| self.members(group.text()?));
        let Some(members) = members.collect::<Option<Vec<_>>>() else {
            return;
        };
        let people: HashSet<String> = members.into_iter().flatten().collect();
        let people = people.len();
        if approvers.get("serviceAccounts").is_none() && people < wanted {
            self.out.warn_with(|| {
                let message = format!(
                    "{wanted} people must approve, and the user groups have {people} members in all: nobody else may"
                );
                Diagnostic::at(Code::BadValue, count, message)
            });
        }
    }

    /// The users of a group that is at hand.
    fn members(&self, reference: &str) -> Option<Vec<String>> {
        let (scope, id) = self.scope.resolve(reference.trim());
        let reference = Reference {
            scope,
            kind: Kind::UserGroup.key(),
            parent: None,
            id,
        };
        let Some(Found::Entity(group)) = self.entities.get(&reference) else {
            return None;
        };
        let users = group.body().get("users").into_iter().flat_map(Ref::items);
        Some(users.filter_map(Ref::text).map(str::to_lowercase).collect())
    }
}

/// Whether an expression may still put a value right: it is one, or holds one as a whole value.
fn is_open(value: Ref<'_>) -> bool {
    let whole = |text: &str| text.trim_start().starts_with("<+");
    value.is_expression()
        || value
            .scalars()
            .any(|value| value.scalar().is_some_and(whole))
}

/// Where in a spec a message belongs, and what is left of it. Steps name the field first: `approvers.minimumCount: …` or
/// `` `instances` must be … ``; items of lists go by their place (`conditions[0]`) or their name.
fn place<'r, 'm>(spec: Ref<'r>, message: &'m str) -> (Ref<'r>, &'m str) {
    if let Some((path, rest)) = message.split_once(": ")
        && let Some((at, is_whole)) = walk(spec, path.trim_matches('`'))
    {
        return (at, if is_whole { rest } else { message });
    }
    let named = message.split('`').skip(1).step_by(2);
    let mut found = named.filter_map(|path| walk(spec, path));
    match found.next() {
        Some((at, _)) => (at, message),
        None => (spec, message),
    }
}

/// The value at a path, or the nearest that there is on the way, and whether it is all of the way; `None` where nothing of
/// it is there.
fn walk<'r>(spec: Ref<'r>, path: &str) -> Option<(Ref<'r>, bool)> {
    let mut found = None;
    for step in path.split('.').flat_map(|part| part.split('[')) {
        let at = found.unwrap_or(spec);
        let named = |item: &Ref<'_>| item.get_text("name") == Some(step);
        let index = step
            .strip_suffix(']')
            .and_then(|number| number.parse().ok());
        let next = match (at.is_list(), index) {
            (true, Some(index)) => at.items().nth(index),
            (true, None) => at.items().find(named),
            _ => at.get(step),
        };
        match next {
            Some(next) => found = Some(next),
            None => return found.map(|at| (at, false)),
        }
    }
    found.map(|at| (at, true))
}

#[cfg(test)]
mod tests;
