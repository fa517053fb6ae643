//! What an invocation runs: a version of a function, and all that its environment is made from.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::runtime::Runtime;
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields};
use crate::lambda::error::{conflict, no_function};
use crate::lambda::function::{Phase, Revision};
use crate::lambda::name::Named;

/// A version of a function, as it is now.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) name: String,
    /// `$LATEST`, or the number.
    pub(super) version: String,
    /// ARN as it was invoked, with the qualifier if one was given.
    pub(super) arn: String,
    /// Whose environments can be used again: those of this very code and configuration.
    pub(super) key: String,
    pub(super) region: String,
    pub(super) runtime: Runtime,
    /// As the function names it: `python3.13`.
    pub(super) runtime_name: String,
    pub(super) handler: String,
    pub(super) variables: BTreeMap<String, String>,
    pub(super) timeout: Duration,
    /// In MB, as it was set.
    pub(super) memory: i64,
    pub(super) role: String,
    /// Digest of the package.
    pub(super) package: String,
    /// Invocations at once, if a number is reserved.
    pub(super) reserved: Option<usize>,
    /// Where the function's own clients find this account.
    pub(super) endpoint: String,
}

impl Plan {
    /// The plan for what was named: a version, an alias (one of its versions by their weights), or `$LATEST`.
    pub(super) fn of(
        account: &Account,
        caller: &Caller,
        named: &Named,
        endpoint: &str,
    ) -> Result<Self, ApiError> {
        let function = named.function(account).map_err(|_| missing(named))?;
        let number = number(account, named)?;
        let (version, revision) = match &number {
            None => ("$LATEST".to_owned(), &function.latest),
            Some(number) => {
                let found = account.lambda.versions.get(&named.version_key(number));
                let found = found.ok_or_else(|| missing(named))?;
                (number.clone(), &found.revision)
            }
        };
        check_phase(revision)?;
        if revision.code.is_image() {
            return Err(not_runnable(format!(
                "The function {} is a container image, and the sandbox account runs packages of Python and Node.js only.",
                named.name
            )));
        }
        let fields = Fields(&revision.document);
        let runtime_name = fields.text("Runtime")?.unwrap_or_default();
        let runtime = Runtime::of(runtime_name).ok_or_else(|| {
            not_runnable(format!(
                "The sandbox account runs the runtimes python3.… and nodejs….x, and not {runtime_name} of the function {}.",
                named.name
            ))
        })?;
        Ok(Self {
            name: named.name.clone(),
            arn: named.qualified(),
            key: format!("{}/{version}/{}", named.key, revision.id),
            region: caller.region.clone(),
            runtime,
            runtime_name: runtime_name.to_owned(),
            handler: fields.text("Handler")?.unwrap_or_default().to_owned(),
            variables: variables(&revision.document),
            timeout: Duration::from_secs(fields.integer("Timeout")?.unwrap_or(3).unsigned_abs()),
            memory: fields.integer("MemorySize")?.unwrap_or(128),
            role: fields.text("Role")?.unwrap_or_default().to_owned(),
            package: revision.code.sha256.clone(),
            reserved: function
                .reserved
                .map(|count| usize::try_from(count).unwrap_or_default()),
            endpoint: endpoint.to_owned(),
            version,
        })
    }

    /// Whether another plan is of the same version in another state.
    pub(super) fn replaces(&self, key: &str) -> bool {
        let place = |key: &str| key.rsplit_once('/').map(|(place, _)| place.to_owned());
        key != self.key && place(key) == place(&self.key)
    }
}

/// Invocations name `$LATEST` where nothing else was named.
fn missing(named: &Named) -> ApiError {
    match named.qualifier {
        None => no_function(&format!("{}:$LATEST", named.arn)),
        Some(_) => no_function(&named.qualified()),
    }
}

/// The number of the published version; `None` for `$LATEST`.
fn number(account: &Account, named: &Named) -> Result<Option<String>, ApiError> {
    let Some(qualifier) = &named.qualifier else {
        return Ok(None);
    };
    if qualifier.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Some(qualifier.clone()));
    }
    let alias = account.lambda.aliases.get(&named.alias_key(qualifier));
    let alias = alias.ok_or_else(|| missing(named))?;
    let chosen = match &alias.second {
        Some((second, share)) if rand::random::<f64>() < *share => second,
        _ => &alias.version,
    };
    Ok(Some(chosen.clone()).filter(|chosen| chosen != "$LATEST"))
}

/// A function that is not ready cannot be invoked; one whose last change failed can.
fn check_phase(revision: &Revision) -> Result<(), ApiError> {
    let state = match revision.phase {
        Phase::Creating => "Pending",
        Phase::Broken { new: true, .. } => "Failed",
        _ => return Ok(()),
    };
    Err(conflict(format!(
        "The operation cannot be performed at this time. The function is currently in the following state: {state}"
    )))
}

/// What cannot be run here; AWS has the name for runtimes that it does not run.
pub(super) fn not_runnable(message: String) -> ApiError {
    ApiError {
        code: "InvalidRuntimeException",
        status: 502,
        message,
    }
}

fn variables(document: &Document) -> BTreeMap<String, String> {
    let variables = document
        .get("Environment")
        .and_then(|environment| environment["Variables"].as_object());
    let pairs = variables.into_iter().flatten();
    pairs
        .filter_map(|(name, value)| match value {
            Value::String(text) => Some((name.clone(), text.clone())),
            _ => None,
        })
        .collect()
}
