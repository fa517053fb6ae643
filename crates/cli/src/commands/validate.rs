//! `slipway validate`: what the language says of files, without a server.

use std::collections::{BTreeMap, HashMap};
use std::io::IsTerminal;
use std::sync::Arc;

use serde_json::{Value, json};
use slipway_model::id::{AccountId, EntityId, Scope};
use slipway_model::render::render;
use slipway_model::{Code, Diagnostic, Kind, Parsed, Severity, entity};
use slipway_plan::{Entities, Fetched, Found, Reference, RemoteFiles};

use crate::args::{Format, ValidateArgs};
use crate::commands::files;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

/// Checks every document of every file; exit code 1 when one is refused.
///
/// # Errors
/// When a file cannot be read.
pub fn validate(format: Option<Format>, args: &ValidateArgs) -> Result<Exit, CliError> {
    let sources = files::read(&args.files)?;
    let found = diagnostics(&sources);
    let count = |severity| found.iter().filter(|d| d.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    match output::format(format) {
        Format::Table => {
            let color = std::io::stdout().is_terminal();
            let texts: BTreeMap<&str, &str> = sources
                .iter()
                .map(|(name, text)| (name.as_str(), text.as_str()))
                .collect();
            for one in &found {
                let text = render(
                    std::slice::from_ref(one),
                    |file| texts.get(file).copied(),
                    color,
                );
                // Not `visible`: the colours are the renderer's own, and it shows control characters of the file as signs.
                output::line(text.trim_end())?;
            }
            output::line(&format!(
                "{}: {}, {}",
                counted(sources.len(), "file"),
                counted(errors, "error"),
                counted(warnings, "warning")
            ))?;
        }
        Format::Sarif => output::document(Format::Json, &sarif(&found))?,
        other => {
            let report = json!({
                "files": sources.len(),
                "errors": errors,
                "warnings": warnings,
                "diagnostics": found,
            });
            output::document(other, &report)?;
        }
    }
    Ok(if errors > 0 {
        Exit::Failed
    } else {
        Exit::Succeeded
    })
}

/// Everything that is wrong with the files, in their order: of each document, and of what it gives to templates
/// that are among the files.
fn diagnostics(sources: &[(String, String)]) -> Vec<Diagnostic> {
    let read = sources
        .iter()
        .map(|(name, text)| entity::parse_documents(name, text));
    let read: Vec<_> = read.collect();
    let folder = Folder::of(read.iter().flatten().flatten());
    let mut found = Vec::new();
    for file in read {
        let entities = match file {
            Ok(entities) => entities,
            Err(faults) => {
                found.extend(faults);
                continue;
            }
        };
        for entity in entities {
            let links = slipway_plan::template::links(&entity, &scope_of(&entity), &folder).found;
            found.extend(entity.warnings);
            // Templates of a server are not known here.
            found.extend(links.into_iter().filter(|one| one.code != Code::NotFound));
        }
    }
    found
}

/// Where an entity says that it lives, in an account without a name.
fn scope_of(entity: &Parsed) -> Scope {
    Scope {
        account: AccountId::new(""),
        org: entity.head.org.clone(),
        project: entity.head.project.clone(),
    }
}

/// The templates among the files, by their identifiers.
struct Folder(HashMap<EntityId, Vec<(Scope, Arc<Parsed>)>>);

impl Folder {
    fn of<'a>(entities: impl Iterator<Item = &'a Parsed>) -> Self {
        let mut templates: HashMap<_, Vec<_>> = HashMap::new();
        for entity in entities.filter(|entity| entity.head.kind == Kind::Template) {
            let known = templates.entry(entity.head.identifier.clone()).or_default();
            known.push((scope_of(entity), Arc::new(entity.clone())));
        }
        Self(templates)
    }
}

impl Entities for Folder {
    /// A template of the scope that is asked for; files need not say where they live, so that one of any scope
    /// will do where no other is. Without a version the stable one, or the only one.
    fn get(&self, reference: &Reference) -> Option<Found> {
        let (id, version) = match &reference.parent {
            Some(template) => (template, Some(reference.id.as_str())),
            None => (&reference.id, None),
        };
        let all = self.0.get(id)?;
        let here: Vec<_> = all
            .iter()
            .filter(|(scope, _)| *scope == reference.scope)
            .collect();
        let here = if here.is_empty() {
            all.iter().collect()
        } else {
            here
        };
        let is_stable =
            |template: &Parsed| template.body().get_text("stableTemplate") == Some("true");
        let chosen = here.iter().find(|(_, template)| match version {
            Some(version) => template.head.version_label.as_deref() == Some(version),
            None => here.len() == 1 || is_stable(template),
        });
        chosen.map(|(_, template)| Found::Entity(template.clone()))
    }

