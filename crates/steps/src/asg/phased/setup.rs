//! `AsgSetup`: a new group for the new version, without instances yet.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::super::before::Before;
use super::super::canary_deploy::{canary_of, warn_of_left};
use super::super::group::{self, Group, Standing, described, texts};
use super::super::instances::noted;
use super::super::manifest::Documents;
use super::super::removal::Removal;
use super::super::served::the_one_that_serves;
use super::super::site::Site;
use super::super::spec::{Sizes, check_instances, sizes};
use super::super::template::{self, Version};
use super::super::{
    DEPLOY, FETCH, PREPARE, base, instances, invalid, name, scaling_loss, told, wrong,
};
use super::{Handover, MARK, SetUp};
use crate::context::StepContext;
use crate::deployment::Replaced;
use crate::deployment::phases::{Phases, Turn, walk};
use crate::deployment::spec::{self, Kind};
use crate::step::{Progress, Step, Undo};

/// Words of `resizeStrategy`; the first is the default.
const STRATEGIES: &[&str] = &["resize_new_first", "downsize_old_first"];

/// Fields of the spec.
const FIELDS: &[(&str, Kind)] = &[
    ("asgName", Kind::Text),
    ("instances", Kind::Other),
    ("resizeStrategy", Kind::Choice(STRATEGIES)),
];

/// The step.
pub struct Setup;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Phase {
    /// Read manifests and write down how things are.
    #[default]
    Prepare,
    /// Delete groups that older deployments left.
    Clear,
    /// Make the launch template.
    Template,
    /// Create the group.
    Create,
    /// Nothing.
    Done,
}

/// Progress of the step; the other steps of the strategy read it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    phase: Phase,
    documents: Option<String>,
    handover: Option<Handover>,
    image: Option<String>,
    /// Names of groups that are to be deleted.
    unused: Vec<String>,
    removal: Removal,
    version: Option<Version>,
}

impl State {
    /// The version of the launch template that this attempt made.
    pub(super) fn version(&self) -> Option<&Version> {
        self.version.as_ref()
    }

    /// What there is to go on with or to undo, if something may have been made.
    pub(super) fn set_up(self) -> Option<SetUp> {
        if self.phase < Phase::Template {
            return None;
        }
        Some(SetUp {
            created: self.phase == Phase::Done,
            handover: self.handover?,
            version: self.version,
            versions: Vec::new(),
            documents: self.documents,
        })
    }
}

#[async_trait]
impl Step for Setup {
    fn step_type(&self) -> &'static str {
        "AsgSetup"
    }

    fn units(&self) -> &'static [&'static str] {
        &[FETCH, PREPARE, DEPLOY]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        let mut faults = spec::check(spec, FIELDS);
        faults.extend(check_instances(spec));
        faults
    }

    fn undo(&self) -> Undo {
        Undo::Step("AsgRollback")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let result = match Setting::resume(cx).await {
            Ok(setting) => walk(setting, cx).await,
            Err(failure) => Err(failure),
        };
        told(cx, self.units(), result)
    }
}

struct Setting {
    site: Site,
    state: State,
    documents: Documents,
    resumed: bool,
}

#[async_trait]
impl Phases for Setting {
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
            Phase::Template => self.template(cx).await?.into(),
            Phase::Create => self.create(cx).await?.into(),
            Phase::Done => Turn::Done(self.ended(cx)?),
        })
    }
}

impl Setting {
    async fn resume(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let mut state: State = cx.saved()?;
        let documents = Documents::once(cx, &mut state.documents).await?;
        let site = Site::of_stage(cx).await?;
        let resumed = state.phase != Phase::Prepare;
        Ok(Self {
            site,
            state,
            documents,
            resumed,
        })
    }

    fn handover(&self) -> Result<&Handover, Failure> {
        let handover = self.state.handover.as_ref();
        handover.ok_or_else(|| wrong("The step has no rollback data to go on with.".to_owned()))
    }

    async fn prepare(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        cx.unit_started(PREPARE);
        let earlier: Option<State> = cx.saved_by_first_attempt()?;
        let handover = match earlier.and_then(|state| state.handover) {
            // What an earlier attempt of this step found is what was there before this run changed anything.
            Some(handover) => Handover {
                template: template::look(&self.site, &handover.new).await?,
                ..handover
            },
            None => self.look(cx).await?,
        };
        self.state.image = match &self.documents.image {
            Some(wanted) => Some(wanted.find(cx, &self.site).await?),
            None => None,
        };
        self.state.handover = Some(handover);
        self.state.phase = Phase::Clear;
        cx.info(PREPARE, "Prepared rollback data");
        cx.unit_ended(PREPARE, true);
        Ok(None)
    }

