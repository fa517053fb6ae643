//! Organizations, projects, services, environments, infrastructures and connectors.

use serde_json::{Value, json};

use super::{Api, SCOPE};

#[tokio::test(start_paused = true)]
async fn organizations_and_projects_live_their_lives() {
    let api = Api::new().await;
    let org = json!({"organization": {"identifier": "org_a", "name": "Org A", "description": "d", "tags": {"k": "v"}}});
    let made = api
        .post("/ng/api/organizations?accountIdentifier=acme", &org)
        .await
        .data();
    assert_eq!(made["organization"]["tags"]["k"], "v");
    let again = api.post("/ng/api/organizations", &org).await.refusal();
    assert_eq!((again.0, again.1.as_str()), (400, "DUPLICATE_FIELD"));

    let project = json!({"project": {"identifier": "shop", "name": "Shop", "orgIdentifier": "org_a",
        "color": "#004fc4", "modules": ["CD"], "tags": {"team": "web"}}});
    let made = api
        .post(
            "/ng/api/projects?accountIdentifier=acme&orgIdentifier=org_a",
            &project,
        )
        .await
        .data();
    assert_eq!(made["project"]["color"], "#004fc4");
    assert_eq!(made["project"]["orgIdentifier"], "org_a");
    let listed = api
        .get("/ng/api/projects?pageIndex=0&pageSize=10")
        .await
        .data();
    assert_eq!(
        (
            listed["totalItems"].as_u64(),
            listed["totalElements"].as_u64()
        ),
        (Some(3), Some(3))
    );

    // Read, change, write back, read-only fields and all.
    let mut read = api
        .get("/ng/api/projects/shop?orgIdentifier=org_a")
        .await
        .data();
    read["project"]["name"] = "The shop".into();
    let written = api
        .put("/ng/api/projects/shop?orgIdentifier=org_a", &read)
        .await
        .data();
    assert_eq!(written["project"]["name"], "The shop");
    assert_eq!(written["project"]["modules"], json!(["CD"]));

    let held = api.delete("/ng/api/organizations/org_a").await.refusal();
    assert_eq!(held.0, 400);
    assert_eq!(
        api.delete("/ng/api/projects/shop?orgIdentifier=org_a")
            .await
            .data(),
        json!(true)
    );
    assert_eq!(
        api.delete("/ng/api/organizations/org_a").await.data(),
        json!(true)
    );
    let gone = api.get("/ng/api/organizations/org_a").await.refusal();
    assert_eq!(
        (gone.0, gone.1.as_str()),
        (404, "RESOURCE_NOT_FOUND_EXCEPTION")
    );
}

const SERVICE: &str = "service:\n  name: api\n  identifier: api\n  # kept\n  serviceDefinition:\n    type: ECS\n    spec: {}\n";

#[tokio::test(start_paused = true)]
async fn a_service_keeps_its_yaml_to_the_letter() {
    let api = Api::new().await;
    let body = json!({"identifier": "api", "name": "api", "orgIdentifier": "default",
        "projectIdentifier": "default", "yaml": SERVICE});
    let made = api
        .post("/gateway/ng/api/servicesV2?accountIdentifier=acme", &body)
        .await
        .data();
    assert_eq!(made["service"]["yaml"], SERVICE);
    let read = api
        .get(&format!("/ng/api/servicesV2/api?{SCOPE}"))
        .await
        .data();
    assert_eq!(read["service"]["accountId"], "acme");
    assert_eq!(read["service"]["yaml"], SERVICE);
    assert_eq!(read["createdAt"], 1_767_225_600_000_i64);
    let twice = api.post("/ng/api/servicesV2", &body).await.refusal();
    assert_eq!((twice.0, twice.1.as_str()), (400, "DUPLICATE_FIELD"));
}

