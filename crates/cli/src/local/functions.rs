//! The Lambda functions, called in process: the same handlers as on AWS, behind the engine's `Lambda` port.
//!
//! Only Slipway's own machines reach them. Every other machine invokes functions of the sandbox account, whatever their
//! names are.

use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_asl::{Invocation, Invoked, Lambda, LambdaError};
use slipway_engine::error::HandlerError;
use slipway_engine::intake::handler::Handler;
use slipway_engine::runs::Runs;
use slipway_engine::unstarted::{resume_unstarted, start_accepted};
use slipway_engine::wake::wake_unheard;
use slipway_fn_lane_common::{BUDGET, MOST_TURNS};
use slipway_fn_notify::{MailServer, PAGER_DUTY};
use slipway_fn_pipeline::LaneFunctions;
use slipway_model::Kind;
use slipway_model::id::{AccountId, OrgId, ProjectId, Scope};
use slipway_steps::StepServices;
use slipway_store::{Page, Store, StoreError};

use crate::local::account_functions::AccountFunctions;
use crate::local::{machines, place};

/// Entities read at once while looking for interrupted starts.
const PAGE: usize = 100;

/// The functions; Slipway's own are wired after the engine is there, because they call it.
pub struct Functions {
    own: OnceLock<Wired>,
    account: AccountFunctions,
}

struct Wired {
    runs: Runs,
    pipeline: slipway_fn_pipeline::Deps,
    lane_common: slipway_fn_lane_common::Deps,
    lane_asg: slipway_fn_lane_common::Deps,
    lane_ecs: slipway_fn_lane_common::Deps,
    lane_lambda: slipway_fn_lane_common::Deps,
    instances: slipway_fn_instances::Deps,
    notify: slipway_fn_notify::Deps,
    trigger: slipway_fn_trigger::Deps,
}

impl Functions {
    /// With those of the sandbox account only.
    pub(super) fn new(account: AccountFunctions) -> Self {
        Self {
            own: OnceLock::new(),
            account,
        }
    }

    /// Gives Slipway's own functions what they need; the first call counts.
    pub fn wire(
        &self,
        runs: &Runs,
        services: &StepServices,
        mail: Option<MailServer>,
        url: String,
        handler: Handler,
    ) {
        let lane = |find| slipway_fn_lane_common::Deps {
            runs: runs.clone(),
            services: services.clone(),
            find,
            budget: BUDGET,
            turns: MOST_TURNS,
        };
        let lanes = LaneFunctions {
            common: place::function("slipway-lane-common"),
            asg: place::function("slipway-lane-asg"),
            ecs: place::function("slipway-lane-ecs"),
            lambda: place::function("slipway-lane-lambda"),
        };
        let wired = Wired {
            runs: runs.clone(),
            pipeline: slipway_fn_pipeline::Deps {
                runs: runs.clone(),
                lanes,
                handler,
            },
            lane_common: lane(slipway_fn_lane_common::find),
            lane_asg: lane(slipway_fn_lane_asg::find),
            lane_ecs: lane(slipway_fn_lane_ecs::find),
            lane_lambda: lane(slipway_fn_lane_lambda::find),
            instances: slipway_fn_instances::Deps {
                services: services.clone(),
            },
            notify: slipway_fn_notify::Deps {
                runs: runs.clone(),
                secrets: services.secrets.clone(),
                mail,
                url: Some(url),
                pager_duty: PAGER_DUTY.to_owned(),
            },
            trigger: slipway_fn_trigger::Deps {
                runs: runs.clone(),
                sources: services.starts.sources.clone(),
            },
        };
        self.own.get_or_init(|| wired);
    }

    /// Counts the instances of everything that was deployed. Troubles are logged: the next sweep tries again.
    pub async fn sweep(&self) {
        let Some(wired) = self.own.get() else { return };
        if let Err(why) = slipway_fn_instances::answer(&wired.instances, json!({})).await {
            tracing::warn!(error = %why.message, "the instance sweep failed");
        }
    }

    /// Starts what was accepted and could not be started then. Troubles are logged: the next sweep tries again.
    pub async fn start_accepted(&self) {
        let Some(wired) = self.own.get() else { return };
        match start_accepted(&wired.runs).await {
            Ok(swept) if swept.started > 0 => {
                tracing::info!(count = swept.started, "started runs that waited for it");
            }
            Ok(_) => {}
            Err(why) => tracing::warn!(error = %why.full_text(), "cannot start accepted runs"),
        }
    }

    /// Handles the events that were left, and the schedules whose time came. Troubles are logged: the next sweep tries
    /// again.
    pub async fn take_in(&self) {
        let Some(wired) = self.own.get() else { return };
        if let Err(why) = slipway_fn_trigger::answer(&wired.trigger, json!({})).await {
            tracing::warn!(error = %why.message, "the sweep over events failed");
        }
    }

