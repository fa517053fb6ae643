//! What a deployment writes down before its first change.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use slipway_model::status::Failure;
use slipway_store::record::ReplacedRecord;

use super::calls;
use super::instances::Noted;
use super::manifest::{Documents, alias_name};
use super::site::Site;
use crate::context::StepContext;
use crate::deployment::Replaced;

/// How to undo a deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RollbackData {
    /// `FunctionName` of the definition.
    pub(super) function: String,
    /// The function as it was; `None` when this is the first deployment.
    pub(super) before: Option<Before>,
    /// The aliases of the manifests as they were; those that were not there are not here.
    pub(super) aliases: Vec<Value>,
    /// Who had deployed what was there, where that is known.
    pub(super) replaced: Option<Replaced>,
    /// The versions that were noted as serving, where that is known.
    #[serde(default)]
    pub(super) noted: Option<Noted>,
}

/// A function before a deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Before {
    /// What `$LATEST` was, published; `None` where it was broken and could not be.
    pub(super) version: Option<String>,
    /// `Description` of `$LATEST`: a version may have another.
    pub(super) description: String,
    /// Tags that the deployment sets, as they were; `null` for none.
    pub(super) tags: Map<String, Value>,
    /// Where its package came from, as far as the deployment before noted it: `S3Bucket`, `S3Key`, ….
    pub(super) source: Option<Value>,
    /// Digest of its code.
    pub(super) sha256: String,
}

impl RollbackData {
    /// What the deployment replaced, for who wants to roll it back later; `None` when it is the first one.
    pub(super) fn replaced(&self) -> Option<ReplacedRecord> {
        self.before.as_ref()?;
        Some(Replaced::record(self.replaced.as_ref()))
    }

    /// An alias as it was.
    pub(super) fn alias(&self, name: &str) -> Option<&Value> {
        self.aliases.iter().find(|alias| alias["Name"] == name)
    }

    /// The published version that was there.
    pub(super) fn version(&self) -> Option<&str> {
        self.before.as_ref()?.version.as_deref()
    }
}

/// The aliases of the manifests as they are.
pub(super) async fn aliases(site: &Site, documents: &Documents) -> Result<Vec<Value>, Failure> {
    let mut found = Vec::new();
    for alias in &documents.aliases {
        found.extend(calls::alias(site, documents.name(), alias_name(alias)).await?);
    }
    Ok(found)
}

/// The tags of a function as they are, of those that `wanted` sets otherwise.
pub(super) fn tags(function: &Value, wanted: &Map<String, Value>) -> Map<String, Value> {
    let now = &function["Tags"];
    let other = wanted
        .iter()
        .filter(|(name, value)| now[name.as_str()] != **value);
    other
        .map(|(name, _)| (name.clone(), now[name.as_str()].clone()))
        .collect()
}

/// Says what was there, as an operator wants to read it.
pub(super) fn tell(cx: &mut StepContext<'_>, configuration: &Value, unit: &'static str) {
    for (label, field) in [
        ("Function Version", "Version"),
        ("FunctionARN", "FunctionArn"),
        ("CodeSha256", "CodeSha256"),
        ("Memory Size", "MemorySize"),
        ("Runtime", "Runtime"),
        ("CodeSize", "CodeSize"),
        ("Handler", "Handler"),
        ("Architecture", "Architectures"),
    ] {
        let value = match &configuration[field] {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        cx.info(unit, format!("{label}: {value}"));
    }
}