    /// Looks which groups there are, and which of them serves.
    async fn look(&mut self, cx: &mut StepContext<'_>) -> Result<Handover, Failure> {
        let main = self.documents.group.clone();
        let (found, canary) = versions(cx, &self.site, &main).await?;
        warn_of_left(cx, &self.site, (&main, canary.as_ref())).await?;
        let live = found.iter().filter(|group| group.sizes().desired > 0);
        let mut live: Vec<&Group> = live.collect();
        live.sort_by_key(|group| number(&main, group.name()));
        let noted = noted(cx).await?;
        let deployed = noted.as_ref().map(instances::deployed_groups);
        let old = the_one_that_serves(&live, &deployed.unwrap_or_default());
        let highest = found.iter().map(|group| number(&main, group.name())).max();
        let new = format!("{main}__{}", highest.unwrap_or(0) + 1);
        name::check(&new)?;
        let unused = found.iter().filter(|group| {
            group.tag(MARK) == Some(main.as_str())
                && group.sizes().desired == 0
                && group.members().is_empty()
        });
        self.state.unused = unused.map(|group| group.name().to_owned()).collect();
        let told = match old {
            Some(old) => format!("{new} takes over from Auto Scaling group {}", old.name()),
            None => format!(
                "No Auto Scaling group of {main} has instances: {new} is its first deployment"
            ),
        };
        cx.info(PREPARE, told);
        if let Some(old) = old {
            live.retain(|group| group.name() != old.name());
            for warning in beside(&self.site, &main, &live, old) {
                cx.warn_of_run(PREPARE, &warning).await?;
            }
        }
        let full = sizes(cx.spec(), &self.documents.configuration, old)?;
        let strategy = spec::choice(cx.spec(), "resizeStrategy", STRATEGIES)?;
        let before = match old {
            Some(old) => {
                let look = template::look(&self.site, old.name()).await?;
                let mut before = Before::look(cx, &self.site, old, &look).await?;
                let asked = (old, before.version.clone());
                before
                    .look_what_serves(cx, &self.site, asked, false)
                    .await?;
                let (site, next) = (&self.site, new.as_str());
                scaling_loss::warn(cx, site, (&before, next), &self.documents).await?;
                scaling_loss::warn_of_processes(cx, site, old, (next, None)).await?;
                Some(before)
            }
            None => None,
        };
        Ok(Handover {
            template: template::look(&self.site, &new).await?,
            old: before,
            full,
            new_first: strategy != Some("downsize_old_first"),
            target_groups: texts(&self.documents.configuration["TargetGroupARNs"]),
            replaced: Replaced::read(cx).await?,
            new,
        })
    }

    async fn clear(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let main = self.documents.group.clone();
        while let Some(name) = self.state.unused.first().cloned() {
            let check = |found: &Group| match found.tag(MARK) == Some(main.as_str())
                && found.sizes().desired == 0
            {
                true => Ok(()),
                false => Err(wrong(format!(
                    "Auto Scaling group {name} got instances again while it was about to be deleted as unused."
                ))),
            };
            let place = (&self.site, name.as_str());
            let pause = self.state.removal.go_on(cx, place, PREPARE, check).await?;
            if pause.is_some() {
                return Ok(pause);
            }
            template::delete_of(&self.site, &name).await?;
            self.state.removal = Removal::default();
            self.state.unused.remove(0);
            cx.save(&self.state).await?;
        }
        self.state.phase = Phase::Template;
        Ok(None)
    }

    async fn template(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        cx.unit_started(DEPLOY);
        base::adopt(cx, &self.site, &mut self.documents).await?;
        let look = self.handover()?.template.clone();
        let from = (&self.documents, self.state.image.as_deref());
        let made = template::make(cx, &self.site, &look, from, DEPLOY).await?;
        self.state.version = Some(made);
        self.state.phase = Phase::Create;
        Ok(None)
    }

