//! The manifests of a function, read, resolved and checked.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use slipway_model::status::Failure;

use super::artifact;
use super::site::Site;
use crate::context::StepContext;
use crate::deployment::invalid;
use crate::deployment::manifest::{Reader, once};

const FUNCTION: &str = "AwsLambdaFunctionDefinition";
const ALIAS: &str = "AwsLambdaFunctionAliasDefinition";

/// Longest name of a function, and of an alias.
const LONGEST_NAME: usize = 64;
const LONGEST_ALIAS: usize = 128;

/// Members of the definition that are not configuration, and cannot be changed by `UpdateFunctionConfiguration`.
const ONLY_AT_CREATION: &[&str] = &[
    "Architectures",
    "Code",
    "CodeSigningConfigArn",
    "FunctionName",
    "PackageType",
    "Tags",
    "TenancyConfig",
];

/// What templates of CloudFormation and SAM say of a function and `CreateFunction` does not know, with the command that sets it.
const ELSEWHERE: &[(&str, &str)] = &[
    ("EventInvokeConfig", "put-function-event-invoke-config"),
    ("Events", "create-event-source-mapping"),
    ("EventSources", "create-event-source-mapping"),
    ("FunctionUrlConfig", "create-function-url-config"),
    (
        "ProvisionedConcurrencyConfig",
        "put-provisioned-concurrency-config",
    ),
    ("RecursiveLoop", "put-function-recursion-config"),
    ("ReservedConcurrency", "put-function-concurrency"),
    ("ReservedConcurrentExecutions", "put-function-concurrency"),
    ("RuntimeManagementConfig", "put-runtime-management-config"),
    ("UrlConfig", "create-function-url-config"),
];

/// What a deployment needs of the manifests and the artifact. Secrets are holes: it is stored as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Documents {
    /// `CreateFunction`, with the artifact as its code.
    pub(super) function: Map<String, Value>,
    /// `CreateAlias`, each without `FunctionVersion`.
    pub(super) aliases: Vec<Map<String, Value>>,
    /// What is deployed, as people call it.
    pub(super) artifact: String,
}

impl Documents {
    /// Reads them once, and keeps them: `key` is where they are from then on.
    pub(super) async fn once(
        cx: &mut StepContext<'_>,
        key: &mut Option<String>,
    ) -> Result<Self, Failure> {
        once(cx, key, Self::fetch).await
    }

    fn fetch(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let stage = cx.stage();
        let Some(service) = &stage.service else {
            return Err(invalid(format!(
                "Stage {} has no service, and step {} deploys one.",
                stage.identifier,
                cx.step().identifier
            )));
        };
        if service.manifests.is_empty() {
            return Err(invalid(format!(
                "No manifests found in stage {}. {} step requires a manifest defined in stage service definition",
                stage.identifier,
                cx.step().step_type
            )));
        }
        let mut reader = Reader {
            cx,
            manifests: &service.manifests,
            names: &[],
        };
        let mut definition = reader.one(FUNCTION, "CreateFunction")?;
        reader.take_out(&mut definition, &["Publish", "PublishTo", "PackageType"]);
        let mut aliases = reader.all(ALIAS, "CreateAlias")?;
        for alias in &mut aliases {
            reader.take_out(alias, &["FunctionVersion"]);
        }
        let Value::Object(mut function) = definition else {
            return Err(invalid(format!(
                "The {FUNCTION} manifest is not a mapping."
            )));
        };
        let artifact = artifact::read(cx, service, function.shift_remove("Code"))?;
        let kind = if artifact.is_image { "Image" } else { "Zip" };
        function.insert("PackageType".to_owned(), json!(kind));
        function.insert("Code".to_owned(), Value::Object(artifact.code));
        let aliases = aliases.into_iter().filter_map(|alias| match alias {
            Value::Object(alias) => Some(alias),
            _ => None,
        });
        let documents = Self {
            function,
            aliases: aliases.collect(),
            artifact: artifact.name,
        };
        documents.check()?;
        Ok(documents)
    }

