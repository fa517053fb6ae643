//! An AWS account in a process: ECS, Auto Scaling groups, their load balancers and Lambda as they behave over time,
//! on the wire.
//!
//! A [`Sandbox`] answers Amazon ECS, ECR, EC2 and its Auto Scaling, Elastic Load Balancing v2, Application Auto
//! Scaling, AWS Lambda, Cloud Map, STS and IAM in their own protocols, so that `aws ecs … --endpoint-url`, `aws ecs wait services-stable` and every SDK work
//! against it. Behind the operations lives a service scheduler: deployments go from IN_PROGRESS to COMPLETED
//! or FAILED task by task, under the healthy percentages, with events, a circuit breaker and its rollback.
//! Tasks of services with target groups are their targets, initial, healthy and draining, and so are the
//! instances of Auto Scaling groups, which instance refreshes replace batch by batch. Tasks of services with service
//! registries are instances of Cloud Map.
//!
//! No request is forwarded, but where requests would go is written down at every change:
//! [`Sandbox::traffic`] tells which tasks served a listener since when, and how many requests would have
//! found no healthy target.
//!
//! ```text
//! http ──▶ caller (whose key, which region) ──▶ fault? ──▶ ecs | ec2 | elb | … ──▶ account ──▶ journal
//!                                                                                          ▲
//! control (/_sandbox/…) ───────────────────────────────────────────────────────────────────┘
//! ```
//!
//! What is not AWS's: signatures are not verified; there is one account, whatever account a role is in, but
//! every region has its own resources; container instances have memory and CPU for every task; there are no subnets and
//! VPCs, any id will do; nothing scales by itself; services have rolling updates only. Everything else that is missing says so when called.

mod account;
mod alarm;
mod arn;
mod autoscaling;
mod call;
mod caller;
mod control;
mod discovery;
mod ec2;
mod ecr;
mod ecs;
mod elb;
mod error;
mod fault;
mod fields;
mod http;
mod iam;
mod image;
mod inventory;
mod journal;
mod keys;
mod lambda;
mod objects;
mod pace;
mod page;
mod query;
mod region;
mod scaling;
mod state;
mod sts;
mod table;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use jiff::SignedDuration;
use slipway_clock::Clock;
use tokio::sync::Notify;

pub use crate::call::Call;
pub use crate::control::RoleRule;
pub use crate::elb::{Requests, RuleTraffic, TrafficRoute, TrafficSpan};
pub use crate::error::{OpenError, StoreError};
pub use crate::fault::{ActiveFault, Fault, FaultEffect, Faults};
pub use crate::image::{ImageBehaviour, ImageRule};
pub use crate::inventory::Resource;
pub use crate::keys::{Documents, Unreachable};
pub use crate::lambda::AliasTraffic;
pub use crate::objects::{Object, ObjectError, Objects};
pub use crate::pace::Pace;

use crate::account::Account;
use crate::call::CallLog;
use crate::error::ApiError;
use crate::state::State;
use crate::sts::Role;

/// How long [`Sandbox::run`] waits after the data file failed.
const AFTER_FAILURE: SignedDuration = SignedDuration::from_secs(1);

/// What an account is.
#[derive(Clone, Debug)]
pub struct SandboxConfig {
    /// Moves the account.
    pub clock: Clock,
    /// Region of requests whose signature names none.
    pub region: String,
    /// Account id, 12 digits.
    pub account: String,
    /// How long things take.
    pub pace: Pace,
}

/// An AWS account. Clones are the same account.
#[derive(Clone)]
pub struct Sandbox(Arc<Inner>);

struct Inner {
    config: SandboxConfig,
    state: Mutex<State>,
    faults: Faults,
    calls: CallLog,
    objects: OnceLock<Arc<dyn Objects>>,
    documents: OnceLock<Arc<dyn Documents>>,
    known_as: OnceLock<String>,
    environments: OnceLock<Arc<lambda::Environments>>,
    /// Something may be due earlier than [`Sandbox::run`] thinks.
    changed: Notify,
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let account = &self.0.config.account;
        formatter
            .debug_struct("Sandbox")
            .field("account", account)
            .finish_non_exhaustive()
    }
}

