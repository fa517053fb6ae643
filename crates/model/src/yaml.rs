//! Reads YAML text into a [`Tree`], within limits that keep time and memory in proportion to the text.
//!
//! Works on the events of `saphyr-parser` with a stack of its own, so depth costs heap and not stack.
//! Refused: repeated keys, tags, keys that are not scalars, and aliases that multiply the document.

use std::collections::HashMap;
use std::sync::Arc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput};

use crate::diagnostic::{Code, Diagnostic, FileName, shown};
use crate::path::join;
use crate::seen::Seen;
use crate::tree::{Data, Entry, Place, Style, Tree};

/// Longest text that is read, in bytes.
pub const MOST_BYTES: usize = 3 * 1024 * 1024;
/// Deepest nesting.
pub const MOST_DEPTH: usize = 100;
/// Most nodes of one text.
pub const MOST_NODES: usize = 500_000;
/// Most nodes that aliases may add.
pub const MOST_ALIASED: usize = 10_000;
/// How many times larger than written a document may become by its aliases.
const MOST_GROWTH: usize = 10;

/// A fault of the text; boxed because it is large and rare.
pub type Fault = Box<Diagnostic>;

/// Reads a text of one document. An empty text is refused.
pub fn parse(file: &str, text: &str) -> Result<Tree, Fault> {
    let mut trees = parse_documents(file, text)?;
    if let Some(second) = trees.get(1) {
        let place = second.root().place();
        return Err(Box::new(Diagnostic::error(
            Code::BadValue,
            file,
            place,
            "a second document begins here, where one is expected",
        )));
    }
    trees.pop().ok_or_else(|| {
        let start = Place {
            file: 0,
            line: 1,
            column: 1,
        };
        Diagnostic::error(Code::Syntax, file, start, "the text holds no YAML document").into()
    })
}

/// Reads every document of a text, those that hold nothing left out.
pub fn parse_documents(file: &str, text: &str) -> Result<Vec<Tree>, Fault> {
    if text.len() > MOST_BYTES {
        let place = Place {
            file: 0,
            line: 1,
            column: 1,
        };
        return Err(Box::new(Diagnostic::error(
            Code::Limit,
            file,
            place,
            format!(
                "the text has {} bytes; at most {MOST_BYTES} (3 MiB) are read",
                text.len()
            ),
        )));
    }
    let name: FileName = file.into();
    let mut parser = Parser::new_from_str(text);
    let mut reader = Reader::new(name.clone());
    let mut trees = Vec::new();
    while let Some((event, span)) = next(&mut parser, file)? {
        if let Some(tree) = reader.take(event, span)? {
            if !tree.root().is_null() {
                trees.push(tree);
            }
            reader.tree = Tree::empty(vec![name.clone()]);
        }
    }
    Ok(trees)
}

fn next<'a>(
    parser: &mut Parser<'a, StrInput<'a>>,
    file: &str,
) -> Result<Option<(Event<'a>, Span)>, Fault> {
    parser.next_event().transpose().map_err(|error: ScanError| {
        let at = place(*error.marker());
        // The scanner gives up on `[[[[…` before it tells of the brackets that it has read.
        if error.info().contains("recursion limit") {
            return Diagnostic::error(Code::Limit, file, at, too_deep()).into();
        }
        let message = format!("this is not YAML: {}", shown(error.info()));
        Diagnostic::error(Code::Syntax, file, at, message).into()
    })
}

fn too_deep() -> String {
    format!("nested too deep: at most {MOST_DEPTH} levels are read")
}

fn place(marker: Marker) -> Place {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Place {
        file: 0,
        line: number(marker.line()).max(1),
        column: number(marker.col()).saturating_add(1),
    }
}

/// A list or mapping that is being read.
struct Open {
    node: u32,
    anchor: usize,
    /// Of what was read of it so far.
    size: Size,
    /// Key that waits for its value, in a mapping.
    key: Option<(Arc<str>, Place)>,
    is_map: bool,
    inside: Inside,
}

/// What was read of a list or mapping so far. It moves into the tree at its exact size, and the buffers are
/// used again.
#[derive(Default)]
struct Inside {
    items: Vec<u32>,
    entries: Vec<Entry>,
}

/// How large a value is.
#[derive(Clone, Copy)]
struct Size {
    /// Nodes, itself included.
    nodes: usize,
    /// Bytes of its scalars and keys.
    bytes: usize,
    /// Levels, itself included.
    depth: usize,
}

