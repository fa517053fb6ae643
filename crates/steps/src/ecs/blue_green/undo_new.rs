//! What a rollback does with the service that was deployed: it goes, keeps no task, or goes back to how it was.

use std::time::Duration;

use serde_json::json;
use slipway_model::status::Failure;

use super::super::removal;
use super::super::scaling::detach;
use super::super::service::{Described, Standing, describe, update};
use super::super::site::Site;
use super::super::task_definition::short;
use super::super::{ROLLBACK, foreign};
use super::Green;
use super::create::Phase as Creating;
use super::made::Made;
use super::rollback::{Phase, Undoing};
use crate::context::StepContext;

impl Undoing {
    /// Whether the new service stays, without tasks or as it was. Where there was no service, none is left.
    pub(super) fn stays(&self) -> bool {
        self.made.handover.blue.is_some() || self.made.handover.green.is_some()
    }

    pub(super) async fn new_service(
        &mut self,
        cx: &mut StepContext<'_>,
    ) -> Result<Option<Duration>, Failure> {
        if self.made.phase < Creating::Change {
            self.state.phase = Phase::Scale;
            return Ok(None);
        }
        if !self.stays() {
            return self.remove(cx).await;
        }
        let name = self.made.handover.new.clone();
        let found = describe(&self.site, &name).await?;
        if let Standing::Active(found) = found {
            let updated = self.made.handover.green.clone();
            match updated.filter(|green| green.updated && green.name == name) {
                Some(green) => self.restore(cx, &found, &green).await?,
                None => self.stop(cx, &found).await?,
            }
        }
        self.state.phase = Phase::Scale;
        Ok(None)
    }

    async fn remove(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let (site, made) = (&self.site, &self.made);
        let name = made.handover.new.as_str();
        let ours = |found: &Described| check_ours(site, made, found);
        let removal = &mut self.state.removal;
        if !removal.go_on(cx, (site, name), ROLLBACK, ours).await? {
            return Ok(Some(removal::PAUSE));
        }
        self.state.phase = Phase::Scale;
        Ok(None)
    }

    /// The new service keeps no task.
    async fn stop(&self, cx: &mut StepContext<'_>, found: &Described) -> Result<(), Failure> {
        check_ours(&self.site, &self.made, found)?;
        let name = self.made.handover.new.as_str();
        detach(cx, &self.site, name, ROLLBACK).await?;
        let desired = found.service.desired_count();
        if desired > 0 {
            cx.info(
                ROLLBACK,
                format!("Scaling Service {name} from {desired} to 0 tasks"),
            );
            let document = json!({
                "cluster": self.site.cluster, "service": name, "desiredCount": 0,
            });
            update(&self.site, &document).await?;
        }
        // As in Harness: whoever looks for the reason finds the service as it failed. What it ran before was deleted.
        let runs = found.service.task_definition().unwrap_or_default();
        cx.info(
            ROLLBACK,
            format!(
                "Service {name} stays without tasks and requests, on {}, for who looks for the reason; the next \
                 deployment replaces it",
                short(runs)
            ),
        );
        Ok(())
    }

    /// The green service that was updated gets back what it ran.
    async fn restore(
        &self,
        cx: &mut StepContext<'_>,
        found: &Described,
        green: &Green,
    ) -> Result<(), Failure> {
        let before = &green.before;
        let runs = found.service.task_definition();
        if !self.made.is_ours(runs) && runs != Some(before.task_definition()) {
            check_ours(&self.site, &self.made, found)?;
        }
        detach(cx, &self.site, &green.name, ROLLBACK).await?;
        cx.info(
            ROLLBACK,
            format!(
                "Updating Service {} back to {} with {} tasks",
                green.name,
                short(before.task_definition()),
                before.desired()
            ),
        );
        let document = before.restore_document(&self.site, &green.name, &self.made.sent);
        update(&self.site, &document).await?;
        match &before.scaling {
            Some(scaling) => scaling.attach(cx, &self.site, ROLLBACK).await,
            None => Ok(()),
        }
    }
}

fn check_ours(site: &Site, made: &Made, found: &Described) -> Result<(), Failure> {
    let runs = found.service.task_definition();
    match made.is_ours(runs) {
        true => Ok(()),
        false => {
            let put = made.task_definition.as_deref();
            Err(foreign::created((site, &made.handover.new), runs, put))
        }
    }
}