impl Sandbox {
    /// Opens the account in the data file at `path`, which is created when missing; without a path the
    /// account lives in memory only.
    ///
    /// # Errors
    /// When another process holds the file, when it cannot be read, or when a newer version wrote it.
    pub fn open(path: Option<&Path>, config: SandboxConfig) -> Result<Self, OpenError> {
        let state = State::open(path, config.clone())?;
        Ok(Self(Arc::new(Inner {
            config,
            state: Mutex::new(state),
            faults: Faults::default(),
            calls: CallLog::default(),
            objects: OnceLock::new(),
            documents: OnceLock::new(),
            known_as: OnceLock::new(),
            environments: OnceLock::new(),
            changed: Notify::new(),
        })))
    }

    /// The account on HTTP: `POST /` for AWS's protocols, `/_sandbox/…` for its controls. Signatures are
    /// not verified: serve it on loopback addresses only.
    pub fn router(&self) -> axum::Router {
        http::router(self.clone())
    }

    /// Says where the objects of S3 are that services of the account read; the first word counts.
    pub fn read_objects_from(&self, objects: Arc<dyn Objects>) {
        self.0.objects.get_or_init(|| objects);
    }

    pub(crate) fn objects(&self) -> Option<&dyn Objects> {
        self.0.objects.get().map(|objects| &**objects)
    }

    /// Says how STS reads what OpenID Connect providers publish; the first word counts. Without it no provider can be reached.
    pub fn read_documents_with(&self, documents: Arc<dyn Documents>) {
        self.0.documents.get_or_init(|| documents);
    }

    pub(crate) fn documents(&self) -> Option<&dyn Documents> {
        self.0.documents.get().map(|documents| &**documents)
    }

    /// Says at which address clients reach the account, `http://127.0.0.1:7880` for instance, for answers that name a
    /// place to download from. Without it that is the host that each request names. The first word counts.
    pub fn known_as(&self, address: String) {
        self.0.known_as.get_or_init(|| address);
    }

    pub(crate) fn address(&self) -> Option<&str> {
        self.0.known_as.get().map(String::as_str)
    }

    /// Says in which folder the functions of Lambda are unpacked and run: it belongs to this account alone, and what is in
    /// it is removed. Without one no function can be invoked. The first word counts.
    ///
    /// # Errors
    /// When the folder cannot be emptied or written.
    pub fn run_functions_in(&self, folder: &Path) -> std::io::Result<()> {
        let environments = lambda::Environments::open(folder)?;
        self.0.environments.get_or_init(|| environments);
        Ok(())
    }

    pub(crate) fn environments(&self) -> Option<Arc<lambda::Environments>> {
        self.0.environments.get().cloned()
    }

    /// Faults on request.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// Recent calls, oldest first; at most 10,000.
    pub fn calls(&self) -> Vec<Call> {
        self.0.calls.list()
    }

    /// Rules for images, see [`ImageBehaviour`].
    ///
    /// # Errors
    /// When the data file failed before and cannot be read now.
    pub fn images(&self) -> Result<Vec<ImageRule>, StoreError> {
        let rules = |account: &Account| {
            account
                .images
                .iter()
                .map(|(_, rule)| rule.clone())
                .collect()
        };
        self.look(rules)
    }

    /// Sets the rule of an image or of all images with a prefix. It holds for images pulled from now on.
    ///
    /// # Errors
    /// When the data file cannot be written; the rule is not set then.
    pub fn set_image(&self, rule: ImageRule) -> Result<(), StoreError> {
        self.change(|account| account.images.put(rule.image.clone(), rule))
    }

    /// Removes the rule of `image`, or all rules.
    ///
    /// # Errors
    /// When the data file cannot be written; nothing is removed then.
    pub fn remove_images(&self, image: Option<&str>) -> Result<(), StoreError> {
        self.change(|account| {
            let keys: Vec<String> = account.images.iter().map(|(key, _)| key.clone()).collect();
            for key in keys
                .iter()
                .filter(|key| image.is_none_or(|image| image == *key))
            {
                account.images.take(key);
            }
        })
    }

