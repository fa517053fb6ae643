//! `EcsBlueGreenCreateService`: the new version as a service of its own in the stage target group, where it gets
//! no requests yet.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;
use slipway_plan::Node;

use super::super::beside::{self, Beside, Role};
use super::super::change::token;
use super::super::instances::{info, running};
use super::super::manifest::{Documents, TaskDefinition, invalid};
use super::super::phases::{Phases, Turn, walk};
use super::super::removal::{self, Removal};
use super::super::rollback::{Before, Replaced, keepable};
use super::super::scaling::{Scaling, detach};
use super::super::service::{
    Described, Standing, create, create_document, describe, primary, update, update_document,
};
use super::super::site::Site;
use super::super::task_definition::{Intent, Registered, intended, registered, short};
use super::super::watch::{Goal, Seen as Looked, Watch};
use super::super::{DEPLOY, FETCH, PREPARE, cluster, open_unit, told};
use super::routes::Routes;
use super::sides::{Seen, Sides};
use super::spec::{Create, check_create};
use super::{Blue, Green, Handover, Patience, definition, tag, wrong};
use crate::context::StepContext;
use crate::step::{Progress, Step, Undo};

/// The step.
pub struct CreateService;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Look at rules and services, and write down how to undo.
    #[default]
    Prepare,
    /// Delete what was in the stage target group.
    Clear,
    /// Register the task definition.
    Register,
    /// Create or update the service.
    Change,
    /// Wait until it is steady.
    Wait,
    /// Wait until the load balancer finds its targets healthy.
    Healthy,
    /// Put scaling on.
    Scale,
    /// Tag it, and count it.
    Tag,
    /// Nothing.
    Done,
}

/// Progress of the step; the other blue-green steps read it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) phase: Phase,
    routes: Option<Routes>,
    pub(super) documents: Option<String>,
    pub(super) handover: Option<Handover>,
    /// Services that this attempt deletes first.
    clear: Vec<String>,
    /// Whether this attempt updates the service that has the name already.
    update: bool,
    /// Whether what serves is not tagged so.
    mistagged: bool,
    /// Tasks of the new version.
    desired: i64,
    intent: Option<Intent>,
    /// Id of the updated service's primary deployment when this attempt began.
    primary_before: Option<String>,
    pub(super) task_definition: Option<Registered>,
    pub(super) sent: Vec<String>,
    removal: Removal,
    deployment: Option<String>,
    /// ARN of the new service.
    pub(super) arn: Option<String>,
    pub(super) scale_in_swap: bool,
    watch: Watch,
    #[serde(default)]
    patience: Patience,
}

#[async_trait]
impl Step for CreateService {
    fn step_type(&self) -> &'static str {
        "EcsBlueGreenCreateService"
    }

    fn units(&self) -> &'static [&'static str] {
        &[FETCH, PREPARE, DEPLOY]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        check_create(spec)
    }

    fn undo(&self) -> Undo {
        Undo::Step("EcsBlueGreenRollback")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let result = match Creation::resume(cx).await {
            Ok(creation) => walk(creation, cx).await,
            Err(failure) => Err(failure),
        };
        told(cx, self.units(), result)
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let state: State = cx.saved()?;
        let unit = open_unit(cx, self.units());
        if let Some(reasons) = state.watch.evidence() {
            cx.warn(unit, format!("Tasks stopped because: {reasons}"));
        }
        if state.phase >= Phase::Change {
            cx.warn(
                unit,
                "The new service stays in ECS, without requests, until EcsBlueGreenRollback or the next deployment",
            );
        }
        Ok(())
    }
}

/// One call's worth of the step.
struct Creation {
    site: Site,
    spec: Create,
    state: State,
    routes: Routes,
    documents: Documents,
    /// Whether the phase was begun by an earlier call, which may have been cut off after its effect.
    resumed: bool,
}

#[async_trait]
impl Phases for Creation {
    type State = State;

    fn state(&self) -> &State {
        &self.state
    }

    fn saved(&mut self) {
        self.resumed = false;
    }

