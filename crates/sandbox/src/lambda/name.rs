//! How requests name functions: name, partial ARN or ARN, with or without a version or alias.

use super::error::{invalid, not_found, validation};
use super::function::{Function, Version};
use super::request::Request;
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;

/// Longest name of a function.
const LONGEST: usize = 64;
const PATTERN: &str = "Member must satisfy regular expression pattern: (arn:(aws[a-zA-Z-]*)?:lambda:)?\
    ([a-z]{2}(-gov)?-[a-z]+-\\d{1}:)?(\\d{12}:)?(function:)?([a-zA-Z0-9-_]+)(:(\\$LATEST|[a-zA-Z0-9-_]+))?";

/// A function, and what of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) key: String,
    pub(super) name: String,
    /// Without a qualifier.
    pub(super) arn: String,
    /// Version or alias; `None` for `$LATEST`.
    pub(super) qualifier: Option<String>,
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

impl Named {
    /// Reads a name in any of its forms.
    pub(super) fn parse(account: &Account, caller: &Caller, text: &str) -> Result<Self, ApiError> {
        let bad = || validation("functionName", text, PATTERN);
        if text.is_empty() || text.len() > 140 {
            return Err(bad());
        }
        let rest = match text.strip_prefix("arn:") {
            None => text,
            Some(arn) => {
                let mut parts = arn.splitn(5, ':');
                let (_partition, service) = (parts.next(), parts.next());
                let (region, owner) = (parts.next(), parts.next());
                if service != Some("lambda") {
                    return Err(bad());
                }
                if region != Some(caller.region.as_str()) || owner != Some(account.id.as_str()) {
                    return Err(not_found(format!(
                        "Functions from '{}' are not reachable in this region ('{}')",
                        region.unwrap_or_default(),
                        caller.region
                    )));
                }
                parts.next().ok_or_else(bad)?
            }
        };
        let rest = rest
            .strip_prefix(&format!("{}:", account.id))
            .unwrap_or(rest);
        let rest = rest.strip_prefix("function:").unwrap_or(rest);
        let (name, qualifier) = match rest.split_once(':') {
            None => (rest, None),
            Some((name, "$LATEST")) => (name, None),
            Some((name, qualifier)) if is_word(qualifier) => (name, Some(qualifier.to_owned())),
            Some(_) => return Err(bad()),
        };
        if !is_word(name) {
            return Err(bad());
        }
        if name.len() > LONGEST {
            return Err(validation(
                "functionName",
                name,
                format!("Member must have length less than or equal to {LONGEST}"),
            ));
        }
        Ok(Self {
            key: format!("{}/{name}", caller.region),
            name: name.to_owned(),
            arn: format!(
                "arn:aws:lambda:{}:{}:function:{name}",
                caller.region, account.id
            ),
            qualifier,
        })
    }

    /// The function of the path, with the qualifier of the query.
    pub(super) fn of(
        account: &Account,
        caller: &Caller,
        request: &Request,
    ) -> Result<Self, ApiError> {
        let mut named = Self::parse(account, caller, request.name())?;
        match (request.query("Qualifier"), &named.qualifier) {
            (Some(wanted), Some(known)) if wanted != known => {
                return Err(invalid(
                    "The derived qualifier from the function name does not match the specified qualifier.",
                ));
            }
            (Some("$LATEST") | None, _) => {}
            (Some(wanted), _) if is_word(wanted) => named.qualifier = Some(wanted.to_owned()),
            (Some(wanted), _) => {
                return Err(validation(
                    "qualifier",
                    wanted,
                    "Member must satisfy regular expression pattern: [a-zA-Z0-9$_-]+",
                ));
            }
        }
        Ok(named)
    }

    /// The ARN with the qualifier.
    pub(super) fn qualified(&self) -> String {
        match &self.qualifier {
            None => self.arn.clone(),
            Some(qualifier) => format!("{}:{qualifier}", self.arn),
        }
    }

    pub(super) fn function<'a>(&self, account: &'a Account) -> Result<&'a Function, ApiError> {
        let found = account.lambda.functions.get(&self.key);
        found.ok_or_else(|| super::error::no_function(&self.qualified()))
    }

    pub(super) fn function_mut<'a>(
        &self,
        account: &'a mut Account,
    ) -> Result<&'a mut Function, ApiError> {
        let found = account.lambda.functions.get_mut(&self.key);
        found.ok_or_else(|| super::error::no_function(&self.qualified()))
    }

    /// The published version that the qualifier is or points to; `None` for `$LATEST`.
    pub(super) fn version<'a>(
        &self,
        account: &'a Account,
    ) -> Result<Option<&'a Version>, ApiError> {
        self.function(account)?;
        let Some(qualifier) = &self.qualifier else {
            return Ok(None);
        };
        let number = if qualifier.bytes().all(|byte| byte.is_ascii_digit()) {
            qualifier.clone()
        } else {
            let key = self.alias_key(qualifier);
            let alias = account.lambda.aliases.get(&key);
            let alias = alias.ok_or_else(|| super::error::no_function(&self.qualified()))?;
            alias.version.clone()
        };
        if number == "$LATEST" {
            return Ok(None);
        }
        let found = account.lambda.versions.get(&self.version_key(&number));
        found
            .map(Some)
            .ok_or_else(|| super::error::no_function(&self.qualified()))
    }

    /// Key of a version, in the order of their numbers.
    pub(super) fn version_key(&self, number: &str) -> String {
        format!("{}/{number:0>20}", self.key)
    }

    pub(super) fn alias_key(&self, alias: &str) -> String {
        format!("{}/{alias}", self.key)
    }

    /// Prefix of the keys of everything below the function.
    pub(super) fn below(&self) -> String {
        format!("{}/", self.key)
    }
}
