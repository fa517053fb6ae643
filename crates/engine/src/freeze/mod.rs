//! Freezes: windows of time in which nothing is deployed (FEATURES 21; developer-hub, *Freeze deployments*).
//!
//! A freeze holds deployment stages back that have not begun; one that runs finishes. Freezes of the account, the
//! organization and the project count. A freeze that cannot be understood holds back too: nothing is deployed past
//! what somebody may have meant to stop.

mod rule;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use slipway_model::freeze::WrittenWindow;
use slipway_model::id::{EntityId, RunId, Scope};
use slipway_model::status::{ErrorType, Failure};
use slipway_model::{Kind, Ref, entity, yaml};
use slipway_plan::{NotificationPlan, Plan, StagePlan};
use slipway_store::Page;
use slipway_store::record::EntityRecord;

use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::notify::{Event, FreezeEvent, Notice, freeze_notices};
use crate::runs::Runs;
use crate::start::StartRun;

pub use rule::{customized_message, notification_rules};
pub use slipway_model::freeze::{GLOBAL, Occurrence, Window};

/// Freezes that are read at a time.
const PAGE: usize = 100;

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(default)]
    entity_configs: Vec<Rule>,
    #[serde(default)]
    windows: Vec<WrittenWindow>,
}

/// One item of `entityConfigs`: what it names must all fit.
#[derive(Clone, Debug, Deserialize)]
struct Rule {
    #[serde(default)]
    entities: Vec<Frozen>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frozen {
    #[serde(rename = "type")]
    kind: String,
    filter_type: String,
    #[serde(default)]
    entity_refs: Refs,
}

/// A list of references, or one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(untagged)]
enum Refs {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

/// A freeze that was understood.
#[derive(Clone, Debug)]
pub struct Freeze {
    /// Whether it covers everything in its scope.
    whole: bool,
    rules: Vec<Rule>,
    windows: Vec<Window>,
}

impl Freeze {
    /// Reads the fields of `freeze` in its YAML.
    ///
    /// # Errors
    /// What is wrong with it, a text for each fault.
    pub fn read(id: &str, body: &Value) -> Result<Self, Vec<String>> {
        let written = Written::deserialize(body).map_err(|error| vec![error.to_string()])?;
        let mut windows = Vec::with_capacity(written.windows.len());
        let mut faults = Vec::new();
        for (number, window) in written.windows.iter().enumerate() {
            match window.read() {
                Ok(window) => windows.push(window),
                Err(found) => {
                    let told = found.iter();
                    faults.extend(told.map(|fault| format!("windows[{number}]: {fault}")));
                }
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Self {
            whole: id == GLOBAL,
            rules: written.entity_configs,
            windows,
        })
    }

    /// The window that is open, or else the one that opens next.
    pub fn current_or_upcoming(&self, now: Timestamp) -> Option<Occurrence> {
        let all = self.windows.iter();
        all.filter_map(|window| window.at_or_after(now))
            .min_by_key(|one| one.start)
    }

    /// Whether a window is open between two moments, or at one of them.
    pub fn is_open_between(&self, from: Timestamp, to: Timestamp) -> bool {
        let mut windows = self.windows.iter();
        windows.any(|window| window.at_or_after(from).is_some_and(|one| one.start <= to))
    }

    /// The windows that are open, each once.
    pub fn open(&self, now: Timestamp) -> Vec<Occurrence> {
        let mut open: Vec<Occurrence> = Vec::new();
        for window in self.windows.iter().filter_map(|window| window.at(now)) {
            if !open.contains(&window) {
                open.push(window);
            }
        }
        open
    }

    /// When the next window opens after `now`.
    pub fn next_start(&self, now: Timestamp) -> Option<Timestamp> {
        let next = self.windows.iter().filter_map(|window| window.next(now));
        next.map(|window| window.start).min()
    }

    /// When a freeze that covers a stage ends, as its window shows it.
    fn holds(&self, plan: &Plan, stage: &StagePlan, now: Timestamp) -> Option<(Timestamp, String)> {
        if !self.covers(plan, stage) {
            return None;
        }
        let open = self.windows.iter().filter_map(|window| {
            let end = window.at(now)?.end;
            Some((end, window.shown(end)))
        });
        open.max_by_key(|(end, _)| *end)
    }

    fn covers(&self, plan: &Plan, stage: &StagePlan) -> bool {
        let fits = |rule: &Rule| rule.entities.iter().all(|frozen| frozen.fits(plan, stage));
        self.whole || self.rules.iter().any(fits)
    }
}

impl Frozen {
    fn fits(&self, plan: &Plan, stage: &StagePlan) -> bool {
        let named = || self.refs().any(|name| self.names(name, plan, stage));
        match self.filter_type.as_str() {
            "Equals" => named(),
            "NotEquals" => !named(),
            _ => true,
        }
    }

