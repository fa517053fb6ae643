//! What must hold once everything has come to rest: one run for each thing that happened and each trigger that wants it.

use std::collections::{BTreeMap, BTreeSet};

use slipway_model::id::EntityId;
use slipway_model::status::Status;
use slipway_store::record::{OutcomeRecord, RunRecord};
use slipway_store::{Page, TriggerPlace};
use slipway_world::scope;

use super::Counts;
use super::play::Play;
use super::script::Told;
use super::sender::TRIGGERS;

/// Two events that are handled at the same time may be decided in either order: functions live no longer than this.
const AT_ONCE_MS: i64 = 120_000;

/// Which thing that happened, by its number, for which trigger.
type Start = (u64, &'static str);

/// Looks at everything that a world has kept.
pub(super) async fn check(play: &Play<'_>) -> Result<Counts, String> {
    let mut seen = Seen::default();
    for (trigger, _) in TRIGGERS {
        seen.history(play, trigger).await?;
    }
    seen.runs(play).await?;
    seen.executions(play).await?;
    seen.judge(&play.script.told)
}

#[derive(Default)]
struct Seen {
    /// What each event is about, by [`Told::unique`].
    events: BTreeMap<String, u64>,
    rows: BTreeMap<Start, OutcomeRecord>,
    runs: BTreeMap<Start, RunRecord>,
}

impl Seen {
    async fn history(&mut self, play: &Play<'_>, trigger: &'static str) -> Result<(), String> {
        let place = TriggerPlace {
            scope: scope(),
            pipeline: EntityId::new("release"),
            trigger: EntityId::new(trigger),
        };
        let mut page = Page::first(500);
        loop {
            let listed = play.world.store.list_history(&place, page).await;
            let listed = listed.map_err(|why| format!("the history of {trigger}: {why}"))?;
            for row in listed.items {
                let unique = self.unique(play, &row.event).await?;
                if let Some(before) = self.rows.insert((unique, trigger), row) {
                    return Err(format!(
                        "number {unique} is twice in the history of {trigger}: {before:?}"
                    ));
                }
            }
            match listed.next {
                Some(after) => {
                    page = Page {
                        after: Some(after),
                        ..Page::first(500)
                    }
                }
                None => return Ok(()),
            }
        }
    }

    /// What an event is about. Two events may not be about the same.
    async fn unique(&mut self, play: &Play<'_>, event: &str) -> Result<u64, String> {
        if let Some(known) = self.events.get(event) {
            return Ok(*known);
        }
        let found = play.world.store.find_event(event).await;
        let found = found.map_err(|why| format!("event {event}: {why}"))?;
        let found =
            found.ok_or_else(|| format!("event {event} is in a history and is not there"))?;
        let told = &found.body["event"];
        let commit = told["commit"]
            .as_str()
            .or(told["payload"]["commit"].as_str());
        let unique = commit.and_then(|commit| u64::from_str_radix(commit, 16).ok());
        let unique = unique
            .ok_or_else(|| format!("event {event} is about nothing that happened: {told}"))?;
        if let Some((other, _)) = self.events.iter().find(|(_, known)| **known == unique) {
            return Err(format!(
                "number {unique} is kept twice, as {other} and as {event}"
            ));
        }
        self.events.insert(event.to_owned(), unique);
        Ok(unique)
    }

    async fn runs(&mut self, play: &Play<'_>) -> Result<(), String> {
        let mut page = Page::first(500);
        let mut numbers = BTreeSet::new();
        loop {
            let listed = play.world.store.list_runs(&scope(), None, page).await;
            let listed = listed.map_err(|why| format!("the list of runs: {why}"))?;
            for run in listed.items {
                let by = run.trigger.as_ref();
                let by = by.ok_or_else(|| format!("run {} was started by no trigger", run.id))?;
                let trigger = TRIGGERS
                    .iter()
                    .find(|(name, _)| *name == by.trigger.as_str());
                let (trigger, _) =
                    trigger.ok_or_else(|| format!("there is no trigger {}", by.trigger))?;
                let unique = self.events.get(&by.event).copied();
                let unique = unique.ok_or_else(|| format!("run {} is in no history", run.id))?;
                if !numbers.insert(run.sequence) {
                    return Err(format!("two runs have the number {}", run.sequence));
                }
                if let Some(other) = self.runs.insert((unique, *trigger), run) {
                    return Err(format!(
                        "number {unique} started two runs of {trigger}, one is {}",
                        other.id
                    ));
                }
            }
            match listed.next {
                Some(after) => {
                    page = Page {
                        after: Some(after),
                        ..Page::first(500)
                    }
                }
                None => return Ok(()),
            }
        }
    }

    /// Each run has one execution, and there are no others.
    async fn executions(&self, play: &Play<'_>) -> Result<(), String> {
        let machine = &play.world.runs.pipeline_machine;
        let list = play.world.sfn.list_executions().state_machine_arn(machine);
        let mut listed = list.into_paginator().items().send();
        let mut found = BTreeSet::new();
        while let Some(execution) = listed.next().await {
            let execution = execution.map_err(|why| format!("the list of executions: {why}"))?;
            found.insert(execution.name);
        }
        let wanted: BTreeSet<String> = self.runs.values().map(|run| run.id.to_string()).collect();
        let difference: Vec<&String> = wanted.symmetric_difference(&found).collect();
        if !difference.is_empty() {
            return Err(format!(
                "runs without execution, or executions without run: {difference:?}"
            ));
        }
        if play.script.whole {
            for run in self.runs.values() {
                let ended = play.world.finish(&run.id).await;
                if ended.status != Status::Success {
                    return Err(format!(
                        "run {} ended {:?}: {:?}",
                        ended.id, ended.status, ended.failure
                    ));
                }
            }
        }
        Ok(())
    }

    fn judge(&self, all: &[Told]) -> Result<Counts, String> {
        let mut counts = Counts {
            runs: self.runs.len() as u64,
            ..Counts::default()
        };
        for (trigger, wants) in TRIGGERS {
            for told in all {
                let start = (told.unique, trigger);
                let (row, run) = (self.rows.get(&start), self.runs.get(&start));
                let about = || format!("{told:?} for {trigger}");
                match (wants(told), row, run) {
                    (false, None, None) => {}
                    (false, Some(row), None) if row.run.is_none() => {}
                    (false, row, run) => {
                        return Err(format!("{} started: {row:?}, {run:?}", about()));
                    }
                    (true, Some(row), Some(run)) if row.run.as_ref() == Some(&run.id) => {}
                    (true, Some(row), None) if row.run.is_none() => {
                        self.overtaken(all, told, start, row)?;
                        counts.overtaken += 1;
                    }
                    (true, row, run) => {
                        return Err(format!("{} is lost: {row:?}, {run:?}", about()));
                    }
                }
            }
        }
        for (start, run) in &self.runs {
            self.in_order(all, *start, run)?;
        }
        Ok(counts)
    }

    /// Whether something newer of the same line came before, where a trigger says so. That may have been overtaken itself;
    /// the newest of a line never is.
    fn overtaken(
        &self,
        all: &[Told],
        told: &Told,
        (_, trigger): Start,
        row: &OutcomeRecord,
    ) -> Result<(), String> {
        let newer = all.iter().filter(|other| {
            (other.sender, other.line) == (told.sender, told.line) && other.unique > told.unique
        });
        let mut rows = newer.filter_map(|other| self.rows.get(&(other.unique, trigger)));
        let newer = rows.any(|other| other.received_ms <= row.decided_ms);
        match row.message.contains("newer") && newer {
            true => Ok(()),
            false => Err(format!("{told:?} started nothing by {trigger}: {row:?}")),
        }
    }

    /// A line about what happened, what its trigger noted, and its run.
    fn story(&self, start: Start, told: &Told, run: &RunRecord) -> String {
        let row = self.rows.get(&start);
        let (received, decided) = row.map(|row| (row.received_ms, row.decided_ms)).unzip();
        let (id, started) = (&run.id, run.started_ms);
        format!("\n  {told:?}: received {received:?}, decided {decided:?}, run {id} from {started}")
    }

    /// Nothing older starts behind something newer of the same line.
    fn in_order(
        &self,
        told: &[Told],
        (unique, trigger): Start,
        run: &RunRecord,
    ) -> Result<(), String> {
        let of = |unique: u64| told.iter().find(|told| told.unique == unique);
        let Some(own) = of(unique).filter(|own| own.sender != super::sender::Sender::Custom) else {
            return Ok(());
        };
        let newer = self.runs.iter().find(|((other, by), later)| {
            *by == trigger
                && *other > unique
                && of(*other).is_some_and(|other| other.line == own.line)
                && later.started_ms + AT_ONCE_MS < run.started_ms
        });
        match newer {
            None => Ok(()),
            Some(((other, _), later)) => Err(format!(
                "number {unique} started a run of {trigger} after {other} did, which is newer:{}{}",
                self.story((unique, trigger), own, run),
                of(*other).map_or_else(String::new, |newer| self.story(
                    (*other, trigger),
                    newer,
                    later
                )),
            )),
        }
    }
}
