//! Artifacts in their registries: what is asked about a source, and what its plan is with the answer.
//!
//! A version that cannot be told before the run begins (an output of a step) is asked for when its stage begins
//! ([`crate::late`]).

use std::cell::Cell;

use serde_json::Value;
use slipway_model::id::Scope;
use slipway_model::{Code, Diagnostic, Kind, Ref};

use super::Resolver;
use super::known::Known;
use super::remote::evaluated;
use crate::artifact::{
    ArtifactAnswer, ArtifactPlace, ArtifactQuestion, ArtifactVersion, CUSTOM, GITHUB, LISTED,
    PinnedArtifact, WantedArtifact, docker_registry, fields,
};
use crate::{ArtifactPlan, ConnectorPlan, LateArtifact};

/// The name of the expression that stands for the last version (docs platform/triggers/trigger-on-a-new-artifact).
const LAST: &str = "<+lastPublished.tag>";

/// Something without which nothing can be asked, now or in the run.
pub(super) struct Open;

/// Why sources of a type are not asked about, with what can be done.
pub(super) fn unasked(kind: &str, spec: Ref<'_>) -> Option<String> {
    let format = spec
        .get_text("repositoryFormat")
        .or(spec.get_text("packageType"));
    let other = |images: &str| {
        let format = format.filter(|format| *format != images)?;
        Some(format!("packages of format {format} are not looked up"))
    };
    match kind {
        "GoogleArtifactRegistry" => {
            let format = spec.get_text("repositoryType");
            let format = format.filter(|format| *format != "docker")?;
            Some(format!("repositories of type {format} are not looked up"))
        }
        "ArtifactoryRegistry" | "Nexus3Registry" => other("docker"),
        "GithubPackageRegistry" => other("container"),
        "Nexus2Registry" => other("maven").filter(|_| !matches!(format, Some("npm" | "nuget"))),
        _ => None,
    }
}

/// Which connectors a type of source goes with; `None` for types that no registry is asked about.
pub(super) fn connectors(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "DockerRegistry" => "DockerRegistry",
        "Ecr" | "AmazonS3" | "AmazonMachineImage" => "Aws",
        "GithubPackageRegistry" => "Github",
        "ArtifactoryRegistry" => "Artifactory",
        "Nexus2Registry" | "Nexus3Registry" => "Nexus",
        "Gcr" | "GoogleArtifactRegistry" | "GceImage" => "Gcp",
        "AzureArtifacts" => "AzureArtifacts",
        "Bamboo" => "Bamboo",
        "Acr" => "Azure",
        _ => return None,
    })
}

/// A source of artifacts, with what its place in a plan knows.
pub(super) struct Source<'r, 'k> {
    pub(super) spec: Ref<'r>,
    pub(super) scope: &'k Scope,
    pub(super) known: &'k Known<'k>,
    /// Whether a fixed version may be missing (`disableArtifactValidation`).
    pub(super) unchecked: bool,
    /// Whether its image has no name before the registry told its account.
    pub(super) nameless: bool,
    /// Set when a text holds what only the run will know.
    pub(super) open: &'k Cell<bool>,
}

