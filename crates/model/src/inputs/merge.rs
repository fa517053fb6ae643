//! Puts given inputs in the place of `<+input>`.

use std::collections::{HashMap, HashSet};

use super::{PRIMARY, RuntimeInput, SOURCES, flat, identity};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, shown};
use crate::entity::{self, Parsed};
use crate::path::join;
use crate::tree::{Data, Entry, Ref, Style, Tree};

/// Fields that Harness lets a run leave empty: what is not given is as if it were not written.
const OPTIONAL: &[&str] = &[
    "serviceInputs",
    "environmentInputs",
    "inputs",
    "serviceOverrideInputs",
    "when",
    "strategy",
    "failureStrategies",
    "delegateSelectors",
    "timeout",
    "gitBranch",
    "filters",
];

/// The pipeline with the inputs of one or more documents filled in; the later document wins. Each has the
/// root `pipeline` and mirrors the pipeline.
///
/// # Errors
/// Every missing input, every one that is not allowed or not asked for, and everything that the pipeline
/// is not well-formed for with its inputs.
pub fn merge(pipeline: &Parsed, inputs: &[&Tree]) -> Result<Parsed, Vec<Diagnostic>> {
    merge_with(pipeline, inputs, Unfilled::Fault)
}

/// As [`merge`]; `unfilled` says what becomes of an input for which nothing is given.
///
/// # Errors
/// As [`merge`].
pub fn merge_with(
    pipeline: &Parsed,
    inputs: &[&Tree],
    unfilled: Unfilled,
) -> Result<Parsed, Vec<Diagnostic>> {
    let key = pipeline.head.kind.key();
    let mut given = Vec::new();
    for tree in inputs {
        let root = tree.root();
        let Some(body) = root.get(key).filter(|_| root.entries().len() == 1) else {
            let message = "inputs are a document that mirrors the pipeline";
            return Err(vec![
                Diagnostic::about(Code::BadInput, tree, message)
                    .expected(format!("the root key `{key}` alone")),
            ]);
        };
        given.push(body);
    }
    merged(pipeline, &given, unfilled)
}

