//! `slipway validate`: what the language says of files, without a server.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use serde_json::{Value, json};
use slipway_model::render::render;
use slipway_model::{Diagnostic, Severity, entity};

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
    let found: Vec<Diagnostic> = sources
        .iter()
        .flat_map(|(name, text)| diagnostics(name, text))
        .collect();
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

/// Everything that is wrong with a file.
fn diagnostics(name: &str, text: &str) -> Vec<Diagnostic> {
    match entity::parse_documents(name, text) {
        Ok(entities) => entities
            .into_iter()
            .flat_map(|entity| entity.warnings)
            .collect(),
        Err(found) => found,
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

    #[test]
    fn a_sarif_log_has_rule_place_and_advice() {
        let found = diagnostics("a.yaml", "service:\n  name: a\n  identifer: a\n");
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
