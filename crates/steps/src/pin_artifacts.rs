//! `PinArtifacts`: the step by which a stage looks up the artifacts that only the run can name, when it begins. The plan
//! makes it (`slipway_plan`, `late.rs`). What it is answered is recorded with its end, and the plan is read with it from
//! then on, so that a repetition after a crash deploys the same. It changes nothing.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;
use slipway_engine::runs::{answers, outputs_of_answers};
use slipway_model::id::RunId;
use slipway_model::status::{ErrorType, Failure};
use slipway_plan::{
    ArtifactAnswer, ArtifactPlace, ArtifactPlan, ArtifactQuestion, LateArtifact, PIN_ARTIFACTS,
    PinnedArtifact, WantedArtifact,
};
use slipway_store::record::{Again, NodeRecord, RunRecord};

use crate::context::{StepContext, told};
use crate::step::{DelegateWork, Progress, Step, Undo};
use crate::{custom_artifact, shell};

/// The command unit that tells what was found.
const UNIT: &str = "Fetch Artifacts";

/// The command unit that has the output of scripts.
const SCRIPTS: &str = shell::task::UNIT;

/// Most runs of a chain of retries that are looked through.
const MOST_RUNS: usize = 20;

/// The step.
pub struct PinArtifacts;

#[async_trait]
impl Step for PinArtifacts {
    fn step_type(&self) -> &'static str {
        PIN_ARTIFACTS
    }

    fn units(&self) -> &'static [&'static str] {
        &[UNIT, SCRIPTS]
    }

    fn check(&self, _spec: &Value) -> Vec<String> {
        Vec::new()
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("it changes nothing")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(UNIT);
        let stage = cx.stage();
        let sources: Vec<&ArtifactPlan> = match &stage.service {
            Some(service) => service.sources().collect(),
            None => Vec::new(),
        };
        let mut wanted = BTreeMap::new();
        for (number, source) in sources.iter().enumerate() {
            if let Some(late) = &source.late
                && let Some(asked) = question(cx, source, late)?
            {
                wanted.insert(number, asked);
            }
        }
        let mut found = known(cx, &wanted).await?;
        if let Some(work) = ask_scripts(cx, &sources, &wanted, &mut found)? {
            return Ok(Progress::Delegate(work));
        }
        let new = wanted
            .iter()
            .filter(|(number, _)| !found.contains_key(number));
        let (numbers, new): (Vec<usize>, Vec<WantedArtifact>) = new
            .map(|(number, wanted)| (*number, wanted.clone()))
            .unzip();
        if !new.is_empty() {
            let answers = cx.starts().sources.find_artifacts(&new).await;
            for ((number, asked), answer) in numbers.into_iter().zip(new).zip(answers) {
                if let Some(pinned) = judge(cx, sources[number], asked.question, answer)? {
                    found.insert(number, pinned);
                }
            }
        }
        for (number, pinned) in &found {
            let digest = pinned.found.digest.as_deref().unwrap_or("without a digest");
            let (name, version) = (&sources[*number].identifier, &pinned.found.version);
            cx.info(
                UNIT,
                format!("The artifact {name} is {version} ({digest})."),
            );
        }
        let answers = (0..sources.len()).map(|number| found.remove(&number));
        Ok(Progress::Done(outputs_of_answers(&answers.collect())))
    }
}

/// Takes what a delegate has just answered for a script, and gives it the script that comes next; `None` when all have
/// answered.
fn ask_scripts(
    cx: &mut StepContext<'_>,
    sources: &[&ArtifactPlan],
    wanted: &BTreeMap<usize, WantedArtifact>,
    found: &mut BTreeMap<usize, PinnedArtifact>,
) -> Result<Option<DelegateWork>, Failure> {
    let mut answered: BTreeMap<usize, PinnedArtifact> = cx.saved()?;
    found.extend(answered.clone());
    let mut open = wanted
        .iter()
        .filter(|(_, one)| is_script(&one.question.place));
    if let Some(result) = cx.delegate_result()
        && let Some((first, _)) = open.clone().find(|(number, _)| !found.contains_key(number))
    {
        let answer = custom_artifact::chosen(result);
        let answer = answer.map_err(|why| failed(sources[*first], &why))?;
        // After a crash it may be the answer of an earlier script, which is kept already.
        if let Some((number, asked)) = open.clone().find(|(number, _)| **number == answer.source) {
            let (source, question) = (sources[*number], asked.question.clone());
            let answer = Ok(ArtifactAnswer::Found(answer.found));
            if let Some(pinned) = judge(cx, source, question, answer)? {
                answered.insert(*number, pinned.clone());
                found.insert(*number, pinned);
                cx.note(&answered)?;
            }
        }
    }
    let Some((number, asked)) = open.find(|(number, _)| !found.contains_key(number)) else {
        cx.unit_ended(SCRIPTS, true);
        return Ok(None);
    };
    let work = custom_artifact::work(&asked.question, *number, cx);
    let work = work.map_err(|why| failed(sources[*number], &why))?;
    let name = &sources[*number].identifier;
    cx.info(
        UNIT,
        format!("A delegate runs the script of the artifact {name}."),
    );
    cx.unit_started(SCRIPTS);
    Ok(work)
}

