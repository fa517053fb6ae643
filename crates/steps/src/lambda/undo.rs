//! The way back from a release: aliases first, because they carry the traffic, then code and configuration, and
//! last the version that nobody needs any more. What somebody else changed since stays.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::calls::{self, Changed};
use super::function::{Standing, Watch, broken, refused, vanished};
use super::instances::{self, Deployed};
use super::manifest::{Documents, short};
use super::ours::Ours;
use super::ready::{Ready, ready};
use super::release::{Phase as Released, State as ReleaseState};
use super::restore::{as_request, fits};
use super::site::Site;
use super::snapshot::{Before, RollbackData};
use super::{ROLLBACK, package};
use crate::context::StepContext;
use crate::deployment::manifest::kept;
use crate::deployment::{Foreign, Touched, unended};
use crate::step::Progress;

/// How many versions after the one before are looked at for one that an interrupted call published.
const MOST_LOOKED_AT: u64 = 20;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Phase {
    /// Aliases back to the versions that they pointed to.
    #[default]
    Aliases,
    /// The code of `$LATEST`.
    Code,
    /// Its configuration and tags.
    Configure,
    /// Wait for that.
    Wait,
    /// Aliases back that pointed to `$LATEST`.
    LatestAliases,
    /// The version of the release goes.
    Version,
    /// Note what is there.
    Note,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    phase: Phase,
    watch: Watch,
    /// Functions of the stage that are rolled back.
    #[serde(default)]
    done: Vec<String>,
}

/// Goes on with the undoing of what a step of type `release` did in this stage.
pub(super) async fn advance(cx: &mut StepContext<'_>, release: &str) -> Result<Progress, Failure> {
    cx.unit_started(ROLLBACK);
    let done = cx.saved::<State>()?.done;
    let attempts = cx.saved_by_all::<ReleaseState>(release)?;
    let Some(touched) = Touched::next(attempts, changed, &done) else {
        cx.info(
            ROLLBACK,
            "Nothing to roll back: the deployment ended before its first change",
        );
        return Ok(Progress::Done(json!({})));
    };
    let result = Box::pin(undo(cx, &touched.states)).await;
    touched
        .then(cx, result, |done| State {
            done,
            ..State::default()
        })
        .await
}

/// Says what is left of what a step of type `release` did when its undoing was ended before its end.
pub(super) async fn stop(cx: &mut StepContext<'_>, release: &str) -> Result<(), Failure> {
    let done = cx.saved::<State>()?.done;
    let attempts = cx.saved_by_all::<ReleaseState>(release)?;
    let Some(touched) = Touched::next(attempts, changed, &done) else {
        return Ok(());
    };
    let Some(data) = touched.states.iter().find_map(|one| one.rollback.clone()) else {
        return Ok(());
    };
    let place = match Site::of_stage(cx).await {
        Ok(site) => site.to_string(),
        Err(_) => "its stage".to_owned(),
    };
    let left = left_of(&data, &place);
    let left: Vec<String> = std::iter::once(left).chain(touched.not_come_to()).collect();
    let look_at = "the function, its versions and its aliases";
    Err(unended(cx, look_at, left.join("; ")))
}

/// The function that a release may have changed. An attempt that came again may have ended before it did; one before it
/// did not.
fn changed(state: &ReleaseState) -> Option<String> {
    let changed = state.phase > Released::Prepare && state.documents.is_some();
    let data = state.rollback.as_ref().filter(|_| changed)?;
    Some(data.function.clone())
}

/// Brings one function back to what the first of its releases found.
async fn undo(cx: &mut StepContext<'_>, releases: &[ReleaseState]) -> Result<Progress, Failure> {
    let data = releases.iter().find_map(|state| state.rollback.clone());
    let newest = releases.last().and_then(|state| state.documents.clone());
    let (Some(data), Some(key)) = (data, newest) else {
        return Ok(Progress::Done(json!({})));
    };
    let site = Site::of_stage(cx)
        .await
        .map_err(|failure| left(failure, &data, "its stage"))?;
    let place = site.to_string();
    let undoing = Undoing {
        site,
        documents: kept(cx, &key)
            .await
            .map_err(|failure| left(failure, &data, &place))?,
        data,
        released: releases.to_vec(),
        ours: Ours::of(releases),
        state: cx.saved()?,
    };
    let data = undoing.data.clone();
    let result = match data.before.clone() {
        None => undoing.remove(cx).await,
        Some(before) => undoing.restore(cx, &before).await,
    };
    result.map_err(|failure| {
        let failure = left(failure, &data, &place);
        cx.error(ROLLBACK, &failure.message);
        failure
    })
}

