//! What triggers watch, at servers that answer as the registries do.

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::response::Response;
use serde_json::{Value, json};
use slipway_model::status::ErrorType;
use slipway_source::Polled;

use crate::feed_host::{
    Asked, BASIC, Host, connector, feed, login, page, patient, poll, refused, seen,
};
use crate::support::TOKEN;

#[tokio::test]
async fn tags_of_a_registry_are_read_page_by_page_and_not_again_while_they_are_the_same() {
    let host = Host::new(|asked| {
        let link = [
            (
                "link",
                "</v2/acme/web/tags/list?n=1000&last=v2>; rel=\"next\"",
            ),
            ("etag", "\"1\""),
        ];
        match (asked.path.as_str(), asked.query.contains("last=v2")) {
            ("/v2/acme/web/tags/list", false) => {
                (link, json!({"tags": ["latest", "v2", "../x"]}).to_string()).into_response()
            }
            ("/v2/acme/web/tags/list", true) => {
                assert_eq!(asked.header("if-none-match"), "");
                page(&json!({"tags": ["v1"]}))
            }
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    let connector = connector("DockerRegistry", json!({"dockerRegistryUrl": host.address}));
    let web = feed(
        "DockerRegistry",
        json!({"imagePath": "acme/web", "tag": "<+trigger.artifact.build>"}),
    );
    let source = patient();
    let (versions, state, last) = seen(poll(&source, &web, &connector, None).await);
    assert_eq!(versions, ["latest", "v2", "v1"]);
    assert_eq!(last["tag"], "v1");
    let image = last["image"].as_str().expect("an image");
    assert!(image.ends_with("/acme/web:v1"), "{image}");
    // The tag of one page says nothing of the other, so that it is not kept.
    let state = state.expect("a state");
    assert!(!state.contains("etag"), "{state}");
    let again = poll(&source, &web, &connector, Some(&state)).await;
    assert_eq!(again, Ok(Polled::Unchanged));
    // A state that cannot be read is none.
    assert_eq!(
        seen(poll(&source, &web, &connector, Some("{]")).await)
            .0
            .len(),
        3
    );
    let gone = feed("DockerRegistry", json!({"imagePath": "acme/none"}));
    let why = refused(&gone, &connector).await;
    assert!(
        why.contains("acme/none") && why.contains("check the name"),
        "{why}"
    );
}

#[tokio::test]
async fn a_registry_with_validators_is_asked_for_what_changed() {
    let host = Host::new(|asked| match asked.header("if-none-match") {
        "\"t1\"" => StatusCode::NOT_MODIFIED.into_response(),
        _ => ([("etag", "\"t1\"")], json!({"tags": ["v1"]}).to_string()).into_response(),
    })
    .await;
    let connector = connector("DockerRegistry", json!({"dockerRegistryUrl": host.address}));
    let web = feed("DockerRegistry", json!({"imagePath": "acme/web"}));
    let source = patient();
    let (_, state, _) = seen(poll(&source, &web, &connector, None).await);
    let again = poll(&source, &web, &connector, state.as_deref()).await;
    assert_eq!((again, host.times()), (Ok(Polled::Unchanged), 2));
}

/// N6, for feeds.
#[tokio::test]
async fn a_busy_host_is_left_alone_by_all_feeds_and_other_hosts_are_not() {
    for (status, told, seconds) in [
        (429, "7", 7),
        (503, "1000000000", 300),
        (500, "-1", 1),
        (429, "Thu, 01 Jan 1970 00:00:00 GMT", 1),
    ] {
        let busy = Host::new(move |_| {
            let status = StatusCode::from_u16(status).expect("a status");
            (status, [("retry-after", told)]).into_response()
        })
        .await;
        let good = Host::new(|_| page(&json!({"tags": ["v1"]}))).await;
        let source = patient();
        let at =
            |host: &Host| connector("DockerRegistry", json!({"dockerRegistryUrl": host.address}));
        let of = |path: &str| feed("DockerRegistry", json!({"imagePath": path}));
        let fault = poll(&source, &of("acme/web"), &at(&busy), None)
            .await
            .expect_err("busy");
        let (host, wait) = fault.wait.expect("a wait");
        assert_eq!(wait, Duration::from_secs(seconds), "{told}");
        assert!(busy.address.ends_with(&host), "{host}");
        // Another repository of the same host is not even asked for.
        let fault = poll(&source, &of("acme/api"), &at(&busy), None)
            .await
            .expect_err("busy");
        assert!(
            fault.failure.message.contains("left alone"),
            "{}",
            fault.failure.message
        );
        assert_eq!(
            (fault.failure.error, busy.times()),
            (ErrorType::Connectivity, 1)
        );
        assert!(
            poll(&source, &of("acme/web"), &at(&good), None)
                .await
                .is_ok()
        );
    }
    // One that is not there at all.
    let away = connector(
        "DockerRegistry",
        json!({"dockerRegistryUrl": "http://127.0.0.1:1"}),
    );
    let web = feed("DockerRegistry", json!({"imagePath": "acme/web"}));
    let fault = poll(&patient(), &web, &away, None).await.expect_err("away");
    assert!(fault.wait.is_some(), "{fault:?}");
}

/// A login that is refused keeps nobody else from asking.
#[tokio::test]
async fn a_login_that_is_refused_does_not_hold_the_host() {
    let host = Host::new(|asked| match asked.header("authorization") {
        BASIC => page(&json!({"tags": ["v1"]})),
        _ => (
            StatusCode::UNAUTHORIZED,
            [("www-authenticate", "Basic realm=\"shop\"")],
        )
            .into_response(),
    })
    .await;
    let web = feed("DockerRegistry", json!({"imagePath": "acme/web"}));
    let nobody = connector("DockerRegistry", json!({"dockerRegistryUrl": host.address}));
    let bot = connector(
        "DockerRegistry",
        json!({"dockerRegistryUrl": host.address, "auth": login()}),
    );
    let source = patient();
    let fault = poll(&source, &web, &nobody, None)
        .await
        .expect_err("no login");
    assert_eq!(
        (fault.failure.error, fault.wait),
        (ErrorType::Authentication, None)
    );
    assert_eq!(seen(poll(&source, &web, &bot, None).await).0, ["v1"]);
}

/// A registry whose tokens come from a server that is busy is busy itself.
#[tokio::test]
async fn a_busy_server_of_tokens_holds_the_registry() {
    let tokens = Host::new(|_| StatusCode::TOO_MANY_REQUESTS.into_response()).await;
    let realm = format!("Bearer realm=\"{}/token\"", tokens.address);
    let host = Host::new(move |_| {
        let challenge = [("www-authenticate", realm.clone())];
        (StatusCode::UNAUTHORIZED, challenge).into_response()
    })
    .await;
    let docker = connector("DockerRegistry", json!({"dockerRegistryUrl": host.address}));
    let web = feed("DockerRegistry", json!({"imagePath": "acme/web"}));
    let source = patient();
    for _ in 0..2 {
        let fault = poll(&source, &web, &docker, None).await.expect_err("busy");
        assert!(fault.wait.is_some(), "{fault:?}");
    }
    assert_eq!((host.times(), tokens.times()), (1, 1));
}

#[tokio::test]
async fn no_host_leads_to_the_metadata_service_or_on_for_ever() {
    let cloud = "http://169.254.169.254/latest/meta-data/";
    let redirect =
        move |_: &Asked| (StatusCode::TEMPORARY_REDIRECT, [("location", cloud)]).into_response();
    let elsewhere = |_: &Asked| {
        let link = [("link", "<http://169.254.169.254/x>; rel=\"next\"")];
        (link, json!({"tags": ["v1"]}).to_string()).into_response()
    };
    let circle = |asked: &Asked| {
        let link = format!("<{}?{}>; rel=\"next\"", asked.path, asked.query);
        ([("link", link)], json!({"tags": ["v1"]}).to_string()).into_response()
    };
    let endless = |_: &Asked| {
        let chunks = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 1 << 16]));
        Response::new(Body::from_stream(chunks))
    };
    let web = feed("DockerRegistry", json!({"imagePath": "acme/web"}));
    for (host, said) in [
        (Host::new(redirect).await, "link-local"),
        (Host::new(elsewhere).await, "not its own"),
        (Host::new(circle).await, "pages"),
        (Host::new(endless).await, "more than 4194304 bytes"),
    ] {
        let docker = connector("DockerRegistry", json!({"dockerRegistryUrl": host.address}));
        let why = refused(&web, &docker).await;
        assert!(why.contains(said), "{why}");
    }
    for (host, said) in [
        (Host::new(redirect).await, "link-local"),
        (Host::new(endless).await, "bytes"),
        (Host::new(|_| "<html>".into_response()).await, "not JSON"),
        (Host::new(|_| page(&json!([]))).await, "no `builds`"),
    ] {
        let jenkins = connector("Jenkins", json!({"jenkinsUrl": host.address}));
        let why = refused(&feed("Jenkins", json!({"jobName": "web"})), &jenkins).await;
        assert!(why.contains(said), "{why}");
    }
}

