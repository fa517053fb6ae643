//! `slipway get` and `slipway list`: where each kind is found and how it is shown.

use serde_json::{Value, json};
use slipway_clock::Clock;

use crate::args::{Format, GetArgs, Kind, ListArgs};
use crate::client::{Body, Client};
use crate::commands::{graph, tree};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{self, Column};

/// Where the REST API keeps a kind, and which columns people want to see of it.
struct Place {
    path: &'static str,
    /// Key that wraps the entity in an answer; empty where there is none.
    wrapper: &'static str,
    columns: &'static [Column],
}

const NAMED: &[Column] = &[("IDENTIFIER", "/identifier"), ("NAME", "/name")];
const TYPED: &[Column] = &[
    ("IDENTIFIER", "/identifier"),
    ("NAME", "/name"),
    ("TYPE", "/type"),
];
const SETS: &[Column] = &[
    ("IDENTIFIER", "/identifier"),
    ("NAME", "/name"),
    ("TYPE", "/inputSetType"),
    ("OUTDATED", "/outdated"),
];
const TEMPLATES: &[Column] = &[
    ("IDENTIFIER", "/identifier"),
    ("VERSION", "/versionLabel"),
    ("TYPE", "/templateEntityType"),
    ("STABLE", "/stableTemplate"),
    ("NAME", "/name"),
];
const OVERRIDES: &[Column] = &[
    ("IDENTIFIER", "/identifier"),
    ("TYPE", "/type"),
    ("ENVIRONMENT", "/environmentRef"),
    ("SERVICE", "/serviceRef"),
    ("INFRASTRUCTURE", "/infraIdentifier"),
];
const VARIABLES: &[Column] = &[
    ("IDENTIFIER", "/identifier"),
    ("NAME", "/name"),
    ("VALUE", "/spec/fixedValue"),
];
const FILES: &[Column] = &[
    ("IDENTIFIER", "/identifier"),
    ("TYPE", "/type"),
    ("PATH", "/path"),
    ("USAGE", "/fileUsage"),
];
const TRIGGERS: &[Column] = &[
    ("IDENTIFIER", "/identifier"),
    ("NAME", "/name"),
    ("TYPE", "/type"),
    ("ENABLED", "/enabled"),
];
const FREEZES: &[Column] = &[
    ("IDENTIFIER", "/identifier"),
    ("NAME", "/name"),
    ("STATUS", "/status"),
    ("SCOPE", "/freezeScope"),
];
const PIPELINES: &[Column] = &[
    ("IDENTIFIER", "/identifier"),
    ("NAME", "/name"),
    ("STAGES", "/numOfStages"),
    ("LAST RUN", "/executionSummaryInfo/lastExecutionStatus"),
    ("AT", "@/executionSummaryInfo/lastExecutionTs"),
];
const RUNS: &[Column] = &[
    ("RUN", "/planExecutionId"),
    ("PIPELINE", "/pipelineIdentifier"),
    ("NO", "/runSequence"),
    ("STATUS", "/status"),
    ("STARTED", "@/startTs"),
    ("ENDED", "@/endTs"),
    ("BY", "/executionTriggerInfo/triggeredBy/identifier"),
    ("NOTES", "/notes"),
    ("WARNING", "/warnings/0/message"),
    ("REASON", "/failureInfo/message"),
];
const INSTANCES: &[Column] = &[
    ("SERVICE", "/service"),
    ("ENVIRONMENT", "/environment"),
    ("INFRASTRUCTURE", "/infrastructure"),
    ("INSTANCE", "/key"),
    ("ARTIFACT", "/artifact"),
    ("RUN", "/run"),
    ("SEEN", "@/seen_ms"),
];

