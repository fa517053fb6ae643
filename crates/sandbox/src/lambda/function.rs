//! Functions and their versions: what is kept, how it is shown, and how it settles over time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::code::Code;
use super::error::conflict;
use crate::account::{Account, Wake};
use crate::error::ApiError;
use crate::fields::Document;
use crate::image::ImageBehaviour;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Function {
    pub(super) name: String,
    pub(super) arn: String,
    /// `$LATEST`.
    pub(super) latest: Revision,
    /// Number of the version that was published last; 0 before the first.
    pub(super) published: u64,
    pub(super) tags: Document,
    pub(super) reserved: Option<i64>,
    /// By qualifier; empty for the function itself.
    pub(super) urls: BTreeMap<String, Document>,
    /// Statements by qualifier.
    pub(super) policies: BTreeMap<String, Vec<Document>>,
    /// When `$LATEST` settles.
    pub(super) due: Option<Timestamp>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Version {
    pub(super) number: u64,
    pub(super) revision: Revision,
    pub(super) due: Option<Timestamp>,
}

/// Code and configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Revision {
    /// The configuration as requests gave it, without what was never said.
    pub(super) document: Document,
    pub(super) code: Code,
    pub(super) id: String,
    pub(super) modified: Timestamp,
    pub(super) phase: Phase,
}

/// Where a revision is on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    Creating,
    Updating,
    Ready,
    /// It did not get there: reason code and reason.
    Broken {
        new: bool,
        code: String,
        reason: String,
    },
}

impl Revision {
    /// Whether it can be invoked as it is here.
    pub(super) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Whether code and configuration are the same.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.document == other.document && self.code.sha256 == other.code.sha256
    }

    /// `FunctionConfiguration`.
    pub(super) fn view(&self, function: &Function, version: &str, arn: &str) -> Document {
        let given = |name: &str| self.document.get(name).cloned();
        let or = |name: &str, default: Value| given(name).unwrap_or(default);
        let mut view = Document::new();
        let mut put = |name: &str, value: Value| {
            if !value.is_null() {
                view.insert(name.to_owned(), value);
            }
        };
        let image = self.code.is_image();
        put("FunctionName", json!(function.name));
        put("FunctionArn", json!(arn));
        put("Runtime", or("Runtime", Value::Null));
        put("Role", or("Role", Value::Null));
        put("Handler", or("Handler", Value::Null));
        put("CodeSize", json!(self.code.size));
        put("Description", or("Description", json!("")));
        put("Timeout", or("Timeout", json!(3)));
        put("MemorySize", or("MemorySize", json!(128)));
        put(
            "LastModified",
            json!(
                self.modified
                    .strftime("%Y-%m-%dT%H:%M:%S.%3f+0000")
                    .to_string()
            ),
        );
        put("CodeSha256", json!(self.code.sha256));
        put("Version", json!(version));
        put(
            "TracingConfig",
            or("TracingConfig", json!({"Mode": "PassThrough"})),
        );
        put("RevisionId", json!(self.id));
        put("PackageType", json!(if image { "Image" } else { "Zip" }));
        put("Architectures", or("Architectures", json!(["x86_64"])));
        put(
            "EphemeralStorage",
            or("EphemeralStorage", json!({"Size": 512})),
        );
        let snap = given("SnapStart").map_or(json!("None"), |snap| snap["ApplyOn"].clone());
        let optimized = snap == "PublishedVersions" && version != "$LATEST" && self.is_ready();
        put(
            "SnapStart",
            json!({"ApplyOn": snap, "OptimizationStatus": if optimized { "On" } else { "Off" }}),
        );
        let group = format!("/aws/lambda/{}", function.name);
        let mut logging = or("LoggingConfig", json!({}));
        for (name, default) in [("LogFormat", "Text"), ("LogGroup", group.as_str())] {
            if logging[name].is_null() {
                logging[name] = json!(default);
            }
        }
        put("LoggingConfig", logging);
        if let Some(mut vpc) = given("VpcConfig") {
            vpc["VpcId"] = match vpc["SubnetIds"].as_array() {
                Some(subnets) if !subnets.is_empty() => json!("vpc-0a1b2c3d"),
                _ => json!(""),
            };
            put("VpcConfig", vpc);
        }
        if let Some(layers) = given("Layers") {
            let layers = layers.as_array().cloned().unwrap_or_default();
            let layers: Vec<Value> = layers
                .iter()
                .map(|arn| json!({"Arn": arn, "CodeSize": 1024}))
                .collect();
            put("Layers", json!(layers));
        }
        if let Some(config) = given("ImageConfig") {
            put("ImageConfigResponse", json!({"ImageConfig": config}));
        }
        for (name, value) in &self.document {
            if !SHOWN.contains(&name.as_str()) {
                put(name, value.clone());
            }
        }
        self.show_phase(&mut put);
        view
    }

    fn show_phase(&self, put: &mut impl FnMut(&str, Value)) {
        const NEW: &str = "The function is being created.";
        match &self.phase {
            Phase::Creating => {
                put("State", json!("Pending"));
                put("StateReason", json!(NEW));
                put("StateReasonCode", json!("Creating"));
                put("LastUpdateStatus", json!("InProgress"));
                put("LastUpdateStatusReason", json!(NEW));
                put("LastUpdateStatusReasonCode", json!("Creating"));
            }
            Phase::Updating => {
                put("State", json!("Active"));
                put("LastUpdateStatus", json!("InProgress"));
                put("LastUpdateStatusReason", json!(NEW));
                put("LastUpdateStatusReasonCode", json!("Creating"));
            }
            Phase::Ready => {
                put("State", json!("Active"));
                put("LastUpdateStatus", json!("Successful"));
            }
            Phase::Broken { new, code, reason } => {
                put("State", json!(if *new { "Failed" } else { "Active" }));
                if *new {
                    put("StateReason", json!(reason));
                    put("StateReasonCode", json!(code));
                }
                put("LastUpdateStatus", json!("Failed"));
                put("LastUpdateStatusReason", json!(reason));
                put("LastUpdateStatusReasonCode", json!(code));
            }
        }
    }
}

