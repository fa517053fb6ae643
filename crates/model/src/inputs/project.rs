//! A part of a document that mirrors the whole: what is wanted, the way to it, and what identifies the
//! elements on that way.

use super::{PRIMARY, REFERENCES, RuntimeInput, SOURCES, identity};
use crate::tree::{Data, Entry, Place, Ref, Style, Tree};

/// The runtime-input template of an entity: its YAML with only the fields that ask for an input; `None`
/// when there is none.
pub fn template(tree: &Tree) -> Option<Tree> {
    template_of(tree.root())
}

/// As [`template`], of one value.
///
/// Of the sources of a service's artifacts only the one that is fixed as the primary artifact asks for anything.
pub fn template_of(value: Ref<'_>) -> Option<Tree> {
    let asks =
        |value: Ref<'_>| RuntimeInput::of(value).and_then(|_| value.scalar().map(str::to_owned));
    projected(value, &asks, true)
}

/// The tree of those scalars for which `wanted` has a text, with that text.
pub(super) fn project(root: Ref<'_>, wanted: &dyn Fn(Ref<'_>) -> Option<String>) -> Option<Tree> {
    projected(root, wanted, false)
}

fn projected(
    root: Ref<'_>,
    wanted: &dyn Fn(Ref<'_>) -> Option<String>,
    only_primary: bool,
) -> Option<Tree> {
    let mut tree = Tree::empty(root.tree.files.clone());
    tree.root = Projector {
        tree: &mut tree,
        wanted,
        only_primary,
    }
    .value(root)?;
    Some(tree)
}

struct Projector<'a> {
    tree: &'a mut Tree,
    wanted: &'a dyn Fn(Ref<'_>) -> Option<String>,
    /// Whether sources of artifacts that are not deployed are left out.
    only_primary: bool,
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

    /// Of the sources of a service's artifacts the one that is its primary artifact; the others are not deployed.
    fn source(&mut self, sources: Ref<'_>, primary: &str) -> Option<u32> {
        let Some(source) = sources
            .items()
            .find(|item| identity(*item) == Some(primary))
        else {
            return self.value(sources);
        };
        let kept = self.map(source, &[])?;
        Some(self.tree.push(sources.place(), Data::List(vec![kept])))
    }

    /// A mapping, with what identifies it; `more` fields do so as well.
    fn map(&mut self, map: Ref<'_>, more: &[&str]) -> Option<u32> {
        let fixed = |name: &&str| self.only_primary && !name.contains("<+");
        let primary = map.get_text(PRIMARY).filter(fixed);
        let kept = map.entries().map(|(key, value)| match primary {
            Some(name) if key == SOURCES && value.is_list() => {
                (key, value, self.source(value, name))
            }
            _ => (key, value, self.value(value)),
        });
        let kept: Vec<_> = kept.collect();
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