#[tokio::test(start_paused = true)]
async fn a_flat_field_wins_over_the_yaml_beside_it() {
    let api = Api::new().await;
    let body = json!({"identifier": "api", "name": "api", "orgIdentifier": "default",
        "projectIdentifier": "default", "yaml": SERVICE});
    api.post("/ng/api/servicesV2", &body).await.data();
    // As the CLI does it: everything that was read goes back, one field changed.
    let mut read = api
        .get(&format!("/ng/api/servicesV2/api?{SCOPE}"))
        .await
        .data()["service"]
        .clone();
    read["name"] = "the api".into();
    read["description"] = "what it is".into();
    let written = api
        .put(&format!("/ng/api/servicesV2?{SCOPE}"), &read)
        .await
        .data();
    assert_eq!(written["service"]["name"], "the api");
    assert_eq!(written["service"]["description"], "what it is");
    let yaml = written["service"]["yaml"].as_str().expect("yaml");
    // What the YAML did not say it does not say now, and its comment stays.
    assert_eq!(yaml, SERVICE.replace("name: api", "name: the api"));
}

#[tokio::test(start_paused = true)]
async fn services_are_checked_where_they_are_wrong() {
    let api = Api::new().await;
    let service = |yaml: &str| {
        json!({"identifier": "api", "orgIdentifier": "default",
        "projectIdentifier": "default", "yaml": yaml})
    };
    let typo =
        service("service:\n  name: api\n  identifier: api\n  serviceDefinitio:\n    type: ECS\n");
    let answer = api.post("/ng/api/servicesV2", &typo).await;
    let (status, code, message) = answer.refusal();
    assert_eq!((status, code.as_str()), (400, "INVALID_REQUEST"));
    assert!(
        message.contains(":4:3") && message.contains("serviceDefinition"),
        "{message}"
    );
    assert_eq!(
        answer.json()["errors"][0]["fieldId"],
        "service.serviceDefinitio"
    );

    let other = service("service:\n  name: b\n  identifier: b\n");
    assert!(
        api.post("/ng/api/servicesV2", &other)
            .await
            .refusal()
            .2
            .contains("identifier")
    );
    let scope = service("service:\n  name: api\n  identifier: api\n  orgIdentifier: elsewhere\n");
    assert!(
        api.post("/ng/api/servicesV2", &scope)
            .await
            .refusal()
            .2
            .contains("orgIdentifier")
    );
    let mut lost = service(SERVICE);
    lost["projectIdentifier"] = "nowhere".into();
    let (status, code, _) = api.post("/ng/api/servicesV2", &lost).await.refusal();
    assert_eq!(
        (status, code.as_str()),
        (404, "RESOURCE_NOT_FOUND_EXCEPTION")
    );
    let missing = api
        .put("/ng/api/servicesV2", &service(SERVICE))
        .await
        .refusal();
    assert_eq!(missing.0, 404);
}

#[tokio::test(start_paused = true)]
async fn lists_are_paged_searched_and_filtered() {
    let api = Api::new().await;
    for n in 0..25 {
        let body = json!({"identifier": format!("svc_{n:02}"), "name": format!("Service {n}"),
            "orgIdentifier": "default", "projectIdentifier": "default"});
        let path = if n % 2 == 0 {
            "/ng/api/servicesV2"
        } else {
            "/ng/api/servicesV2/upsert"
        };
        let answer = if n % 2 == 0 {
            api.post(path, &body).await
        } else {
            api.put(path, &body).await
        };
        answer.data();
    }
    let page = api
        .get(&format!("/ng/api/servicesV2?{SCOPE}&page=1&size=10"))
        .await
        .data();
    assert_eq!(
        (page["totalItems"].as_u64(), page["totalElements"].as_u64()),
        (Some(25), Some(25))
    );
    assert_eq!(
        (page["totalPages"].as_u64(), page["pageItemCount"].as_u64()),
        (Some(3), Some(10))
    );
    assert_eq!(page["content"][0]["service"]["identifier"], "svc_10");
    assert_eq!(page["empty"], false);
    let beyond = api
        .get(&format!("/ng/api/servicesV2?{SCOPE}&page=9&size=10"))
        .await
        .data();
    assert_eq!(
        (beyond["empty"].as_bool(), beyond["totalItems"].as_u64()),
        (Some(true), Some(25))
    );
    let found = api
        .get(&format!(
            "/ng/api/servicesV2?{SCOPE}&searchTerm=SERVICE%2024"
        ))
        .await
        .data();
    assert_eq!(found["totalItems"], 1);
    let named = api
        .get(&format!(
            "/ng/api/servicesV2?{SCOPE}&serviceIdentifiers=svc_01&serviceIdentifiers=svc_02"
        ))
        .await;
    assert_eq!(named.data()["totalItems"], 2);
}