fn place(kind: Kind) -> Place {
    let at = |path, wrapper, columns| Place {
        path,
        wrapper,
        columns,
    };
    match kind {
        Kind::Organization => at("/ng/api/organizations", "organization", NAMED),
        Kind::Project => at("/ng/api/projects", "project", NAMED),
        Kind::Service => at("/ng/api/servicesV2", "service", NAMED),
        Kind::Environment => at("/ng/api/environmentsV2", "environment", TYPED),
        Kind::Infrastructure => at("/ng/api/infrastructures", "infrastructure", TYPED),
        Kind::Connector => at("/ng/api/connectors", "connector", TYPED),
        Kind::Secret => at("/ng/api/v2/secrets", "secret", TYPED),
        Kind::Pipeline => at("/pipeline/api/pipelines", "", PIPELINES),
        Kind::InputSet => at("/pipeline/api/inputSets", "", SETS),
        Kind::Overlay => at("/pipeline/api/inputSets/overlay", "", SETS),
        Kind::Template => at("/template/api/templates", "", TEMPLATES),
        Kind::EnvironmentGroup => at("/ng/api/environmentGroup", "envGroup", NAMED),
        Kind::Overrides => at("/ng/api/serviceOverrides", "", OVERRIDES),
        Kind::Variable => at("/ng/api/variables", "variable", VARIABLES),
        Kind::File => at("/ng/api/file-store", "", FILES),
        Kind::Trigger => at("/pipeline/api/triggers", "", TRIGGERS),
        Kind::Freeze => at("/ng/api/freeze", "", FREEZES),
        Kind::UserGroup => at("/ng/api/user-groups", "", NAMED),
        Kind::Run => at("/pipeline/api/pipelines/execution", "", RUNS),
        Kind::Instance => at("/slipway/api/instances", "", INSTANCES),
    }
}

/// What is listed of most kinds where nobody says how much.
const MOST_LISTED: u32 = 50;

/// Instances that are asked for at once.
const PAGE: usize = 200;

/// `slipway list`.
pub async fn list(
    client: &Client,
    format: Option<Format>,
    args: &ListArgs,
) -> Result<Exit, CliError> {
    let place = place(args.kind);
    if args.kind == Kind::Instance {
        let owner = owner(args.kind, args.environment.as_deref(), None)?;
        let rows = instances(client, place.path, &owner, args.limit).await?;
        output::rows(format, place.columns, &rows)?;
        return Ok(Exit::Succeeded);
    }
    let most = args.limit.unwrap_or(MOST_LISTED);
    let limit = most.to_string();
    let mut query = vec![("size", limit.as_str()), ("pageSize", limit.as_str())];
    query.extend(owner(
        args.kind,
        args.environment.as_deref(),
        args.pipeline.as_deref(),
    )?);
    let answer = match args.kind {
        Kind::Pipeline => {
            post(
                client,
                "/pipeline/api/pipelines/list",
                &query,
                "PipelineSetup",
            )
            .await?
        }
        Kind::Run => {
            let path = "/pipeline/api/pipelines/execution/summary";
            post(client, path, &query, "PipelineExecution").await?
        }
        Kind::Template => {
            query.push(("templateListType", "All"));
            let path = "/template/api/templates/list";
            post(client, path, &query, "Template").await?
        }
        Kind::Freeze => post(client, "/ng/api/freeze/list", &query, "FreezeSetup").await?,
        Kind::Overlay => {
            query.push(("inputSetType", "OVERLAY_INPUT_SET"));
            client.get("/pipeline/api/inputSets", &query).await?
        }
        _ => client.get(place.path, &query).await?,
    };
    let content = answer
        .pointer("/data/content")
        .or_else(|| answer.pointer("/data"));
    let content = content
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let rows: Vec<Value> = content
        .into_iter()
        .take(most as usize)
        .map(|row| unwrap(row, place.wrapper))
        .collect();
    output::rows(format, place.columns, &rows)?;
    if let Some(total) = more_than(rows.len(), &answer) {
        anstream::eprintln!(
            "note: these are {} of {total}: `--limit` says how many are listed",
            rows.len()
        );
    }
    Ok(Exit::Succeeded)
}

/// How many there are in all, where an answer has more than these.
fn more_than(listed: usize, answer: &Value) -> Option<u64> {
    let data = answer.get("data")?;
    let total = data.get("totalElements").or_else(|| data.get("totalItems"));
    total?.as_u64().filter(|total| *total > listed as u64)
}

