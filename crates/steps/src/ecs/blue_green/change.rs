//! What `EcsBlueGreenCreateService` changes: it makes room in the stage target group, and creates or updates the
//! service there.

use std::time::Duration;

use aws_sdk_ecs::types::Service;
use serde_json::json;
use slipway_model::status::Failure;

use super::super::DEPLOY;
use super::super::beside::{self, Beside, Role};
use super::super::manifest::TaskDefinition;
use super::super::removal::{self, Removal};
use super::super::scaling::detach;
use super::super::service::{
    Described, Standing, create, create_document, describe, primary, update, update_document,
};
use super::super::task_definition::short;
use super::super::watch::Watch;
use super::create::{Creation, Phase};
use super::routes::Routes;
use super::{tag, wrong};
use crate::context::StepContext;
use crate::deployment::token;

impl Creation {
    /// Makes room in the stage target group.
    pub(super) async fn clear(
        &mut self,
        cx: &mut StepContext<'_>,
    ) -> Result<Option<Duration>, Failure> {
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

    pub(super) async fn change(
        &mut self,
        cx: &mut StepContext<'_>,
    ) -> Result<Option<Duration>, Failure> {
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

    async fn create(&mut self, cx: &mut StepContext<'_>, name: &str) -> Result<Service, Failure> {
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
        let service = create(&self.site, &document).await?.service;
        let made = service.service_arn().unwrap_or_default();
        cx.info(
            DEPLOY,
            format!("Created Stage Service {name} with Arn {made}"),
        );
        Ok(service)
    }

    async fn update(&mut self, cx: &mut StepContext<'_>, name: &str) -> Result<Service, Failure> {
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
        Ok(update(&self.site, &document).await?.service)
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
