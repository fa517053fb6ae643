//! The first phases of a rolling deployment: what is there is written down, and a refresh in progress is ended or waited
//! for.

use std::time::Duration;

use slipway_model::status::Failure;

use super::before::Before;
use super::canary_deploy::{canary_of, warn_of_left};
use super::group::{self, Group, Standing};
use super::instances::By;
use super::refresh::{self, Shown};
use super::rolling_deploy::{Deployment, IN_PROGRESS, Phase, RollbackData, State, healthy};
use super::served::Told;
use super::spec::sizes;
use super::{PREPARE, scaling_loss, template, wrong};
use crate::context::StepContext;
use crate::deployment::{Replaced, spec};

impl Deployment {
    /// Writes down how the group is now, and looks whether everything is there that is needed.
    pub(super) async fn prepare(
        &mut self,
        cx: &mut StepContext<'_>,
    ) -> Result<Option<Duration>, Failure> {
        cx.unit_started(PREPARE);
        let (site, name) = (&self.site, self.documents.group.clone());
        healthy(cx.spec())?;
        let canary = canary_of(&name);
        let mut names = vec![name.as_str()];
        names.extend(Some(canary.as_str()).filter(|one| super::name::check(one).is_ok()));
        let mut seen = group::described(site, &names).await?;
        let mut take = |name: &str| {
            let at = seen.iter().position(|group| group.name() == name)?;
            Some(seen.swap_remove(at))
        };
        let (found, canary) = (take(&name), take(&canary));
        if found.as_ref().is_some_and(Group::is_leaving) {
            return Ok(Some(Duration::from_secs(5)));
        }
        let sizes = sizes(cx.spec(), &self.documents.configuration, found.as_ref())?;
        self.state.sizes = Some(sizes);
        self.state.image = match &self.documents.image {
            Some(wanted) => Some(wanted.find(cx, site).await?),
            None => None,
        };
        let earlier: Option<State> = cx.saved_by_first_attempt()?;
        // What an earlier attempt of this step found is what was there before this run changed anything.
        self.state.looks_again = earlier.as_ref().is_some_and(|state| state.looks_again);
        let rollback = match earlier.and_then(|state| state.rollback) {
            Some(rollback) => RollbackData {
                template: template::look(site, &name).await?,
                ..rollback
            },
            None => {
                let (rollback, told) = self.look(cx, &name, found.as_ref()).await?;
                warn_of_left(cx, &self.site, (&name, canary.as_ref())).await?;
                self.state.looks_again = told == Told::NotYet;
                rollback
            }
        };
        self.state.phase = match &found {
            Some(_) => Phase::Clear,
            None => Phase::Template,
        };
        if found.is_some() {
            self.check_progress(cx, &name).await?;
        }
        self.state.rollback = Some(rollback);
        cx.info(PREPARE, "Prepared rollback data");
        cx.unit_ended(PREPARE, true);
        Ok(None)
    }

    async fn look(
        &self,
        cx: &mut StepContext<'_>,
        name: &str,
        found: Option<&Group>,
    ) -> Result<(RollbackData, Told), Failure> {
        let template = template::look(&self.site, name).await?;
        let mut serves = Told::Decided;
        let before = match found {
            Some(group) => {
                let mut before = Before::look(cx, &self.site, group, &template).await?;
                let configuration = &self.documents.configuration;
                before.look_at_hooks(&self.site, configuration).await?;
                let asked = (group, before.version.clone());
                serves = before.look_what_serves(cx, &self.site, asked, true).await?;
                scaling_loss::warn(cx, &self.site, (&before, name), &self.documents).await?;
                Some(before)
            }
            None => None,
        };
        let told = match &before {
            Some(before) => before.told(),
            None => {
                format!("Auto Scaling group {name} does not exist: this is its first deployment")
            }
        };
        cx.info(PREPARE, told);
        let rollback = RollbackData {
            group: name.to_owned(),
            before,
            template,
            replaced: Replaced::read(cx).await?,
        };
        Ok((rollback, serves))
    }

    /// A refresh in progress blocks the one of this deployment: better to say so before anything is changed.
    async fn check_progress(&self, cx: &StepContext<'_>, name: &str) -> Result<(), Failure> {
        let handle = spec::choice(cx.spec(), "handleInProgressInstanceRefresh", IN_PROGRESS)?;
        // One of an earlier attempt is this step's own.
        if !matches!(handle, None | Some("Fail")) || cx.attempt() > 0 {
            return Ok(());
        }
        let active = refresh::newest(&self.site, name).await?;
        let Some(active) = active.filter(Shown::is_active) else {
            return Ok(());
        };
        Err(wrong(format!(
            "Instance refresh {} of Auto Scaling group {name} in {} is in progress, and blocks another one. Wait until \
             it has ended, or let `handleInProgressInstanceRefresh` be Cancel or Wait.",
            active.id(),
            self.site
        )))
    }

    /// Ends a refresh that is in progress, or waits for its end, as the step says; one of an earlier attempt is ended.
    pub(super) async fn clear(
        &mut self,
        cx: &mut StepContext<'_>,
    ) -> Result<Option<Duration>, Failure> {
        let handle = spec::choice(cx.spec(), "handleInProgressInstanceRefresh", IN_PROGRESS)?;
        let own = cx.attempt() > 0;
        if own || matches!(handle, Some("Cancel" | "Wait")) {
            let place = (&self.site, self.documents.group.as_str());
            let cancels = own || handle == Some("Cancel");
            if let Some(pause) = refresh::clear(cx, place, cancels, PREPARE).await? {
                // What an earlier attempt decided stays, and the refresh is its own.
                self.state.looks_again |= !own;
                return Ok(Some(pause));
            }
        }
        if self.state.looks_again {
            self.look_again(cx).await?;
        }
        self.state.phase = Phase::Template;
        Ok(None)
    }

    /// What serves after a refresh that was in progress: it may have brought its version, or have ended without it.
    async fn look_again(&mut self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let data = self.rollback()?.clone();
        let (Some(mut before), Standing::There(found)) =
            (data.before, group::describe(&self.site, &data.group).await?)
        else {
            return Ok(());
        };
        // What somebody else has changed meanwhile is refused before the update.
        if before.is_still(&found, &[]) {
            let asked = template::in_use(&self.site, &before.group, &data.template).await?;
            before.by = Some(By::noted(cx, &data.group, asked.as_ref()).await?);
            before.version.clone_from(&asked);
            before
                .look_what_serves(cx, &self.site, (&found, asked), true)
                .await?;
            if let Some(data) = &mut self.state.rollback {
                data.before = Some(before);
            }
        }
        self.state.looks_again = false;
        Ok(())
    }
}
