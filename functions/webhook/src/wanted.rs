//! With which secrets deliveries of a provider may be signed: kept until a trigger that listens to it changes, since an
//! account may have ten thousand of them, and few secrets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use slipway_engine::intake::listen::of_provider;
use slipway_engine::intake::narrow::Said;
use slipway_model::id::{AccountId, Scope};
use slipway_store::{Listeners, StoreError};
use slipway_trigger::Provider;

use crate::Deps;

/// Most accounts and providers that are kept in memory.
const MOST: usize = 1_000;

/// The list, and what was made of it.
type Known = (Listeners, Arc<Wanted>);

/// By account and provider.
#[derive(Default)]
pub(crate) struct AllWanted(Mutex<BTreeMap<(AccountId, &'static str), Known>>);

/// What the triggers that listen to a provider want of deliveries.
pub(crate) struct Wanted {
    /// The secrets that they name.
    pub(crate) secrets: Vec<(Scope, String)>,
    /// Whether one names none.
    pub(crate) open: bool,
}

impl AllWanted {
    /// What the triggers of an account want; `None` where none listens to the provider.
    pub(crate) async fn of(
        &self,
        deps: &Deps,
        within: &Scope,
        provider: Provider,
    ) -> Result<Option<Arc<Wanted>>, StoreError> {
        let account = &within.account;
        let store = &deps.runs.store;
        let listed = store.listeners_now(account, &of_provider(provider)).await?;
        if listed.is_empty() {
            return Ok(None);
        }
        let key = (account.clone(), provider.name());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, wanted)) = all.get(&key)
            && Arc::ptr_eq(of, &listed)
        {
            return Ok(Some(Arc::clone(wanted)));
        }
        let wanted = Arc::new(Wanted::of(&listed));
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(key, (listed, Arc::clone(&wanted)));
        Ok(Some(wanted))
    }
}

impl Wanted {
    fn of(listed: &Listeners) -> Self {
        let mut secrets = std::collections::BTreeSet::new();
        let mut open = false;
        for (place, said) in listed.iter() {
            for secret in Said::read(said).secrets {
                match secret.as_str() {
                    "" => open = true,
                    secret => {
                        let (scope, id) = place.scope.resolve(secret);
                        secrets.insert((scope, id.to_string()));
                    }
                }
            }
        }
        Self {
            secrets: secrets.into_iter().collect(),
            open,
        }
    }
}