/// A failed rollback says what a person must look at.
fn left(failure: Failure, data: &RollbackData, place: &str) -> Failure {
    let left = left_of(data, place);
    Failure {
        left_behind: failure.left_behind.or(Some(left)),
        ..failure
    }
}

fn left_of(data: &RollbackData, place: &str) -> String {
    let function = short(&data.function);
    match data.version() {
        None if data.before.is_none() => {
            format!("function {function} in {place}, created by this run, may still exist")
        }
        None => format!("function {function} in {place} may have the code of this run"),
        Some(version) => {
            format!(
                "function {function} in {place} and its aliases may not be back on version {version}"
            )
        }
    }
}

/// One call's worth of the way back.
pub(super) struct Undoing {
    pub(super) site: Site,
    pub(super) documents: Documents,
    pub(super) data: RollbackData,
    /// What the releases noted, oldest first.
    released: Vec<ReleaseState>,
    ours: Ours,
    state: State,
}

impl Undoing {
    pub(super) fn name(&self) -> &str {
        &self.data.function
    }

    /// The versions of the releases, oldest first.
    pub(super) fn versions(&self) -> impl Iterator<Item = &str> {
        let versions = self.released.iter();
        versions.filter_map(|release| release.version.as_deref())
    }

    /// The version of the newest release that came so far.
    pub(super) fn version_put(&self) -> Option<&str> {
        self.versions().last()
    }

    /// First deployment: what was created goes.
    async fn remove(mut self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let name = short(self.name()).to_owned();
        let found = calls::configuration(&self.site, self.name(), None).await?;
        let Some(found) = found else {
            return self
                .removed(
                    cx,
                    &format!("Function {name} does not exist: nothing is left"),
                )
                .await;
        };
        if !self.released.iter().any(|release| release.created) {
            // The answer of its creation may have been lost.
            let document = Value::Object(self.documents.function.clone());
            let document = cx.secrets().reveal(document).await?;
            if !fits(&document, &found) {
                return Err(refused(format!(
                    "Function {name} in {} is not deleted: it is not what this run was to create.",
                    self.site
                )));
            }
        } else if let Some(other) = self.ours.other(&found, None) {
            return Err(self.foreign(other));
        }
        cx.info(
            ROLLBACK,
            format!("Deleting function {name}, which this run created"),
        );
        match calls::delete(&self.site, self.name(), None).await? {
            Changed::Done(_) => {
                self.removed(cx, &format!("Function {name} deleted: rolled back cleanly"))
                    .await
            }
            Changed::Busy | Changed::Moved => Ok(Progress::Again(self.pause(cx).await?)),
            Changed::NotSo(why) => Err(refused(format!(
                "Cannot delete function {name} in {}: {why}",
                self.site
            ))),
        }
    }

    async fn removed(&self, cx: &mut StepContext<'_>, text: &str) -> Result<Progress, Failure> {
        let undone = self.version_put();
        let gone = Deployed::before(short(self.name()), "", ("", None));
        let replaced = (self.data.replaced.as_ref(), None);
        instances::restored(cx, &self.site, (&gone, undone), replaced).await?;
        cx.info(ROLLBACK, text);
        cx.unit_ended(ROLLBACK, true);
        Ok(Progress::Done(
            json!({"output": {"functionName": short(self.name())}}),
        ))
    }

    async fn pause(&mut self, cx: &mut StepContext<'_>) -> Result<Duration, Failure> {
        self.state
            .watch
            .tell_busy(cx, (&self.site, &self.data.function), ROLLBACK);
        let pause = self.state.watch.pause();
        cx.save(&self.state).await?;
        Ok(pause)
    }

