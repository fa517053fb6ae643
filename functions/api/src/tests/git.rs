//! Entities in Git are refused wherever a request can ask for them.

use serde_json::json;

use super::{Api, SCOPE};

const PIPELINE: &str = "pipeline:\n  name: p\n  identifier: p\n  orgIdentifier: default\n  projectIdentifier: default\n  stages:\n    - stage:\n        name: s\n        identifier: s\n        type: Custom\n        spec:\n          execution:\n            steps:\n              - step:\n                  name: w\n                  identifier: w\n                  type: Wait\n                  spec:\n                    duration: 1s\n";
const SET: &str = "inputSet:\n  name: i\n  identifier: i\n  orgIdentifier: default\n  projectIdentifier: default\n  pipeline:\n    identifier: p\n";

#[tokio::test(start_paused = true)]
async fn what_would_live_in_git_is_refused_and_not_kept_here_instead() {
    let api = Api::new().await;
    let pipelines = format!("/pipeline/api/pipelines?{SCOPE}");
    let sets = format!("/pipeline/api/inputSets?{SCOPE}&pipelineIdentifier=p");
    let send = async |method: &str, path: &str, yaml: &str| {
        api.call(method, path, "application/yaml", yaml).await
    };
    for remote in [
        "storeType=REMOTE&connectorRef=git&repoName=r",
        "branch=main",
    ] {
        for (path, yaml) in [(&pipelines, PIPELINE), (&sets, SET)] {
            let refused = send("POST", &format!("{path}&{remote}"), yaml)
                .await
                .refusal();
            assert_eq!((refused.0, refused.1.as_str()), (400, "INVALID_REQUEST"));
            assert!(
                refused.2.contains("in Git") && refused.2.contains("not supported"),
                "{}",
                refused.2
            );
        }
    }
    assert_eq!(
        api.get(&format!("/pipeline/api/pipelines/p?{SCOPE}"))
            .await
            .refusal()
            .0,
        404
    );

    send("POST", &format!("{pipelines}&storeType=INLINE"), PIPELINE)
        .await
        .data();
    let run = format!("/pipeline/api/pipeline/execute/p?{SCOPE}&branch=other");
    assert!(send("POST", &run, "").await.refusal().2.contains("`other`"));

    let v1 = "/v1/orgs/default/projects/default/pipelines";
    let body = |details: serde_json::Value| json!({"identifier": "q", "name": "q", "pipeline_yaml": PIPELINE.replace(": p\n", ": q\n"), "git_details": details});
    for details in [
        json!({"store_type": "REMOTE", "branch_name": "main"}),
        json!({"branch_name": "main"}),
    ] {
        let refused = api.post(v1, &body(details)).await.refusal();
        assert!(refused.2.contains("git_details"), "{}", refused.2);
    }
    let made = api.post(v1, &body(json!({"store_type": "INLINE"}))).await;
    assert!(made.status.is_success(), "{}", made.text);

    // What only narrows a list down stays as it is.
    let list = format!("/pipeline/api/pipelines/list?{SCOPE}&storeType=REMOTE");
    assert_eq!(
        api.post(&list, &json!({"filterType": "PipelineSetup"}))
            .await
            .data()["totalElements"],
        2
    );
}
