//! The artifacts of a service.

use std::cell::Cell;

use slipway_model::id::Scope;
use slipway_model::{Code, Kind, Ref};

use super::Resolver;
use super::known::Known;
use super::registry::{Source, acr_host, server_host};
use crate::ArtifactPlan;
use crate::artifact::{CUSTOM, docker_registry, fields};

/// Sources of which Harness's schema wants either a version or a pattern of versions.
const ONE_VERSION: &[&str] = &[
    "Acr",
    "AmazonMachineImage",
    "AmazonS3",
    "DockerRegistry",
    "Ecr",
    "Gcr",
    "GithubPackageRegistry",
];

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
        let written = |name: &str| {
            let text = spec.get_text(name).map(str::trim);
            text.filter(|text| !text.is_empty())
        };
        let mut plan = ArtifactPlan {
            identifier: source
                .get_text("identifier")
                .unwrap_or(identifier)
                .to_owned(),
            tag: written("tag")
                .or_else(|| written("version"))
                .map(str::to_owned),
            kind,
            spec: spec.to_json(),
            image: None,
            pinned: None,
            late: None,
        };
        if !self.has_one_version(&plan, spec) {
            return None;
        }
        let registry = self.registry(&plan.kind, spec, scope, known);
        let open = Cell::new(false);
        let source = Source {
            spec,
            scope,
            known,
            unchecked: known.unchecked_artifacts,
            nameless: plan.kind == "Ecr" && written("registryId").or(registry.as_deref()).is_none(),
            open: &open,
        };
        self.pin(&mut plan, &source);
        let told = plan.pinned.as_ref();
        let told = told.and_then(|pinned| pinned.found.metadata.get("registryId"));
        let registry = registry.or_else(|| told.cloned());
        if let Some(late) = &mut plan.late {
            late.repository = repository(&plan.kind, &written, registry.as_deref());
        }
        plan.image = image(&plan, &written, registry.as_deref());
        Some(plan)
    }

    /// Whether a source says which version it means in one way, as the schema has it.
    fn has_one_version(&mut self, plan: &ArtifactPlan, spec: Ref<'_>) -> bool {
        let [exact, pattern] = fields(&plan.kind);
        let filled = |name: &str| {
            let text = spec.get_text(name).map(str::trim);
            text.is_some_and(|text| !text.is_empty())
        };
        let (id, kind) = (&plan.identifier, plan.kind.as_str());
        if ONE_VERSION.contains(&kind) && filled(exact) && filled(pattern) {
            let message = format!(
                "the artifact `{id}` has `{exact}` and `{pattern}`, and only one of them can count: take one out"
            );
            self.fault(Code::BadValue, spec, message);
            return false;
        }
        let any = filled(exact) || filled(pattern) || filled("digest");
        // Images may be chosen by their tags alone.
        let named = ONE_VERSION.contains(&kind) && kind != "AmazonMachineImage" || kind == CUSTOM;
        if named && !any {
            let message = format!(
                "the artifact `{id}` has neither `{exact}` nor `{pattern}`: give one, `{exact}: <+input>` for one that is \
                 asked for at each run"
            );
            self.fault(Code::MissingField, spec, message);
            return false;
        }
        true
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

    /// What the image's name needs of the source's connector: the host of a Docker registry or of a Nexus, the account of
    /// an ECR registry whose source does not name it.
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
            "Nexus3Registry" => spec.get_text("repositoryUrl").is_none_or(str::is_empty),
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
        if kind == "Nexus3Registry" {
            let (_, host) = server_host(json["spec"]["nexusServerUrl"].as_str()?)?;
            return Some(host.to_owned());
        }
        let url = json["spec"]["dockerRegistryUrl"].as_str()?;
        let (address, hub) = docker_registry(url);
        let (_, rest) = address.split_once("://")?;
        let host = rest.split('/').next().filter(|host| !host.is_empty())?;
        let name = match hub {
            true => "index.docker.io",
            false => host,
        };
        Some(name.to_owned())
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

/// What `<+artifact.image>` is: the digest that the registry told, or that is written, before the tag. `None` where the
/// kind has no image.
fn image<'t>(
    plan: &ArtifactPlan,
    text: &impl Fn(&str) -> Option<&'t str>,
    registry: Option<&str>,
) -> Option<String> {
    // A script lists images by their whole names.
    if plan.kind == CUSTOM {
        return plan.tag.clone();
    }
    let repository = repository(&plan.kind, text, registry)?;
    match (
        plan.digest().or_else(|| text("digest")),
        plan.tag.as_deref(),
    ) {
        (Some(digest), _) => Some(format!("{repository}@{digest}")),
        (None, Some(tag)) => Some(format!("{repository}:{tag}")),
        (None, None) => None,
    }
}

/// The repository of an image, by the kind of registry.
fn repository<'t>(
    kind: &str,
    text: &impl Fn(&str) -> Option<&'t str>,
    registry: Option<&str>,
) -> Option<String> {
    Some(match kind {
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
            let host = acr_host(text("registry")?);
            format!("{host}/{}", text("repository")?)
        }
        "GithubPackageRegistry" => format!(
            "ghcr.io/{}/{}",
            text("org").or_else(|| text("user"))?,
            text("packageName")?
        ),
        "GoogleArtifactRegistry" => format!(
            "{}-docker.pkg.dev/{}/{}/{}",
            text("region")?,
            text("project")?.replace(':', "/"),
            text("repositoryName")?,
            text("package")?
        ),
        "Nexus3Registry" if text("repositoryUrl").is_none() => format!(
            "{}:{}/{}",
            registry?,
            text("repositoryPort")?,
            text("artifactPath")?
        ),
        "ArtifactoryRegistry" | "Nexus3Registry" => {
            format!("{}/{}", text("repositoryUrl")?, text("artifactPath")?)
        }
        _ => return None,
    })
}