struct Reader {
    file: FileName,
    tree: Tree,
    open: Vec<Open>,
    /// Values that an alias may name.
    anchors: HashMap<usize, (u32, Size)>,
    /// Nodes of all documents, and how many of them aliases made.
    nodes: usize,
    aliased: usize,
    aliased_bytes: usize,
    root: Option<u32>,
    seen: Seen,
    spare: Vec<Inside>,
}

impl Reader {
    fn new(file: FileName) -> Self {
        Self {
            tree: Tree::empty(vec![file.clone()]),
            file,
            open: Vec::new(),
            anchors: HashMap::new(),
            nodes: 0,
            aliased: 0,
            aliased_bytes: 0,
            root: None,
            seen: Seen::new(),
            spare: Vec::new(),
        }
    }

    fn error(&self, code: Code, place: Place, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, &self.file, place, message).path(self.path())
    }

    /// Path of what is being read.
    fn path(&self) -> String {
        let mut path = String::new();
        for open in &self.open {
            match &open.key {
                Some((key, _)) => path.push_str(&join(key)),
                None if open.is_map => {}
                None => path.push_str(&format!("[{}]", open.inside.items.len())),
            }
        }
        path.strip_prefix('.').unwrap_or(&path).to_owned()
    }

    /// Takes one event; the tree once its document ends.
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<Option<Tree>, Fault> {
        let at = place(span.start);
        match event {
            Event::DocumentStart(_) => self.anchors.clear(),
            Event::DocumentEnd => {
                let tree = std::mem::replace(&mut self.tree, Tree::empty(Vec::new()));
                return Ok(self.root.take().map(|root| Tree { root, ..tree }));
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_tag(tag.is_some(), at)?;
                let style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
                    ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
                };
                self.scalar(&text, style, anchor, at)?;
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_tag(tag.is_some(), at)?;
                self.begin(Data::List(Vec::new()), anchor, at)?;
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_tag(tag.is_some(), at)?;
                self.begin(Data::Map(Vec::new()), anchor, at)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end()?,
            Event::Alias(anchor) => self.alias(anchor, at)?,
            Event::Nothing | Event::StreamStart | Event::StreamEnd => {}
        }
        Ok(None)
    }

    fn refuse_tag(&self, tagged: bool, at: Place) -> Result<(), Fault> {
        if tagged {
            return Err(Box::new(
                self.error(Code::Tag, at, "YAML tags (`!…`) are not accepted")
                    .expected("a plain value, in quotes where it must be a text"),
            ));
        }
        Ok(())
    }

    fn count(&mut self, at: Place) -> Result<(), Fault> {
        self.nodes += 1;
        if self.nodes > MOST_NODES {
            let message = format!("too many nodes: at most {MOST_NODES} are read");
            return Err(Box::new(self.error(Code::Limit, at, message)));
        }
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: Style, anchor: usize, at: Place) -> Result<(), Fault> {
        self.count(at)?;
        let text = self.seen.share(text);
        if let Some(open) = self.open.last_mut()
            && open.is_map
            && open.key.is_none()
        {
            open.key = Some((text, at));
            return Ok(());
        }
        let size = Size {
            nodes: 1,
            bytes: text.len(),
            depth: 1,
        };
        let node = self.tree.push(at, Data::Scalar(text, style));
        self.anchor(anchor, node, size);
        self.attach(node, size);
        Ok(())
    }

    fn anchor(&mut self, anchor: usize, node: u32, size: Size) {
        // saphyr numbers anchors from 1; 0 means none.
        if anchor > 0 {
            self.anchors.insert(anchor, (node, size));
        }
    }

    fn begin(&mut self, data: Data, anchor: usize, at: Place) -> Result<(), Fault> {
        self.count(at)?;
        if self.open.len() >= MOST_DEPTH {
            return Err(Box::new(self.error(Code::Limit, at, too_deep()).path("")));
        }
        if self.awaits_key() {
            return Err(Box::new(self.error(
                Code::BadValue,
                at,
                "a key must be a text",
            )));
        }
        let is_map = matches!(data, Data::Map(_));
        let node = self.tree.push(at, data);
        let size = Size {
            nodes: 1,
            bytes: 0,
            depth: 1,
        };
        self.open.push(Open {
            node,
            anchor,
            size,
            key: None,
            is_map,
            inside: self.spare.pop().unwrap_or_default(),
        });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Fault> {
        let Some(mut open) = self.open.pop() else {
            return Ok(());
        };
        self.refuse_repeated_keys(&open.inside.entries)?;
        self.tree.nodes[open.node as usize].data = if open.is_map {
            Data::Map(exact(&mut open.inside.entries))
        } else {
            Data::List(exact(&mut open.inside.items))
        };
        self.spare.push(open.inside);
        self.anchor(open.anchor, open.node, open.size);
        self.attach(open.node, open.size);
        Ok(())
    }

    fn refuse_repeated_keys(&self, entries: &[Entry]) -> Result<(), Fault> {
        let Some((first, second)) = repeated(entries) else {
            return Ok(());
        };
        let message = format!(
            "the key `{}` stands here and at line {}, column {}; only one can count",
            shown(&second.key),
            first.key_place.line,
            first.key_place.column
        );
        let path = format!("{}{}", self.path(), join(&second.key));
        let path = path.strip_prefix('.').unwrap_or(&path);
        Err(Box::new(
            self.error(Code::RepeatedKey, second.key_place, message)
                .path(path),
        ))
    }

    fn attach(&mut self, node: u32, size: Size) {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return;
        };
        open.size.nodes += size.nodes;
        open.size.bytes += size.bytes;
        open.size.depth = open.size.depth.max(size.depth + 1);
        if !open.is_map {
            open.inside.items.push(node);
        } else if let Some((key, key_place)) = open.key.take() {
            open.size.bytes += key.len();
            open.inside.entries.push(Entry {
                key,
                key_place,
                value: node,
            });
        }
    }

    fn alias(&mut self, anchor: usize, at: Place) -> Result<(), Fault> {
        if self.awaits_key() {
            return Err(Box::new(self.error(
                Code::BadValue,
                at,
                "a key must be a text, not an alias",
            )));
        }
        let Some((node, size)) = self.anchors.get(&anchor).copied() else {
            let message = "this alias names nothing that is complete before it";
            return Err(Box::new(self.error(Code::BadValue, at, message)));
        };
        let written = self.nodes - self.aliased;
        self.nodes += size.nodes;
        self.aliased += size.nodes;
        self.aliased_bytes += size.bytes;
        let too_many = self.aliased > MOST_ALIASED
            || self.nodes > MOST_NODES
            || self.aliased > written.saturating_mul(MOST_GROWTH)
            || self.aliased_bytes > MOST_BYTES
            || self.open.len() + size.depth > MOST_DEPTH;
        if too_many {
            let message = format!(
                "too many nodes: aliases may add at most {MOST_ALIASED} nodes, {MOST_BYTES} bytes and {MOST_DEPTH} \
                 levels, and not make a document more than {MOST_GROWTH} times larger"
            );
            return Err(Box::new(self.error(Code::Limit, at, message)));
        }
        let copy = self.tree.copy_within(node);
        self.attach(copy, size);
        Ok(())
    }

    /// Whether the next value is the key of a mapping.
    fn awaits_key(&self) -> bool {
        self.open
            .last()
            .is_some_and(|open| open.is_map && open.key.is_none())
    }
}

