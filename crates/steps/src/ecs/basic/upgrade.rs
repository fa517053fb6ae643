//! `EcsUpgradeContainer`: moves tasks from the old version of a service to the new one, all of them or a part.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::id::NodeId;
use slipway_model::status::Failure;
use slipway_plan::Node;

use super::super::beside::{self, Beside, Role};
use super::super::instances::{self, Change};
use super::super::manifest::Documents;
use super::super::resize::Resize;
use super::super::scaling::{Scaling, detach};
use super::super::service::{Standing, describe};
use super::super::site::Site;
use super::super::task_definition::short;
use super::super::{DEPLOY, told};
use super::{Handover, Old, SetUp, set_up, wrong};
use crate::context::StepContext;
use crate::deployment::Replaced;
use crate::deployment::invalid;
use crate::deployment::spec::{self, Kind, UNITS};
use crate::step::{Progress, Step, Undo};

/// Fields of the spec.
const FIELDS: &[(&str, Kind)] = &[
    ("downsizeOldServiceInstanceCount", Kind::Count),
    ("downsizeOldServiceInstanceUnit", Kind::Choice(UNITS)),
    ("newServiceInstanceCount", Kind::Count),
    ("newServiceInstanceUnit", Kind::Choice(UNITS)),
];

/// The step.
pub struct UpgradeContainer;

/// Which of the two services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Which {
    New,
    Old,
}

/// One service is given one count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Move {
    which: Which,
    service: String,
    desired: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    /// What is left to do, in order.
    moves: Option<Vec<Move>>,
    resize: Resize,
    scaled: bool,
}

#[async_trait]
impl Step for UpgradeContainer {
    fn step_type(&self) -> &'static str {
        "EcsUpgradeContainer"
    }

    fn units(&self) -> &'static [&'static str] {
        &[DEPLOY]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        let mut faults = spec::check(spec, FIELDS);
        for name in ["newServiceInstanceCount", "newServiceInstanceUnit"] {
            if !spec::given(spec, name) {
                faults.push(format!("`{name}` is missing"));
            }
        }
        faults
    }

    fn undo(&self) -> Undo {
        Undo::Step("EcsBasicRollback")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(DEPLOY);
        let result = match Upgrade::resume(cx).await {
            Ok(upgrade) => upgrade.go_on(cx).await,
            Err(failure) => Err(failure),
        };
        told(cx, self.units(), result)
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let state: State = cx.saved()?;
        if let Some(reasons) = state.resize.evidence() {
            cx.warn(DEPLOY, format!("Tasks stopped because: {reasons}"));
        }
        for left in state.moves.iter().flatten() {
            cx.warn(
                DEPLOY,
                format!(
                    "Service {} may not have {} tasks yet",
                    left.service, left.desired
                ),
            );
        }
        Ok(())
    }
}

/// One call's worth of the step.
struct Upgrade {
    site: Site,
    set_up: SetUp,
    state: State,
}

impl Upgrade {
    async fn resume(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let Some(set_up) = set_up(cx)? else {
            return Err(invalid(format!(
                "stage {} has no EcsServiceSetup that created a service before step {}: EcsUpgradeContainer moves \
                 tasks to the service that EcsServiceSetup creates.",
                cx.stage().identifier,
                cx.step().identifier
            )));
        };
        Ok(Self {
            site: Site::of_stage(cx).await?,
            set_up,
            state: cx.saved()?,
        })
    }

    async fn go_on(mut self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        if self.state.moves.is_none() {
            self.state.moves = Some(moves(cx.spec(), &self.set_up.handover)?);
            cx.save(&self.state).await?;
        }
        while let Some(next) = self.state.moves.iter().flatten().next().cloned() {
            let pause = self.carry_out(cx, &next).await?;
            if pause.is_none() {
                self.state.moves.iter_mut().for_each(|moves| {
                    moves.remove(0);
                });
                self.state.resize = Resize::default();
            }
            cx.save(&self.state).await?;
            if let Some(pause) = pause {
                return Ok(Progress::Again(pause));
            }
        }
        if !self.state.scaled {
            self.scale(cx).await?;
            self.state.scaled = true;
            cx.save(&self.state).await?;
        }
        self.note(cx).await.map(Progress::Done)
    }

