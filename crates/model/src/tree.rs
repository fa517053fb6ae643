//! A document as a tree in an arena: every key and value knows its file, line and column, scalars keep
//! the text and style they were written with, and nothing recurses.

use std::fmt;
use std::sync::Arc;

use crate::diagnostic::FileName;

/// Where a key or value begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Index into the files of the tree.
    pub(crate) file: u16,
    /// Line, from 1; 0 for what a program made.
    pub line: u32,
    /// Column in characters, from 1; 0 for what a program made.
    pub column: u32,
}

/// How a scalar was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// In single or double quotes.
    Quoted,
    /// As a block, `|` or `>`.
    Block,
}

/// What a node holds.
#[derive(Clone)]
pub(crate) enum Data {
    Scalar(Arc<str>, Style),
    List(Vec<u32>),
    Map(Vec<Entry>),
}

/// One key of a mapping with its value.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) key: Arc<str>,
    pub(crate) key_place: Place,
    pub(crate) value: u32,
}

#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) data: Data,
}

/// A document. Cheap to read, and edited by building a new one.
#[derive(Clone)]
pub struct Tree {
    pub(crate) files: Vec<FileName>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: u32,
}

/// Shows no values: a document may hold a secret.
impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("files", &self.files)
            .field("nodes", &self.nodes.len())
            .finish()
    }
}

impl Tree {
    /// An empty tree to build on; its root is to be set.
    pub(crate) fn empty(files: Vec<FileName>) -> Self {
        Self {
            files,
            nodes: Vec::new(),
            root: 0,
        }
    }

    pub(crate) fn push(&mut self, place: Place, data: Data) -> u32 {
        let id = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.nodes.push(Node { place, data });
        id
    }

    pub(crate) fn push_text(&mut self, place: Place, text: &str, style: Style) -> u32 {
        self.push(place, Data::Scalar(text.into(), style))
    }

    /// Puts another text in the place of a scalar that this tree, or the one that it is a clone of, has.
    pub fn set_text(&mut self, value: Ref<'_>, text: &str) {
        if let Some(node) = self.nodes.get_mut(value.id as usize)
            && matches!(node.data, Data::Scalar(..))
        {
            node.data = Data::Scalar(text.into(), Style::Plain);
        }
    }

    /// The topmost value.
    pub fn root(&self) -> Ref<'_> {
        Ref {
            tree: self,
            id: self.root,
        }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node at all.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Copies a subtree of this tree; the copy keeps the places of what it copies.
    pub(crate) fn copy_within(&mut self, from: u32) -> u32 {
        let root = self.push(Place::default(), Data::List(Vec::new()));
        let mut work = vec![(from, root)];
        while let Some((source, target)) = work.pop() {
            let mut node = self.nodes[source as usize].clone();
            let mut child = |tree: &mut Self, id: &mut u32| {
                let copy = tree.push(Place::default(), Data::List(Vec::new()));
                work.push((*id, copy));
                *id = copy;
            };
            match &mut node.data {
                Data::Scalar(..) => {}
                Data::List(items) => items.iter_mut().for_each(|id| child(self, id)),
                Data::Map(entries) => entries.iter_mut().for_each(|e| child(self, &mut e.value)),
            }
            self.nodes[target as usize] = node;
        }
        root
    }

    /// Adds the files of `other` and tells by how much its file indices move.
    pub(crate) fn adopt_files(&mut self, other: &Tree) -> u16 {
        let offset = u16::try_from(self.files.len()).unwrap_or(u16::MAX);
        self.files.extend(other.files.iter().cloned());
        offset
    }

    /// Copies a subtree of `from` into this tree; `offset` comes from [`Tree::adopt_files`].
    pub(crate) fn copy(&mut self, from: Ref<'_>, offset: u16) -> u32 {
        let moved = |place: Place| Place {
            file: place.file.saturating_add(offset),
            ..place
        };
        let root = self.push(moved(from.place()), Data::List(Vec::new()));
        let mut work = vec![(from.id, root)];
        while let Some((source, target)) = work.pop() {
            let node = &from.tree.nodes[source as usize];
            let mut child = |tree: &mut Self, id: u32| {
                let place = moved(from.tree.nodes[id as usize].place);
                let copy = tree.push(place, Data::List(Vec::new()));
                work.push((id, copy));
                copy
            };
            let data = match &node.data {
                Data::Scalar(text, style) => Data::Scalar(text.clone(), *style),
                Data::List(items) => Data::List(items.iter().map(|id| child(self, *id)).collect()),
                Data::Map(entries) => Data::Map(
                    entries
                        .iter()
                        .map(|entry| Entry {
                            key: entry.key.clone(),
                            key_place: moved(entry.key_place),
                            value: child(self, entry.value),
                        })
                        .collect(),
                ),
            };
            self.nodes[target as usize].data = data;
        }
        root
    }
}

