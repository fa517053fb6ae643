//! Names of loops: `matrix`, `repeat` and `strategy` (developer.harness.io, *Looping strategy expressions*).

use std::collections::BTreeMap;

use slipway_expr::Value;
use slipway_model::id::EntityId;
use slipway_model::status::Status;
use slipway_plan::{Iteration, Node, RunLoop, StagePlan, in_turns};

use super::node::turn_of;
use super::{Found, RunContext, status_name, text, value};
use crate::lane::{children, node_id, undoing, worst};

impl RunContext<'_> {
    /// Names of the loops around where the expression stands, the innermost first.
    pub(super) fn in_loop(&self, path: &[&str]) -> Option<Found> {
        let stage = self.stage?;
        let around = self.around(stage);
        let turns = turns_around(stage, &around);
        let status = match path {
            ["strategy", "currentStatus"] => self.nearest_loop(stage, &around),
            ["strategy", "node"] => self.all_loops(stage, &turns),
            ["strategy", "node", id, "currentStatus"] => {
                self.loop_status(stage, &EntityId::new(*id)).and_then(text)
            }
            _ => None,
        };
        status.or_else(|| value(Value::from_json(&in_turns(turns.into_iter(), path)?)))
    }

    /// A name below the identifier of a stage that loops: its turns have identifiers of their own.
    pub(super) fn in_stage_loop(&self, id: &str, path: &[&str]) -> Option<Found> {
        let stages = self.plan.groups.iter().flatten();
        let turns = stages.filter(|stage| {
            let turn = stage.iteration.as_ref();
            turn.is_some_and(|turn| turn.of.as_str() == id)
        });
        let known = |turn: &StagePlan| {
            let mut known = self.run.stages.iter();
            let found = known.find(|known| known.id == turn.id);
            found.map_or(Status::NotStarted, |known| known.status)
        };
        let statuses: Vec<Status> = turns.map(known).collect();
        let status = match statuses.as_slice() {
            [] => return None,
            all if all.iter().all(|status| *status == Status::NotStarted) => Status::NotStarted,
            all if all.iter().all(|status| status.is_final()) => worst(statuses),
            _ => Status::Running,
        };
        match path {
            ["status" | "currentStatus" | "liveStatus"] => text(status_name(status)),
            _ => None,
        }
    }

    /// The status of the loop that is the nearest: one of a step or group around; else the last one before it in the
    /// stage; else that of the stage.
    fn nearest_loop(&self, stage: &StagePlan, around: &[&Node]) -> Option<Found> {
        let own = around.iter().rev().find_map(|node| turn_of(node));
        let own = own.map(|turn| turn.of.clone());
        let before = || loops_before(stage, around).pop();
        let of_stage = || stage.iteration.as_ref().map(|turn| turn.of.clone());
        let nearest = own.or_else(before).or_else(of_stage)?;
        self.loop_status(stage, &nearest).and_then(text)
    }

    /// Every loop that can be named here, for `strategy.node` as a value; of those around, also what their turns know.
    fn all_loops(&self, stage: &StagePlan, around: &[&Iteration]) -> Option<Found> {
        let stages = self.plan.groups.iter().flatten();
        let turns = stages.filter_map(|stage| stage.iteration.as_ref());
        let mut names: Vec<EntityId> = turns.map(|turn| turn.of.clone()).collect();
        names.extend(loops_before(stage, &[]));
        names.dedup();
        let known = names.iter().filter_map(|name| {
            let status = self.loop_status(stage, name)?;
            let mut told: BTreeMap<String, Value> = WORDS
                .iter()
                .filter_map(|word| {
                    let path = ["strategy", "node", name.as_str(), word];
                    let found = in_turns(around.iter().copied(), &path)?;
                    Some(((*word).to_owned(), Value::from_json(&found)))
                })
                .collect();
            told.insert("currentStatus".to_owned(), Value::from(status));
            Some((name.to_string(), Value::Map(told.into_iter().collect())))
        });
        value(Value::Map(known.collect()))
    }

    /// How a loop stands: `RUNNING` until its turns have ended, then `SUCCESS` or `FAILED`.
    fn loop_status(&self, stage: &StagePlan, of: &EntityId) -> Option<&'static str> {
        let is_turn = |turn: Option<&Iteration>| turn.is_some_and(|turn| turn.of == *of);
        // A loop that had no turns, or could not be taken apart, is still one element.
        let is_whole = |each: Option<&RunLoop>| each.is_some_and(|each| each.of == *of);
        let stages = self.plan.groups.iter().flatten();
        let mut statuses: Vec<Option<Status>> = stages
            .filter(|stage| is_turn(stage.iteration.as_ref()) || is_whole(stage.each.as_ref()))
            .map(|turn| {
                let mut known = self.run.stages.iter();
                known.find(|known| known.id == turn.id).map(|s| s.status)
            })
            .collect();
        let mut work: Vec<&Node> = stage.steps.iter().chain(&stage.rollback_steps).collect();
        while let Some(node) = work.pop() {
            let whole = match node {
                Node::Parallel(block) => is_whole(block.each.as_ref()),
                Node::Step(_) | Node::Group(_) => false,
            };
            if is_turn(turn_of(node)) || whole {
                statuses.push(self.nodes.get(node_id(node)).map(|record| record.status));
            }
            work.extend(children(node).iter().chain(undoing(node)));
        }
        let ended = |status: &Option<Status>| status.is_some_and(Status::is_final);
        let good = |status: &Option<Status>| status.is_some_and(Status::is_good);
        match statuses.as_slice() {
            [] => None,
            all if !all.iter().all(ended) => Some("RUNNING"),
            all if all.iter().all(good) => Some("SUCCESS"),
            _ => Some("FAILED"),
        }
    }
}

/// The words of a turn that are values of their own.
const WORDS: [&str; 6] = [
    "iteration",
    "iterations",
    "totalIterations",
    "identifierPostFix",
    "matrix",
    "repeat",
];

/// The turns around a place of a stage, the outermost first.
fn turns_around<'p>(stage: &'p StagePlan, around: &[&'p Node]) -> Vec<&'p Iteration> {
    let below = around.iter().filter_map(|node| turn_of(node));
    stage.iteration.iter().chain(below).collect()
}

/// The loops of steps and step groups of a stage, in order; those that begin before the way `until`, where it leads
/// anywhere.
fn loops_before(stage: &StagePlan, until: &[&Node]) -> Vec<EntityId> {
    fn search(nodes: &[Node], until: &[&Node], found: &mut Vec<EntityId>) -> bool {
        for node in nodes {
            if until
                .last()
                .is_some_and(|last| node_id(last) == node_id(node))
            {
                return true;
            }
            if let Some(turn) = turn_of(node)
                && !found.contains(&turn.of)
            {
                found.push(turn.of.clone());
            }
            if let Node::Parallel(block) = node
                && let Some(each) = &block.each
                && !found.contains(&each.of)
            {
                found.push(each.of.clone());
            }
            if search(children(node), until, found) || search(undoing(node), until, found) {
                return true;
            }
        }
        false
    }
    let mut found = Vec::new();
    let _ =
        search(&stage.steps, until, &mut found) || search(&stage.rollback_steps, until, &mut found);
    found
}