impl Source<'_, '_> {
    /// The text of a field with its expressions evaluated; `None` where it is empty. What only the run will know stays as
    /// it is written.
    fn text(&self, name: &str) -> Option<String> {
        let written = self.spec.get_text(name).map(str::trim);
        let written = written.filter(|text| !text.is_empty())?;
        if !written.contains("<+") {
            return Some(written.to_owned());
        }
        let Ok(text) = self.known.evaluate(written) else {
            self.open.set(true);
            return Some(written.to_owned());
        };
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The text of a field without which nothing can be asked.
    fn must(&self, name: &str) -> Result<String, Open> {
        self.text(name).ok_or(Open)
    }

    fn version(&self, kind: &str) -> Result<Option<ArtifactVersion>, Open> {
        let [exact, pattern] = fields(kind);
        let written = self.spec.get_text(exact).map(str::trim);
        if let Some(rest) = written.and_then(|written| written.strip_prefix(LAST)) {
            let pattern = rest
                .strip_prefix(".regex(")
                .and_then(|rest| rest.strip_suffix(')'));
            return match (rest, pattern) {
                ("", _) => Ok(Some(ArtifactVersion::Last)),
                (_, Some(pattern)) => Ok(Some(ArtifactVersion::Pattern(starred(pattern)))),
                _ => Err(Open),
            };
        }
        if let Some(text) = self.text(exact) {
            return Ok(Some(ArtifactVersion::Exact(text)));
        }
        Ok(self.text(pattern).map(ArtifactVersion::Pattern))
    }

    /// Filters of EC2, made of `tags` and `filters`: Harness writes `ami-name` for `name`.
    fn filters(&self) -> Result<Vec<(String, String)>, Open> {
        let mut all = Vec::new();
        for (field, prefix) in [("tags", "tag:"), ("filters", "")] {
            for item in self.spec.get(field).into_iter().flat_map(Ref::items) {
                let inner = Source {
                    spec: item,
                    ..*self
                };
                let (name, value) = (inner.must("name")?, inner.must("value")?);
                let bare = match prefix {
                    "" => name.strip_prefix("ami-").unwrap_or(&name),
                    _ => &name,
                };
                all.push((format!("{prefix}{bare}"), value));
            }
        }
        Ok(all)
    }

    /// The script that lists what there is, in place of a registry: `spec` without its version.
    fn script(&self) -> Option<Value> {
        let path = ["scripts", "fetchAllArtifacts", "spec", "source", "spec"];
        let inner = path.iter().try_fold(self.spec, |at, name| at.get(name))?;
        inner
            .get_text("script")
            .filter(|text| !text.trim().is_empty())?;
        let mut spec = self.spec.to_json();
        let object = spec.as_object_mut()?;
        for name in fields(CUSTOM) {
            object.remove(name);
        }
        Some(spec)
    }

    /// What says where its versions are listed.
    fn listed(&self, kind: &str) -> Result<ArtifactPlace, Open> {
        let mut spec = self.spec.to_json();
        let fields_of = spec.as_object_mut().ok_or(Open)?;
        let [exact, pattern] = fields(kind);
        for name in [exact, pattern, "connectorRef", "digest", "metadata"] {
            fields_of.remove(name);
        }
        if let Some(Value::Object(inner)) = fields_of.remove("spec") {
            fields_of.extend(inner);
        }
        if fields_of.get("scope").is_some_and(|scope| scope == "org") {
            fields_of.remove("project");
        }
        if evaluated(&mut spec, self.known).is_err() {
            self.open.set(true);
        }
        Ok(ArtifactPlace::Listed {
            kind: kind.to_owned(),
            spec,
        })
    }

    /// Where it is kept, as its type says it.
    pub(super) fn place(&self, kind: &str, connector: &Value) -> Result<ArtifactPlace, Open> {
        let address = |field: &str| connector[field].as_str().map(str::trim).ok_or(Open);
        let image = |registry: String, repository: String| ArtifactPlace::Image {
            registry,
            repository,
        };
        Ok(match kind {
            "DockerRegistry" => {
                let (registry, _) = docker_registry(address("dockerRegistryUrl")?);
                image(registry, self.must("imagePath")?)
            }
            "GithubPackageRegistry" => {
                let owner = match self.text("org") {
                    Some(owner) => owner,
                    None => self.must("user")?,
                };
                let path = format!("{owner}/{}", self.must("packageName")?);
                image(GITHUB.to_owned(), path)
            }
            "ArtifactoryRegistry" => {
                let server = address("artifactoryServerUrl")?.trim_end_matches('/');
                let registry = format!("{server}/api/docker/{}", self.must("repository")?);
                image(registry, self.must("artifactPath")?)
            }
            "Nexus3Registry" => {
                let server = address("nexusServerUrl")?.trim_end_matches('/');
                // The port of a repository is a registry of its own (Nexus documentation, *Docker repository connectors*).
                if let Some(port) = self.text("repositoryPort") {
                    let (scheme, host) = server_host(server).ok_or(Open)?;
                    let registry = format!("{scheme}://{host}:{port}");
                    return Ok(image(registry, self.must("artifactPath")?));
                }
                let registry = format!("{server}/repository/{}", self.must("repository")?);
                image(registry, self.must("artifactPath")?)
            }
            "Gcr" => image(
                https(&self.must("registryHostname")?),
                self.must("imagePath")?,
            ),
            "GoogleArtifactRegistry" => {
                let registry = https(&format!("{}-docker.pkg.dev", self.must("region")?));
                // In names of images a domain is a folder of its own (docs: Artifact Registry, *Repository and image names*).
                let project = self.must("project")?.replace(':', "/");
                let repository = self.must("repositoryName")?;
                let path = format!("{project}/{repository}/{}", self.must("package")?);
                image(registry, path)
            }
            "Acr" => {
                let registry = acr_host(&self.must("registry")?);
                image(https(&registry), self.must("repository")?)
            }
            "Ecr" => ArtifactPlace::Ecr {
                region: self.must("region")?,
                registry: self.text("registryId"),
                repository: self.must("imagePath")?,
            },
            "AmazonS3" => ArtifactPlace::S3 {
                region: self.text("region"),
                bucket: self.must("bucketName")?,
            },
            "AmazonMachineImage" => ArtifactPlace::Ami {
                region: self.must("region")?,
                filters: self.filters()?,
            },
            kind if LISTED.contains(&kind) => self.listed(kind)?,
            _ => return Err(Open),
        })
    }
}

/// The address of a host; whether a cloud's key may be sent there is for those to say who ask it.
fn https(host: &str) -> String {
    let bare = host.trim_start_matches("https://").trim_end_matches('/');
    format!("https://{bare}")
}

/// The host of an Azure container registry, which may be written by its name alone.
pub(super) fn acr_host(registry: &str) -> String {
    match registry.contains(['.', ':']) {
        true => registry.to_owned(),
        false => format!("{registry}.azurecr.io"),
    }
}

/// Scheme and host of the address of a server, without its port.
pub(super) fn server_host(address: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = address.split_once("://")?;
    let authority = rest.split('/').next().unwrap_or_default();
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => host,
        _ => authority,
    };
    (!host.is_empty()).then_some((scheme, host))
}