    /// Goes on with a move; how long to wait, or `None` when it is done.
    async fn carry_out(
        &mut self,
        cx: &mut StepContext<'_>,
        next: &Move,
    ) -> Result<Option<Duration>, Failure> {
        let (site, name) = (&self.site, next.service.as_str());
        if !self.state.resize.told() {
            let found = match describe(site, name).await? {
                Standing::Active(found) => found,
                _ if next.which == Which::Old => {
                    cx.warn(
                        DEPLOY,
                        format!("Service {name} is gone already: nothing to scale down"),
                    );
                    return Ok(None);
                }
                _ => {
                    return Err(wrong(format!(
                        "Service {name} in {site} no longer exists: somebody or something else deleted it while \
                         it was being deployed."
                    )));
                }
            };
            if next.which == Which::Old && i64::from(found.service.desired_count()) != next.desired
            {
                // What scales it would work against the move.
                detach(cx, site, name, DEPLOY).await?;
            }
            let resize = &mut self.state.resize;
            resize
                .tell(cx, site, (name, &*found), next.desired, DEPLOY)
                .await?;
            cx.save(&self.state).await?;
        }
        self.state.resize.look(cx, &self.site, name, DEPLOY).await
    }

    /// The new service is scaled as its manifests say once it has all of its tasks.
    async fn scale(&mut self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let handover = &self.set_up.handover;
        let (new, _) = counts(cx.spec(), handover)?;
        if new < handover.full {
            return self.tell_unscaled(cx).await;
        }
        let documents = Documents::again(cx, &self.set_up.documents).await?;
        let old = handover.old.as_ref().map(|old| &old.scaling);
        let scaling =
            Scaling::of_manifests(&self.site, &handover.new, &documents).with_actions_of(old);
        scaling.attach(cx, &self.site, DEPLOY).await
    }

    /// A part of the tasks on either side: whatever scaled the old service would work against that.
    async fn tell_unscaled(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let handover = &self.set_up.handover;
        let Some(old) = handover.old.as_ref().filter(|old| !old.scaling.is_empty()) else {
            return Ok(());
        };
        if !Scaling::describe(&self.site, &old.name).await?.is_empty() || moves_later(cx) {
            return Ok(());
        }
        let told = format!(
            "Nothing scales services {} and {} now: the tasks are shared between them, and what scaled the old one would \
             work against that. An EcsUpgradeContainer step that gives the new service all of its tasks lets it be scaled \
             again.",
            old.name, handover.new
        );
        cx.warn_of_run(DEPLOY, &told).await
    }

    async fn note(&mut self, cx: &mut StepContext<'_>) -> Result<Value, Failure> {
        let (site, handover) = (&self.site, &self.set_up.handover);
        let before = match &handover.old {
            Some(old) => Some(before(cx, site, old).await?),
            None => None,
        };
        let name = handover.new.as_str();
        beside::set_before(cx, (site, name), before).await?;
        let arn = self.set_up.task_definition.arn.as_str();
        let replaced = handover.old.as_ref();
        let replaced = replaced.map(|_| Replaced::record(handover.replaced.as_ref()));
        let change = Change::Deployed(replaced);
        let instances = instances::note(cx, site, (name, arn), change).await?;
        cx.info(
            DEPLOY,
            format!(
                "Service {name} runs {} tasks of {}",
                instances.len(),
                short(arn)
            ),
        );
        cx.unit_ended(DEPLOY, true);
        let outcome = json!({"serverInstanceInfoList": instances});
        Ok(json!({
            "output": {
                "serviceName": name,
                "oldServiceName": handover.old.as_ref().map(|old| &old.name),
                "taskDefinitionArn": arn,
                "deploymentInfoOutcome": outcome,
            },
            "deploymentInfoOutcome": outcome,
        }))
    }
}

/// Whether a step of this type comes after this one in its stage.
fn moves_later(cx: &StepContext<'_>) -> bool {
    fn moving<'p>(nodes: &'p [Node], found: &mut Vec<&'p NodeId>) {
        for node in nodes {
            match node {
                Node::Step(step) if step.step_type == UpgradeContainer.step_type() => {
                    found.push(&step.id);
                }
                Node::Step(_) => {}
                Node::Group(group) => moving(&group.nodes, found),
                Node::Parallel(parallel) => moving(&parallel.branches, found),
            }
        }
    }
    let mut found = Vec::new();
    moving(&cx.stage().steps, &mut found);
    let at = found.iter().position(|id| *id == cx.node());
    at.is_some_and(|at| at + 1 < found.len())
}

/// The old service as one whose tasks still count, by the run that deployed it.
async fn before(cx: &StepContext<'_>, site: &Site, old: &Old) -> Result<Beside, Failure> {
    let record = beside::record(cx, site).await?;
    let run = record.and_then(|record| beside::run_of(&record, &old.name));
    Ok(Beside {
        service_name: old.name.clone(),
        task_definition_arn: old.task_definition.clone(),
        run: run.unwrap_or_else(|| cx.run().clone()),
        role: Role::Before,
    })
}

