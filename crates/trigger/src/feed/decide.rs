//! Whether a trigger starts a run for a version that is new.

use serde_json::{Map, Value, json};
use slipway_expr::{Context, Limits, Segment};

use super::{Build, filter};
use crate::{Condition, FeedSpec, Operator, Outcome, Refusal};

/// Whether what is there and what is wanted compare as an operator says.
pub type Holds = fn(Operator, &str, &str) -> bool;

/// Most letters of a value in a message.
const SHOWN: usize = 100;

/// The documentation's own name for metadata of the artifact, below the stage whose artifact it is:
/// `pipeline.stages.deploy.spec.artifacts.primary.metadata`.
const IN_STAGE: [Option<&str>; 7] = [
    Some("pipeline"),
    Some("stages"),
    None,
    Some("spec"),
    Some("artifacts"),
    Some("primary"),
    Some("metadata"),
];

/// What `<+trigger.…>` knows about a run that a new version starts: `artifact.build`, `artifact.metadata.…`,
/// `artifact.source.connectorRef` and what else says where it is, or `manifest.version` of a chart.
pub fn facts(spec: &FeedSpec, build: &Build) -> Value {
    let version = &build.version;
    if is_manifest(spec) {
        return json!({"type": "Manifest", "manifest": {"version": version, "metadata": build.metadata}});
    }
    json!({
        "type": "Artifact",
        "artifact": {
            "build": version,
            "metadata": build.metadata,
            "source": source(&spec.spec),
        },
    })
}

/// The texts of a spec. What images are called has one name, whatever the registry calls it.
fn source(spec: &Value) -> Map<String, Value> {
    let fields = spec.as_object().into_iter().flatten();
    let texts = fields.filter(|(_, value)| value.is_string());
    let mut source: Map<String, Value> = texts.map(|(k, v)| (k.clone(), v.clone())).collect();
    if !source.contains_key("imagePath") {
        let path = ["artifactPath", "repository", "packageName", "pkg"]
            .iter()
            .find_map(|name| source.get(*name).cloned());
        source.extend(path.map(|path| ("imagePath".to_owned(), path)));
    }
    source
}

fn is_manifest(spec: &FeedSpec) -> bool {
    spec.kind == "HelmChart"
}

/// Whether a version passes what a spec filters by and all of its conditions.
///
/// The key of a condition is `build` or `version`, which both mean the version, the name of a piece of metadata, or an
/// expression of [`facts`]. What is not there is empty: only an operator that denies something holds of it.
///
/// # Errors
/// The first thing that does not hold, with what is wanted and what is there.
pub fn decide(spec: &FeedSpec, build: &Build, holds: Holds) -> Result<(), Refusal> {
    let version = shown(&build.version);
    if let Some(strange) = strange(build) {
        return Err(Refusal::new(
            Outcome::InvalidPayload,
            format!(
                "version `{version}`: the registry names `{}`, and names with `<+` would be read as expressions: give it \
                 another name",
                shown(strange)
            ),
        ));
    }
    if let Some(why) = filter::refused(spec, &build.version) {
        return Err(Refusal::new(
            Outcome::TriggerDidNotMatchEventCondition,
            format!("the new version is `{version}`, and {why}"),
        ));
    }
    let facts = facts(spec, build);
    let known = Known {
        facts: &facts,
        metadata: &build.metadata,
    };
    for (conditions, outcome) in [
        (
            &spec.event_conditions,
            Outcome::TriggerDidNotMatchEventCondition,
        ),
        (
            &spec.metadata_conditions,
            Outcome::TriggerDidNotMatchMetadataCondition,
        ),
    ] {
        for condition in conditions {
            known
                .check(condition, build, holds)
                .map_err(|why| Refusal::new(outcome, format!("version `{version}`: {why}")))?;
        }
    }
    let Some(jexl) = &spec.jexl else {
        return Ok(());
    };
    let why = match slipway_expr::condition(jexl, &known, &Limits::default()) {
        Ok(true) => return Ok(()),
        Ok(false) => format!("the condition `{}` is false", shown(jexl)),
        Err(error) => format!("the condition `{}`: {}", shown(jexl), error.full_text()),
    };
    Err(Refusal::new(
        Outcome::TriggerDidNotMatchArtifactJexlCondition,
        format!("version `{version}`: {why}"),
    ))
}

/// A text that must not become a part of inputs, whose expressions are evaluated: who may push a version must not write
/// expressions with that.
fn strange(build: &Build) -> Option<&str> {
    fn within(value: &Value) -> Option<&str> {
        match value {
            Value::String(text) => text.contains("<+").then_some(text),
            Value::Array(items) => items.iter().find_map(within),
            Value::Object(fields) => fields.values().find_map(within),
            _ => None,
        }
    }
    let version = build.version.contains("<+").then_some(&*build.version);
    version.or_else(|| build.metadata.values().find_map(within))
}

/// What conditions know.
struct Known<'a> {
    facts: &'a Value,
    metadata: &'a Map<String, Value>,
}

impl Known<'_> {
    fn check(&self, condition: &Condition, build: &Build, holds: Holds) -> Result<(), String> {
        let Condition {
            key,
            operator,
            value,
        } = condition;
        let actual = self.value(key.trim(), build)?;
        let held = match &actual {
            Some(actual) => holds(*operator, actual, value),
            None => matches!(
                operator,
                Operator::NotIn | Operator::NotEquals | Operator::DoesNotContain
            ),
        };
        if held {
            return Ok(());
        }
        let found = match &actual {
            Some(actual) => format!("it is `{}`", shown(actual)),
            None => "there is no such thing".to_owned(),
        };
        Err(format!(
            "the condition `{} {operator:?} {}` does not hold: {found}",
            shown(key),
            shown(value)
        ))
    }

    /// The value that a key stands for; `None` where there is none.
    fn value(&self, key: &str, build: &Build) -> Result<Option<String>, String> {
        if matches!(key, "build" | "version") {
            return Ok(Some(build.version.clone()));
        }
        if !key.contains("<+") {
            let found = self.metadata.get(key).map(slipway_expr::Value::from_json);
            return Ok(found.and_then(|value| value.text()));
        }
        let parsed = slipway_expr::parse(key);
        let parsed = parsed.map_err(|why| format!("the key `{}`: {why}", shown(key)))?;
        match parsed.evaluate(self, &Limits::default()) {
            Ok(value) => Ok(value.text()),
            Err(error) if matches!(error.reason, slipway_expr::Reason::Undefined { .. }) => {
                Ok(None)
            }
            Err(error) => Err(format!("the key `{}`: {}", shown(key), error.full_text())),
        }
    }
}

impl Context for Known<'_> {
    fn lookup(&self, path: &[Segment]) -> Option<slipway_expr::Value> {
        let named = |(segment, name): (&Segment, &Option<&str>)| match name {
            Some(name) => segment.key() == Some(name),
            None => segment.key().is_some(),
        };
        let in_stage = path.len() > IN_STAGE.len() && path.iter().zip(&IN_STAGE).all(named);
        let (mut found, below) = match path {
            [Segment::Key(first), below @ ..] if first == "trigger" => (self.facts, below),
            _ if in_stage => {
                let name = path[IN_STAGE.len()].key()?;
                (self.metadata.get(name)?, &path[IN_STAGE.len() + 1..])
            }
            _ => return None,
        };
        for segment in below {
            found = match segment {
                Segment::Key(key) => found.get(key)?,
                Segment::Index(index) => found.get(index)?,
            };
        }
        Some(slipway_expr::Value::from_json(found))
    }
}

/// A text of somebody else, short enough for a message.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
