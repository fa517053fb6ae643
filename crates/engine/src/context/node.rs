//! Names of steps and step groups, absolute and as seen from a node.

use serde_json::Value as Json;
use slipway_expr::{SecretRef, Value};
use slipway_model::duration;
use slipway_model::id::{EntityId, NodeId};
use slipway_plan::{CHAINED, Iteration, Node, ParallelPlan, StagePlan, is_of_turn};

use super::standing::Counted;
use super::{Found, RunContext, json, status_name, text, value, variable};
use crate::execution_input::{filled, given as given_to};
use crate::lane::{children, node_id, undoing};

impl RunContext<'_> {
    pub(super) fn execution(&self, stage: &StagePlan, path: &[&str]) -> Option<Found> {
        match path {
            ["steps", id, rest @ ..] => self.in_node(find(&stage.steps, id)?, rest),
            ["rollbackSteps", id, rest @ ..] => {
                self.in_node(find(&stage.rollback_steps, id)?, rest)
            }
            _ => None,
        }
    }

    /// An output of the pipeline that a stage ran (`pipeline.stages.X.output.NAME`; developer.harness.io, *Output
    /// variables with chained pipeline*).
    pub(super) fn child_output(&self, stage: &StagePlan, name: &[&str]) -> Option<Found> {
        let step = stage.steps.iter().find_map(|node| match node {
            Node::Step(step) if step.step_type == CHAINED => Some(step),
            _ => None,
        })?;
        let outputs = self.nodes.get(&step.id)?.outputs.get("outputs")?;
        // A name may hold dots.
        match outputs.get(name.join(".")) {
            Some(found) => value(Value::from_marked_json(found)),
            None => descend(outputs, name),
        }
    }

    /// `approval.approvalActivities`: what people said to the approvals of the run so far, in the order in which they said
    /// it (developer.harness.io, *Approval expressions*).
    pub(super) fn approvals(&self, path: &[&str]) -> Option<Found> {
        let ["approvalActivities"] = path else {
            return None;
        };
        let given = self.nodes.values().filter_map(|node| {
            let said = node.outputs.get("output")?.get("approvalActivities")?;
            said.as_array()
        });
        let mut given: Vec<&Json> = given.flatten().collect();
        given.sort_by_key(|said| said.get("approvedAt").and_then(Json::as_i64));
        let list: Vec<Value> = given.into_iter().map(Value::from_marked_json).collect();
        (!list.is_empty()).then_some(Found::Value(Value::List(list)))
    }

    /// `steps.X` finds the nearest step of that name from where the expression stands outwards;
    /// `stepGroup` is the group around it and `step` itself.
    pub(super) fn nearby(&self, first: &str, rest: &[&str]) -> Option<Found> {
        let stage = self.stage?;
        let around = self.around(stage);
        match first {
            "steps" => {
                let (id, rest) = rest.split_first()?;
                let mut lists: Vec<&[Node]> = vec![&stage.steps, &stage.rollback_steps];
                for node in &around {
                    lists.extend([undoing(node), children(node)]);
                }
                let found = lists.iter().rev().find_map(|nodes| find(nodes, id))?;
                self.in_node(found, rest)
            }
            "stepGroup" => {
                let group = around
                    .iter()
                    .rev()
                    .find(|node| matches!(node, Node::Group(_)))?;
                self.in_node(group, rest)
            }
            _ => self.in_node(
                around.last().filter(|node| matches!(node, Node::Step(_)))?,
                rest,
            ),
        }
    }

    /// The nodes from the stage's own list down to the one where the expression stands.
    pub(super) fn around<'p>(&self, stage: &'p StagePlan) -> Vec<&'p Node> {
        let mut way = Vec::new();
        if let Some(id) = self.node {
            let _ =
                way_to(&stage.steps, id, &mut way) || way_to(&stage.rollback_steps, id, &mut way);
        }
        way
    }

    fn in_node(&self, node: &Node, path: &[&str]) -> Option<Found> {
        let record = self.nodes.get(node_id(node));
        match (node, path) {
            (_, ["status"]) => text(status_name(record?.status)),
            (_, [word @ ("currentStatus" | "liveStatus")]) => {
                text(status_name(self.node_standing(node, Counted::of(word)?)?))
            }
            (_, ["identifierPostFix"]) => {
                value(turn_of(node).map_or(String::new(), Iteration::postfix))
            }
            (_, path) if is_of_turn(path) => value(Value::from_json(&turn_of(node)?.told(path)?)),
            (_, ["startTs"]) => value(record?.started_ms),
            (_, ["endTs"]) => value(record?.ended_ms?),
            (Node::Step(_), ["retryCount"]) => value(i64::from(record?.attempt)),
            (Node::Step(step), ["identifier"]) => text(step.identifier.as_str()),
            (Node::Step(step), ["name"]) => text(&step.name),
            (Node::Step(step), ["type"]) => text(&step.step_type),
            (Node::Step(step), ["timeout"]) => text(&duration::shown(step.timeout)),
            (Node::Step(step), ["delegateSelectors"]) => {
                value(Value::from_json(&step.delegate_selectors.clone().into()))
            }
            (Node::Step(_), ["executionUrl"]) => value(self.link(self.stage)?),
            (Node::Step(step), ["spec", rest @ ..]) => {
                let resolved = record.map(|record| &record.spec);
                let resolved = resolved.filter(|spec| !spec.is_null());
                // While a step's own spec is being resolved, only the plan has it, and the run what was given for it.
                let given = record.filter(|_| resolved.is_none());
                let given = given.and_then(|record| given_to(self.run, &step.id, record.attempt));
                let filled = given.map(|given| filled(&step.spec, &given));
                let written = filled.as_ref().unwrap_or(&step.spec);
                let named = listed(resolved.unwrap_or(written), rest, resolved.is_some());
                named.or_else(|| match resolved {
                    Some(spec) => descend(spec, rest),
                    None => json(written, rest),
                })
            }
            (Node::Step(_), rest) => descend(&record?.outputs, rest),
            (Node::Group(group), ["identifier"]) => text(group.identifier.as_str()),
            (Node::Group(group), ["name"]) => text(&group.name),
            (Node::Group(group), ["variables", name @ ..]) => variable(&group.variables, name),
            (Node::Group(group), ["steps", id, rest @ ..]) => {
                self.in_node(find(&group.nodes, id)?, rest)
            }
            (Node::Group(group), ["rollbackSteps", id, rest @ ..]) => {
                self.in_node(find(&group.rollback_steps, id)?, rest)
            }
            (Node::Group(_) | Node::Parallel(_), _) => None,
        }
    }
}

