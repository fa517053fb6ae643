//! The function of the machine `notify`: sends one notice of a notification rule to one receiver, of a run, of a freeze
//! ([`freeze`]) or of a trigger ([`trigger`]), and looks at the windows of freezes when they open.
//!
//! It reads the facts of the run, makes the message, fills in the rule's expressions and secrets, and sends. What may
//! work later is `NotDelivered`, which the machine tries again for about a day; what never will is `DeliveryRefused`.
//! What is given up is told as a warning of its run ([`lost`]).
//! Else the function writes nothing but what a receiver misses ([`digest`]), so repeating it is harmless but for the receiver: a
//! crash between sending and the answer sends the same message, with the same id, again.

mod channel;
mod custom;
mod digest;
mod fact;
mod freeze;
mod lost;
mod mail;
mod message;
mod rule;
mod trigger;
mod wiring;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use slipway_engine::error::{Doing, RunError};
use slipway_engine::error_name::ErrorName;
use slipway_engine::freeze::{customized_message, notification_rules};
use slipway_engine::notify::{
    Event, FreezeNotice, FreezeWatch, Notice, TriggerNotice, approver_rules, warn_of_template,
};
use slipway_engine::runs::{Runs, newest, unrolled_by};
use slipway_model::Kind;
use slipway_model::id::{EntityId, NodeId, Scope};
use slipway_plan::{NotificationPlan, Plan};
use slipway_steps::approval;
use slipway_steps::secrets::SecretSource;
use slipway_store::record::{EntityRecord, NodeRecord, RunRecord};

pub use mail::{MailConfigError, MailServer, Security};
pub use slipway_engine::error::HandlerError;
pub use wiring::{ConfigError, wire};

use digest::deliver;
use fact::Fact;
use message::Message;
use rule::Rule;

/// Where PagerDuty takes events (PagerDuty developer documentation, *Events API v2*).
pub const PAGER_DUTY: &str = "https://events.pagerduty.com/v2/enqueue";

/// What lives as long as the function.
#[derive(Clone)]
pub struct Deps {
    /// Facts of runs and freezes, time, and the machine of notices, which goes on watching freezes.
    pub runs: Runs,
    /// Values of secrets.
    pub secrets: Arc<dyn SecretSource>,
    /// Takes e-mails; without one, rules of the method `Email` are refused.
    pub mail: Option<MailServer>,
    /// Base URL of the REST API, for links.
    pub url: Option<String>,
    /// Takes PagerDuty's events.
    pub pager_duty: String,
}

/// What is known of a run when a notice about it is sent.
pub(crate) struct Facts {
    pub(crate) run: RunRecord,
    pub(crate) plan: Arc<Plan>,
    /// All attempts of its nodes.
    pub(crate) nodes: Vec<NodeRecord>,
    /// The newest attempt of each.
    pub(crate) newest: BTreeMap<NodeId, NodeRecord>,
}

/// Sends a notice; whether it was worth sending.
///
/// # Errors
/// `NotDelivered` and `DeliveryRefused` as the module says, and what reading the store can fail with.
pub async fn handle(deps: &Deps, notice: &Notice) -> Result<bool, HandlerError> {
    let facts = facts(deps, notice).await?;
    let record = match fact::find(&facts, &notice.event) {
        Fact::Happened(record) => record,
        Fact::NotYet => {
            let message = format!(
                "{} of run {} is not recorded yet",
                notice.event.name(),
                notice.run_id
            );
            return Err(HandlerError::new(ErrorName::NotDelivered, message));
        }
        Fact::Never(why) => {
            tracing::info!(
                run.id = %notice.run_id,
                notification.event = notice.event.name(),
                "nothing is told: {why}"
            );
            return Ok(false);
        }
    };
    let mut message = Message::of(&facts, notice, record, deps.url.as_deref());
    let planned = rules(deps, &facts, notice).await?;
    let planned = planned.get(notice.rule).ok_or_else(|| {
        let message = format!(
            "run {} has no rule {}, or its freeze has none any more",
            notice.run_id, notice.rule
        );
        HandlerError::new(ErrorName::DeliveryRefused, message)
    })?;
    let rule = Rule::new(deps, &facts, notice, planned);
    match rule.custom() {
        Ok(custom) => message.custom = custom,
        Err(fault) => {
            let rule = (notice.rule, rule.name());
            warn_of_template(&deps.runs, &notice.run_id, rule, &fault).await?;
        }
    }
    if let Event::DeploymentRejectedDueToFreeze { .. } = &notice.event {
        let said = said_by_freeze(deps, notice).await?;
        message
            .facts
            .extend(said.map(|said| ("Message".into(), said)));
    }
    deliver(deps, rule, notice.receiver, message).await
}

