//! A service is taken away: its scaling off, its tasks down, then deleted, until it is inactive.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use slipway_model::status::Failure;

use super::scaling::detach;
use super::service::{Described, Standing, delete, describe, update};
use super::site::Site;
use crate::context::StepContext;

/// Time between two looks at a service that is being deleted.
pub(super) const PAUSE: Duration = Duration::from_secs(3);

/// What is remembered between two looks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Removal {
    told: bool,
}

impl Removal {
    /// Whether there was a service when it was looked for.
    pub(super) fn was_there(&self) -> bool {
        self.told
    }

    /// Looks once and does what comes next; `true` when the service is gone. `ours` refuses a service that must
    /// not be deleted; it is asked before each change.
    pub(super) async fn go_on(
        &mut self,
        cx: &mut StepContext<'_>,
        (site, name): (&Site, &str),
        unit: &'static str,
        ours: impl Fn(&Described) -> Result<(), Failure> + Send,
    ) -> Result<bool, Failure> {
        match describe(site, name).await? {
            Standing::Absent => return Ok(true),
            Standing::Draining => {}
            Standing::Active(described) => {
                ours(&described)?;
                cx.info(unit, format!("Deleting service {name}.."));
                detach(cx, site, name, unit).await?;
                let daemon = described.json["schedulingStrategy"] == "DAEMON";
                if described.service.desired_count() > 0 && !daemon {
                    let to_none = json!({
                        "cluster": site.cluster, "service": name, "desiredCount": 0,
                    });
                    update(site, &to_none).await?;
                }
                delete(site, name).await?;
            }
        }
        if !self.told {
            self.told = true;
            cx.info(
                unit,
                format!("Waiting for existing Service {name} to reach inactive state"),
            );
        }
        Ok(false)
    }
}
