//! The artifacts of a service.

use slipway_model::id::Scope;
use slipway_model::{Code, Kind, Ref};

use super::Resolver;
use super::known::Known;
use crate::ArtifactPlan;

impl Resolver<'_> {
    pub(super) fn artifact(
        &mut self,
        artifacts: Option<Ref<'_>>,
        scope: &Scope,
        known: &Known<'_>,
    ) -> Option<ArtifactPlan> {
        let primary = artifacts?.get("primary")?;
        let source = if primary.get("type").is_some() {
            primary
        } else {
            self.source(primary, known)?
        };
        self.artifact_source(source, "primary", scope, known)
    }

    /// `artifacts.sidecars`, in order.
    pub(super) fn sidecars(
        &mut self,
        artifacts: Option<Ref<'_>>,
        scope: &Scope,
        known: &Known<'_>,
    ) -> Vec<ArtifactPlan> {
        let list = artifacts.and_then(|artifacts| artifacts.get("sidecars"));
        let items = list.into_iter().flat_map(Ref::items);
        let sidecars = items.filter_map(|item| item.get("sidecar"));
        sidecars
            .filter_map(|source| self.artifact_source(source, "sidecar", scope, known))
            .collect()
    }

    fn artifact_source(
        &mut self,
        source: Ref<'_>,
        identifier: &str,
        scope: &Scope,
        known: &Known<'_>,
    ) -> Option<ArtifactPlan> {
        let kind = source.get_text("type")?.to_owned();
        let spec = source.get("spec")?;
        let text = |name: &str| {
            spec.get_text(name)
                .map(str::trim)
                .filter(|text| !text.is_empty())
        };
        let tag = text("tag").or_else(|| text("version"));
        let pattern = text("tagRegex").or_else(|| text("versionRegex"));
        if let (None, Some(_)) = (tag, pattern) {
            self.unsupported(
                spec,
                "choosing an artifact's tag by a pattern",
                "; give `tag`",
            );
        }
        let registry = self.registry(&kind, spec, scope, known);
        let image = image(&kind, &text, tag, registry.as_deref());
        Some(ArtifactPlan {
            identifier: source
                .get_text("identifier")
                .unwrap_or(identifier)
                .to_owned(),
            kind,
            spec: spec.to_json(),
            image,
            tag: tag.map(str::to_owned),
        })
    }

    /// The source that `primaryArtifactRef` names.
    fn source<'r>(&mut self, primary: Ref<'r>, known: &Known<'_>) -> Option<Ref<'r>> {
        let sources = primary.get("sources")?;
        let all: Vec<_> = sources.items().collect();
        let reference = primary.get("primaryArtifactRef");
        let Some(reference) =
            reference.filter(|value| value.text().is_some_and(|text| !text.is_empty()))
        else {
            if let [only] = all.as_slice() {
                return Some(*only);
            }
            let message =
                "`primaryArtifactRef` must say which of the sources is the primary artifact";
            self.fault(Code::MissingField, primary, message);
            return None;
        };
        let name = self.text(reference, known)?;
        let found = all
            .into_iter()
            .find(|source| source.get_text("identifier") == Some(name.as_str()));
        if found.is_none() {
            let message = format!("`{name}` is none of the artifact sources");
            self.fault(Code::NotFound, reference, message);
        }
        found
    }

    /// What the image's name needs of the source's connector: the host of a Docker registry, the account of an
    /// ECR registry whose source does not name it.
    fn registry(
        &mut self,
        kind: &str,
        spec: Ref<'_>,
        scope: &Scope,
        known: &Known<'_>,
    ) -> Option<String> {
        let asked = match kind {
            "DockerRegistry" => true,
            "Ecr" => spec.get_text("registryId").is_none_or(str::is_empty),
            _ => false,
        };
        let reference = spec
            .get("connectorRef")
            .filter(|value| asked && value.text() != Some(""))?;
        let connector = self.entity(Kind::Connector, reference, scope, None, known)?;
        let json = connector.entity.to_json();
        if kind == "Ecr" {
            let access = &json["spec"]["credential"]["crossAccountAccess"];
            return account_of(access["crossAccountRoleArn"].as_str()?);
        }
        let url = json["spec"]["dockerRegistryUrl"].as_str()?;
        let host = url
            .trim_start_matches("https://")
            .trim_start_matches("http://");
        let host = host.split('/').next().filter(|host| !host.is_empty())?;
        // Docker Hub answers under several names and is called by one.
        let hub = [
            "registry.hub.docker.com",
            "hub.docker.com",
            "docker.io",
            "registry-1.docker.io",
        ];
        Some(
            if hub.contains(&host) {
                "index.docker.io"
            } else {
                host
            }
            .to_owned(),
        )
    }
}

/// The account of an ARN, `arn:aws:iam::123456789012:role/deploy` for instance.
fn account_of(arn: &str) -> Option<String> {
    let account = arn.split(':').nth(4)?;
    let well = account.len() == 12 && account.bytes().all(|digit| digit.is_ascii_digit());
    well.then(|| account.to_owned())
}

/// A repository of a Docker registry; one of Docker Hub without an owner belongs to `library`.
fn docker_repository(registry: Option<&str>, path: &str) -> String {
    match registry {
        Some("index.docker.io") if !path.contains('/') => format!("index.docker.io/library/{path}"),
        Some(registry) => format!("{registry}/{path}"),
        None => path.to_owned(),
    }
}

/// What `<+artifact.image>` is, by the kind of registry. `None` where the kind has no image.
fn image<'t>(
    kind: &str,
    text: &impl Fn(&str) -> Option<&'t str>,
    tag: Option<&str>,
    registry: Option<&str>,
) -> Option<String> {
    let repository = match kind {
        "DockerRegistry" => docker_repository(registry, text("imagePath")?),
        "Ecr" => {
            // Without both it is the account of the connector's credentials, which only AWS knows.
            let account = text("registryId")
                .or(registry)
                .unwrap_or("<+artifact.registryId>");
            let (region, path) = (text("region")?, text("imagePath")?);
            let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
            format!("{account}.dkr.ecr.{region}.amazonaws.com{suffix}/{path}")
        }
        "Gcr" => format!("{}/{}", text("registryHostname")?, text("imagePath")?),
        "Acr" => {
            let registry = text("registry")?;
            let host = if registry.contains('.') {
                ""
            } else {
                ".azurecr.io"
            };
            format!("{registry}{host}/{}", text("repository")?)
        }
        "GithubPackageRegistry" => {
            format!(
                "ghcr.io/{}/{}",
                text("org").or_else(|| text("user"))?,
                text("packageName")?
            )
        }
        "GoogleArtifactRegistry" => format!(
            "{}-docker.pkg.dev/{}/{}/{}",
            text("region")?,
            text("project")?,
            text("repositoryName")?,
            text("package")?
        ),
        "ArtifactoryRegistry" | "Nexus3Registry" => {
            format!("{}/{}", text("repositoryUrl")?, text("artifactPath")?)
        }
        _ => return None,
    };
    match (text("digest"), tag) {
        (Some(digest), _) => Some(format!("{repository}@{digest}")),
        (None, Some(tag)) => Some(format!("{repository}:{tag}")),
        (None, None) => None,
    }
}