    async fn create(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Duration>, Failure> {
        let handover = self.handover()?.clone();
        let Some(version) = self.state.version.clone() else {
            return Err(wrong(
                "The step has no launch template version to go on with.".to_owned(),
            ));
        };
        let name = handover.new.as_str();
        match group::describe(&self.site, name).await? {
            Standing::There(found)
                if found.tag(MARK) == Some(self.documents.group.as_str())
                    && (self.resumed || cx.attempt() > 0) => {}
            Standing::There(_) | Standing::Leaving => {
                return Err(invalid(format!(
                    "Auto Scaling group {name} in {} was created by somebody or something else meanwhile.",
                    self.site
                )));
            }
            Standing::Absent => {
                base::adopt(cx, &self.site, &mut self.documents).await?;
                let none = Sizes {
                    min: 0,
                    max: handover.full.max,
                    desired: 0,
                };
                let configuration = &self.documents.configuration;
                let mut document = group::create_document(configuration, name, none, &version);
                let mark =
                    json!({"Key": MARK, "Value": self.documents.group, "PropagateAtLaunch": false});
                match document["Tags"].as_array_mut() {
                    Some(tags) => tags.push(mark),
                    None => document["Tags"] = json!([mark]),
                }
                let document = cx.secrets().reveal(document).await?;
                cx.info(DEPLOY, format!("Creating Asg {name} with 0 instances"));
                let doing = format!("create Auto Scaling group {name}");
                self.site
                    .scaling("CreateAutoScalingGroup", &document, &doing)
                    .await?;
                cx.info(DEPLOY, format!("Created Asg {name} successfully"));
            }
        }
        self.state.phase = Phase::Done;
        Ok(None)
    }

    fn ended(&self, cx: &mut StepContext<'_>) -> Result<Value, Failure> {
        let handover = self.handover()?;
        cx.unit_ended(DEPLOY, true);
        let named = |name: Option<&str>| name.map(|name| json!({"autoScalingGroupName": name}));
        let old = handover.old.as_ref().map(|old| old.group.name());
        Ok(json!({
            "output": {
                "asg": named(Some(&handover.new)),
                "oldAsg": named(old),
            },
        }))
    }
}

/// The groups of this name: those that the strategy made, those that are noted as deployed, and one without a number; and
/// the canary beside them.
async fn versions(
    cx: &StepContext<'_>,
    site: &Site,
    main: &str,
) -> Result<(Vec<Group>, Option<Group>), Failure> {
    let doing = format!("look for the groups of {main}");
    let (mut found, mut next) = (Vec::new(), Value::Null);
    loop {
        let request = json!({
            "Filters": [{"Name": format!("tag:{MARK}"), "Values": [main]}], "NextToken": next,
        });
        let mut page = site
            .scaling("DescribeAutoScalingGroups", &request, &doing)
            .await?;
        let groups = page["AutoScalingGroups"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        found.extend(groups.into_iter().map(Group));
        next = page["NextToken"].take();
        if next.is_null() {
            break;
        }
    }
    let noted = noted(cx).await?;
    let noted = noted.as_ref().map(instances::groups).unwrap_or_default();
    let mut names: Vec<String> = noted.into_iter().map(|group| group.name).collect();
    names.push(main.to_owned());
    names.retain(|name| number(main, name) > 0 || name == main);
    let canary = canary_of(main);
    names.extend(Some(canary.clone()).filter(|canary| name::check(canary).is_ok()));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut left = None;
    for group in described(site, &names).await? {
        if group.name() == canary {
            left = Some(group);
            continue;
        }
        if !found.iter().any(|known| known.name() == group.name()) {
            found.push(group);
        }
    }
    found.retain(|group| !group.is_leaving());
    Ok((found, left))
}

/// What is to be known of groups that have instances too, beside the one that is taken over from.
fn beside(site: &Site, main: &str, others: &[&Group], old: &Group) -> Vec<String> {
    let is_after = |group: &Group| number(main, group.name()) > number(main, old.name());
    let (down, serving): (Vec<&Group>, Vec<&Group>) = others
        .iter()
        .copied()
        .partition(|group| group.serving(None) == 0 && is_after(group));
    let mut warnings: Vec<String> = down
        .into_iter()
        .map(|group| not_up(site, group, old))
        .collect();
    if !serving.is_empty() {
        warnings.push(go_on_serving(site, &serving, old));
    }
    warnings
}

/// Groups that a deployment left which did not end whole, or that were never taken over from.
fn go_on_serving(site: &Site, groups: &[&Group], old: &Group) -> String {
    let told = |group: &&Group| {
        let (healthy, desired) = (group.serving(None), group.sizes().desired);
        format!(
            "{} ({healthy} of {desired} instances healthy)",
            group.name()
        )
    };
    let told: Vec<String> = groups.iter().map(told).collect();
    let command = |group: &&Group| {
        format!(
            "`aws autoscaling update-auto-scaling-group --region {} --auto-scaling-group-name {} --min-size 0 \
             --desired-capacity 0`",
            site.aws.region,
            group.name()
        )
    };
    let commands: Vec<String> = groups.iter().map(command).collect();
    format!(
        "Auto Scaling groups in {site} that have instances too go on serving beside the new one: {}. Earlier runs left them, the \
         new version takes over from {} alone, and no step takes them away: {} does.",
        told.join(", "),
        old.name(),
        commands.join(", and ")
    )
}

/// A newer group never came up, and another one serves.
fn not_up(site: &Site, newest: &Group, serving: &Group) -> String {
    let (newest_name, serves) = (newest.name(), serving.name());
    format!(
        "Auto Scaling group {newest_name} in {site} was deployed last and has not come up: none of its {} instances is \
         healthy, and {serves} serves with {}. The new version takes over from {serves}, and a rollback brings {serves} \
         back. Nothing takes {newest_name} away: set its desired capacity to 0, or delete it.",
        newest.sizes().desired,
        serving.serving(None)
    )
}

/// The number behind a group's name; 0 for none.
fn number(main: &str, name: &str) -> u64 {
    let rest = name
        .strip_prefix(main)
        .and_then(|rest| rest.strip_prefix("__"));
    rest.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}
