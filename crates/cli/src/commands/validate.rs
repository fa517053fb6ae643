//! `slipway validate`: what the language says of files, without a server.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::IsTerminal;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_clock::Clock;
use slipway_engine::written;
use slipway_model::freeze;
use slipway_model::id::{AccountId, EntityId, Scope};
use slipway_model::render::render;
use slipway_model::{Code, Diagnostic, Kind, Parsed, Severity, entity};
use slipway_plan::{Entities, Fetched, Found, Reference, RemoteFiles};
use slipway_steps::registry::STEP_TYPES;
use slipway_trigger::draft;

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
    let found = diagnostics(&sources, Clock::system().now());
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

/// Everything that is wrong with the files, in their order: of each document, of what it gives to templates that are
/// among the files, and what a run of it would be refused for.
fn diagnostics(sources: &[(String, String)], now: Timestamp) -> Vec<Diagnostic> {
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
            let scope = scope_of(&entity);
            let links = slipway_plan::template::links(&entity, &scope, &folder).found;
            let of_runs = written::faults(&entity, &scope, &folder, &STEP_TYPES);
            let over = freeze::over(&entity, now);
            let of_triggers = draft::faults(&entity, now.as_millisecond());
            found.extend(entity.warnings);
            // Templates of a server are not known here.
            found.extend(links.into_iter().filter(|one| one.code != Code::NotFound));
            found.extend(of_runs);
            found.extend(over);
            found.extend(of_triggers);
        }
    }
    once_each(found)
}

/// A fault of a template is found in itself and wherever it is used, and one that two rules see is told by the first.
fn once_each(mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    found.retain(|one| {
        let place = (one.file.clone(), one.line, one.column);
        seen.insert((place, one.message.clone()))
    });
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

/// The entities among the files: templates by their identifiers, and others by how they are referred to.
struct Folder {
    templates: HashMap<EntityId, Vec<(Scope, Arc<Parsed>)>>,
    others: HashMap<Reference, Arc<Parsed>>,
}

impl Folder {
    fn of<'a>(entities: impl Iterator<Item = &'a Parsed>) -> Self {
        let mut templates: HashMap<_, Vec<_>> = HashMap::new();
        let mut others = HashMap::new();
        for entity in entities {
            let shared = Arc::new(entity.clone());
            if entity.head.kind == Kind::Template {
                let known = templates.entry(entity.head.identifier.clone()).or_default();
                known.push((scope_of(entity), shared));
            } else {
                others.insert(Reference::of(entity, scope_of(entity)), shared);
            }
        }
        Self { templates, others }
    }
}