/// An entity with inputs filled in that mirror what stands under its root key (`serviceInputs`,
/// `environmentInputs`, `inputs` of an infrastructure).
///
/// # Errors
/// As [`merge`].
pub fn merge_entity(entity: &Parsed, given: &[Ref<'_>]) -> Result<Parsed, Vec<Diagnostic>> {
    merged(entity, given, Unfilled::Fault)
}

fn merged(
    entity: &Parsed,
    given: &[Ref<'_>],
    unfilled: Unfilled,
) -> Result<Parsed, Vec<Diagnostic>> {
    let mut scalars = entity.tree.root().scalars();
    let asks = scalars.any(|value| RuntimeInput::of(value).is_some());
    let nothing = |given: &Ref<'_>| given.is_null() || given.is_map() && given.entries().len() == 0;
    if !asks && given.iter().all(nothing) {
        return Ok(entity.clone());
    }
    let key = entity.head.kind.key();
    let mut tree = fill(entity.body(), given, key, unfilled)?;
    let key_place = entity.tree.root().key_place(key).unwrap_or_default();
    let entry = Entry {
        key: key.into(),
        key_place,
        value: tree.root,
    };
    tree.root = tree.push(entity.tree.root().place(), Data::Map(vec![entry]));
    entity::from_tree(tree)
}

/// What happens to a runtime input for which nothing is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfilled {
    /// It is a fault, unless it has a default or may be left empty.
    Fault,
    /// It stays, to be asked for later; what is given may narrow it down (`<+input>.allowedValues(a,b)`).
    Keep,
    /// As [`Unfilled::Keep`], with a warning where nothing else says what it becomes.
    Note,
}

/// A value with inputs filled in that mirror it; the later one wins. `path` is what the value is called in
/// messages. The result is not checked against the fields that Harness knows.
///
/// # Errors
/// Every missing input, and every one that is not allowed or not asked for.
pub fn fill(
    base: Ref<'_>,
    given: &[Ref<'_>],
    path: &str,
    unfilled: Unfilled,
) -> Result<Tree, Vec<Diagnostic>> {
    fill_noting(base, given, path, unfilled).map(|(tree, _)| tree)
}

/// As [`fill`], with its warnings.
///
/// # Errors
/// As [`fill`].
pub fn fill_noting(
    base: Ref<'_>,
    given: &[Ref<'_>],
    path: &str,
    unfilled: Unfilled,
) -> Result<(Tree, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut tree = Tree::empty(base.tree.files.clone());
    let given: Vec<Given<'_>> = given
        .iter()
        .map(|value| Given {
            value: *value,
            offset: tree.adopt_files(value.tree),
        })
        .collect();
    let mut faults = Diagnostics::default();
    let mut merger = Merger {
        tree: &mut tree,
        faults: &mut faults,
        unfilled,
    };
    let missing = Missing::Fault(None);
    tree.root = merger.value(base, &given, path, missing);
    faults.finish(tree)
}

/// Whether a value says that it is asked for while the run goes on.
fn asks_later(value: Ref<'_>) -> bool {
    RuntimeInput::of(value).is_some_and(|request| request.execution)
}

/// Whether the input at a path may be asked for while the run goes on: it is a variable of a stage or step group, part of
/// the spec of a step, given to a service, an environment or a chained pipeline, or given to a template, which decides.
/// Everywhere else a default counts when the run starts.
fn may_wait(path: &str) -> bool {
    [
        ".stage.variables",
        ".stepGroup.variables",
        ".step.spec.",
        ".serviceInputs.",
        ".environmentInputs.",
        ".serviceOverrideInputs.",
        ".inputs.",
        ".templateInputs.",
        "template.spec.spec.",
    ]
    .iter()
    .any(|part| path.contains(part))
}

/// A value of an inputs document.
#[derive(Clone, Copy)]
struct Given<'a> {
    value: Ref<'a>,
    /// Where the files of its document begin in those of the merged tree.
    offset: u16,
}

/// What an input becomes for which nothing is given.
#[derive(Clone, Copy)]
enum Missing<'a> {
    /// A fault; with the name of the variable that it is the value of.
    Fault(Option<&'a str>),
    Nothing,
    Empty,
    Default(&'a str),
}

struct Merger<'a> {
    tree: &'a mut Tree,
    faults: &'a mut Diagnostics,
    unfilled: Unfilled,
}

impl Merger<'_> {
    fn value(
        &mut self,
        base: Ref<'_>,
        given: &[Given<'_>],
        path: &str,
        missing: Missing<'_>,
    ) -> u32 {
        if let Some(request) = RuntimeInput::of(base) {
            return self.input(base, &request, given, path, missing);
        }
        let given: Vec<_> = given.iter().filter(|given| says(given)).copied().collect();
        let used = |given: &&Given<'_>| given.value.get("useFromStage").is_some();
        if let Some(given) = given.iter().rev().find(used)
            && asks_for_a_reference(base)
        {
            return self.tree.copy(given.value, given.offset);
        }
        if base.is_map() && given.iter().all(|given| given.value.is_map()) {
            return self.map(base, &given, path);
        }
        if base.is_list() && given.iter().all(|given| given.value.is_list()) {
            return self.list(base, &given, path, None);
        }
        for given in given {
            if given.value.scalar().is_none() || given.value.scalar() != base.scalar() {
                self.unasked(given, path);
            }
        }
        self.tree.copy(base, 0)
    }

    fn unasked(&mut self, given: Given<'_>, path: &str) {
        self.faults.push_with(|| {
            let name = path.rsplit('.').next().unwrap_or(path);
            let message = format!(
                "`{name}` is no runtime input: its value is fixed, or there is no such field"
            );
            Diagnostic::at(Code::BadInput, given.value, message).path(path)
        });
    }

    fn input(
        &mut self,
        base: Ref<'_>,
        request: &RuntimeInput,
        given: &[Given<'_>],
        path: &str,
        missing: Missing<'_>,
    ) -> u32 {
        let unfilled = |value: Ref<'_>| value.is_null() || RuntimeInput::of(value).is_some();
        if let Some(given) = given.iter().rev().find(|given| !unfilled(given.value)) {
            self.allowed(request, given.value, path);
            return self.tree.copy(given.value, given.offset);
        }
        if self.unfilled != Unfilled::Fault {
            let asked = given.iter().rev().find(|given| !given.value.is_null());
            if let Some(given) = asked {
                return self.tree.copy(given.value, given.offset);
            }
            let settled = request.default.is_some() || request.execution;
            if let (Unfilled::Note, false, Missing::Fault(variable)) =
                (self.unfilled, settled, missing)
            {
                let note = || missing_input(base, request, variable, path);
                self.faults.warn_with(note);
            }
            return self.tree.copy(base, 0);
        }
        if let Some(default) = &request.default {
            self.allowed_text(request, default, base, path);
        }
        // What is given to a template may say that it is asked for later.
        let later = given.iter().rev().find(|given| asks_later(given.value));
        if later.is_some() || request.execution && may_wait(path) {
            return match later {
                Some(given) => self.tree.copy(given.value, given.offset),
                None => self.tree.copy(base, 0),
            };
        }
        match (&request.default, missing) {
            (Some(default), _) => self.tree.push_text(base.place(), default, Style::Plain),
            (None, Missing::Default(default)) => {
                self.tree.push_text(base.place(), default, Style::Plain)
            }
            (None, _) if request.execution => self.tree.copy(base, 0),
            (None, Missing::Empty) => self.tree.push_text(base.place(), "", Style::Quoted),
            (None, Missing::Nothing) => self.tree.push_text(base.place(), "", Style::Plain),
            (None, Missing::Fault(variable)) => {
                self.faults
                    .push_with(|| missing_input(base, request, variable, path));
                self.tree.copy(base, 0)
            }
        }
    }

    /// Notes values that the input does not allow; of a list each item is looked at.
    fn allowed(&mut self, request: &RuntimeInput, value: Ref<'_>, path: &str) {
        match value.text() {
            Some(text) => self.allowed_text(request, text, value, path),
            None => {
                for item in value.items().filter(|item| item.text().is_some()) {
                    self.allowed_text(request, item.text().unwrap_or_default(), item, path);
                }
            }
        }
    }

    fn allowed_text(&mut self, request: &RuntimeInput, text: &str, at: Ref<'_>, path: &str) {
        if text.contains("<+") {
            return;
        }
        if let Err(expected) = request.check(text) {
            self.faults.push_with(|| {
                let message = format!("`{}` is not allowed here", shown(text));
                let fault = Diagnostic::at(Code::BadInput, at, message);
                fault.path(path).expected(expected)
            });
        }
    }

    fn map(&mut self, base: Ref<'_>, given: &[Given<'_>], path: &str) -> u32 {
        let mut known = HashSet::new();
        let mut below: HashMap<&str, Vec<Given<'_>>> = HashMap::new();
        for given in given {
            for (key, value) in given.value.entries().filter(|(_, value)| !value.is_null()) {
                below
                    .entry(key)
                    .or_default()
                    .push(Given { value, ..*given });
            }
        }
        let primary = primary_source(base, &below);
        let mut entries = Vec::new();
        for (key, key_place, value) in base.fields() {
            known.insert(key);
            let missing = match key {
                "value" => missing_variable(base),
                // Nothing is inserted where nothing is given.
                "stages" | "steps" if path.ends_with(".insert") => Missing::Nothing,
                _ if OPTIONAL.contains(&key) => Missing::Nothing,
                _ => Missing::Fault(None),
            };
            let given = match key {
                // Names are for people; an element is told by its identifier.
                "name" if base.get("identifier").is_some() && RuntimeInput::of(value).is_none() => {
                    &[][..]
                }
                _ => below.get(key).map_or(&[][..], Vec::as_slice),
            };
            let path = format!("{path}{}", join(key));
            let value = match primary.filter(|_| key == SOURCES) {
                Some(primary) => self.sources(value, given, &path, primary),
                None => self.value(value, given, &path, missing),
            };
            entries.push(Entry {
                key: key.into(),
                key_place,
                value,
            });
        }
        let mut unasked: Vec<_> = below
            .into_iter()
            .filter(|(key, _)| !known.contains(key))
            .flat_map(|(key, given)| given.into_iter().map(move |given| (key, given)))
            .collect();
        unasked.sort_by_key(|(_, given)| (given.value.place().line, given.value.place().column));
        for (key, given) in unasked {
            self.unasked(given, &format!("{path}{}", join(key)));
        }
        self.tree.push(base.place(), Data::Map(entries))
    }

    /// The sources of the artifacts of a service whose primary artifact is that of one of them.
    fn sources(&mut self, base: Ref<'_>, given: &[Given<'_>], path: &str, primary: &str) -> u32 {
        let said: Vec<_> = given.iter().filter(|given| says(given)).copied().collect();
        if said.iter().any(|given| !given.value.is_list()) {
            return self.value(base, given, path, Missing::Fault(None));
        }
        self.list(base, &said, path, Some(primary))
    }

    /// A list; of one with `only`, what has that identity.
    fn list(&mut self, base: Ref<'_>, given: &[Given<'_>], path: &str, only: Option<&str>) -> u32 {
        let mut known = Vec::new();
        flat(base, &mut known);
        let open = known.iter().any(|item| identity(*item).is_none());
        let known: HashSet<_> = known.into_iter().filter_map(identity).collect();
        let mut items = Items {
            only,
            ..Items::default()
        };
        for each in given {
            let mut flattened = Vec::new();
            flat(each.value, &mut flattened);
            for value in flattened {
                let item = Given { value, ..*each };
                items.all.push(item);
                let Some(name) = identity(value) else {
                    continue;
                };
                // One item of each document: repeated names would make this a square.
                let alike = items.named.entry(name).or_default();
                if alike.last().is_none_or(|last| last.offset != item.offset) {
                    alike.push(item);
                }
                if !open && !known.contains(name) {
                    self.unasked(item, &format!("{path}.{}", shown(name)));
                }
            }
        }
        self.items(base, &items, path)
    }

    fn items(&mut self, base: Ref<'_>, given: &Items<'_>, path: &str) -> u32 {
        let mut merged = Vec::new();
        for (index, item) in base.items().enumerate() {
            if given.only.is_some() && identity(item) != given.only {
                continue;
            }
            let path = format!("{path}[{index}]");
            merged.push(match item.get("parallel").filter(|inner| inner.is_list()) {
                Some(_) => self.parallel(item, given, &path),
                None => self.value(item, given.like(item, index), &path, Missing::Fault(None)),
            });
        }
        self.tree.push(base.place(), Data::List(merged))
    }

    /// An item `parallel: […]`: its elements are matched with all that is given for the list around it.
    fn parallel(&mut self, item: Ref<'_>, given: &Items<'_>, path: &str) -> u32 {
        let mut entries = Vec::new();
        for (key, key_place, value) in item.fields() {
            let value = match key {
                "parallel" if value.is_list() => {
                    self.items(value, given, &format!("{path}.parallel"))
                }
                _ => self.tree.copy(value, 0),
            };
            entries.push(Entry {
                key: key.into(),
                key_place,
                value,
            });
        }
        self.tree.push(item.place(), Data::Map(entries))
    }
}

