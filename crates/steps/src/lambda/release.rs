//! A new version of a function: what a deployment and a canary have in common, from looking at what is there until
//! the version is Active. No alias is touched here.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::DEPLOY;
use super::calls::{self, Changed};
use super::function::{Standing, Watch, broken, moved, refused, vanished};
use super::manifest::Documents;
use super::ready::{Ready, ready};
use super::restore::{digest, fits};
use super::site::Site;
use super::snapshot::RollbackData;
use crate::context::StepContext;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Read manifests, and write down how to undo.
    #[default]
    Prepare,
    /// Create the function, where there is none.
    Create,
    /// Change its code.
    Code,
    /// Wait for that.
    CodeWait,
    /// Change its configuration and tags.
    Configure,
    /// Wait for that.
    ConfigureWait,
    /// Publish a version.
    Publish,
    /// Wait until it is Active.
    VersionWait,
    /// Point aliases to it.
    Alias,
    /// Note what is there.
    Note,
}

/// Progress of the steps that release; the steps that undo them and that shift traffic read it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) phase: Phase,
    /// Key of the stored [`Documents`].
    pub(super) documents: Option<String>,
    pub(super) rollback: Option<RollbackData>,
    /// Whether this run created the function.
    pub(super) created: bool,
    /// Digest of the code that this run put there.
    pub(super) sha256: String,
    /// Digest of the configuration that this run left there.
    pub(super) configured: String,
    /// The version of the release.
    pub(super) version: Option<String>,
    watch: Watch,
}

impl State {
    /// Whether the version of the release is one that was not there before.
    pub(super) fn is_new(&self) -> bool {
        let before = self.rollback.as_ref().and_then(RollbackData::version);
        self.version.is_some() && self.version.as_deref() != before
    }
}

/// One call's worth of a release.
pub(super) struct Release {
    pub(super) site: Site,
    pub(super) state: State,
    pub(super) documents: Documents,
    /// Whether the phase was begun by an earlier call, which may have been cut off after its effect.
    pub(super) resumed: bool,
    /// Whether the version is to share the traffic of its aliases with the one before.
    pub(super) shares: bool,
    /// `$LATEST` as it was seen last, settled, and not changed since.
    seen: Option<Value>,
}

impl Release {
    pub(super) async fn resume(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let mut state: State = cx.saved()?;
        let documents = Documents::once(cx, &mut state.documents).await?;
        let site = Site::of_stage(cx).await?;
        documents.check_region(&site)?;
        let resumed = state.phase != Phase::Prepare;
        Ok(Self {
            site,
            state,
            documents,
            resumed,
            shares: false,
            seen: None,
        })
    }

    /// Does what comes next, for the phases up to [`Phase::VersionWait`].
    pub(super) async fn go_on(
        &mut self,
        cx: &mut StepContext<'_>,
    ) -> Result<Option<Duration>, Failure> {
        match self.state.phase {
            Phase::Prepare => self.prepare(cx).await,
            Phase::Create => self.create(cx).await,
            Phase::Code => self.code(cx).await,
            Phase::CodeWait => {
                self.wait(cx, "The update of the code", Phase::Configure)
                    .await
            }
            Phase::Configure => self.configure(cx).await,
            Phase::ConfigureWait => {
                self.wait(cx, "The update of the configuration", Phase::Publish)
                    .await
            }
            Phase::Publish => self.publish(cx).await,
            Phase::VersionWait => self.version_wait(cx).await,
            Phase::Alias | Phase::Note => Ok(None),
        }
    }

    /// Makes the progress durable.
    pub(super) async fn save(&mut self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        cx.save(&self.state).await?;
        self.resumed = false;
        Ok(())
    }

    pub(super) fn name(&self) -> &str {
        self.documents.name()
    }

    /// The version of the release.
    pub(super) fn version(&self) -> &str {
        self.state.version.as_deref().unwrap_or_default()
    }

    pub(super) fn next(&mut self, phase: Phase) -> Option<Duration> {
        self.state.phase = phase;
        self.state.watch.reset();
        None
    }

    pub(super) fn busy(
        &mut self,
        cx: &mut StepContext<'_>,
        unit: &'static str,
    ) -> Option<Duration> {
        let Self {
            site,
            state,
            documents,
            ..
        } = self;
        state.watch.tell_busy(cx, (site, documents.name()), unit);
        self.seen = None;
        Some(state.watch.pause())
    }

