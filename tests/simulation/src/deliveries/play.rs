//! Plays a script on the real functions and the real store.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use slipway_model::id::{AccountId, EntityId};
use slipway_store::{Store, TriggerPlace};
use slipway_world::{Hooks, Options, World, minutes, scope};

use super::script::{Script, Sent, Told};
use super::sender::{SECRET, post, triggers};
use super::storm::Storm;
use super::{Counts, sender};

/// A sender gives up after so many posts without an answer: nothing lasts that long here.
const MOST_POSTS: u32 = 200;

/// Minutes that everything is left to the sweeps at most, once the storm is over.
const MOST_MINUTES: u32 = 60;

/// Pipelines of one step that does nothing.
const PIPELINE: &str = "pipeline:\n  name: release\n  identifier: release\n  orgIdentifier: default\n  projectIdentifier: shop\n  stages:\n    - stage:\n        name: build\n        identifier: build\n        type: Custom\n        spec:\n          execution:\n            steps:\n              - step:\n                  name: pause\n                  identifier: pause\n                  type: Wait\n                  spec:\n                    duration: 1s\n";

/// A world while it is played.
pub(super) struct Play<'s> {
    pub(super) world: World,
    pub(super) script: &'s Script,
    hooks: Hooks,
    storm: Arc<Storm>,
    called: String,
    swept: tokio::time::Instant,
    sweeps: u64,
    counts: Counts,
}

/// Plays a script and gives what came of it to `check`; with the trace where something does not hold.
pub(super) fn play(script: &Script, traced: bool) -> Result<Counts, String> {
    fastrand::seed(script.seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let storm = Arc::new(Storm::new(script, traced));
        let mut play = Play::begin(script, storm.clone()).await;
        let done = play.whole().await;
        let mut counts = play.counts;
        counts += script.counts;
        counts += storm.counts();
        done.map(|seen| {
            counts += seen;
            counts
        })
        .map_err(|wrong| {
            let mut lines = vec![wrong];
            lines.extend(storm.trace());
            lines.join("\n")
        })
    })
}

impl<'s> Play<'s> {
    async fn begin(script: &'s Script, storm: Arc<Storm>) -> Self {
        let world = World::with(Options {
            tap: Some(storm.clone()),
            in_memory: true,
            hollow: !script.whole,
            ..Options::default()
        })
        .await;
        world.apply(PIPELINE).await;
        world.put_secret("hook", SECRET).await;
        for yaml in triggers() {
            world.apply(&yaml).await;
        }
        let place = TriggerPlace {
            scope: scope(),
            pipeline: EntityId::new("release"),
            trigger: EntityId::new("called"),
        };
        let token = slipway_engine::intake::url::url_token(&world.url_key().await, &place);
        let called = format!(
            "/pipeline/api/webhook/custom/{token}/v3?accountIdentifier=acme&orgIdentifier=default&projectIdentifier=shop&pipelineIdentifier=release&triggerIdentifier=called"
        );
        Self {
            hooks: world.endangered_hooks(),
            world,
            script,
            storm,
            called,
            swept: tokio::time::Instant::now(),
            sweeps: 0,
            counts: Counts::default(),
        }
    }

    async fn whole(&mut self) -> Result<Counts, String> {
        self.storm.rage(true);
        let script = self.script;
        for moment in &script.moments {
            let posts = moment.sent.iter().map(|sent| self.send(*sent));
            for posted in join_all(posts).await {
                self.counts.repeated += posted?;
            }
            let pause = Duration::from_millis(moment.then_ms);
            self.world.runs.clock.sleep(pause).await;
            self.sweep().await;
        }
        self.calm_down().await?;
        let mut replays = self.script.replays.clone();
        replays.sort_by_key(|(hours, _)| *hours);
        let mut passed = 0;
        for (hours, sent) in replays {
            minutes(&self.world, 60 * (hours - passed)).await;
            passed = hours;
            self.storm.rage(true);
            self.counts.repeated += self.send(sent).await?;
            self.calm_down().await?;
        }
        super::check::check(self).await
    }

