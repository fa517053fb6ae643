//! Makes a failing case smaller while it fails: whoever reads it has less to read.

use crate::ast::{Case, Node, Step, When};

/// Most cases that are tried.
const MOST_TRIALS: u32 = 200;

/// The smallest case found for which `fails` holds.
pub fn shrink(case: &Case, mut fails: impl FnMut(&Case) -> bool) -> Case {
    let mut smallest = case.clone();
    let mut trials = 0;
    loop {
        let mut smaller = None;
        for candidate in candidates(&smallest) {
            if trials >= MOST_TRIALS {
                return smallest;
            }
            trials += 1;
            if fails(&candidate) {
                smaller = Some(candidate);
                break;
            }
        }
        match smaller {
            Some(found) => smallest = found,
            None => return smallest,
        }
    }
}

/// Cases with one thing less, the largest things first.
fn candidates(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Case)| {
        let mut smaller = case.clone();
        change(&mut smaller);
        if smaller != *case && is_plain(&smaller) {
            all.push(smaller);
        }
    };
    for index in 0..case.faults.len() {
        with(&|case| {
            case.faults.remove(index);
        });
    }
    for index in 0..case.words.len() {
        with(&|case| {
            case.words.remove(index);
        });
    }
    with(&|case| case.notices = None);
    with(&|case| case.freeze = None);
    if case.starts.len() > 1 {
        with(&|case| case.starts.truncate(1));
    }
    for group in 0..case.pipeline.groups.len() {
        if case.pipeline.groups.len() > 1 {
            with(&|case| {
                case.pipeline.groups.remove(group);
            });
        }
        for stage in 0..case.pipeline.groups[group].len() {
            if case.pipeline.groups[group].len() > 1 {
                with(&|case| {
                    case.pipeline.groups[group].remove(stage);
                });
            }
            with(&|case| case.pipeline.groups[group][stage].rollback.clear());
            with(&|case| case.pipeline.groups[group][stage].strategies.clear());
            with(&|case| case.pipeline.groups[group][stage].timeout = None);
            with(&|case| case.pipeline.groups[group][stage].turns = None);
            with(&|case| case.pipeline.groups[group][stage].when = When::DEFAULT);
        }
    }
    with(&|case| case.pipeline.timeout = None);
    for number in 0..case.pipeline.steps().len() * 3 {
        for change in CHANGES {
            with(&|case| {
                let mut left = number;
                for stage in case.pipeline.groups.iter_mut().flatten() {
                    nodes(&mut stage.steps, &mut left, *change, true);
                    nodes(&mut stage.rollback, &mut left, *change, false);
                }
            });
        }
    }
    all
}

/// Whether no block stands in a block, which people do not write.
fn is_plain(case: &Case) -> bool {
    fn plain(nodes: &[Node], in_block: bool) -> bool {
        nodes.iter().all(|node| match node {
            Node::Step(_) => true,
            Node::Group(group) => plain(&group.nodes, false) && plain(&group.rollback, false),
            Node::Parallel(branches) => !in_block && plain(branches, true),
        })
    }
    let mut stages = case.pipeline.stages();
    stages.all(|stage| plain(&stage.steps, false) && plain(&stage.rollback, false))
}

type Change = fn(&mut Vec<Node>, usize, bool);

const CHANGES: &[Change] = &[removed, inside, plain, unlooped];

/// Changes the node with this number, counted through all lists.
fn nodes(list: &mut Vec<Node>, left: &mut usize, change: Change, needed: bool) {
    let mut index = 0;
    while index < list.len() {
        if *left == 0 {
            *left = usize::MAX;
            change(list, index, needed);
            return;
        }
        *left -= 1;
        match &mut list[index] {
            Node::Step(_) => {}
            Node::Group(group) => {
                nodes(&mut group.nodes, left, change, true);
                nodes(&mut group.rollback, left, change, false);
            }
            Node::Parallel(branches) => nodes(branches, left, change, true),
        }
        if *left > usize::MAX / 2 {
            return;
        }
        index += 1;
    }
}

fn removed(list: &mut Vec<Node>, index: usize, needed: bool) {
    if list.len() > 1 || !needed {
        list.remove(index);
    }
}

/// A group or block becomes what is in it.
fn inside(list: &mut Vec<Node>, index: usize, _: bool) {
    let inner = match &mut list[index] {
        Node::Step(_) => return,
        Node::Group(group) => std::mem::take(&mut group.nodes),
        Node::Parallel(branches) => std::mem::take(branches),
    };
    list.splice(index..=index, inner);
}

/// Without strategies and conditions.
#[expect(
    clippy::ptr_arg,
    reason = "one of several changes, of which some remove"
)]
fn plain(list: &mut Vec<Node>, index: usize, _: bool) {
    match &mut list[index] {
        Node::Step(Step {
            strategies, when, ..
        }) => {
            strategies.clear();
            *when = When::DEFAULT;
        }
        Node::Group(group) => {
            group.strategies.clear();
            group.rollback.clear();
            group.when = When::DEFAULT;
        }
        Node::Parallel(_) => {}
    }
}

#[expect(
    clippy::ptr_arg,
    reason = "one of several changes, of which some remove"
)]
fn unlooped(list: &mut Vec<Node>, index: usize, _: bool) {
    if let Node::Step(step) = &mut list[index] {
        step.turns = None;
    }
}