/// What a buffer holds, at its exact size. A large buffer is given away, a small one kept for what follows.
fn exact<T>(buffer: &mut Vec<T>) -> Vec<T> {
    const LARGE: usize = 1 << 10;
    if buffer.len() < LARGE {
        let mut all = Vec::with_capacity(buffer.len());
        all.append(buffer);
        return all;
    }
    let mut all = std::mem::take(buffer);
    all.shrink_to_fit();
    all
}

/// The first key that stands a second time, and the entry that it repeats.
fn repeated(entries: &[Entry]) -> Option<(&Entry, &Entry)> {
    /// Up to so many keys, comparing each with each is the fastest.
    const FEW: usize = 16;
    if entries.len() <= FEW {
        return entries.iter().enumerate().find_map(|(index, second)| {
            let mut before = entries.iter().take(index);
            let first = before.find(|first| first.key == second.key)?;
            Some((first, second))
        });
    }
    let stands = |entry: &Entry| (entry.key_place.line, entry.key_place.column);
    let mut order: Vec<&Entry> = entries.iter().collect();
    order.sort_unstable_by(|a, b| a.key.cmp(&b.key).then_with(|| stands(a).cmp(&stands(b))));
    let neighbours = order.iter().zip(order.iter().skip(1));
    neighbours
        .filter(|(first, second)| first.key == second.key)
        .min_by_key(|(_, second)| stands(second))
        .map(|(first, second)| (*first, *second))
}

#[cfg(test)]
#[path = "yaml_tests.rs"]
mod tests;