/// What is asked about a source, with what the run has brought forth. An output of a step of the stage itself cannot be
/// known yet: such a version stays as it is written, and a pattern cannot.
fn question(
    cx: &mut StepContext<'_>,
    source: &ArtifactPlan,
    late: &LateArtifact,
) -> Result<Option<WantedArtifact>, Failure> {
    let asked = &late.wanted.question;
    let written = serde_json::to_value(asked).map_err(|why| failed(source, &why.to_string()))?;
    let question = cx.evaluate(&written).and_then(|evaluated| {
        let question = ArtifactQuestion::deserialize(&evaluated);
        question.map_err(|why| failed(source, &format!("what names it is no text ({why})")))
    });
    match question {
        Ok(question) => Ok(Some(WantedArtifact {
            question: ArtifactQuestion {
                place: question.place.settled(),
                ..question
            },
            ..late.wanted.clone()
        })),
        Err(why) if asked.is_exact() && !is_script(&asked.place) => {
            let name = &source.identifier;
            let why = format!(
                "The artifact {name} is not pinned: not everything that names it is known when the stage begins. {}",
                why.message
            );
            cx.warn(UNIT, why);
            Ok(None)
        }
        Err(why) => Err(failed(source, &why.message)),
    }
}

fn is_script(place: &ArtifactPlace) -> bool {
    matches!(place, ArtifactPlace::Script { .. })
}

/// What the same questions were answered before: in this run, or in the one that it retries.
async fn known(
    cx: &StepContext<'_>,
    wanted: &BTreeMap<usize, WantedArtifact>,
) -> Result<BTreeMap<usize, PinnedArtifact>, Failure> {
    let (mut run, mut nodes) = cx.run_so_far().await?;
    let mut found = BTreeMap::new();
    for _ in 0..MOST_RUNS {
        let earlier: Vec<PinnedArtifact> = nodes
            .iter()
            .filter_map(answers)
            .flatten()
            .flatten()
            .collect();
        for (number, asked) in wanted {
            let mut same = earlier.iter().filter(|one| one.question == asked.question);
            if let Some(pinned) = same.next()
                && !found.contains_key(number)
            {
                found.insert(*number, pinned.clone());
            }
        }
        let Some(before) = retried(&run).filter(|_| found.len() < wanted.len()) else {
            break;
        };
        (run, nodes) = so_far(cx, before).await?;
    }
    Ok(found)
}

fn retried(run: &RunRecord) -> Option<&RunId> {
    let origin = run.origin.as_ref()?;
    (origin.how == Again::Retry).then_some(&origin.run)
}

async fn so_far(
    cx: &StepContext<'_>,
    run: &RunId,
) -> Result<(RunRecord, Vec<NodeRecord>), Failure> {
    let doing = format!("read the run {run} that is retried");
    let record = cx.store().get_run(run).await;
    let record = record.map_err(|error| told(&doing, &error))?;
    let nodes = cx.store().list_nodes(run, None).await;
    let nodes = nodes.map_err(|error| told(&doing, &error))?;
    Ok((record, nodes))
}

/// What an answer means, as planning judges it.
fn judge(
    cx: &mut StepContext<'_>,
    source: &ArtifactPlan,
    question: ArtifactQuestion,
    answer: Result<ArtifactAnswer, String>,
) -> Result<Option<PinnedArtifact>, Failure> {
    match answer {
        Ok(ArtifactAnswer::Found(found)) => match found.strange() {
            None => Ok(Some(PinnedArtifact { question, found })),
            Some(why) => Err(failed(source, &why)),
        },
        Ok(ArtifactAnswer::Unasked(why)) if question.is_exact() => {
            let name = &source.identifier;
            cx.warn(UNIT, format!("The artifact {name} is not pinned: {why}."));
            Ok(None)
        }
        Ok(ArtifactAnswer::Unasked(why)) | Err(why) => Err(failed(source, &why)),
    }
}

fn failed(source: &ArtifactPlan, why: &str) -> Failure {
    let name = &source.identifier;
    Failure {
        error: ErrorType::Unknown,
        message: format!("The artifact `{name}` cannot be had: {why}"),
        left_behind: None,
    }
}
