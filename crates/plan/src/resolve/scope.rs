//! What expressions read of the scopes around a pipeline: variables of the account, the organization and the
//! project (`<+variable.account.region>`), and files of the file store (`<+fileStore.getAsString("/a")>`).

use serde_json::Value;
use slipway_expr::Segment;
use slipway_model::id::{EntityId, Scope};
use slipway_model::{Code, Ref, variable};

use super::Resolver;
use super::known::Known;
use crate::{Found, Reference, VARIABLE, Variable};

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
        if !text.contains("variable.") {
            return;
        }
        let Ok(template) = slipway_expr::parse(text) else {
            return;
        };
        for path in template.references() {
            let names: Option<Vec<&str>> = path.segments.iter().map(Segment::key).collect();
            let Some((scope, called)) = self.called(names.as_deref().unwrap_or_default()) else {
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
