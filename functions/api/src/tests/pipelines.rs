//! Pipelines in both forms, and starting them.

use serde_json::json;

use super::{Api, SCOPE};

const V1: &str = "/v1/orgs/default/projects/default/pipelines";

const PIPELINE: &str = "pipeline:\n  name: wait\n  identifier: wait\n  orgIdentifier: default\n  projectIdentifier: default\n  tags:\n    team: web\n  stages:\n    - stage:\n        name: one\n        identifier: one\n        type: Custom\n        spec:\n          execution:\n            steps:\n              - step:\n                  name: w\n                  identifier: w\n                  type: Wait\n                  spec:\n                    duration: 1s\n";

#[tokio::test(start_paused = true)]
async fn a_pipeline_in_ng_form() {
    let api = Api::new().await;
    let create = format!("/pipeline/api/pipelines/v2?{SCOPE}");
    let made = api
        .call("POST", &create, "application/yaml", PIPELINE)
        .await
        .data();
    assert_eq!(made["identifier"], "wait");
    let again = api
        .call("POST", &create, "application/yaml", PIPELINE)
        .await
        .refusal();
    assert_eq!((again.0, again.1.as_str()), (400, "DUPLICATE_FIELD"));
    let read = api
        .get(&format!("/pipeline/api/pipelines/wait?{SCOPE}"))
        .await
        .data();
    assert_eq!(read["yamlPipeline"], PIPELINE);
    let summary = api
        .get(&format!("/pipeline/api/pipelines/summary/wait?{SCOPE}"))
        .await
        .data();
    assert_eq!(
        (summary["numOfStages"].as_u64(), &summary["stageNames"]),
        (Some(1), &json!(["one"]))
    );
    // YAML is read whatever the header says.
    let changed = PIPELINE.replace("name: wait", "name: Wait");
    let update = format!("/pipeline/api/pipelines/v2/wait?{SCOPE}");
    api.call("PUT", &update, "application/json", &changed)
        .await
        .data();
    let list = json!({"filterType": "PipelineSetup", "orgIdentifier": "default", "projectIdentifier": "default"});
    let listed = api
        .post(
            &format!("/pipeline/api/pipelines/list?{SCOPE}&page=0&size=20"),
            &list,
        )
        .await
        .data();
    assert_eq!(
        (
            listed["content"][0]["name"].as_str(),
            listed["totalElements"].as_u64()
        ),
        (Some("Wait"), Some(1))
    );
    let other = format!("/pipeline/api/pipelines/v2/other?{SCOPE}");
    assert_eq!(
        api.call("PUT", &other, "application/yaml", PIPELINE)
            .await
            .refusal()
            .0,
        400
    );
    assert_eq!(
        api.delete(&format!("/pipeline/api/pipelines/wait?{SCOPE}"))
            .await
            .data(),
        json!(true)
    );
    let gone = api
        .get(&format!("/pipeline/api/pipelines/wait?{SCOPE}"))
        .await
        .refusal();
    assert_eq!(
        (gone.0, gone.1.as_str()),
        (404, "RESOURCE_NOT_FOUND_EXCEPTION")
    );
}

#[tokio::test(start_paused = true)]
async fn a_pipeline_in_v1_form() {
    let api = Api::new().await;
    let body = json!({"pipeline_yaml": PIPELINE, "identifier": "wait", "name": "wait", "tags": {},
        "git_details": {"store_type": "INLINE"}});
    let made = api.post(&format!("/gateway{V1}"), &body).await;
    assert_eq!(
        (made.status.as_u16(), made.json()),
        (201, json!({"identifier": "wait"}))
    );
    let read = api.get(&format!("{V1}/wait")).await;
    assert_eq!(read.json()["pipeline_yaml"], PIPELINE);
    assert_eq!(read.json()["tags"], json!({"team": "web"}));
    let listed = api.get(&format!("{V1}?page=0&limit=30")).await;
    assert_eq!(listed.headers["x-total-elements"], "1");
    assert_eq!(listed.json()[0]["identifier"], "wait");
    assert_eq!(listed.json()[0]["recent_execution_info"], json!([]));
    let updated = api.put(&format!("{V1}/wait"), &body).await;
    assert_eq!(
        (updated.status.as_u16(), updated.json()),
        (200, json!({"identifier": "wait"}))
    );
    let deleted = api.delete(&format!("{V1}/wait")).await;
    assert_eq!((deleted.status.as_u16(), deleted.text.as_str()), (204, ""));
    assert_eq!(api.get(&format!("{V1}/wait")).await.refusal().0, 404);
    assert_eq!(
        api.post(V1, &json!({"identifier": "x"})).await.refusal().0,
        400
    );
}

