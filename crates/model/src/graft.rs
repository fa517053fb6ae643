//! Builds a tree out of parts of other trees; every part keeps the file, line and column it was written at.

use std::collections::HashMap;
use std::sync::Arc;

use crate::diagnostic::FileName;
use crate::tree::{Data, Entry, Place, Ref, Style, Tree};

/// A tree that is being built.
pub struct Graft {
    tree: Tree,
    /// Index of each file: the same one however many parts come from it.
    files: HashMap<FileName, u16>,
    bytes: usize,
}

/// A value that was put into a [`Graft`].
#[derive(Clone, Copy, Debug)]
pub struct Part(u32);

/// A key with its value, for [`Graft::map`].
pub struct Pair(Entry);

impl Default for Graft {
    fn default() -> Self {
        Self {
            tree: Tree::empty(Vec::new()),
            files: HashMap::new(),
            bytes: 0,
        }
    }
}

impl Graft {
    /// Nodes so far.
    pub fn len(&self) -> usize {
        self.tree.nodes.len()
    }

    /// Whether nothing was put into it yet.
    pub fn is_empty(&self) -> bool {
        self.tree.nodes.is_empty()
    }

    /// Bytes of all scalars so far, counted as if each were written out.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies a value with all that is below it.
    pub fn copy(&mut self, value: Ref<'_>) -> Part {
        let files: Vec<u16> = value
            .tree
            .files
            .iter()
            .map(|file| self.file(file))
            .collect();
        let from = self.tree.nodes.len();
        let part = self.tree.copy(value, 0);
        for node in &mut self.tree.nodes[from..] {
            move_to(&mut node.place, &files);
            match &mut node.data {
                Data::Scalar(text, _) => self.bytes = self.bytes.saturating_add(text.len()),
                Data::List(_) => {}
                Data::Map(entries) => {
                    for entry in entries {
                        move_to(&mut entry.key_place, &files);
                    }
                }
            }
        }
        Part(part)
    }

    /// A text that stands where `at` does.
    pub fn text(&mut self, at: Ref<'_>, text: &str) -> Part {
        let place = self.place(at, at.place());
        self.bytes = self.bytes.saturating_add(text.len());
        Part(self.tree.push_text(place, text, Style::Quoted))
    }

    /// A list that stands where `at` does.
    pub fn list(&mut self, at: Ref<'_>, items: Vec<Part>) -> Part {
        let place = self.place(at, at.place());
        let items = items.into_iter().map(|part| part.0).collect();
        Part(self.tree.push(place, Data::List(items)))
    }

    /// A mapping that stands where `at` does.
    pub fn map(&mut self, at: Ref<'_>, pairs: Vec<Pair>) -> Part {
        let place = self.place(at, at.place());
        let entries = pairs.into_iter().map(|pair| pair.0).collect();
        Part(self.tree.push(place, Data::Map(entries)))
    }

    /// A key of a mapping; `place` is where it stands in the document of `owner`.
    pub fn pair(&mut self, owner: Ref<'_>, key: &str, place: Place, value: Part) -> Pair {
        Pair(Entry {
            key: Arc::from(key),
            key_place: self.place(owner, place),
            value: value.0,
        })
    }

    /// The tree with this value at its top.
    pub fn finish(mut self, root: Part) -> Tree {
        self.tree.root = root.0;
        self.tree
    }

    fn place(&mut self, of: Ref<'_>, place: Place) -> Place {
        let file = of.tree.files.get(usize::from(place.file));
        let file = file.map_or(0, |file| self.file(file));
        Place { file, ..place }
    }

    fn file(&mut self, name: &FileName) -> u16 {
        if let Some(index) = self.files.get(name) {
            return *index;
        }
        let index = u16::try_from(self.tree.files.len()).unwrap_or(u16::MAX);
        self.tree.files.push(name.clone());
        self.files.insert(name.clone(), index);
        index
    }
}

fn move_to(place: &mut Place, files: &[u16]) {
    place.file = files.get(usize::from(place.file)).copied().unwrap_or(0);
}

impl Tree {
    /// Whether a mapping anywhere in it has one of these keys.
    pub fn mentions(&self, keys: &[&str]) -> bool {
        self.nodes.iter().any(|node| match &node.data {
            Data::Map(entries) => entries.iter().any(|entry| keys.contains(&&*entry.key)),
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    #[test]
    fn parts_keep_their_places_and_files_are_named_once() {
        let one = yaml::parse("one.yaml", "a: [x, y]\nb: 1").unwrap();
        let two = yaml::parse("two.yaml", "\n\nc: {d: z}").unwrap();
        let mut graft = Graft::default();
        let mut pairs = Vec::new();
        for tree in [&one, &two, &one] {
            for (key, place, value) in tree.root().fields() {
                let part = graft.copy(value);
                pairs.push(graft.pair(tree.root(), key, place, part));
            }
        }
        let root = graft.map(one.root(), pairs);
        assert_eq!(graft.bytes(), 7);
        let tree = graft.finish(root);
        assert_eq!(tree.files.len(), 2);
        let z = tree.root().at(&["c", "d"]).unwrap();
        assert_eq!(
            (z.file(), z.place().line, z.place().column),
            ("two.yaml", 3, 8)
        );
        assert_eq!(tree.root().get("b").map(Ref::file), Some("one.yaml"));
        assert!(tree.mentions(&["d"]) && !tree.mentions(&["z"]));
    }
}
