//! Runs and the summaries of their stages.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::types::ReturnValue;
use futures::stream::{self, StreamExt};
use slipway_model::id::{EntityId, PrincipalId, RunId, Scope, StageId};
use slipway_model::status::{Failure, Status};

use crate::blob::digest;
use crate::dynamo::{Keys, LARGEST_TRANSACTION, Range, place};
use crate::entity::skipped;
use crate::error::StoreError;
use crate::item::{
    Change, Expression, Item, Row, Write, json, number, read_json, read_number, read_text, row,
    text,
};
use crate::key::{self, Key, Table};
use crate::layout::SK;
use crate::order::StillNewest;
use crate::record::{Again, RunRecord, SignalRecord, StageSummary};
use crate::unstarted::{BEHIND, Sequence, unstarted};
use crate::{Listing, Page, Store};

/// Runs of a list that are read at once.
const READ_AT_ONCE: usize = 16;

impl Store {
    /// The next number of a pipeline's runs: 1, 2, …; and whether earlier ones wait for their start.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn next_sequence(
        &self,
        scope: &Scope,
        pipeline: &EntityId,
    ) -> Result<Sequence, StoreError> {
        let key = key::sequence(scope, pipeline);
        let what = key.what();
        let change = Change::new(key).add("last", number(1));
        let item = self.change(change, ReturnValue::AllNew).await?;
        let last = read_number(&item, "last");
        Ok(Sequence {
            number: last.ok_or_else(|| StoreError::unreadable(what, "it has no number"))?,
            behind: item.contains_key(BEHIND),
        })
    }

    /// Stores a new run and puts it into the lists of its scope and its pipeline, of what has not begun, and of the
    /// retries of another run where it is one.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] when a run with this id is there, or another retry of the same run.
    pub async fn create_run(&self, run: &RunRecord) -> Result<(), StoreError> {
        self.create_run_in_turn(run, None).await
    }

    /// As [`Store::create_run`], where the event that starts the run is still the newest of its line.
    ///
    /// # Errors
    /// Those of [`Store::create_run`]; [`StoreError::AlreadyExists`], too, where something newer took its turn: a run of
    /// this id tells the two apart.
    pub async fn create_run_in_turn(
        &self,
        run: &RunRecord,
        turn: Option<&StillNewest>,
    ) -> Result<(), StoreError> {
        let mut writes = self.creation(run).await?;
        writes.extend(turn.map(StillNewest::holds));
        if let Some(origin) = &run.origin
            && origin.how == Again::Retry
        {
            let key = key::retry(&origin.root, &origin.run);
            let item = row(&key)
                .with("of", text(origin.run.as_str()))
                .with("run", text(run.id.as_str()));
            writes.push(Write::Create(key, item));
        }
        let created = self.transact(&describe(&run.id), writes).await;
        created.map_err(StoreError::or_exists)
    }

    /// Stores a new run that rolls back stages of another, as [`Store::create_run`] does. Each stage is rolled
    /// back by one run; `instead_of` names those whose place this one takes.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] when a run with this id is there, or another that rolls one of the stages back.
    /// [`StoreError::TooLarge`] for too many stages at once.
    pub async fn create_undo(
        &self,
        run: &RunRecord,
        instead_of: &BTreeMap<StageId, RunId>,
    ) -> Result<(), StoreError> {
        let what = describe(&run.id);
        let mut writes = self.creation(run).await?;
        if let Some(origin) = run.undoes() {
            for stage in &origin.stages {
                let free = match instead_of.get(stage) {
                    Some(earlier) => {
                        Expression::new("#run = :earlier").value(":earlier", text(earlier.as_str()))
                    }
                    None => Expression::absent(),
                };
                let change = Change::new(key::undo(&origin.run, stage))
                    .set("stage", text(stage.as_str()))
                    .set("run", text(run.id.as_str()))
                    .when(free);
                writes.push(Write::Change(change));
            }
        }
        let size = writes.len();
        if size > LARGEST_TRANSACTION {
            let limit = LARGEST_TRANSACTION;
            return Err(StoreError::TooLarge { what, size, limit });
        }
        let created = self.transact(&what, writes).await;
        created.map_err(StoreError::or_exists)
    }

    /// The stages of a run that were ever rolled back after it, each with the newest run that did or does that.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_undos(&self, run: &RunId) -> Result<BTreeMap<StageId, RunId>, StoreError> {
        let keys = Keys::Prefix(key::UNDOS.to_owned());
        let items = self
            .query(Range::new(Table::Runs, key::of_run(run), keys))
            .await?;
        let named = items.iter().filter_map(|item| {
            let (stage, run) = (read_text(item, "stage")?, read_text(item, "run")?);
            Some((StageId::new(stage), RunId::new(run)))
        });
        Ok(named.collect())
    }

    /// What every new run writes.
    async fn creation(&self, run: &RunRecord) -> Result<Vec<Write>, StoreError> {
        let key = key::run(&run.id);
        let what = describe(&run.id);
        let bare = RunRecord {
            status: Status::NotStarted,
            ended_ms: None,
            plan: None,
            failure: None,
            abort: None,
            stages: Vec::new(),
            signals: Vec::new(),
            ..run.clone()
        };
        let item = row(&key)
            .with("body", self.store_value(&what, &bare).await?)
            .with("status", status(run.status))
            .with_some("ended", run.ended_ms.map(number))
            .with_some("plan", run.plan.clone().map(text))
            .with_some("notes", some_text(&run.notes))
            .with_some("failure", failure(&what, run.failure.as_ref())?)
            .with("stages", self.store_value(&what, &run.stages).await?)
            .with_some(
                "abort",
                run.abort
                    .as_ref()
                    .map(|abort| json(&what, abort))
                    .transpose()?,
            );
        let listed = |pk| {
            let sk = format!("{:015}#{}", run.started_ms, key::part(run.id.as_str()));
            let key = Key::new(Table::Runs, pk, sk);
            let item = row(&key).with("run", text(run.id.as_str()));
            Write::Beside(key, item)
        };
        Ok(vec![
            Write::Create(key, item),
            listed(key::runs(&run.scope, None)),
            listed(key::runs(&run.scope, Some(&run.pipeline))),
            unstarted(run),
        ])
    }

    /// A run and its retries, in the order in which each came from the one before. A run is retried once.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_retries(&self, root: &RunId) -> Result<Vec<RunId>, StoreError> {
        let range = Range::new(Table::Runs, key::retries(root), Keys::All);
        let mut next = HashMap::new();
        for item in self.query(range).await? {
            if let (Some(of), Some(run)) = (read_text(&item, "of"), read_text(&item, "run")) {
                next.insert(RunId::new(of), RunId::new(run));
            }
        }
        let mut chain = vec![root.clone()];
        // Each is taken out, so that no damage to the items makes a circle.
        while let Some(run) = chain.last().and_then(|last| next.remove(last)) {
            chain.push(run);
        }
        Ok(chain)
    }

    /// Notes what people write about a run, in the place of what was there.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no run.
    pub async fn set_notes(&self, run: &RunId, notes: &str) -> Result<(), StoreError> {
        let change = Change::new(key::run(run))
            .set("notes", text(notes))
            .when(Expression::present());
        self.change_run(run, change).await
    }

    /// Adds tags to a run; of a key that it has already the newest value counts. Adding the same again changes
    /// nothing.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn add_tags(&self, run: &RunId, tags: &[(String, String)]) -> Result<(), StoreError> {
        let what = describe(run);
        let said = serde_json::to_vec(tags).map_err(|e| StoreError::unreadable(&*what, e))?;
        let key = key::tags(run, &digest(&said));
        let body = self.store_value(&what, &(self.now_ms(), tags)).await?;
        let item = row(&key).with("body", body);
        // The first time counts: a repeated invocation must not bring an old value back.
        match self.put(&key, item, Some(Expression::absent())).await {
            Err(StoreError::Conflict { .. }) => Ok(()),
            put => put,
        }
    }

    /// A run with its stages.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is none.
    pub async fn get_run(&self, run: &RunId) -> Result<RunRecord, StoreError> {
        let found = self.find_run(run).await?;
        found.ok_or_else(|| StoreError::NotFound {
            what: describe(run),
        })
    }

    /// A run with its stages, if it is there.
    ///
    /// # Errors
    /// Only when it cannot be read.
    pub async fn find_run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        if run.as_str().is_empty() || run.as_str().len() > 512 {
            return Ok(None);
        }
        // The run's own item, what people said, and the stages lie side by side.
        let keys = Keys::Between("run".to_owned(), "stage#\u{10FFFF}".to_owned());
        let items = self
            .query(Range::new(Table::Runs, key::of_run(run), keys))
            .await?;
        let Some((head, rest)) = items.split_first() else {
            return Ok(None);
        };
        if read_text(head, SK) != Some("run") {
            return Ok(None);
        }
        self.read_run(head, rest).await.map(Some)
    }

    /// Runs of a scope, or of one pipeline in it, newest first.
    ///
    /// # Errors
    /// When the store cannot be read. A run that cannot be read is left out with a warning.
    pub async fn list_runs(
        &self,
        scope: &Scope,
        pipeline: Option<&EntityId>,
        page: Page,
    ) -> Result<Listing<RunRecord>, StoreError> {
        let keys = page.after.map_or(Keys::All, Keys::Behind);
        let mut range = Range::new(Table::Runs, key::runs(scope, pipeline), keys);
        range.backward = true;
        let (entries, next) = self.query_page(&range, None, Some(page.limit)).await?;
        let next = next.and_then(|key| read_text(&key, SK).map(str::to_owned));
        // A list of futures, not a lazy chain: closures over references make the future of callers not `Send`.
        let mut reading = Vec::with_capacity(entries.len());
        for entry in &entries {
            if let Some(run) = read_text(entry, "run").map(RunId::new) {
                reading.push(async move { self.find_run(&run).await });
            }
        }
        let read: Vec<_> = stream::iter(reading).buffered(READ_AT_ONCE).collect().await;
        let mut items = Vec::with_capacity(read.len());
        for (run, entry) in read.into_iter().zip(&entries) {
            match run {
                Ok(found) => items.extend(found),
                Err(error @ StoreError::Unreadable { .. }) => skipped(entry, &error),
                Err(error) => return Err(error),
            }
        }
        Ok(Listing { items, next })
    }

    /// How many runs a scope, or one pipeline in it, has had. Reads the list and none of the runs.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn count_runs(
        &self,
        scope: &Scope,
        pipeline: Option<&EntityId>,
    ) -> Result<usize, StoreError> {
        let range = Range::new(Table::Runs, key::runs(scope, pipeline), Keys::All);
        let (mut count, mut start) = (0, None);
        loop {
            let (entries, next) = self.query_page(&range, start, None).await?;
            count += entries.len();
            start = next;
            if start.is_none() {
                return Ok(count);
            }
        }
    }

    /// Notes the plan of a run and the stages that it will have, and that it is running.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the run has ended, [`StoreError::NotFound`] when there is none.
    pub async fn set_run_planned(
        &self,
        run: &RunId,
        plan: &str,
        stages: &[StageSummary],
    ) -> Result<(), StoreError> {
        let what = describe(run);
        let change = Change::new(key::run(run))
            .set("plan", text(plan))
            .set("stages", self.store_value(&what, stages).await?)
            .set("status", status(Status::Running))
            .when(Expression::new(
                "attribute_exists(#pk) AND attribute_not_exists(#ended)",
            ));
        self.change_run(run, change).await
    }

    /// Moves a run from one of the statuses `from` to `to`; a final status ends it.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it has another status, [`StoreError::NotFound`] when there is none.
    pub async fn set_run_status(
        &self,
        run: &RunId,
        from: &[Status],
        to: Status,
        why: Option<&Failure>,
    ) -> Result<(), StoreError> {
        let what = describe(run);
        let names: Vec<String> = (0..from.len()).map(|n| format!(":from{n}")).collect();
        let mut condition = Expression::new(format!("#status IN ({})", names.join(", ")));
        for (name, from) in names.iter().zip(from) {
            condition = condition.value(name, status(*from));
        }
        let change = Change::new(key::run(run))
            .set("status", status(to))
            .set_some("ended", to.is_final().then(|| number(self.now_ms())))
            .set_some("failure", failure(&what, why)?)
            .when(condition);
        self.change_run(run, change).await
    }

    /// Notes that `who` wants the run to stop. The first wish stays.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the run has ended or a wish is there already,
    /// [`StoreError::NotFound`] when there is no run.
    pub async fn request_abort(&self, run: &RunId, who: &PrincipalId) -> Result<(), StoreError> {
        let abort = json(&describe(run), &(who, self.now_ms()))?;
        let condition = Expression::new(
            "attribute_exists(#pk) AND attribute_not_exists(#ended) AND attribute_not_exists(#abort)",
        );
        let change = Change::new(key::run(run))
            .set("abort", abort)
            .when(condition);
        self.change_run(run, change).await
    }

    async fn change_run(&self, run: &RunId, change: Change) -> Result<(), StoreError> {
        match self.change(change, ReturnValue::None).await {
            Ok(_) => Ok(()),
            Err(StoreError::Conflict { .. }) => {
                let what = describe(run);
                let there = self.get(&key::run(run)).await?.is_some();
                Err(if there {
                    StoreError::Conflict { what }
                } else {
                    StoreError::NotFound { what }
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Stores where a stage of a run stands.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn put_stage(&self, run: &RunId, stage: &StageSummary) -> Result<(), StoreError> {
        let key = key::stage(run, &stage.id);
        let body = self.store_value(&key.what(), stage).await?;
        let item = row(&key).with("body", body);
        self.put(&key, item, None).await
    }

    /// The stages of a run, in the order of its plan; none before it is planned.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no run.
    pub async fn list_stages(&self, run: &RunId) -> Result<Vec<StageSummary>, StoreError> {
        self.get_run(run).await.map(|run| run.stages)
    }

    pub(crate) async fn read_run(
        &self,
        head: &Item,
        rest: &[Item],
    ) -> Result<RunRecord, StoreError> {
        let what = place(head);
        let damaged = |why: &'static str| StoreError::unreadable(&*what, why);
        let mut run: RunRecord = self
            .load_value(head, "body")
            .await?
            .ok_or_else(|| damaged("it has no body"))?;
        run.status = read_text(head, "status")
            .and_then(read_status)
            .ok_or_else(|| damaged("its status"))?;
        run.ended_ms = read_number(head, "ended");
        run.plan = read_text(head, "plan").map(str::to_owned);
        run.notes = read_text(head, "notes").unwrap_or_default().to_owned();
        run.failure = read_json(&what, head, "failure")?;
        run.abort = read_json(&what, head, "abort")?;
        run.stages = self.load_value(head, "stages").await?.unwrap_or_default();
        let is_tags = |item: &&Item| read_text(item, SK).is_some_and(|sk| sk.starts_with("run#"));
        let mut added: Vec<(i64, Vec<(String, String)>)> = Vec::new();
        for item in rest.iter().filter(is_tags) {
            added.extend(self.load_value(item, "body").await?);
        }
        added.sort_by_key(|(at_ms, _)| *at_ms);
        for (key, value) in added.into_iter().flat_map(|(_, tags)| tags) {
            match run.tags.iter_mut().find(|(known, _)| *known == key) {
                Some(known) => known.1 = value,
                None => run.tags.push((key, value)),
            }
        }
        let is_signal =
            |item: &&Item| read_text(item, SK).is_some_and(|sk| sk.starts_with("signal#"));
        for item in rest.iter().filter(is_signal) {
            run.signals.extend(self.load_value(item, "body").await?);
        }
        run.signals
            .sort_by_key(|signal: &SignalRecord| signal.at_ms);
        let mut newer = HashMap::new();
        for item in rest
            .iter()
            .filter(|item| !is_signal(item) && !is_tags(item))
        {
            match self.load_value::<StageSummary>(item, "body").await {
                Ok(Some(stage)) => drop(newer.insert(stage.id.clone(), stage)),
                Ok(None) => {}
                Err(error) => skipped(item, &error),
            }
        }
        for stage in &mut run.stages {
            if let Some(known) = newer.remove(&stage.id) {
                *stage = known;
            }
        }
        // Stages that the plan's list does not have come last, in a stable order.
        let mut rest: Vec<StageSummary> = newer.into_values().collect();
        rest.sort_by(|a, b| (a.started_ms, &a.id).cmp(&(b.started_ms, &b.id)));
        run.stages.extend(rest);
        run.stages.retain(|stage| !stage.taken_apart);
        Ok(run)
    }
}

fn describe(run: &RunId) -> String {
    format!("run {run}")
}

/// A text as an attribute; an empty one takes none.
fn some_text(value: &str) -> Option<aws_sdk_dynamodb::types::AttributeValue> {
    (!value.is_empty()).then(|| text(value))
}

/// A status as an attribute: its name.
pub(crate) fn status(status: Status) -> aws_sdk_dynamodb::types::AttributeValue {
    text(format!("{status:?}"))
}

pub(crate) fn read_status(name: &str) -> Option<Status> {
    serde_json::from_value(name.into()).ok()
}

/// A failure as an attribute, its message cut so that it cannot grow the item without bound.
pub(crate) fn failure(
    what: &str,
    failure: Option<&Failure>,
) -> Result<Option<aws_sdk_dynamodb::types::AttributeValue>, StoreError> {
    const LONGEST: usize = 16 * 1024;
    let Some(failure) = failure else {
        return Ok(None);
    };
    let cut = |text: &str| match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    };
    let failure = Failure {
        error: failure.error,
        message: cut(&failure.message),
        left_behind: failure.left_behind.as_deref().map(cut),
    };
    json(what, &failure).map(Some)
}
