//! Environment groups, overrides, variables, triggers and freezes: kept, found and given back.

use serde_json::{Value, json};
use slipway_model::id::{AccountId, EntityId, OrgId, ProjectId, Scope};
use slipway_store::TriggerPlace;
use slipway_store::record::{HookRecord, HookResult};

use super::{Api, SCOPE};

impl Api {
    /// An environment `prod`, a service `web` and a pipeline `deploy`.
    async fn with_targets(&self) {
        let yaml = "environment:\n  name: prod\n  identifier: prod\n  type: Production\n---\nservice:\n  name: web\n  identifier: web\n---\npipeline:\n  name: deploy\n  identifier: deploy\n  stages:\n    - stage:\n        name: one\n        identifier: one\n        type: Custom\n        spec:\n          execution:\n            steps:\n              - step:\n                  name: w\n                  identifier: w\n                  type: Wait\n                  spec:\n                    duration: 1s\n";
        let rows = self.apply(yaml).await;
        assert!(
            rows.iter().all(|row| row["result"] == "created"),
            "{rows:?}"
        );
    }

    /// The rows of an applied file.
    async fn apply(&self, yaml: &str) -> Vec<Value> {
        let body = json!({"files": [{"file": "all.yaml", "yaml": yaml}]});
        let path = format!("/slipway/api/apply?{SCOPE}");
        let data = self.post(&path, &body).await.data();
        data.as_array().cloned().unwrap_or_default()
    }
}

#[tokio::test(start_paused = true)]
async fn an_environment_group() {
    let api = Api::new().await;
    let path = format!("/ng/api/environmentGroup?{SCOPE}");
    let one = format!("/ng/api/environmentGroup/all?{SCOPE}");
    let yaml = "environmentGroup:\n  name: all\n  identifier: all\n  orgIdentifier: default\n  projectIdentifier: default\n  envIdentifiers:\n    - prod # the real one\n    - org.qa\n";
    let body = json!({"identifier": "all", "orgIdentifier": "default", "projectIdentifier": "default",
        "color": "#004fc4", "yaml": yaml});
    let made = api.post(&path, &body).await.data();
    assert_eq!(
        made["envGroup"]["envIdentifiers"],
        json!(["prod", "org.qa"])
    );
    assert_eq!(made["envGroup"]["yaml"], yaml);
    let read = api.get(&one).await.data();
    assert_eq!(
        (&read["envGroup"]["name"], &read["envGroup"]["deleted"]),
        (&json!("all"), &json!(false))
    );
    let changed = json!({"identifier": "all", "yaml": yaml.replace("    - org.qa\n", "")});
    let put = api.put(&one, &changed).await.data();
    assert_eq!(put["envGroup"]["envIdentifiers"], json!(["prod"]));
    let listed = format!("/ng/api/environmentGroup/list?{SCOPE}");
    assert_eq!(api.post(&listed, &json!({})).await.data()["totalItems"], 1);
    assert_eq!(api.delete(&one).await.data()["deleted"], true);
    assert_eq!(
        api.get(&one).await.refusal().1,
        "RESOURCE_NOT_FOUND_EXCEPTION"
    );
}

const OVERRIDES: &str = "overrides:\n  type: ENV_SERVICE_OVERRIDE\n  environmentRef: prod\n  serviceRef: web\n  spec:\n    variables:\n      - name: size # of the machine\n        type: String\n        value: large\n";

