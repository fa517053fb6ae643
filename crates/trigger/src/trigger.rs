//! A trigger, as its YAML says it (`v0/trigger.json`).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_model::Parsed;
use slipway_model::id::EntityId;

use crate::Provider;

/// The entity `trigger`.
#[derive(Clone, Debug, PartialEq)]
pub struct Trigger {
    /// `identifier`.
    pub identifier: EntityId,
    /// `name`, or else the identifier.
    pub name: String,
    /// `pipelineIdentifier`.
    pub pipeline: Option<EntityId>,
    /// `enabled`; on unless it says `false`.
    pub enabled: bool,
    /// `encryptedWebhookSecretIdentifier`: what deliveries must be signed with.
    pub secret: Option<String>,
    /// `inputSetRefs`: a list, or an expression whose value is one.
    pub input_sets: Texts,
    /// `inputYaml`.
    pub inputs_yaml: Option<String>,
    /// `pipelineBranchName`, which may be an expression.
    pub branch: Option<String>,
    /// `stagesToExecute`: a list, or an expression whose value is one.
    pub stages: Texts,
    /// `source.pollInterval`, as it is written.
    pub poll_interval: Option<String>,
    /// What it listens to.
    pub source: Source,
}

/// A list of texts, or one text: an expression that gives a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Texts {
    /// The list.
    List(Vec<String>),
    /// The expression, or the only element.
    Text(String),
}

impl Default for Texts {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

/// `source`.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// `Webhook`.
    Webhook(WebhookSpec),
    /// `Artifact`.
    Artifact(FeedSpec),
    /// `Manifest`.
    Manifest(FeedSpec),
    /// `Scheduled`, of type `Cron`.
    Scheduled {
        /// `expression`.
        expression: String,
        /// `type`: Quartz with seconds, or else UNIX with five fields.
        quartz: bool,
        /// `timezone`; UTC where it says none.
        time_zone: Option<String>,
    },
    /// `MultiRegionArtifact`.
    MultiRegion {
        /// `sources`.
        sources: Vec<RegionSource>,
        /// What all of them have in common: `artifactRef`, `stageIdentifier`, the conditions.
        feed: FeedSpec,
    },
    /// `SystemEvent`, of type `Pipeline`.
    SystemEvent(SystemEvent),
}

/// The spec of a webhook source.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookSpec {
    /// Its `type`; `EventRelay` is [`Provider::Custom`] with [`WebhookSpec::relay`].
    pub provider: Provider,
    /// `webhookIdentifier` of an event relay.
    pub relay: Option<String>,
    /// `Push`, `PullRequest`, …; empty for custom webhooks.
    pub event: String,
    /// `connectorRef`.
    pub connector: Option<String>,
    /// `repoName`; with a connector to an account or a project, its repository.
    pub repo_name: Option<String>,
    /// `registryName` of a registry event.
    pub registry: Option<String>,
    /// `actions`; none means all.
    pub actions: Vec<String>,
    /// `autoAbortPreviousExecutions`.
    pub auto_abort: bool,
    /// `headerConditions`.
    pub header_conditions: Vec<Condition>,
    /// `payloadConditions`.
    pub payload_conditions: Vec<Condition>,
    /// `jexlCondition`.
    pub jexl: Option<String>,
}

/// The spec of an artifact or manifest source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeedSpec {
    /// `type`: `Ecr`, `DockerRegistry`, `HelmChart`, ….
    pub kind: String,
    /// `stageIdentifier`.
    pub stage: Option<String>,
    /// `artifactRef` or `manifestRef`.
    pub reference: Option<String>,
    /// `spec` of the registry: `connectorRef`, `imagePath`, …, as JSON.
    pub spec: Value,
    /// `eventConditions`.
    pub event_conditions: Vec<Condition>,
    /// `metaDataConditions`.
    pub metadata_conditions: Vec<Condition>,
    /// `jexlCondition`.
    pub jexl: Option<String>,
}

/// One of `sources` of a multi-region artifact.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionSource {
    /// Its registry's type.
    pub kind: String,
    /// Its `spec`.
    pub spec: Value,
}

/// The spec of a system event.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemEvent {
    /// `PipelineSuccess`; else `PipelineFailure`.
    pub success: bool,
    /// `payloadConditions`.
    pub conditions: Vec<Condition>,
}

/// One condition; all of a list must hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// `targetBranch`, `changedFiles`, `<+trigger.payload.x>`, `build`, ….
    pub key: String,
    /// How it compares.
    pub operator: Operator,
    /// With what.
    #[serde(default)]
    pub value: String,
}

/// `operator` of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// Is one of a list.
    In,
    /// Is none of a list.
    NotIn,
    /// Is.
    Equals,
    /// Is not.
    NotEquals,
    /// Matches as a whole.
    Regex,
    /// Ends with.
    EndsWith,
    /// Begins with.
    StartsWith,
    /// Has in it.
    Contains,
    /// Has not in it.
    DoesNotContain,
}

