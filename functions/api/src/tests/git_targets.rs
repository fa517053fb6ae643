//! Services, environments and infrastructures that are kept in Git.

use serde_json::{Value, json};

use super::git::Repository;
use super::{Api, SCOPE};

const SERVICE: &str = "service:\n  name: api\n  identifier: api\n  orgIdentifier: default\n  projectIdentifier: default\n  serviceDefinition:\n    type: ECS\n    spec: {}\n";
const ENVIRONMENT: &str = "environment:\n  name: prod\n  identifier: prod\n  orgIdentifier: default\n  projectIdentifier: default\n  type: Production\n";
const INFRASTRUCTURE: &str = "infrastructureDefinition:\n  name: east\n  identifier: east\n  orgIdentifier: default\n  projectIdentifier: default\n  environmentRef: prod\n  deploymentType: ECS\n  type: ECS\n  spec:\n    connectorRef: aws\n    region: us-east-1\n    cluster: shop\n";

const FILE: &str = ".harness/services/api.yaml";

fn flat(id: &str, yaml: &str, more: &Value) -> Value {
    let mut body = json!({"identifier": id, "name": id, "orgIdentifier": "default", "projectIdentifier": "default", "yaml": yaml});
    if let (Some(body), Some(more)) = (body.as_object_mut(), more.as_object()) {
        body.extend(more.clone());
    }
    body
}

impl Api {
    /// A kind's request about Git, `what` and `more` of its path.
    async fn at(&self, method: &str, what: &str, more: &str, body: Value) -> super::Answer {
        let path = format!("/ng/api/{what}?{SCOPE}&{more}");
        let body = body.to_string();
        self.call(method, &path, "application/json", &body).await
    }

    async fn service(&self, more: &str) -> Value {
        let path = format!("/ng/api/servicesV2/api?{SCOPE}{more}");
        self.get(&path).await.data()
    }
}

#[tokio::test]
async fn a_service_is_saved_to_git_and_read_from_there() {
    let repository = Repository::new();
    let api = Api::with_repository(&repository).await;
    let remote = "storeType=REMOTE&connectorRef=code&branch=main";
    let made = api.at(
        "POST",
        "servicesV2",
        remote,
        flat("api", SERVICE, &json!({})),
    );
    let made = made.await.data();
    assert_eq!(made["service"]["storeType"], "REMOTE");
    assert_eq!(made["service"]["entityGitDetails"]["filePath"], FILE);
    assert_eq!(repository.show("main", FILE), SERVICE);

    let theirs = SERVICE.replace("spec: {}", "spec: {variables: []}");
    repository.commit("main", FILE, &theirs);
    let read = api.service("").await;
    assert_eq!(read["service"]["yaml"], theirs);
    let git = &read["service"]["entityGitDetails"];
    assert_eq!(git["drift"], true);
    assert_eq!(
        api.service("&loadFromCache=true").await["service"]["yaml"],
        SERVICE
    );

    // The whole object comes back, as clients send it, with the object that was read.
    let mine = SERVICE.replace("name: api", "name: front");
    let renamed =
        json!({"service": flat("api", SERVICE, &json!({"name": "front", "storeType": "REMOTE"}))});
    let stale = api
        .at("PUT", "servicesV2", "branch=main", renamed.clone())
        .await;
    assert_eq!(stale.refusal().0, 409, "{}", stale.text);
    assert_eq!(repository.show("main", FILE), theirs);
    let seen = format!(
        "branch=main&lastObjectId={}",
        git["objectId"].as_str().unwrap_or_default()
    );
    let saved = api
        .at("PUT", "servicesV2", &seen, renamed.clone())
        .await
        .data();
    assert_eq!(saved["service"]["name"], "front");
    assert_eq!(repository.show("main", FILE), mine);

    repository.commit("main", FILE, "service: [");
    let broken = api.service("").await;
    assert_eq!(broken["entityValidityDetails"]["valid"], false, "{broken}");

    // A deleted one leaves its file, from which it is taken over.
    repository.commit("main", FILE, SERVICE);
    api.delete(&format!("/ng/api/servicesV2/api?{SCOPE}"))
        .await
        .data();
    let from = format!("connectorRef=code&branch=main&filePath={FILE}&serviceIdentifier");
    let other = api
        .at(
            "POST",
            "servicesV2/import",
            &format!("{from}=other"),
            json!({}),
        )
        .await;
    assert!(
        other.refusal().2.contains("the YAML says `api`"),
        "{}",
        other.text
    );
    let taken = api
        .at(
            "POST",
            "servicesV2/import",
            &format!("{from}=api"),
            json!({}),
        )
        .await;
    assert_eq!(taken.data()["identifier"], "api");
    assert_eq!(api.service("").await["service"]["yaml"], SERVICE);
}