    async fn create(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        cx.unit_started(DEPLOY);
        let name = self.documents.short_name().to_owned();
        let document = Value::Object(self.documents.function.clone());
        let document = cx.secrets().reveal(document).await?;
        if self.resumed
            && let Some(function) = calls::get(&self.site, self.name(), None).await?
        {
            let configuration = &function["Configuration"];
            if !fits(&document, configuration) {
                return Err(moved(
                    &self.site,
                    &name,
                    "it did not exist, and is there now with another configuration",
                ));
            }
            return Ok(self.created(configuration));
        }
        cx.info(
            DEPLOY,
            format!("Function: [{name}] does not exist. Create and Publish."),
        );
        match calls::create(&self.site, &document).await? {
            Changed::Done(configuration) => Ok(self.created(&configuration)),
            Changed::Busy => Ok(self.busy(cx, DEPLOY)),
            Changed::Moved => Err(refused(format!("Function {name} cannot be created."))),
            Changed::NotSo(why) => {
                // Somebody else's: nothing of it may be undone.
                self.state.phase = Phase::Prepare;
                cx.save(&self.state).await?;
                Err(moved(
                    &self.site,
                    &name,
                    &format!("it did not exist, and AWS says now: {why}"),
                ))
            }
        }
    }

    fn created(&mut self, configuration: &Value) -> Option<Duration> {
        self.state.created = true;
        self.state.sha256 = configuration["CodeSha256"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        self.state.configured = digest(configuration);
        self.next(Phase::ConfigureWait)
    }

    async fn code(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        cx.unit_started(DEPLOY);
        if let Some(pause) = self.hold_aliases(cx).await? {
            return Ok(Some(pause));
        }
        let name = self.documents.short_name().to_owned();
        let mut document = self.documents.code();
        if let Some(architectures) = self.documents.function.get("Architectures") {
            document["Architectures"] = architectures.clone();
        }
        let document = cx.secrets().reveal(document).await?;
        if !self.resumed {
            cx.info(
                DEPLOY,
                format!("Function: [{name}] already exists. Update and Publish."),
            );
            cx.info(
                DEPLOY,
                format!(
                    "Updating the code of the function to {}",
                    self.documents.artifact
                ),
            );
        }
        match calls::update_code(&self.site, self.name(), &document).await? {
            Changed::Done(configuration) => {
                let sha256 = configuration["CodeSha256"].as_str().unwrap_or_default();
                cx.info(DEPLOY, format!("Updated Function Code Sha256: [{sha256}]"));
                self.state.sha256 = sha256.to_owned();
                Ok(self.next(Phase::CodeWait))
            }
            Changed::Busy => Ok(self.busy(cx, DEPLOY)),
            Changed::Moved | Changed::NotSo(_) => {
                Err(moved(&self.site, &name, "its code could not be updated"))
            }
        }
    }

    /// Waits until the last change has worked, and looks whether the code is still this run's.
    async fn wait(
        &mut self,
        cx: &mut StepContext<'_>,
        what: &str,
        then: Phase,
    ) -> Result<Option<Duration>, Failure> {
        let Some(configuration) = calls::configuration(&self.site, self.name(), None).await? else {
            return Err(vanished(&self.site, self.name()));
        };
        match Standing::of(&configuration) {
            Standing::Moving(reason) => {
                let Self {
                    state, documents, ..
                } = self;
                state
                    .watch
                    .tell_status(cx, documents.name(), &reason, DEPLOY);
                Ok(Some(state.watch.pause()))
            }
            Standing::Broken(reason) => {
                let what = if self.state.created && self.state.version.is_none() {
                    "The creation or update"
                } else {
                    what
                };
                Err(broken(&self.site, (self.name(), what), &reason))
            }
            Standing::Settled => {
                self.check_code(&configuration)?;
                self.seen = Some(configuration);
                Ok(self.next(then))
            }
        }
    }

    fn check_code(&self, configuration: &Value) -> Result<(), Failure> {
        let now = configuration["CodeSha256"].as_str().unwrap_or_default();
        if now == self.state.sha256 {
            return Ok(());
        }
        let what = format!(
            "its code has the digest {now}, and this run put {} there",
            self.state.sha256
        );
        Err(moved(&self.site, self.name(), &what))
    }

    /// `$LATEST` as it is, settled; `None` while somebody changes it.
    async fn look(&mut self) -> Result<Option<Value>, Failure> {
        if let Some(seen) = self.seen.take() {
            return Ok(Some(seen));
        }
        let Some(configuration) = calls::configuration(&self.site, self.name(), None).await? else {
            return Err(vanished(&self.site, self.name()));
        };
        match Standing::of(&configuration) {
            Standing::Moving(_) => Ok(None),
            Standing::Broken(reason) => Err(broken(
                &self.site,
                (self.name(), "The last change"),
                &reason,
            )),
            Standing::Settled => {
                self.check_code(&configuration)?;
                Ok(Some(configuration))
            }
        }
    }

    async fn configure(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        cx.unit_started(DEPLOY);
        let Some(now) = self.look().await? else {
            return Ok(self.busy(cx, DEPLOY));
        };
        self.tag(cx, &now).await?;
        let wanted = Value::Object(self.documents.configuration());
        let mut document = cx.secrets().reveal(wanted).await?;
        if fits(&document, &now) {
            cx.info(
                DEPLOY,
                "The configuration of the function is as the definition says",
            );
            self.state.configured = digest(&now);
            self.seen = Some(now);
            return Ok(self.next(Phase::Publish));
        }
        document["RevisionId"] = now["RevisionId"].clone();
        match calls::update_configuration(&self.site, self.name(), &document).await? {
            Changed::Done(configuration) => {
                let arn = configuration["FunctionArn"].as_str().unwrap_or_default();
                cx.info(DEPLOY, format!("Updated Function ARN: [{arn}]"));
                self.state.configured = digest(&configuration);
                Ok(self.next(Phase::ConfigureWait))
            }
            // Looked at again: whoever changed it may be this run before a crash.
            Changed::Busy | Changed::Moved => Ok(self.busy(cx, DEPLOY)),
            Changed::NotSo(why) => Err(moved(&self.site, self.name(), &why)),
        }
    }

    async fn tag(&self, cx: &mut StepContext<'_>, now: &Value) -> Result<(), Failure> {
        let changed = self
            .state
            .rollback
            .as_ref()
            .and_then(|data| data.before.as_ref());
        let Some(names) = changed
            .map(|before| &before.tags)
            .filter(|tags| !tags.is_empty())
        else {
            return Ok(());
        };
        let mut tags = self.documents.tags();
        tags.retain(|name, _| names.contains_key(name));
        let tags = cx.secrets().reveal(Value::Object(tags)).await?;
        let arn = now["FunctionArn"].as_str().unwrap_or_default();
        calls::tag(
            &self.site,
            arn,
            tags.as_object().unwrap_or(&serde_json::Map::new()),
        )
        .await
    }

    async fn publish(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        cx.unit_started(DEPLOY);
        let Some(now) = self.look().await? else {
            return Ok(self.busy(cx, DEPLOY));
        };
        if digest(&now) != self.state.configured {
            return Err(moved(
                &self.site,
                self.name(),
                "its configuration is not the one that this run left there",
            ));
        }
        cx.info(DEPLOY, "Publishing new version");
        match calls::publish(&self.site, self.name(), &now).await? {
            Changed::Done(version) => {
                let number = version["Version"].as_str().unwrap_or_default().to_owned();
                let arn = version["FunctionArn"].as_str().unwrap_or_default();
                cx.info(DEPLOY, format!("Published new version: [{number}]"));
                cx.info(DEPLOY, format!("Published function ARN: [{arn}]"));
                self.state.version = Some(number);
                if !self.state.is_new() {
                    cx.info(DEPLOY, "Neither code nor configuration has changed: it is the version that was there");
                }
                Ok(self.next(Phase::VersionWait))
            }
            Changed::Busy | Changed::Moved => Ok(self.busy(cx, DEPLOY)),
            Changed::NotSo(why) => Err(moved(&self.site, self.name(), &why)),
        }
    }

    async fn version_wait(
        &mut self,
        cx: &mut StepContext<'_>,
    ) -> Result<Option<Duration>, Failure> {
        let version = self.version().to_owned();
        match ready(&self.site, self.name(), &version).await? {
            Ready::Yes => Ok(self.next(Phase::Alias)),
            Ready::NotYet(reason) => {
                let Self {
                    state, documents, ..
                } = self;
                state
                    .watch
                    .tell_status(cx, documents.name(), &reason, DEPLOY);
                Ok(Some(state.watch.pause()))
            }
        }
    }

    /// Time until another look, for what is waited for after the release.
    pub(super) fn pause(&mut self) -> Duration {
        self.state.watch.pause()
    }

    /// What expressions see of the release.
    pub(super) fn outputs(&self, instances: &[Value]) -> Value {
        let outcome = json!({"serverInstanceInfoList": instances});
        json!({
            "output": {
                "functionName": self.documents.short_name(),
                "functionArn": instances.first().map(|one| one["functionArn"].clone()),
                "version": self.version(),
                "deploymentInfoOutcome": outcome,
            },
            "deploymentInfoOutcome": outcome,
        })
    }
}