    /// Asks registries for new versions. Troubles are logged: the next poll tries again.
    pub async fn poll(&self) {
        let Some(wired) = self.own.get() else { return };
        if let Err(why) = slipway_fn_trigger::answer(&wired.trigger, json!({"poll": true})).await {
            tracing::warn!(error = %why.message, "registries could not be asked");
        }
    }

    /// Starts the executions of runs that were accepted just before a crash, and lets runs hear what was said then.
    pub async fn resume(&self) {
        let Some(wired) = self.own.get() else { return };
        let scopes = match projects(&wired.runs.store).await {
            Ok(scopes) => scopes,
            Err(why) => {
                tracing::error!(error = %why, "cannot list projects to look for interrupted starts");
                return;
            }
        };
        for scope in scopes {
            match resume_unstarted(&wired.runs, &scope).await {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "started runs that a crash had interrupted"),
                Err(why) => tracing::error!(error = %why.full_text(), "cannot start accepted runs"),
            }
            match wake_unheard(&wired.runs, &scope).await {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "woke runs about which something was said"),
                Err(why) => tracing::error!(error = %why.full_text(), "cannot wake runs"),
            }
        }
    }
}

/// The scopes of all projects.
async fn projects(store: &Store) -> Result<Vec<Scope>, StoreError> {
    let account = AccountId::new(place::ACCOUNT);
    let mut scopes = Vec::new();
    for org in all(store, &Scope::account(account.clone()), Kind::Organization).await? {
        let org = OrgId::new(org);
        let in_org = Scope::org(account.clone(), org.clone());
        for project in all(store, &in_org, Kind::Project).await? {
            let project = ProjectId::new(project);
            scopes.push(Scope::project(account.clone(), org.clone(), project));
        }
    }
    Ok(scopes)
}

async fn all(store: &Store, scope: &Scope, kind: Kind) -> Result<Vec<String>, StoreError> {
    let mut page = Page::first(PAGE);
    let mut ids = Vec::new();
    loop {
        let listing = store.list_entities(scope, kind.key(), None, page).await?;
        ids.extend(
            listing
                .items
                .iter()
                .map(|entity| entity.id.as_str().to_owned()),
        );
        match listing.next {
            Some(next) => {
                page = Page {
                    limit: PAGE,
                    after: Some(next),
                }
            }
            None => return Ok(ids),
        }
    }
}

#[async_trait]
impl Lambda for Functions {
    /// One of Slipway's own.
    async fn invoke(&self, function: &str, payload: Value) -> Result<Value, LambdaError> {
        let missing = || LambdaError {
            error_type: "Lambda.ResourceNotFoundException".to_owned(),
            message: format!("Function not found: {function}"),
        };
        let wired = self.own.get().ok_or_else(missing)?;
        let name = function.rsplit(':').next().unwrap_or(function);
        let answered = async {
            Some(match name {
                "slipway-pipeline" => slipway_fn_pipeline::answer(&wired.pipeline, payload).await,
                "slipway-lane-common" => {
                    slipway_fn_lane_common::answer(&wired.lane_common, payload).await
                }
                "slipway-lane-asg" => slipway_fn_lane_asg::answer(&wired.lane_asg, payload).await,
                "slipway-lane-ecs" => slipway_fn_lane_ecs::answer(&wired.lane_ecs, payload).await,
                "slipway-lane-lambda" => {
                    slipway_fn_lane_lambda::answer(&wired.lane_lambda, payload).await
                }
                "slipway-instances" => {
                    slipway_fn_instances::answer(&wired.instances, payload).await
                }
                "slipway-trigger" => slipway_fn_trigger::answer(&wired.trigger, payload).await,
                "slipway-notify" => slipway_fn_notify::answer(&wired.notify, payload).await,
                _ => return None,
            })
        };
        let limit = place::time_limit(name);
        tokio::select! {
            biased;
            answer = answered => answer.ok_or_else(missing)?.map_err(refused),
            () = wired.runs.clock.sleep(limit) => Err(timed_out(limit)),
        }
    }

    async fn carry_out(&self, invocation: Invocation) -> Result<Invoked, LambdaError> {
        if !machines::is_own(&invocation.machine) {
            return self.account.invoke(&invocation).await;
        }
        let Invocation {
            function, payload, ..
        } = invocation;
        let payload = self.invoke(&function, payload).await?;
        Ok(Invoked::of(payload))
    }
}

/// What Lambda answers for an invocation that it has stopped.
fn timed_out(limit: Duration) -> LambdaError {
    LambdaError {
        error_type: "Sandbox.Timedout".to_owned(),
        message: format!("Task timed out after {} seconds", limit.as_secs()),
    }
}

fn refused(error: HandlerError) -> LambdaError {
    LambdaError {
        error_type: error.name.as_str().to_owned(),
        message: error.message,
    }
}
