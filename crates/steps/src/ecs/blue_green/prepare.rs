//! What `EcsBlueGreenCreateService` looks at and writes down before its first change.

use std::time::Duration;

use slipway_model::status::Failure;
use slipway_plan::Node;

use super::super::beside;
use super::super::rollback::{Before, keepable};
use super::super::scaling::Scaling;
use super::super::scaling_loss::{self, Succession};
use super::super::service::{Described, Standing, describe};
use super::super::task_definition::{intended, short};
use super::super::{PREPARE, cluster};
use super::create::{Creation, Phase, State};
use super::others;
use super::routes::Routes;
use super::serving::what_serves;
use super::sides::{Seen, Sides};
use super::{Blue, Green, Handover, balancer, definition, tag, wrong};
use crate::aws::other_rules::Other;
use crate::context::StepContext;
use crate::deployment::Replaced;
use crate::deployment::invalid;

impl Creation {
    /// Writes down how rules and services are.
    pub(super) async fn prepare(
        &mut self,
        cx: &mut StepContext<'_>,
    ) -> Result<Option<Duration>, Failure> {
        cx.unit_started(PREPARE);
        check_stage(cx, &self.routes)?;
        definition::check(&self.site, &self.documents, &self.routes).await?;
        let base = self.documents.service_name()?;
        let others = others::find(cx, &self.site, &self.routes).await?;
        let sides = Sides::look(&self.site, &self.routes, base, self.spec.update_green).await?;
        if sides.green.is_none() && sides.going.is_empty() && !self.routes.is_shared() {
            self.check_empty().await?;
        }
        let mut names = vec![base, sides.new.as_str()];
        let present = [&sides.blue, &sides.green].into_iter().flatten();
        names.extend(present.map(|one| one.name.as_str()));
        cluster::check_owner(cx, &self.site, &names).await?;
        let running = sides.blue.as_ref().map(|blue| blue.running);
        let running = running.filter(|_| self.spec.same_as_running);
        self.state.desired = definition::desired(&self.documents.service, running)?;

        let earlier: Option<State> = cx.saved_by_first_attempt()?;
        let earlier = earlier.and_then(|state| state.handover);
        self.check_others(cx, (&sides, earlier.is_some()), &others)
            .await?;
        // What an earlier attempt found is how things were before this run changed anything.
        let handover = match earlier {
            Some(first) => {
                check_again(&first, &sides)?;
                first
            }
            None => {
                beside::warn_of_canary(cx, &self.site, PREPARE).await?;
                let handover = self.handover(cx, &sides).await?;
                if let Some(Blue { name, scaling, .. }) = &handover.blue {
                    let (old, new, has) = (name.as_str(), handover.new.as_str(), scaling);
                    let services = Succession { old, new, has };
                    scaling_loss::warn(cx, &self.site, services, &self.documents).await?;
                }
                handover
            }
        };
        self.state.update = self.spec.update_green && sides.green.is_some();
        let serves = sides.blue.as_ref();
        self.state.mistagged = serves.is_some_and(|blue| blue.tag.as_deref() != Some(tag::BLUE));
        self.state.clear = sides.going.clone();
        let deleted = sides.green.as_ref().filter(|_| !self.state.update);
        self.state
            .clear
            .extend(deleted.map(|green| green.name.clone()));
        self.state.intent = intended(cx, &self.site, &self.documents.task_definition).await?;
        self.state.handover = Some(handover);
        self.state.phase = Phase::Clear;
        cx.info(PREPARE, "Prepared rollback data");
        cx.unit_ended(PREPARE, true);
        Ok(None)
    }

    /// Refuses to delete a service that gets requests of production by a rule that no step moves, and tells of rules that
    /// bring requests to the new version before anybody shifts them. What an earlier attempt deployed is not what served.
    async fn check_others(
        &self,
        cx: &mut StepContext<'_>,
        (sides, again): (&Sides, bool),
        others: &[Other],
    ) -> Result<(), Failure> {
        let Routes {
            prod_group,
            stage_group,
            ..
        } = &self.routes;
        let goes = sides.green.as_ref().filter(|green| green.works());
        let goes = goes.filter(|_| !self.spec.update_green);
        for other in others {
            if !other.reaches(stage_group) {
                continue;
            }
            let sends =
                format!("Listener {other} sends requests to the stage target group {stage_group}");
            let warning = match goes {
                Some(green) if !again && !other.of_testers => {
                    return Err(wrong(format!(
                        "Invalid request: Invalid Load balancer configuration in Service. In {}, service {} would be \
                         deleted, and it serves: listener {other} sends requests to its target group {stage_group}, and \
                         no step moves them. Let that rule forward to {prod_group}, where the version is that serves, or \
                         to target groups of its own.",
                        self.site, green.name
                    )));
                }
                Some(green) => format!(
                    "{sends}: service {} answers them, and is deleted now; nothing does until the new version runs",
                    green.name
                ),
                None if other.of_testers => continue,
                None => format!(
                    "{sends}, and no step moves them: the new version gets them as soon as it runs. Let that rule forward \
                     to {prod_group}, where the version is that serves"
                ),
            };
            cx.warn_of_run(PREPARE, &warning).await?;
        }
        Ok(())
    }

