//! What triggers watch in Azure Artifacts, Nexus 2 and Bamboo, at servers that answer as those do.

use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use slipway_engine::gather::SourceReader as _;
use slipway_model::id::{AccountId, Scope};
use slipway_plan::{
    ArtifactAnswer, ArtifactPlace, ArtifactQuestion, ArtifactVersion, WantedArtifact,
};
use slipway_source::Polled;

use crate::feed_host::{BASIC, Host, connector, feed, login, page, patient, poll, refused, seen};

/// A personal access token as Azure takes it: a password without a user.
const PAT: &str = "Basic OnQwcC1zM2NyZXQtdG9rZW4=";

fn azure(address: &str, reference: &str) -> slipway_plan::ConnectorPlan {
    let token = json!({"type": "PersonalAccessToken", "spec": {"tokenRef": reference}});
    connector(
        "AzureArtifacts",
        json!({"azureArtifactsUrl": format!("{address}/acme/"), "auth": {"spec": token}}),
    )
}

#[tokio::test]
async fn versions_of_a_package_of_azure_are_found_by_its_id() {
    let host = Host::new(|asked| {
        if asked.header("authorization") != PAT {
            return StatusCode::NON_AUTHORITATIVE_INFORMATION.into_response();
        }
        let named = |name: &str, id: &str| json!({"id": id, "name": name, "protocolType": "Maven"});
        let version = |version: &str, day: u32| json!({"id": "g", "version": version, "publishDate": format!("2026-01-{day:02}T00:00:00.1234567Z"), "isListed": true});
        match asked.path.as_str() {
            "/acme/shop/_apis/packaging/Feeds/libs/Packages" => {
                assert!(asked.query.starts_with("protocolType=Maven&packageNameQuery="), "{}", asked.query);
                // A whole page of others, then the one.
                match asked.query.contains("%24skip=1000&") {
                    false => {
                        let others = (0..1000).map(|number| named(&format!("com.acme:web-{number}"), "x"));
                        page(&json!({"count": 1000, "value": others.collect::<Vec<_>>()}))
                    }
                    true => page(&json!({"count": 1, "value": [named("com.acme:web", "8e1")]})),
                }
            }
            "/acme/shop/_apis/packaging/Feeds/libs/Packages/8e1/versions" => {
                let mut hidden = version("1.11", 9);
                hidden["isListed"] = json!(false);
                page(&json!({"count": 3, "value": [version("1.10", 5), version("1.9", 2), hidden]}))
            }
            "/acme/_apis/packaging/Feeds/all/Packages" => page(&json!({"count": 0, "value": []})),
            "/acme/_apis/packaging/Feeds/strange/Packages" => page(&json!({"items": []})),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    let of = |feed_name: &str, more: Value| {
        let mut spec =
            json!({"feed": feed_name, "packageName": "com.acme:web", "packageType": "maven"});
        for (name, value) in more.as_object().into_iter().flatten() {
            spec[name] = value.clone();
        }
        feed("AzureArtifacts", spec)
    };
    let libs = of(
        "libs",
        json!({"project": "shop", "version": "<+trigger.artifact.build>"}),
    );
    let known = azure(&host.address, "account.token");
    let (versions, state, last) = seen(poll(&patient(), &libs, &known, None).await);
    assert_eq!(versions, ["1.9", "1.10"]);
    assert_eq!(
        last,
        json!({"version": "1.10", "package": "com.acme:web", "packageType": "maven", "feed": "libs", "project": "shop"})
    );
    let again = poll(&patient(), &libs, &known, state.as_deref()).await;
    assert_eq!(again, Ok(Polled::Unchanged));
    // Of the whole organization, without a project; and what it says where there is nothing.
    let none = json!({});
    for (of, connector, said) in [
        (
            of("all", none.clone()),
            &known,
            "feed all has no Maven package com.acme:web",
        ),
        (
            of("strange", none.clone()),
            &known,
            "its answer has no `value`",
        ),
        (
            of("gone", none.clone()),
            &known,
            "(404): check `feed` and `project`",
        ),
        (
            of("all", json!({"packageType": "apt"})),
            &known,
            "packages of type apt are not polled",
        ),
        (
            of("all", json!({"packageName": ""})),
            &known,
            "`package` of the trigger is missing",
        ),
        (
            of("all", none.clone()),
            &azure(&host.address, ""),
            "it has no `tokenRef`",
        ),
        (
            of("all", none.clone()),
            &azure(&host.address, "account.phrase"),
            "asks to sign in (203)",
        ),
    ] {
        let why = refused(&of, connector).await;
        assert!(why.contains(said), "{why}");
    }
}

#[tokio::test]
async fn versions_of_nexus_2_are_the_folders_of_an_artifact() {
    let host = Host::new(|asked| {
        let entry = |text: &str, leaf: bool, day: u32| json!({"resourceURI": "http://n/x", "relativePath": format!("/com/acme/web/{text}"), "text": text,
            "leaf": leaf, "lastModified": format!("2026-01-{day:02} 09:04:32.0 UTC"), "sizeOnDisk": -1});
        match asked.path.as_str() {
            _ if asked.header("authorization") != BASIC => StatusCode::UNAUTHORIZED.into_response(),
            "/nexus/service/local/repositories/releases/content/com/acme/web/" => {
                assert_eq!(asked.header("accept"), "application/json");
                page(&json!({"data": [entry("1.10", false, 9), entry("1.9", false, 2), entry("maven-metadata.xml", true, 9)]}))
            }
            "/nexus/service/local/repositories/snapshots/content/com/acme/web/" => {
                page(&json!({"data": [entry("2.0-SNAPSHOT", false, 1)]}))
            }
            "/nexus/service/local/repositories/strange/content/com/acme/web/" => page(&json!({"items": []})),
            "/nexus/content/repositories/npm/@acme%2Fweb" => match asked.header("if-none-match") {
                "\"n1\"" => StatusCode::NOT_MODIFIED.into_response(),
                _ => {
                    let about = json!({"dist": {"tarball": "http://n/web.tgz"}});
                    let body = json!({"name": "@acme/web", "versions": {"1.10.0": about, "1.9.0": {}},
                        "time": {"created": "2026-01-01T00:00:00.000Z", "1.9.0": "2026-01-02T00:00:00.000Z", "1.10.0": "2026-01-03T00:00:00.000Z"}});
                    ([("etag", "\"n1\"")], body.to_string()).into_response()
                }
            },
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    let nexus = |auth: Value| {
        let url = format!("{}/nexus/", host.address);
        connector(
            "Nexus",
            json!({"nexusServerUrl": url, "version": "2.x", "auth": auth}),
        )
    };
    let known = nexus(login());
    let of = |repository: &str, extension: &str| {
        let spec = json!({"repositoryFormat": "maven", "repositoryName": repository, "groupId": "com.acme", "artifactId": "web",
            "extension": extension, "classifier": "all"});
        feed("Nexus2Registry", spec)
    };
    let releases = of("releases", "jar");
    let (versions, state, last) = seen(poll(&patient(), &releases, &known, None).await);
    assert_eq!(versions, ["1.9", "1.10"]);
    let url = format!(
        "{}/nexus/content/repositories/releases/com/acme/web/1.10/web-1.10-all.jar",
        host.address
    );
    assert_eq!(
        last,
        json!({"version": "1.10", "repositoryName": "releases", "groupId": "com.acme", "artifactId": "web", "extension": "jar",
            "classifier": "all", "fileName": "web-1.10-all.jar", "url": url})
    );
    let again = poll(&patient(), &releases, &known, state.as_deref()).await;
    assert_eq!(again, Ok(Polled::Unchanged));
    let (versions, _, last) = seen(poll(&patient(), &of("snapshots", "jar"), &known, None).await);
    assert_eq!(
        (versions, &last["url"]),
        (vec!["2.0-SNAPSHOT".to_owned()], &Value::Null)
    );

    let npm = json!({"repositoryFormat": "npm", "repository": "npm", "packageName": "@acme/web"});
    let npm = feed("Nexus2Registry", npm);
    let (versions, state, last) = seen(poll(&patient(), &npm, &known, None).await);
    assert_eq!(versions, ["1.9.0", "1.10.0"]);
    assert_eq!(last["url"], "http://n/web.tgz");
    let again = poll(&patient(), &npm, &known, state.as_deref()).await;
    assert_eq!(again, Ok(Polled::Unchanged));

    let raw = feed(
        "Nexus2Registry",
        json!({"repositoryFormat": "raw", "repository": "r", "packageName": "p"}),
    );
    for (of, connector, said) in [
        (
            of("gone", "jar"),
            &known,
            "(404): check `repository`, `groupId`",
        ),
        (
            of("strange", "jar"),
            &known,
            "check that the connector leads to a Nexus 2",
        ),
        (raw, &known, "packages of format raw of Nexus 2"),
        (
            of("releases", "jar"),
            &nexus(json!({"type": "Anonymous"})),
            "asks for a login (401)",
        ),
    ] {
        let why = refused(&of, connector).await;
        assert!(why.contains(said), "{why}");
    }
}

#[tokio::test]
async fn builds_of_a_plan_of_bamboo_are_those_that_went_well() {
    let host = Host::new(|asked| {
        let well = |number: i64| json!({"key": format!("SHOP-WEB-{number}"), "buildNumber": number, "buildState": "Successful", "lifeCycleState": "Finished",
            "vcsRevisionKey": "c0ffee"});
        let page_of = |results: Vec<Value>| {
            page(&json!({"results": {"size": results.len(), "start-index": 0, "max-result": 100, "result": results}}))
        };
        let known = asked.header("authorization") == BASIC;
        match asked.path.as_str() {
            // Without the parameter anonymous people get what everybody may see.
            _ if asked.query.contains("os_authType=basic") && !known => StatusCode::UNAUTHORIZED.into_response(),
            "/bamboo/rest/api/latest/result/SHOP-WEB" => {
                assert!(asked.query.starts_with("buildstate=Successful&expand=results.result&"), "{}", asked.query);
                let mut failed = well(12);
                failed["buildState"] = json!("Failed");
                let mut open = well(11);
                open["lifeCycleState"] = json!("InProgress");
                page_of(vec![failed, open, well(10), well(9)])
            }
            // As many as are asked for: of older ones, that come into view when newer ones are deleted, none is new.
            "/bamboo/rest/api/latest/result/SHOP-MANY" => match asked.number {
                0 => page_of((101..201).rev().map(well).collect()),
                _ => page_of((100..200).rev().map(well).collect()),
            },
            "/bamboo/rest/api/latest/result/SHOP-ODD" => page(&json!({"size": 0})),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    let bamboo = |auth: Value| {
        let url = format!("{}/bamboo", host.address);
        connector("Bamboo", json!({"bambooUrl": url, "auth": auth}))
    };
    let known = bamboo(login());
    let of = |plan: &str| {
        feed(
            "Bamboo",
            json!({"planKey": plan, "build": "<+trigger.artifact.build>", "artifactPaths": ["a"]}),
        )
    };
    let (many, state, _) = seen(poll(&patient(), &of("SHOP-MANY"), &known, None).await);
    assert_eq!((many.len(), many[0].as_str()), (100, "101"));
    let (fewer, ..) = seen(poll(&patient(), &of("SHOP-MANY"), &known, state.as_deref()).await);
    assert_eq!((fewer.len(), fewer[0].as_str()), (99, "101"));

    let (versions, state, last) = seen(poll(&patient(), &of("SHOP-WEB"), &known, None).await);
    assert_eq!(versions, ["9", "10"]);
    let url = format!("{}/bamboo/browse/SHOP-WEB-10", host.address);
    assert_eq!(
        last,
        json!({"buildNumber": "10", "planKey": "SHOP-WEB", "buildKey": "SHOP-WEB-10", "url": url, "revision": "c0ffee"})
    );
    let again = poll(&patient(), &of("SHOP-WEB"), &known, state.as_deref()).await;
    assert_eq!(again, Ok(Polled::Unchanged));
    // Who has no login is asked without one.
    let (versions, ..) = seen(
        poll(
            &patient(),
            &of("SHOP-WEB"),
            &bamboo(json!({"type": "Anonymous"})),
            None,
        )
        .await,
    );
    assert_eq!(versions.len(), 2);
    let mut other = login();
    other["spec"]["passwordRef"] = json!("account.phrase");
    for (of, connector, said) in [
        (of("SHOP-GONE"), &known, "(404): check `planKey`"),
        (of("SHOP-ODD"), &known, "its answer has no `results.result`"),
        (of(""), &known, "`planKey` of the trigger is missing"),
        (
            of("SHOP-WEB"),
            &bamboo(other),
            "does not accept the connector's login",
        ),
    ] {
        let why = refused(&of, connector).await;
        assert!(why.contains(said), "{why}");
    }
}

#[tokio::test]
async fn services_take_what_triggers_watch() {
    let host = Host::new(|asked| {
        let well = |number: i64| json!({"key": format!("SHOP-WEB-{number}"), "buildNumber": number, "buildState": "Successful"});
        match asked.path.as_str() {
            "/rest/api/latest/result/SHOP-WEB" => page(&json!({"results": {"result": [well(10), well(9), well(8)]}})),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    let wanted = |address: &str, plan: &str, version: ArtifactVersion| WantedArtifact {
        connector: connector(
            "Bamboo",
            json!({"bambooUrl": address, "auth": {"type": "Anonymous"}}),
        ),
        scope: Scope::account(AccountId::new("acme")),
        question: ArtifactQuestion {
            connector: "account.shop".to_owned(),
            place: ArtifactPlace::Listed {
                kind: "Bamboo".to_owned(),
                spec: json!({"planKey": plan}),
            },
            version: Some(version),
            digest: None,
        },
    };
    let exact = |name: &str| ArtifactVersion::Exact(name.to_owned());
    let pattern = ArtifactVersion::Pattern("[0-9]".to_owned());
    let here = host.address.as_str();
    let answers = patient()
        .find_artifacts(&[
            wanted(here, "SHOP-WEB", exact("8")),
            wanted(here, "SHOP-WEB", pattern),
            wanted(here, "SHOP-WEB", exact("7")),
            wanted(here, "SHOP-GONE", exact("8")),
            wanted("https://bamboo.example.com", "SHOP-WEB", exact("8")),
        ])
        .await;
    let told: Vec<String> = answers
        .into_iter()
        .map(|answer| match answer {
            Ok(ArtifactAnswer::Found(found)) => {
                format!("{} {}", found.version, found.metadata["buildKey"])
            }
            Ok(ArtifactAnswer::Unasked(why)) | Err(why) => why,
        })
        .collect();
    assert_eq!(told[..2], ["8 SHOP-WEB-8", "9 SHOP-WEB-9"]);
    assert!(
        told[2].ends_with("has 3 versions, and none called 7: name one that is there"),
        "{}",
        told[2]
    );
    assert!(told[3].contains("(404): check `planKey`"), "{}", told[3]);
    assert!(
        told[4].contains("the account is the sandbox"),
        "{}",
        told[4]
    );
    let listed = patient()
        .list_versions(&wanted(here, "SHOP-WEB", ArtifactVersion::Last), 1, 1)
        .await
        .expect("a list");
    let versions: Vec<&str> = listed
        .versions
        .iter()
        .map(|one| one.found.version.as_str())
        .collect();
    assert_eq!((listed.total, versions), (3, vec!["9"]));
}

/// A page of what Nexus 2 knows of a package, as NuGet's protocol has it.
fn atom(entries: &[(&str, &str)], next: Option<&str>) -> String {
    let entry = |(version, at): &(&str, &str)| {
        format!(
            "<entry><id>x</id><title type=\"text\">Acme.Web</title><content type=\"application/zip\" \
             src=\"http://n/nuget/Acme.Web/{version}\"/><m:properties><d:Version>{version}</d:Version>\
             <d:Published m:type=\"Edm.DateTime\">{at}</d:Published></m:properties></entry>"
        )
    };
    let entries: String = entries.iter().map(entry).collect();
    let next = next.map(|href| format!("<link rel=\"next\" href=\"{href}\"/>"));
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><feed xmlns=\"http://www.w3.org/2005/Atom\" \
         xmlns:d=\"http://schemas.microsoft.com/ado/2007/08/dataservices\" \
         xmlns:m=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\">{entries}{}</feed>",
        next.unwrap_or_default()
    )
}

#[tokio::test]
async fn nuget_packages_of_nexus_2_are_listed_page_by_page() {
    let host = Host::new(|asked| {
        assert_eq!(asked.header("authorization"), BASIC);
        assert_eq!(asked.header("accept"), "application/atom+xml");
        let repository = asked
            .path
            .strip_prefix("/nexus/service/local/nuget/")
            .unwrap_or_default();
        let id = "id=%27Acme.Web%27";
        match (repository, asked.query.as_str()) {
            ("releases/FindPackagesById()", query) if query == id => {
                let later = ("1.10.0", "2026-01-03T00:00:00.000Z");
                let next = format!("FindPackagesById()?{id}&amp;$skiptoken=2");
                atom(&[later, ("1.9.0", "2026-01-02T00:00:00")], Some(&next)).into_response()
            }
            ("releases/FindPackagesById()", _) => {
                atom(&[("2.0.0-rc", "2026-01-02T12:00:00.5")], None).into_response()
            }
            ("empty/FindPackagesById()", _) => atom(&[], None).into_response(),
            ("away/FindPackagesById()", _) => {
                atom(&[], Some("https://elsewhere.example/")).into_response()
            }
            ("page/FindPackagesById()", _) => "<html>sign in</html>".into_response(),
            ("bomb/FindPackagesById()", _) => {
                "<!DOCTYPE feed [<!ENTITY a \"aaaa\">]><feed>&a;</feed>".into_response()
            }
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    let url = format!("{}/nexus", host.address);
    let spec = json!({"nexusServerUrl": url, "version": "2.x", "auth": login()});
    let nexus = connector("Nexus", spec);
    let of = |repository: &str| {
        let spec = json!({"repositoryFormat": "nuget", "repository": repository, "packageName": "Acme.Web"});
        feed("Nexus2Registry", spec)
    };
    let (versions, _, last) = seen(poll(&patient(), &of("releases"), &nexus, None).await);
    assert_eq!(versions, ["1.9.0", "2.0.0-rc", "1.10.0"]);
    assert_eq!(
        last,
        json!({"version": "1.10.0", "repositoryName": "releases", "package": "Acme.Web", "url": "http://n/nuget/Acme.Web/1.10.0"})
    );
    for (repository, said) in [
        ("empty", "has no package Acme.Web"),
        ("away", "an address that is not its own"),
        ("page", "its answer is no list"),
        ("bomb", "its answer is no XML"),
        ("gone", "(404)"),
    ] {
        let why = refused(&of(repository), &nexus).await;
        assert!(why.contains(said), "{repository}: {why}");
    }
}
