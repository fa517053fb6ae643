//! The service scheduler: one look at one service.
//!
//! It is woken by what happens to the service and its tasks, and never runs on a timer except to end a
//! throttle. Every look moves the service a step towards its desired state: breaker, stops, starts,
//! completion, steady state.

use super::alarms;
use super::container::Container;
use super::deployment::{Deployment, DeploymentStatus, RolloutState};
use super::event;
use super::load_balancing;
use super::moves::{Bounds, Member, Moves, decide};
use super::placement::{self, Wanted};
use super::role;
use super::service::{self, Service, ServiceStatus};
use super::service_create::is_daemon;
use super::task::{self, Health, Owner, Status, Task};
use super::task_definition;
use crate::account::Account;
use crate::ecr;
use crate::ecs::run_task::{Order, new_task};

/// Looks at a service.
pub(crate) fn tick(account: &mut Account, key: &str) {
    let Some(mut service) = account.services.take(key) else {
        return;
    };
    service.due = None;
    match service.status {
        ServiceStatus::Active => roll(account, &mut service),
        ServiceStatus::Draining => drain(account, &mut service),
        // Its time of being visible is over: taken out and not put back.
        ServiceStatus::Inactive => return,
    }
    let again = next_look(account, &service);
    account.services.put(key.to_owned(), service);
    if let Some(at) = again {
        service::wake_at(account, key, at);
    }
}

/// When to look again without any news: most looks wait for some.
fn next_look(account: &Account, service: &Service) -> Option<jiff::Timestamp> {
    match service.status {
        ServiceStatus::Inactive => Some(account.later(account.pace.keep_stopped)),
        ServiceStatus::Draining => None,
        ServiceStatus::Active => {
            let short = wants_more(account, service);
            let until = service.throttled_until.filter(|until| *until > account.now);
            let soon = account.later(account.pace.scheduler);
            short.then(|| until.unwrap_or(soon).max(soon))
        }
    }
}

/// Whether tasks are to be started that this look did not start.
fn wants_more(account: &Account, service: &Service) -> bool {
    let Some(primary) = service.primary() else {
        return false;
    };
    let failed = primary.rollout == RolloutState::Failed;
    let members = members(account, service);
    let bounds = bounds(service);
    !failed && decide(bounds, &members).start > 0
}

fn roll(account: &mut Account, service: &mut Service) {
    if is_daemon(&service.document) {
        let instances = placement::of_cluster(account, &service.region, &service.cluster).len();
        let desired = i64::try_from(instances).unwrap_or(i64::MAX);
        service.steady &= service.desired == desired;
        service.desired = desired;
    }
    break_circuit(account, service);
    alarms::watch(account, service);
    let Some(primary) = service.primary().cloned() else {
        return;
    };
    let moves = decide(bounds(service), &members(account, service));
    let failed = primary.rollout == RolloutState::Failed;
    carry_out_stops(account, service, &primary, &moves, failed);
    let throttled = service
        .throttled_until
        .is_some_and(|until| until > account.now);
    if moves.start > 0 && !throttled && !failed {
        start(account, service, &primary, &moves);
    }
    complete(account, service);
    settle(account, service);
}

fn bounds(service: &Service) -> Bounds {
    let desired = service.desired;
    match service.configuration() {
        Ok(configuration) => Bounds {
            desired,
            minimum: configuration.minimum(desired),
            maximum: configuration.maximum(desired),
        },
        Err(_) => Bounds {
            desired,
            minimum: desired,
            maximum: desired * 2,
        },
    }
}

fn members(account: &Account, service: &Service) -> Vec<Member> {
    let primary = service.primary().map(|one| one.id.as_str());
    let live = service.live.iter().filter_map(|key| account.tasks.get(key));
    let mut tasks: Vec<&Task> = live
        .filter(|task| task.status < Status::Deprovisioning)
        .collect();
    tasks.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    let member = |task: &&Task| Member {
        key: task.key(),
        primary: task.owner.as_ref().map(|one| one.deployment.as_str()) == primary,
        stopping: task.is_stopping(),
        running: task.status == Status::Running,
        healthy: is_healthy(account, task),
        unhealthy: task.health == Health::Unhealthy,
    };
    tasks.iter().map(member).collect()
}

