//! What the deployments of a stage touched, for their rollback: a stage may deploy one service twice, or several.

use std::time::Duration;

use serde::Serialize;
use slipway_model::status::Failure;

use crate::context::StepContext;
use crate::step::Progress;

/// A resource that deployments changed.
pub(crate) struct Touched<S> {
    /// What those who changed it noted, oldest first and never empty: what the first of them found is what was there
    /// before the stage.
    pub(crate) states: Vec<S>,
    name: String,
    done: Vec<String>,
    /// The names of those that come after it.
    rest: Vec<String>,
}

impl<S> Touched<S> {
    /// The resource that was touched last of those that are not `done`; `None` when there is none. `resource` names what
    /// a deployment changed, if it did.
    pub(crate) fn next(
        states: Vec<S>,
        resource: impl Fn(&S) -> Option<String>,
        done: &[String],
    ) -> Option<Self> {
        let mut touched: Vec<(String, Vec<S>)> = Vec::new();
        for state in states {
            let Some(name) = resource(&state).filter(|name| !done.contains(name)) else {
                continue;
            };
            let known = touched.iter().position(|(known, _)| *known == name);
            let mut all = known.map_or_else(|| (name, Vec::new()), |at| touched.remove(at));
            all.1.push(state);
            touched.push(all);
        }
        let (name, states) = touched.pop()?;
        Some(Self {
            states,
            name,
            done: done.to_vec(),
            rest: touched.into_iter().rev().map(|(name, _)| name).collect(),
        })
    }

    /// Says which resources come after this one, for who does not come to them.
    pub(crate) fn not_come_to(&self) -> Option<String> {
        (!self.rest.is_empty()).then(|| format!("not rolled back: {}", self.rest.join(", ")))
    }

    /// What the rollback step comes to when this resource has come to `result`: the next one follows, with the state that
    /// `begin` makes of the names of those that are done; a failure says which were not come to.
    pub(crate) async fn then<T: Serialize>(
        self,
        cx: &mut StepContext<'_>,
        result: Result<Progress, Failure>,
        begin: impl FnOnce(Vec<String>) -> T,
    ) -> Result<Progress, Failure> {
        if self.rest.is_empty() {
            return result;
        }
        match result {
            Ok(Progress::Done(_)) => {
                let mut done = self.done;
                done.push(self.name);
                cx.save(&begin(done)).await?;
                Ok(Progress::Again(Duration::ZERO))
            }
            Ok(progress) => Ok(progress),
            Err(failure) => {
                let rest = self.not_come_to();
                let left = failure.left_behind.into_iter().chain(rest);
                Err(Failure {
                    left_behind: Some(left.collect::<Vec<_>>().join("; ")),
                    ..failure
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Touched;

    #[test]
    fn the_last_resource_comes_first_with_all_that_changed_it() {
        let states = || vec![("a", 1), ("b", 2), ("", 3), ("a", 4), ("c", 5), ("c", 6)];
        let next = |done: &[&str]| {
            let done: Vec<String> = done.iter().map(|name| (*name).to_owned()).collect();
            let named = |state: &(&str, i32)| Some(state.0.to_owned()).filter(|n| !n.is_empty());
            let touched = Touched::next(states(), named, &done)?;
            Some((touched.name, touched.states, touched.rest.join(" ")))
        };
        let expected = |name: &str, states: &[(&'static str, i32)], rest: &str| {
            Some((name.to_owned(), states.to_vec(), rest.to_owned()))
        };
        assert_eq!(next(&[]), expected("c", &[("c", 5), ("c", 6)], "a b"));
        assert_eq!(next(&["c"]), expected("a", &[("a", 1), ("a", 4)], "b"));
        assert_eq!(next(&["c", "a"]), expected("b", &[("b", 2)], ""));
        assert_eq!(next(&["c", "a", "b"]), None);
    }
}