    async fn turn(&mut self, cx: &mut StepContext<'_>) -> Result<Turn, Failure> {
        Ok(match self.state.phase {
            Phase::Prepare => self.prepare(cx).await?.into(),
            Phase::Clear => self.clear(cx).await?.into(),
            Phase::Register => self.register(cx).await?.into(),
            Phase::Change => self.change(cx).await?.into(),
            Phase::Wait => self.wait(cx).await?.into(),
            Phase::Healthy => self.healthy(cx).await?.into(),
            Phase::Scale => self.scale(cx).await?.into(),
            Phase::Tag => self.tag(cx).await?.into(),
            Phase::Done => Turn::Done(self.ended(cx).await?),
        })
    }
}

impl Creation {
    async fn resume(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let spec = Create::read(cx.spec())?;
        let mut state: State = cx.saved()?;
        cx.unit_started(FETCH);
        let site = Site::of_stage(cx).await?;
        let routes = match state.routes.clone() {
            Some(routes) => routes,
            None => Routes::find(&site, &spec).await?,
        };
        let names = [(
            "targetGroupArn",
            slipway_expr::Value::from_json(&json!(routes.stage_group)),
        )];
        let documents = Documents::once_with(cx, &mut state.documents, &names).await?;
        state.routes = Some(routes.clone());
        state.scale_in_swap = spec.scale_in_swap;
        let resumed = state.phase != Phase::Prepare;
        Ok(Self {
            site,
            spec,
            state,
            routes,
            documents,
            resumed,
        })
    }