    fn files(&self, _wanted: &RemoteFiles) -> Option<Result<Fetched, String>> {
        None
    }
}

fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// A SARIF 2.1.0 log of one run (docs.oasis-open.org, *Static Analysis Results Interchange Format*).
fn sarif(found: &[Diagnostic]) -> Value {
    let code = |one: &Diagnostic| serde_json::to_value(one.code).unwrap_or_default();
    let mut rules: Vec<String> = found
        .iter()
        .filter_map(|one| code(one).as_str().map(str::to_owned))
        .collect();
    rules.sort();
    rules.dedup();
    let rules: Vec<Value> = rules.iter().map(|id| json!({ "id": id })).collect();
    let results: Vec<Value> = found
        .iter()
        .map(|one| {
            let level = match one.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            json!({
                "ruleId": code(one),
                "level": level,
                "message": { "text": text(one) },
                "locations": [{ "physicalLocation": {
                    "artifactLocation": { "uri": one.file },
                    "region": { "startLine": one.line.max(1), "startColumn": one.column.max(1) },
                }}],
            })
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "slipway",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// The message with the path, what was expected and the nearest name.
fn text(one: &Diagnostic) -> String {
    let mut text = match one.path.as_str() {
        "" => one.message.clone(),
        path => format!("{path}: {}", one.message),
    };
    if let Some(expected) = &one.expected {
        text.push_str("; expected ");
        text.push_str(expected);
    }
    if let Some(name) = &one.suggestion {
        text.push_str(&format!("; did you mean `{name}`?"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{diagnostics, sarif};

    fn files(sources: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = sources
            .iter()
            .map(|(name, text)| ((*name).into(), (*text).into()));
        owned.collect()
    }

    #[test]
    fn what_templates_are_given_is_checked_where_they_are_at_hand() {
        let template = "template: {identifier: say, name: Say, versionLabel: v1, type: Step, spec: {
  type: ShellScript, timeout: <+input>.default(10m), spec: {shell: '<+input>.allowedValues(Bash,PowerShell)', onDelegate: true,
    source: {type: Inline, spec: {script: <+input>}}}}}";
        let link = |version: &str, inputs: &str| {
            format!("pipeline: {{identifier: p, name: P, stages: [{{stage: {{identifier: s, name: S, type: Custom, spec: {{execution: {{steps: [
  {{step: {{identifier: a, name: A, template: {{templateRef: say, versionLabel: {version}, templateInputs: {inputs}}}}}}}]}}}}}}}}]}}")
        };
        let told = |pipeline: &str| {
            let found = diagnostics(&files(&[("p.yaml", pipeline), ("t.yaml", template)]));
            let lines = found
                .iter()
                .map(|one| format!("{:?} {one}\n", one.severity));
            lines.collect::<String>()
        };
        let lacks = told(&link("v1", "{type: ShellScript, spec: {shell: Bash}}"));
        assert_eq!(
            lacks,
            "Warning p.yaml:2:98: pipeline.stages[0].stage.spec.execution.steps[0].step.template.templateInputs: \
             the template `say` asks for `spec.source.spec.script`, which `templateInputs` does not give: a run is \
             refused without it\n"
        );
        let wrong = "{type: ShellScript, spec: {shell: Zsh, sauce: x, source: {type: Inline, spec: {script: 'true'}}}}";
        let wrong = told(&link("v1", wrong));
        assert_eq!(wrong.matches("Error ").count(), 3, "{wrong}");
        assert!(
            wrong.contains("`Zsh` is not allowed here; expected one of Bash, PowerShell"),
            "{wrong}"
        );
        assert!(wrong.contains("`sauce` is no runtime input"), "{wrong}");
        // Given when the pipeline runs; a version that only a server may have.
        assert_eq!(told(&link("v1", "<+input>")), "");
        assert_eq!(told(&link("v2", "{}")), "");
    }

    #[test]
    fn a_sarif_log_has_rule_place_and_advice() {
        let found = diagnostics(&files(&[(
            "a.yaml",
            "service:\n  name: a\n  identifer: a\n",
        )]));
        let log = sarif(&found);
        let results = &log["runs"][0]["results"];
        let typo = results
            .as_array()
            .into_iter()
            .flatten()
            .find(|result| result["ruleId"] == "UNKNOWN_FIELD")
            .expect("the misspelt field");
        let place = &typo["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "a.yaml");
        assert_eq!(place["region"]["startLine"], 3);
        let text = typo["message"]["text"].as_str().unwrap_or_default();
        assert!(text.contains("did you mean `identifier`?"), "{text}");
        assert_eq!(log["version"], "2.1.0");
    }
}
