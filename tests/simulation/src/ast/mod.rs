//! A case as the simulation thinks of it: small enough to be shrunk and read. All times are in seconds.

mod events;
mod pipeline;
mod story;
mod walk;

pub use events::{Fault, Said, Stop, Word};
pub use pipeline::{
    Action, Child, Group, Http, Image, Kind, Loop, Node, Pipeline, Script, Stage, Step, Strategy,
    Turns, Wanted, When,
};
pub use story::Story;

/// Everything that a seed decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Where it came from.
    pub seed: u64,
    /// What runs.
    pub pipeline: Pipeline,
    /// When its runs are started; the first one at 0.
    pub starts: Vec<u64>,
    /// What people say meanwhile.
    pub words: Vec<Said>,
    /// What goes wrong meanwhile.
    pub faults: Vec<Fault>,
    /// Whether all events are told to a server, which turns this many notices away first.
    pub notices: Option<usize>,
    /// When production is frozen.
    pub freeze: Option<Freeze>,
}

/// A time in which nothing is deployed, in minutes after the first start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// Its beginning.
    pub from: u64,
    /// How long it is.
    pub length: u64,
}

impl Case {
    /// Whether there is a server that steps or notices go to.
    pub fn has_server(&self) -> bool {
        let steps = self.pipeline.steps();
        let mut kinds = steps.iter().map(|(_, step)| &step.kind);
        self.notices.is_some() || kinds.any(|kind| matches!(kind, Kind::Http(_)))
    }
}

impl Case {
    /// With every turn of a looping stage as a stage of its own.
    pub fn expanded(&self) -> Self {
        let mut case = self.clone();
        for group in &mut case.pipeline.groups {
            *group = group.drain(..).flat_map(turns).collect();
        }
        case
    }
}

fn turns(stage: Stage) -> Vec<Stage> {
    let Some(turns) = stage.turns else {
        return vec![stage];
    };
    let each = turns.postfixes().map(|postfix| Stage {
        id: format!("{}{postfix}", stage.id),
        ..stage.clone()
    });
    each.collect()
}
