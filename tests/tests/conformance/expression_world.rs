//! A context that has every documented root of expressions; names that people choose (variables, outputs)
//! stand for themselves.

use serde_json::{Value as Json, json};
use slipway_expr::{Context, Segment, Value};

/// Containers whose keys people choose: each key is there, and its value is its name. (Where the key is an
/// identifier, the context has `*` for all of them.)
const CHOSEN: &[&str] = &[
    "variables",
    "outputVariables",
    "inputVariables",
    "envVariables",
    "environmentVariables",
    "serviceVariables",
    "serviceVariableOverrides",
    "variable",
    "matrix",
    "payload",
    "eventPayload",
    "provisioner",
    "approverInputs",
    "rollbackArtifact",
];

/// Knows what a run of every kind could know.
pub struct World(Value);

impl World {
    fn chosen(path: &[Segment]) -> Option<Value> {
        let keys: Vec<&str> = path.iter().map(Segment::key).collect::<Option<_>>()?;
        let (last, above) = keys.split_last()?;
        let open = above.iter().any(|key| CHOSEN.contains(key));
        open.then(|| Value::from(*last))
    }
}

impl Context for World {
    fn lookup(&self, path: &[Segment]) -> Option<Value> {
        let mut found = Some(&self.0);
        for segment in path {
            let every = Segment::Key("*".into());
            found = found.and_then(|value| value.child(segment).or_else(|| value.child(&every)));
        }
        found.cloned().or_else(|| Self::chosen(path))
    }

    fn call(&self, functor: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
        let [Value::String(id)] = arguments else {
            return None;
        };
        match functor {
            "configFile.getAsString" | "fileStore.getAsString" => {
                Some(Ok(format!("in {id}").into()))
            }
            "configFile.getAsBase64" | "fileStore.getAsBase64" => Some(Ok("aW4gaXQ=".into())),
            _ => None,
        }
    }
}

fn step() -> Json {
    json!({
        "identifier": "a_step", "name": "A step", "status": "SUCCEEDED", "currentStatus": "SUCCEEDED",
        "retryCount": 2, "timeout": "10m", "executionUrl": "https://harness/step",
        "spec": {"shell": "Bash", "repo": "a-repo", "repoName": "a-repo", "headers": {"x-auth": "t"}},
        "output": {"serviceName": "shop", "status": "Success", "taskDefinitionArn": "arn:td",
            "outputVariables": {}, "approverInputs": {},
            "TEST_OUTPUT_NAME1": "one", "TF_JSON_OUTPUT_ENCRYPTED": "two"},
        "plan": {"jsonFilePath": "/tmp/plan.json"},
        "issue": {"Customer Name": "ACME"},
        "deploymentInfoOutcome": {"serverInstanceInfoList": [{"podIP": "10.0.0.1"}]},
        "updateReleaseRepoOutcome": {"commitId": "abc"},
        "GoogleMigBlueGreenDeployOutcome": {"stageMig": "m", "stageTemplate": "t"},
    })
}

fn steps() -> Json {
    let mut group = step();
    group["steps"] = json!({"*": step()});
    group["variables"] = json!({"host": ""});
    json!({ "*": group })
}

fn artifacts() -> Json {
    let artifact = json!({
        "identifier": "primary", "image": "index.docker.io/library/nginx:stable",
        "imagePath": "library/nginx", "tag": "stable", "path": "a/b.zip", "filePath": "b.zip",
        "type": "DockerRegistry", "connectorRef": "DockerHub", "imagePullSecret": "s",
        "dockerConfigJsonSecret": "d", "amiId": "ami-1",
        "label": {"maintainer": "dev@someproject.org"}, "spec": {"imagePath": "library/nginx"},
        "metadata": {"SHA": "sha256:1", "SHAV2": "sha256:2", "fileName": "b.zip",
            "url": "https://b", "image": "i"},
    });
    json!({"primary": artifact, "sidecars": {"*": artifact}})
}

fn manifests() -> Json {
    json!({"*": {
        "identifier": "mymanifest", "type": "K8sManifest", "store": {"type": "Harness"},
        "valuesPaths": ["v.yaml"], "commitId": "abc", "spec": {"store": {"spec": {"branch": "main"}}},
    }})
}

fn service_config() -> Json {
    json!({"serviceRef": "shop", "artifacts": artifacts(), "serviceDefinition": {"spec": {
        "variables": {}, "artifacts": artifacts(), "manifests": manifests(),
    }}})
}

fn stage() -> Json {
    let infrastructure = json!({"environmentRef": "prod", "infraRef": "infra",
        "infrastructureDefinition": {"spec": {"namespace": "Shop"}}});
    json!({
        "name": "Deploy", "identifier": "deploy", "description": "d", "status": "FAILED",
        "currentStatus": "RUNNING", "liveStatus": "FAILED", "executionUrl": "https://harness/stage",
        "delegateSelectors": ["d1"], "tags": {"TAG_NAME": "v"}, "variables": {"myvar": "hello"},
        "matrix": {"service": "svc1"}, "output": {"hosts": ["h1", "h2"]},
        "spec": {"execution": {"steps": steps()}, "serviceConfig": service_config(),
            "artifacts": artifacts(), "infrastructure": infrastructure},
    })
}

fn codebase() -> Json {
    json!({"branch": "main", "repoUrl": "https://git/r", "commitSha": "abc", "repoName": "Repo",
        "build": {"type": "branch", "build": {"spec": {"branch": "main"}}}})
}

