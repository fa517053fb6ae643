//! The first phase of a release: what is there is published, so that it can be found again, and written down.

use std::time::Duration;

use serde_json::Value;
use slipway_model::status::Failure;

use super::alias::Target;
use super::calls::{self, Changed};
use super::function::{LATEST, Standing, refused};
use super::instances::Noted;
use super::release::{Phase, Release, State};
use super::snapshot::{self, Before, RollbackData};
use super::{DEPLOY, PREPARE, instances, restore, sharing};
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
                noted: self.serving(cx, (&aliases, before.as_ref())).await?,
                before,
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
        (aliases, before): (&[Value], Option<&Before>),
    ) -> Result<Option<Noted>, Failure> {
        let (site, short) = (&self.site, self.documents.short_name());
        let latest = before.and_then(|before| before.version.as_deref());
        self.warn_of_latest(cx, (aliases, latest)).await?;
        let Some(noted) = instances::noted(cx, site, short).await? else {
            return Ok(None);
        };
        let (serves, noted) = noted.found_at(aliases, latest);
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

    /// Warns in the run of aliases that somebody pointed to `$LATEST`: what is uploaded serves there at once.
    async fn warn_of_latest(
        &self,
        cx: &mut StepContext<'_>,
        (aliases, latest): (&[Value], Option<&str>),
    ) -> Result<(), Failure> {
        for alias in aliases
            .iter()
            .filter(|alias| alias["FunctionVersion"] == LATEST)
        {
            let meanwhile = match latest {
                Some(version) => format!(
                    "it points to version {version}, which is the same, until the new version is ready"
                ),
                None => "its requests reach the new code as soon as that is uploaded".to_owned(),
            };
            let warning = format!(
                "Alias {} of function {} in {} points to {LATEST}, where code serves before it is seen to work: {meanwhile}. \
                 A rollback brings it back to {LATEST}.",
                alias["Name"].as_str().unwrap_or_default(),
                self.documents.short_name(),
                self.site
            );
            cx.warn_of_run(PREPARE, &warning).await?;
        }
        Ok(())
    }

    /// Points aliases that were at `$LATEST` to what that was published as, before it is changed: how long to wait, where AWS
    /// is not done with that version. An alias that somebody has moved meanwhile is theirs.
    pub(super) async fn hold_aliases(
        &mut self,
        cx: &mut StepContext<'_>,
    ) -> Result<Option<Duration>, Failure> {
        let Some(rollback) = &self.state.rollback else {
            return Ok(None);
        };
        let at_latest = |alias: &&Value| alias["FunctionVersion"] == LATEST;
        let held: Vec<&Value> = rollback.aliases.iter().filter(at_latest).collect();
        let (Some(version), false) = (rollback.version(), held.is_empty()) else {
            return Ok(None);
        };
        let published = calls::configuration(&self.site, self.name(), Some(version)).await?;
        match published.as_ref().map(Standing::of) {
            Some(Standing::Settled) => {}
            Some(Standing::Moving(_)) => return Ok(Some(self.pause())),
            Some(Standing::Broken(_)) | None => return Ok(None),
        }
        for alias in held {
            let name = alias["Name"].as_str().unwrap_or_default();
            let now = calls::alias(&self.site, self.name(), name).await?;
            let Some(now) = now.filter(|now| now["FunctionVersion"] == LATEST) else {
                continue;
            };
            let target = Target {
                site: &self.site,
                function: self.name(),
                unit: DEPLOY,
            };
            let wanted = calls::whole_alias(version);
            target.set(cx, (name, Some(&now)), wanted).await?;
        }
        Ok(None)
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
