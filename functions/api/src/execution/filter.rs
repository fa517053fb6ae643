//! What a list of runs leaves out. Source: the request of *List executions* (`PipelineExecutionFilterProperties`) in Harness's
//! API reference. What this version does not serve is refused: who asks for the runs of one service must not get all.

use serde_json::Value;
use slipway_model::diagnostic::nearest;
use slipway_model::id::EntityId;
use slipway_store::record::RunRecord;

use super::summary;
use crate::auth::Caller;
use crate::body;
use crate::error::{ApiError, ApiResult};
use crate::query::Query;

/// Every status of a run that clients know, those that Slipway has no use for included.
const STATUSES: &[&str] = &[
    "Aborted",
    "AbortedByFreeze",
    "ApprovalRejected",
    "ApprovalWaiting",
    "AsyncWaiting",
    "Discontinuing",
    "Errored",
    "Expired",
    "Failed",
    "IgnoreFailed",
    "InputWaiting",
    "InterventionWaiting",
    "NotStarted",
    "Paused",
    "Pausing",
    "Queued",
    "QueuedExecutionConcurrencyReached",
    "QueuedGlobalInfraCapacityReached",
    "QueuedLicenseLimitReached",
    "ResourceWaiting",
    "RollbackFailed",
    "Running",
    "Skipped",
    "Success",
    "Suspended",
    "TaskWaiting",
    "TimedWaiting",
    "UploadWaiting",
    "WaitStepRunning",
    "Waiting",
];

/// Fields of the body that name what this version keeps no index of.
const NOT_SERVED: &[&str] = &["moduleProperties", "pipelineLabels", "executionModeFilter"];

/// What a list of runs leaves out.
pub(super) struct Filter {
    /// Runs of one pipeline.
    pub(super) pipeline: Option<EntityId>,
    statuses: Vec<String>,
    search: Option<String>,
    mine: Option<String>,
    /// Part of a name, in small letters.
    name: Option<String>,
    /// First and last moment of a start, in epoch milliseconds.
    began: (Option<i64>, Option<i64>),
    /// A key, and a value unless any will do; runs that have one of them.
    tags: Vec<(String, Option<String>)>,
    triggers: Vec<String>,
    /// Identifiers of triggers.
    started_by: Vec<String>,
    /// Whether it asks for what no run of this version is.
    nothing: bool,
}

impl Filter {
    /// Reads the query and the body of a request.
    pub(super) fn of(query: &Query, caller: &Caller, body: &Value) -> ApiResult<Self> {
        let pipeline = match query.one("pipelineIdentifier")? {
            Some(id) => Some(crate::identifier::entity(id)?),
            None => None,
        };
        let mut statuses = texts(body, "status")?;
        statuses.extend(query.all("status").map(str::to_owned));
        for status in &statuses {
            check_status(status)?;
        }
        check_order(query)?;
        if query.one("filterIdentifier")?.is_some() {
            let why = "saved filters are not supported by this version: give what it filters by";
            return Err(ApiError::field("filterIdentifier", why));
        }
        for name in NOT_SERVED {
            if !is_empty(&body[*name]) {
                let why = "runs cannot be filtered by it in this version: leave it out";
                return Err(ApiError::field(name, why));
            }
        }
        let mine = query.one("myDeployments")? == Some("true");
        let module = query.one("module")?;
        Ok(Self {
            pipeline,
            statuses,
            search: query.one("searchTerm")?.map(str::to_lowercase),
            mine: mine.then(|| caller.principal.to_string()),
            name: text(body, "pipelineName")?.map(|name| name.to_lowercase()),
            began: (moment(body, "startTime")?, moment(body, "endTime")?),
            tags: tags(body)?,
            triggers: texts(body, "triggerTypes")?,
            started_by: texts(body, "triggerIdentifiers")?,
            // Each run is of Continuous Delivery.
            nothing: module.is_some_and(|module| !module.eq_ignore_ascii_case("cd")),
        })
    }

    /// Whether it asks for what only the steps of a run tell.
    pub(super) fn by_status(&self) -> bool {
        !self.statuses.is_empty()
    }

