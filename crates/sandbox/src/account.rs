//! The account: all of its state, and its advance through time.
//!
//! Time-driven changes are discrete events at exact instants that follow from stored state alone, and ids
//! are drawn from a stored counter. So an account that was killed and opened again goes through the same
//! changes with the same ids as if nothing had happened, and reading at 10:00 shows the same whether or
//! not anybody looked at 9:59.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::alarm::Alarm;
use crate::ecs::capacity::CapacityProvider;
use crate::ecs::cluster::Cluster;
use crate::ecs::service::Service;
use crate::ecs::task::Task;
use crate::ecs::task_definition::TaskDefinition;
use crate::ecs::{cluster, scheduler, task};
use crate::error::StoreError;
use crate::image::{ImageBehaviour, ImageRule, behaviour};
use crate::inventory::Resource;
use crate::lambda;
use crate::pace::Pace;
use crate::scaling::{Policy, ScalableTarget, ScheduledAction};
use crate::sts::{Role, Session};
use crate::table::{Change, Table};
use crate::{autoscaling, discovery, ec2, ecr, elb, iam};

/// Events that one advance works through before the account gives up catching up with a long absence and
/// lets what is still due happen now: a service that crashes every second must not make opening take
/// minutes after a month.
const CATCH_UP_EVENTS: u32 = 30_000;
/// Stopped tasks kept at most, whatever their age.
const STOPPED_TASKS: usize = 2_000;

/// Something that will happen by itself. Ordered, so that events of one instant come in one order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wake {
    Task(String),
    Service(String),
    Cluster(String),
    /// After the task behind it.
    Target(String),
    LoadBalancer(String),
    /// An Auto Scaling group.
    Group(String),
    /// `$LATEST` of a function.
    Function(String),
    FunctionVersion(String),
}

/// Facts about the account as a whole.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Ledger {
    /// Ids drawn so far.
    drawn: u64,
}

#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) id: String,
    pub(crate) pace: Pace,
    /// The instant that is being lived through: of the event, or of the request.
    pub(crate) now: Timestamp,
    pub(crate) clusters: Table<Cluster>,
    pub(crate) capacity_providers: Table<CapacityProvider>,
    pub(crate) task_definitions: Table<TaskDefinition>,
    pub(crate) services: Table<Service>,
    pub(crate) tasks: Table<Task>,
    pub(crate) scalable_targets: Table<ScalableTarget>,
    pub(crate) scaling_policies: Table<Policy>,
    pub(crate) scheduled_actions: Table<ScheduledAction>,
    pub(crate) alarms: Table<Alarm>,
    pub(crate) sessions: Table<Session>,
    pub(crate) roles: Table<Role>,
    /// Regions that the account opted in to.
    pub(crate) regions: Table<bool>,
    pub(crate) images: Table<ImageRule>,
    pub(crate) elb: elb::Tables,
    pub(crate) ec2: ec2::Tables,
    pub(crate) autoscaling: autoscaling::Tables,
    pub(crate) lambda: lambda::Tables,
    pub(crate) iam: iam::Tables,
    pub(crate) ecr: ecr::Tables,
    pub(crate) discovery: discovery::Tables,
    ledger: Table<Ledger>,
    agenda: BTreeSet<(Timestamp, Wake)>,
    /// Stopped tasks by the time they stopped, to forget the oldest first.
    stopped: BTreeSet<(Timestamp, String)>,
}

impl Account {
    /// An empty account at the beginning of time: the first advance brings it to the present, through all
    /// that was due while nobody looked.
    pub(crate) fn new(id: String, pace: Pace) -> Self {
        Self {
            id,
            pace,
            now: Timestamp::UNIX_EPOCH,
            clusters: Table::new("cluster"),
            capacity_providers: Table::new("capacity-provider"),
            task_definitions: Table::new("task-definition"),
            services: Table::new("service"),
            tasks: Table::new("task"),
            scalable_targets: Table::new("scalable-target"),
            scaling_policies: Table::new("scaling-policy"),
            scheduled_actions: Table::new("scheduled-action"),
            alarms: Table::new("alarm"),
            sessions: Table::new("session"),
            roles: Table::new("role"),
            regions: Table::new("region"),
            images: Table::new("image"),
            elb: elb::Tables::new(),
            ec2: ec2::Tables::new(),
            autoscaling: autoscaling::Tables::new(),
            lambda: lambda::Tables::new(),
            iam: iam::Tables::new(),
            ecr: ecr::Tables::new(),
            discovery: discovery::Tables::new(),
            ledger: Table::new("ledger"),
            agenda: BTreeSet::new(),
            stopped: BTreeSet::new(),
        }
    }