    async fn restore(
        mut self,
        cx: &mut StepContext<'_>,
        before: &Before,
    ) -> Result<Progress, Failure> {
        loop {
            let ready = match self.state.phase {
                Phase::Aliases => self.aliases(cx, false).await?,
                Phase::Code => self.code(cx, before).await?,
                Phase::Configure => self.configure(cx, before).await?,
                Phase::Wait => self.settled(cx).await?.is_some(),
                Phase::LatestAliases => self.aliases(cx, true).await?,
                Phase::Version => self.version(cx).await?,
                Phase::Note => return self.note(cx, before).await,
            };
            if !ready {
                return Ok(Progress::Again(self.pause(cx).await?));
            }
            self.state.watch.reset();
            self.state.phase = match self.state.phase {
                Phase::Aliases => Phase::Code,
                Phase::Code => Phase::Configure,
                Phase::Configure => Phase::Wait,
                Phase::Wait => Phase::LatestAliases,
                Phase::LatestAliases => Phase::Version,
                Phase::Version | Phase::Note => Phase::Note,
            };
            cx.save(&self.state).await?;
        }
    }

    /// `$LATEST`, when it can be changed; `None` while it is being changed.
    async fn settled(&self, cx: &mut StepContext<'_>) -> Result<Option<Value>, Failure> {
        let Some(now) = calls::configuration(&self.site, self.name(), None).await? else {
            return Err(vanished(&self.site, self.name()));
        };
        match Standing::of(&now) {
            Standing::Moving(_) => Ok(None),
            Standing::Broken(reason) if self.state.phase == Phase::Wait => {
                Err(broken(&self.site, (self.name(), "The rollback"), &reason))
            }
            Standing::Broken(reason) => {
                cx.info(ROLLBACK, format!("The function is broken now: {reason}"));
                Ok(Some(now))
            }
            Standing::Settled => Ok(Some(now)),
        }
    }

    async fn code(&mut self, cx: &mut StepContext<'_>, before: &Before) -> Result<bool, Failure> {
        let Some(now) = self.settled(cx).await? else {
            return Ok(false);
        };
        let Some(version) = &before.version else {
            return Err(Failure {
                left_behind: Some(format!(
                    "function {} in {} keeps the code of this run: it was broken before",
                    short(self.name()),
                    self.site
                )),
                ..refused("The function cannot be brought back: its last change had failed before this run, and what it was cannot be published.".to_owned())
            });
        };
        if let Some(other) = self.ours.other_code(&now, Some(before)) {
            return Err(self.foreign(other));
        }
        let whole = Standing::of(&now) == Standing::Settled;
        if whole && now["CodeSha256"] == before.sha256.as_str() {
            return Ok(true);
        }
        cx.info(
            ROLLBACK,
            format!("Bringing back the code of version {version}"),
        );
        match package::restore(cx, &self.site, self.name(), (version, before)).await? {
            Changed::Done(_) => Ok(true),
            Changed::Busy | Changed::Moved => Ok(false),
            Changed::NotSo(why) => Err(self.cannot("code", &why)),
        }
    }

    /// The function itself, which somebody else changed; `found` is what of it.
    fn foreign(&self, found: String) -> Failure {
        let before = self
            .data
            .version()
            .map(|version| format!("version {version}"));
        Foreign {
            resource: format!(
                "$LATEST of function {} in {}",
                short(self.name()),
                self.site
            ),
            found,
            put: self
                .version_put()
                .map(|version| format!("version {version}")),
            before: before.filter(|_| self.data.before.is_some()),
        }
        .left()
    }

    fn cannot(&self, what: &str, why: &str) -> Failure {
        let (name, site) = (short(self.name()), &self.site);
        refused(format!(
            "Cannot bring back the {what} of function {name} in {site}: {why}"
        ))
    }

