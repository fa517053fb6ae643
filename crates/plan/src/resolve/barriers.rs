//! Barriers that nobody passes: places that wait for one another and cannot be reached together.
//!
//! Harness calls that a deadlock, and refuses it when a pipeline is saved and when it starts (docs:
//! platform/pipelines/barriers, "Avoid rollback barrier cycles"; continuous-delivery/…/synchronize-deployments-using-barriers,
//! "Using Barriers with Looping strategies"). Who is left out by a condition is not waited for: where one decides, it is a
//! warning. A barrier with one place is passed at once. Stages that deploy to one place stand in line for it, and do not
//! meet either; nor do those that stand in one queue before.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;
use slipway_model::id::NodeId;
use slipway_model::{Code, Diagnostic, Ref};

use super::Resolver;
use super::queued::{Place, Queue, places};
use crate::{Iteration, Node, ParallelPlan, RunLoop, StagePlan, When, WhenStatus};

/// Where steps that wait at barriers are written: file, line and column of their `barrierRef`. All turns of a loop are
/// written in one place.
pub(super) type Written = HashMap<NodeId, (String, u32, u32)>;

impl Resolver<'_> {
    /// Tells of the barriers of a plan that cannot be passed.
    pub(super) fn check_meetings(&mut self, groups: &[Vec<StagePlan>], body: Ref<'_>) {
        let written = std::mem::take(&mut self.waiting);
        if written.is_empty() {
            return;
        }
        let mut search = Search {
            written: &written,
            conditions: 0,
            waits: BTreeMap::new(),
            found: Vec::new(),
        };
        let steps = search.stages(groups);
        search.rollback(groups, &steps);
        search.crossings();
        let mut told = HashSet::new();
        for Trouble { at, other, fault } in search.found {
            let place = written.get(at);
            if !told.insert((place, other.and_then(|other| written.get(other)))) {
                // Another turn of the same loop.
                continue;
            }
            let here = |value: &Ref<'_>| place.is_some_and(|place| *place == place_of(*value));
            let at = body.scalars().find(here).unwrap_or(body);
            match fault {
                Fault::Sure(message) => self
                    .faults
                    .push_with(|| Diagnostic::at(Code::BadValue, at, message)),
                Fault::Maybe(message) => self
                    .faults
                    .warn_with(|| Diagnostic::at(Code::BadValue, at, message)),
            }
        }
    }
}

/// File, line and column of a value.
pub(super) fn place_of(value: Ref<'_>) -> (String, u32, u32) {
    let place = value.place();
    (value.file().to_owned(), place.line, place.column)
}

/// A place of a barrier.
#[derive(Clone, Copy)]
struct Spot<'p> {
    node: &'p NodeId,
    /// Whether a condition may leave it out.
    maybe: bool,
}

/// The barriers that somebody waits at somewhere, each with the place that stands for all of them: one that no condition
/// leaves out, where there is one.
type Spots<'p> = BTreeMap<&'p str, Spot<'p>>;

fn add<'p>(known: &mut Spots<'p>, spots: &Spots<'p>) {
    for (name, spot) in spots {
        let known = known.entry(name).or_insert(*spot);
        if known.maybe && !spot.maybe {
            *known = *spot;
        }
    }
}

/// What is wrong, and where it is told.
struct Trouble<'p> {
    at: &'p NodeId,
    other: Option<&'p NodeId>,
    fault: Fault,
}

enum Fault {
    Sure(String),
    /// Unless a condition leaves a place out.
    Maybe(String),
}

/// Which barrier is passed before another one is reached, and by which steps.
type Waits<'p> = BTreeMap<(&'p str, &'p str), (Spot<'p>, &'p NodeId)>;

struct Search<'p, 'w> {
    written: &'w Written,
    /// How many conditions are around what is looked at.
    conditions: usize,
    waits: Waits<'p>,
    found: Vec<Trouble<'p>>,
}

