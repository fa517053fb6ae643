//! Stages.

use slipway_model::id::{EntityId, StageId};
use slipway_model::names::MOST_STAGES;
use slipway_model::{Code, Ref};

use super::execution::run_loop;
use super::known::Known;
use super::looping::{Looping, Turn};
use super::several::{self, Several};
use super::spread::{Spread, Target};
use super::stage_inputs::Question;
use super::{Resolver, described, is_empty, tags};
use crate::chosen::flatten;
use crate::{CHAINED, Iteration, StagePlan, late};

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
        let linked = self.is_draft && pipeline.get("stages").is_none_or(|list| !is_empty(list));
        if groups.is_empty() && !self.has_faults() && !linked {
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
            loops_later: false,
        };
        let found = match self.looping(stage, &format!("stage `{identifier}`"), known) {
            Looping::None => return Some(self.turn(&around, None, 0, known).in_waves()),
            Looping::Later => return Some(self.stage_that_loops_later(&around, known)),
            Looping::Known(found) if found.turns.is_empty() => {
                return Some(vec![vec![self.without_turns(&around, known)]]);
            }
            Looping::Known(found) => found,
        };
        let concurrency = found
            .turns
            .first()
            .map_or(0, |turn| turn.iteration.concurrency);
        let mut turns = Vec::new();
        let mut before = 0;
        for turn in &found.turns {
            if self.faults.is_full() || self.stages > MOST_STAGES {
                break;
            }
            let planned = self.turn(&around, Some(turn), before, known);
            before += planned.stages.len();
            turns.push(planned);
        }
        Some(several::in_waves(turns, concurrency, found.skips_queued))
    }

    /// A stage that loops over what the run brings forth: one that stands for its turns until they are known; of several
    /// services and infrastructures one for each.
    fn stage_that_loops_later<'r>(
        &mut self,
        around: &Around<'r, '_>,
        known: &mut Known<'r>,
    ) -> Vec<Vec<StagePlan>> {
        let around = &Around {
            loops_later: true,
            ..*around
        };
        let mut planned = self.turn(around, None, 0, known);
        for stage in &mut planned.stages {
            stage.each = run_loop(around.stage);
            // Of several services and infrastructures each has its turns, called as it is.
            if let Some(each) = stage.each.as_mut().filter(|_| planned.many) {
                each.name.clone_from(&stage.name);
            }
        }
        planned.in_waves()
    }

    /// A stage whose loop has no turns: one of which nothing else is known, that is skipped when its loop is to begin.
    fn without_turns(&mut self, around: &Around<'_, '_>, known: &Known<'_>) -> StagePlan {
        let stage = around.stage;
        let own = stage.get_text("identifier").unwrap_or_default();
        let name = stage.get_text("name").unwrap_or(own).to_owned();
        self.count_stage(stage);
        StagePlan {
            each: run_loop(stage),
            ..bare((own.to_owned(), name), around.stage_type, known)
        }
    }

    fn count_stage(&mut self, stage: Ref<'_>) {
        self.stages += 1;
        if self.stages == MOST_STAGES + 1 {
            let message = format!("with its loops the pipeline has more than {MOST_STAGES} stages");
            self.fault(Code::Limit, stage, message);
        }
    }

    /// The stages of a turn, `before` of which were planned in earlier turns.
    fn turn<'r>(
        &mut self,
        around: &Around<'r, '_>,
        turn: Option<&Turn>,
        before: usize,
        known: &mut Known<'r>,
    ) -> Several {
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
            return Several::one(self.one(around, &target, (called, iteration), known));
        }
        let total = spread.targets.len();
        let name = turn.and_then(Turn::label).unwrap_or(name);
        let mut planned = Vec::new();
        for (index, target) in spread.targets.iter().enumerate() {
            if self.faults.is_full() || self.stages > MOST_STAGES {
                break;
            }
            let mut iteration = self.iteration(own, (before + index, total), target, known);
            if let Some(turn) = turn {
                iteration = several::within(&turn.iteration, iteration);
            }
            known.enter_stage(Some(&iteration).filter(|_| !around.loops_later));
            known.stage_variables =
                self.variables(around.stage.get("variables"), "stage.variables");
            let called = called(Some(&iteration), format!("{name}{}", iteration.postfix()));
            planned.push(self.one(around, target, (called, Some(iteration)), known));
        }
        Several {
            stages: planned,
            many: true,
            width: spread.width,
            runs_all: spread.runs_all,
        }
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
        let question = Question::of_stage(&identifier, &mut known.stage_variables);
        self.count_stage(stage);
        let mut plan = StagePlan {
            description: described(stage),
            tags: tags(stage),
            variables: known.stage_variables.clone(),
            when: self.when(stage, "pipelineStatus"),
            failure_strategies: self.failure_strategies(stage),
            delegate_selectors: self.selectors(stage, known),
            timeout: self.timeout(stage, known).unwrap_or(known.pipeline_timeout),
            iteration,
            start_within: self.start_within(stage, known),
            ..bare((identifier, name), around.stage_type, known)
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
        plan.when = self.guarded(plan.when.take(), around.spec);
        let own = stage.get_text("identifier").unwrap_or_default();
        late::ask_first(&mut plan);
        question.ask_first(&mut plan, own, &self.later);
        plan
    }

    /// How long somebody may take to start a stage whose `runMode` is Manual, in seconds.
    fn start_within(&mut self, stage: Ref<'_>, known: &Known<'_>) -> Option<u64> {
        let mode = stage.get("runMode")?;
        let kind = mode.get("type").and_then(|kind| self.text(kind, known))?;
        if kind != "Manual" {
            return None;
        }
        let limit = self.timeout(mode, known).unwrap_or(known.pipeline_timeout);
        Some(limit.as_secs())
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

/// A stage that does nothing yet.
fn bare((identifier, name): (String, String), stage_type: &str, known: &Known<'_>) -> StagePlan {
    StagePlan {
        id: StageId::new(identifier.as_str()),
        identifier: EntityId::new(identifier),
        name,
        stage_type: stage_type.to_owned(),
        deployment_type: None,
        description: None,
        tags: indexmap::IndexMap::new(),
        variables: Vec::new(),
        when: None,
        failure_strategies: Vec::new(),
        delegate_selectors: Vec::new(),
        timeout: known.pipeline_timeout,
        service: None,
        environment: None,
        infrastructure: None,
        steps: Vec::new(),
        rollback_steps: Vec::new(),
        iteration: None,
        each: None,
        start_within: None,
    }
}

/// A stage as it is written, and what is around it.
struct Around<'r, 's> {
    stage: Ref<'r>,
    spec: Ref<'r>,
    stage_type: &'r str,
    before: &'s [Vec<StagePlan>],
    selectors: &'s [String],
    /// Whether it loops over what the run brings forth: which turn it is in is not known yet.
    loops_later: bool,
}
