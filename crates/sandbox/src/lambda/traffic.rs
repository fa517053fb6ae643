//! Which versions an alias would have invoked, and whether they were ready for it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::alias::Alias;
use super::function::Version;
use super::name::Named;
use crate::Sandbox;
use crate::account::Account;
use crate::error::StoreError;

/// From one change of an alias to the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AliasTraffic {
    /// Name of the alias.
    pub alias: String,
    /// When it was set so.
    pub since: Timestamp,
    /// Share of the requests of each version, 0 to 1.
    pub shares: BTreeMap<String, f64>,
    /// Whether every version with a share was Active when it was set.
    pub ready: bool,
}

/// As it is kept: the function's key beside it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Span {
    function: String,
    traffic: AliasTraffic,
}

/// Notes what an alias is about to invoke.
pub(super) fn note(account: &mut Account, named: &Named, alias: &Alias) {
    let second = alias.second.clone().filter(|(_, share)| *share > 0.0);
    let rest = 1.0 - second.as_ref().map_or(0.0, |(_, share)| *share);
    let mut shares = BTreeMap::from([(alias.version.clone(), rest)]);
    shares.extend(second);
    shares.retain(|_, share| *share > 0.0);
    let ready = shares.keys().all(|number| {
        let version: Option<&Version> = account.lambda.versions.get(&named.version_key(number));
        number == "$LATEST" || version.is_some_and(|version| version.revision.is_ready())
    });
    let key = named.alias_key(&alias.name);
    let count = account.lambda.spans.under(&format!("{key}/")).count();
    let span = Span {
        function: named.key.clone(),
        traffic: AliasTraffic {
            alias: alias.name.clone(),
            since: account.now,
            shares,
            ready,
        },
    };
    account.lambda.spans.put(format!("{key}/{count:010}"), span);
}

impl Sandbox {
    /// What the aliases of a function of a region were set to, those of one alias in the order of time.
    ///
    /// # Errors
    /// When the data file failed before and cannot be read now.
    pub fn alias_traffic(
        &self,
        region: &str,
        function: &str,
    ) -> Result<Vec<AliasTraffic>, StoreError> {
        let key = format!("{region}/{function}");
        self.look(|account| {
            let spans = account.lambda.spans.iter().map(|(_, span)| span);
            let spans = spans.filter(|span| span.function == key);
            spans.map(|span| span.traffic.clone()).collect()
        })
    }
}