    fn refs(&self) -> impl Iterator<Item = &str> {
        let list = match &self.entity_refs {
            Refs::None => &[][..],
            Refs::One(one) => std::slice::from_ref(one),
            Refs::Many(many) => many.as_slice(),
        };
        list.iter().map(|name| name.trim())
    }

    /// Whether a reference names what the stage deploys. The level in front of it (`account.`, `org.`) only counts where
    /// the pipeline names a level too.
    fn names(&self, name: &str, plan: &Plan, stage: &StagePlan) -> bool {
        let scope = &plan.scope;
        let (level, id) = match name.split_once('.') {
            Some((level @ ("account" | "org"), id)) => (Some(level), id),
            _ => (None, name),
        };
        match self.kind.as_str() {
            "Org" => scope.org.as_ref().is_some_and(|org| org.as_str() == id),
            // Above its organization a project may be named with it.
            "Project" => scope.project.as_ref().is_some_and(|project| {
                let org = scope.org.as_ref().map_or("", |org| org.as_str());
                project.as_str() == id || name == format!("{org}.{project}")
            }),
            "Pipeline" => plan.pipeline.as_str() == id,
            "Service" => stage.service.as_ref().is_some_and(|service| {
                let own = service.reference.split_once('.').map(|(level, _)| level);
                service.identifier.as_str() == id && level.is_none_or(|level| own == Some(level))
            }),
            "Environment" => stage
                .environment
                .as_ref()
                .is_some_and(|environment| environment.identifier.as_str() == id),
            "EnvType" => stage
                .environment
                .as_ref()
                .is_some_and(|environment| environment.kind == id),
            _ => false,
        }
    }
}

/// Whether freezes hold a stage back: they are about deployments only.
pub fn concerns(stage: &StagePlan) -> bool {
    stage.stage_type == "Deployment"
}

/// Refuses a run that nobody starts by hand while one of its deployments is frozen (developer-hub, *Freeze deployments*,
/// "Trigger freeze"). A run that a person starts, or another run, ends at the stage that is frozen.
/// The rules of the freezes tell of it.
pub(crate) async fn check_start(
    runs: &Runs,
    plan: &Plan,
    asked: &StartRun,
) -> Result<(), RunError> {
    let stages = || plan.groups.iter().flatten().filter(|stage| concerns(stage));
    if stages().next().is_none() {
        return Ok(());
    }
    let freezes = Freezes::of(runs, &plan.scope).await?;
    let now = runs.clock.now();
    let held = stages().find_map(|stage| Some((stage, freezes.hold(plan, stage, now)?)));
    let Some((_, failure)) = held else {
        return Ok(());
    };
    let event = FreezeEvent::TriggerInvocationRejectedDueToFreeze {
        pipeline: plan.pipeline.clone(),
        trigger: asked.trigger.clone(),
        who: asked.principal.clone(),
        at_ms: now.as_millisecond(),
        message: failure.message.clone(),
    };
    let stages: Vec<&StagePlan> = stages().collect();
    let holding = freezes.holding(plan, &stages, now);
    runs.tell_rejected(&holding, &event).await;
    Err(RunError::refused(ErrorName::Frozen, failure.message))
}

/// A freeze as it is stored: what it says, or why it cannot be read.
struct Stored {
    record: EntityRecord,
    rules: Vec<NotificationPlan>,
    id: String,
    name: String,
    level: &'static str,
    read: Result<Freeze, Vec<String>>,
}

/// The freezes that a pipeline in `scope` must heed.
pub struct Freezes(Vec<Stored>);

impl Freezes {
    /// Reads the freezes of the account, the organization and the project.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn of(runs: &Runs, scope: &Scope) -> Result<Self, RunError> {
        let mut all = Vec::new();
        let mut levels = vec![("account", Scope::account(scope.account.clone()))];
        if let Some(org) = &scope.org {
            levels.push((
                "organization",
                Scope::org(scope.account.clone(), org.clone()),
            ));
            if scope.project.is_some() {
                levels.push(("project", scope.clone()));
            }
        }
        for (level, scope) in levels {
            let mut page = Page::first(PAGE);
            loop {
                let found = runs
                    .store
                    .list_entities(&scope, Kind::Freeze.key(), None, page)
                    .await;
                let found = found.doing(|| format!("read the freezes of the {level}"))?;
                all.extend(
                    found
                        .items
                        .iter()
                        .filter_map(|record| stored(record, level)),
                );
                match found.next {
                    None => break,
                    next => {
                        page = Page {
                            limit: PAGE,
                            after: next,
                        }
                    }
                }
            }
        }
        Ok(Self(all))
    }