/// Whether a task serves: by its own health and by that of its targets.
fn is_healthy(account: &Account, task: &Task) -> bool {
    task.status == Status::Running
        && task.health == Health::Healthy
        && load_balancing::is_healthy(account, task)
}

/// Fails the deployment in progress when too many of its tasks failed, and rolls back if asked to.
fn break_circuit(account: &mut Account, service: &mut Service) {
    let now = account.now;
    let Some(breaker) = service.configuration().ok().and_then(|one| one.breaker) else {
        return;
    };
    let threshold = breaker.threshold(service.desired);
    let Some(primary) = service.primary_mut() else {
        return;
    };
    if !primary.is_in_progress() || i64::from(primary.failed_tasks) < threshold {
        return;
    }
    let reason = "ECS deployment circuit breaker: tasks failed to start.";
    primary.turn(RolloutState::Failed, reason.to_owned(), now);
    let id = primary.id.clone();
    event::push(account, service, &event::failed(&id));
    if breaker.rollback {
        roll_back(account, service, "ECS deployment circuit breaker");
    }
}

/// Makes the last completed deployment PRIMARY again. It keeps its id, and is no target of another
/// rollback until it has completed once more ("How the Amazon ECS deployment circuit breaker detects
/// failures", developer guide). Without one the deployment stays where it is.
pub(super) fn roll_back(account: &mut Account, service: &mut Service, who: &str) {
    let Some(mut target) = service.last_completed.take() else {
        return;
    };
    for deployment in &mut service.deployments {
        deployment.status = DeploymentStatus::Active;
    }
    service.deployments.retain(|one| one.id != target.id);
    target.status = DeploymentStatus::Primary;
    target.failed_tasks = 0;
    let reason = format!("{who}: rolling back to deploymentId {}.", target.id);
    target.turn(RolloutState::InProgress, reason, account.now);
    let message = event::rolling_back(&target.id);
    service.settings = target.settings.clone();
    service.deployments.insert(0, target);
    service.unthrottle();
    service.steady = false;
    event::push(account, service, &message);
}

/// Stops what `moves` names. A failed deployment replaces nothing, so then only unhealthy tasks stop.
fn carry_out_stops(
    account: &mut Account,
    service: &mut Service,
    primary: &Deployment,
    moves: &Moves,
    failed: bool,
) {
    for key in &moves.unhealthy {
        let reason = match service.target_groups().first() {
            Some((group, _)) => format!("Task failed ELB health checks in (target-group {group})"),
            None => "Task failed container health checks".to_owned(),
        };
        task::stop_by_scheduler(account, key, reason);
    }
    stopped(account, service, &moves.unhealthy);
    if failed {
        return;
    }
    let reason = format!("Scaling activity initiated by (deployment {})", primary.id);
    for key in moves.pending.iter().chain(&moves.running) {
        task::stop_by_scheduler(account, key, reason.clone());
    }
    if !moves.pending.is_empty() {
        let message = event::stopped_pending(moves.pending.len());
        event::push(account, service, &message);
    }
    stopped(account, service, &moves.running);
}

fn stopped(account: &mut Account, service: &mut Service, keys: &[String]) {
    if keys.is_empty() {
        return;
    }
    service.steady = false;
    let groups = service.target_groups();
    for (group, _) in &groups {
        let deregistered = event::deregistered(keys.len(), group);
        event::push(account, service, &deregistered);
    }
    if !groups.is_empty() {
        event::push(account, service, &event::draining(keys));
    }
    event::push(account, service, &event::stopped_running(keys));
}

fn start(account: &mut Account, service: &mut Service, primary: &Deployment, moves: &Moves) {
    let found = task_definition::find(account, &service.region, &primary.task_definition);
    let Some(definition) = found.cloned() else {
        return;
    };
    service.steady = false;
    if let Some(why) = role::refused(account, &definition) {
        service::cannot_launch(account, service, moves.start, &why);
        return;
    }
    let mut keys = Vec::new();
    for _ in 0..moves.start {
        let order = Order::of_service(service, primary, &definition);
        let wanted = Wanted {
            region: &service.region,
            cluster: &service.cluster,
            definition: &definition,
            settings: &primary.settings,
            group: order.group(),
            apart: is_daemon(&service.document) || placement::is_apart(&service.document),
        };
        let host = match placement::choose(account, wanted) {
            Ok(host) => host,
            Err(why) => {
                service::cannot_place(account, service, &why);
                break;
            }
        };
        let task = new_task(account, &order, host);
        let key = task::begin(account, task);
        service.live.insert(key.clone());
        keys.push(key);
    }
    if !keys.is_empty() {
        event::push(account, service, &event::started(&keys));
    }
}