#[tokio::test(start_paused = true)]
async fn overrides_of_both_spellings() {
    let api = Api::new().await;
    api.with_targets().await;
    for path in ["/ng/api/serviceOverrides", "/ng/api/overrides"] {
        let all = format!("{path}?{SCOPE}");
        let body =
            json!({"orgIdentifier": "default", "projectIdentifier": "default", "yaml": OVERRIDES});
        let made = api.post(&all, &body).await.data();
        assert_eq!(
            (&made["identifier"], &made["type"]),
            (&json!("prod_web"), &json!("ENV_SERVICE_OVERRIDE"))
        );
        assert_eq!(api.post(&all, &body).await.refusal().1, "DUPLICATE_FIELD");
        let one = format!("{path}/prod_web?{SCOPE}");
        assert_eq!(api.get(&one).await.data()["yaml"], OVERRIDES);
        let with_yaml = format!("{path}/get-with-yaml/prod_web?{SCOPE}");
        // As the CLI does it: everything that was read goes back, one field changed.
        let mut read = api.get(&with_yaml).await.data();
        assert_eq!(api.put(&all, &read).await.data()["yaml"], OVERRIDES);
        read["spec"]["variables"][0]["value"] = "small".into();
        let put = api.put(&all, &read).await.data();
        assert!(
            put["yaml"]
                .as_str()
                .is_some_and(|yaml| yaml.contains("small")),
            "{put}"
        );
        let of =
            format!("/ng/api/environmentsV2/serviceOverrides?{SCOPE}&environmentIdentifier=prod");
        let listed = api.get(&of).await.data();
        assert_eq!(
            listed["content"][0]["spec"]["variables"][0]["value"],
            "small"
        );
        assert_eq!(api.get(&all).await.data()["totalItems"], 1);
        assert_eq!(api.delete(&one).await.data(), json!(true));
        assert_eq!(api.get(&one).await.refusal().0, 404);
    }
}

