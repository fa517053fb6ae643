//! Files of Git repositories and buckets. What they hold comes from [`crate::Entities::files`].

use serde_json::Value;
use slipway_model::id::Scope;
use slipway_model::{Code, Kind, Ref};

use super::Resolver;
use super::known::Known;
use super::manifest::Content;
use crate::remote::{GitVersion, RemoteFiles, RemotePlace, path};
use crate::{ConnectorPlan, remote};

/// Types of connectors that lead to a Git repository.
const CODE_HOSTS: &[&str] = &["Git", "Github", "Gitlab", "Bitbucket", "AzureRepo"];

impl Resolver<'_> {
    /// What a store of another place holds; a fault where it cannot be had.
    pub(super) fn remote_files(
        &mut self,
        store: Ref<'_>,
        owner: &str,
        scope: &Scope,
        known: &Known<'_>,
    ) -> Content {
        let Some(wanted) = self.remote(store, scope, known) else {
            return Content::default();
        };
        self.asked.borrow_mut().push_files(&wanted);
        let why = match self.request.entities.files(&wanted) {
            Some(Ok(fetched)) => {
                let files = fetched.files.into_iter();
                return Content {
                    files: files.map(|(path, text)| (path, text.to_string())).collect(),
                    commit: fetched.commit,
                };
            }
            Some(Err(why)) => why,
            None => "nothing here fetches files from other places".to_owned(),
        };
        let message = format!("the files of {owner} cannot be read: {why}");
        self.fault(Code::NotFound, store, message);
        Content::default()
    }

    /// What is to be asked for; `None` after a fault.
    fn remote(&mut self, store: Ref<'_>, scope: &Scope, known: &Known<'_>) -> Option<RemoteFiles> {
        let kind = store.get_text("type").unwrap_or_default();
        let spec = store.get("spec")?;
        let (place, hosts) = match kind {
            "Git" | "Github" | "GitLab" | "Bitbucket" | "AzureRepo" => {
                (self.repository(spec, known), CODE_HOSTS)
            }
            "S3" => (self.bucket(spec, known), &["Aws"][..]),
            _ => {
                let advice = "; use a Git repository, an S3 bucket, the file store or `Inline`";
                self.unsupported(store, &format!("a manifest store of type `{kind}`"), advice);
                return None;
            }
        };
        let paths = self.paths(spec, known);
        let connector = self.store_connector(spec, kind, hosts, scope, known);
        Some(RemoteFiles {
            connector: connector?,
            scope: scope.clone(),
            place: place?,
            paths: paths?,
        })
    }

    fn repository(&mut self, spec: Ref<'_>, known: &Known<'_>) -> Option<RemotePlace> {
        let repository = match filled(spec, "repoName") {
            Some(name) => Some(self.text(name, known)?.trim().to_owned()),
            None => None,
        };
        let (branch, commit) = (filled(spec, "branch"), filled(spec, "commitId"));
        let by_commit = match spec.get_text("gitFetchType") {
            Some("Commit") => true,
            Some("Branch") => false,
            _ => branch.is_none() && commit.is_some(),
        };
        let Some(written) = (if by_commit { commit } else { branch }) else {
            let field = if by_commit { "commitId" } else { "branch" };
            let message = format!("`{field}` must say which version of the repository is read");
            self.fault(Code::MissingField, spec, message);
            return None;
        };
        let version = self.text(written, known)?.trim().to_owned();
        Some(RemotePlace::Git {
            repository,
            version: match by_commit {
                true => GitVersion::Commit(version),
                false => GitVersion::Branch(version),
            },
        })
    }

    fn bucket(&mut self, spec: Ref<'_>, known: &Known<'_>) -> Option<RemotePlace> {
        let bucket = self.must(spec, "bucketName", known);
        let region = self.must(spec, "region", known);
        Some(RemotePlace::S3 {
            bucket: bucket?,
            region: region?,
        })
    }

    /// The text of a field that a store cannot do without.
    fn must(&mut self, spec: Ref<'_>, field: &str, known: &Known<'_>) -> Option<String> {
        let Some(value) = filled(spec, field) else {
            let message = format!("`{field}` is missing from the store");
            self.fault(Code::MissingField, spec, message);
            return None;
        };
        Some(self.text(value, known)?.trim().to_owned())
    }

    /// `paths`, or `folderPath` where there are none.
    fn paths(&mut self, spec: Ref<'_>, known: &Known<'_>) -> Option<Vec<String>> {
        let listed: Vec<Ref<'_>> = match spec.get("paths") {
            Some(list) if list.is_list() => list.items().collect(),
            Some(one) => vec![one],
            None => Vec::new(),
        };
        let mut listed: Vec<_> = listed
            .into_iter()
            .filter(|path| path.text().is_none_or(|text| !text.trim().is_empty()))
            .collect();
        if listed.is_empty() {
            listed.extend(filled(spec, "folderPath"));
        }
        if listed.is_empty() {
            let message = "no file or folder is named here: give `paths` or `folderPath`";
            self.fault(Code::MissingField, spec, message);
            return None;
        }
        if listed.len() > remote::MOST_FILES {
            let message = format!("more than {} paths in one store", remote::MOST_FILES);
            self.fault(Code::Limit, spec, message);
            return None;
        }
        let paths = listed.into_iter().map(|value| {
            let written = self.text(value, known)?;
            path(&written)
                .map_err(|why| {
                    self.fault(
                        Code::BadValue,
                        value,
                        format!("`{written}` is no path: {why}"),
                    );
                })
                .ok()
        });
        // Every fault is told, not only the first.
        let paths: Vec<Option<String>> = paths.collect();
        paths.into_iter().collect()
    }

    fn store_connector(
        &mut self,
        spec: Ref<'_>,
        store: &str,
        hosts: &[&str],
        scope: &Scope,
        known: &Known<'_>,
    ) -> Option<ConnectorPlan> {
        let Some(value) = filled(spec, "connectorRef") else {
            let message = "`connectorRef` is missing from the store";
            self.fault(Code::MissingField, spec, message);
            return None;
        };
        let found = self.entity(Kind::Connector, value, scope, None, known)?;
        let kind = found.entity.head.entity_type.clone().unwrap_or_default();
        if !hosts.contains(&kind.as_str()) {
            let message = format!(
                "the connector `{}` is of type {kind}; a store of type {store} needs one of {}",
                found.entity.head.identifier,
                hosts.join(", ")
            );
            self.fault(Code::BadValue, value, message);
            return None;
        }
        let mut spec = self.connector_spec(&found);
        if let Err(why) = evaluated(&mut spec, known) {
            let message = format!(
                "the connector `{}` must be known before the run begins: {why}",
                found.entity.head.identifier
            );
            self.fault(Code::BadExpression, value, message);
            return None;
        }
        Some(ConnectorPlan {
            reference: found.written,
            kind,
            spec,
        })
    }
}

/// A field that is there and not empty.
fn filled<'r>(spec: Ref<'r>, field: &str) -> Option<Ref<'r>> {
    let value = spec.get(field)?;
    value
        .text()
        .is_none_or(|text| !text.trim().is_empty())
        .then_some(value)
        .filter(|value| !value.is_null())
}

/// Evaluates every text of a document in its place.
pub(super) fn evaluated(document: &mut Value, known: &Known<'_>) -> Result<(), String> {
    match document {
        Value::String(text) if text.contains("<+") => *text = known.evaluate(text)?,
        Value::Array(items) => {
            for item in items {
                evaluated(item, known)?;
            }
        }
        Value::Object(fields) => {
            for value in fields.values_mut() {
                evaluated(value, known)?;
            }
        }
        _ => {}
    }
    Ok(())
}