#[tokio::test(start_paused = true)]
async fn environments_and_their_infrastructures() {
    let api = Api::new().await;
    let env = json!({"identifier": "prod", "name": "prod", "type": "Production", "color": "#0063F7",
        "orgIdentifier": "default", "projectIdentifier": "default", "tags": {"a": "b"}});
    let made = api
        .post("/ng/api/environmentsV2?accountIdentifier=acme", &env)
        .await
        .data();
    assert_eq!(made["environment"]["type"], "Production");
    assert!(made["environment"]["version"].is_u64());
    let changed = json!({"identifier": "prod", "name": "prod", "type": "PreProduction",
        "orgIdentifier": "default", "projectIdentifier": "default", "yaml": made["environment"]["yaml"]});
    let changed = api.put("/ng/api/environmentsV2", &changed).await.data();
    assert_eq!(changed["environment"]["type"], "PreProduction");

    let yaml = "infrastructureDefinition:\n  name: main\n  identifier: main\n  orgIdentifier: default\n  projectIdentifier: default\n  environmentRef: prod\n  deploymentType: ECS\n  type: ECS\n  spec:\n    connectorRef: aws\n    region: us-east-1\n    cluster: shop\n  allowSimultaneousDeployments: false\n";
    let infra = json!({"identifier": "main", "name": "main", "orgIdentifier": "default",
        "projectIdentifier": "default", "environmentRef": "prod", "type": "ECS", "yaml": yaml});
    let made = api
        .post("/ng/api/infrastructures?accountIdentifier=acme", &infra)
        .await
        .data();
    assert_eq!(made["infrastructure"]["environmentRef"], "prod");
    assert_eq!(made["infrastructure"]["deploymentType"], "ECS");
    // The CLI leaves the environment out.
    let read = api
        .get(&format!("/ng/api/infrastructures/main?{SCOPE}"))
        .await
        .data();
    assert_eq!(read["infrastructure"]["yaml"], yaml);
    let listed = api
        .get(&format!(
            "/ng/api/infrastructures?{SCOPE}&environmentIdentifier=prod"
        ))
        .await;
    assert_eq!(listed.data()["totalItems"], 1);
    let mut without = infra.clone();
    without["yaml"] = "".into();
    assert!(
        api.post("/ng/api/infrastructures", &without)
            .await
            .refusal()
            .2
            .contains("yaml")
    );
    let nowhere = json!({"identifier": "x", "orgIdentifier": "default", "projectIdentifier": "default",
        "yaml": yaml.replace("prod", "nowhere").replace("identifier: main", "identifier: x")});
    assert_eq!(
        api.post("/ng/api/infrastructures", &nowhere)
            .await
            .refusal()
            .0,
        404
    );
    let held = api
        .delete(&format!("/ng/api/environmentsV2/prod?{SCOPE}"))
        .await;
    assert_eq!(held.refusal().0, 400);
    let gone = api
        .delete(&format!(
            "/ng/api/infrastructures/main?{SCOPE}&environmentIdentifier=prod"
        ))
        .await;
    assert_eq!(gone.data(), json!(true));
}

