//! The change itself: a rolling deployment creates its service or updates it, once.

use std::time::Duration;

use crate::deployment::token;
use serde_json::json;
use slipway_model::status::{ErrorType, Failure};

use super::manifest::TaskDefinition;
use super::rolling_deploy::{Deployment, Phase};
use super::scaling::detach;
use super::service::{
    Described, Standing, create, create_document, describe, primary, update, update_document,
};
use super::{DEPLOY, foreign};
use crate::context::StepContext;

/// Time between two looks at a service that is being deleted.
const DRAIN_PAUSE: Duration = Duration::from_secs(5);

impl Deployment {
    pub(super) async fn change(
        &mut self,
        cx: &mut StepContext<'_>,
    ) -> Result<Option<Duration>, Failure> {
        cx.unit_started(DEPLOY);
        let name = self.name()?;
        let standing = describe(&self.site, &name).await?;
        let Described { service, json } = match standing {
            Standing::Draining if self.first() => {
                cx.info(
                    DEPLOY,
                    format!("Waiting for existing Service {name} to reach inactive state"),
                );
                return Ok(Some(DRAIN_PAUSE));
            }
            Standing::Absent if self.first() => self.create(cx, &name).await?,
            Standing::Active(described) => match self.made_by_us(&described) {
                true => *described,
                false if self.created_by_another(cx) => {
                    return Err(self.drifted(&name, "was created"));
                }
                false => self.update(cx, &name).await?,
            },
            Standing::Absent | Standing::Draining => return Err(self.drifted(&name, "was deleted")),
        };
        self.state.deployment = primary(&service).and_then(|d| d.id()).map(str::to_owned);
        self.state.put = Some(foreign::digests(&json));
        if !self.first() {
            self.owes(cx, Some("is"));
        }
        self.state.phase = Phase::Wait;
        Ok(None)
    }

    /// A service that appeared since the look, and that this step did not create.
    fn created_by_another(&self, cx: &StepContext<'_>) -> bool {
        self.first() && cx.attempt() == 0
    }

    /// Whether an interrupted call already brought the service to the new task definition.
    fn made_by_us(&self, described: &Described) -> bool {
        let Some(primary) = primary(&described.service) else {
            return false;
        };
        self.resumed
            && primary.task_definition() == Some(self.task_definition())
            && primary.id() != self.state.primary_before.as_deref()
    }

    async fn create(&mut self, cx: &mut StepContext<'_>, name: &str) -> Result<Described, Failure> {
        let definition = cx.secrets().reveal(self.documents.service.clone()).await?;
        let token = token(cx);
        let document = create_document(&self.site, &definition, self.task_definition(), &token);
        cx.info(
            DEPLOY,
            format!(
                "Creating Service {name} with task definition {}",
                self.task_definition()
            ),
        );
        let created = create(&self.site, &document).await?;
        cx.info(
            DEPLOY,
            format!(
                "Created Service {name} with Arn {}",
                created.service.service_arn().unwrap_or_default()
            ),
        );
        Ok(created)
    }

    async fn update(&mut self, cx: &mut StepContext<'_>, name: &str) -> Result<Described, Failure> {
        if !self.spec.skip_scaling {
            self.owes(cx, Some("may be"));
            detach(cx, &self.site, name, DEPLOY).await?;
        }
        let definition = cx.secrets().reveal(self.documents.service.clone()).await?;
        let (mut document, kept) = update_document(&self.site, &definition, self.task_definition());
        if !kept.is_empty() && !self.resumed {
            let kept = kept.join("`, `");
            cx.info(
                DEPLOY,
                format!("`{kept}` stay as the service was created: ECS cannot update them"),
            );
        }
        if self.spec.same_as_running {
            let before = self
                .state
                .rollback
                .as_ref()
                .and_then(|data| data.before.as_ref());
            let running = before.map_or(0, |before| before.running);
            cx.info(
                DEPLOY,
                format!("Keeping the {running} tasks that run now as desired count"),
            );
            document["desiredCount"] = json!(running);
        }
        let by_arn = matches!(self.documents.task_definition, TaskDefinition::Arn(_));
        if self.spec.force || by_arn {
            document["forceNewDeployment"] = json!(true);
        }
        self.state.sent = document
            .as_object()
            .into_iter()
            .flatten()
            .map(|(k, _)| k.clone())
            .collect();
        // The rollback must know what was set even when this call is cut off.
        cx.save(&self.state).await?;
        cx.info(
            DEPLOY,
            format!(
                "Updating Service {name} with task definition {}",
                self.task_definition()
            ),
        );
        let updated = update(&self.site, &document).await?;
        cx.info(
            DEPLOY,
            format!(
                "Updated Service {name} with Arn {}",
                updated.service.service_arn().unwrap_or_default()
            ),
        );
        Ok(updated)
    }

    fn drifted(&self, name: &str, what: &str) -> Failure {
        Failure {
            error: ErrorType::Unknown,
            message: format!(
                "Service {name} in {} {what} by somebody or something else while this step was deploying \
                 it. Run the pipeline again.",
                self.site
            ),
            left_behind: None,
        }
    }
}