#[tokio::test]
async fn environments_and_infrastructures_move_into_git_and_out_of_it() {
    let repository = Repository::new();
    let api = Api::with_repository(&repository).await;
    let body = flat("prod", ENVIRONMENT, &json!({"type": "Production"}));
    api.at("POST", "environmentsV2", "", body).await.data();
    let body = flat(
        "east",
        INFRASTRUCTURE,
        &json!({"environmentRef": "prod", "type": "ECS"}),
    );
    api.at("POST", "infrastructures", "", body).await.data();
    let into = "moveConfigType=INLINE_TO_REMOTE&connectorRef=code&branch=main";
    let moved = api.at("POST", "environmentsV2/move-config/prod", into, json!({}));
    assert_eq!(moved.await.data()["identifier"], "prod");
    let in_environment = "environmentIdentifier=prod";
    let path = "infrastructures/move-config/east";
    let query = format!("{into}&{in_environment}");
    api.at("POST", path, &query, json!({})).await.data();
    let file = ".harness/infrastructures/prod_east.yaml";
    assert_eq!(repository.show("main", file), INFRASTRUCTURE);
    assert_eq!(
        repository.show("main", ".harness/environments/prod.yaml"),
        ENVIRONMENT
    );

    // What is in Git counts, for lists of one as well.
    let wider = INFRASTRUCTURE.replace("us-east-1", "eu-west-1");
    repository.commit("main", file, &wider);
    let shown = api
        .at("GET", "infrastructures/east", in_environment, json!({}))
        .await
        .data();
    assert_eq!(shown["infrastructure"]["yaml"], wider);
    // A file of another environment is no file of this one.
    repository.commit(
        "main",
        file,
        &wider.replace("environmentRef: prod", "environmentRef: test"),
    );
    let other = api
        .at("GET", "infrastructures/east", in_environment, json!({}))
        .await
        .data();
    assert_eq!(other["entityValidityDetails"]["valid"], false, "{other}");
    repository.commit("main", "moved.yaml", &wider);
    let query = format!("{in_environment}&filePath=moved.yaml");
    let placed = api.at(
        "PUT",
        "infrastructures/east/update-git-metadata",
        &query,
        json!({}),
    );
    assert_eq!(placed.await.data()["identifier"], "east");

    let out = format!("moveConfigType=REMOTE_TO_INLINE&{in_environment}");
    api.at("POST", path, &out, json!({})).await.data();
    let shown = api
        .at("GET", "infrastructures/east", in_environment, json!({}))
        .await
        .data();
    let infrastructure = &shown["infrastructure"];
    assert_eq!(
        (&infrastructure["storeType"], &infrastructure["yaml"]),
        (&json!("INLINE"), &json!(wider))
    );
    assert_eq!(infrastructure["entityGitDetails"], Value::Null);

    // One of another environment is not taken over.
    let body = flat(
        "test",
        &ENVIRONMENT.replace("prod", "test"),
        &json!({"type": "Production"}),
    );
    api.at("POST", "environmentsV2", "", body).await.data();
    api.at("DELETE", "infrastructures/east", in_environment, json!({}))
        .await
        .data();
    let from = "connectorRef=code&branch=main&filePath=moved.yaml&infraIdentifier=east&environmentIdentifier";
    let wrong = api
        .at(
            "POST",
            "infrastructures/import",
            &format!("{from}=test"),
            json!({}),
        )
        .await;
    assert!(
        wrong.refusal().2.contains("environmentRef"),
        "{}",
        wrong.text
    );
    let taken = api
        .at(
            "POST",
            "infrastructures/import",
            &format!("{from}=prod"),
            json!({}),
        )
        .await;
    assert_eq!(taken.data()["identifier"], "east");
}

