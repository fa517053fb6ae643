//! What expressions read of the scopes around a pipeline: variables of the account, the organization and the
//! project (`<+variable.account.region>`), what these are called (`<+project.name>`), and files of the file store
//! (`<+fileStore.getAsString("/a")>`).

use serde_json::Value;
use slipway_expr::Segment;
use slipway_model::id::{EntityId, Scope};
use slipway_model::{Code, Kind, Ref, variable};

use super::Resolver;
use super::known::Known;
use crate::{Found, Reference, VARIABLE, Variable};

/// What a text holds that names something of a scope, or of the pipeline as a whole.
const NAMED: &[&str] = &[
    "variable.",
    "account.",
    "org.",
    "project.",
    "pipeline.delegateSelectors",
];

/// Most files that the expressions of one plan read.
const MOST_FILES: usize = 100;

impl Resolver<'_> {
    /// Looks up the variables of scopes that the texts of a document read, for this plan and for the run.
    pub(super) fn scope_variables(&mut self, document: Ref<'_>, known: &mut Known<'_>) {
        for text in document.scalars().filter_map(Ref::text) {
            self.scope_variables_of(text, known);
        }
    }

    /// As [`Resolver::scope_variables`], of one text.
    pub(super) fn scope_variables_of(&mut self, text: &str, known: &mut Known<'_>) {
        if !text.contains("<+") {
            return;
        }
        if text.contains("fileStore.") {
            self.read_files(text, known);
        }
        if !NAMED.iter().any(|name| text.contains(name)) {
            return;
        }
        let Ok(template) = slipway_expr::parse(text) else {
            return;
        };
        for path in template.references() {
            let names: Option<Vec<&str>> = path.segments.iter().map(Segment::key).collect();
            let names = names.unwrap_or_default();
            self.read_label(&names, known);
            let Some((scope, called)) = self.called(&names) else {
                continue;
            };
            let name = called.rsplit('.').next().unwrap_or_default();
            if !known
                .scope_variables
                .iter()
                .any(|known| known.name == called)
            {
                let found = self.scope_variable(scope, name, &called);
                known.scope_variables.extend(found);
            }
        }
    }

    /// What the project, organization or account that a path begins with is called, described as and tagged with. Nobody
    /// gives the account a name but its identifier.
    fn read_label(&mut self, path: &[&str], known: &mut Known<'_>) {
        let (Some(of), Some(field)) = (path.first(), path.get(1)) else {
            return;
        };
        let called = format!("{of}.{field}");
        if known
            .scope_variables
            .iter()
            .any(|label| label.name == called)
        {
            return;
        }
        let value = match (*of, *field) {
            ("account", "name" | "companyName") => Some(self.request.scope.account.as_str().into()),
            ("org" | "project", "name" | "description" | "tags") => self.label(of, field),
            // Filled in when they are known.
            ("pipeline", "delegateSelectors") => Some(Value::Null),
            _ => None,
        };
        known.scope_variables.extend(value.map(|value| Variable {
            name: called,
            kind: "String".to_owned(),
            value,
        }));
    }

    fn label(&mut self, of: &str, field: &str) -> Option<Value> {
        let own = self.request.scope;
        let account = own.account.clone();
        let (scope, kind, id) = match of {
            "org" => {
                let id = own.org.as_ref()?.as_str();
                (Scope::account(account), Kind::Organization, id)
            }
            _ => {
                let id = own.project.as_ref()?.as_str();
                (Scope::org(account, own.org.clone()?), Kind::Project, id)
            }
        };
        let reference = Reference {
            scope,
            kind: kind.key(),
            parent: None,
            id: EntityId::new(id),
        };
        let Found::Entity(entity) = self.find(&reference)? else {
            return None;
        };
        let text = |text: &str| Value::from(text);
        Some(match field {
            "name" => text(&entity.head.name),
            "tags" => {
                let tags = entity.head.tags.iter();
                Value::Object(tags.map(|(key, tag)| (key.clone(), text(tag))).collect())
            }
            _ => text(entity.body().get_text("description").unwrap_or_default()),
        })
    }

    /// Looks up the files that a text names in calls of `fileStore`. A file that does not exist is a fault of
    /// the expression when it is evaluated.
    fn read_files(&mut self, text: &str, known: &mut Known<'_>) {
        let mut calls = text.split("fileStore.getAs").skip(1);
        for call in calls.by_ref().take(MOST_FILES) {
            let argument = call.split_once('(').map(|(_, rest)| rest.trim_start());
            let Some(argument) = argument else {
                continue;
            };
            let quoted = ['"', '\''].iter().find_map(|quote| {
                let rest = argument.strip_prefix(*quote)?;
                rest.split_once(*quote).map(|(path, _)| path)
            });
            let Some(path) = quoted.filter(|path| !known.files.iter().any(|(p, _)| p == path))
            else {
                continue;
            };
            if let Some(content) = self.stored_file(self.request.scope, path)
                && known.files.len() < MOST_FILES
            {
                known.files.push((path.to_owned(), content.to_string()));
            }
        }
    }

    /// Where the variable that a path names lives, and how it is called.
    fn called(&self, path: &[&str]) -> Option<(Scope, String)> {
        let own = self.request.scope;
        let account = own.account.clone();
        match path {
            ["variable", "account", name, ..] => {
                Some((Scope::account(account), format!("variable.account.{name}")))
            }
            ["variable", "org", name, ..] => Some((
                Scope::org(account, own.org.clone()?),
                format!("variable.org.{name}"),
            )),
            ["variable", name, ..] => Some((own.clone(), format!("variable.{name}"))),
            _ => None,
        }
    }

    fn scope_variable(&mut self, scope: Scope, name: &str, called: &str) -> Option<Variable> {
        let reference = Reference {
            scope,
            kind: VARIABLE,
            parent: None,
            id: EntityId::new(name),
        };
        let Found::Entity(entity) = self.find(&reference)? else {
            return None;
        };
        let body = entity.body();
        let value = variable::value_of(body).unwrap_or_else(|(field, message)| {
            let message = format!("`spec.{field}` of the variable `{called}` {message}");
            self.fault(Code::BadValue, body, message);
            String::new()
        });
        Some(Variable {
            name: called.to_owned(),
            kind: body.get_text("type").unwrap_or("String").to_owned(),
            value: Value::String(value),
        })
    }
}
