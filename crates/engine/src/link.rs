//! Where people and clients read a run.

use slipway_store::record::RunRecord;

/// The address of a run below the base URL of the REST API. There is no page to look at yet: it is that of the API.
pub fn of_run(url: &str, run: &RunRecord) -> String {
    let scope = &run.scope;
    let mut link = format!(
        "{}/pipeline/api/pipelines/execution/v2/{}?accountIdentifier={}",
        url.trim_end_matches('/'),
        run.id,
        scope.account
    );
    let parts = [
        ("orgIdentifier", scope.org.as_ref().map(|id| id.as_str())),
        (
            "projectIdentifier",
            scope.project.as_ref().map(|id| id.as_str()),
        ),
    ];
    for (name, value) in parts {
        if let Some(value) = value {
            link.push_str(&format!("&{name}={value}"));
        }
    }
    link
}