    /// Takes in one stored entity. Entities of kinds that this version does not know are left alone.
    pub(crate) fn load(&mut self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        let _known = self.clusters.load(key, value)?
            || self.capacity_providers.load(key, value)?
            || self.task_definitions.load(key, value)?
            || self.services.load(key, value)?
            || self.tasks.load(key, value)?
            || self.scalable_targets.load(key, value)?
            || self.scaling_policies.load(key, value)?
            || self.scheduled_actions.load(key, value)?
            || self.alarms.load(key, value)?
            || self.sessions.load(key, value)?
            || self.roles.load(key, value)?
            || self.regions.load(key, value)?
            || self.images.load(key, value)?
            || self.elb.load(key, value)?
            || self.ec2.load(key, value)?
            || self.autoscaling.load(key, value)?
            || self.lambda.load(key, value)?
            || self.iam.load(key, value)?
            || self.ecr.load(key, value)?
            || self.discovery.load(key, value)?
            || self.ledger.load(key, value)?;
        Ok(())
    }

    /// Rebuilds what is derived from stored entities. To be called once after the last [`Self::load`].
    pub(crate) fn loaded(&mut self) {
        self.agenda.extend(self.elb.due());
        self.agenda.extend(self.autoscaling.due());
        self.agenda.extend(self.lambda.due());
        for (key, row) in self.tasks.iter() {
            if let Some(due) = row.due {
                self.agenda.insert((due, Wake::Task(key.clone())));
            }
            if let Some(at) = row.stopped_at {
                self.stopped.insert((at, key.clone()));
            }
        }
        for (key, row) in self.services.iter() {
            if let Some(due) = row.due {
                self.agenda.insert((due, Wake::Service(key.clone())));
            }
        }
        for (key, row) in self.clusters.iter() {
            if let Some(due) = row.due {
                self.agenda.insert((due, Wake::Cluster(key.clone())));
            }
        }
    }

    /// Everything that is there and is somebody's.
    pub(crate) fn show(&self, into: &mut Vec<Resource>) {
        self.clusters.show(into);
        self.capacity_providers.show(into);
        self.services.show(into);
        self.tasks.show(into);
        self.task_definitions.show(into);
        self.scalable_targets.show(into);
        self.scaling_policies.show(into);
        self.scheduled_actions.show(into);
        self.alarms.show(into);
        self.elb.show(into);
        self.autoscaling.show(into);
        self.ec2.show(into);
        self.lambda.show(into);
        self.iam.show(into);
        self.ecr.show(into);
        self.discovery.show(into);
        self.roles.show(into);
        self.regions.show(into);
        self.images.show(into);
    }

    /// What `image` does where it is pulled, with its exit code. An image that a repository of the account should have
    /// and has not is no image.
    pub(crate) fn behaviour(&self, image: &str) -> (ImageBehaviour, i32) {
        let rules = self.images.iter().map(|(_, rule)| rule);
        match ecr::pull(self, image) {
            ecr::Pulled::Elsewhere => behaviour(rules, image),
            ecr::Pulled::Missing => (ImageBehaviour::PullFails, 1),
            ecr::Pulled::Here { name, .. } => behaviour(rules, &name),
        }
    }

    /// What changed since the last call.
    pub(crate) fn changes(&mut self) -> Result<Vec<Change>, StoreError> {
        let mut changes = Vec::new();
        self.clusters.changes(&mut changes)?;
        self.capacity_providers.changes(&mut changes)?;
        self.task_definitions.changes(&mut changes)?;
        self.services.changes(&mut changes)?;
        self.tasks.changes(&mut changes)?;
        self.scalable_targets.changes(&mut changes)?;
        self.scaling_policies.changes(&mut changes)?;
        self.scheduled_actions.changes(&mut changes)?;
        self.alarms.changes(&mut changes)?;
        self.sessions.changes(&mut changes)?;
        self.roles.changes(&mut changes)?;
        self.regions.changes(&mut changes)?;
        self.images.changes(&mut changes)?;
        self.elb.changes(&mut changes)?;
        self.ec2.changes(&mut changes)?;
        self.autoscaling.changes(&mut changes)?;
        self.lambda.changes(&mut changes)?;
        self.iam.changes(&mut changes)?;
        self.ecr.changes(&mut changes)?;
        self.discovery.changes(&mut changes)?;
        self.ledger.changes(&mut changes)?;
        Ok(changes)
    }

    /// Lets go of what changed, for an account that lives in memory only.
    pub(crate) fn forget_changes(&mut self) {
        self.clusters.forget_changes();
        self.capacity_providers.forget_changes();
        self.task_definitions.forget_changes();
        self.services.forget_changes();
        self.tasks.forget_changes();
        self.scalable_targets.forget_changes();
        self.scaling_policies.forget_changes();
        self.scheduled_actions.forget_changes();
        self.alarms.forget_changes();
        self.sessions.forget_changes();
        self.roles.forget_changes();
        self.regions.forget_changes();
        self.images.forget_changes();
        self.elb.forget_changes();
        self.ec2.forget_changes();
        self.autoscaling.forget_changes();
        self.lambda.forget_changes();
        self.iam.forget_changes();
        self.ecr.forget_changes();
        self.discovery.forget_changes();
        self.ledger.forget_changes();
    }

