//! Barriers behind queues: a stage that has a key to itself until it ends, and waits at a barrier meanwhile, keeps out the
//! other stages that need the key to come there.

use std::rc::Rc;

use serde_json::Value;
use slipway_model::id::NodeId;

use super::barriers::is_conditional;
use crate::{Node, StepPlan};

/// A `Queue` step.
#[derive(Clone, Copy)]
pub(super) struct Queue<'p> {
    pub(super) key: &'p str,
    pub(super) node: &'p NodeId,
    /// Whether the stage holds the key, and not its run.
    pub(super) of_stage: bool,
    /// Whether a condition may leave it out.
    pub(super) maybe: bool,
}

/// The queues that were taken, the last one first. Shared, as places that follow one another have most of them in common.
pub(super) type Taken<'p> = Option<Rc<Link<'p>>>;

pub(super) struct Link<'p> {
    queue: Queue<'p>,
    before: Taken<'p>,
}

/// Where somebody waits at a barrier.
pub(super) struct Place<'p> {
    pub(super) barrier: &'p str,
    pub(super) node: &'p NodeId,
    /// Whether a condition may leave it out.
    pub(super) maybe: bool,
    taken: Taken<'p>,
}

impl<'p> Place<'p> {
    /// The queues that are taken before it is reached, the last one first.
    pub(super) fn queues(&self) -> impl Iterator<Item = Queue<'p>> {
        let first = self.taken.as_deref();
        std::iter::successors(first, |link| link.before.as_deref()).map(|link| link.queue)
    }
}

/// The places among `nodes` and below them at which steps wait that `waits` tells of, in their order.
pub(super) fn places<'p>(nodes: &'p [Node], waits: &impl Fn(&NodeId) -> bool) -> Vec<Place<'p>> {
    let mut walk = Walk {
        waits,
        taken: None,
        places: Vec::new(),
    };
    walk.sequence(nodes, false);
    walk.places
}

struct Walk<'p, 'w, W> {
    waits: &'w W,
    taken: Taken<'p>,
    places: Vec<Place<'p>>,
}

impl<'p, W: Fn(&NodeId) -> bool> Walk<'p, '_, W> {
    fn sequence(&mut self, nodes: &'p [Node], maybe: bool) {
        nodes.iter().for_each(|node| self.node(node, maybe));
    }

    fn node(&mut self, node: &'p Node, maybe: bool) {
        match node {
            Node::Step(step) => self.step(step, maybe || is_conditional(step.when.as_ref())),
            Node::Group(group) => {
                let maybe = maybe || is_conditional(group.when.as_ref());
                self.sequence(&group.nodes, maybe);
            }
            Node::Parallel(block) => {
                let before = self.taken.clone();
                let mut all = before.clone();
                for branch in &block.branches {
                    self.taken.clone_from(&before);
                    self.node(branch, maybe);
                    let mut last = self.taken.take();
                    while let Some(link) = last.filter(|link| !is_at(link, before.as_ref())) {
                        all = Some(Rc::new(Link {
                            queue: link.queue,
                            before: all,
                        }));
                        last = link.before.clone();
                    }
                }
                self.taken = all;
            }
        }
    }

    fn step(&mut self, step: &'p StepPlan, maybe: bool) {
        let text = |name: &str| {
            let text = step.spec.get(name).and_then(Value::as_str);
            text.filter(|text| !text.contains("<+"))
        };
        let node = &step.id;
        if let Some(barrier) = text("barrierRef").filter(|_| (self.waits)(node)) {
            self.places.push(Place {
                barrier,
                node,
                maybe,
                taken: self.taken.clone(),
            });
        }
        let scope = text("scope").filter(|_| step.step_type == "Queue");
        if let (Some(key), Some(scope)) = (text("key"), scope) {
            let queue = Queue {
                key,
                node,
                of_stage: scope == "Stage",
                maybe,
            };
            let before = self.taken.take();
            self.taken = Some(Rc::new(Link { queue, before }));
        }
    }
}

/// Whether a list has come to where `before` begins.
fn is_at<'p>(link: &Rc<Link<'p>>, before: Option<&Rc<Link<'p>>>) -> bool {
    before.is_some_and(|before| Rc::ptr_eq(link, before))
}
