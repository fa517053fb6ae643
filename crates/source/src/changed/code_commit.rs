//! AWS CodeCommit (docs.aws.amazon.com: *GetDifferences*), by its API, with the keys of the connector.

use serde_json::{Value, json};
use slipway_engine::gather::{Change, WantedChange};
use slipway_model::status::ErrorType;
use slipway_plan::ConnectorPlan;
use slipway_steps::aws::AwsTargets;
use slipway_steps::aws::error::{Doing, failure, is_passing};
use slipway_steps::secrets::Secrets;

use super::place::{self, Place};
use super::{Files, MOST_FILES};
use crate::fault::Fault;

/// Most pages of a list: CodeCommit gives a hundred differences at a time.
const MOST_PAGES: usize = MOST_FILES / 100;

/// A file that was renamed is one that went and one that came.
const NAMES: &[&str] = &["/afterBlob/path", "/beforeBlob/path"];

pub(super) async fn ask(
    targets: &AwsTargets,
    wanted: &WantedChange,
    secrets: &mut Secrets<'_>,
    files: &mut Files,
) -> Result<(), Fault> {
    let Change::Push { before, after } = &wanted.change else {
        return Err(
            "CodeCommit tells of no pull requests: let the trigger listen to pushes"
                .to_owned()
                .into(),
        );
    };
    let place = place::of(&wanted.connector, wanted.repository.as_deref())?;
    let (region, repository) = (region(&place)?, name(&place)?);
    let connector = with_keys(&wanted.connector)?;
    let scope = &wanted.scope;
    let target = targets.target(&connector, &connector.spec, scope, region, secrets);
    let target = target.await?;
    let mut request = json!({
        "repositoryName": repository,
        "beforeCommitSpecifier": before,
        "afterCommitSpecifier": after,
    });
    let doing = format!("compare two commits of CodeCommit's repository {repository} in {region}");
    for _ in 0..MOST_PAGES {
        let answer = target.code_commit.call("GetDifferences", &request).await;
        let answer = answer.map_err(|error| {
            let passing = is_passing(&error);
            let mut fault = Fault::from(failure(Doing::with(&doing), error));
            if passing {
                fault.kind = ErrorType::Connectivity;
            }
            fault
        })?;
        let room = files.take_all(&answer["differences"], NAMES);
        let next = answer["NextToken"].as_str();
        match next.filter(|next| room && !next.is_empty()) {
            Some(next) => request["NextToken"] = json!(next),
            None => return Ok(()),
        }
    }
    files.cut = true;
    Ok(())
}

/// The region of a repository: its host says it (AWS general reference, *Git endpoints*).
fn region(place: &Place) -> Result<&str, String> {
    let name = place.name();
    let hosts = ["git-codecommit.", "git-codecommit-fips."];
    let rest = hosts.iter().find_map(|host| name.strip_prefix(host));
    let region = rest.and_then(|rest| {
        rest.strip_suffix(".amazonaws.com")
            .or(rest.strip_suffix(".amazonaws.com.cn"))
    });
    region.ok_or_else(|| {
        format!(
            "its `url` is not one of CodeCommit, which is \
             https://git-codecommit.REGION.amazonaws.com/v1/repos/NAME, but of {name}"
        )
    })
}

fn name(place: &Place) -> Result<&str, String> {
    let path = place.path.iter().map(String::as_str).collect::<Vec<_>>();
    match path.as_slice() {
        ["v1", "repos", name] | [name] => Ok(name),
        _ => Err("its `url` is not that of one repository of CodeCommit".to_owned()),
    }
}

/// The keys of a connector of CodeCommit, as one of AWS has them.
fn with_keys(connector: &ConnectorPlan) -> Result<ConnectorPlan, String> {
    let way = &connector.spec["authentication"];
    let keys = &way["spec"];
    if way["type"] != "HTTPS" || keys["type"] != "AWSCredentials" {
        return Err(
            "it has no keys of AWS: give it `authentication` of type HTTPS with AWSCredentials"
                .to_owned(),
        );
    }
    let keys: &Value = &keys["spec"];
    // What is busy is asked again by the sweep: an answer that says so is worth more than one that comes too late.
    let backoff = json!({"baseDelay": 500, "maxBackoffTime": 2_000, "retryCount": 3});
    Ok(ConnectorPlan {
        kind: "Aws".to_owned(),
        spec: json!({
            "credential": {"type": "ManualConfig", "spec": keys},
            "awsSdkClientBackOffStrategyOverride": {"type": "FullJitterBackoffStrategy", "spec": backoff},
        }),
        ..connector.clone()
    })
}