    /// Enables a region that an account must opt in to (`ap-east-1`), or disables it again.
    ///
    /// # Errors
    /// When the data file cannot be written; nothing is changed then.
    pub fn set_region(&self, region: &str, enabled: bool) -> Result<(), StoreError> {
        self.change(|account| match enabled {
            true => account.regions.put(region.to_owned(), true),
            false => drop(account.regions.take(region)),
        })
    }

    /// Roles with conditions.
    ///
    /// # Errors
    /// When the data file failed before and cannot be read now.
    pub fn roles(&self) -> Result<Vec<RoleRule>, StoreError> {
        let rule = |(arn, role): (&String, &Role)| RoleRule {
            arn: arn.clone(),
            external_id: role.external_id.clone(),
            denied: role.denied,
        };
        self.look(|account| account.roles.iter().map(rule).collect())
    }

    /// Puts conditions on assuming a role; without any rule every role can be assumed.
    ///
    /// # Errors
    /// When the data file cannot be written; the conditions are not set then.
    pub fn set_role(&self, rule: RoleRule) -> Result<(), StoreError> {
        let role = Role {
            external_id: rule.external_id,
            denied: rule.denied,
        };
        self.change(|account| account.roles.put(rule.arn, role))
    }

    /// Removes the conditions of the role `arn`, or of all roles.
    ///
    /// # Errors
    /// When the data file cannot be written; nothing is removed then.
    pub fn remove_roles(&self, arn: Option<&str>) -> Result<(), StoreError> {
        self.change(|account| {
            let keys: Vec<String> = account.roles.iter().map(|(key, _)| key.clone()).collect();
            for key in keys.iter().filter(|key| arn.is_none_or(|arn| arn == *key)) {
                account.roles.take(key);
            }
        })
    }

    /// Moves the account on while awaited; never returns. Without it the account catches up whenever it is
    /// called, with the same outcome.
    pub async fn run(&self) {
        loop {
            let next = {
                let mut state = self.lock();
                match state.present() {
                    Ok(account) => account.next_event(),
                    Err(error) => {
                        error::log(&error);
                        Some(self.0.config.clock.now() + AFTER_FAILURE)
                    }
                }
            };
            let changed = self.0.changed.notified();
            match next {
                None => changed.await,
                Some(at) => {
                    tokio::select! {
                        () = changed => {}
                        () = self.0.config.clock.sleep_until(at) => {}
                    }
                }
            }
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.0.config.clock
    }

    pub(crate) fn config(&self) -> &SandboxConfig {
        &self.0.config
    }

    pub(crate) fn region(&self) -> &str {
        &self.0.config.region
    }

    pub(crate) fn log_call(&self, call: Call) {
        self.0.calls.push(call);
    }

    /// Looks at the account as it is now.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Account) -> T) -> Result<T, StoreError> {
        Ok(look(self.lock().present()?))
    }

    /// Carries out a request on the account as it is now. What it changed is on disk before this returns.
    pub(crate) async fn serve<T: Send + 'static>(
        &self,
        changes: bool,
        carry_out: impl FnOnce(&mut Account) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let on_disk = changes && self.lock().is_on_disk();
        if !on_disk {
            return self.serve_now(changes, carry_out);
        }
        let own = self.clone();
        // A commit waits for the disk, which is not for a thread that serves others.
        let served = tokio::task::spawn_blocking(move || own.serve_now(true, carry_out));
        match served.await {
            Ok(answer) => answer,
            Err(_) => Err(ApiError::server("The request was interrupted.")),
        }
    }

    fn serve_now<T>(
        &self,
        changes: bool,
        carry_out: impl FnOnce(&mut Account) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let failed = |error: StoreError| {
            error::log(&error);
            ApiError::server(error.to_string())
        };
        let mut state = self.lock();
        let answer = carry_out(state.present().map_err(failed)?)?;
        if changes {
            state.commit().map_err(failed)?;
            self.0.changed.notify_one();
        }
        Ok(answer)
    }

    fn change(&self, change: impl FnOnce(&mut Account)) -> Result<(), StoreError> {
        let mut state = self.lock();
        change(state.present()?);
        state.commit()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
