//! Stages.

use slipway_model::id::{EntityId, StageId};
use slipway_model::{Code, Ref};

use super::known::Known;
use super::{Resolver, texts};
use crate::StagePlan;

/// Stage types that this version runs.
const RUNNABLE: &[&str] = &["Custom", "Deployment"];

/// Most bytes of manifests in one plan.
const MOST_MANIFEST_BYTES: usize = 16 * 1024 * 1024;

impl Resolver<'_> {
    /// The groups of stages: stages of one `parallel` run side by side, everything else alone.
    pub(super) fn groups(
        &mut self,
        pipeline: Ref<'_>,
        known: &mut Known<'_>,
        selectors: &[String],
    ) -> Vec<Vec<StagePlan>> {
        let mut groups: Vec<Vec<StagePlan>> = Vec::new();
        for item in pipeline.get("stages").into_iter().flat_map(Ref::items) {
            let mut stages = Vec::new();
            match item.get("parallel") {
                Some(list) => self.parallel_stages(list, &mut stages),
                None => stages.extend(item.get("stage")),
            }
            let planned: Vec<_> = stages
                .into_iter()
                .filter_map(|stage| self.stage(stage, known, &groups, selectors))
                .collect();
            if !planned.is_empty() {
                groups.push(planned);
            }
        }
        if groups.is_empty() && !self.faults.has_errors() {
            self.fault(Code::MissingField, pipeline, "the pipeline has no stages");
        }
        groups
    }

    fn parallel_stages<'r>(&mut self, list: Ref<'r>, out: &mut Vec<Ref<'r>>) {
        for item in list.items() {
            if let Some(inner) = item.get("parallel") {
                self.unsupported(inner, "`parallel` inside of `parallel` stages", "");
            }
            out.extend(item.get("stage"));
        }
    }

    fn stage(
        &mut self,
        stage: Ref<'_>,
        known: &mut Known<'_>,
        before: &[Vec<StagePlan>],
        selectors: &[String],
    ) -> Option<StagePlan> {
        let identifier = stage.get_text("identifier")?;
        let stage_type = self.stage_type(stage, identifier)?;
        if let Some(strategy) = stage.get("strategy") {
            self.unsupported(
                strategy,
                &format!("the looping `strategy` of stage `{identifier}`"),
                "",
            );
        }
        let variables = self.variables(stage.get("variables"), "stage.variables");
        known.enter_stage(variables);
        let spec = stage.get("spec")?;
        let mut plan = StagePlan {
            id: StageId::new(identifier),
            identifier: EntityId::new(identifier),
            name: stage.get_text("name").unwrap_or(identifier).to_owned(),
            stage_type: stage_type.to_owned(),
            deployment_type: None,
            variables: known.stage_variables.clone(),
            when: self.when(stage, "pipelineStatus"),
            failure_strategies: self.failure_strategies(stage),
            delegate_selectors: texts(stage.get("delegateSelectors")),
            timeout: self.timeout(stage, known).unwrap_or(known.pipeline_timeout),
            service: None,
            environment: None,
            infrastructure: None,
            steps: Vec::new(),
            rollback_steps: Vec::new(),
        };
        if plan.delegate_selectors.is_empty() {
            plan.delegate_selectors = selectors.to_vec();
        }
        if stage_type == "Deployment" {
            self.deployment(spec, &mut plan, known, before);
        }
        self.execution(spec, &mut plan, known);
        Some(plan)
    }

    /// `type` of a stage that this version runs.
    fn stage_type<'r>(&mut self, stage: Ref<'r>, identifier: &str) -> Option<&'r str> {
        let type_field = stage.get("type")?;
        let stage_type = type_field.text()?;
        if !RUNNABLE.contains(&stage_type) {
            let what = format!("the type `{stage_type}` of stage `{identifier}`");
            self.unsupported(
                type_field,
                &what,
                &format!("; it runs {}", RUNNABLE.join(" and ")),
            );
            return None;
        }
        Some(stage_type)
    }

    /// What a deployment stage deploys, and where.
    fn deployment(
        &mut self,
        spec: Ref<'_>,
        plan: &mut StagePlan,
        known: &mut Known<'_>,
        before: &[Vec<StagePlan>],
    ) {
        for field in [
            "services",
            "environments",
            "environmentGroup",
            "serviceConfig",
            "infrastructure",
            "customDeploymentRef",
        ] {
            if let Some(value) = spec.get(field) {
                let advice = match field {
                    "services" => "; use `service`",
                    "environments" | "environmentGroup" | "infrastructure" => "; use `environment`",
                    "serviceConfig" => "; use `service` with a reference",
                    _ => "",
                };
                self.unsupported(value, &format!("`{field}`"), advice);
            }
        }
        if spec.get_text("gitOpsEnabled") == Some("true")
            && let Some(value) = spec.get("gitOpsEnabled")
        {
            self.unsupported(value, "GitOps", "");
        }
        plan.deployment_type = spec.get_text("deploymentType").map(str::to_owned);
        if plan.deployment_type.is_none() {
            self.fault(
                Code::MissingField,
                spec,
                "`deploymentType` is missing from a deployment stage",
            );
        }
        plan.service = self.service(spec, plan, known, before);
        self.bound(spec, plan);
        known.service.clone_from(&plan.service);
        self.environment(spec, plan, known, before);
    }

    /// Refuses a plan that repeats large manifests for many stages before it fills the memory.
    fn bound(&mut self, spec: Ref<'_>, plan: &mut StagePlan) {
        let manifests = plan.service.iter().flat_map(|service| &service.manifests);
        self.bytes += manifests
            .flat_map(|manifest| &manifest.files)
            .map(|(_, text)| text.len())
            .sum::<usize>();
        if self.bytes > MOST_MANIFEST_BYTES {
            let message = format!(
                "the manifests of all stages together have more than {MOST_MANIFEST_BYTES} bytes"
            );
            self.fault(Code::Limit, spec, message);
            plan.service = None;
        }
    }

    /// The earlier stage that `useFromStage` names.
    pub(super) fn used_stage<'p>(
        &mut self,
        from: Ref<'_>,
        plan: &StagePlan,
        before: &'p [Vec<StagePlan>],
    ) -> Option<&'p StagePlan> {
        let field = from.get("stage")?;
        let name = field.text()?;
        if name == plan.identifier.as_str() {
            let message = format!("stage `{name}` uses itself: {name} → {name}");
            self.fault(Code::Loop, field, message);
            return None;
        }
        let found = before
            .iter()
            .flatten()
            .find(|stage| stage.identifier.as_str() == name);
        if found.is_none() {
            let message = format!("there is no stage `{name}` before this one that can be used");
            self.fault(Code::NotFound, field, message);
        }
        found
    }
}
