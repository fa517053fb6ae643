//! What a run is given: input sets and overlays in their order, then inputs of its own. The later wins.

use std::collections::HashMap;

use slipway_model::graft::Graft;
use slipway_model::id::{EntityId, Scope};
use slipway_model::inputs::{self, Unfilled};
use slipway_model::{Kind, Parsed, Ref, Tree, entity, yaml};

use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::form::form;
use crate::gather::SourceReader;
use crate::remote;
use crate::runs::Runs;
use crate::start::StepTypes;

/// Most input sets of a run, those of its overlays counted.
const MOST_SETS: usize = 100;

/// What input sets and inputs make of a pipeline.
#[derive(Clone, Debug)]
pub struct Given {
    /// One document with the root `pipeline` that gives all of it, as [`crate::start::StartRun`] takes it;
    /// `None` when the pipeline asks for nothing. What is still open in it stays `<+input>`.
    pub inputs: Option<Tree>,
    /// The pipeline with that filled in.
    pub pipeline: Tree,
}

/// How what is kept in Git is read.
#[derive(Clone, Copy)]
pub struct InGit<'a> {
    /// Who reads.
    pub sources: &'a dyn SourceReader,
    /// The branch that is asked for; that of each entity for `None`.
    pub branch: Option<&'a str>,
}

/// Puts input sets of a pipeline, and `own` inputs, together.
///
/// # Errors
/// Every set that does not exist or belongs to another pipeline, and everything in them that the pipeline does
/// not ask for or does not allow.
pub async fn given(
    runs: &Runs,
    git: InGit<'_>,
    scope: &Scope,
    pipeline: &Parsed,
    sets: &[EntityId],
    own: Option<&str>,
    steps: &StepTypes,
) -> Result<Given, RunError> {
    let id = &pipeline.head.identifier;
    let found = fetch(runs, git, scope, id, sets).await?;
    let find = |name: &EntityId| found.get(name).cloned();
    let mut documents = inputs::of_sets(sets, id, &find).map_err(RunError::faulty)?;
    if let Some(text) = own.filter(|text| !text.trim().is_empty()) {
        let own = yaml::parse("inputs", text).map_err(|fault| RunError::faulty(vec![*fault]))?;
        documents.push(own);
    }
    let key = Kind::Pipeline.key();
    let bodies: Vec<Ref<'_>> = documents
        .iter()
        .map(|document| document.root().get(key).ok_or_else(no_pipeline))
        .collect::<Result<_, _>>()?;
    let fill = |base: Ref<'_>| {
        let filled = inputs::fill(base, &bodies, key, Unfilled::Keep);
        filled
            .map(|tree| below(key, &tree))
            .map_err(RunError::faulty)
    };
    let whole = fill(pipeline.body())?;
    let template = form(runs, scope, pipeline, steps).await?;
    let asked = template.as_ref().and_then(|tree| tree.root().get(key));
    Ok(Given {
        inputs: asked.map(fill).transpose()?,
        pipeline: whole,
    })
}

fn no_pipeline() -> RunError {
    let message = "inputs are a document that mirrors the pipeline: its root key is `pipeline`";
    RunError::refused(ErrorName::InvalidRequest, message)
}

/// The sets that are named, and those that overlays among them name.
async fn fetch(
    runs: &Runs,
    git: InGit<'_>,
    scope: &Scope,
    pipeline: &EntityId,
    names: &[EntityId],
) -> Result<HashMap<EntityId, Parsed>, RunError> {
    let (mut found, mut looked_up) = (HashMap::new(), 0);
    let mut wanted: Vec<EntityId> = names.to_vec();
    // An overlay names input sets and never overlays, so that two rounds see all.
    for _ in 0..2 {
        let mut next = Vec::new();
        for name in wanted {
            if found.contains_key(&name) {
                continue;
            }
            looked_up += 1;
            if looked_up > MOST_SETS {
                let message = format!("more than {MOST_SETS} input sets for one run");
                return Err(RunError::refused(ErrorName::InvalidRequest, message));
            }
            let kind = Kind::InputSet.key();
            let record = runs.store.find_entity(scope, kind, Some(pipeline), &name);
            let record = record.await.doing(|| format!("read input set {name}"))?;
            let Some(kept) = record else { continue };
            let record = remote::read(runs, git.sources, &kept, git.branch).await?;
            remote::keep(runs, &kept, &record).await?;
            let file = match record.git {
                Some(_) => remote::name(&record),
                None => format!("inputSet {name}"),
            };
            let parsed = entity::parse(&file, &record.yaml).map_err(RunError::faulty)?;
            if parsed.head.kind == Kind::OverlayInputSet {
                next.extend(inputs::references(&parsed));
            }
            found.insert(name, parsed);
        }
        wanted = next;
    }
    Ok(found)
}

/// A document with `body` below one root key.
fn below(key: &str, body: &Tree) -> Tree {
    let mut graft = Graft::default();
    let root = body.root();
    let inner = graft.copy(root);
    let pair = graft.pair(root, key, root.place(), inner);
    let map = graft.map(root, vec![pair]);
    graft.finish(map)
}
