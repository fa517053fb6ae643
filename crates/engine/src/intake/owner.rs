//! In whose name a trigger starts runs: who saved it last. Once they were removed from the account it starts nothing, until
//! somebody who is there saves it again or they are added again. Triggers that an earlier version saved have no owner, and
//! go on; so do those whose owner's token ended, for the person is still there.

use std::collections::BTreeMap;

use slipway_model::id::{AccountId, PrincipalId};
use slipway_store::record::{EntityRecord, Removal};
use tokio::sync::Mutex;

use crate::error::{Doing, RunError};
use crate::runs::Runs;

/// Who was asked about, of one account, while an event is handled: each is read once.
#[derive(Default)]
pub(super) struct Owners(Mutex<BTreeMap<PrincipalId, Option<Removal>>>);

impl Owners {
    /// Why a trigger starts nothing; `None` where its owner is there, or it has none.
    pub(super) async fn why_stopped(
        &self,
        runs: &Runs,
        trigger: &EntityRecord,
    ) -> Result<Option<String>, RunError> {
        let Some(owner) = &trigger.saved_by else {
            return Ok(None);
        };
        // Held while it is read: the triggers of an event decide one after the other anyway.
        let mut known = self.0.lock().await;
        let removal = match known.get(owner) {
            Some(removal) => removal.clone(),
            None => {
                let removal = removal(runs, &trigger.scope.account, owner).await?;
                known.insert(owner.clone(), removal.clone());
                removal
            }
        };
        Ok(removal.map(|removal| told(trigger, owner, &removal)))
    }
}

/// Why a trigger starts nothing although it is enabled, for its status; `None` where its owner is there, or it has none.
///
/// # Errors
/// When the store cannot be read.
pub async fn why_stopped(runs: &Runs, trigger: &EntityRecord) -> Result<Option<String>, RunError> {
    Owners::default().why_stopped(runs, trigger).await
}

async fn removal(
    runs: &Runs,
    account: &AccountId,
    owner: &PrincipalId,
) -> Result<Option<Removal>, RunError> {
    let found = runs.store.find_person(account, owner).await;
    let found = found.doing(|| format!("read whether {owner} is there"))?;
    Ok(found.and_then(|person| person.removed))
}

fn told(trigger: &EntityRecord, owner: &PrincipalId, removal: &Removal) -> String {
    let by = &removal.by;
    format!(
        "{owner}, who saved the trigger {} last, was removed from the account by {by}: it starts nothing until somebody who \
         is there saves it again, or `slipway user restore {owner}` brings them back",
        trigger.id
    )
}
