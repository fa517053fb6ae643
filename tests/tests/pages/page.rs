//! A page in Markdown.

use std::fmt::Write as _;

use serde_json::Value;
use slipway_steps::registry::deployment_types;
use slipway_steps::{Step, Undo};

use crate::fields::{Field, fields, spec_of};
use crate::{example, source};

/// What all pages say about themselves.
const MADE: &str =
    "<!-- Made by tests/tests/pages from the sources that it names: change those. -->\n";

/// What is said about one step type.
pub(crate) struct Page {
    pub(crate) step_type: &'static str,
    file: String,
    about: String,
    fields: Vec<Field>,
    units: &'static [&'static str],
    undo: Undo,
    example: Option<(String, String)>,
}

impl Page {
    /// Of a step that people write; `None` for those that only plans have.
    pub(crate) fn of(step: &dyn Step, schema: &Value) -> Option<Self> {
        let step_type = step.step_type();
        let spec = spec_of(schema, step_type)?;
        let (file, about) = source::of(step_type);
        let about = begun(
            about
                .strip_prefix(&format!("`{step_type}`: "))
                .unwrap_or(&about),
        );
        Some(Self {
            step_type,
            file,
            about,
            fields: fields(schema, spec),
            units: step.units(),
            undo: step.undo(),
            example: example::of(step_type),
        })
    }

    /// The page.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{MADE}# {}\n\n{}\n\n", self.step_type, self.about);
        match deployment_types(self.step_type) {
            [] => text.push_str("Stands in stages of every type that runs steps.\n"),
            types => {
                let _ = writeln!(
                    text,
                    "Stands in deployment stages of type {}.",
                    types.join(", ")
                );
            }
        }
        match self.undo {
            Undo::Step(undo) => {
                let _ = writeln!(text, "It is undone by [{undo}]({undo}.md).");
            }
            Undo::Nothing(why) => {
                let _ = writeln!(text, "Nothing undoes it: {why}.");
            }
        }
        text.push_str("\n## Spec\n\n");
        if self.fields.is_empty() {
            text.push_str("It has no fields: `spec: {}`.\n");
        } else {
            text.push_str("| field | holds | |\n|---|---|---|\n");
            for field in &self.fields {
                let required = if field.required { "required" } else { "" };
                let _ = writeln!(text, "| `{}` | {} | {required} |", field.name, field.holds);
            }
        }
        if !self.units.is_empty() {
            text.push_str("\n## Sections of its log\n\n");
            for unit in self.units {
                let _ = writeln!(text, "- {unit}");
            }
        }
        if let Some((file, step)) = &self.example {
            let _ = write!(
                text,
                "\n## Example\n\nFrom [{file}](../../{file}):\n\n```yaml\n{step}\n```\n"
            );
        }
        let _ = write!(text, "\nSource: [{0}](../../{0})\n", self.file);
        text
    }

    /// The first sentence about it.
    fn in_short(&self) -> String {
        let first = self
            .about
            .split("\n\n")
            .next()
            .unwrap_or_default()
            .replace('\n', " ");
        let end = first.find(". ").map_or(first.len(), |at| at + 1);
        first[..end].replace('|', "\\|")
    }
}

/// With a capital letter.
fn begun(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// The list of all pages.
pub(crate) fn index(pages: &[Page]) -> String {
    let mut text = format!(
        "{MADE}# Steps\n\nEvery step type that this version runs. `slipway validate` checks their fields, `slipway schema` prints them \
         for editors.\n\n| step | what it does | undone by |\n|---|---|---|\n"
    );
    for page in pages {
        let undo = match page.undo {
            Undo::Step(undo) => format!("[{undo}]({undo}.md)"),
            Undo::Nothing(_) => String::new(),
        };
        let _ = writeln!(
            text,
            "| [{0}]({0}.md) | {1} | {undo} |",
            page.step_type,
            page.in_short()
        );
    }
    text
}