    /// Posts until it is answered that the delivery is kept, as a sender does that loses nothing. Answers how often it
    /// posted again.
    async fn send(&self, sent: Sent) -> Result<u64, String> {
        let told: Vec<&Told> = self.script.posts[sent.post]
            .iter()
            .map(|at| &self.script.told[*at])
            .collect();
        let id = format!("{}-{}", sent.post, sent.id);
        let sender::Post {
            path,
            headers,
            body,
        } = post(&told, &id, &self.called);
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        for again in 0..MOST_POSTS {
            self.storm
                .note(|| format!("{:?} posts {id}", told[0].sender));
            let answer = self
                .world
                .post_in_danger(&self.hooks, &path, &headers, &body);
            // Lambda ends a function at its limit, and senders wait no longer either.
            let answer = tokio::time::timeout(Duration::from_secs(30), answer).await;
            self.storm
                .note(|| format!("{:?} hears of {id}: {answer:?}", told[0].sender));
            match answer {
                Ok(Some((200, answer))) if !answer["data"].is_null() => {
                    return Ok(u64::from(again));
                }
                Ok(Some((status, answer))) if status < 500 => {
                    return Err(format!(
                        "delivery {id} of {:?} is answered {status}: {answer}",
                        told[0].sender
                    ));
                }
                _ => tokio::time::sleep(Duration::from_secs(u64::from(again % 7) * 3 + 1)).await,
            }
        }
        Err(format!(
            "delivery {id} of {:?} is never answered",
            told[0].sender
        ))
    }

    /// What the schedules do, where a minute is over; at times two of them at once.
    async fn sweep(&mut self) {
        if self.swept.elapsed() < Duration::from_secs(60) {
            return;
        }
        self.swept = tokio::time::Instant::now();
        self.storm.note(|| "a sweep".to_owned());
        let limit = Duration::from_secs(60);
        self.sweeps += 1;
        let twice = self.sweeps.is_multiple_of(4);
        let sweep = || tokio::time::timeout(limit, self.world.take_in());
        let runs = tokio::time::timeout(limit, self.world.start_accepted());
        let other = async {
            if twice {
                let _ = sweep().await;
            }
        };
        let _ = tokio::join!(sweep(), other, runs);
    }

    /// Lets the schedules finish what is left, with nothing in their way; people give back what was given up.
    async fn calm_down(&self) -> Result<(), String> {
        self.storm.rage(false);
        self.storm.note(|| "calm".to_owned());
        let store = &self.world.store;
        let broken = |what: &str, why: &dyn std::fmt::Display| format!("{what}: {why}");
        for _ in 0..MOST_MINUTES {
            minutes(&self.world, 1).await;
            self.world.take_in().await;
            let started = self.world.start_accepted().await;
            started.map_err(|why| broken("a sweep of runs", &why.full_text()))?;
            let dead = store.list_dead(&AccountId::new("acme")).await;
            let dead = dead.map_err(|why| broken("the list of what was given up", &why))?;
            for entry in &dead {
                let event = store.find_event(&entry.event).await;
                let event = event.map_err(|why| broken("an event", &why))?;
                let event = event.ok_or("an event that was given up is gone")?;
                let again = store.redrive(&event).await;
                again.map_err(|why| broken("a redrive", &why))?;
            }
            if dead.is_empty() && self.open().await?.is_empty() {
                return Ok(());
            }
        }
        let open = self.open().await?;
        Err(format!(
            "after {MOST_MINUTES} calm minutes is still open: {}",
            open.join(", ")
        ))
    }

    /// Events and runs that are on the lists of what is to be done.
    async fn open(&self) -> Result<Vec<String>, String> {
        let store = &self.world.store;
        let mut open = Vec::new();
        for list in 0..Store::INTAKE_LISTS {
            let listed = store.list_accepted(list, i64::MAX, 10).await;
            let listed = listed.map_err(|why| format!("the list of events: {why}"))?;
            open.extend(
                listed
                    .into_iter()
                    .map(|entry| format!("event {} ({:?})", entry.event, entry.why)),
            );
        }
        for shard in 0..Store::UNSTARTED_LISTS {
            let listed = store.list_unstarted(shard, 999_999_999_999_999, 10).await;
            let listed = listed.map_err(|why| format!("the list of runs: {why}"))?;
            open.extend(listed.into_iter().map(|entry| format!("run {}", entry.run)));
        }
        Ok(open)
    }
}
