//! Feeds that are scripts (`CustomArtifact`): a delegate runs them, which nobody here waits for.

use serde_json::{Map, Value};
use slipway_engine::gather::{FeedAnswer, FeedErrand, FeedFault};
use slipway_model::id::Scope;
use slipway_plan::FoundArtifact;
use slipway_steps::artifact_feed;
use slipway_trigger::feed::{Build, Feed};

use super::MOST_BUILDS;

/// What a delegate does to ask a feed; `None` for one that is no script.
pub(crate) fn errand(feed: &Feed, scope: &Scope) -> Result<Option<FeedErrand>, FeedFault> {
    if feed.kind != "CustomArtifact" {
        return Ok(None);
    }
    let (work, timeout) = artifact_feed::work(&feed.place, scope).map_err(fault)?;
    Ok(Some(FeedErrand {
        task_type: work.task_type,
        payload: work.payload,
        selectors: work.selectors,
        timeout,
    }))
}

/// What a delegate says that such a feed has.
pub(crate) fn answer(result: &Value) -> Result<FeedAnswer, FeedFault> {
    let found = artifact_feed::versions(result).map_err(fault)?;
    if found.len() > MOST_BUILDS {
        let why = format!("its script lists more than {MOST_BUILDS} versions: let it list fewer");
        return Err(fault(why));
    }
    Ok(FeedAnswer::Builds {
        builds: found.into_iter().map(build).collect(),
        state: None,
    })
}

fn build(found: FoundArtifact) -> Build {
    let metadata = found.metadata.into_iter();
    Build {
        version: found.version,
        metadata: metadata
            .map(|(name, text)| (name, Value::from(text)))
            .collect::<Map<_, _>>(),
    }
}

fn fault(message: String) -> FeedFault {
    FeedFault {
        message,
        wait: None,
    }
}