fn pipeline() -> Json {
    json!({
        "identifier": "pipeline1", "name": "pipeline1", "executionId": "e1",
        "resumedExecutionId": "e0", "sequenceId": 16, "executionUrl": "https://harness/e1",
        "executionMode": "NORMAL", "startTs": 1_700_000_000_000_u64, "selectedStages": ["deploy"],
        "storeType": "inline", "repo": null, "branch": null, "triggerType": "MANUAL",
        "delegateSelectors": ["d1"], "triggeredBy": {"name": "Ann", "email": "ann@example.com"},
        "tags": {"TAG_NAME": "v"}, "properties": {"ci": {"codebase": codebase()}},
        "execution": {"url": "https://harness/e1", "Url": "https://harness/e1"},
        "stages": {"*": stage()}, "pipeline": {"sequenceId": 16},
        "variables": {"abc": "def:ghi", "var1": "secret1", "var2": "banana",
            "someVar": "prod-environment-variable", "listVar1": "a,b", "listVar2": "c",
            "hosts": "h1,h2", "MAGIC": "UP", "changeType": "All",
            "artifact_manager_delegate": "a,b"},
    })
}

fn trigger() -> Json {
    json!({
        "type": "Webhook", "event": "PR", "branch": "main", "sourceBranch": "dev",
        "targetBranch": "main", "prNumber": 12, "prTitle": "t", "gitUser": "u",
        "repoUrl": "https://git/r", "commitSha": "abc", "baseCommitSha": "000", "tag": "v1",
        "header": {"X-GitHub-Event": "push", "X-Gitlab-Event": "Push Hook"},
        "artifact": {"build": "1.2", "source": {"connectorRef": "hub", "imagePath": "p"},
            "metadata": {"tag": "1.2"}},
        "payload": {"pull_request": {"diff_url": "https://x/triggerNgDemo.diff"},
            "input_set_refs": "a,b", "stages_to_execute": "s1,s2"},
    })
}

/// What a stage deploys, and where.
fn deployment() -> Json {
    json!({
        "service": {"name": "Shop", "identifier": "shop", "description": "d", "type": "Kubernetes",
            "gitOpsEnabled": false, "tags": {"TAG_KEY": "v"}},
        "env": {"name": "dev", "identifier": "dev", "description": "d", "type": "PreProduction",
            "envGroupName": "g", "envGroupRef": "g", "variables": {}},
        "environment": {"name": "dev"},
        "infra": {"name": "Infra", "infraIdentifier": "infra", "connectorRef": "aws",
            "connector": {"name": "AWS"}, "region": "us-east-1", "cluster": "c", "namespace": "Shop",
            "releaseName": "release-2f9ead", "tags": {"TAG_KEY": "v"}, "variables": {}},
        "infrastructure": {"infrastructureDefinition": {"provisioner": {"steps": steps()}}},
        "serviceConfig": service_config(), "artifacts": artifacts(), "manifests": manifests(),
        "artifact": artifacts()["primary"], "primary": {"artifact": artifacts()["primary"]},
        "sidecar": {"artifact": artifacts()["sidecars"]}, "manifest": manifests(),
        "rollbackArtifact": {"version": "1", "metadata": {"image": "old"}},
        "INFRA_KEY": "2f9eadcc06e2c2225265ab3cbb1160bc5eacfd4f", "INFRA_KEY_SHORT_ID": "2f9ead",
        "instance": {"name": "i", "hostName": "h", "host": {"instanceName": "h",
            "privateIp": "10.0.0.1", "publicIp": "1.1.1.1", "properties": {"artifact": "a"}}},
        "targetGroupArn": "arn:tg", "kubernetes": {"release": {"revision": 3}},
        "pcf": {"finalRoutes": ["r"]}, "serverlessV2": {"serverlessDirectoryPath": "/p"},
    })
}

/// The context.
pub fn world() -> World {
    let mut known = json!({
        "account": {"identifier": "acc", "name": "Account", "companyName": "ACME"},
        "org": {"identifier": "default", "name": "Default", "description": "d"},
        "project": {"identifier": "proj", "name": "Proj", "description": "d", "tags": {"k": "v"}},
        "pipeline": pipeline(), "stage": stage(), "stages": {"*": stage()}, "steps": steps(),
        "execution": {"steps": steps()}, "stepGroup": {"identifierPostFix": "_0", "variables": {},
            "steps": steps()},
        "step": {"name": "A step", "identifier": "a_step", "exitCode": 0,
            "executionUrl": "https://harness/step"},
        "trigger": trigger(), "eventPayload": {}, "codebase": codebase(),
        "strategy": {"iteration": 1, "iterations": 3, "identifierPostFix": "_0",
            "currentStatus": "RUNNING", "node": {"ShellScript_1": {"currentStatus": "SUCCESS"},
                "*": {"currentStatus": "SUCCESS"}}},
        "repeat": {"item": "h1", "partition": ["h1", "h2"]}, "matrix": {"weight": "30"},
        "approval": {"approvalActivities": [{"user": {"name": "Ann", "email": "ann@example.com"},
            "comments": "ok"}]},
        "httpResponseCode": 200,
        "httpResponseBody": "{\"status\":1,\"data\":{\"content\":[{\"uuid\":\"u\"}]}}",
        "inputSet": "is1", "input": {"retryCount": 1, "retryIntervals": "10s"},
        "version": "1.2.3", "workspace": {"folderPath": "f", "provisionerVersion": "1"},
        "terraformPlanHumanReadable":
            {"pipeline.stages.tf.spec.execution.steps.tf.tf_planHumanReadable": "plan"},
        "build": {"variables": {}}, "spec": {"variables": {}, "inputVariables": {}},
    });
    if let (Some(known), Json::Object(more)) = (known.as_object_mut(), deployment()) {
        known.extend(more);
    }
    World(Value::from_json(&known))
}