#[tokio::test]
async fn clouds_are_asked_with_their_own_logins() {
    let host = Host::new(
        |asked| match (asked.path.as_str(), asked.header("authorization")) {
            ("/v2/shop/web/tags/list", "Basic X2pzb25fa2V5OnQwcC1zM2NyZXQtdG9rZW4=") => {
                page(&json!({"tags": ["google"]}))
            }
            ("/v2/shop/web/tags/list", "Basic YXBwOnQwcC1zM2NyZXQtdG9rZW4=") => {
                page(&json!({"tags": ["azure"]}))
            }
            _ => (
                StatusCode::UNAUTHORIZED,
                [("www-authenticate", "Basic realm=\"cloud\"")],
            )
                .into_response(),
        },
    )
    .await;
    let name = host.address.trim_start_matches("http://");
    let key =
        json!({"credential": {"type": "ManualConfig", "spec": {"secretKeyRef": "account.token"}}});
    let google = connector("Gcp", key);
    let gcr = feed(
        "Gcr",
        json!({"registryHostname": name, "imagePath": "shop/web"}),
    );
    assert_eq!(
        seen(poll(&patient(), &gcr, &google, None).await).0,
        ["google"]
    );
    let principal = json!({"credential": {"type": "ManualConfig", "spec": {
        "applicationId": "app", "tenantId": "t", "auth": {"type": "Secret", "spec": {"secretRef": "account.token"}},
    }}});
    let azure = connector("Azure", principal);
    let acr = feed(
        "Acr",
        json!({"subscriptionId": "s", "registry": name, "repository": "shop/web"}),
    );
    assert_eq!(
        seen(poll(&patient(), &acr, &azure, None).await).0,
        ["azure"]
    );
    let evil = feed(
        "Gcr",
        json!({"registryHostname": "gcr.io.evil.example", "imagePath": "shop/web"}),
    );
    let why = refused(&evil, &google).await;
    assert!(why.contains("no registry of the cloud"), "{why}");
    let inherit = connector(
        "Gcp",
        json!({"credential": {"type": "InheritFromDelegate"}}),
    );
    let why = refused(&gcr, &inherit).await;
    assert!(why.contains("ManualConfig"), "{why}");
}