const OVERRIDES: &str = "overrides:\n  type: ENV_SERVICE_OVERRIDE\n  orgIdentifier: default\n  projectIdentifier: default\n  environmentRef: prod\n  serviceRef: api\n  variables:\n    - {name: size, type: String, value: large}\n";

#[tokio::test]
async fn overrides_are_saved_to_git_and_taken_over_from_there() {
    let repository = Repository::new();
    let api = Api::with_repository(&repository).await;
    let body = flat("api", SERVICE, &json!({}));
    api.at("POST", "servicesV2", "", body).await.data();
    let body = flat("prod", ENVIRONMENT, &json!({"type": "Production"}));
    api.at("POST", "environmentsV2", "", body).await.data();
    let (all, one) = ("serviceOverrides", "serviceOverrides/prod_api");
    let file = ".harness/overrides/prod_api.yaml";
    let body = |yaml: &str| json!({"orgIdentifier": "default", "projectIdentifier": "default", "yaml": yaml});
    let remote = "storeType=REMOTE&connectorRef=code&branch=main";
    let made = api.at("POST", all, remote, body(OVERRIDES)).await.data();
    assert_eq!(
        (&made["storeType"], &made["connectorRef"]),
        (&json!("REMOTE"), &json!("code"))
    );
    assert_eq!(made["entityGitInfo"]["filePath"], file);
    assert_eq!(repository.show("main", file), OVERRIDES);

    let theirs = OVERRIDES.replace("large", "huge");
    repository.commit("main", file, &theirs);
    let read = api.at("GET", one, "", json!({})).await.data();
    assert_eq!(
        (&read["yaml"], &read["entityGitInfo"]["drift"]),
        (&json!(theirs), &json!(true))
    );
    let mine = OVERRIDES.replace("large", "small");
    let stale = api.at("PUT", all, "branch=main", body(&mine)).await;
    assert_eq!(stale.refusal().0, 409, "{}", stale.text);
    let seen = read["entityGitInfo"]["objectId"].as_str().expect("an id");
    let seen = format!("branch=main&lastObjectId={seen}");
    let saved = api.at("PUT", all, &seen, body(&mine)).await.data();
    assert_eq!(saved["spec"]["variables"][0]["value"], "small");
    assert_eq!(repository.show("main", file), mine);

    // What they are for is told by the file, which must be the same.
    repository.commit(
        "main",
        file,
        &mine.replace("serviceRef: api", "serviceRef: web"),
    );
    let other = api.at("GET", one, "", json!({})).await.data();
    assert_eq!(other["entityValidityDetails"]["valid"], false, "{other}");
    repository.commit(
        "main",
        file,
        &mine.replace("environmentRef: prod", "environmentRef: test"),
    );
    let other = api.at("GET", one, "", json!({})).await.data();
    let why = other["entityValidityDetails"]["message"].to_string();
    assert!(
        why.contains("of the environment test, and not of prod"),
        "{why}"
    );
    repository.commit("main", file, &mine);

    let out = "moveConfigType=REMOTE_TO_INLINE";
    let path = format!("{all}/move-config/prod_api");
    let moved = api.at("POST", &path, out, json!({})).await.data();
    assert_eq!(moved["identifier"], "prod_api");
    let here = api.at("GET", one, "", json!({})).await.data();
    assert_eq!(
        (&here["storeType"], &here["yaml"]),
        (&json!("INLINE"), &json!(mine))
    );
    api.at("DELETE", one, "", json!({})).await.data();

    let from = format!("connectorRef=code&branch=main&filePath={file}");
    let import = format!("{all}/import");
    let named = |field: &str, value: &str| json!({"orgIdentifier": "default", "projectIdentifier": "default", field: value});
    for (field, value) in [("identifier", "other"), ("serviceRef", "web")] {
        let wrong = api.at("POST", &import, &from, named(field, value)).await;
        assert!(
            wrong.refusal().2.contains("the YAML says"),
            "{}",
            wrong.text
        );
    }
    let taken = api.at("POST", &import, &from, named("environmentRef", "prod"));
    assert_eq!(taken.await.data()["identifier"], "prod_api");
    let read = api.at("GET", one, "", json!({})).await.data();
    assert_eq!(
        (&read["storeType"], &read["yaml"]),
        (&json!("REMOTE"), &json!(mine))
    );
}