    /// Why a stage may not begin now; `None` where it may. Only deployments are frozen.
    pub fn hold(&self, plan: &Plan, stage: &StagePlan, now: Timestamp) -> Option<Failure> {
        if !concerns(stage) {
            return None;
        }
        let held = self.0.iter().filter_map(|one| match &one.read {
            Ok(freeze) => {
                let (end, shown) = freeze.holds(plan, stage, now)?;
                Some((end, one.told(&format!("until {shown}"))))
            }
            Err(faults) => {
                let why = format!(
                    "as far as can be told: it cannot be read ({})",
                    faults.join("; ")
                );
                Some((Timestamp::MAX, one.told(&why)))
            }
        });
        let (_, why) = held.max_by_key(|(end, _)| *end)?;
        Some(Failure {
            error: ErrorType::Unknown,
            message: format!(
                "Stage {} did not begin: deployments are frozen by {why}. Run it afterwards, or disable the freeze.",
                stage.identifier
            ),
            left_behind: None,
        })
    }
}

impl Freezes {
    /// What is told of a stage that is held back, by the rules of each freeze that holds it.
    pub(crate) fn notices(
        &self,
        run: &RunId,
        plan: &Plan,
        stage: &StagePlan,
        now: Timestamp,
    ) -> Vec<Notice> {
        let holds = |one: &&Stored| {
            let freeze = one.read.as_ref();
            freeze.is_ok_and(|freeze| freeze.holds(plan, stage, now).is_some())
        };
        let of = |one: &Stored| {
            let event = Event::DeploymentRejectedDueToFreeze {
                stage_id: stage.id.clone(),
                scope: one.record.scope.clone(),
                freeze: EntityId::new(one.id.as_str()),
            };
            freeze_notices(run, &one.rules, &event)
        };
        self.0.iter().filter(holds).flat_map(of).collect()
    }

    /// The freezes that hold one of the stages back.
    fn holding(&self, plan: &Plan, stages: &[&StagePlan], now: Timestamp) -> Vec<EntityRecord> {
        let holds = |one: &&Stored| {
            let mut stages = stages.iter();
            let freeze = one.read.as_ref();
            freeze.is_ok_and(|freeze| stages.any(|stage| freeze.holds(plan, stage, now).is_some()))
        };
        let holding = self.0.iter().filter(holds);
        holding.map(|one| one.record.clone()).collect()
    }
}

impl Stored {
    fn told(&self, when: &str) -> String {
        let Self {
            id, name, level, ..
        } = self;
        format!("the freeze `{id}` ({name}) of the {level} {when}")
    }
}

/// A freeze that is not disabled.
fn stored(record: &EntityRecord, level: &'static str) -> Option<Stored> {
    let id = record.id.as_str();
    let read = match entity::parse(id, &record.yaml) {
        Ok(parsed) => {
            let body = parsed.to_json();
            if body.get("status").and_then(Value::as_str) != Some("Enabled") {
                return None;
            }
            Freeze::read(id, &body)
        }
        Err(_) if is_disabled(record) => return None,
        Err(faults) => Err(faults.iter().map(ToString::to_string).collect()),
    };
    Some(Stored {
        record: record.clone(),
        rules: notification_rules(record),
        id: id.to_owned(),
        name: record.name.clone(),
        level,
        read,
    })
}

/// Whether a freeze that cannot be read says so much.
fn is_disabled(record: &EntityRecord) -> bool {
    let tree = yaml::parse(record.id.as_str(), &record.yaml);
    tree.is_ok_and(|tree| {
        let status = tree.root().at(&[Kind::Freeze.key(), "status"]);
        status.and_then(Ref::text) == Some("Disabled")
    })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
