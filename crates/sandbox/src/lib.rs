//! An AWS account in a process: ECS as it behaves over time, on the wire.
//!
//! A [`Sandbox`] answers Amazon ECS, Application Auto Scaling and STS in their own protocols, so that
//! `aws ecs … --endpoint-url`, `aws ecs wait services-stable` and every SDK work against it. Behind the
//! operations lives a service scheduler: deployments go from IN_PROGRESS to COMPLETED or FAILED task by
//! task, under the healthy percentages, with events, a circuit breaker and its rollback.
//!
//! ```text
//! http ──▶ caller (whose key, which region) ──▶ fault? ──▶ ecs | scaling | sts ──▶ account ──▶ journal
//!                                                                                   ▲
//! control (/_sandbox/…) ────────────────────────────────────────────────────────────┘
//! ```
//!
//! What is not AWS's: signatures are not verified; there is one account, whatever account a role is in, but
//! every region has its own resources; clusters have room for everything; nothing scales by itself; only
//! REPLICA services with rolling updates exist. Everything else that is missing says so when called.

mod account;
mod arn;
mod call;
mod caller;
mod control;
mod ecs;
mod error;
mod fault;
mod fields;
mod http;
mod image;
mod journal;
mod pace;
mod page;
mod scaling;
mod sts;
mod table;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use slipway_clock::Clock;
use tokio::sync::Notify;

pub use crate::call::Call;
pub use crate::control::RoleRule;
pub use crate::error::{OpenError, StoreError};
pub use crate::fault::{ActiveFault, Fault, FaultEffect, Faults};
pub use crate::image::{ImageBehaviour, ImageRule};
pub use crate::pace::Pace;

use crate::account::Account;
use crate::call::CallLog;
use crate::error::ApiError;
use crate::journal::Journal;
use crate::sts::Role;

/// Changed rows after which changes that only time made are written too.
const PENDING_ROWS: usize = 512;

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
    /// Something may be due earlier than [`Sandbox::run`] thinks.
    changed: Notify,
}

struct State {
    account: Account,
    journal: Option<Journal>,
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
        let journal = path.map(Journal::open).transpose()?;
        let account = load(&config, journal.as_ref())?;
        Ok(Self(Arc::new(Inner {
            config,
            state: Mutex::new(State { account, journal }),
            faults: Faults::default(),
            calls: CallLog::default(),
            changed: Notify::new(),
        })))
    }

    /// The account on HTTP: `POST /` for AWS's protocols, `/_sandbox/…` for its controls. Signatures are
    /// not verified: serve it on loopback addresses only.
    pub fn router(&self) -> axum::Router {
        http::router(self.clone())
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
    pub fn images(&self) -> Vec<ImageRule> {
        let state = self.lock();
        state
            .account
            .images
            .iter()
            .map(|(_, rule)| rule.clone())
            .collect()
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

    /// Roles with conditions.
    pub fn roles(&self) -> Vec<RoleRule> {
        let state = self.lock();
        let rows = state.account.roles.iter();
        rows.map(|(arn, role)| RoleRule {
            arn: arn.clone(),
            external_id: role.external_id.clone(),
            denied: role.denied,
        })
        .collect()
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
                self.advance(&mut state);
                state.account.next_event()
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

    pub(crate) fn region(&self) -> &str {
        &self.0.config.region
    }

    pub(crate) fn log_call(&self, call: Call) {
        self.0.calls.push(call);
    }

    /// Looks at the account as it is now.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Account) -> T) -> T {
        let mut state = self.lock();
        self.advance(&mut state);
        look(&state.account)
    }

    /// Carries out a request on the account as it is now. What it changed is on disk before this returns.
    pub(crate) async fn serve<T: Send + 'static>(
        &self,
        changes: bool,
        carry_out: impl FnOnce(&mut Account) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let on_disk = changes && self.lock().journal.is_some();
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
        let mut state = self.lock();
        self.advance(&mut state);
        let answer = carry_out(&mut state.account)?;
        if changes {
            self.commit(&mut state).map_err(|error| {
                tracing::error!(error = &error as &dyn std::error::Error, "commit failed");
                ApiError::server(error.to_string())
            })?;
            self.0.changed.notify_one();
        }
        Ok(answer)
    }

    fn change(&self, change: impl FnOnce(&mut Account)) -> Result<(), StoreError> {
        let mut state = self.lock();
        self.advance(&mut state);
        change(&mut state.account);
        self.commit(&mut state)
    }

    /// Lives through what is due. Changes of time follow from what is stored, so writing them can wait.
    fn advance(&self, state: &mut State) {
        state.account.advance(self.0.config.clock.now());
        if state.account.pending() > PENDING_ROWS
            && let Err(error) = self.commit(state)
        {
            tracing::error!(error = &error as &dyn std::error::Error, "commit failed");
        }
    }

    /// Writes everything that changed. If that fails the account goes back to what is stored, so that it
    /// never shows what it may lose.
    fn commit(&self, state: &mut State) -> Result<(), StoreError> {
        let Some(journal) = &state.journal else {
            state.account.forget_changes();
            return Ok(());
        };
        let changes = state.account.changes()?;
        if let Err(error) = journal.commit(&changes) {
            state.account = load(&self.0.config, Some(journal))?;
            return Err(error);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn load(config: &SandboxConfig, journal: Option<&Journal>) -> Result<Account, StoreError> {
    let mut account = Account::new(config.account.clone(), config.pace.clone());
    if let Some(journal) = journal {
        journal.load(|key, value| account.load(key, value))?;
        account.loaded();
    }
    Ok(account)
}