    async fn configure(
        &mut self,
        cx: &mut StepContext<'_>,
        before: &Before,
    ) -> Result<bool, Failure> {
        let Some(now) = self.settled(cx).await? else {
            return Ok(false);
        };
        let version = before.version.as_deref();
        let Some(was) = calls::configuration(&self.site, self.name(), version).await? else {
            return Err(vanished(
                &self.site,
                &format!("{}:{}", self.name(), version.unwrap_or_default()),
            ));
        };
        let mut wanted = as_request(&was);
        wanted.insert("Description".to_owned(), json!(before.description));
        let same = wanted == as_request(&now);
        if let Some(other) = self.ours.other_configuration(&now).filter(|_| !same) {
            return Err(self.foreign(other));
        }
        let arn = now["FunctionArn"].as_str().unwrap_or_default();
        calls::tag(&self.site, arn, &before.tags).await?;
        if same {
            return Ok(true);
        }
        cx.info(ROLLBACK, "Bringing back the configuration of the function");
        wanted.insert("RevisionId".to_owned(), now["RevisionId"].clone());
        match calls::update_configuration(&self.site, self.name(), &Value::Object(wanted)).await? {
            Changed::Done(_) => Ok(true),
            Changed::Busy | Changed::Moved => Ok(false),
            Changed::NotSo(why) => Err(self.cannot("configuration", &why)),
        }
    }

    /// Deletes the versions of the releases, where they were not there before.
    async fn version(&mut self, cx: &mut StepContext<'_>) -> Result<bool, Failure> {
        let mut made: Vec<String> = Vec::new();
        for release in &self.released {
            let version = match &release.version {
                Some(version) => Some(version.clone()).filter(|_| release.is_new()),
                None => self.lost_version(release).await?,
            };
            made.extend(version.filter(|version| !made.contains(version)));
        }
        for version in made {
            if !self.delete_version(cx, &version).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn delete_version(
        &self,
        cx: &mut StepContext<'_>,
        version: &str,
    ) -> Result<bool, Failure> {
        match calls::delete(&self.site, self.name(), Some(version)).await? {
            Changed::Done(_) => {
                cx.info(
                    ROLLBACK,
                    format!("Deleted version {version}, which this run published"),
                );
                Ok(true)
            }
            Changed::Busy | Changed::Moved => Ok(false),
            Changed::NotSo(why) => Err(Failure {
                left_behind: Some(format!(
                    "version {version} of function {} in {}",
                    short(self.name()),
                    self.site
                )),
                ..refused(format!(
                    "Version {version} of function {} cannot be deleted: {why}",
                    short(self.name())
                ))
            }),
        }
    }

    /// The version that a release published without hearing of it.
    async fn lost_version(&self, release: &ReleaseState) -> Result<Option<String>, Failure> {
        let before = release.rollback.as_ref().and_then(RollbackData::version);
        let before = before.and_then(|version| version.parse::<u64>().ok());
        let (Some(before), true) = (before, release.phase >= Released::Publish) else {
            return Ok(None);
        };
        // Numbers are given once: those of versions that were deleted are missing.
        for number in 1..=MOST_LOOKED_AT {
            let next = before.saturating_add(number).to_string();
            let found = calls::configuration(&self.site, self.name(), Some(&next)).await?;
            if found.is_some_and(|found| found["CodeSha256"] == release.sha256.as_str()) {
                return Ok(Some(next));
            }
        }
        Ok(None)
    }

    async fn note(self, cx: &mut StepContext<'_>, before: &Before) -> Result<Progress, Failure> {
        let name = short(self.name()).to_owned();
        let version = before.version.clone().unwrap_or_default();
        let source = (before.sha256.as_str(), before.source.as_ref());
        let undone = self.version_put();
        let back = Deployed::before(&name, &version, source);
        let replaced = (self.data.replaced.as_ref(), self.data.noted.as_ref());
        instances::restored(cx, &self.site, (&back, undone), replaced).await?;
        if let Ready::NotYet(reason) = ready(&self.site, self.name(), &version).await? {
            cx.warn(
                ROLLBACK,
                format!("Version {version} is not Active yet: {reason}"),
            );
        }
        cx.info(
            ROLLBACK,
            format!("Function {name} is back on version {version}: rolled back cleanly"),
        );
        cx.unit_ended(ROLLBACK, true);
        Ok(Progress::Done(
            json!({"output": {"functionName": name, "version": version}}),
        ))
    }
}
