//! Input sets and overlays.

use super::merge::Unfilled;
use crate::diagnostic::{Code, Diagnostic};
use crate::entity::{Kind, Parsed};
use crate::graft::Graft;
use crate::id::EntityId;
use crate::tree::{Ref, Tree};

/// Fields of an input set's `pipeline` that say which pipeline it is for, and ask for nothing.
const NAMES: &[&str] = &[
    "identifier",
    "name",
    "description",
    "tags",
    "orgIdentifier",
    "projectIdentifier",
    "accountIdentifier",
];

/// What an input set gives to `pipeline`: a document with the root `pipeline`, for [`super::merge`].
///
/// # Errors
/// When it is no input set, or one of another pipeline.
pub fn of_set(set: &Parsed, pipeline: &EntityId) -> Result<Tree, Vec<Diagnostic>> {
    let body = set.body();
    let given = body
        .get("pipeline")
        .filter(|_| set.head.kind == Kind::InputSet);
    let Some(given) = given else {
        let message = format!("`{}` is no input set", set.head.identifier);
        return Err(vec![Diagnostic::at(Code::BadInput, body, message)]);
    };
    if let Some(own) = given.get("identifier")
        && own.text() != Some(pipeline.as_str())
    {
        let message = format!(
            "the input set `{}` is for the pipeline `{}`, not for `{pipeline}`",
            set.head.identifier,
            own.text().unwrap_or_default()
        );
        return Err(vec![Diagnostic::at(Code::BadInput, own, message)]);
    }
    let mut graft = Graft::default();
    let mut pairs = Vec::new();
    for (key, place, value) in given.fields().filter(|(key, ..)| !NAMES.contains(key)) {
        let part = graft.copy(value);
        pairs.push(graft.pair(given, key, place, part));
    }
    let inner = graft.map(given, pairs);
    let pair = graft.pair(given, "pipeline", given.place(), inner);
    let root = graft.map(given, vec![pair]);
    Ok(graft.finish(root))
}

/// The input sets that an overlay puts on top of one another, in order: the later one wins.
pub fn references(overlay: &Parsed) -> Vec<EntityId> {
    let list = overlay.body().get("inputSetReferences");
    let names = list.into_iter().flat_map(Ref::items).filter_map(Ref::text);
    names.map(EntityId::new).collect()
}

/// The documents of input sets and overlays for `pipeline`, in order, overlays taken apart; `find` gives an
/// input set by its identifier. The later document wins when they are merged.
///
/// # Errors
/// Every set that does not exist, is for another pipeline, or is an overlay inside of an overlay.
pub fn of_sets(
    names: &[EntityId],
    pipeline: &EntityId,
    find: &dyn Fn(&EntityId) -> Option<Parsed>,
) -> Result<Vec<Tree>, Vec<Diagnostic>> {
    let (mut trees, mut faults) = (Vec::new(), Vec::new());
    for name in names {
        let Some(set) = find(name) else {
            faults.push(absent(name));
            continue;
        };
        if set.head.kind != Kind::OverlayInputSet {
            match of_set(&set, pipeline) {
                Ok(tree) => trees.push(tree),
                Err(found) => faults.extend(found),
            }
            continue;
        }
        for inner in references(&set) {
            let found = find(&inner).ok_or_else(|| vec![absent(&inner)]);
            match found.and_then(|set| of_set(&set, pipeline)) {
                Ok(tree) => trees.push(tree),
                Err(found) => faults.extend(found),
            }
        }
    }
    if faults.is_empty() {
        Ok(trees)
    } else {
        Err(faults)
    }
}

fn absent(name: &EntityId) -> Diagnostic {
    let message = format!("the input set `{name}` does not exist");
    Diagnostic::error(
        Code::NotFound,
        "inputs",
        crate::tree::Place::default(),
        message,
    )
}

/// Whether an input set still fits a pipeline: everything that it gives is asked for, and allowed. Inputs that
/// it leaves open are no fault.
///
/// # Errors
/// What does not fit.
pub fn check_set(set: &Parsed, pipeline: &Parsed) -> Result<(), Vec<Diagnostic>> {
    let given = of_set(set, &pipeline.head.identifier)?;
    let key = Kind::Pipeline.key();
    let body: Vec<Ref<'_>> = given.root().get(key).into_iter().collect();
    super::fill(pipeline.body(), &body, key, Unfilled::Keep).map(drop)
}