/// A value of a tree.
#[derive(Clone, Copy, Debug)]
pub struct Ref<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) id: u32,
}

impl<'a> Ref<'a> {
    pub(crate) fn node(self) -> &'a Node {
        &self.tree.nodes[self.id as usize]
    }

    fn other(self, id: u32) -> Self {
        Self { id, ..self }
    }

    /// Where it begins.
    pub fn place(self) -> Place {
        self.node().place
    }

    /// The file it is in.
    pub fn file(self) -> &'a str {
        self.file_of(self.place())
    }

    pub(crate) fn file_of(self, place: Place) -> &'a str {
        self.tree
            .files
            .get(usize::from(place.file))
            .map_or("", |file| file)
    }

    /// The text of a scalar, as written and without its quotes. Also for null, which is the empty text
    /// or `null` or `~`.
    pub fn scalar(self) -> Option<&'a str> {
        match &self.node().data {
            Data::Scalar(text, _) => Some(text),
            _ => None,
        }
    }

    /// The text of a scalar that is not null.
    pub fn text(self) -> Option<&'a str> {
        if self.is_null() { None } else { self.scalar() }
    }

    /// How a scalar is written.
    pub fn style(self) -> Option<Style> {
        match self.node().data {
            Data::Scalar(_, style) => Some(style),
            _ => None,
        }
    }

    /// Whether it is null: nothing, `~` or `null` without quotes.
    pub fn is_null(self) -> bool {
        match &self.node().data {
            Data::Scalar(text, Style::Plain) => {
                matches!(&**text, "" | "~" | "null" | "Null" | "NULL")
            }
            _ => false,
        }
    }

    /// Whether it is a mapping.
    pub fn is_map(self) -> bool {
        matches!(self.node().data, Data::Map(_))
    }

    /// Whether it is a sequence.
    pub fn is_list(self) -> bool {
        matches!(self.node().data, Data::List(_))
    }

    /// Whether it is a scalar with an expression in it.
    pub fn is_expression(self) -> bool {
        self.scalar().is_some_and(|text| text.contains("<+"))
    }

    /// The value of a key; `None` when it is absent or null, which Harness reads alike.
    pub fn get(self, key: &str) -> Option<Self> {
        self.entries()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value)
            .filter(|value| !value.is_null())
    }

    /// The value at a path of keys.
    pub fn at(self, keys: &[&str]) -> Option<Self> {
        keys.iter().try_fold(self, |value, key| value.get(key))
    }

    /// The text of the scalar under a key.
    pub fn get_text(self, key: &str) -> Option<&'a str> {
        self.get(key).and_then(Self::text)
    }

    /// Keys and values of a mapping in order; nothing for other values.
    pub fn entries(self) -> impl ExactSizeIterator<Item = (&'a str, Self)> + use<'a> {
        let entries = match &self.node().data {
            Data::Map(entries) => entries.as_slice(),
            _ => &[],
        };
        entries
            .iter()
            .map(move |entry| (&*entry.key, self.other(entry.value)))
    }

    /// Keys with their places, and values, of a mapping in order.
    pub fn fields(self) -> impl ExactSizeIterator<Item = (&'a str, Place, Self)> + use<'a> {
        let entries = match &self.node().data {
            Data::Map(entries) => entries.as_slice(),
            _ => &[],
        };
        entries
            .iter()
            .map(move |entry| (&*entry.key, entry.key_place, self.other(entry.value)))
    }

    /// Items of a sequence in order; nothing for other values.
    pub fn items(self) -> impl ExactSizeIterator<Item = Self> + use<'a> {
        let items = match &self.node().data {
            Data::List(items) => items.as_slice(),
            _ => &[],
        };
        items.iter().map(move |id| self.other(*id))
    }

    /// Where the key stands that holds the value `key`.
    pub fn key_place(self, key: &str) -> Option<Place> {
        match &self.node().data {
            Data::Map(entries) => entries
                .iter()
                .find(|entry| &*entry.key == key)
                .map(|entry| entry.key_place),
            _ => None,
        }
    }

    /// What it is, for messages.
    pub fn form(self) -> &'static str {
        match self.node().data {
            Data::Scalar(..) if self.is_null() => "nothing",
            Data::Scalar(..) => "a text",
            Data::List(_) => "a list",
            Data::Map(_) => "a mapping",
        }
    }

    /// All scalars below, and itself.
    pub fn scalars(self) -> impl Iterator<Item = Self> + use<'a> {
        let mut work = vec![self.id];
        std::iter::from_fn(move || {
            while let Some(id) = work.pop() {
                match &self.tree.nodes[id as usize].data {
                    Data::Scalar(..) => return Some(self.other(id)),
                    Data::List(items) => work.extend(items.iter().rev()),
                    Data::Map(entries) => work.extend(entries.iter().rev().map(|e| e.value)),
                }
            }
            None
        })
    }
}
