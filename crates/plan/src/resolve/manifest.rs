//! Manifests and their contents.

use serde_json::{Map, Value};
use slipway_model::id::{EntityId, Scope};
use slipway_model::{Code, Ref};

use super::known::Known;
use super::{Resolver, is_empty, texts};
use crate::{ConfigFilePlan, ManifestPlan};

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
            let files = self.files(store, &format!("manifest `{identifier}`"), scope, known);
            out.push(ManifestPlan {
                identifier: EntityId::new(identifier),
                kind: kind.to_owned(),
                store: store.to_json(),
                files,
                settings: settings(manifest),
            });
        }
        out
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
            let files = match only_secret {
                true => Vec::new(),
                false => self.files(store, &format!("config file `{identifier}`"), scope, known),
            };
            out.push(ConfigFilePlan {
                identifier: EntityId::new(identifier),
                store: store.to_json(),
                files,
            });
        }
        out
    }

    /// Contents of a store, as far as they are known before the run.
    fn files(
        &mut self,
        store: Ref<'_>,
        owner: &str,
        scope: &Scope,
        known: &mut Known<'_>,
    ) -> Vec<(String, String)> {
        let files = self.contents(store, owner, scope, known);
        for (_, text) in &files {
            self.scope_variables_of(text, known);
        }
        files
    }

    fn contents(
        &mut self,
        store: Ref<'_>,
        owner: &str,
        scope: &Scope,
        known: &Known<'_>,
    ) -> Vec<(String, String)> {
        let kind = store.get_text("type").unwrap_or_default();
        let Some(spec) = store.get("spec") else {
            self.fault(
                Code::MissingField,
                store,
                format!("the store of {owner} has no `spec`"),
            );
            return Vec::new();
        };
        match kind {
            "Inline" => match spec.get_text("content") {
                Some(content) => vec![(owner_name(owner), content.to_owned())],
                None => {
                    self.fault(
                        Code::MissingField,
                        spec,
                        format!("the {owner} has no content"),
                    );
                    Vec::new()
                }
            },
            "Harness" => self.stored_files(spec, scope, known),
            _ => self.remote_files(store, kind, scope, known),
        }
    }

    /// Files of the file store.
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
            self.fault(
                Code::MissingField,
                spec,
                "no file of the file store is named here",
            );
        }
        for path in paths {
            let Some(written) = self.text(path, known) else {
                continue;
            };
            match self.stored_file(scope, &written) {
                Some(content) => out.push((written.clone(), content.to_string())),
                None => {
                    let message = format!("the file `{written}` does not exist in the file store");
                    self.fault(Code::NotFound, path, message);
                }
            }
        }
        out
    }

    /// Files of a Git repository or bucket, where somebody has fetched them before.
    fn remote_files(
        &mut self,
        store: Ref<'_>,
        kind: &str,
        scope: &Scope,
        known: &Known<'_>,
    ) -> Vec<(String, String)> {
        let spec = store.get("spec");
        let text = |name: &str| {
            spec.and_then(|spec| spec.get_text(name))
                .unwrap_or_default()
        };
        let version = if text("branch").is_empty() {
            text("commitId")
        } else {
            text("branch")
        };
        // A bucket stands for a repository, and its folder for the paths in it.
        let repository = ["repoName", "bucketName"].map(text).concat();
        let mut paths = texts(spec.and_then(|spec| spec.get("paths")));
        if paths.is_empty() && !text("folderPath").is_empty() {
            paths.push(text("folderPath").to_owned());
        }
        let mut out = Vec::new();
        for path in &paths {
            let id = format!(
                "{kind}:{}:{repository}:{version}:{path}",
                text("connectorRef")
            );
            // An expression that cannot be told yet names no file.
            let id = if id.contains("<+") {
                known.evaluate(&id).ok()
            } else {
                Some(id)
            };
            if let Some(content) = id.and_then(|id| self.file(scope, id)) {
                out.push((path.clone(), content.to_string()));
            }
        }
        if (out.is_empty() || out.len() < paths.len()) && !(self.request.fetchable)(kind) {
            let advice = "; put the text into an `Inline` store";
            self.unsupported(store, &format!("a manifest store of type `{kind}`"), advice);
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
