//! Stages that one stage of a pipeline becomes: its turns, and in each turn one for each service on each infrastructure.
//!
//! A loop around several services or infrastructures: each turn deploys all of them. What may run side by side in a turn
//! does so in as many turns as the loop lets run at once; what waits for its time in a turn runs beside what waits in
//! the others.

use slipway_model::{Code, Diagnostic, Ref};

use super::Resolver;
use crate::{Iteration, StagePlan, When, WhenStatus};

/// The stages of one turn, or of a stage that does not loop.
pub(super) struct Several {
    /// In the order in which they begin.
    pub(super) stages: Vec<StagePlan>,
    /// Whether it deploys several services or to several infrastructures, even if one is left.
    pub(super) many: bool,
    /// How many run side by side.
    pub(super) width: usize,
    /// Whether all run even if one fails; otherwise those that wait for a failed one do not begin.
    pub(super) runs_all: bool,
}

impl Several {
    /// A stage that is one.
    pub(super) fn one(stage: StagePlan) -> Self {
        Self {
            stages: vec![stage],
            many: false,
            width: 1,
            runs_all: false,
        }
    }

    /// Of a stage that does not loop: groups that run one after the other.
    pub(super) fn in_waves(mut self) -> Vec<Vec<StagePlan>> {
        if self.runs_all {
            limit(&mut self.stages, self.width);
            return vec![self.stages];
        }
        waves(self.stages, self.width)
    }
}

/// The groups of a loop that run one after the other, of which at most `at_once` turns run at once (0 is no limit).
/// `skips_queued` says that turns that wait are given up when one fails.
pub(super) fn in_waves(
    turns: Vec<Several>,
    at_once: u32,
    skips_queued: bool,
) -> Vec<Vec<StagePlan>> {
    let at_once = usize::try_from(at_once).unwrap_or(usize::MAX);
    let width = match at_once {
        0 => usize::MAX,
        width => width,
    };
    if turns.iter().all(|turn| !turn.many) {
        let stages = turns.into_iter().flat_map(|turn| turn.stages).collect();
        return waves(stages, if skips_queued { width } else { usize::MAX });
    }
    let total: usize = turns.iter().map(|turn| turn.stages.len()).sum();
    let beside = width.min(turns.len());
    let chunk = if skips_queued {
        beside.max(1)
    } else {
        usize::MAX
    };
    let mut out = Vec::new();
    let mut turns = turns.into_iter().peekable();
    while turns.peek().is_some() {
        let mut merged: Vec<Vec<StagePlan>> = Vec::new();
        for turn in turns.by_ref().take(chunk) {
            let at_once = beside.saturating_mul(turn.width).min(total);
            let limited = turn.runs_all || width < usize::MAX && !skips_queued;
            for (index, mut wave) in turn.in_waves().into_iter().enumerate() {
                limit(&mut wave, if limited { at_once } else { 0 });
                match merged.get_mut(index) {
                    Some(known) => known.extend(wave),
                    None => merged.push(wave),
                }
            }
        }
        out.extend(merged);
    }
    let total = u32::try_from(total).unwrap_or(u32::MAX);
    let turns = out.iter_mut().flatten();
    turns
        .filter_map(|stage| stage.iteration.as_mut())
        .for_each(|iteration| iteration.total = total);
    out
}

/// A target of a stage in a turn of its loop: it knows what the turn goes over as well.
pub(super) fn within(turn: &Iteration, target: Iteration) -> Iteration {
    let mut matrix = turn.matrix.clone();
    matrix.extend(target.matrix);
    Iteration {
        matrix,
        item: turn.item.clone(),
        partition: turn.partition.clone(),
        ..target
    }
}

fn limit(stages: &mut [StagePlan], at_once: usize) {
    let at_once = u32::try_from(at_once).unwrap_or(u32::MAX);
    for stage in stages {
        if let Some(iteration) = &mut stage.iteration {
            iteration.concurrency = at_once;
        }
    }
}

/// Stages in waves of at most so many.
fn waves(planned: Vec<StagePlan>, width: usize) -> Vec<Vec<StagePlan>> {
    let mut out = Vec::new();
    let mut planned = planned.into_iter().peekable();
    while planned.peek().is_some() {
        out.push(planned.by_ref().take(width).collect());
    }
    out
}

impl Resolver<'_> {
    /// The condition of a stage with the guard of its `multiDeploymentConfig`: where that does not hold, none of its
    /// services and infrastructures is deployed, and each stage says so.
    pub(super) fn guarded(&mut self, when: Option<When>, spec: Ref<'_>) -> Option<When> {
        let guard = spec.at(&["multiDeploymentConfig", "when"]);
        let guard = guard.filter(|guard| guard.text().is_some_and(|text| !text.trim().is_empty()));
        let Some((at, text)) = guard.and_then(|guard| Some((guard, guard.text()?))) else {
            return when;
        };
        if let Err(error) = slipway_expr::check_condition(text) {
            let message = format!("the condition does not parse: {error}");
            self.faults
                .push(Diagnostic::at(Code::BadExpression, at, message));
        }
        let own = when.as_ref().and_then(|when| when.condition.as_deref());
        Some(When {
            status: when
                .as_ref()
                .map_or(WhenStatus::Success, |when| when.status),
            condition: Some(match own {
                Some(own) => format!("({text}) && ({own})"),
                None => text.to_owned(),
            }),
        })
    }
}
