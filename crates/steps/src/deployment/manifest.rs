//! Manifests, read into documents that fit requests of AWS, and kept as long as the run.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use slipway_model::status::Failure;
use slipway_plan::ManifestPlan;

use super::{FETCH, invalid};
use crate::aws::document::{Conformed, conform, read};
use crate::context::{StepContext, store_failure};

/// Documents are read once in a step's life: `key` is where they are kept from then on.
pub(crate) async fn once<T: Serialize + DeserializeOwned>(
    cx: &mut StepContext<'_>,
    key: &mut Option<String>,
    fetch: impl FnOnce(&mut StepContext<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    cx.unit_started(FETCH);
    let documents = match key {
        Some(key) => kept(cx, key).await?,
        None => {
            let documents = fetch(cx)?;
            *key = Some(keep(cx, &documents).await?);
            cx.info(FETCH, "Fetched all manifests");
            documents
        }
    };
    cx.unit_ended(FETCH, true);
    Ok(documents)
}

/// Puts documents into the store; the key finds them again.
async fn keep<T: Serialize>(cx: &StepContext<'_>, documents: &T) -> Result<String, Failure> {
    let bytes = serde_json::to_vec(documents)
        .map_err(|error| invalid(format!("The manifests cannot be stored: {error}.")))?;
    let put = cx.store().put_blob(&bytes).await;
    put.map_err(|error| store_failure("store the manifests", &error))
}

/// Gets back what [`keep`] stored.
pub(crate) async fn kept<T: DeserializeOwned>(
    cx: &StepContext<'_>,
    key: &str,
) -> Result<T, Failure> {
    let bytes = cx.store().get_blob(key).await;
    let bytes = bytes.map_err(|error| store_failure("read the stored manifests", &error))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| invalid(format!("The stored manifests cannot be read: {error}.")))
}

/// Reads manifests into documents that fit requests of AWS.
pub(crate) struct Reader<'c, 'a> {
    pub(crate) cx: &'c mut StepContext<'a>,
    pub(crate) manifests: &'a [ManifestPlan],
    /// Names that only the step knows.
    pub(crate) names: &'c [(&'c str, slipway_expr::Value)],
}

impl Reader<'_, '_> {
    /// The only manifest of a kind.
    pub(crate) fn one(&mut self, kind: &str, shape: &str) -> Result<Value, Failure> {
        let mut found = self.all(kind, shape)?;
        match (found.pop(), found.len()) {
            (Some(document), 0) => Ok(document),
            (rest, others) => Err(invalid(format!(
                "Stage {} needs exactly one {kind} manifest in its service, and there are {}.",
                self.cx.stage().identifier,
                others + usize::from(rest.is_some())
            ))),
        }
    }

    /// The only manifest of a kind, or this where there is none.
    pub(crate) fn one_or(
        &mut self,
        kind: &str,
        shape: &str,
        default: Option<Value>,
    ) -> Result<Value, Failure> {
        let none = !self.manifests.iter().any(|manifest| manifest.kind == kind);
        match default.filter(|_| none) {
            Some(default) => Ok(default),
            None => self.one(kind, shape),
        }
    }

    /// Every manifest of a kind, in order.
    pub(crate) fn all(&mut self, kind: &str, shape: &str) -> Result<Vec<Value>, Failure> {
        let mut documents = Vec::new();
        for manifest in self
            .manifests
            .iter()
            .filter(|manifest| manifest.kind == kind)
        {
            if manifest.files.is_empty() {
                let store = manifest.store["type"].as_str().unwrap_or("without a type");
                return Err(invalid(format!(
                    "The plan has no content of manifest {} ({kind}) from its store of type {store}: \
                     check what the store names, and run the pipeline again.",
                    manifest.identifier
                )));
            }
            for (path, text) in &manifest.files {
                documents.push(self.document(manifest, path, text, shape)?);
            }
        }
        Ok(documents)
    }

    fn document(
        &mut self,
        manifest: &ManifestPlan,
        path: &str,
        text: &str,
        shape: &str,
    ) -> Result<Value, Failure> {
        let name = format!("manifest {} ({path})", manifest.identifier);
        self.cx
            .info(FETCH, format!("Reading {name} of type {}", manifest.kind));
        let written = read(path, text)
            .map_err(|why| invalid(format!("The {name} cannot be read: {why}.")))?;
        wrapped(&written).map_err(|why| invalid(format!("The {name} {why}.")))?;
        let resolved = match self.names.is_empty() {
            true => self.cx.evaluate(&written)?,
            false => self.cx.expressions_with(self.names).evaluate(&written)?,
        };
        let Conformed { document, notes } = conform(shape, resolved).map_err(|faults| {
            invalid(format!(
                "The {name} does not fit {shape}: {}.",
                faults.join("; ")
            ))
        })?;
        for note in notes {
            self.cx.warn(FETCH, format!("{name}: {note}"));
        }
        Ok(document)
    }

    /// Takes out fields that the deployment decides, and says so.
    pub(crate) fn take_out(&mut self, document: &mut Value, names: &[&str]) {
        let Some(fields) = document.as_object_mut() else {
            return;
        };
        for name in names {
            if fields.shift_remove(*name).is_some() {
                self.cx.info(
                    FETCH,
                    format!("`{name}` of the manifest is ignored: the deployment sets it"),
                );
            }
        }
    }
}

/// Documents copied from answers of AWS have a wrapper that requests do not have.
fn wrapped(document: &Value) -> Result<(), String> {
    let Some(fields) = document.as_object() else {
        return Err("is not a mapping".to_owned());
    };
    match fields.keys().next().map(String::as_str) {
        Some(wrapper @ ("services" | "service" | "taskDefinition")) if fields.len() == 1 => Err(
            format!("is an answer of AWS and not a request: take out the wrapper `{wrapper}`"),
        ),
        _ => Ok(()),
    }
}