#[tokio::test(start_paused = true)]
async fn yaml_that_is_wrong_is_refused_with_its_place() {
    let api = Api::new().await;
    let create = format!("/pipeline/api/pipelines/v2?{SCOPE}");
    let bomb: String = (1..9)
        .map(|n| {
            format!(
                "a{n}: &a{n} [{}]\n",
                vec![format!("*a{}", n - 1); 9].join(",")
            )
        })
        .collect();
    let bomb = format!("pipeline:\na0: &a0 [x]\n{bomb}");
    let large = format!("pipeline:\n  description: \"{}\"\n", "x".repeat(3 << 20));
    let cases = [
        ("", ""),
        ("pipeline: [", ""),
        ("service:\n  name: a\n  identifier: a\n", "pipeline"),
        ("pipeline:\n  name: a\n  name: b\n", "name"),
        (
            "pipeline:\n  name: a\n  identifer: a\n  stages: []\n",
            "identifier",
        ),
        (bomb.as_str(), ""),
        (large.as_str(), ""),
    ];
    for (yaml, says) in cases {
        let (status, code, message) = api
            .call("POST", &create, "application/yaml", yaml)
            .await
            .refusal();
        assert_eq!(
            (status, code.as_str()),
            (400, "INVALID_REQUEST"),
            "{message}"
        );
        assert!(message.contains(says), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_accepted_with_the_answers_that_clients_need() {
    let api = Api::new().await;
    api.call(
        "POST",
        &format!("/pipeline/api/pipelines/v2?{SCOPE}"),
        "application/yaml",
        PIPELINE,
    )
    .await
    .data();
    let path = format!("/pipeline/api/pipeline/execute/wait?{SCOPE}&moduleType=cd");
    for (n, (kind, body)) in [
        ("application/yaml", ""),
        ("", ""),
        ("application/yaml", "{}"),
    ]
    .into_iter()
    .enumerate()
    {
        let started = api.call("POST", &path, kind, body).await.data();
        let execution = &started["planExecution"];
        assert!(execution["uuid"].is_string());
        assert!(execution["startTs"].is_i64());
        assert_eq!(execution["metadata"]["pipelineIdentifier"], "wait");
        assert_eq!(execution["metadata"]["runSequence"], n + 1);
        assert_eq!(
            execution["metadata"]["triggerInfo"]["triggerType"],
            "MANUAL"
        );
    }
    let in_v1 = api
        .post(&format!("{V1}/wait/execute"), &json!({}))
        .await
        .json();
    assert!(in_v1["execution_details"]["execution_id"].is_string());
    let list = json!({"inputSetReferences": [], "lastYamlToMerge": ""});
    let path = format!("/pipeline/api/pipeline/execute/wait/inputSetList?{SCOPE}");
    assert!(api.post(&path, &list).await.data()["planExecution"]["uuid"].is_string());
    let sets = json!({"inputSetReferences": ["a"]});
    assert!(
        api.post(&path, &sets)
            .await
            .refusal()
            .2
            .contains("input set `a` does not exist")
    );
    let unknown = format!("/pipeline/api/pipeline/execute/nothing?{SCOPE}");
    assert_eq!(api.call("POST", &unknown, "", "").await.refusal().0, 404);
    let dynamic = api
        .post(
            &format!("/pipeline/api{V1}/wait/execute/dynamic"),
            &json!({"yaml": ""}),
        )
        .await;
    assert_eq!(dynamic.refusal().0, 400);
}

#[tokio::test(start_paused = true)]
async fn runtime_inputs_are_asked_for_and_checked() {
    let api = Api::new().await;
    api.apply_golden().await;
    let path = format!("/pipeline/api/inputSets/template?{SCOPE}&pipelineIdentifier=deploy_shop");
    let template = api.post(&path, &json!({})).await.data();
    let yaml = template["inputSetTemplateYaml"]
        .as_str()
        .expect("a template");
    assert!(
        yaml.contains("identifier: deploy_shop") && yaml.contains("<+input>"),
        "{yaml}"
    );
    let execute = format!("/pipeline/api/pipeline/execute/deploy_shop?{SCOPE}");
    let (status, _, message) = api
        .call("POST", &execute, "application/yaml", "")
        .await
        .refusal();
    assert!(status == 400 && message.contains("tag"), "{message}");
    let plan = format!("/slipway/api/plan/deploy_shop?{SCOPE}");
    let inputs = "pipeline:\n  identifier: deploy_shop\n  variables:\n    - name: tag\n      type: String\n      value: v1\n";
    let text = api
        .call("POST", &plan, "application/yaml", inputs)
        .await
        .data();
    assert!(
        text["text"]
            .as_str()
            .is_some_and(|t| t.contains("EcsRollingDeploy")),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_name_leaves_comments_and_layout_as_they_were() {
    let api = Api::new().await;
    let yaml = PIPELINE
        .replace("pipeline:\n", "# owned by web\n\npipeline:   # v0\n")
        .replace("name: wait\n", "name:   'wait'   # shown in lists\n")
        .replace("  stages:\n", "\n  # one stage is enough\n  stages:\n")
        .replace("duration: 1s\n", "duration: 1s # not \"0s\"\n# the end\n");
    let body =
        |name: &str, yaml: &str| json!({"pipeline_yaml": yaml, "identifier": "wait", "name": name});
    let made = api.post(V1, &body("wait", &yaml)).await;
    assert_eq!(made.status.as_u16(), 201, "{}", made.text);
    let path = format!("{V1}/wait");
    assert_eq!(api.get(&path).await.json()["pipeline_yaml"], yaml);
    api.put(&path, &body("Wait a while", &yaml)).await.json();
    let read = api.get(&path).await.json();
    let text = read["pipeline_yaml"].as_str().unwrap_or_default();
    assert_eq!(read["name"], "Wait a while");
    // One line differs, and in it only the name.
    let changed: Vec<_> = yaml
        .lines()
        .zip(text.lines())
        .filter(|(a, b)| a != b)
        .collect();
    assert_eq!(yaml.lines().count(), text.lines().count(), "{text}");
    assert_eq!(changed.len(), 1, "{changed:?}");
    let (_, line) = changed[0];
    assert!(
        line.starts_with("  name:   ") && line.ends_with("   # shown in lists"),
        "{line}"
    );
}

#[tokio::test(start_paused = true)]
async fn steps_that_do_not_run_yet_are_kept_and_refused_by_name_when_planned() {
    let api = Api::new().await;
    let yaml = PIPELINE
        .replace("type: Wait", "type: JenkinsBuild")
        .replace(
            "duration: 1s",
            "connectorRef: jenkins\n                    jobName: deploy",
        );
    let create = format!("/pipeline/api/pipelines/v2?{SCOPE}");
    api.call("POST", &create, "application/yaml", &yaml)
        .await
        .data();
    let plan = format!("/slipway/api/plan/wait?{SCOPE}");
    let (status, _, message) = api.call("POST", &plan, "", "").await.refusal();
    assert!(
        status == 400 && message.contains("JenkinsBuild"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_an_author_should_look_at_comes_with_the_answer() {
    let api = Api::new().await;
    let yaml = PIPELINE.replace(
        "  tags:\n",
        "  autoAbortPreviousExecutions: true\n  tags:\n",
    );
    let create = format!("/pipeline/api/pipelines/v2?{SCOPE}");
    let saved = api.call("POST", &create, "application/yaml", &yaml).await;
    assert_eq!(saved.status.as_u16(), 200, "{}", saved.text);
    let body = json!({"files": [{"file": "p.yaml", "yaml": yaml}]});
    let rows = api
        .post(&format!("/slipway/api/apply?{SCOPE}"), &body)
        .await
        .data();
    let (in_meta, in_row) = (&saved.json()["metaData"]["warnings"], &rows[0]["warnings"]);
    assert_eq!(in_meta[0]["path"], in_row[0]["path"]);
    assert!(
        in_row[0]["rendered"]
            .as_str()
            .is_some_and(|text| text.contains("p.yaml")),
        "{rows}"
    );
}

/// What Harness would not have refused is told beside what it was refused for.
#[tokio::test(start_paused = true)]
async fn warnings_stand_apart_from_faults_of_a_refused_start() {
    let api = Api::new().await;
    let yaml = PIPELINE.replace(
        "        type: Custom\n",
        "        type: Custom\n        skipInstances: true\n        timeout: <+pipeline.variables.nowhere>\n",
    );
    let files = json!({"files": [{"file": "wait.yaml", "yaml": yaml}]});
    api.post(&format!("/slipway/api/apply?{SCOPE}"), &files)
        .await
        .data();
    let path = format!("/pipeline/api/pipeline/execute/wait?{SCOPE}");
    let answer = api.post(&path, &json!({})).await;
    let (status, _, message) = answer.refusal();
    assert_eq!(status, 400);
    assert!(
        message.contains("nowhere") && !message.contains("skipInstances"),
        "{message}"
    );
    let told = &answer.json()["responseMessages"];
    let levels: Vec<_> = told.as_array().into_iter().flatten().collect();
    let levels: Vec<_> = levels.iter().map(|one| &one["level"]).collect();
    assert_eq!(levels, ["ERROR", "WARN"], "{told}");
    assert!(
        told[1]["message"]
            .as_str()
            .is_some_and(|text| text.contains("`skipInstances` of a stage has no effect")),
        "{told}"
    );
}