impl<'p> Search<'p, '_> {
    fn stages(&mut self, groups: &'p [Vec<StagePlan>]) -> Spots<'p> {
        let steps = |stage: &'p StagePlan| stage.steps.as_slice();
        self.one_after_the_other(
            groups
                .iter()
                .map(|group| move |search: &mut Self| search.group(group, steps)),
        )
    }

    /// Stages side by side, with some of the nodes of each.
    fn group(
        &mut self,
        group: &'p [StagePlan],
        nodes: fn(&'p StagePlan) -> &'p [Node],
    ) -> Spots<'p> {
        let mut all = Spots::new();
        let mut alone = BTreeMap::new();
        let mut queued = Queued::new();
        for stage in group {
            let spots = self.behind(stage.when.as_ref(), |search| search.sequence(nodes(stage)));
            if let Some(each) = &stage.each {
                self.may_be_limited(each, &spots);
            }
            if let Some(turn) = &stage.iteration {
                let beside = group.iter().filter_map(|other| other.iteration.as_ref());
                let turns = beside.filter(|other| other.of == turn.of).count();
                self.limited(turn, turns, &spots);
            }
            self.in_line(stage, &spots, &mut alone);
            if !spots.is_empty() {
                self.in_queue(stage, nodes(stage), &mut queued);
            }
            add(&mut all, &spots);
        }
        all
    }

    /// A stage that deploys to where only one may at a time does not begin before the one that waits for it has ended.
    fn in_line(
        &mut self,
        stage: &'p StagePlan,
        spots: &Spots<'p>,
        known: &mut BTreeMap<([&'p str; 4], &'p str), (&'p StagePlan, Spot<'p>)>,
    ) {
        let target = stage.deploys_alone_to();
        let Some(target) = target.filter(|target| target.iter().all(|part| !part.contains("<+")))
        else {
            return;
        };
        for (name, spot) in spots {
            let (first, waits) = *known.entry((target, *name)).or_insert((stage, *spot));
            if first.id == stage.id {
                continue;
            }
            let maybe = waits.maybe || spot.maybe;
            let [service, environment, _, infrastructure] = target;
            let message = format!(
                "barrier `{name}` {}: {} waits there for {}, and stages {} and {} both deploy service `{service}` to infrastructure `{infrastructure}` of environment `{environment}`, where one deployment runs at a time; wait in one of them only, deploy to different infrastructures, or set `allowSimultaneousDeployments: true` in the infrastructure",
                cannot(maybe),
                waits.node,
                spot.node,
                first.id,
                stage.id,
            );
            self.found.push(Trouble {
                at: spot.node,
                other: Some(waits.node),
                fault: fault(maybe, message),
            });
        }
    }

    /// A stage that has a key to itself while it waits keeps out those that need the key to come to where it waits. A run
    /// that has it keeps none of its stages out.
    fn in_queue(&mut self, stage: &'p StagePlan, nodes: &'p [Node], known: &mut Queued<'p>) {
        let conditional = is_conditional(stage.when.as_ref());
        for place in places(nodes, &|node| self.written.contains_key(node)) {
            let maybe = conditional || place.maybe;
            for queue in place.queues() {
                let own = Behind {
                    stage,
                    node: place.node,
                    queue,
                    maybe: maybe || queue.maybe,
                };
                if queue.of_stage && stage.each.is_some() {
                    self.found.push(own.kept_out_by_itself(&place));
                }
                let first = *known.entry((place.barrier, queue.key)).or_insert(own);
                let excludes = first.queue.of_stage || queue.of_stage;
                if excludes && first.stage.id != stage.id {
                    self.found.push(own.kept_out_by(&first, &place));
                }
            }
        }
    }

    fn sequence(&mut self, nodes: &'p [Node]) -> Spots<'p> {
        self.one_after_the_other(
            nodes
                .iter()
                .map(|node| move |search: &mut Self| search.node(node)),
        )
    }

    fn node(&mut self, node: &'p Node) -> Spots<'p> {
        match node {
            Node::Step(step) => {
                let name = step.spec.get("barrierRef").and_then(Value::as_str);
                let name = name.filter(|_| self.written.contains_key(&step.id));
                let maybe = is_conditional(step.when.as_ref());
                let node = &step.id;
                name.map(|name| (name, Spot { node, maybe }))
                    .into_iter()
                    .collect()
            }
            Node::Group(group) => {
                self.behind(group.when.as_ref(), |search| search.sequence(&group.nodes))
            }
            Node::Parallel(block) => self.beside(block),
        }
    }

    fn beside(&mut self, block: &'p ParallelPlan) -> Spots<'p> {
        let mut all = Spots::new();
        for branch in &block.branches {
            let spots = self.node(branch);
            add(&mut all, &spots);
        }
        if let Some(each) = &block.each {
            self.may_be_limited(each, &all);
        }
        let turn = block.branches.first().and_then(turn_of);
        if let Some(turn) = turn.filter(|_| block.concurrency > 0) {
            self.limited(turn, block.branches.len(), &all);
        }
        all
    }

    /// What is found behind a condition.
    fn behind(
        &mut self,
        when: Option<&When>,
        look: impl FnOnce(&mut Self) -> Spots<'p>,
    ) -> Spots<'p> {
        if !is_conditional(when) {
            return look(self);
        }
        self.conditions += 1;
        let mut spots = look(self);
        self.conditions -= 1;
        spots.values_mut().for_each(|spot| spot.maybe = true);
        spots
    }

    /// Of parts that follow one another: who waits in one is not helped by those after it.
    fn one_after_the_other<L>(&mut self, parts: impl Iterator<Item = L>) -> Spots<'p>
    where
        L: FnOnce(&mut Self) -> Spots<'p>,
    {
        let mut before = Spots::new();
        let mut last = Spots::new();
        for part in parts {
            let spots = part(self);
            for (name, then) in &spots {
                if let Some(first) = before.get(name) {
                    self.follows(name, *first, then.node);
                }
                for (earlier, first) in last.iter().filter(|(earlier, _)| *earlier != name) {
                    let maybe = first.maybe || self.conditions > 0;
                    let wait = (Spot { maybe, ..*first }, then.node);
                    let known = self.waits.entry((earlier, name)).or_insert(wait);
                    if known.0.maybe && !maybe {
                        *known = wait;
                    }
                }
            }
            // What every way leads past stands for all that was before it.
            if spots.values().any(|spot| !spot.maybe) {
                last.clear();
            }
            add(&mut last, &spots);
            add(&mut before, &spots);
        }
        before
    }

    fn follows(&mut self, name: &str, first: Spot<'p>, then: &'p NodeId) {
        let (first, maybe) = (first.node, first.maybe);
        let cannot = cannot(maybe);
        let message = format!(
            "barrier `{name}` {cannot}: {first} waits there for {then}, which comes after it; let them run side by side, or give one of them a barrier of its own"
        );
        self.found.push(Trouble {
            at: then,
            other: Some(first),
            fault: fault(maybe, message),
        });
    }

    /// Turns of a loop of which only some run at once wait for those that wait for them to end.
    fn limited(&mut self, turn: &Iteration, turns: usize, spots: &Spots<'p>) {
        let at_once = usize::try_from(turn.concurrency).unwrap_or(usize::MAX);
        if at_once == 0 || at_once >= turns {
            return;
        }
        for (name, spot) in spots {
            let cannot = cannot(spot.maybe);
            let message = format!(
                "barrier `{name}` {cannot}: {} waits there for every turn of `{}`, and `maxConcurrency` lets {at_once} of {turns} run at once; leave `maxConcurrency` out, or wait outside of the loop",
                spot.node, turn.of
            );
            self.found.push(Trouble {
                at: spot.node,
                other: None,
                fault: fault(spot.maybe, message),
            });
        }
    }

    /// The same of a loop whose turns only the run brings forth.
    fn may_be_limited(&mut self, each: &RunLoop, spots: &Spots<'p>) {
        let inner = ["matrix", "repeat"].iter();
        let mut limits = inner
            .map(|kind| &each.strategy[*kind]["maxConcurrency"])
            .chain([&each.strategy["maxConcurrency"]]);
        if limits.all(Value::is_null) {
            return;
        }
        for (name, spot) in spots {
            let message = format!(
                "barrier `{name}` cannot be passed if `{}` has more turns than its `maxConcurrency` lets run at once: {} waits there for every turn; leave `maxConcurrency` out, or wait outside of the loop",
                each.of, spot.node
            );
            self.found.push(Trouble {
                at: spot.node,
                other: None,
                fault: Fault::Maybe(message),
            });
        }
    }

    /// Barriers of rollback steps. Those of stages side by side meet, of a run that is rolled back as of stages that are;
    /// groups are rolled back one by one, or alone.
    fn rollback(&mut self, groups: &'p [Vec<StagePlan>], steps: &Spots<'p>) {
        let undoing = |stage: &'p StagePlan| stage.rollback_steps.as_slice();
        self.one_after_the_other(
            groups
                .iter()
                .rev()
                .map(|group| move |search: &mut Self| search.group(group, undoing)),
        );
        let (mut of_stages, mut of_groups) = (Vec::new(), Vec::new());
        for stage in groups.iter().flatten() {
            undoing_of(&stage.steps, &mut of_groups);
            of_stages.extend(&stage.rollback_steps);
        }
        let of_groups = self.each(&of_groups);
        let all = self.each(&of_stages).into_iter().chain(of_groups.clone());
        let all: Vec<_> = all.collect();
        for (name, node) in &all {
            let Some(other) = steps.get(name) else {
                continue;
            };
            let message = format!(
                "barrier `{name}` is for both {} and the rollback step {node}, which never run together; give the rollback a barrier of its own",
                other.node
            );
            self.found.push(Trouble {
                at: node,
                other: Some(other.node),
                fault: Fault::Sure(message),
            });
        }
        for (name, node) in of_groups {
            let mut others = all.iter().filter(|(known, _)| *known == name);
            let Some((_, other)) = others.find(|(_, other)| *other != node) else {
                continue;
            };
            if steps.contains_key(name) {
                continue;
            }
            let message = format!(
                "barrier `{name}` cannot be passed: {node} waits there for {other}, and a step group is rolled back when it fails itself, or before the rest of its stage; wait in the `rollbackSteps` of stages"
            );
            self.found.push(Trouble {
                at: node,
                other: Some(other),
                fault: Fault::Sure(message),
            });
        }
    }

    /// The steps that wait at barriers among `nodes` and below them, with the barrier of each.
    fn each(&self, nodes: &[&'p Node]) -> Vec<(&'p str, &'p NodeId)> {
        let mut found = Vec::new();
        let mut left: Vec<&'p Node> = nodes.iter().rev().copied().collect();
        while let Some(node) = left.pop() {
            match node {
                Node::Step(step) => {
                    let name = step.spec.get("barrierRef").and_then(Value::as_str);
                    let name = name.filter(|_| self.written.contains_key(&step.id));
                    found.extend(name.map(|name| (name, &step.id)));
                }
                Node::Group(group) => left.extend(group.nodes.iter().rev()),
                Node::Parallel(block) => left.extend(block.branches.iter().rev()),
            }
        }
        found
    }

    /// Barriers that are reached in different orders: one is passed before the other here, and after it there.
    fn crossings(&mut self) {
        if !self.found.is_empty() {
            // Most of them come of that.
            return;
        }
        let sure = |(first, _): &(Spot<'_>, &NodeId)| !first.maybe;
        let certain: Waits<'p> = self
            .waits
            .iter()
            .filter(|(_, wait)| sure(wait))
            .map(|(names, wait)| (*names, *wait))
            .collect();
        let found = circle(&certain).or_else(|| circle(&self.waits));
        let Some(circle) = found.filter(|circle| circle.len() > 1) else {
            return;
        };
        let mut maybe = false;
        let mut orders = Vec::new();
        let mut at = None;
        for (index, from) in circle.iter().enumerate() {
            let to = circle.get(index + 1).or(circle.first()).unwrap_or(from);
            let Some((first, then)) = self.waits.get(&(*from, *to)) else {
                return;
            };
            maybe |= first.maybe;
            orders.push(format!(
                "{} waits at `{from}` before {then} is reached at `{to}`",
                first.node
            ));
            at = Some(*then);
        }
        let names: Vec<_> = circle.iter().map(|name| format!("`{name}`")).collect();
        let message = format!(
            "barriers {} {}: {}; reach them in the same order everywhere",
            names.join(", "),
            cannot(maybe),
            orders.join(", and ")
        );
        self.found.extend(at.map(|at| Trouble {
            at,
            other: None,
            fault: fault(maybe, message),
        }));
    }
}

/// The first place of a barrier, by name, that stands behind a key.
type Queued<'p> = BTreeMap<(&'p str, &'p str), Behind<'p>>;

/// A place of a barrier behind a queue.
#[derive(Clone, Copy)]
struct Behind<'p> {
    stage: &'p StagePlan,
    node: &'p NodeId,
    queue: Queue<'p>,
    /// Whether a condition may leave out the one or the other.
    maybe: bool,
}

impl<'p> Behind<'p> {
    /// This place is not reached while the stage of the other one waits.
    fn kept_out_by(&self, first: &Self, place: &Place<'p>) -> Trouble<'p> {
        let (barrier, key) = (place.barrier, self.queue.key);
        let maybe = first.maybe || self.maybe;
        // A stage that comes second does not wait for what its run has.
        let both = first.queue.of_stage && self.queue.of_stage;
        let cannot = match both {
            true => cannot(maybe),
            false => "may not be passed, by which of them comes first",
        };
        let message = format!(
            "barrier `{barrier}` {cannot}: {} waits there for {}, and both stand behind key `{key}` ({} and {}), which a stage has to itself until it ends; take the key after the barrier, or in a stage before them with `scope: Pipeline`",
            first.node, self.node, first.queue.node, self.queue.node,
        );
        Trouble {
            at: self.node,
            other: Some(first.node),
            fault: fault(maybe || !both, message),
        }
    }

    /// This place is in a stage that loops over what only the run knows.
    fn kept_out_by_itself(&self, place: &Place<'p>) -> Trouble<'p> {
        let (barrier, key) = (place.barrier, self.queue.key);
        let message = format!(
            "barrier `{barrier}` cannot be passed if stage {} has more than one turn: {} waits there for every turn, and stands behind key `{key}` ({}), which a turn has to itself until it ends; take the key after the barrier, or in a stage before with `scope: Pipeline`",
            self.stage.id, self.node, self.queue.node,
        );
        Trouble {
            at: self.node,
            other: None,
            fault: Fault::Maybe(message),
        }
    }
}

fn fault(maybe: bool, message: String) -> Fault {
    match maybe {
        true => Fault::Maybe(message),
        false => Fault::Sure(message),
    }
}

fn cannot(maybe: bool) -> &'static str {
    match maybe {
        true => "cannot be passed unless a condition leaves somebody out",
        false => "cannot be passed",
    }
}

/// Whether a condition may leave out what it stands at, though nothing failed.
pub(super) fn is_conditional(when: Option<&When>) -> bool {
    when.is_some_and(|when| when.condition.is_some() || when.status == WhenStatus::Failure)
}

fn turn_of(node: &Node) -> Option<&Iteration> {
    match node {
        Node::Step(step) => step.iteration.as_ref(),
        Node::Group(group) => group.iteration.as_ref(),
        Node::Parallel(_) => None,
    }
}

/// The rollback steps of the groups among `nodes` and below them.
fn undoing_of<'p>(nodes: &'p [Node], found: &mut Vec<&'p Node>) {
    for node in nodes {
        match node {
            Node::Step(_) => {}
            Node::Group(group) => {
                undoing_of(&group.nodes, found);
                found.extend(&group.rollback_steps);
            }
            Node::Parallel(block) => undoing_of(&block.branches, found),
        }
    }
}

/// Barriers of which each is passed before the next is reached, and the last before the first.
fn circle<'p>(waits: &Waits<'p>) -> Option<Vec<&'p str>> {
    let mut next: BTreeMap<&str, Vec<&'p str>> = BTreeMap::new();
    let mut earlier: BTreeMap<&str, Vec<&'p str>> = BTreeMap::new();
    for (from, to) in waits.keys() {
        next.entry(from).or_default().push(to);
        next.entry(to).or_default();
        earlier.entry(to).or_default().push(from);
    }
    // Without those that lead nowhere, whoever goes on comes back.
    let mut left: BTreeMap<&'p str, usize> = waits
        .keys()
        .flat_map(|(from, to)| [*from, *to])
        .map(|name| (name, next.get(name).map_or(0, Vec::len)))
        .collect();
    let mut ends: Vec<&str> = left
        .iter()
        .filter(|(_, count)| **count == 0)
        .map(|(name, _)| *name)
        .collect();
    while let Some(end) = ends.pop() {
        left.remove(end);
        for from in earlier.get(end).into_iter().flatten() {
            if let Some(count) = left.get_mut(from) {
                *count -= 1;
                if *count == 0 {
                    ends.push(from);
                }
            }
        }
    }
    let mut way: Vec<&'p str> = vec![left.keys().next()?];
    loop {
        let here = way.last()?;
        let to = next.get(here)?.iter().find(|to| left.contains_key(**to))?;
        if let Some(from) = way.iter().position(|name| name == to) {
            return Some(way.split_off(from));
        }
        way.push(to);
    }
}