#[tokio::test(start_paused = true)]
async fn overrides_by_fields_and_their_identifiers() {
    let api = Api::new().await;
    api.with_targets().await;
    let all = format!("/ng/api/serviceOverrides?{SCOPE}");
    let body = json!({"environmentRef": "prod", "type": "ENV_GLOBAL_OVERRIDE", "identifier": "mine",
        "spec": {"variables": [{"name": "a", "type": "String", "value": "b"}]}});
    let made = api.post(&all, &body).await.data();
    assert_eq!(
        (&made["identifier"], &made["serviceRef"]),
        (&json!("mine"), &json!(null))
    );
    let infra = json!({"environmentRef": "prod", "infraIdentifier": "web", "type": "INFRA_GLOBAL_OVERRIDE", "spec": {}});
    assert_eq!(
        api.post(&all, &infra).await.data()["identifier"],
        "prod_web"
    );
    // The same identifier for something else is refused, and leads where it led.
    let clash = api.post(&all, &json!({"yaml": OVERRIDES})).await.refusal();
    assert!(clash.2.contains("prod_web"), "{}", clash.2);
    let kept = api
        .get(&format!("/ng/api/serviceOverrides/prod_web?{SCOPE}"))
        .await
        .data();
    assert_eq!(kept["infraIdentifier"], "web");
    for (body, what) in [
        (
            json!({"environmentRef": "gone", "type": "ENV_GLOBAL_OVERRIDE"}),
            "gone",
        ),
        (
            json!({"environmentRef": "prod", "type": "ENV_SERVICE_OVERRIDE"}),
            "serviceRef",
        ),
        (
            json!({"environmentRef": "prod", "type": "ENV_GLOBAL_OVERRIDE", "serviceRef": "web"}),
            "serviceRef",
        ),
        (
            json!({"environmentRef": "../prod", "type": "ENV_GLOBAL_OVERRIDE"}),
            "environmentRef",
        ),
        (json!({"type": "ENV_GLOBAL_OVERRIDE"}), "environmentRef"),
    ] {
        let (_, _, message) = api.post(&all, &body).await.refusal();
        assert!(message.contains(what), "{what}: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn overrides_of_version_1() {
    let api = Api::new().await;
    api.with_targets().await;
    let all = format!("/ng/api/environmentsV2/serviceOverrides?{SCOPE}");
    let yaml = "serviceOverrides:\n  environmentRef: prod\n  serviceRef: web\n  variables:\n    - name: a # why\n      type: String\n      value: b\n";
    let body = json!({"orgIdentifier": "default", "projectIdentifier": "default",
        "environmentIdentifier": "prod", "serviceIdentifier": "web", "yaml": yaml});
    for _ in 0..2 {
        assert_eq!(api.post(&all, &body).await.data()["yaml"], yaml);
    }
    let listed = format!("{all}&environmentIdentifier=prod&serviceIdentifier=web");
    let found = api.get(&listed).await.data();
    assert_eq!(
        (&found["totalItems"], &found["content"][0]["serviceRef"]),
        (&json!(1), &json!("web"))
    );
    let mut slip = body.clone();
    slip["environmentIdentifier"] = "qa".into();
    assert!(
        api.post(&all, &slip)
            .await
            .refusal()
            .2
            .contains("environmentRef")
    );
    assert_eq!(api.delete(&listed).await.data(), json!(true));
    assert_eq!(api.get(&listed).await.data()["totalItems"], 0);
}

#[tokio::test(start_paused = true)]
async fn variables_at_every_scope() {
    let api = Api::new().await;
    for scope in [
        "",
        "&orgIdentifier=default",
        "&orgIdentifier=default&projectIdentifier=default",
    ] {
        let all = format!("/ng/api/variables?accountIdentifier=acme{scope}");
        let one = format!("/ng/api/variables/region?accountIdentifier=acme{scope}");
        let mut body = json!({"variable": {"identifier": "region", "name": "region", "description": "d",
            "type": "String", "spec": {"valueType": "FIXED", "fixedValue": "eu-west-1"}}});
        let made = api.post(&all, &body).await.data();
        assert_eq!(
            made["variable"]["spec"]["fixedValue"], "eu-west-1",
            "{scope}"
        );
        body["variable"]["spec"]["fixedValue"] = "1".into();
        assert_eq!(
            api.put(&all, &body).await.data()["variable"]["spec"]["fixedValue"],
            "1"
        );
        assert_eq!(api.get(&one).await.data()["variable"]["name"], "region");
        assert_eq!(api.get(&all).await.data()["totalItems"], 1);
        assert_eq!(api.delete(&one).await.data(), json!(true));
        assert_eq!(api.get(&one).await.refusal().0, 404);
    }
    let mut set = json!({"variable": {"identifier": "size", "name": "size", "type": "String",
        "spec": {"valueType": "FIXED_SET", "allowedValues": ["s", "l"], "defaultValue": "l"}}});
    let path = "/ng/api/variables?accountIdentifier=acme";
    api.post(path, &set).await.data();
    set["variable"]["spec"]["fixedValue"] = json!("xl");
    let refused = api.put(path, &set).await.refusal();
    assert!(
        refused.2.contains("spec.fixedValue: must be one of s, l"),
        "{}",
        refused.2
    );
    let secret = json!({"variable": {"identifier": "s", "name": "s", "type": "Secret",
        "spec": {"valueType": "FIXED", "fixedValue": "x"}}});
    let refused = api.post("/ng/api/variables", &secret).await.refusal();
    assert!(refused.2.contains("not supported"), "{}", refused.2);
}

const TRIGGER: &str = "trigger:\n  name: nightly\n  identifier: nightly\n  enabled: true # by night\n  orgIdentifier: default\n  projectIdentifier: default\n  pipelineIdentifier: deploy\n  source:\n    type: Scheduled\n    spec:\n      type: Cron\n      spec:\n        type: UNIX\n        expression: 0 4 * * *\n";

#[tokio::test(start_paused = true)]
async fn triggers_are_kept_listed_and_say_when_they_are_next() {
    let api = Api::new().await;
    api.with_targets().await;
    let all = format!("/pipeline/api/triggers?{SCOPE}&targetIdentifier=deploy");
    let one = format!("/pipeline/api/triggers/nightly?{SCOPE}&targetIdentifier=deploy");
    // Terraform labels its YAML as JSON.
    let made = api
        .call("POST", &all, "application/json", TRIGGER)
        .await
        .data();
    assert_eq!(
        (&made["yaml"], &made["type"]),
        (&json!(TRIGGER), &json!("Scheduled"))
    );
    let listed = api.get(&all).await.data();
    let item = &listed["content"][0];
    assert_eq!(item["triggerStatus"]["status"], "SUCCESS");
    let next = item["nextExecutionTime"].as_i64().expect("a time");
    let later = next - api.clock.now_ms();
    assert!((1..=24 * 3_600_000).contains(&later), "{later}");
    let off = TRIGGER.replace("enabled: true", "enabled: false");
    let put = api.call("PUT", &one, "application/yaml", &off).await.data();
    assert_eq!(
        (&put["enabled"], &put["targetIdentifier"]),
        (&json!(false), &json!("deploy"))
    );
    let listed = api.get(&all).await.data();
    assert_eq!(listed["content"][0]["nextExecutionTime"], json!(null));
    let history =
        format!("/pipeline/api/triggers/eventHistory/nightly?{SCOPE}&targetIdentifier=deploy");
    assert_eq!(api.get(&history).await.data()["totalElements"], 0);
    let catalog = format!("/pipeline/api/triggers/catalog?{SCOPE}&targetIdentifier=deploy");
    let catalog = api.get(&catalog).await.data();
    let listed = catalog["catalog"].as_array().expect("a list");
    let of = |category: &str| {
        listed
            .iter()
            .find(|one| one["category"] == category)
            .expect("listed")
    };
    assert_eq!(of("Manifest")["triggerCatalogType"], json!(["HelmChart"]));
    assert!(
        of("Artifact")["triggerCatalogType"]
            .to_string()
            .contains("AmazonS3")
    );
    let unknown = format!("/pipeline/api/webhook/triggerProcessingDetails?{SCOPE}&eventId=x");
    assert_eq!(api.get(&unknown).await.data()["eventFound"], false);
    // A registry that cannot be asked is told of where its trigger is listed.
    let artifact = "trigger:\n  name: image\n  identifier: image\n  orgIdentifier: default\n  projectIdentifier: default\n  pipelineIdentifier: deploy\n  source:\n    type: Artifact\n    spec:\n      type: DockerRegistry\n      spec:\n        connectorRef: nowhere\n        imagePath: shop\n        tag: <+trigger.artifact.build>\n";
    api.call("POST", &all, "application/yaml", artifact)
        .await
        .data();
    let image = format!("/pipeline/api/triggers/image/details?{SCOPE}&targetIdentifier=deploy");
    let status = api.get(&image).await.data()["triggerStatus"].clone();
    assert_eq!(status["pollingSubscriptionStatus"], json!(null));
    let spec = json!({"imagePath": "shop", "connectorRef": "nowhere"});
    let feed =
        slipway_trigger::feed::Feed::new("DockerRegistry", &spec, "acme/default/default/nowhere");
    let record = slipway_store::record::FeedRecord {
        why: Some("the connector `nowhere` does not exist".to_owned()),
        failures: 1,
        ..Default::default()
    };
    api.store
        .put_feed(&feed.key(), &record)
        .await
        .expect("kept");
    let polled = image.replace("image/details", "eventHistory/polledResponse/image");
    let none = api.get(&polled).await.data()["polledResponse"]["allPolledKeys"].clone();
    assert_eq!(none, json!([]));
    let refused = api
        .get(&polled.replace("/image?", "/nightly?"))
        .await
        .refusal();
    assert!(refused.0 == 400 && refused.2.contains("watches no registry"));
    let status = api.get(&image).await.data()["triggerStatus"].clone();
    assert_eq!(status["status"], "FAILED");
    assert_eq!(
        status["pollingSubscriptionStatus"]["statusResult"],
        "FAILED"
    );
    assert_eq!(
        status["detailMessages"],
        json!(["the connector `nowhere` does not exist"])
    );
    let record = slipway_store::record::FeedRecord {
        seen: Some(vec!["1.9".to_owned(), "1.10".to_owned()]),
        version: 1,
        ..record
    };
    api.store
        .put_feed(&feed.key(), &record)
        .await
        .expect("kept");
    let seen = api.get(&polled).await.data()["polledResponse"]["allPolledKeys"].clone();
    assert_eq!(seen, json!(["1.9", "1.10"]));
    // What never could start anything is refused with the reason.
    for (expression, why) in [
        ("0 4 * *", "five"),
        ("\"* * * * *\"", "5 minutes"),
        ("99 4 * * *", "99"),
    ] {
        let wrong = TRIGGER
            .replace("0 4 * * *", expression)
            .replace("nightly", "wrong");
        let (status, _, message) = api.call("POST", &all, "", &wrong).await.refusal();
        assert!(
            status == 400 && message.contains(why),
            "{expression}: {message}"
        );
    }
    let other = api
        .call("POST", &all.replace("=deploy", "=other"), "", TRIGGER)
        .await;
    assert!(other.refusal().2.contains("pipelineIdentifier"));
    assert_eq!(api.delete(&one).await.data(), json!(true));
    assert_eq!(api.get(&one).await.refusal().0, 404);
}

const PUSHED: &str = "trigger:\n  name: pushed\n  identifier: pushed\n  orgIdentifier: default\n  projectIdentifier: default\n  pipelineIdentifier: deploy\n  source:\n    type: Webhook\n    spec:\n      type: Github\n      spec:\n        type: Push\n        spec:\n          connectorRef: code\n";

#[tokio::test(start_paused = true)]
async fn a_trigger_says_what_became_of_its_webhook() {
    let api = Api::new().await;
    api.with_targets().await;
    let all = format!("/pipeline/api/triggers?{SCOPE}&targetIdentifier=deploy");
    let one = format!("/pipeline/api/triggers/pushed?{SCOPE}&targetIdentifier=deploy");
    api.call("POST", &all, "", PUSHED).await.data();
    let details = one.replace("pushed?", "pushed/details?");
    let row = api.get(&details).await.data();
    assert_eq!(
        row["triggerStatus"]["webhookAutoRegistrationStatus"],
        json!(null)
    );
    assert_eq!(row["triggerStatus"]["status"], "SUCCESS");
    // It is noted for who registers it, each time that the trigger is saved, also as it was.
    let place = place_of("pushed");
    let what = format!("hook/{}", place.key());
    for _ in 0..2 {
        let due = api
            .store
            .find_due(&place.scope, &what)
            .await
            .expect("an answer");
        let due = due.expect("a webhook that is due");
        assert!(
            api.store
                .forget_due_of(&place.scope, &due)
                .await
                .expect("forgotten")
        );
        api.call("PUT", &one, "", PUSHED).await.data();
    }
    for (result, name, status, why) in [
        (HookResult::Success, "SUCCESS", "SUCCESS", None),
        (HookResult::Failed, "FAILED", "FAILED", Some("it may not")),
        (HookResult::Error, "ERROR", "FAILED", Some("it is away")),
        (HookResult::Timeout, "TIMEOUT", "FAILED", Some("it is slow")),
        (
            HookResult::Unavailable,
            "UNAVAILABLE",
            "SUCCESS",
            Some("add it by hand"),
        ),
    ] {
        let record = HookRecord {
            result,
            message: why.map(str::to_owned),
            tried_ms: 0,
            repository: None,
            url: None,
        };
        api.store.put_hook(&place, &record).await.expect("noted");
        let row = api.get(&details).await.data();
        let told = json!({"registrationResult": name, "detailedMessage": why});
        assert_eq!(row["triggerStatus"]["webhookAutoRegistrationStatus"], told);
        assert_eq!(row["triggerStatus"]["status"], status, "{name}");
        assert_eq!(
            row["triggerStatus"]["detailMessages"],
            json!(Vec::from_iter(why))
        );
        assert_eq!(row["registrationStatus"], name);
    }
    api.delete(&one).await.data();
    let left = api.store.find_hook(&place).await.expect("an answer");
    assert_eq!(left, None);
}

/// The place of a trigger of the pipeline `deploy`.
fn place_of(trigger: &str) -> TriggerPlace {
    let [account, org, project] = ["acme", "default", "default"];
    TriggerPlace {
        scope: Scope::project(
            AccountId::new(account),
            OrgId::new(org),
            ProjectId::new(project),
        ),
        pipeline: EntityId::new("deploy"),
        trigger: EntityId::new(trigger),
    }
}

const FREEZE: &str = "freeze:\n  name: winter\n  identifier: winter\n  orgIdentifier: default\n  projectIdentifier: default\n  status: Disabled # for now\n  entityConfigs:\n    - name: all\n      entities:\n        - type: Service\n          filterType: All\n        - type: EnvType\n          filterType: All\n  windows:\n    - timeZone: UTC\n      startTime: 2026-12-20 10:00 AM\n      duration: 5d\n";

#[tokio::test(start_paused = true)]
async fn freezes_are_kept_and_understood() {
    let api = Api::new().await;
    let path = |rest: &str| format!("/ng/api/freeze{rest}?{SCOPE}");
    let made = api
        .call("POST", &path(""), "application/json", FREEZE)
        .await
        .data();
    assert_eq!(
        (&made["status"], &made["freezeScope"]),
        (&json!("Disabled"), &json!("project"))
    );
    assert_eq!(api.get(&path("/winter")).await.data()["yaml"], FREEZE);
    let on = format!("{}&status=Enabled", path("/updateFreezeStatus"));
    let done = api.post(&on, &json!(["winter", "gone"])).await.data();
    assert_eq!(
        (&done["noOfSuccess"], &done["noOfFailed"]),
        (&json!(1), &json!(1))
    );
    let read = api.get(&path("/winter")).await.data();
    assert_eq!(read["yaml"], FREEZE.replace("Disabled", "Enabled"));
    let list = json!({"filterType": "FreezeSetup", "freezeStatus": "Enabled"});
    assert_eq!(
        api.post(&path("/list"), &list).await.data()["totalItems"],
        1
    );
    // From 2026-12-20 10:00 to 2026-12-25 10:00, by its filter of times.
    let hour = 3_600_000;
    let (opens, closes) = (1_797_760_800_000_i64, 1_798_192_800_000_i64);
    for (times, listed) in [
        (json!({"startTime": opens - hour, "endTime": opens}), 1),
        (
            json!({"startTime": opens + hour, "endTime": opens + hour}),
            1,
        ),
        (json!({"startTime": opens - hour, "endTime": opens - 1}), 0),
        (json!({"startTime": closes - 1}), 1),
        (json!({"startTime": closes.to_string()}), 0),
        (json!({"endTime": opens, "startTime": null}), 1),
        (json!({"endTime": opens - 1}), 0),
        (
            json!({"startTime": i64::from(i32::MIN), "endTime": closes}),
            1,
        ),
    ] {
        let found = api.post(&path("/list"), &times).await.data();
        assert_eq!(found["totalItems"], listed, "{times}");
    }
    for wrong in [
        json!({"startTime": "monday"}),
        json!({"endTime": i64::MAX}),
        json!({"startTime": opens, "endTime": opens - 1}),
    ] {
        let (status, ..) = api.post(&path("/list"), &wrong).await.refusal();
        assert_eq!(status, 400, "{wrong}");
    }
    let enabled = FREEZE.replace("Disabled", "Enabled");
    let put = api
        .call("PUT", &path("/winter"), "application/yaml", &enabled)
        .await
        .json();
    let window = &put["data"]["currentOrUpcomingWindow"];
    // 2026-12-20T10:00:00Z, and five days later.
    let times = json!({"startTime": 1_797_760_800_000_i64, "endTime": 1_798_192_800_000_i64});
    assert_eq!(*window, times, "{put}");
    for (wrong, why) in [
        ("duration: 10m", "shorter than 30 minutes"),
        ("endTime: 2026-12-01 10:00 AM", "is not after `startTime`"),
        ("endTime: tomorrow", "`tomorrow` is no time"),
    ] {
        let yaml = FREEZE.replace("duration: 5d", wrong);
        let winter = path("/winter");
        let put = api.call("PUT", &winter, "application/yaml", &yaml);
        let (status, _, message) = put.await.refusal();
        assert_eq!(status, 400, "{wrong}");
        assert!(message.contains(why), "{message}");
    }
    let global = api.get(&path("/getGlobalFreeze")).await.data();
    assert_eq!(
        (&global["identifier"], &global["status"]),
        (&json!("_GLOBAL_"), &json!("Disabled"))
    );
    let yaml = FREEZE.replace("identifier: winter", "identifier: _GLOBAL_");
    let manage = path("/manageGlobalFreeze");
    let managed = api
        .call("POST", &manage, "application/yaml", &yaml)
        .await
        .data();
    assert_eq!(managed["type"], "GLOBAL");
    assert_eq!(api.delete(&path("/winter")).await.data(), json!(true));
    assert_eq!(
        api.post(&path("/delete"), &json!(["_GLOBAL_"]))
            .await
            .data()["noOfSuccess"],
        1
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_freeze_cannot_mean_is_refused_with_its_place_and_what_it_may_not_is_told() {
    let api = Api::new().await;
    api.with_targets().await;
    let of_service = |name: &str| {
        FREEZE
            .replace(
                "          filterType: All\n        - type: EnvType",
                &format!("          filterType: Equals\n          entityRefs: [{name}]\n        - type: EnvType"),
            )
            .replace("2026-12-20", "2020-12-20")
    };
    let zone = of_service("web").replace("timeZone: UTC", "timeZone: Europe/Berln");
    let rows = api.apply(&zone).await;
    assert_eq!(rows[0]["result"], "refused");
    let fault = &rows[0]["errors"][0];
    assert_eq!((&fault["line"], &fault["column"]), (&json!(16), &json!(17)));
    let rendered = fault["rendered"].as_str().unwrap_or_default();
    assert!(
        rendered.contains("did you mean `Europe/Berlin`?"),
        "{rendered}"
    );

    let told = |row: &Value| {
        let warnings = row["warnings"].as_array().cloned().unwrap_or_default();
        let told = warnings.iter().map(|one| {
            let text = one["message"].as_str().unwrap_or_default();
            format!("{}: {text}", one["line"])
        });
        told.collect::<Vec<_>>()
    };
    let over = "17: this window is over: it holds nothing back any more";
    let rows = api.apply(&of_service("wbe")).await;
    assert_eq!(rows[0]["result"], "created", "{rows:?}");
    assert_eq!(told(&rows[0]), [over, "12: there is no Service `wbe` here"]);
    let rows = api.apply(&of_service("web")).await;
    assert_eq!(told(&rows[0]), [over]);
    // The same over Harness's own way.
    let put = api
        .call(
            "PUT",
            &format!("/ng/api/freeze/winter?{SCOPE}"),
            "application/yaml",
            &of_service("wbe"),
        )
        .await
        .json();
    let warnings = put["metaData"]["warnings"].to_string();
    assert!(warnings.contains("there is no Service `wbe` here"), "{put}");
}

#[tokio::test(start_paused = true)]
async fn all_of_them_are_applied_whatever_their_order() {
    let api = Api::new().await;
    let mut documents = vec![
        "overlayInputSet:\n  name: o\n  identifier: o\n  orgIdentifier: default\n  projectIdentifier: default\n  pipelineIdentifier: deploy\n  inputSetReferences: [i]\n".to_owned(),
        "inputSet:\n  name: i\n  identifier: i\n  orgIdentifier: default\n  projectIdentifier: default\n  pipeline:\n    identifier: deploy\n".to_owned(),
        "environmentGroup:\n  name: g\n  identifier: g\n  envIdentifiers: [prod]\n".to_owned(),
        "variable:\n  identifier: v\n  name: v\n  type: String\n  spec:\n    valueType: FIXED\n    fixedValue: x\n".to_owned(),
        "file:\n  identifier: values\n  name: values.yaml\n  type: FILE\n  parentIdentifier: folder\n  content: |\n    a: 1\n".to_owned(),
        "file:\n  identifier: folder\n  name: charts\n  type: FOLDER\n".to_owned(),
        "secret:\n  name: f\n  identifier: f\n  type: SecretFile\n  spec:\n    secretManagerIdentifier: harnessSecretManager\n".to_owned(),
        OVERRIDES.to_owned(),
        TRIGGER.to_owned(),
        FREEZE.to_owned(),
        "serviceOverrides:\n  environmentRef: prod\n  serviceRef: web\n".to_owned(),
    ];
    for _ in 0..2 {
        documents.reverse();
        let api = Api::new().await;
        api.with_targets().await;
        for expected in ["created", "unchanged"] {
            let rows = api.apply(&documents.join("---\n")).await;
            assert_eq!(rows.len(), documents.len());
            assert!(
                rows.iter().all(|row| row["result"] == expected),
                "{expected}: {rows:#?}"
            );
        }
    }
    drop(api);
}
