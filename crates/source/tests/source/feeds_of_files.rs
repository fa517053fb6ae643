//! What triggers watch in accounts of AWS, in servers of files, and in repositories of charts.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use slipway_source::Polled;

use crate::feed_host::{Host, connector, feed, login, page, patient, poll, refused, seen};
use crate::support::source_of;

fn aws() -> slipway_plan::ConnectorPlan {
    connector(
        "Aws",
        json!({"credential": {"type": "InheritFromDelegate", "region": "us-east-1"}}),
    )
}

#[tokio::test]
async fn an_account_is_asked_for_tags_objects_and_images_by_time() {
    let host = Host::new(|asked| {
        if asked.header("x-amz-target").ends_with(".DescribeImages") {
            let wanted: Value = serde_json::from_str(&asked.body).expect("JSON");
            assert_eq!(wanted["repositoryName"], "web");
            let image = |at: f64, tags: &[&str]| json!({"imageDigest": "sha256:1", "imagePushedAt": at, "imageTags": tags});
            let answer = match wanted["nextToken"].is_null() {
                true => json!({"imageDetails": [image(30.5, &["new"])], "nextToken": "more"}),
                false => json!({"imageDetails": [image(10.0, &["old", "older"])]}),
            };
            return ([("content-type", "application/x-amz-json-1.1")], answer.to_string()).into_response();
        }
        let object = |key: &str, day: u32| {
            format!("<Contents><Key>{key}</Key><LastModified>2026-01-{day:02}T00:00:00.000Z</LastModified><ETag>\"e\"</ETag></Contents>")
        };
        let image = |name: &str, day: u32| {
            format!(
                "<item><imageId>ami-{day}</imageId><name>{name}</name><imageState>available</imageState><creationDate>2026-01-{day:02}T00:00:00.000Z</creationDate></item>"
            )
        };
        match asked.path.as_str() {
            "/shop" | "/shop/" => format!("<ListBucketResult><IsTruncated>false</IsTruncated>{}{}</ListBucketResult>", object("b.zip", 1), object("a.zip", 9)).into_response(),
            "/" if asked.body.contains("Action=DescribeImages") => {
                assert!(asked.body.contains("Filter.1.Name=tag%3Ateam"), "{}", asked.body);
                format!("<DescribeImagesResponse><imagesSet>{}{}</imagesSet></DescribeImagesResponse>", image("base-2", 8), image("base-1", 2)).into_response()
            }
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    let source = source_of(&host.address, false, Duration::from_secs(10));
    let ecr = feed("Ecr", json!({"region": "us-east-1", "imagePath": "web"}));
    let (versions, state, last) = seen(poll(&source, &ecr, &aws(), None).await);
    assert_eq!(versions, ["old", "older", "new"]);
    assert_eq!(
        last,
        json!({"image": "web:new", "tag": "new", "SHA": "sha256:1"})
    );
    assert_eq!(
        poll(&source, &ecr, &aws(), state.as_deref()).await,
        Ok(Polled::Unchanged)
    );
    let s3 = feed(
        "AmazonS3",
        json!({"bucketName": "shop", "filePathRegex": "*.zip"}),
    );
    let (versions, _, last) = seen(poll(&source, &s3, &aws(), None).await);
    assert_eq!(versions, ["b.zip", "a.zip"]);
    assert_eq!(last["etag"], "e");
    let ami = json!({"region": "us-east-1", "tags": [{"name": "team", "value": "shop"}]});
    let (versions, _, last) =
        seen(poll(&source, &feed("AmazonMachineImage", ami), &aws(), None).await);
    assert_eq!(versions, ["base-1", "base-2"]);
    assert_eq!(last["amiId"], "ami-8");
}

#[tokio::test]
async fn files_of_artifactory_are_found_by_its_query_language() {
    let host = Host::new(|asked| {
        assert_eq!(asked.path, "/artifactory/api/search/aql");
        assert_eq!(asked.header("content-type"), "text/plain");
        assert!(asked.body.starts_with("items.find({\"repo\":\"libs\""), "{}", asked.body);
        let file = |path: &str, name: &str, day: u32| {
            json!({"repo": "libs", "path": path, "name": name, "created": format!("2026-01-{day:02}T00:00:00.000Z")})
        };
        page(&json!({"results": [file("app/2", "b.jar", 5), file("app", "a.jar", 3), file("application", "x.jar", 4)],
            "range": {"start_pos": 0, "end_pos": 3, "total": 3}}))
    })
    .await;
    let artifactory = connector(
        "Artifactory",
        json!({"artifactoryServerUrl": format!("{}/artifactory/", host.address), "auth": login()}),
    );
    let spec = json!({"repositoryFormat": "generic", "repository": "libs", "artifactDirectory": "/app/", "artifactFilter": "*.jar"});
    let (versions, _, last) = seen(
        poll(
            &patient(),
            &feed("ArtifactoryRegistry", spec),
            &artifactory,
            None,
        )
        .await,
    );
    assert_eq!(versions, ["a.jar", "2/b.jar"]);
    assert_eq!(last["fileName"], "b.jar");
    let url = last["url"].as_str().expect("a URL");
    assert!(url.ends_with("/artifactory/libs/app/2/b.jar"), "{url}");
}

#[tokio::test]
async fn components_of_nexus_are_searched_page_by_page() {
    let host = Host::new(|asked| {
        assert_eq!(asked.path, "/service/rest/v1/search");
        let item = |version: &str, day: u32| {
            json!({"repository": "releases", "format": "maven2", "group": "com.acme", "name": "web", "version": version, "assets": [
                {"path": format!("com/acme/web/{version}/web-{version}.pom"), "downloadUrl": "http://n/pom"},
                {"path": format!("com/acme/web/{version}/web-{version}.jar"), "downloadUrl": format!("http://n/{version}.jar"),
                    "lastModified": format!("2026-01-{day:02}T00:00:00.000+00:00")},
            ]})
        };
        let wanted = "repository=releases&maven.groupId=com.acme&maven.artifactId=web&maven.extension=jar";
        assert!(asked.query.starts_with(wanted), "{}", asked.query);
        match asked.query.contains("continuationToken=t1") {
            false => page(&json!({"items": [item("1.10", 9)], "continuationToken": "t1"})),
            true => page(&json!({"items": [item("1.9", 2), {"version": ""}], "continuationToken": null})),
        }
    })
    .await;
    let nexus = connector(
        "Nexus",
        json!({"nexusServerUrl": host.address, "version": "3.x"}),
    );
    let spec = json!({"repositoryFormat": "maven", "repository": "releases", "groupId": "com.acme", "artifactId": "web", "extension": "jar"});
    let (versions, _, last) =
        seen(poll(&patient(), &feed("Nexus3Registry", spec), &nexus, None).await);
    assert_eq!(versions, ["1.9", "1.10"]);
    assert_eq!(
        last,
        json!({"version": "1.10", "repositoryName": "releases", "groupId": "com.acme", "artifactId": "web", "package": "web",
            "extension": "jar", "fileName": "web-1.10.jar", "url": "http://n/1.10.jar"})
    );
    let strange = json!({"repositoryFormat": "apt", "repository": "r"});
    let why = refused(&feed("Nexus3Registry", strange), &nexus).await;
    assert!(why.contains("format apt"), "{why}");
    let docker = json!({"repositoryFormat": "docker", "repository": "images", "imagePath": "web", "repositoryUrl": "evil.example:5000"});
    let why = refused(&feed("Nexus3Registry", docker), &nexus).await;
    assert!(why.contains("not on the host of the connector"), "{why}");
}

const INDEX: &str = "apiVersion: v1\nentries:\n  web:\n  - version: 1.2.0\n    created: 2026-01-05T00:00:00Z\n  - version: 1.3.0\n    created: 2026-01-04T00:00:00Z\n";

#[tokio::test]
async fn charts_are_read_from_an_index_over_http_in_a_bucket_or_from_tags() {
    let host = Host::new(|asked| {
        let is_known = asked.header("if-none-match") == "\"i1\"";
        match asked.path.as_str() {
            "/charts/index.yaml" | "/bucket/folder/index.yaml" if is_known => {
                StatusCode::NOT_MODIFIED.into_response()
            }
            "/charts/index.yaml" => {
                let validators = [
                    ("etag", "\"i1\""),
                    ("last-modified", "Wed, 21 Oct 2015 07:28:00 GMT"),
                ];
                (validators, INDEX).into_response()
            }
            "/bucket/folder/index.yaml" => ([("etag", "\"i1\"")], INDEX).into_response(),
            "/v2/charts/web/tags/list" => page(&json!({"tags": ["1.2.0", "1.3.0_build.1"]})),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    let source = source_of(&host.address, false, Duration::from_secs(10));
    let chart = |store: Value| {
        feed(
            "HelmChart",
            json!({"chartName": "web", "helmVersion": "V3", "chartVersion": "<+trigger.manifest.version>", "store": store}),
        )
    };
    let http = connector(
        "HttpHelmRepo",
        json!({"helmRepoUrl": format!("{}/charts", host.address)}),
    );
    let over_http = chart(json!({"type": "Http", "spec": {"connectorRef": "helm"}}));
    let (versions, state, last) = seen(poll(&source, &over_http, &http, None).await);
    assert_eq!(
        (versions, &last["version"]),
        (
            vec!["1.3.0".to_owned(), "1.2.0".to_owned()],
            &json!("1.2.0")
        )
    );
    assert!(
        state.as_deref().is_some_and(|state| state.contains("2015")),
        "{state:?}"
    );
    assert_eq!(
        poll(&source, &over_http, &http, state.as_deref()).await,
        Ok(Polled::Unchanged)
    );

    let in_bucket = chart(
        json!({"type": "S3", "spec": {"connectorRef": "aws", "region": "us-east-1", "bucketName": "bucket", "folderPath": "/folder/"}}),
    );
    let (versions, state, _) = seen(poll(&source, &in_bucket, &aws(), None).await);
    assert_eq!(versions, ["1.3.0", "1.2.0"]);
    assert_eq!(
        poll(&source, &in_bucket, &aws(), state.as_deref()).await,
        Ok(Polled::Unchanged)
    );

    let oci = format!(
        "oci://{}/charts",
        host.address.trim_start_matches("http://")
    );
    let oci = connector(
        "OciHelmRepo",
        json!({"helmRepoUrl": oci, "auth": {"type": "Anonymous"}}),
    );
    let (versions, _, _) = seen(poll(&source, &over_http, &oci, None).await);
    assert_eq!(versions, ["1.2.0", "1.3.0+build.1"]);

    let none = connector(
        "HttpHelmRepo",
        json!({"helmRepoUrl": format!("{}/none", host.address)}),
    );
    let why = refused(&over_http, &none).await;
    assert!(why.contains("check `helmRepoUrl`"), "{why}");
    let azure = chart(json!({"type": "AzureBlob", "spec": {"bucketName": "b"}}));
    let why = refused(&azure, &connector("Azure", json!({}))).await;
    assert!(why.contains("store of type AzureBlob"), "{why}");
}

#[tokio::test]
async fn what_is_not_polled_or_cannot_be_is_said() {
    let docker = connector(
        "DockerRegistry",
        json!({"dockerRegistryUrl": "http://127.0.0.1:1"}),
    );
    for (kind, spec, said) in [
        (
            "CustomArtifact",
            json!({"script": "echo"}),
            "is asked by a delegate",
        ),
        (
            "GoogleCloudSource",
            json!({}),
            "artifacts of type GoogleCloudSource are not polled",
        ),
        (
            "Ecr",
            json!({"region": "us-east-1", "imagePath": "web"}),
            "needs one of type Aws",
        ),
        (
            "DockerRegistry",
            json!({}),
            "`imagePath` of the trigger is missing",
        ),
        (
            "DockerRegistry",
            json!({"imagePath": "<+pipeline.name>"}),
            "a trigger has no run",
        ),
        (
            "DockerRegistry",
            json!({"imagePath": "../../x"}),
            "no name of a repository",
        ),
    ] {
        let why = refused(&feed(kind, spec), &docker).await;
        assert!(why.contains(said), "{kind}: {why}");
    }
}