/// Members that [`Revision::view`] shows in a way of its own.
const SHOWN: &[&str] = &[
    "Runtime",
    "Role",
    "Handler",
    "Description",
    "Timeout",
    "MemorySize",
    "TracingConfig",
    "Architectures",
    "EphemeralStorage",
    "SnapStart",
    "LoggingConfig",
    "VpcConfig",
    "Layers",
    "ImageConfig",
];

impl Function {
    /// Refuses changes while it is being changed.
    pub(super) fn check_idle(&self) -> Result<(), ApiError> {
        match self.latest.phase {
            Phase::Creating => Err(conflict(
                "The operation cannot be performed at this time. The function is currently in the following state: Pending",
            )),
            Phase::Updating => Err(conflict(format!(
                "The operation cannot be performed at this time. An update is in progress for resource: {}",
                self.arn
            ))),
            Phase::Ready | Phase::Broken { .. } => Ok(()),
        }
    }

    /// `$LATEST` as the operations show it that change it.
    pub(super) fn view(&self) -> Value {
        Value::Object(self.latest.view(self, "$LATEST", &self.arn))
    }
}

/// Begins a change of `$LATEST`.
pub(super) fn begin(account: &mut Account, key: &str, phase: Phase) {
    let id = account.draw_uuid();
    let now = account.now;
    let pace = account.pace.function;
    let Some(function) = account.lambda.functions.get_mut(key) else {
        return;
    };
    let wait = if function.latest.code.is_image() {
        pace.saturating_mul(2)
    } else {
        pace
    };
    function.latest.phase = phase;
    function.latest.id = id;
    function.latest.modified = now;
    let due = account.later(wait);
    if let Some(function) = account.lambda.functions.get_mut(key) {
        function.due = Some(due);
    }
    account.schedule(due, Wake::Function(key.to_owned()));
}

/// Ends a change of `$LATEST`, if its time has come.
pub(crate) fn settle(account: &mut Account, key: &str, at: Timestamp) {
    let Some(function) = account.lambda.functions.get(key) else {
        return;
    };
    if function.due != Some(at) {
        return;
    }
    let trouble = trouble(account, &function.latest);
    let id = account.draw_uuid();
    if let Some(function) = account.lambda.functions.get_mut(key) {
        let new = function.latest.phase == Phase::Creating;
        function.due = None;
        function.latest.id = id;
        function.latest.phase = ended(trouble, new);
    }
}

/// Makes a published version ready, if its time has come.
pub(crate) fn settle_version(account: &mut Account, key: &str, at: Timestamp) {
    let Some(version) = account.lambda.versions.get(key) else {
        return;
    };
    if version.due != Some(at) {
        return;
    }
    let trouble = trouble(account, &version.revision);
    if let Some(version) = account.lambda.versions.get_mut(key) {
        version.due = None;
        version.revision.phase = ended(trouble, true);
    }
}

fn ended(trouble: Option<(&str, String)>, new: bool) -> Phase {
    match trouble {
        None => Phase::Ready,
        Some((code, reason)) => Phase::Broken {
            new,
            code: code.to_owned(),
            reason,
        },
    }
}

/// What keeps a revision from getting ready: see the module's docs.
fn trouble(account: &Account, revision: &Revision) -> Option<(&'static str, String)> {
    if let Some(image) = revision.code.image() {
        let (does, _) = account.behaviour(image);
        if does != ImageBehaviour::Runs {
            let reason = "The image is not valid: its entry point does not start.".to_owned();
            return Some(("InvalidImage", reason));
        }
    }
    let subnets = revision
        .document
        .get("VpcConfig")
        .map(|vpc| &vpc["SubnetIds"]);
    let subnets = subnets.and_then(Value::as_array).into_iter().flatten();
    for subnet in subnets.filter_map(Value::as_str) {
        if subnet.starts_with("subnet-full") {
            let reason =
                format!("The subnet {subnet} has no addresses left for network interfaces.");
            return Some(("SubnetOutOfIPAddresses", reason));
        }
    }
    let key = revision.document.get("KMSKeyArn").and_then(Value::as_str);
    let key = key.filter(|key| key.ends_with("disabled"))?;
    Some(("DisabledKMSKey", format!("The KMS key {key} is disabled.")))
}