impl Entities for Folder {
    /// A template of the scope that is asked for; files need not say where they live, so that one of any scope
    /// will do where no other is. Without a version the stable one, or the only one. Of other kinds, one that lives where
    /// it is looked for, or does not say where it lives.
    fn get(&self, reference: &Reference) -> Option<Found> {
        if reference.kind != Kind::Template.key() {
            let anywhere = || Reference {
                scope: Scope {
                    account: reference.scope.account.clone(),
                    org: None,
                    project: None,
                },
                ..reference.clone()
            };
            let found = self.others.get(reference);
            let found = found.or_else(|| self.others.get(&anywhere()));
            return found.map(|entity| Found::Entity(Arc::clone(entity)));
        }
        let (id, version) = match &reference.parent {
            Some(template) => (template, Some(reference.id.as_str())),
            None => (&reference.id, None),
        };
        let all = self.templates.get(id)?;
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
    use jiff::Timestamp;
    use slipway_model::{Diagnostic, Severity};

    use super::{sarif, text};

    fn files(sources: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = sources
            .iter()
            .map(|(name, text)| ((*name).into(), (*text).into()));
        owned.collect()
    }

    fn diagnostics(sources: &[(String, String)]) -> Vec<Diagnostic> {
        super::diagnostics(sources, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_freeze_is_judged_as_by_the_server() {
        let rules = "entityConfigs: [{name: r, entities: [{type: Service, filterType: All}]}]";
        let told = |zone: &str, now: &str| {
            let window = format!("timeZone: {zone}, startTime: 2026-01-01 10:00 AM, duration: 1h");
            let yaml = format!(
                "freeze: {{identifier: f, name: F, status: Enabled, {rules},\n windows: [{{{window}}}]}}"
            );
            let now = now.parse().expect("a time");
            let found = super::diagnostics(&files(&[("f.yaml", &yaml)]), now);
            let lines = found
                .iter()
                .map(|one| format!("{}: {}", one.line, text(one)));
            lines.collect::<Vec<_>>().join("\n")
        };
        let wrong = told("Europe/Berln", "2026-01-01T09:00:00Z");
        assert!(wrong.starts_with("2: freeze.windows[0].timeZone: `Europe/Berln` is"));
        assert!(wrong.ends_with("did you mean `Europe/Berlin`?"), "{wrong}");
        assert_eq!(told("UTC", "2026-01-01T09:00:00Z"), "");
        assert!(told("UTC", "2026-01-01T11:00:00Z").contains("this window is over"));
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

    /// What is wrong with a step of a pipeline with the barrier `gate`; ` WARN` behind what is only a warning.
    fn of_step(step: &str) -> Vec<String> {
        let pipeline = "pipeline: {identifier: p, name: P, flowControl: {barriers: [{identifier: gate, name: Gate}]}, stages: [{stage: {identifier: s, name: S, type: Custom, spec: {execution: {steps: [
  {step: {identifier: a, name: A, STEP}}]}}}}]}";
        let pipeline = pipeline.replace("STEP", step);
        let found = diagnostics(&files(&[("p.yaml", &pipeline)]));
        let told = found.iter().map(|one| {
            let path = one.path.rsplit_once(".step.").map_or("", |(_, path)| path);
            let warns = if one.severity == Severity::Warning {
                " WARN"
            } else {
                ""
            };
            assert_eq!(one.line, 2, "{one}");
            format!(
                "{path}: {}{warns}",
                text(one)
                    .rsplit_once(&format!("{}: ", one.path))
                    .map_or_else(|| text(one), |(_, rest)| rest.to_owned())
            )
        });
        told.collect()
    }

    #[test]
    fn what_a_run_would_refuse_is_told_before_it() {
        let approval = |rest: &str| {
            format!(
                "type: HarnessApproval, spec: {{includePipelineExecutionHistory: true, {rest}}}"
            )
        };
        let approvers = |count: &str| {
            approval(&format!(
                "approvers: {{minimumCount: {count}, disallowPipelineExecutor: false, userGroups: [ops]}}"
            ))
        };
        let inputs = |inputs: &str| {
            approval(&format!(
                "approvers: {{minimumCount: 1, disallowPipelineExecutor: false, userGroups: [ops]}}, approverInputs: [{inputs}]"
            ))
        };
        let wait = |rest: &str| format!("type: Wait, {rest}, spec: {{duration: 1m}}");
        let retry = |spec: &str| {
            wait(&format!(
                "failureStrategies: [{{onFailure: {{errors: [AllErrors], action: {{type: Retry, spec: {spec}}}}}}}]"
            ))
        };
        let table: &[(String, &[&str])] = &[
            (approvers("1"), &[]),
            (approvers("<+input>"), &[]),
            (
                approvers("0"),
                &["spec.approvers.minimumCount: expected a whole number from 1 to 1000"],
            ),
            (
                approval(
                    "approvers: {minimumCount: 1, disallowPipelineExecutor: false, userGroups: []}",
                ),
                &["spec.approvers: nobody may answer; name user groups or service accounts"],
            ),
            (
                inputs("{name: a, selectOneFrom: 'x,y', defaultValue: <+input>}"),
                &[],
            ),
            (
                inputs("{name: a, selectOneFrom: 'x,y', defaultValue: z}"),
                &["spec.approverInputs[0]: its default `z` is not accepted: `a` is one of x,y"],
            ),
            (
                inputs("{name: a, selectOneFrom: 'x,y', regex: x}"),
                &[
                    "spec.approverInputs[0]: an item of `approverInputs` may have only one of these fields; expected allowedValues or selectOneFrom or selectManyFrom or regex",
                ],
            ),
            (
                inputs("{name: a}, {name: a}"),
                &["spec.approverInputs[0]: another input has this name"],
            ),
            ("type: Queue, spec: {key: k, scope: Stage}".to_owned(), &[]),
            (
                "type: Queue, spec: {key: ' ', scope: Stage}".to_owned(),
                &["spec.key: expected 1 to 512 characters"],
            ),
            (
                "type: Queue, spec: {key: k, scope: Stages}".to_owned(),
                &[
                    "spec.scope: `Stages` is not accepted here; expected one of Pipeline, Stage; did you mean `Stage`?",
                ],
            ),
            (
                "type: Barrier, spec: {barrierRef: gat}".to_owned(),
                &[
                    "spec.barrierRef: the barrier `gat` is not in the pipeline's `flowControl`; did you mean `gate`?",
                ],
            ),
            (
                "type: EcsScale, spec: {service: a, instanceUnit: Percent, instances: -1, connectorRef: c, region: r, cluster: x}".to_owned(),
                &[
                    "spec.instanceUnit: `instanceUnit` must be Count or Percentage",
                    "spec.instances: `instances` must be a whole number from 0",
                ],
            ),
            (
                "type: Http, spec: {url: 'ftp://x', method: GET}".to_owned(),
                &["spec.url: `ftp` is not supported; use http or https"],
            ),
            (
                "type: Http, spec: {url: 'https://example.com', method: GET, certificate: c}"
                    .to_owned(),
                &[
                    "spec.certificate: it is not supported by this version yet; requests are sent without a certificate of the client",
                ],
            ),
            (
                retry("{retryCount: <+input>, retryIntervals: ['<+input>']}"),
                &[],
            ),
            (
                retry("{retryCount: 2147483648, retryIntervals: [10s]}"),
                &[
                    "failureStrategies[0].onFailure.action.spec.retryCount: `2147483648` is not accepted here; expected a whole number from 0 to 100",
                ],
            ),
            (
                retry("{retryCount: 0, retryIntervals: [10s]}"),
                &[
                    "failureStrategies[0].onFailure.action.spec.retryCount: `retryCount` must be a number from 1 to 100",
                ],
            ),
            (
                wait(
                    "failureStrategies: [{onFailure: {errors: [AllErrors], action: {type: RetryStepGroup, spec: {retryCount: 1, retryIntervals: [10s]}}}}]",
                ),
                &[
                    "failureStrategies[0].onFailure.action: `RetryStepGroup` is an action of a step group's failure strategy",
                ],
            ),
            (
                wait("strategy: {repeat: {times: 1000000000}}"),
                &[
                    "strategy.repeat.times: the looping `strategy` of step `a`: 1000000000 turns; a loop has at most 256",
                ],
            ),
            (
                wait("timeout: 30s"),
                &[
                    "spec.duration: a wait of 1m does not end within the timeout of its step, 30s: it will expire; expected a longer `timeout` of the step WARN",
                ],
            ),
            (
                wait("timeout: 0s"),
                &[
                    "timeout: `0s` is out of range: from 1 second to 53 weeks; expected a duration of whole numbers with units w, d, h, m or s, such as `30s`, `10m`, `1h 30m` or `2d`",
                ],
            ),
            (
                wait("timeout: 0.5s"),
                &[
                    "timeout: `0.5s` is no duration; expected a duration of whole numbers with units w, d, h, m or s, such as `30s`, `10m`, `1h 30m` or `2d`",
                ],
            ),
            (
                wait("timeout: -1m"),
                &[
                    "timeout: `-1m` is no duration; expected a duration of whole numbers with units w, d, h, m or s, such as `30s`, `10m`, `1h 30m` or `2d`",
                ],
            ),
            (
                "type: Email, spec: {to: a@b.c, subject: s}".to_owned(),
                &["type: the type `Email` of step `a` is not supported by this version yet WARN"],
            ),
        ];
        for (step, expected) in table {
            assert_eq!(of_step(step), *expected, "{step}");
        }
    }

    #[test]
    fn more_approvals_than_people_are_told_where_the_groups_are_at_hand() {
        let pipeline = |count: u32, groups: &str| {
            format!(
                "pipeline: {{identifier: p, name: P, stages: [{{stage: {{identifier: s, name: S, type: Approval, spec: {{execution: {{steps: [
  {{step: {{identifier: a, name: A, type: HarnessApproval, spec: {{includePipelineExecutionHistory: true,
    approvers: {{minimumCount: {count}, disallowPipelineExecutor: false, userGroups: [{groups}]}}}}}}}}]}}}}}}}}]}}"
            )
        };
        let group = |id: &str, users: &str| {
            format!("userGroup: {{identifier: {id}, name: G, users: [{users}]}}")
        };
        let (ops, leads) = (group("ops", "ann, bob"), group("leads", "Bob, eve"));
        let told = |pipeline: &str| {
            let found = diagnostics(&files(&[
                ("p.yaml", pipeline),
                ("o.yaml", &ops),
                ("l.yaml", &leads),
            ]));
            let lines = found
                .iter()
                .map(|one| format!("{:?} {}\n", one.severity, one.message));
            lines.collect::<String>()
        };
        assert_eq!(told(&pipeline(3, "ops, account.leads")), "");
        assert_eq!(
            told(&pipeline(4, "ops, account.leads")),
            "Warning 4 people must approve, and the user groups have 3 members in all: nobody else may\n"
        );
        assert_eq!(told(&pipeline(4, "ops, elsewhere")), "");
        assert_eq!(told(&pipeline(4, "ops, <+input>")), "");
    }

    #[test]
    fn pipelines_that_run_one_another_are_told_where_they_are_at_hand() {
        let stage = |pipeline: &str| {
            format!(
                "{{stage: {{identifier: s, name: S, type: Pipeline, spec: {{org: default, project: shop, pipeline: {pipeline}}}}}}}"
            )
        };
        let pipeline = |id: &str, stage: &str| {
            format!(
                "pipeline: {{identifier: {id}, name: {id}, orgIdentifier: default, projectIdentifier: shop, stages: [{stage}]}}"
            )
        };
        let told = |sources: &[(&str, &str)]| {
            let found = diagnostics(&files(sources));
            let lines = found
                .iter()
                .map(|one| format!("{}: {}\n", one.file, one.message));
            lines.collect::<String>()
        };
        let (a, b) = (pipeline("a", &stage("b")), pipeline("b", &stage("a")));
        assert_eq!(
            told(&[("a.yaml", &a), ("b.yaml", &b)]),
            "a.yaml: the pipeline `b` runs other pipelines itself, and cannot be run as a stage: only one level of chaining is possible\n\
             b.yaml: the pipeline `a` runs other pipelines itself, and cannot be run as a stage: only one level of chaining is possible\n"
        );
        let itself = pipeline("b", &stage("b"));
        assert_eq!(
            told(&[("a.yaml", &itself)]),
            "a.yaml: the pipeline `b` cannot run itself as one of its stages\n"
        );
        // One that only a server may have.
        assert_eq!(told(&[("a.yaml", &a)]), "");
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
