//! What steps saved, as this and other steps of the stage read it.

use serde::de::DeserializeOwned;
use serde_json::Value;
use slipway_engine::undone::{group_rolled_back, is_below};
use slipway_model::status::{ErrorType, Failure};
use slipway_store::record::NodeRecord;

use super::StepContext;

impl<'a> StepContext<'a> {
    /// What was saved last, or the default when nothing was.
    pub fn saved<T: DeserializeOwned + Default>(&self) -> Result<T, Failure> {
        if self.state.is_null() {
            return Ok(T::default());
        }
        read_state(&self.state, "this step")
    }

    /// What the newest attempt of a step of type `step_type` in this stage saved, and its node; `None`
    /// when no such step has saved anything. With several the last one counts.
    pub fn saved_by<T: DeserializeOwned>(
        &self,
        step_type: &str,
    ) -> Result<Option<(&'a NodeRecord, T)>, Failure> {
        let earlier = self.input.earlier;
        let Some(node) = earlier
            .iter()
            .rev()
            .find(|node| node.node_type == step_type && has_saved(node))
        else {
            return Ok(None);
        };
        state_of(node).map(|state| Some((node, state)))
    }

    /// What each step of type `step_type` saved, in each attempt and turn of loops, oldest first: of this stage, or where a
    /// step group rolls itself back and has such steps, of that group.
    pub fn saved_by_all<T: DeserializeOwned>(&self, step_type: &str) -> Result<Vec<T>, Failure> {
        let nodes = self.input.earlier.iter();
        let saved: Vec<_> = nodes
            .filter(|node| node.node_type == step_type && has_saved(node))
            .collect();
        let group = group_rolled_back(self.node());
        let inside = |node: &&NodeRecord| group.is_some_and(|group| is_below(&node.id, group));
        let has_own = saved.iter().copied().any(|node| inside(&node));
        let undone = saved.into_iter().filter(|node| !has_own || inside(node));
        undone.map(state_of).collect()
    }

    /// What the first earlier attempt of this step saved, if there was one.
    pub fn saved_by_first_attempt<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        let earlier = self.input.earlier.iter().filter(|node| {
            node.id == *self.node() && node.attempt < self.attempt() && has_saved(node)
        });
        let first = earlier.min_by_key(|node| node.attempt);
        first.map(state_of).transpose()
    }
}

fn has_saved(node: &NodeRecord) -> bool {
    node.progress
        .get("state")
        .is_some_and(|state| !state.is_null())
}

/// What the step of a node saved.
fn state_of<T: DeserializeOwned>(node: &NodeRecord) -> Result<T, Failure> {
    read_state(&node.progress["state"], node.id.as_str())
}

fn read_state<T: DeserializeOwned>(state: &Value, whose: &str) -> Result<T, Failure> {
    T::deserialize(state).map_err(|error| Failure {
        error: ErrorType::Unknown,
        message: format!(
            "The progress that {whose} saved cannot be read ({error}): it was written by another \
             version of Slipway. Finish the run with that version or start it again."
        ),
        left_behind: None,
    })
}