    /// Rows that changed since the last commit, roughly.
    pub(crate) fn pending(&self) -> usize {
        let of_ecs = self.tasks.pending() + self.services.pending();
        let of_groups = self.ec2.pending() + self.autoscaling.pending();
        let of_functions = self.lambda.pending();
        let of_roles = self.iam.pending() + self.sessions.pending();
        of_ecs + of_groups + of_functions + of_roles + self.elb.pending()
    }

    /// When the next event is due.
    pub(crate) fn next_event(&self) -> Option<Timestamp> {
        self.agenda.first().map(|(at, _)| *at)
    }

    /// Lives through everything that is due up to `to`.
    pub(crate) fn advance(&mut self, to: Timestamp) {
        let mut left = CATCH_UP_EVENTS;
        while self.next_event().is_some_and(|at| at <= to) {
            let Some((at, wake)) = self.agenda.pop_first() else {
                break;
            };
            let on_time = left > 0;
            left = left.saturating_sub(1);
            self.now = self.now.max(if on_time { at } else { to });
            match wake {
                Wake::Task(key) => {
                    if self.tasks.get(&key).is_some_and(|row| row.due == Some(at)) {
                        task::advance(self, &key);
                    }
                }
                Wake::Service(key) => {
                    if self
                        .services
                        .get(&key)
                        .is_some_and(|row| row.due == Some(at))
                    {
                        scheduler::tick(self, &key);
                    }
                }
                Wake::Cluster(key) => cluster::forget(self, &key, at),
                Wake::Target(key) => elb::advance(self, &key, at),
                Wake::LoadBalancer(arn) => elb::activate(self, &arn, at),
                Wake::Group(key) => autoscaling::advance(self, &key, at),
                Wake::Function(key) => lambda::settle(self, &key, at),
                Wake::FunctionVersion(key) => lambda::settle_version(self, &key, at),
            }
        }
        self.now = self.now.max(to);
    }

    /// The instant `after` from now; never now itself, so that no chain of events can stand still.
    pub(crate) fn later(&self, after: Duration) -> Timestamp {
        let after = SignedDuration::try_from(after.max(Duration::from_millis(1)))
            .unwrap_or(SignedDuration::MAX);
        self.now.checked_add(after).unwrap_or(Timestamp::MAX)
    }

    /// The instant `after` another one.
    pub(crate) fn after(&self, from: Timestamp, after: Duration) -> Timestamp {
        let after = SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX);
        from.checked_add(after).unwrap_or(Timestamp::MAX)
    }

    /// Notes when a task, service or cluster wants to be looked at; the entity's own `due` decides.
    pub(crate) fn schedule(&mut self, at: Timestamp, wake: Wake) {
        self.agenda.insert((at, wake));
    }

    /// Notes that a task has stopped, and forgets the oldest when there are too many.
    pub(crate) fn task_stopped(&mut self, key: &str) {
        self.stopped.insert((self.now, key.to_owned()));
        while self.stopped.len() > STOPPED_TASKS {
            if let Some((_, oldest)) = self.stopped.pop_first() {
                self.tasks.take(&oldest);
            }
        }
    }

    /// Forgets a stopped task.
    pub(crate) fn forget_task(&mut self, key: &str) {
        if let Some(task) = self.tasks.take(key)
            && let Some(at) = task.stopped_at
        {
            self.stopped.remove(&(at, key.to_owned()));
        }
    }

    /// Draws a number. The same account draws the same numbers in the same order, so whole runs repeat.
    fn draw(&mut self) -> [u8; 32] {
        let mut ledger = self.ledger.take("account").unwrap_or_default();
        ledger.drawn += 1;
        let digest = Sha256::digest(format!("{}/{}", self.id, ledger.drawn));
        self.ledger.put("account".to_owned(), ledger);
        digest.into()
    }

    /// Lower-case hexadecimal digits, at most 64.
    pub(crate) fn draw_hex(&mut self, digits: usize) -> String {
        use std::fmt::Write;
        let mut text = String::new();
        for byte in self.draw() {
            let _infallible = write!(text, "{byte:02x}");
        }
        text.truncate(digits);
        text
    }

    pub(crate) fn draw_uuid(&mut self) -> String {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&self.draw()[..16]);
        uuid::Builder::from_random_bytes(bytes)
            .into_uuid()
            .to_string()
    }

    /// A number of 19 digits, as deployment ids have.
    pub(crate) fn draw_digits(&mut self) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.draw()[..8]);
        1_000_000_000_000_000_000 + u64::from_be_bytes(bytes) % 8_000_000_000_000_000_000
    }

    /// Upper-case letters and digits, as access keys have.
    pub(crate) fn draw_key(&mut self, length: usize) -> String {
        const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        let bytes = self.draw();
        let letters = bytes.iter().cycle().zip(0..length);
        letters
            .map(|(byte, _)| char::from(LETTERS[usize::from(byte % 32)]))
            .collect()
    }
}
