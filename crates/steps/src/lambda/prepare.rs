//! The first phase of a release: what is there is published, so that it can be found again, and written down.

use std::time::Duration;

use serde_json::Value;
use slipway_model::status::Failure;

use super::calls::{self, Changed};
use super::function::{Standing, refused};
use super::instances::Noted;
use super::release::{Phase, Release, State};
use super::snapshot::{self, Before, RollbackData};
use super::{PREPARE, instances, restore, sharing};
use crate::context::StepContext;
use crate::deployment::Replaced;

impl Release {
    pub(super) async fn prepare(
        &mut self,
        cx: &mut StepContext<'_>,
    ) -> Result<Option<Duration>, Failure> {
        cx.unit_started(PREPARE);
        let short = self.documents.short_name().to_owned();
        cx.info(
            PREPARE,
            format!("Fetching Function Details for function: {short}"),
        );
        let found = calls::get(&self.site, self.name(), None).await?;
        let earlier: Option<State> = cx.saved_by_first_attempt()?;
        // What an earlier attempt of this step found is what was there before this run changed anything.
        let first = earlier.as_ref().and_then(|state| state.rollback.clone());
        let moving = |function: &Value| {
            matches!(
                Standing::of(&function["Configuration"]),
                Standing::Moving(_)
            )
        };
        if found.as_ref().is_some_and(moving) {
            return Ok(self.busy(cx, PREPARE));
        }
        let aliases = match (&first, &found) {
            (Some(first), _) => first.aliases.clone(),
            (None, Some(_)) => snapshot::aliases(&self.site, &self.documents).await?,
            (None, None) => Vec::new(),
        };
        if self.shares {
            sharing::check(self, &aliases, cx).await?;
        }
        let before = match &found {
            _ if first.is_some() => None,
            None => {
                cx.info(
                    PREPARE,
                    format!("Function {short} does not exist: this is its first deployment"),
                );
                None
            }
            Some(function) => match self.before(cx, function).await? {
                Some(before) => Some(before),
                None => return Ok(self.busy(cx, PREPARE)),
            },
        };
        let rollback = match first {
            Some(rollback) => rollback,
            None => RollbackData {
                function: self.name().to_owned(),
                before,
                noted: self.serving(cx, &aliases).await?,
                aliases,
                replaced: Replaced::read(cx).await?,
            },
        };
        self.state.created = earlier.is_some_and(|state| state.created) && found.is_some();
        self.state.rollback = Some(rollback);
        cx.info(PREPARE, "Prepare Rollback Done.");
        cx.unit_ended(PREPARE, true);
        Ok(self.next(if found.is_some() {
            Phase::Code
        } else {
            Phase::Create
        }))
    }

    /// What is noted as serving, or what does where the aliases point elsewhere: a rollback brings them back there.
    async fn serving(
        &self,
        cx: &mut StepContext<'_>,
        aliases: &[Value],
    ) -> Result<Option<Noted>, Failure> {
        let (site, short) = (&self.site, self.documents.short_name());
        let Some(noted) = instances::noted(cx, site, short).await? else {
            return Ok(None);
        };
        let (serves, noted) = noted.found_at(aliases);
        if let Some(noted) = noted {
            let warning = format!(
                "The aliases of function {short} in {site} point to version {}, and Slipway's records say version {noted}: \
                 somebody else moved them, a deployment ended half way, or the records were restored from an older backup. \
                 The deployment goes on; a rollback brings back what they point to now.",
                serves.version()
            );
            cx.warn_of_run(PREPARE, &warning).await?;
        }
        Ok(Some(serves))
    }

    /// Publishes what is there, so that it can be found again; `None` while somebody changes it.
    async fn before(
        &mut self,
        cx: &mut StepContext<'_>,
        function: &Value,
    ) -> Result<Option<Before>, Failure> {
        let configuration = &function["Configuration"];
        let version = match Standing::of(configuration) {
            Standing::Moving(_) => return Ok(None),
            Standing::Broken(reason) => {
                cx.warn(PREPARE, format!("The function is broken before this deployment: {reason}. A rollback cannot bring its code back."));
                None
            }
            Standing::Settled => match self.published(cx, configuration).await? {
                Some(version) => {
                    snapshot::tell(cx, &version, PREPARE);
                    version["Version"].as_str().map(str::to_owned)
                }
                None => return Ok(None),
            },
        };
        let sha256 = configuration["CodeSha256"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let source =
            instances::source(cx, &self.site, self.documents.short_name(), &sha256).await?;
        Ok(Some(Before {
            version,
            description: configuration["Description"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            tags: snapshot::tags(function, &self.documents.tags()),
            source,
            sha256,
        }))
    }

    /// The version that is what `$LATEST` is now: the one that is noted as deployed, or published for it; `None` while
    /// somebody changes the function. A rollback before this one has updated `$LATEST`, and AWS would publish the same
    /// once more.
    async fn published(
        &self,
        cx: &mut StepContext<'_>,
        configuration: &Value,
    ) -> Result<Option<Value>, Failure> {
        let (name, site) = (self.documents.short_name(), &self.site);
        if let Some(noted) = instances::version(cx, site, name).await?
            && let Some(found) = calls::configuration(site, self.name(), Some(&noted)).await?
            && Standing::of(&found) == Standing::Settled
            && restore::same(&found, configuration)
        {
            return Ok(Some(found));
        }
        match calls::publish(site, self.name(), configuration).await? {
            Changed::Done(version) => {
                let number = version["Version"].as_str().unwrap_or_default();
                cx.info(
                    PREPARE,
                    format!("Published what is there as version {number}, to come back to it"),
                );
                Ok(Some(version))
            }
            Changed::Busy | Changed::Moved => Ok(None),
            Changed::NotSo(why) => {
                let what = format!(
                    "Cannot publish what function {name} in {site} is now, to find it again: {why}"
                );
                Err(refused(what))
            }
        }
    }
}