/// All instances that are counted, page by page, or so many; those of `owner` where it names an environment.
async fn instances(
    client: &Client,
    path: &str,
    owner: &[(&str, &str)],
    limit: Option<u32>,
) -> Result<Vec<Value>, CliError> {
    let most = limit.map_or(usize::MAX, |limit| limit as usize);
    let mut rows: Vec<Value> = Vec::new();
    for page in 0u32.. {
        let (page, size) = (page.to_string(), PAGE.to_string());
        let mut query = vec![("page", page.as_str()), ("size", size.as_str())];
        query.extend(owner);
        let answer = client.get(path, &query).await?;
        let content = answer.pointer("/data/content").and_then(Value::as_array);
        let found = content.cloned().unwrap_or_default();
        let last = found.len() < PAGE;
        rows.extend(found);
        if last || rows.len() >= most {
            break;
        }
    }
    rows.truncate(most);
    Ok(rows)
}

/// `slipway get`: the YAML of an entity for people, everything for programs.
pub async fn get(
    client: &Client,
    format: Option<Format>,
    args: &GetArgs,
) -> Result<Exit, CliError> {
    let place = place(args.kind);
    if args.kind == Kind::Instance {
        return Err(CliError::Usage(
            "an instance has no page of its own: use `slipway list instance`".to_owned(),
        ));
    }
    let mut query = owner(
        args.kind,
        args.environment.as_deref(),
        args.pipeline.as_deref(),
    )?;
    query.extend(
        args.version_label
            .as_deref()
            .map(|label| ("versionLabel", label)),
    );
    query.extend(args.branch.as_deref().map(|branch| ("branch", branch)));
    let path = match args.kind {
        Kind::Run => format!("{}/v2/{}", place.path, segment(&args.id)),
        _ => format!("{}/{}", place.path, segment(&args.id)),
    };
    let answer = client.get(&path, &query).await?;
    let data = answer.get("data").cloned().unwrap_or(Value::Null);
    let row = match args.kind {
        Kind::Run => data["pipelineExecutionSummary"].clone(),
        _ => unwrap(data, place.wrapper),
    };
    let yaml = [
        "yaml",
        "yamlPipeline",
        "inputSetYaml",
        "overlayInputSetYaml",
    ];
    let yaml = yaml.iter().find_map(|field| row[field].as_str());
    match (output::format(format), yaml) {
        (Format::Table, Some(yaml)) => output::line(output::visible(yaml).trim_end())?,
        (Format::Table, None) if args.kind == Kind::Run => {
            output::one(format, place.columns, &row)?;
            let run = graph::fetch(client, &args.id).await?;
            for line in tree::told(&run, Clock::system().now_ms()) {
                output::line(&line)?;
            }
        }
        _ => output::one(format, place.columns, &row)?,
    }
    Ok(Exit::Succeeded)
}