/// The value of a variable or a header of a step, by its name, which may hold dots: expressions say
/// `spec.inputVariables.NAME` and `spec.headers["NAME"]`, where YAML has a list.
fn listed(spec: &Json, path: &[&str], resolved: bool) -> Option<Found> {
    let (field, name) = path.split_first().filter(|(_, name)| !name.is_empty())?;
    let key = match *field {
        "environmentVariables" | "inputVariables" => "name",
        "headers" => "key",
        _ => return None,
    };
    let (list, name) = (spec.get(field)?.as_array()?, name.join("."));
    let is = |one: &&Json| one.get(key).and_then(Json::as_str) == Some(&name);
    let variable = list.iter().find(is)?;
    let found = variable.get("value")?;
    let reference = found.as_str().filter(|text| {
        variable.get("type").and_then(Json::as_str) == Some("Secret") && !text.contains("<+")
    });
    match reference.and_then(|text| SecretRef::new(text).ok()) {
        Some(secret) => value(secret),
        None if resolved => descend(found, &[]),
        None => json(found, &[]),
    }
}

/// Which turn of a loop a node is.
pub(super) fn turn_of(node: &Node) -> Option<&Iteration> {
    match node {
        Node::Step(step) => step.iteration.as_ref(),
        Node::Group(group) => group.iteration.as_ref(),
        Node::Parallel(_) => None,
    }
}

/// Whether a node is the block of the turns of a loop.
pub(super) fn is_loop(node: &Node) -> bool {
    matches!(node, Node::Parallel(block) if turns_are_of(block).is_some())
}

/// The element whose turns the branches of a block are.
fn turns_are_of(block: &ParallelPlan) -> Option<&str> {
    let known = block.branches.first().and_then(turn_of);
    let of = known.map(|turn| &turn.of);
    let of = of.or(block.each.as_ref().map(|each| &each.of));
    of.map(EntityId::as_str)
}

/// Data that the run wrote, in the encoding of `slipway_expr::secret`.
fn descend(document: &Json, path: &[&str]) -> Option<Found> {
    let found = path
        .iter()
        .try_fold(document, |value, key| value.get(key))?;
    if found.is_null() && path.is_empty() {
        return None;
    }
    value(Value::from_marked_json(found))
}

/// The node of this identifier among `nodes`; those in parallel blocks stand beside the others. The identifier of an
/// element that loops is that of the block of its turns.
fn find<'p>(nodes: &'p [Node], id: &str) -> Option<&'p Node> {
    nodes.iter().find_map(|node| match node {
        Node::Step(step) => (step.identifier.as_str() == id).then_some(node),
        Node::Group(group) => (group.identifier.as_str() == id).then_some(node),
        Node::Parallel(parallel) => match turns_are_of(parallel).is_some_and(|of| of == id) {
            true => Some(node),
            false => find(&parallel.branches, id),
        },
    })
}

fn way_to<'p>(nodes: &'p [Node], id: &NodeId, way: &mut Vec<&'p Node>) -> bool {
    for node in nodes {
        way.push(node);
        if node_id(node) == id || way_to(children(node), id, way) || way_to(undoing(node), id, way)
        {
            return true;
        }
        way.pop();
    }
    false
}