#[tokio::test(start_paused = true)]
async fn connectors_come_back_as_they_went_in() {
    let api = Api::new().await;
    let connector = json!({"connector": {"name": "aws", "identifier": "aws", "orgIdentifier": "default",
        "projectIdentifier": "default", "description": "", "tags": {}, "type": "Aws", "accountIdentifier": "acme",
        "spec": {"credential": {"type": "InheritFromDelegate", "region": "us-east-1",
            "crossAccountAccess": {"crossAccountRoleArn": "arn:aws:iam::123456789012:role/deploy", "externalId": "007"}},
            "executeOnDelegate": false}}});
    let made = api
        .post("/ng/api/connectors?accountIdentifier=acme", &connector)
        .await
        .data();
    assert_eq!(made["connector"]["type"], "Aws");
    assert_eq!(made["connector"]["spec"], connector["connector"]["spec"]);
    let mut read = api
        .get(&format!("/ng/api/connectors/aws?{SCOPE}"))
        .await
        .data();
    read["connector"]["description"] = "deploys".into();
    let written = api
        .put("/ng/api/connectors?accountIdentifier=acme", &read)
        .await
        .data();
    assert_eq!(written["connector"]["description"], "deploys");
    assert_eq!(written["connector"]["spec"], connector["connector"]["spec"]);
    let list = json!({"filterType": "Connector", "types": ["Aws"], "orgIdentifier": "default"});
    let listed = api
        .post(
            &format!("/ng/api/connectors/listV2?{SCOPE}&pageIndex=0&pageSize=5"),
            &list,
        )
        .await
        .data();
    assert_eq!(listed["content"][0]["connector"]["identifier"], "aws");
    let other = json!({"types": ["Gcp"]});
    let none = api
        .post(&format!("/ng/api/connectors/listV2?{SCOPE}"), &other)
        .await
        .data();
    assert_eq!(none["totalItems"], 0);
    let mut bad = connector.clone();
    bad["connector"]["identifier"] = "other".into();
    bad["connector"]["spec"]["credential"]["regio"] = "x".into();
    // Harness ignores a field that it does not know; here its author is told.
    let noted = api.post("/ng/api/connectors", &bad).await.json();
    let path = noted["metaData"]["warnings"][0]["path"].as_str();
    assert!(path.is_some_and(|path| path.ends_with("regio")), "{noted}");
    bad["connector"]["spec"]["credential"]["type"] = "Nothing".into();
    let (status, _, message) = api.put("/ng/api/connectors", &bad).await.refusal();
    assert!(status == 400 && message.contains("Nothing"), "{message}");
    let test = api
        .post(
            &format!("/ng/api/connectors/testConnection/aws?{SCOPE}"),
            &json!({}),
        )
        .await
        .data();
    // Nobody is there who could be asked.
    assert_eq!(test["status"], "FAILURE", "{test}");
    let told = test["errorSummary"].as_str().unwrap_or_default();
    assert!(told.contains("connector aws"), "{told}");
    assert_eq!(test["errors"][0]["message"], told);
    assert!(test["errors"][0]["code"].as_u64() > Some(0), "{test}");
}

#[tokio::test(start_paused = true)]
async fn what_a_test_of_a_connection_says_is_kept_until_the_connector_changes() {
    let api = Api::new().await;
    let url = |path: &str| format!("/ng/api/connectors{path}?{SCOPE}");
    let mut code = json!({"connector": {"name": "Code", "identifier": "code",
        "orgIdentifier": "default", "projectIdentifier": "default", "type": "Git",
        "spec": {"url": "file:///srv/not-there", "type": "Http", "connectionType": "Repo", "spec": {}}}});
    api.post(&url(""), &code).await.data();
    let status = async || api.get(&url("/code")).await.data()["status"].clone();
    assert_eq!(status().await, Value::Null);
    let failed = api
        .post(&url("/testConnection/code"), &json!({}))
        .await
        .data();
    let kept = status().await;
    assert_eq!(kept["status"], "FAILURE");
    assert_eq!(kept["errorSummary"], failed["errorSummary"]);
    assert_eq!(kept["errors"][0]["reason"], "Unknown");
    assert_eq!(kept["testedAt"], failed["testedAt"]);
    assert_eq!(kept["lastTestedAt"], failed["testedAt"]);
    assert_eq!(kept["lastConnectedAt"], Value::Null);
    let listed = api.post(&url("/listV2"), &json!({})).await.data();
    assert_eq!(listed["content"][0]["status"], kept);

    // Nobody has tested what it is now.
    code["connector"]["spec"]["url"] = "file:///srv/nor-there".into();
    api.put(&url(""), &code).await.data();
    assert_eq!(status().await, Value::Null);

    // Of other types nothing is said.
    let builds = json!({"connector": {"name": "Builds", "identifier": "builds",
        "orgIdentifier": "default", "projectIdentifier": "default", "type": "Jenkins",
        "spec": {"jenkinsUrl": "https://jenkins.example", "auth": {"type": "Anonymous"}}}});
    api.post(&url(""), &builds).await.data();
    let tested = api
        .post(&url("/testConnection/builds"), &json!({}))
        .await
        .data();
    assert_eq!(tested["status"], "UNKNOWN");
    let read = api.get(&url("/builds")).await.data();
    assert_eq!(read["status"], Value::Null);
}
