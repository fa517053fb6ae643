//! Manifests and their contents.

use serde_json::{Map, Value};
use slipway_model::id::{EntityId, Scope};
use slipway_model::{Code, Ref};

use super::known::Known;
use super::{Resolver, is_empty};
use crate::{ConfigFilePlan, ManifestPlan, fit};

/// What a store holds.
#[derive(Default)]
pub(super) struct Content {
    /// Path and text.
    pub(super) files: Vec<(String, String)>,
    /// The commit that they were read at, of Git stores.
    pub(super) commit: Option<String>,
}

impl Resolver<'_> {
    pub(super) fn manifests(
        &mut self,
        list: Option<Ref<'_>>,
        scope: &Scope,
        known: &mut Known<'_>,
    ) -> Vec<ManifestPlan> {
        let mut out: Vec<ManifestPlan> = Vec::new();
        for item in list.into_iter().flat_map(Ref::items) {
            let Some(manifest) = item.get("manifest") else {
                continue;
            };
            let (Some(identifier), Some(kind)) =
                (manifest.get_text("identifier"), manifest.get_text("type"))
            else {
                continue;
            };
            if out
                .iter()
                .any(|known| known.identifier.as_str() == identifier)
            {
                let message = format!("a second manifest has the identifier `{identifier}`");
                self.fault(Code::Duplicate, manifest, message);
                continue;
            }
            let Some(store) = manifest.at(&["spec", "store"]) else {
                let message = format!("the manifest `{identifier}` has no `store`");
                self.fault(Code::MissingField, manifest, message);
                continue;
            };
            let content = self.files(store, &format!("manifest `{identifier}`"), scope, known);
            out.push(ManifestPlan {
                identifier: EntityId::new(identifier),
                kind: kind.to_owned(),
                store: store.to_json(),
                files: content.files,
                commit: content.commit,
                settings: settings(manifest),
            });
        }
        out
    }

    /// What the instances of a service run at their start, `userData`: kept as one more manifest.
    pub(super) fn user_data(
        &mut self,
        data: Ref<'_>,
        scope: &Scope,
        known: &mut Known<'_>,
    ) -> Option<ManifestPlan> {
        let store = data.get("store")?;
        let content = self.files(store, "`userData`", scope, known);
        Some(ManifestPlan {
            identifier: EntityId::new("userData"),
            kind: fit::USER_DATA.to_owned(),
            store: store.to_json(),
            files: content.files,
            commit: content.commit,
            settings: Map::new(),
        })
    }

    /// Configuration files; their secret files stay references.
    pub(super) fn config_files(
        &mut self,
        list: Option<Ref<'_>>,
        scope: &Scope,
        known: &mut Known<'_>,
    ) -> Vec<ConfigFilePlan> {
        let mut out: Vec<ConfigFilePlan> = Vec::new();
        for item in list.into_iter().flat_map(Ref::items) {
            let Some(file) = item.get("configFile") else {
                continue;
            };
            let identifier = file.get_text("identifier").unwrap_or_default();
            if out
                .iter()
                .any(|known| known.identifier.as_str() == identifier)
            {
                let message = format!("a second config file has the identifier `{identifier}`");
                self.fault(Code::Duplicate, file, message);
                continue;
            }
            let Some(store) = file.at(&["spec", "store"]) else {
                let message = format!("the config file `{identifier}` has no `store`");
                self.fault(Code::MissingField, file, message);
                continue;
            };
            let secret = store
                .at(&["spec", "secretFiles"])
                .filter(|list| !is_empty(*list));
            let only_secret = secret.is_some() && store.at(&["spec", "files"]).is_none_or(is_empty);
            let content = match only_secret {
                true => Content::default(),
                false => self.files(store, &format!("config file `{identifier}`"), scope, known),
            };
            out.push(ConfigFilePlan {
                identifier: EntityId::new(identifier),
                store: store.to_json(),
                files: content.files,
                commit: content.commit,
            });
        }
        out
    }

    /// What the stores in the spec of a step hold.
    pub(super) fn step_manifests(
        &mut self,
        step: Ref<'_>,
        (step_type, identifier): (&str, &str),
        known: &mut Known<'_>,
    ) -> Vec<ManifestPlan> {
        let scope = self.request.scope;
        let mut out = Vec::new();
        for (field, kind) in fit::step_stores(step_type) {
            let store = step.at(&["spec", field]).filter(|store| store.is_map());
            let Some(store) = store else {
                continue;
            };
            let owner = format!("`{field}` of step `{identifier}`");
            let content = self.files(store, &owner, scope, known);
            let bytes = content.files.iter().map(|(_, text)| text.len()).sum();
            if !self.has_room(store, bytes) {
                break;
            }
            out.push(ManifestPlan {
                identifier: EntityId::new(*field),
                kind: (*kind).to_owned(),
                store: store.to_json(),
                files: content.files,
                commit: content.commit,
                settings: Map::new(),
            });
        }
        out
    }

    /// What a store holds.
    fn files(
        &mut self,
        store: Ref<'_>,
        owner: &str,
        scope: &Scope,
        known: &mut Known<'_>,
    ) -> Content {
        let content = self.contents(store, owner, scope, known);
        for (_, text) in &content.files {
            self.scope_variables_of(text, known);
        }
        content
    }

    fn contents(
        &mut self,
        store: Ref<'_>,
        owner: &str,
        scope: &Scope,
        known: &Known<'_>,
    ) -> Content {
        let Some(spec) = store.get("spec") else {
            let message = format!("the store of {owner} has no `spec`");
            self.fault(Code::MissingField, store, message);
            return Content::default();
        };
        let files = match store.get_text("type").unwrap_or_default() {
            "Inline" => match spec.get_text("content") {
                Some(content) => vec![(owner_name(owner), content.to_owned())],
                None => {
                    let message = format!("the {owner} has no content");
                    self.fault(Code::MissingField, spec, message);
                    Vec::new()
                }
            },
            "Harness" => self.stored_files(spec, scope, known),
            _ => return self.remote_files(store, owner, scope, known),
        };
        Content {
            files,
            commit: None,
        }
    }

    /// Files of the file store; a folder stands for all files below it.
    fn stored_files(
        &mut self,
        spec: Ref<'_>,
        scope: &Scope,
        known: &Known<'_>,
    ) -> Vec<(String, String)> {
        let mut out = Vec::new();
        let listed = spec.get("files").or_else(|| spec.get("file"));
        let paths: Vec<_> = match listed {
            Some(list) if list.is_list() => list.items().collect(),
            other => other.into_iter().collect(),
        };
        if paths.is_empty() {
            let message = "no file of the file store is named here";
            self.fault(Code::MissingField, spec, message);
        }
        for path in paths {
            let Some(written) = self.text(path, known) else {
                continue;
            };
            if let Some(content) = self.stored_file(scope, &written) {
                out.push((written, content.to_string()));
                continue;
            }
            let message = match self.stored_folder(scope, &written) {
                Some(files) if files.is_empty() => {
                    format!("the folder `{written}` of the file store has no file")
                }
                Some(files) => {
                    out.extend(files);
                    continue;
                }
                None => format!("the file `{written}` does not exist in the file store"),
            };
            self.fault(Code::NotFound, path, message);
        }
        out
    }
}

/// Everything of a manifest's spec but its store.
fn settings(manifest: Ref<'_>) -> Map<String, Value> {
    let fields = manifest.get("spec").into_iter().flat_map(Ref::entries);
    let fields =
        fields.filter(|(key, value)| !["store", "metadata"].contains(key) && !value.is_null());
    fields
        .map(|(key, value)| (key.to_owned(), value.to_json()))
        .collect()
}

/// The identifier in what an owner is called.
fn owner_name(owner: &str) -> String {
    owner.split('`').nth(1).unwrap_or(owner).to_owned()
}

#[cfg(test)]
#[path = "tests_step_stores.rs"]
mod tests;