    /// Faults that AWS would only find one by one, some of them after the first change.
    fn check(&self) -> Result<(), Failure> {
        let mut faults = Vec::new();
        let given = |name: &str| {
            self.function
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        if let Some(fault) = name_fault(given("FunctionName")) {
            faults.push(fault);
        }
        let needed: &[&str] = if self.is_image() {
            &["Role"]
        } else {
            &["Role", "Runtime", "Handler"]
        };
        for name in needed.iter().filter(|name| given(name).trim().is_empty()) {
            faults.push(format!("`{name}` is missing"));
        }
        let unfit: &[&str] = if self.is_image() {
            &["Runtime", "Handler", "Layers"]
        } else {
            &["ImageConfig"]
        };
        for name in unfit
            .iter()
            .filter(|name| self.function.contains_key(**name))
        {
            let package = given("PackageType");
            faults.push(format!(
                "`{name}` does not go with an artifact of package type {package}"
            ));
        }
        faults.extend(self.elsewhere());
        if !faults.is_empty() {
            return Err(invalid(format!(
                "The {FUNCTION} manifest is not right: {}.",
                faults.join("; ")
            )));
        }
        let mut names: Vec<&str> = Vec::new();
        for alias in &self.aliases {
            let name = alias_name(alias);
            let word = name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
            let number = name.bytes().all(|byte| byte.is_ascii_digit());
            if !word || number || name.len() > LONGEST_ALIAS {
                faults.push(format!(
                    "`Name` is {name:?}: 1 to {LONGEST_ALIAS} letters, digits, hyphens and underscores are allowed, not only digits"
                ));
            }
            if names.contains(&name) {
                faults.push(format!("two of them are named {name}"));
            }
            names.push(name);
        }
        if faults.is_empty() {
            return Ok(());
        }
        Err(invalid(format!(
            "The {ALIAS} manifests are not right: {}.",
            faults.join("; ")
        )))
    }

    /// What AWS has calls of their own for: `CreateFunction` would ignore it without a word.
    fn elsewhere(&self) -> impl Iterator<Item = String> {
        self.function.keys().filter_map(|name| {
            let known = ELSEWHERE.iter();
            let (_, command) = known
                .copied()
                .find(|(field, _)| field.eq_ignore_ascii_case(name))?;
            Some(format!(
                "`{name}` is no field of CreateFunction, and AWS would ignore it: take it out, and set it with `aws lambda \
                 {command} --function-name {}`; deployments leave it as it is",
                self.short_name()
            ))
        })
    }

    pub(super) fn is_image(&self) -> bool {
        self.function.get("PackageType") == Some(&json!("Image"))
    }

    /// `FunctionName`, which may be an ARN.
    pub(super) fn name(&self) -> &str {
        self.function
            .get("FunctionName")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The name without what may stand around it.
    pub(super) fn short_name(&self) -> &str {
        short(self.name())
    }

    /// Whether a name that is an ARN belongs to where the stage deploys to.
    pub(super) fn check_region(&self, site: &Site) -> Result<(), Failure> {
        let region = self
            .name()
            .strip_prefix("arn:")
            .and_then(|arn| arn.split(':').nth(2));
        match region {
            Some(region) if region != site.aws.region => Err(invalid(format!(
                "`FunctionName` {} is in {region}, and the stage deploys to {site}.",
                self.name()
            ))),
            _ => Ok(()),
        }
    }

    /// `Code`.
    pub(super) fn code(&self) -> Value {
        self.function.get("Code").cloned().unwrap_or_default()
    }

    /// `UpdateFunctionConfiguration`: all that can be changed.
    pub(super) fn configuration(&self) -> Map<String, Value> {
        let fields = self.function.iter();
        let fields = fields.filter(|(name, _)| !ONLY_AT_CREATION.contains(&name.as_str()));
        fields
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    pub(super) fn tags(&self) -> Map<String, Value> {
        match self.function.get("Tags") {
            Some(Value::Object(tags)) => tags.clone(),
            _ => Map::new(),
        }
    }
}

/// `Name` of an alias.
pub(super) fn alias_name(alias: &Map<String, Value>) -> &str {
    alias
        .get("Name")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// `shop` of `arn:aws:lambda:eu-west-1:123456789012:function:shop`, and of `shop`.
pub(super) fn short(name: &str) -> &str {
    let name = name.split_once("function:").map_or(name, |(_, name)| name);
    name.rsplit(':').next().unwrap_or(name)
}

/// What is wrong with a function's name.
fn name_fault(name: &str) -> Option<String> {
    if name.trim().is_empty() {
        return Some("`FunctionName` is missing".to_owned());
    }
    let named = name.split_once("function:").map_or(name, |(_, name)| name);
    let short = short(named);
    if named.contains(':') && name.contains("function:") {
        return Some(format!(
            "`FunctionName` {name} names a version or an alias: name the function alone"
        ));
    }
    let word = short
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if short.is_empty() || !word {
        return Some(format!(
            "`FunctionName` {short:?} may hold letters, digits, hyphens and underscores only"
        ));
    }
    (short.len() > LONGEST_NAME).then(|| {
        format!(
            "`FunctionName` has {} characters, and {LONGEST_NAME} are allowed",
            short.len()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_functions() {
        let long = "x".repeat(65);
        let table = [
            ("shop", None),
            ("arn:aws:lambda:eu-west-1:123456789012:function:shop", None),
            ("123456789012:function:shop", None),
            ("", Some("is missing")),
            (
                "arn:aws:lambda:eu-west-1:123456789012:function:shop:7",
                Some("a version or an alias"),
            ),
            ("shop one", Some("letters, digits")),
            (long.as_str(), Some("64 are allowed")),
        ];
        for (name, fault) in table {
            let found = name_fault(name);
            match fault {
                None => assert_eq!(found, None, "{name}"),
                Some(part) => assert!(
                    found.as_ref().is_some_and(|text| text.contains(part)),
                    "{name}: {found:?}"
                ),
            }
        }
        assert_eq!(
            short("arn:aws:lambda:eu-west-1:123456789012:function:shop"),
            "shop"
        );
        assert_eq!(short("shop"), "shop");
    }
}
