//! A group is taken away with its instances, and its launch template where this run made it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use slipway_model::status::Failure;

use super::group::{self, Group, Standing};
use super::site::{Ask, Site};
use crate::context::StepContext;

/// Longest time between two looks at a group that is being deleted, seconds.
const LONGEST_PAUSE: u64 = 20;

/// What is remembered between two looks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Removal {
    looks: u64,
}

impl Removal {
    /// Looks once and does what comes next: how long to wait, or `None` when the group is gone. `ours` refuses a group
    /// that must not be deleted.
    pub(super) async fn go_on(
        &mut self,
        cx: &mut StepContext<'_>,
        (site, name): (&Site, &str),
        unit: &'static str,
        ours: impl Fn(&Group) -> Result<(), Failure> + Send,
    ) -> Result<Option<Duration>, Failure> {
        match group::describe(site, name).await? {
            Standing::Absent => {
                if self.looks > 0 {
                    cx.info(unit, format!("Deleted Asg {name} successfully"));
                }
                return Ok(None);
            }
            Standing::Leaving => {}
            Standing::There(found) => {
                ours(&found)?;
                cx.info(unit, format!("Deleting Asg {name}"));
                let request = json!({"AutoScalingGroupName": name, "ForceDelete": true});
                let doing = format!("delete Auto Scaling group {name}");
                let ask = Ask {
                    action: "DeleteAutoScalingGroup",
                    request: &request,
                    doing: &doing,
                };
                site.scaling_unless(ask, (&["ValidationError"], "not found"))
                    .await?;
            }
        }
        if self.looks == 0 {
            cx.info(
                unit,
                format!("Waiting for deletion of Asg {name} to complete"),
            );
        }
        self.looks += 1;
        Ok(Some(Duration::from_secs(
            (1 + self.looks).min(LONGEST_PAUSE),
        )))
    }
}
