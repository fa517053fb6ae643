//! Deployment stages: one plan for each service on each infrastructure.

use slipway_model::{Code, Ref};

use super::known::Known;
use super::spread::Target;
use super::{Resolver, is_empty};
use crate::{StagePlan, template};

/// Most bytes of manifests in one plan.
const MOST_MANIFEST_BYTES: usize = 16 * 1024 * 1024;

impl Resolver<'_> {
    /// Notes what a deployment stage says that this version does not do.
    pub(super) fn check_deployment(&mut self, spec: Ref<'_>) {
        for (field, advice) in [
            ("serviceConfig", "; use `service` with a reference"),
            ("infrastructure", "; use `environment`"),
        ] {
            if let Some(value) = spec.get(field) {
                self.unsupported(value, &format!("`{field}`"), advice);
            }
        }
        self.check_spec(spec);
        self.check_traffic(spec);
        if spec.get_text("gitOpsEnabled") == Some("true")
            && let Some(value) = spec.get("gitOpsEnabled")
        {
            self.unsupported(value, "GitOps", "");
        }
        let missing = [
            ("`deploymentType`", &["deploymentType", "serviceConfig"][..]),
            ("`service`", &["service", "services", "serviceConfig"][..]),
            (
                "`environment`",
                &[
                    "environment",
                    "environments",
                    "environmentGroup",
                    "infrastructure",
                ][..],
            ),
        ];
        for (name, fields) in missing {
            if fields.iter().all(|field| spec.get(field).is_none()) {
                let message = format!("{name} is missing from a deployment stage");
                self.fault(Code::MissingField, spec, message);
            }
        }
    }

    /// What a deployment stage deploys to one target.
    pub(super) fn deployment<'r>(
        &mut self,
        spec: Ref<'r>,
        target: &Target<'r>,
        plan: &mut StagePlan,
        known: &mut Known<'r>,
        before: &[Vec<StagePlan>],
    ) {
        plan.deployment_type = deployment_type(spec).map(str::to_owned);
        if let Some(link) = spec.get("customDeploymentRef") {
            let source = super::source(self.request, self.asked);
            if let Err(faults) = template::deployment(&source, link, self.request.scope) {
                self.faults.extend(faults);
            }
        }
        let unchecked = spec.at(&["services", "disableArtifactValidation"]);
        known.unchecked_artifacts = unchecked.and_then(Ref::text) == Some("true");
        if let Some(service) = target.service {
            plan.service = self.service(service, plan, known, before);
        }
        known.service.clone_from(&plan.service);
        if let Some(site) = &target.site {
            self.site(site, plan, known, before);
        }
        self.bound(spec, plan);
    }

    /// Refuses a plan that repeats large manifests for many stages before it fills the memory.
    fn bound(&mut self, spec: Ref<'_>, plan: &mut StagePlan) {
        let Some(service) = &plan.service else {
            return;
        };
        let manifests = service
            .manifests
            .iter()
            .flat_map(|manifest| &manifest.files);
        let files = service.config_files.iter().flat_map(|file| &file.files);
        let bytes = manifests.chain(files).map(|(_, text)| text.len()).sum();
        if !self.has_room(spec, bytes) {
            plan.service = None;
        }
    }

    /// Counts the bytes of manifests; `false`, with a fault, when they are too many.
    pub(super) fn has_room(&mut self, at: Ref<'_>, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= MOST_MANIFEST_BYTES {
            return true;
        }
        let message = format!(
            "the manifests of all stages together have more than {MOST_MANIFEST_BYTES} bytes"
        );
        self.fault(Code::Limit, at, message);
        false
    }

    /// The earlier stage that `useFromStage` names. One that was taken apart is not one stage any more.
    pub(super) fn used_stage<'p>(
        &mut self,
        from: Ref<'_>,
        plan: &StagePlan,
        before: &'p [Vec<StagePlan>],
    ) -> Option<&'p StagePlan> {
        if let Some(value) = from.get("overrides").filter(|value| !is_empty(*value)) {
            self.unsupported(
                value,
                "`overrides` of `useFromStage`",
                "; use overrides of the environment",
            );
        }
        let field = from.get("stage")?;
        let name = field.text()?;
        let of = |stage: &StagePlan| stage.iteration.as_ref().map(|turn| turn.of.clone());
        let own = of(plan).unwrap_or_else(|| plan.identifier.clone());
        if name == own.as_str() {
            let message = format!("stage `{name}` uses itself: {name} → {name}");
            self.fault(Code::Loop, field, message);
            return None;
        }
        let all = || before.iter().flatten();
        if let Some(found) = all().find(|stage| stage.identifier.as_str() == name) {
            return Some(found);
        }
        let turns: Vec<_> = all()
            .filter(|stage| of(stage).is_some_and(|of| of.as_str() == name))
            .collect();
        let message = match turns.as_slice() {
            [first, rest @ ..]
                if rest.iter().all(|stage| {
                    stage.service == first.service && stage.infrastructure == first.infrastructure
                }) =>
            {
                return Some(*first);
            }
            [] => format!("there is no stage `{name}` before this one that can be used"),
            turns => format!(
                "stage `{name}` runs {} times with different services or infrastructures; name one of them, `{}` for instance",
                turns.len(),
                turns[0].identifier
            ),
        };
        self.fault(Code::NotFound, field, message);
        None
    }
}

/// What a stage deploys; stages of the first version say so in their service.
fn deployment_type(spec: Ref<'_>) -> Option<&str> {
    let own = spec.get("deploymentType");
    let first = || spec.at(&["serviceConfig", "serviceDefinition", "type"]);
    own.or_else(first).and_then(Ref::text)
}
