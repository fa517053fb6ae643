//! What a log key names, and its lines.

use axum::body::Bytes;
use futures::stream::{self, Stream};
use serde_json::json;
use slipway_model::id::{NodeId, RunId};
use slipway_store::record::{LogLine, RunRecord};
use slipway_store::{Page as StorePage, StoreError};

use super::key::{LogKey, RunOf};
use crate::Deps;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::execution::node::log_places;
use crate::execution::plan;

/// Longest line with its envelope: clients stop reading at 64 KiB.
const LONGEST: usize = 65_000;

/// Runs that are looked through for one by its number.
const MOST_RUNS: usize = 20_000;

/// One command unit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Section {
    pub(super) run: RunId,
    pub(super) node: NodeId,
    pub(super) unit: String,
}

/// The command units that a key names, in the order in which their steps run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sections(pub(super) Vec<Section>);

impl Sections {
    /// Looks a key up. Steps that have not begun have no units yet, and so no lines.
    pub(super) async fn find(deps: &Deps, caller: &Caller, key: &str) -> ApiResult<Self> {
        let missing = || ApiError::not_found(format!("There is no log under [{key}]"));
        let key = LogKey::parse(key).ok_or_else(missing)?;
        let run = run(deps, &key)
            .await?
            .filter(|run| run.scope.account == caller.account);
        let run = run.ok_or_else(missing)?;
        let Some(plan) = plan(deps, &run).await? else {
            return Ok(Self(Vec::new()));
        };
        let nodes = deps.store.show_nodes(&run.id).await?;
        let mut sections = Vec::new();
        for place in log_places(&plan) {
            if !key.covers(&place.path, place.node.as_str()) {
                continue;
            }
            // What was taken over from another run was logged there.
            let logged = match place.undoes {
                true => run.undoer(&place.stage),
                false => run.doer(&place.stage),
            };
            let section = |unit: &str| Section {
                run: logged.clone(),
                node: place.node.clone(),
                unit: unit.to_owned(),
            };
            match &key.unit {
                // A unit may be asked for just before its step has noted that it began.
                Some(unit) => sections.push(section(unit)),
                None => {
                    let newest = nodes
                        .iter()
                        .filter(|node| node.id == place.node)
                        .max_by_key(|node| node.attempt);
                    let units = newest.into_iter().flat_map(|node| &node.units);
                    sections.extend(units.map(|unit| section(&unit.name)));
                }
            }
        }
        Ok(Self(sections))
    }

    /// Chunks of lines, each a JSON text with its line end.
    pub(super) fn lines(
        self,
        deps: &Deps,
    ) -> impl Stream<Item = Result<Vec<String>, StoreError>> + use<> {
        let start = (
            deps.clone(),
            self.0.into_iter(),
            None::<(Section, u64)>,
            0_usize,
        );
        stream::try_unfold(start, |(deps, mut rest, open, mut position)| async move {
            let Some((section, after)) = open.or_else(|| rest.next().map(|first| (first, 0)))
            else {
                return Ok(None);
            };
            let Section { run, node, unit } = &section;
            let read = deps.store.read_log(run, node, unit, after).await?;
            let lines = read
                .lines
                .iter()
                .map(|line| render(line, &mut position) + "\n")
                .collect();
            let more = !read.lines.is_empty() && read.next > after;
            let open = more.then_some((section, read.next));
            Ok(Some((lines, (deps, rest, open, position))))
        })
    }
}

async fn run(deps: &Deps, key: &LogKey) -> ApiResult<Option<RunRecord>> {
    match &key.run {
        RunOf::Id(id) => Ok(deps.store.find_run(id).await?),
        RunOf::Sequence {
            scope,
            pipeline,
            sequence,
        } => {
            let (mut after, mut seen) = (None, 0);
            loop {
                let part = StorePage { limit: 100, after };
                let listing = deps.store.list_runs(scope, Some(pipeline), part).await?;
                seen += listing.items.len();
                if let Some(run) = listing.items.into_iter().find(|r| r.sequence == *sequence) {
                    return Ok(Some(run));
                }
                after = listing.next;
                if after.is_none() || seen >= MOST_RUNS {
                    return Ok(None);
                }
            }
        }
    }
}

/// A line as the log service writes it, without its line end.
pub(super) fn render(line: &LogLine, position: &mut usize) -> String {
    let mut out = line.out.as_str();
    loop {
        let text = json!({
            "level": line.level, "pos": *position, "out": out, "time": line.time, "args": null,
        })
        .to_string();
        if text.len() <= LONGEST {
            *position += 1;
            return text;
        }
        // Control characters grow sixfold in JSON, so how much fits is found by trying.
        let end = (0..=out.len() / 2)
            .rev()
            .find(|at| out.is_char_boundary(*at))
            .unwrap_or(0);
        out = &out[..end];
    }
}

/// Bytes of an SSE frame of one line.
pub(super) fn frame(line: &str) -> Bytes {
    Bytes::from(format!("data: {line}\n\n"))
}