/// The items that are given for a list.
#[derive(Default)]
struct Items<'a> {
    /// The identity of the one item that counts, where one does.
    only: Option<&'a str>,
    all: Vec<Given<'a>>,
    named: HashMap<&'a str, Vec<Given<'a>>>,
}

impl<'a> Items<'a> {
    /// What is given for an item: what has the same identity, or stands at the same position where the
    /// item has none.
    fn like(&self, item: Ref<'_>, index: usize) -> &[Given<'a>] {
        match identity(item) {
            Some(name) => self.named.get(name).map_or(&[], Vec::as_slice),
            None => self.all.get(index..=index).unwrap_or(&[]),
        }
    }
}

/// Whether something is given: an emptied field of a form says nothing, nor does an input that is still open.
fn says(given: &Given<'_>) -> bool {
    let value = given.value;
    !value.is_null() && value.scalar() != Some("") && RuntimeInput::of(value).is_none()
}

/// The source of a service's artifacts that its `primaryArtifactRef` names, or what is given for that: the others are not
/// deployed, and what they ask for is not asked for.
fn primary_source<'a>(base: Ref<'a>, given: &HashMap<&str, Vec<Given<'a>>>) -> Option<&'a str> {
    let reference = base.get(PRIMARY)?;
    let sources = base.get(SOURCES).filter(|sources| sources.is_list())?;
    let given = given.get(PRIMARY).map_or(&[][..], Vec::as_slice);
    let named = match RuntimeInput::of(reference) {
        Some(_) => {
            let texts = given.iter().rev().filter_map(|given| given.value.text());
            texts.map(str::trim).find(|text| !text.is_empty())?
        }
        None => reference.text()?,
    };
    let mut all = sources.items().filter_map(identity);
    all.find(|source| *source == named)
}

/// Whether a service or environment is open, so that it may be that of another stage as well.
fn asks_for_a_reference(base: Ref<'_>) -> bool {
    let fields = ["serviceRef", "environmentRef", "values"];
    let mut values = fields.iter().filter_map(|field| base.get(field));
    values.any(|value| RuntimeInput::of(value).is_some())
}

fn missing_input(
    base: Ref<'_>,
    request: &RuntimeInput,
    variable: Option<&str>,
    path: &str,
) -> Diagnostic {
    let last = path.rsplit('.').next().unwrap_or(path);
    let name = variable.unwrap_or(last);
    let message = format!("the runtime input `{name}` has no value");
    let fault = Diagnostic::at(Code::MissingInput, base, message).path(path);
    match request.allowed.is_empty() {
        true => fault,
        false => fault.expected(format!("one of {}", request.allowed.join(", "))),
    }
}

/// A variable may say itself what it is when it is not given.
fn missing_variable<'a>(variable: Ref<'a>) -> Missing<'a> {
    match variable.get_text("default") {
        Some(default) => Missing::Default(default),
        None if variable.get_text("required") == Some("false") => Missing::Empty,
        None => Missing::Fault(variable.get_text("name")),
    }
}
