//! Ways through a pipeline.

use super::{Child, Kind, Node, Pipeline, Stage, Step};

impl Pipeline {
    /// All stages in order.
    pub fn stages(&self) -> impl Iterator<Item = &Stage> {
        self.groups.iter().flatten()
    }

    /// Node id and step of every step, loops as one.
    pub fn steps(&self) -> Vec<(String, &Step)> {
        let mut found = Vec::new();
        for stage in self.stages() {
            collect(&stage.list(), &stage.steps, &mut found);
            collect(&stage.rollback_list(), &stage.rollback, &mut found);
        }
        found
    }

    /// Whether some step is at a barrier.
    pub fn barriers(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (_, step) in self.steps() {
            if let Kind::Barrier(name) = &step.kind
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        }
        names
    }
}

impl Stage {
    /// The pipeline that it runs instead of steps, if it does.
    pub fn child(&self) -> Option<Child> {
        match self.steps.as_slice() {
            [Node::Step(step)] => match step.kind {
                Kind::Chained(child) => Some(child),
                _ => None,
            },
            _ => None,
        }
    }

    /// The id of its steps as a list.
    pub fn list(&self) -> String {
        match self.child() {
            Some(_) => format!("stages.{}.spec", self.id),
            None => format!("stages.{}.spec.execution.steps", self.id),
        }
    }

    /// The id of its rollback steps as a list.
    pub fn rollback_list(&self) -> String {
        format!("stages.{}.spec.execution.rollbackSteps", self.id)
    }

    /// Whether a node is in it.
    pub fn has(&self, id: &str) -> bool {
        let rest = id.strip_prefix("stages.");
        let rest = rest.and_then(|rest| rest.strip_prefix(self.id.as_str()));
        rest.is_some_and(|rest| rest.starts_with('.'))
    }
}

fn collect<'c>(list: &str, nodes: &'c [Node], found: &mut Vec<(String, &'c Step)>) {
    for node in nodes {
        match node {
            Node::Step(step) => found.push((format!("{list}.{}", step.id), step)),
            Node::Group(group) => {
                let id = format!("{list}.{}", group.id);
                collect(&format!("{id}.steps"), &group.nodes, found);
                collect(&format!("{id}.rollbackSteps"), &group.rollback, found);
            }
            Node::Parallel(branches) => collect(list, branches, found),
        }
    }
}