    /// Writes down how rules and services are.
    async fn prepare(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        cx.unit_started(PREPARE);
        check_stage(cx, &self.routes)?;
        definition::check(&self.site, &self.documents, &self.routes).await?;
        let base = self.documents.service_name()?;
        let sides = Sides::look(&self.site, &self.routes, base, self.spec.update_green).await?;
        let mut names = vec![base, sides.new.as_str()];
        let present = [&sides.blue, &sides.green].into_iter().flatten();
        names.extend(present.map(|one| one.name.as_str()));
        cluster::check_owner(cx, &self.site, &names).await?;
        let running = sides.blue.as_ref().map(|blue| blue.running);
        let running = running.filter(|_| self.spec.same_as_running);
        self.state.desired = definition::desired(&self.documents.service, running)?;

        let earlier: Option<State> = cx.saved_by_first_attempt()?;
        // What an earlier attempt found is how things were before this run changed anything.
        let handover = match earlier.and_then(|state| state.handover) {
            Some(first) => {
                check_again(&first, &sides)?;
                first
            }
            None => self.handover(cx, &sides).await?,
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
        Ok(Blue {
            name: blue.name.clone(),
            arn: blue.arn.clone(),
            task_definition: blue.task_definition.clone(),
            desired: blue.desired,
            running: blue.running,
            scaling: Scaling::describe(&self.site, &blue.name).await?,
        })
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
            },
            updated: self.spec.update_green,
        }))
    }

    fn made(&self) -> Result<&Handover, Failure> {
        let handover = self.state.handover.as_ref();
        handover.ok_or_else(|| wrong("The rollback data of this step were not written.".to_owned()))
    }

    /// Makes room in the stage target group.
    async fn clear(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        cx.unit_started(DEPLOY);
        while let Some(name) = self.state.clear.first().cloned() {
            let (site, routes) = (&self.site, &self.routes);
            let serves = self.made()?.blue.as_ref();
            let serves = serves.is_some_and(|blue| blue.name == name);
            let ours = |found: &Described| check_removable(found, routes, serves);
            let removal = &mut self.state.removal;
            if !removal.go_on(cx, (site, &name), DEPLOY, ours).await? {
                return Ok(Some(removal::PAUSE));
            }
            beside::forget(cx, site, &name).await?;
            cx.info(DEPLOY, format!("Deleted non-blue version Service: {name}"));
            self.state.clear.remove(0);
            self.state.removal = Removal::default();
            cx.save(&self.state).await?;
        }
        if let Some(blue) = self.made()?.blue.clone() {
            if self.state.mistagged {
                tag::set(cx, &self.site, (&blue.name, &blue.arn), tag::BLUE, DEPLOY).await?;
            }
            // Both versions are behind one rule: what scales the old one would work against the new one.
            if self.routes.is_shared() {
                detach(cx, &self.site, &blue.name, DEPLOY).await?;
            }
        }
        self.state.phase = Phase::Register;
        Ok(None)
    }

    async fn register(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let source = &self.documents.task_definition;
        let from = (self.state.intent.as_ref(), self.resumed);
        let registered = registered(cx, &self.site, source, from, DEPLOY).await?;
        self.state.task_definition = Some(registered);
        self.state.phase = Phase::Change;
        Ok(None)
    }

    fn task_definition(&self) -> &str {
        let registered = self.state.task_definition.as_ref();
        registered.map_or("", |registered| &registered.arn)
    }

    async fn change(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let name = self.made()?.new.clone();
        let service = match describe(&self.site, &name).await? {
            Standing::Draining => return Ok(Some(removal::PAUSE)),
            Standing::Active(found) if self.made_by_us(&found) => found.service,
            Standing::Active(found) if self.state.update => {
                self.state.primary_before = primary(&found.service)
                    .and_then(|d| d.id())
                    .map(str::to_owned);
                self.state.watch = Watch::after(&found.service);
                self.update(cx, &name).await?
            }
            Standing::Active(found) => {
                let runs = found.service.task_definition();
                return Err(wrong(format!(
                    "Service {name} in {} appeared while this step was about to create it; it runs {}. It is not \
                     touched. Run the pipeline again.",
                    self.site,
                    short(runs.unwrap_or("an unknown task definition"))
                )));
            }
            Standing::Absent => self.create(cx, &name).await?,
        };
        self.state.deployment = primary(&service).and_then(|d| d.id()).map(str::to_owned);
        self.state.arn = service.service_arn().map(str::to_owned);
        self.state.phase = Phase::Wait;
        Ok(None)
    }

    /// Whether a call that was cut off created or updated the service already.
    fn made_by_us(&self, found: &Described) -> bool {
        let Some(primary) = primary(&found.service) else {
            return false;
        };
        let changed = !self.state.update || primary.id() != self.state.primary_before.as_deref();
        self.resumed
            && (!self.state.update || self.state.primary_before.is_some())
            && changed
            && primary.task_definition() == Some(self.task_definition())
    }

    async fn create(
        &mut self,
        cx: &mut StepContext<'_>,
        name: &str,
    ) -> Result<aws_sdk_ecs::types::Service, Failure> {
        self.note_green(cx, name).await?;
        let definition = cx.secrets().reveal(self.documents.service.clone()).await?;
        let arn = self.task_definition().to_owned();
        let mut document = create_document(&self.site, &definition, &arn, &token(cx));
        document["serviceName"] = json!(name);
        document["desiredCount"] = json!(self.state.desired);
        cx.info(
            DEPLOY,
            format!(
                "Creating Stage Service {name} with task definition {arn} and desired count {}",
                self.state.desired
            ),
        );
        let service = create(&self.site, &document).await?;
        let made = service.service_arn().unwrap_or_default();
        cx.info(
            DEPLOY,
            format!("Created Stage Service {name} with Arn {made}"),
        );
        Ok(service)
    }

    async fn update(
        &mut self,
        cx: &mut StepContext<'_>,
        name: &str,
    ) -> Result<aws_sdk_ecs::types::Service, Failure> {
        self.note_green(cx, name).await?;
        detach(cx, &self.site, name, DEPLOY).await?;
        let definition = cx.secrets().reveal(self.documents.service.clone()).await?;
        let arn = self.task_definition().to_owned();
        let (mut document, kept) = update_document(&self.site, &definition, &arn);
        if !kept.is_empty() {
            let kept = kept.join("`, `");
            cx.info(
                DEPLOY,
                format!("`{kept}` stay as the service was created: ECS cannot update them"),
            );
        }
        document["service"] = json!(name);
        document["desiredCount"] = json!(self.state.desired);
        let by_arn = matches!(self.documents.task_definition, TaskDefinition::Arn(_));
        if self.spec.force || by_arn {
            document["forceNewDeployment"] = json!(true);
        }
        let fields = document.as_object().into_iter().flatten();
        self.state.sent = fields.map(|(name, _)| name.clone()).collect();
        // The rollback must know what was set even when this call is cut off.
        cx.save(&self.state).await?;
        cx.info(
            DEPLOY,
            format!(
                "Updating Stage Service {name} with task definition {arn} and desired count {}",
                self.state.desired
            ),
        );
        update(&self.site, &document).await
    }

    /// Its tasks count from now on, also when this call is cut off.
    async fn note_green(&self, cx: &mut StepContext<'_>, name: &str) -> Result<(), Failure> {
        let green = Beside {
            service_name: name.to_owned(),
            task_definition_arn: self.task_definition().to_owned(),
            run: cx.run().clone(),
            role: Role::Green,
        };
        let base = self.documents.service_name()?;
        beside::add(cx, &self.site, base, green).await
    }

    async fn wait(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let (name, arn) = (self.made()?.new.clone(), self.task_definition().to_owned());
        let deployment = self.state.deployment.clone();
        let goal = Goal {
            service: &name,
            task_definition: &arn,
            deployment: deployment.as_deref(),
            unit: DEPLOY,
        };
        Ok(match self.state.watch.look(cx, &self.site, &goal).await? {
            Looked::Moving => Some(self.state.watch.pause()),
            Looked::Steady => {
                self.state.phase = Phase::Healthy;
                None
            }
        })
    }

    /// What ECS calls steady may still fail the checks of the load balancer.
    async fn healthy(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let routes = &self.routes;
        let others = self.made()?.blue.as_ref().filter(|_| routes.is_shared());
        let wanted = self.state.desired + others.map_or(0, |blue| blue.running);
        let targets = (routes.stage_group.as_str(), wanted);
        let patience = &mut self.state.patience;
        let pause = patience.look(cx, &self.site, targets, DEPLOY).await?;
        self.state.phase = match pause {
            // Unhealthy tasks are replaced by ECS, which counts them and may give up.
            Some(_) => Phase::Wait,
            None => Phase::Scale,
        };
        Ok(pause)
    }

    async fn scale(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let name = self.made()?.new.clone();
        cx.info(
            DEPLOY,
            format!(
                "Target Group with Arn: {} is associated with Stage Service {name}",
                self.routes.stage_group
            ),
        );
        let scaling = Scaling::of_manifests(&self.site, &name, &self.documents);
        match self.spec.scale_in_swap && !scaling.is_empty() {
            true => cx.info(DEPLOY, "Application scaling is attached in the swap step"),
            false => scaling.attach(cx, &self.site, DEPLOY).await?,
        }
        self.state.phase = Phase::Tag;
        Ok(None)
    }

    async fn tag(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let name = self.made()?.new.clone();
        let arn = self.state.arn.clone().unwrap_or_default();
        tag::set(cx, &self.site, (&name, &arn), tag::GREEN, DEPLOY).await?;
        beside::recount(cx, &self.site).await?;
        self.state.phase = Phase::Done;
        Ok(None)
    }

    async fn ended(&self, cx: &mut StepContext<'_>) -> Result<Value, Failure> {
        let (site, name) = (&self.site, &self.made()?.new);
        let tasks = running(site, name).await?;
        let instances: Vec<Value> = tasks.iter().map(|task| info(site, name, task)).collect();
        cx.info(
            DEPLOY,
            format!(
                "Stage Service {name} runs {} tasks of {}",
                instances.len(),
                short(self.task_definition())
            ),
        );
        cx.unit_ended(DEPLOY, true);
        let outcome = json!({"serverInstanceInfoList": instances});
        Ok(json!({
            "output": {
                "serviceName": name,
                "taskDefinitionArn": self.task_definition(),
                "targetGroupArn": self.routes.stage_group,
                "prodTargetGroupArn": self.routes.prod_group,
                "deploymentInfoOutcome": outcome,
            },
            "deploymentInfoOutcome": outcome,
        }))
    }
}

/// A later look, just before the deletion: a service that serves by now stays.
fn check_removable(found: &Described, routes: &Routes, serves: bool) -> Result<(), Failure> {
    let groups = found.service.load_balancers().iter();
    let mut groups = groups.filter_map(|one| one.target_group_arn());
    let on_prod = !routes.is_shared() && groups.any(|group| group == routes.prod_group);
    if !serves && !on_prod {
        return Ok(());
    }
    Err(wrong(format!(
        "Service {} is not deleted: it is in the prod target group {}.",
        found.service.service_name().unwrap_or_default(),
        routes.prod_group
    )))
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