impl Trigger {
    /// Reads an entity of the kind trigger, which was checked when it was parsed. What its shape leaves open (an expression
    /// where a word is wanted) is an error.
    ///
    /// # Errors
    /// What is missing or cannot be read, for people.
    pub fn of(parsed: &Parsed) -> Result<Self, String> {
        let entity = parsed.to_json();
        let source = &entity["source"];
        let text = |value: &Value, key: &str| value[key].as_str().map(str::to_owned);
        let head = &parsed.head;
        Ok(Self {
            identifier: head.identifier.clone(),
            name: head.name.clone(),
            pipeline: head.pipeline.clone(),
            enabled: !is(&entity["enabled"], false),
            secret: text(&entity, "encryptedWebhookSecretIdentifier").filter(|it| !it.is_empty()),
            input_sets: texts(&entity["inputSetRefs"]),
            inputs_yaml: text(&entity, "inputYaml").filter(|it| !it.trim().is_empty()),
            branch: text(&entity, "pipelineBranchName").filter(|it| !it.is_empty()),
            stages: texts(&entity["stagesToExecute"]),
            poll_interval: text(source, "pollInterval"),
            source: source_of(source)?,
        })
    }
}

/// Whether a value is that boolean, written as one or as text.
fn is(value: &Value, wanted: bool) -> bool {
    value.as_bool() == Some(wanted) || value.as_str() == Some(if wanted { "true" } else { "false" })
}

fn texts(value: &Value) -> Texts {
    Texts::deserialize(value).unwrap_or_default()
}

fn conditions(value: &Value) -> Result<Vec<Condition>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        found => Vec::deserialize(found).map_err(|why| format!("conditions cannot be read: {why}")),
    }
}

fn word<'v>(value: &'v Value, key: &str) -> Result<&'v str, String> {
    let found = value[key].as_str().filter(|word| !word.is_empty());
    found.ok_or_else(|| format!("`{key}` of the trigger's source is missing"))
}

fn source_of(source: &Value) -> Result<Source, String> {
    let spec = &source["spec"];
    Ok(match word(source, "type")? {
        "Webhook" => Source::Webhook(webhook(spec)?),
        "Artifact" => Source::Artifact(feed(spec, "artifactRef")?),
        "Manifest" => Source::Manifest(feed(spec, "manifestRef")?),
        "Scheduled" => Source::Scheduled {
            expression: word(&spec["spec"], "expression")?.to_owned(),
            quartz: spec["spec"]["type"] == "QUARTZ",
            time_zone: spec["spec"]["timezone"]
                .as_str()
                .filter(|zone| !zone.is_empty())
                .map(str::to_owned),
        },
        "MultiRegionArtifact" => {
            let listed = spec["sources"].as_array().map(Vec::as_slice);
            let sources = listed.unwrap_or_default().iter().map(|one| {
                Ok(RegionSource {
                    kind: word(one, "type")?.to_owned(),
                    spec: one["spec"].clone(),
                })
            });
            Source::MultiRegion {
                sources: sources.collect::<Result<_, String>>()?,
                feed: FeedSpec {
                    kind: spec["type"].as_str().unwrap_or_default().to_owned(),
                    ..conditioned(spec, spec, "artifactRef")?
                },
            }
        }
        "SystemEvent" => Source::SystemEvent(SystemEvent {
            success: spec["spec"]["eventType"] == "PipelineSuccess",
            conditions: conditions(&spec["spec"]["payloadConditions"])?,
        }),
        other => return Err(format!("triggers of type {other} are not known")),
    })
}

fn webhook(spec: &Value) -> Result<WebhookSpec, String> {
    let kind = word(spec, "type")?;
    let (provider, relay) = match kind {
        "EventRelay" => (Provider::Custom, true),
        known => {
            let provider = Provider::deserialize(&Value::from(known));
            let unknown = |_| format!("webhooks of type {known} are not known");
            (provider.map_err(unknown)?, false)
        }
    };
    let outer = &spec["spec"];
    // Those of Git providers name an event and have its spec below; custom ones have none.
    let inner = match provider {
        Provider::Custom => outer,
        _ => &outer["spec"],
    };
    let text = |key: &str| {
        let found = inner[key].as_str().filter(|text| !text.is_empty());
        found.map(str::to_owned)
    };
    let actions = inner["actions"].as_array().map(Vec::as_slice);
    let actions = actions.unwrap_or_default().iter().filter_map(Value::as_str);
    Ok(WebhookSpec {
        provider,
        relay: relay.then(|| text("webhookIdentifier")).flatten(),
        event: outer["type"].as_str().unwrap_or_default().to_owned(),
        connector: text("connectorRef"),
        repo_name: text("repoName"),
        registry: text("registryName"),
        actions: actions.map(str::to_owned).collect(),
        auto_abort: is(&inner["autoAbortPreviousExecutions"], true),
        header_conditions: conditions(&inner["headerConditions"])?,
        payload_conditions: conditions(&inner["payloadConditions"])?,
        jexl: text("jexlCondition"),
    })
}

fn feed(spec: &Value, reference: &str) -> Result<FeedSpec, String> {
    Ok(FeedSpec {
        kind: word(spec, "type")?.to_owned(),
        ..conditioned(spec, &spec["spec"], reference)?
    })
}

/// What artifact and manifest sources share: conditions below `inner`, the rest of it in `outer`.
fn conditioned(outer: &Value, inner: &Value, reference: &str) -> Result<FeedSpec, String> {
    let text = |value: &Value| {
        let found = value.as_str().filter(|text| !text.is_empty());
        found.map(str::to_owned)
    };
    Ok(FeedSpec {
        kind: String::new(),
        stage: text(&outer["stageIdentifier"]),
        reference: text(&outer[reference]),
        spec: inner.clone(),
        event_conditions: conditions(&inner["eventConditions"])?,
        metadata_conditions: conditions(&inner["metaDataConditions"])?,
        jexl: text(&inner["jexlCondition"]),
    })
}