/// Harness's own example writes `*-dev`, which is no regular expression.
fn starred(pattern: &str) -> String {
    match pattern.starts_with('*') {
        true => format!(".{pattern}"),
        false => pattern.to_owned(),
    }
}

/// What the script of a source is asked when the stage begins; `None` where the source has none.
fn scripted(source: &Source<'_, '_>) -> Result<Option<WantedArtifact>, Open> {
    let (Some(spec), Some(version)) = (source.script(), source.version(CUSTOM)?) else {
        return Ok(None);
    };
    // Scripts run in runs.
    source.open.set(true);
    Ok(Some(WantedArtifact {
        connector: ConnectorPlan {
            reference: String::new(),
            kind: CUSTOM.to_owned(),
            spec: Value::Null,
        },
        scope: source.scope.clone(),
        question: ArtifactQuestion {
            connector: String::new(),
            place: ArtifactPlace::Script { spec },
            version: Some(version),
            digest: None,
        },
    }))
}

impl Resolver<'_> {
    /// Asks the registry of a source, and puts the answer into its plan.
    pub(super) fn pin(&mut self, plan: &mut ArtifactPlan, source: &Source<'_, '_>) {
        let wanted = match self.wanted_artifact(&plan.kind, source) {
            Ok(Some(wanted)) => wanted,
            Ok(None) => return self.unpinned(plan, source, None),
            Err(Open) => {
                let open = "not everything that names it is known before the run begins";
                return self.unpinned(plan, source, Some(open));
            }
        };
        let exact = wanted.question.is_exact();
        if exact && source.unchecked && !source.nameless {
            let why = "`disableArtifactValidation` of the stage's service says that nobody asks";
            return self.tell(plan, source, why);
        }
        if source.open.get() {
            plan.late = Some(Box::new(LateArtifact {
                wanted,
                repository: None,
            }));
            return;
        }
        self.asked.borrow_mut().push_artifact(&wanted);
        let why = match self.request.entities.artifact(&wanted) {
            Some(Ok(ArtifactAnswer::Found(found))) => match found.strange() {
                None => {
                    let question = wanted.question;
                    return plan.pin(PinnedArtifact { question, found });
                }
                Some(why) => why,
            },
            Some(Ok(ArtifactAnswer::Unasked(why))) if exact && source.nameless => format!(
                "{why}; and without `registryId` nothing says which account's registry it is in"
            ),
            Some(Ok(ArtifactAnswer::Unasked(why))) if exact => {
                return self.tell(plan, source, &why);
            }
            Some(Ok(ArtifactAnswer::Unasked(why)) | Err(why)) => why,
            None if exact => return,
            None => "nothing here asks registries".to_owned(),
        };
        let message = format!("the artifact `{}` cannot be had: {why}", plan.identifier);
        self.fault(Code::NotFound, source.spec, message);
    }

    /// What is to be asked; `None` when nothing is.
    fn wanted_artifact(
        &mut self,
        kind: &str,
        source: &Source<'_, '_>,
    ) -> Result<Option<WantedArtifact>, Open> {
        let spec = source.spec;
        if kind == CUSTOM {
            return scripted(source);
        }
        let Some(fits) = connectors(kind).filter(|_| unasked(kind, spec).is_none()) else {
            return Ok(None);
        };
        let version = source.version(kind)?;
        let digest = source.text("digest");
        if version.is_none() && digest.is_none() {
            return Ok(None);
        }
        // Who is asked must be known: a connector is a part of the plan.
        let asked_by = source.spec.get_text("connectorRef").unwrap_or_default();
        if source.known.evaluate(asked_by).is_err() {
            return Err(Open);
        }
        let Some(value) = spec.get("connectorRef") else {
            return Ok(None);
        };
        let connector = self.artifact_connector(value, fits, source)?;
        let place = source.place(kind, &connector.spec)?;
        let place = if source.open.get() {
            place
        } else {
            place.settled()
        };
        Ok(Some(WantedArtifact {
            scope: source.scope.clone(),
            question: ArtifactQuestion {
                connector: connector.reference.clone(),
                place,
                version,
                digest,
            },
            connector,
        }))
    }

    fn artifact_connector(
        &mut self,
        value: Ref<'_>,
        fits: &str,
        source: &Source<'_, '_>,
    ) -> Result<ConnectorPlan, Open> {
        let found = self.entity(Kind::Connector, value, source.scope, None, source.known);
        let found = found.ok_or(Open)?;
        let kind = found.entity.head.entity_type.clone().unwrap_or_default();
        if kind != fits {
            let message = format!(
                "the connector `{}` is of type {kind}; this artifact source needs one of type {fits}",
                found.entity.head.identifier
            );
            self.fault(Code::BadValue, value, message);
            return Err(Open);
        }
        let mut spec = self.connector_spec(&found);
        evaluated(&mut spec, source.known).map_err(|_| Open)?;
        Ok(ConnectorPlan {
            reference: found.written,
            kind,
            spec,
        })
    }

    /// A source that is not asked about: a pattern of versions cannot be left like that.
    fn unpinned(&mut self, plan: &ArtifactPlan, source: &Source<'_, '_>, open: Option<&str>) {
        let open = open.filter(|_| connectors(&plan.kind).is_some());
        let why = unasked(&plan.kind, source.spec).or(open.map(str::to_owned));
        let [exact, pattern] = fields(&plan.kind);
        let filled = |name: &str| {
            source
                .spec
                .get_text(name)
                .is_some_and(|text| !text.is_empty())
        };
        if !filled(exact) && filled(pattern) {
            let advice = match &why {
                None if plan.kind == CUSTOM => format!(
                    "; give `{exact}`, or below `scripts.fetchAllArtifacts` a script that lists what there is"
                ),
                Some(why) => format!("; give `{exact}` ({why})"),
                None => format!("; give `{exact}`, or what this can be told from before the run"),
            };
            self.unsupported(
                source.spec,
                &format!("choosing a version by `{pattern}` here"),
                &advice,
            );
        } else if let Some(why) = why {
            self.tell(plan, source, &why);
        }
    }

    /// Tells that an artifact stays what its name means when it is pulled.
    fn tell(&mut self, plan: &ArtifactPlan, source: &Source<'_, '_>, why: &str) {
        self.faults.warn_with(|| {
            let message = format!("the artifact `{}` is not pinned: {why}", plan.identifier);
            Diagnostic::at(Code::NotSupported, source.spec, message)
        });
    }
}

#[cfg(test)]
#[path = "tests_registry.rs"]
mod tests;
