//! Stages.

use slipway_model::id::{EntityId, StageId};
use slipway_model::names::MOST_STAGES;
use slipway_model::{Code, Ref};

use super::execution::run_loop;
use super::known::Known;
use super::looping::{Looping, Turn};
use super::spread::{Spread, Target};
use super::{Resolver, stage_inputs, tags};
use crate::chosen::flatten;
use crate::{CHAINED, Iteration, StagePlan};

/// Stage types that this version runs.
const RUNNABLE: &[&str] = &["Approval", "Custom", "Deployment", "Pipeline"];

impl Resolver<'_> {
    /// The groups of stages: stages of one `parallel` run side by side, everything else alone.
    pub(super) fn groups<'r>(
        &mut self,
        pipeline: Ref<'r>,
        known: &mut Known<'r>,
        selectors: &[String],
    ) -> Vec<Vec<StagePlan>> {
        let mut groups: Vec<Vec<StagePlan>> = Vec::new();
        for item in pipeline.get("stages").into_iter().flat_map(Ref::items) {
            let mut stages = Vec::new();
            match item.get("parallel") {
                Some(list) => flatten(list, &mut stages),
                None => stages.extend(item.get("stage")),
            }
            // What waits for its turn runs beside what waits in its neighbours.
            let mut waves: Vec<Vec<StagePlan>> = Vec::new();
            for stage in stages {
                let planned = self.stage(stage, known, &groups, selectors);
                for (index, wave) in planned.unwrap_or_default().into_iter().enumerate() {
                    match waves.get_mut(index) {
                        Some(known) => known.extend(wave),
                        None => waves.push(wave),
                    }
                }
            }
            groups.extend(waves.into_iter().filter(|wave| !wave.is_empty()));
        }
        if groups.is_empty() && !self.faults.has_errors() {
            self.fault(Code::MissingField, pipeline, "the pipeline has no stages");
        }
        groups
    }

    /// The plans of a stage, in waves that run one after the other: more than one where it loops, or deploys
    /// several services or to several infrastructures.
    fn stage<'r>(
        &mut self,
        stage: Ref<'r>,
        known: &mut Known<'r>,
        before: &[Vec<StagePlan>],
        selectors: &[String],
    ) -> Option<Vec<Vec<StagePlan>>> {
        let identifier = stage.get_text("identifier")?;
        let stage_type = self.stage_type(stage, identifier)?;
        let spec = stage.get("spec")?;
        self.check_stage(stage);
        match stage_type {
            "Deployment" => self.check_deployment(spec),
            CHAINED => self.check_chained(spec),
            _ => self.check_custom(spec),
        }
        known.enter_stage(None);
        known.stage_variables = self.variables(stage.get("variables"), "stage.variables");
        let around = Around {
            stage,
            spec,
            stage_type,
            before,
            selectors,
        };
        let found = match self.looping(stage, &format!("stage `{identifier}`"), known) {
            Looping::None => return Some(self.turn(&around, None, known)),
            Looping::Later => return Some(self.stage_that_loops_later(&around, known)),
            Looping::Known(found) => found,
        };
        let concurrency = found
            .turns
            .first()
            .map_or(0, |turn| turn.iteration.concurrency);
        let mut planned = Vec::new();
        for turn in &found.turns {
            if self.faults.is_full() || self.stages > MOST_STAGES {
                break;
            }
            planned.extend(self.turn(&around, Some(turn), known).into_iter().flatten());
        }
        let wave = match usize::try_from(concurrency) {
            Ok(wave) if wave > 0 && found.skips_queued => wave,
            _ => usize::MAX,
        };
        Some(waves(planned, wave))
    }

    /// A stage that loops over what the run brings forth: one that stands for its turns until they are known.
    fn stage_that_loops_later<'r>(
        &mut self,
        around: &Around<'r, '_>,
        known: &mut Known<'r>,
    ) -> Vec<Vec<StagePlan>> {
        let mut planned = self.turn(around, None, known);
        for stage in planned.iter_mut().flatten() {
            stage.each = run_loop(around.stage);
        }
        planned
    }

    fn turn<'r>(
        &mut self,
        around: &Around<'r, '_>,
        turn: Option<&Turn>,
        known: &mut Known<'r>,
    ) -> Vec<Vec<StagePlan>> {
        let own = around.stage.get_text("identifier").unwrap_or_default();
        let name = around.stage.get_text("name").unwrap_or(own);
        known.enter_stage(turn.map(|turn| &turn.iteration));
        known.stage_variables = self.variables(around.stage.get("variables"), "stage.variables");
        // A stage that deploys nothing may still name where its steps work.
        let somewhere = around.spec.get("environment").is_some();
        let spread = match around.stage_type {
            "Deployment" => self.spread(around.spec, known),
            _ if somewhere => self.spread(around.spec, known),
            _ => Spread::alone(),
        };
        let called = |iteration: Option<&Iteration>, name: String| match iteration {
            Some(iteration) => (format!("{own}{}", iteration.postfix()), name),
            None => (own.to_owned(), name),
        };
        if !spread.many {
            let iteration = turn.map(|turn| turn.iteration.clone());
            let name = turn.map_or_else(|| name.to_owned(), |turn| turn.name(name));
            let target = spread.targets.into_iter().next().unwrap_or_default();
            let called = called(iteration.as_ref(), name);
            let plan = self.one(around, &target, (called, iteration), known);
            return vec![vec![plan]];
        }
        if let Some(strategy) = around.stage.get("strategy") {
            let what = format!(
                "a looping `strategy` on stage `{own}`, which deploys several services or to several infrastructures,"
            );
            self.unsupported(strategy, &what, "; put them into the loop");
            return Vec::new();
        }
        let total = spread.targets.len();
        let mut planned = Vec::new();
        for (index, target) in spread.targets.iter().enumerate() {
            if self.faults.is_full() || self.stages > MOST_STAGES {
                break;
            }
            let iteration = self.iteration(own, (index, total), target, known);
            known.enter_stage(Some(&iteration));
            known.stage_variables =
                self.variables(around.stage.get("variables"), "stage.variables");
            let called = called(Some(&iteration), format!("{name}{}", iteration.postfix()));
            planned.push(self.one(around, target, (called, Some(iteration)), known));
        }
        if spread.runs_all {
            for plan in &mut planned {
                if let Some(iteration) = &mut plan.iteration {
                    iteration.concurrency = u32::try_from(spread.width).unwrap_or(u32::MAX);
                }
            }
            return vec![planned];
        }
        waves(planned, spread.width)
    }

    /// The turn that a target is: its names are those of a matrix over services and infrastructures.
    fn iteration(
        &mut self,
        of: &str,
        (index, total): (usize, usize),
        target: &Target<'_>,
        known: &Known<'_>,
    ) -> Iteration {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let mut matrix = indexmap::IndexMap::new();
        let service = target.service.and_then(|service| service.get("serviceRef"));
        if let Some(text) = service.and_then(|service| self.text(service, known)) {
            matrix.insert("serviceRef".to_owned(), text.into());
        }
        if let Some(site) = &target.site {
            let places = [
                ("environmentRef", site.environment.as_ref()),
                (
                    "identifier",
                    site.infrastructure
                        .as_ref()
                        .map(|choice| &choice.identifier),
                ),
            ];
            for (name, value) in places {
                matrix.extend(value.map(|value| (name.to_owned(), value.as_str().into())));
            }
        }
        Iteration {
            of: EntityId::new(of),
            index: number(index),
            total: number(total),
            concurrency: 0,
            matrix,
            item: None,
            partition: None,
        }
    }

    fn one<'r>(
        &mut self,
        around: &Around<'r, '_>,
        target: &Target<'r>,
        ((identifier, name), iteration): ((String, String), Option<Iteration>),
        known: &mut Known<'r>,
    ) -> StagePlan {
        let stage = around.stage;
        let asking = stage_inputs::asking(&identifier, &mut known.stage_variables);
        self.stages += 1;
        if self.stages == MOST_STAGES + 1 {
            let message = format!("with its loops the pipeline has more than {MOST_STAGES} stages");
            self.fault(Code::Limit, stage, message);
        }
        let mut plan = StagePlan {
            id: StageId::new(identifier.as_str()),
            identifier: EntityId::new(identifier),
            name,
            stage_type: around.stage_type.to_owned(),
            deployment_type: None,
            tags: tags(stage),
            variables: known.stage_variables.clone(),
            when: self.when(stage, "pipelineStatus"),
            failure_strategies: self.failure_strategies(stage),
            delegate_selectors: self.selectors(stage, known),
            timeout: self.timeout(stage, known).unwrap_or(known.pipeline_timeout),
            service: None,
            environment: None,
            infrastructure: None,
            steps: Vec::new(),
            rollback_steps: Vec::new(),
            iteration,
            each: None,
        };
        if plan.delegate_selectors.is_empty() {
            plan.delegate_selectors = around.selectors.to_vec();
        }
        if around.stage_type == "Deployment" {
            self.deployment(around.spec, target, &mut plan, known, around.before);
        } else if let Some(site) = &target.site {
            self.site(site, &mut plan, known, around.before);
        }
        match around.stage_type {
            CHAINED => self.chained(around.spec, &mut plan, known),
            _ => self.execution(around.spec, &mut plan, known),
        }
        stage_inputs::ask_first(&mut plan, asking);
        plan
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
                &format!("; it runs {}", RUNNABLE.join(", ")),
            );
            return None;
        }
        Some(stage_type)
    }
}

/// A stage as it is written, and what is around it.
struct Around<'r, 's> {
    stage: Ref<'r>,
    spec: Ref<'r>,
    stage_type: &'r str,
    before: &'s [Vec<StagePlan>],
    selectors: &'s [String],
}

/// Stages in waves of at most so many.
fn waves(planned: Vec<StagePlan>, width: usize) -> Vec<Vec<StagePlan>> {
    let mut out = Vec::new();
    let mut planned = planned.into_iter().peekable();
    while planned.peek().is_some() {
        out.push(planned.by_ref().take(width).collect());
    }
    out
}
