//! A part of a document that mirrors the whole: what is wanted, the way to it, and what identifies the
//! elements on that way.

use super::{REFERENCES, RuntimeInput};
use crate::tree::{Data, Entry, Place, Ref, Style, Tree};

/// The runtime-input template of an entity: its YAML with only the fields that ask for an input; `None`
/// when there is none.
pub fn template(tree: &Tree) -> Option<Tree> {
    template_of(tree.root())
}

/// As [`template`], of one value.
pub fn template_of(value: Ref<'_>) -> Option<Tree> {
    project(value, &|value| {
        RuntimeInput::of(value).and_then(|_| value.scalar().map(str::to_owned))
    })
}

/// The tree of those scalars for which `wanted` has a text, with that text.
pub(super) fn project(root: Ref<'_>, wanted: &dyn Fn(Ref<'_>) -> Option<String>) -> Option<Tree> {
    let mut tree = Tree::empty(root.tree.files.clone());
    tree.root = Projector {
        tree: &mut tree,
        wanted,
    }
    .value(root)?;
    Some(tree)
}

struct Projector<'a> {
    tree: &'a mut Tree,
    wanted: &'a dyn Fn(Ref<'_>) -> Option<String>,
}

impl Projector<'_> {
    fn value(&mut self, value: Ref<'_>) -> Option<u32> {
        if value.is_list() {
            return self.list(value);
        }
        if value.is_map() {
            return self.map(value, &[]);
        }
        let text = (self.wanted)(value)?;
        // Without quotes nothing is no value.
        let style = if text.is_empty() {
            Style::Quoted
        } else {
            Style::Plain
        };
        Some(self.tree.push_text(value.place(), &text, style))
    }

    fn list(&mut self, list: Ref<'_>) -> Option<u32> {
        // Items without identity are matched by position, so all are kept.
        let kept = list.items().map(|item| match item.is_map() {
            true => (item, self.map(item, REFERENCES)),
            false => (item, self.value(item)),
        });
        let kept: Vec<_> = kept.collect();
        if kept.iter().all(|(_, kept)| kept.is_none()) {
            return None;
        }
        let plain = list.items().any(|item| item.scalar().is_some());
        let items = kept
            .into_iter()
            .filter_map(|(item, kept)| match kept {
                None if plain => Some(self.tree.copy(item, 0)),
                kept => kept,
            })
            .collect();
        Some(self.tree.push(list.place(), Data::List(items)))
    }

    /// A mapping, with what identifies it; `more` fields do so as well.
    fn map(&mut self, map: Ref<'_>, more: &[&str]) -> Option<u32> {
        let kept: Vec<_> = map
            .entries()
            .map(|(key, value)| (key, value, self.value(value)))
            .collect();
        if kept.iter().all(|(.., kept)| kept.is_none()) {
            return None;
        }
        let named = map.get("identifier").is_some();
        let entries = kept
            .into_iter()
            .filter_map(|(key, value, kept)| {
                let identifies = matches!(key, "identifier" | "type")
                    || key == "name" && !named
                    || more.contains(&key);
                let value = match kept {
                    Some(kept) => kept,
                    None if identifies && value.scalar().is_some() => self.tree.copy(value, 0),
                    None => return None,
                };
                Some(Entry {
                    key: key.into(),
                    key_place: Place::default(),
                    value,
                })
            })
            .collect();
        Some(self.tree.push(map.place(), Data::Map(entries)))
    }
}