    /// Targets of somebody else would be taken for those of the new version.
    async fn check_empty(&self) -> Result<(), Failure> {
        let group = &self.routes.stage_group;
        let healthy = balancer::health(&self.site, group).await?.healthy;
        if healthy == 0 {
            return Ok(());
        }
        Err(wrong(format!(
            "The stage target group {group} has {healthy} healthy targets, and no service of {} registered them: \
             another cluster or somebody's hand did. Take them away, or give this deployment a target group of its \
             own.",
            self.site
        )))
    }

    async fn handover(&self, cx: &mut StepContext<'_>, sides: &Sides) -> Result<Handover, Failure> {
        let blue = match &sides.blue {
            Some(blue) => Some(self.blue(cx, blue).await?),
            None => {
                cx.info(
                    PREPARE,
                    "No service serves in the prod target group: this is the first deployment",
                );
                None
            }
        };
        let green = match &sides.green {
            Some(green) => self.green(green).await?,
            None => None,
        };
        Ok(Handover {
            routes: self.routes.clone(),
            blue,
            green,
            new: sides.new.clone(),
            replaced: Replaced::read(cx).await?,
        })
    }

    async fn blue(&self, cx: &mut StepContext<'_>, blue: &Seen) -> Result<Blue, Failure> {
        cx.info(
            PREPARE,
            format!(
                "Service {} serves in {} with {}/{} tasks of {}",
                blue.name,
                self.routes.prod_group,
                blue.running,
                blue.desired,
                short(&blue.task_definition)
            ),
        );
        let mut noted = Blue {
            name: blue.name.clone(),
            arn: blue.arn.clone(),
            task_definition: blue.task_definition.clone(),
            desired: blue.desired,
            running: blue.running,
            scaling: Scaling::describe(&self.site, &blue.name).await?,
            serves: None,
        };
        if blue.unsettled
            && let Standing::Active(found) = describe(&self.site, &blue.name).await?
        {
            what_serves(cx, &self.site, (&mut noted, *found), PREPARE).await?;
        }
        Ok(noted)
    }

    async fn green(&self, green: &Seen) -> Result<Option<Green>, Failure> {
        let Standing::Active(found) = describe(&self.site, &green.name).await? else {
            return Ok(None);
        };
        let Described { service, json } = *found;
        Ok(Some(Green {
            name: green.name.clone(),
            before: Before {
                running: service.running_count(),
                service: keepable(json),
                scaling: Some(Scaling::describe(&self.site, &green.name).await?),
                // It does not serve: it is put back as it was.
                passed_over: None,
            },
            updated: self.spec.update_green,
        }))
    }
}

/// A later attempt must not take what served before the first one for what may be replaced.
fn check_again(first: &Handover, sides: &Sides) -> Result<(), Failure> {
    let before = first.blue.as_ref().map(|blue| blue.name.as_str());
    let now = sides.blue.as_ref().map(|blue| blue.name.as_str());
    if before == now && first.new == sides.new {
        return Ok(());
    }
    Err(wrong(format!(
        "Service {} served when this stage began, and {} serves now: an earlier attempt has moved the requests. \
         Roll the stage back before it is deployed again.",
        before.unwrap_or("none"),
        now.unwrap_or("none")
    )))
}

/// A stage is deployed with a swap or with a traffic shift.
fn check_stage(cx: &StepContext<'_>, routes: &Routes) -> Result<(), Failure> {
    if !routes.is_shift() {
        return Ok(());
    }
    match find_swap(&cx.stage().steps) {
        None => Ok(()),
        Some(swap) => Err(invalid(format!(
            "`isTrafficShift` is true and stage {} has step {swap} of type EcsBlueGreenSwapTargetGroups: a stage \
             moves its requests with one of the two. Take out that step, or `isTrafficShift`.",
            cx.stage().identifier
        ))),
    }
}

fn find_swap(nodes: &[Node]) -> Option<&str> {
    nodes.iter().find_map(|node| match node {
        Node::Step(step) => {
            (step.step_type == "EcsBlueGreenSwapTargetGroups").then(|| step.identifier.as_str())
        }
        Node::Group(group) => find_swap(&group.nodes),
        Node::Parallel(parallel) => find_swap(&parallel.branches),
    })
}
