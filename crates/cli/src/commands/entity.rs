//! `slipway get` and `slipway list`: where each kind is found and how it is shown.

use serde_json::{Value, json};

use crate::args::{Format, GetArgs, Kind, ListArgs};
use crate::client::{Body, Client};
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
        Kind::Run => at("/pipeline/api/pipelines/execution", "", RUNS),
        Kind::Instance => at("/slipway/api/instances", "", INSTANCES),
    }
}

/// `slipway list`.
pub async fn list(
    client: &Client,
    format: Option<Format>,
    args: &ListArgs,
) -> Result<Exit, CliError> {
    let place = place(args.kind);
    let limit = args.limit.to_string();
    let mut query = vec![("size", limit.as_str()), ("pageSize", limit.as_str())];
    query.extend(environment(args.kind, args.environment.as_deref())?);
    query.extend(
        args.pipeline
            .as_deref()
            .map(|id| ("pipelineIdentifier", id)),
    );
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
        .take(args.limit as usize)
        .map(|row| unwrap(row, place.wrapper))
        .collect();
    output::rows(format, place.columns, &rows)?;
    Ok(Exit::Succeeded)
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
    let query = environment(args.kind, args.environment.as_deref())?;
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
    let yaml = row["yaml"]
        .as_str()
        .or_else(|| row["yamlPipeline"].as_str());
    match (output::format(format), yaml) {
        (Format::Table, Some(yaml)) => output::line(output::visible(yaml).trim_end())?,
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

fn environment(
    kind: Kind,
    environment: Option<&str>,
) -> Result<Vec<(&'static str, &str)>, CliError> {
    match (kind, environment) {
        (Kind::Infrastructure, None) => Err(CliError::Usage(
            "infrastructures belong to an environment: give --environment".to_owned(),
        )),
        (_, given) => Ok(given
            .map(|id| ("environmentIdentifier", id))
            .into_iter()
            .collect()),
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
    use super::segment;

    #[test]
    fn an_identifier_cannot_leave_its_path_segment() {
        assert_eq!(segment("web-1"), "web-1");
        assert_eq!(segment("../a?b"), "..%2Fa%3Fb");
    }
}