/// An identifier as a path segment.
pub fn segment(id: &str) -> String {
    let keep = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'$');
    id.bytes()
        .map(|b| {
            if keep(b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}

/// What an entity belongs to, as the query names it; refused where it is needed and not given.
fn owner<'a>(
    kind: Kind,
    environment: Option<&'a str>,
    pipeline: Option<&'a str>,
) -> Result<Vec<(&'static str, &'a str)>, CliError> {
    let wanted = |what: &str, option: &str| {
        Err(CliError::Usage(format!(
            "{what} belong to {option}: give --{option}"
        )))
    };
    match (kind, environment, pipeline) {
        (Kind::Infrastructure, None, _) => wanted("infrastructures", "environment"),
        (Kind::InputSet | Kind::Overlay, _, None) => wanted("input sets", "pipeline"),
        (Kind::Trigger, _, None) => wanted("triggers", "pipeline"),
        (Kind::Trigger, _, Some(id)) => Ok(vec![("targetIdentifier", id)]),
        _ => {
            let environment = environment.map(|id| ("environmentIdentifier", id));
            let pipeline = pipeline.map(|id| ("pipelineIdentifier", id));
            Ok(environment.into_iter().chain(pipeline).collect())
        }
    }
}

async fn post(
    client: &Client,
    path: &str,
    query: &[(&str, &str)],
    filter: &str,
) -> Result<Value, CliError> {
    let body = Body::Json(json!({ "filterType": filter }));
    client.call(reqwest::Method::POST, path, query, body).await
}

fn unwrap(mut row: Value, wrapper: &str) -> Value {
    match row.get_mut(wrapper) {
        Some(inner) if !wrapper.is_empty() => inner.take(),
        _ => row,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use axum::extract::Query;
    use axum::routing::get;
    use axum::{Json, Router};
    use clap::{CommandFactory as _, Parser as _};
    use serde_json::{Value, json};

    use super::{Kind, instances, more_than, owner, segment};
    use crate::args::Cli;
    use crate::client::Client;

    /// A service with so many instances, in pages as the API cuts them.
    async fn service_with(count: usize) -> Client {
        let page = async move |Query(query): Query<HashMap<String, String>>| {
            let number = |name: &str| query[name].parse::<usize>().expect("a number");
            let (page, size) = (number("page"), number("size"));
            // Of the environment `one` there is one only.
            let count = match query.get("environmentIdentifier").map(String::as_str) {
                Some("one") => count.min(1),
                _ => count,
            };
            let keys = (0..count).skip(page * size).take(size);
            let content: Vec<Value> = keys.map(|key| json!({"key": key})).collect();
            Json(json!({"status": "SUCCESS", "data": {"content": content, "totalItems": count}}))
        };
        let router = Router::new().route("/slipway/api/instances", get(page));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let cli = Cli::parse_from([
            "slipway",
            "list",
            "instances",
            "--url",
            &url,
            "--token",
            "pat.acme.id.secret",
        ]);
        Client::new(&cli.connection).expect("a client")
    }

    #[tokio::test]
    async fn instances_are_listed_to_the_last_one() {
        for (there, limit, expected) in [
            (0, None, 0),
            (51, None, 51),
            (200, None, 200),
            (450, None, 450),
            (450, Some(7), 7),
            (450, Some(300), 300),
        ] {
            let client = service_with(there).await;
            let path = "/slipway/api/instances";
            let rows = instances(&client, path, &[], limit).await;
            let rows = rows.expect("a list");
            let keys: Vec<u64> = rows.iter().filter_map(|row| row["key"].as_u64()).collect();
            let all: Vec<u64> = (0..expected).collect();
            assert_eq!(keys, all, "{there} instances, limit {limit:?}");
            let owner = [("environmentIdentifier", "one")];
            let rows = instances(&client, path, &owner, limit).await;
            assert_eq!(rows.expect("a list").len(), there.min(1));
        }
    }

    #[test]
    fn what_a_list_leaves_out_is_told() {
        for (listed, data, more) in [
            (50, json!({"totalElements": 51}), Some(51)),
            (50, json!({"totalElements": 50}), None),
            (2, json!({"totalItems": 3}), Some(3)),
            (2, json!([1, 2]), None),
        ] {
            assert_eq!(more_than(listed, &json!({"data": data})), more, "{data}");
        }
    }

    #[test]
    fn no_option_stands_for_two_things() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_belongs_to_something_asks_for_it() {
        for (kind, environment, pipeline, expected) in [
            (Kind::Service, None, None, Some("")),
            (Kind::Infrastructure, None, None, None),
            (
                Kind::Infrastructure,
                Some("e"),
                None,
                Some("environmentIdentifier=e"),
            ),
            (Kind::InputSet, Some("e"), None, None),
            (
                Kind::InputSet,
                None,
                Some("p"),
                Some("pipelineIdentifier=p"),
            ),
            (Kind::Trigger, None, None, None),
            (Kind::Trigger, None, Some("p"), Some("targetIdentifier=p")),
            (Kind::Run, None, Some("p"), Some("pipelineIdentifier=p")),
        ] {
            let query = owner(kind, environment, pipeline).ok();
            let query = query.map(|query| {
                let pairs: Vec<_> = query.iter().map(|(k, v)| format!("{k}={v}")).collect();
                pairs.join("&")
            });
            assert_eq!(query.as_deref(), expected, "{kind:?}");
        }
    }

    #[test]
    fn an_identifier_cannot_leave_its_path_segment() {
        assert_eq!(segment("web-1"), "web-1");
        assert_eq!(segment("../a?b"), "..%2Fa%3Fb");
    }
}