    /// Whether it leaves out any run of its scope and pipeline.
    pub(super) fn narrows(&self) -> bool {
        self.by_status()
            || self.search.is_some()
            || self.mine.is_some()
            || self.name.is_some()
            || self.began != (None, None)
            || !self.tags.is_empty()
            || !self.triggers.is_empty()
            || !self.started_by.is_empty()
            || self.nothing
    }

    /// Whether a run is in the list.
    pub(super) fn keeps(&self, run: &RunRecord) -> bool {
        let status = format!("{:?}", summary::status(run));
        let found = |text: &String| {
            run.pipeline.as_str().to_lowercase().contains(text)
                || run.name.to_lowercase().contains(text)
                || run.notes.to_lowercase().contains(text)
                || run.id.as_str() == text
        };
        let named = |name: &String| run.name.to_lowercase().contains(name);
        let tagged = |(key, value): &(String, Option<String>)| {
            let mut own = run.tags.iter();
            own.any(|tag| tag.0 == *key && value.as_ref().is_none_or(|value| tag.1 == *value))
        };
        let (first, last) = self.began;
        !self.nothing
            && (self.statuses.is_empty() || self.statuses.contains(&status))
            && self.search.as_ref().is_none_or(found)
            && self.name.as_ref().is_none_or(named)
            && first.is_none_or(|first| run.started_ms >= first)
            && last.is_none_or(|last| run.started_ms <= last)
            && (self.tags.is_empty() || self.tags.iter().any(tagged))
            && (self.triggers.is_empty() || self.triggers.contains(&run.trigger_type))
            && (self.started_by.is_empty()
                || run
                    .trigger
                    .as_ref()
                    .is_some_and(|by| self.started_by.iter().any(|id| id == by.trigger.as_str())))
            && self
                .mine
                .as_ref()
                .is_none_or(|who| run.triggered_by.as_str() == who)
    }
}

/// Null, and empty lists, mappings and texts ask for nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn check_status(status: &str) -> ApiResult<()> {
    if STATUSES.contains(&status) {
        return Ok(());
    }
    let near = nearest(status, STATUSES.iter().copied());
    let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    let why = format!("{status:?} is no status of a run{near}");
    Err(ApiError::field("status", &why))
}

/// Runs are listed in one order.
fn check_order(query: &Query) -> ApiResult<()> {
    for order in query.all("sort") {
        let (by, way) = order.split_once(',').unwrap_or((order, "ASC"));
        let newest_first = way.eq_ignore_ascii_case("desc");
        if !(newest_first && ["startTs", "createdAt"].contains(&by)) {
            let why = format!(
                "runs cannot be listed by {order:?} in this version: they come newest first, `startTs,DESC`"
            );
            return Err(ApiError::field("sort", &why));
        }
    }
    Ok(())
}

fn text(body: &Value, field: &str) -> ApiResult<Option<String>> {
    match &body[field] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        _ => Err(ApiError::field(field, "must be a text")),
    }
}

/// A list of texts, or one.
fn texts(body: &Value, field: &str) -> ApiResult<Vec<String>> {
    let wrong = || ApiError::field(field, "must be a list of texts");
    match &body[field] {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong))
            .collect(),
        Value::String(text) => Ok(vec![text.clone()]),
        _ => Err(wrong()),
    }
}

/// A bound of `timeRange`, in epoch milliseconds.
fn moment(body: &Value, field: &str) -> ApiResult<Option<i64>> {
    body::moment(&body["timeRange"][field], &format!("timeRange.{field}"))
}

/// `pipelineTags`: `[{"key": "team", "value": "shop"}]`.
fn tags(body: &Value) -> ApiResult<Vec<(String, Option<String>)>> {
    let wrong = || ApiError::field("pipelineTags", "must be a list of {key, value}");
    let items = match &body["pipelineTags"] {
        Value::Null => return Ok(Vec::new()),
        Value::Array(items) => items,
        _ => return Err(wrong()),
    };
    let tag = |item: &Value| {
        let key = item["key"].as_str().ok_or_else(wrong)?;
        let value = item["value"].as_str().filter(|value| !value.is_empty());
        Ok((key.to_owned(), value.map(str::to_owned)))
    };
    items.iter().map(tag).collect()
}