/// Answers one event, as Lambda and local mode send it.
///
/// # Errors
/// As [`handle`].
pub async fn answer(deps: &Deps, event: Value) -> Result<Value, HandlerError> {
    // Boxed: the futures of the SDK clients nest deeper than the compiler likes to lay out.
    let sent = if let Some(error) = event.get("lost") {
        let lost = event.get("notice").cloned().unwrap_or_default();
        // What freezes and triggers tell is about no run that could warn; the history of the execution has it.
        let told = match lost.get("runId") {
            Some(_) => Box::pin(lost::tell(deps, &read(lost)?, error)).await?,
            None => false,
        };
        return Ok(json!({"told": told}));
    } else if event.get("runId").is_some() {
        let notice: Notice = read(event)?;
        Box::pin(handle(deps, &notice)).await?
    } else if event.get("eventId").is_some() {
        let notice: TriggerNotice = read(event)?;
        Box::pin(trigger::tell(deps, &notice)).await?
    } else if event.get("watch").is_some() {
        let watch: FreezeWatch = read(event)?;
        Box::pin(freeze::watch(deps, &watch)).await?
    } else {
        let notice: FreezeNotice = read(event)?;
        Box::pin(freeze::tell(deps, &notice)).await?
    };
    Ok(json!({"sent": sent}))
}

fn read<T: DeserializeOwned>(event: Value) -> Result<T, HandlerError> {
    serde_json::from_value(event).map_err(|error| {
        let message = format!("the event of the notify function cannot be read: {error}");
        HandlerError::new(ErrorName::InvalidRequest, message)
    })
}

/// What the author of a freeze's rule wants to say.
async fn said_by_freeze(deps: &Deps, notice: &Notice) -> Result<Option<String>, RunError> {
    let Event::DeploymentRejectedDueToFreeze { scope, freeze, .. } = &notice.event else {
        return Ok(None);
    };
    let record = freeze_record(deps, scope, freeze).await?;
    Ok(record.and_then(|record| customized_message(&record, notice.rule)))
}

async fn freeze_record(
    deps: &Deps,
    scope: &Scope,
    freeze: &EntityId,
) -> Result<Option<EntityRecord>, RunError> {
    let kind = Kind::Freeze.key();
    let found = deps.runs.store.find_entity(scope, kind, None, freeze).await;
    found.doing(|| format!("read the freeze {freeze}"))
}

/// The rules that tell of an event: those of the plan, of the freeze that it is about, or of the approval.
async fn rules<'f>(
    deps: &Deps,
    facts: &'f Facts,
    notice: &Notice,
) -> Result<Cow<'f, [NotificationPlan]>, RunError> {
    let (scope, freeze) = match &notice.event {
        Event::DeploymentRejectedDueToFreeze { scope, freeze, .. } => (scope, freeze),
        Event::ApprovalRequired {
            node_id, attempt, ..
        }
        | Event::ApprovalAnswered {
            node_id, attempt, ..
        } => {
            let mut nodes = facts.nodes.iter();
            let asked = nodes.find(|node| node.id == *node_id && node.attempt == *attempt);
            let groups = asked.map(|node| approval::groups(&node.spec));
            return Ok(approver_rules(&groups.unwrap_or_default()).into());
        }
        _ => return Ok(Cow::Borrowed(&facts.plan.notifications)),
    };
    let found = freeze_record(deps, scope, freeze).await?;
    Ok(found
        .as_ref()
        .map(notification_rules)
        .unwrap_or_default()
        .into())
}

async fn facts(deps: &Deps, notice: &Notice) -> Result<Facts, RunError> {
    let id = &notice.run_id;
    let run = deps.runs.store.get_run(id).await;
    let run = run.doing(|| format!("read run {id}"))?;
    let digest = run
        .plan
        .as_deref()
        .ok_or_else(|| RunError::refused(ErrorName::NotFound, format!("run {id} has no plan")))?;
    let plan = deps.runs.store.get_plan(digest).await;
    let plan = plan.doing(|| format!("read the plan of run {id}"))?;
    let nodes = deps.runs.store.list_nodes(id, None).await;
    let nodes = nodes.doing(|| format!("read the steps of run {id}"))?;
    let newest = newest(nodes.clone());
    Ok(Facts {
        run,
        plan: unrolled_by(plan, &newest),
        nodes,
        newest,
    })
}
