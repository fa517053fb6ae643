//! Where a value stands in its document, as a text for messages.

use crate::tree::{Data, Ref};

impl Ref<'_> {
    /// Path from the root, `pipeline.stages[0].stage` for instance. May cost a walk over the tree: it is
    /// for messages.
    pub fn path(self) -> String {
        let path = self.path_by_order().unwrap_or_else(|| self.path_by_walk());
        path.strip_prefix('.').unwrap_or(&path).to_owned()
    }

    /// The path by the order in which a text was read: whatever is inside of a value comes after it and before
    /// the value that follows. `None` for trees that were made otherwise.
    fn path_by_order(self) -> Option<String> {
        let mut path = String::new();
        let mut at = self.tree.root;
        while at != self.id {
            match &self.tree.nodes.get(at as usize)?.data {
                Data::Scalar(..) => return None,
                Data::List(items) => {
                    let index = items.partition_point(|id| *id <= self.id).checked_sub(1)?;
                    path.push_str(&format!("[{index}]"));
                    at = *items.get(index)?;
                }
                Data::Map(entries) => {
                    let after = entries.partition_point(|entry| entry.value <= self.id);
                    let entry = entries.get(after.checked_sub(1)?)?;
                    path.push_str(&join(&entry.key));
                    at = entry.value;
                }
            }
        }
        Some(path)
    }

    fn path_by_walk(self) -> String {
        let mut parents: Vec<Option<(u32, usize)>> = vec![None; self.tree.nodes.len()];
        for (id, node) in (0u32..).zip(&self.tree.nodes) {
            let mut note = |child: u32, index: usize| {
                if let Some(parent) = parents.get_mut(child as usize) {
                    *parent = Some((id, index));
                }
            };
            match &node.data {
                Data::Scalar(..) => {}
                Data::List(items) => items.iter().enumerate().for_each(|(i, c)| note(*c, i)),
                Data::Map(entries) => entries
                    .iter()
                    .enumerate()
                    .for_each(|(i, e)| note(e.value, i)),
            }
        }
        let mut steps = Vec::new();
        let mut at = self.id;
        while at != self.tree.root
            && let Some(Some((parent, index))) = parents.get(at as usize)
        {
            steps.push(match &self.tree.nodes[*parent as usize].data {
                Data::Map(entries) => join(&entries[*index].key),
                _ => format!("[{index}]"),
            });
            at = *parent;
        }
        steps.into_iter().rev().collect()
    }
}

/// One key of a path.
pub(crate) fn join(key: &str) -> String {
    let simple = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$');
    if !key.is_empty() && key.chars().all(simple) {
        format!(".{key}")
    } else {
        format!("[{key:?}]")
    }
}

#[cfg(test)]
mod tests {
    use crate::yaml;

    #[test]
    fn both_ways_to_a_path_lead_to_the_same() {
        let texts = [
            "a",
            "[]",
            "a:\n  b: [1, {c: 2}, []]\n  d e: x\nf:\n",
            "- - - a\n  - b\n- c: {d: {e: f}}\n  g: h\n",
            // What an alias names is copied out of the order of the text.
            "a: &a {b: [1, 2], c: {d: e}}\nf: *a\ng: [*a, *a, x]\n",
        ];
        for text in texts {
            let tree = yaml::parse("p", text).unwrap();
            let scalars: Vec<_> = tree.root().scalars().collect();
            for value in scalars {
                let walked = value.path_by_walk();
                let ordered = value.path_by_order();
                assert!(
                    ordered.is_none() || ordered == Some(walked.clone()),
                    "{text}: {ordered:?} {walked}"
                );
                assert!(text.contains('&') || ordered.is_some(), "{text}: {walked}");
            }
        }
        let tree = yaml::parse("p", "a:\n  b: [1, {c: 2}]\n").unwrap();
        let last = tree.root().scalars().last().unwrap();
        assert_eq!(last.path(), "a.b[1].c");
    }
}