/// The counts that the spec asks for: of the new service and of the old one.
///
/// A percentage of the new service is of its full count, one of the old service of the count that it had before
/// the deployment. Where the spec says nothing of the old service, it keeps what the new one lacks.
fn counts(spec: &Value, handover: &Handover) -> Result<(i64, i64), Failure> {
    let missing = |name: &str| invalid(format!("`{name}` of EcsUpgradeContainer is missing."));
    let count = spec::count(spec, "newServiceInstanceCount")?;
    let count = count.ok_or_else(|| missing("newServiceInstanceCount"))?;
    let unit = spec::choice(spec, "newServiceInstanceUnit", UNITS)?;
    let unit = unit.ok_or_else(|| missing("newServiceInstanceUnit"))?;
    let new = spec::tasks(count, unit, handover.full);
    let had = handover.old.as_ref().map_or(0, |old| old.desired);
    let given = spec::count(spec, "downsizeOldServiceInstanceCount")?;
    let given_unit = spec::choice(spec, "downsizeOldServiceInstanceUnit", UNITS)?;
    let old = match (given, unit) {
        (Some(given), unit) => spec::tasks(given, given_unit.unwrap_or(unit), had),
        (None, _) if new >= handover.full => 0,
        (None, "Percentage") => spec::tasks(100_i64.saturating_sub(count), "Percentage", had),
        (None, _) => had.saturating_sub(new),
    };
    // A downsize never raises.
    Ok((new, old.clamp(0, had)))
}

/// What is to be done, in the order that `resizeStrategy` says.
fn moves(spec: &Value, handover: &Handover) -> Result<Vec<Move>, Failure> {
    let (new, old) = counts(spec, handover)?;
    let up = Move {
        which: Which::New,
        service: handover.new.clone(),
        desired: new,
    };
    let down = handover.old.as_ref().map(|before| Move {
        which: Which::Old,
        service: before.name.clone(),
        desired: old,
    });
    let mut moves: Vec<Move> = [Some(up), down].into_iter().flatten().collect();
    if !handover.new_first {
        moves.reverse();
    }
    Ok(moves)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handover(new_first: bool, full: i64, had: Option<i64>) -> Handover {
        Handover {
            new: "web__2".to_owned(),
            old: had.map(|desired| Old {
                name: "web__1".to_owned(),
                task_definition: String::new(),
                passed_over: None,
                desired,
                running: desired,
                scaling: Scaling::default(),
            }),
            full,
            new_first,
            replaced: None,
        }
    }

    fn spec(new: (i64, &str), old: Option<(i64, &str)>) -> Value {
        let mut spec = json!({"newServiceInstanceCount": new.0, "newServiceInstanceUnit": new.1});
        if let Some((count, unit)) = old {
            spec["downsizeOldServiceInstanceCount"] = json!(count);
            spec["downsizeOldServiceInstanceUnit"] = json!(unit);
        }
        spec
    }

    #[test]
    fn how_many_tasks_each_service_gets() {
        let percent = |count| (count, "Percentage");
        let table = [
            (percent(50), None, (4, Some(4)), (2, 2)),
            (percent(50), None, (3, Some(3)), (2, 2)),
            (percent(10), None, (3, Some(5)), (1, 5)),
            (percent(100), None, (3, Some(5)), (3, 0)),
            (percent(150), None, (4, Some(5)), (6, 0)),
            (percent(0), None, (4, Some(5)), (0, 5)),
            (percent(50), None, (4, None), (2, 0)),
            (percent(50), Some(percent(0)), (4, Some(4)), (2, 0)),
            (percent(50), Some((1, "Count")), (4, Some(4)), (2, 1)),
            (percent(50), Some((9, "Count")), (4, Some(4)), (2, 4)),
            ((1, "Count"), None, (4, Some(4)), (1, 3)),
            ((5, "Count"), None, (4, Some(4)), (5, 0)),
            ((3, "Count"), None, (4, Some(2)), (3, 0)),
        ];
        for (new, old, (full, had), expected) in table {
            let found = counts(&spec(new, old), &handover(true, full, had)).ok();
            assert_eq!(
                found,
                Some(expected),
                "{new:?} {old:?} of {full}, {had:?} before"
            );
        }
        assert!(
            counts(
                &json!({"newServiceInstanceCount": 1}),
                &handover(true, 1, None)
            )
            .is_err()
        );
    }

    #[test]
    fn the_strategy_says_which_service_is_first() {
        let spec = spec((50, "Percentage"), None);
        let order = |new_first| {
            let moves = moves(&spec, &handover(new_first, 4, Some(4))).unwrap_or_default();
            let moves = moves
                .iter()
                .map(|one| format!("{} {}", one.service, one.desired));
            moves.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(order(true), "web__2 2, web__1 2");
        assert_eq!(order(false), "web__1 2, web__2 2");
    }
}