#[tokio::test]
async fn packages_of_github_come_by_time_and_what_comes_into_view_from_below_is_not_new() {
    let host = Host::new(|asked| {
        assert_eq!(asked.header("authorization"), format!("Bearer {TOKEN}"));
        if asked.header("if-none-match") == "\"p1\"" {
            return StatusCode::NOT_MODIFIED.into_response();
        }
        let version = |day: u32, tags: Value| {
            json!({"name": format!("sha256:{day}"), "updated_at": format!("2026-01-{day:02}T00:00:00Z"),
                "metadata": {"package_type": "container", "container": {"tags": tags}}})
        };
        match asked.path.as_str() {
            "/api/v3/orgs/acme/packages/container/team%2Fweb/versions" => {
                let list = json!([version(9, json!(["v9", "latest"])), version(3, json!([])), version(2, json!(["v2"]))]);
                ([("etag", "\"p1\"")], list.to_string()).into_response()
            }
            "/api/v3/users/owner/packages/npm/web/versions" => page(&json!([
                {"name": "1.10.0", "created_at": "2026-01-02T00:00:00Z"},
                {"name": "1.9.0", "created_at": "2026-01-01T00:00:00Z"},
            ])),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    let auth = json!({"type": "Http", "spec": {"type": "UsernameToken", "spec": {"username": "bot", "tokenRef": "account.token"}}});
    let github = connector(
        "Github",
        json!({"url": format!("{}/owner", host.address), "authentication": auth}),
    );
    let source = patient();
    let container = feed(
        "GithubPackageRegistry",
        json!({"org": "acme", "packageName": "team/web", "packageType": "container"}),
    );
    let (versions, state, last) = seen(poll(&source, &container, &github, None).await);
    assert_eq!(versions, ["v2", "latest", "v9"]);
    assert_eq!(
        (&last["image"], &last["SHA"]),
        (&json!("team/web:v9"), &json!("sha256:9"))
    );
    assert_eq!(
        poll(&source, &container, &github, state.as_deref()).await,
        Ok(Polled::Unchanged)
    );
    let npm = feed(
        "GithubPackageRegistry",
        json!({"packageName": "web", "packageType": "npm"}),
    );
    assert_eq!(
        seen(poll(&source, &npm, &github, None).await).0,
        ["1.9.0", "1.10.0"]
    );
    let gone = feed(
        "GithubPackageRegistry",
        json!({"org": "acme", "packageName": "../../user"}),
    );
    let why = refused(&gone, &github).await;
    assert!(why.contains("check `packageName`"), "{why}");
}

/// GitHub says 403 where it has been asked too often.
#[tokio::test]
async fn the_rate_limit_of_github_is_a_wait() {
    let host = Host::new(|_| {
        let headers = [
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "99999999999"),
        ];
        (StatusCode::FORBIDDEN, headers).into_response()
    })
    .await;
    let auth = json!({"type": "Http", "spec": {"type": "UsernameToken", "spec": {"tokenRef": "account.token"}}});
    let github = connector(
        "Github",
        json!({"url": host.address, "authentication": auth}),
    );
    let package = feed(
        "GithubPackageRegistry",
        json!({"org": "acme", "packageName": "web"}),
    );
    let fault = poll(&patient(), &package, &github, None)
        .await
        .expect_err("a limit");
    assert_eq!(
        fault.wait.map(|(_, wait)| wait),
        Some(Duration::from_mins(5))
    );
}

#[tokio::test]
async fn builds_of_jenkins_are_those_that_went_well_and_old_ones_stay_old() {
    // A hundred builds, of which the first sixty are deleted later, so that older ones come into view.
    let host = Host::new(|asked| {
        assert_eq!(asked.path, "/job/team/job/web%20app/api/json");
        assert!(asked.query.contains("builds%5Bnumber"), "{}", asked.query);
        let lowest = if asked.number == 0 { 101 } else { 41 };
        let mut numbers: Vec<i64> = (lowest..=200).rev().collect();
        if asked.number > 0 {
            numbers.retain(|number| !(120..=179).contains(number));
            numbers.insert(0, 201);
        }
        let builds = numbers.iter().map(|number| {
            let result = if number % 2 == 0 { "FAILURE" } else { "SUCCESS" };
            json!({"number": number, "result": result, "building": false, "url": format!("http://j/{number}/"),
                "artifacts": [{"fileName": "a.jar", "relativePath": "target/a.jar"}]})
        });
        let mut builds: Vec<Value> = builds.collect();
        builds.insert(0, json!({"number": 999, "result": null, "building": true}));
        builds.truncate(100);
        page(&json!({"_class": "hudson.model.FreeStyleProject", "builds": builds}))
    })
    .await;
    let jenkins = connector(
        "Jenkins",
        json!({"jenkinsUrl": format!("{}/", host.address), "auth": login()}),
    );
    let job = feed(
        "Jenkins",
        json!({"jobName": "team/web app", "artifactPath": "target/a.jar"}),
    );
    let source = patient();
    let (first, state, last) = seen(poll(&source, &job, &jenkins, None).await);
    assert_eq!(
        (first.len(), first[0].as_str(), first[48].as_str()),
        (49, "103", "199")
    );
    assert_eq!(last["url"], "http://j/199/");
    assert_eq!(last["artifactPath"], "target/a.jar");
    let (then, _, _) = seen(poll(&source, &job, &jenkins, state.as_deref()).await);
    assert_eq!(
        (then[0].as_str(), then[then.len() - 1].as_str()),
        ("103", "201")
    );
}