/// Counts of one deployment's tasks.
struct Tally {
    healthy: i64,
    /// Not stopped.
    live: i64,
}

fn tally(account: &Account, service: &Service, deployment: &str) -> Tally {
    let mut tally = Tally {
        healthy: 0,
        live: 0,
    };
    for task in service.live.iter().filter_map(|key| account.tasks.get(key)) {
        let owner: Option<&Owner> = task.owner.as_ref();
        if owner.is_some_and(|one| one.deployment == deployment) {
            tally.live += 1;
            tally.healthy += i64::from(is_healthy(account, task) && !task.is_stopping());
        }
    }
    tally
}

/// Drops deployments that have no task left, and completes the PRIMARY one when it is alone and whole.
fn complete(account: &mut Account, service: &mut Service) {
    let alive: Vec<String> = service
        .deployments
        .iter()
        .filter(|one| one.is_primary() || tally(account, service, &one.id).live > 0)
        .map(|one| one.id.clone())
        .collect();
    let Some(primary) = service.primary().cloned() else {
        return;
    };
    // Until the new deployment is whole, the old ones stay listed, as in AWS.
    let whole = tally(account, service, &primary.id).healthy == service.desired;
    if whole && primary.rollout != RolloutState::Failed {
        service.deployments.retain(|one| alive.contains(&one.id));
    }
    let alone = service.deployments.len() == 1;
    if !(primary.is_in_progress() && whole && alone) {
        return;
    }
    let now = account.now;
    if let Some(done) = service.primary_mut() {
        let reason = format!("ECS deployment {} completed.", done.id);
        done.turn(RolloutState::Completed, reason, now);
    }
    service.last_completed = service.primary().cloned();
    event::push(account, service, &event::completed(&primary.id));
}

/// Announces the steady state once it is reached.
fn settle(account: &mut Account, service: &mut Service) {
    let Some(primary) = service.primary() else {
        return;
    };
    let tally = tally(account, service, &primary.id);
    let steady = primary.rollout == RolloutState::Completed
        && tally.healthy == service.desired
        && i64::try_from(service.live.len()) == Ok(service.desired);
    if steady && !service.steady {
        service.steady = true;
        event::push(account, service, event::STEADY);
    }
}

/// Stops everything that a deleted service still runs; without tasks it is INACTIVE.
fn drain(account: &mut Account, service: &mut Service) {
    let mut stopping = Vec::new();
    for member in members(account, service) {
        if !member.stopping {
            stopping.push(member.key);
        }
    }
    let primary = service.primary().map(|one| one.id.clone());
    let reason = format!(
        "Scaling activity initiated by (deployment {})",
        primary.unwrap_or_default()
    );
    for key in &stopping {
        task::stop_by_scheduler(account, key, reason.clone());
    }
    stopped(account, service, &stopping);
    if service.live.is_empty() {
        service.status = ServiceStatus::Inactive;
        service.deployments.clear();
        service.last_completed = None;
    }
}

/// Fresh containers of a task.
pub(crate) fn containers(
    account: &mut Account,
    definition: &task_definition::TaskDefinition,
    arn_prefix: &str,
) -> Vec<Container> {
    let mut containers = Vec::new();
    for spec in &definition.containers {
        let arn = format!("{arn_prefix}/{}", account.draw_uuid());
        let drawn = format!("sha256:{}", account.draw_hex(64));
        containers.push(Container {
            spec: spec.clone(),
            arn,
            digest: match ecr::pull(account, &spec.image) {
                ecr::Pulled::Here { digest, .. } => digest,
                _ => drawn,
            },
            runtime_id: None,
            exit_code: None,
            reason: None,
        });
    }
    containers
}
