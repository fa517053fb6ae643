//! Objects of buckets and machine images, from a server that pages and refuses as S3 and EC2 do.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use slipway_engine::gather::SourceReader;
use slipway_model::id::{AccountId, Scope};
use slipway_plan::{
    ArtifactAnswer, ArtifactPlace, ArtifactQuestion, ArtifactVersion, ConnectorPlan, FoundArtifact,
    WantedArtifact,
};

use crate::support::{serve, source_of};

type Asked = Arc<Mutex<Vec<String>>>;

/// A server that is S3 and EC2; its address and what it is asked.
async fn account() -> (String, Asked) {
    let asked = Asked::default();
    let app = Router::new().fallback(answer).with_state(asked.clone());
    let address = serve(app).await;
    (address, asked)
}

async fn answer(State(asked): State<Asked>, request: Request) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    if method == Method::POST {
        let body = to_bytes(request.into_body(), 1 << 20)
            .await
            .expect("a body");
        let body = String::from_utf8_lossy(&body).into_owned();
        asked.lock().expect("a lock").push(body.clone());
        return images(&body);
    }
    asked
        .lock()
        .expect("a lock")
        .push(format!("{method} {uri}"));
    let (path, query) = (uri.path(), uri.query().unwrap_or_default());
    match path.trim_start_matches('/').split_once('/') {
        Some((bucket, "")) => objects(bucket, query),
        None => objects(path.trim_start_matches('/'), query),
        Some((bucket, key)) => object(bucket, key),
    }
}

/// Three objects on two pages; the last page has the oldest.
fn objects(bucket: &str, query: &str) -> Response {
    let entry = |key: &str, day: u32| {
        format!(
            "<Contents><Key>{key}</Key><LastModified>2026-01-{day:02}T00:00:00.000Z</LastModified><Size>1</Size></Contents>"
        )
    };
    let page = match (bucket, query.contains("continuation-token=more")) {
        ("shop", false) => format!(
            "<IsTruncated>true</IsTruncated><NextContinuationToken>more</NextContinuationToken>{}{}",
            entry("app/1.zip", 2),
            entry("app/2.zip", 9)
        ),
        ("shop", true) => format!(
            "<IsTruncated>false</IsTruncated>{}{}",
            entry("app/3.zip", 5),
            entry("readme.txt", 20)
        ),
        ("empty", _) => "<IsTruncated>false</IsTruncated>".to_owned(),
        (bucket, _) => return refused(bucket),
    };
    let text = format!(
        "<?xml version=\"1.0\"?><ListBucketResult><Name>{bucket}</Name>{page}</ListBucketResult>"
    );
    text.into_response()
}

fn object(bucket: &str, key: &str) -> Response {
    match (bucket, key) {
        ("shop", "app/2.zip") => {
            let headers = [
                ("x-amz-version-id", "v-2"),
                ("etag", "\"abc\""),
                ("content-type", "application/zip"),
                ("last-modified", "Wed, 21 Oct 2015 07:28:00 GMT"),
                ("x-amz-server-side-encryption", "AES256"),
                ("x-amz-meta-team", "shop"),
                ("x-amz-meta-url", "https://elsewhere.example"),
            ];
            (headers, "").into_response()
        }
        ("shop", "app/3.zip") => ([("x-amz-version-id", "null")], "").into_response(),
        ("shop" | "empty", _) => StatusCode::NOT_FOUND.into_response(),
        (bucket, _) => refused(bucket),
    }
}

/// What S3 says of buckets that are not to be read; without the body where it is asked for the head alone.
fn refused(bucket: &str) -> Response {
    let (status, code, region) = match bucket {
        "far" => (
            StatusCode::MOVED_PERMANENTLY,
            "PermanentRedirect",
            "eu-west-1",
        ),
        "private" => (StatusCode::FORBIDDEN, "AccessDenied", "us-east-1"),
        _ => (StatusCode::NOT_FOUND, "NoSuchBucket", "us-east-1"),
    };
    let body =
        format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no</Message></Error>");
    (status, [("x-amz-bucket-region", region)], body).into_response()
}

/// Machine images on two pages, for those who ask for the account's own.
fn images(body: &str) -> Response {
    let image = |id: &str, name: &str, state: &str, day: u32| {
        format!(
            "<item><imageId>{id}</imageId><name>{name}</name><imageState>{state}</imageState><creationDate>2026-01-{day:02}T00:00:00.000Z</creationDate></item>"
        )
    };
    if body.contains("ImageId.1=ami-00000404") {
        let error = "<Response><Errors><Error><Code>InvalidAMIID.NotFound</Code><Message>The image id does not exist</Message></Error></Errors></Response>";
        return (StatusCode::BAD_REQUEST, error).into_response();
    }
    if let Some(rest) = body.split("ImageId.1=").nth(1) {
        let id = rest.split('&').next().unwrap_or_default();
        let state = if id == "ami-00000008" {
            "pending"
        } else {
            "available"
        };
        let shown = image(id, "shared-1", state, 3);
        assert!(!body.contains("Owner"), "{body}");
        return format!(
            "<DescribeImagesResponse><imagesSet>{shown}</imagesSet></DescribeImagesResponse>"
        )
        .into_response();
    }
    if body.contains("denied") {
        let error = "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You are not authorized</Message></Error></Errors></Response>";
        return (StatusCode::FORBIDDEN, error).into_response();
    }
    if body.contains("Filter.1.Name=name&Filter.1.Value.1=of-another-account")
        || body.contains("nothing")
    {
        return "<DescribeImagesResponse><imagesSet/></DescribeImagesResponse>".into_response();
    }
    assert!(body.contains("Owner.1=self"), "{body}");
    let page = match body.contains("NextToken=more") {
        false => format!(
            "<imagesSet>{}{}</imagesSet><nextToken>more</nextToken>",
            image("ami-1", "shop-1", "available", 1),
            image("ami-9", "shop-9", "deregistered", 30)
        ),
        true => format!(
            "<imagesSet>{}{}</imagesSet>",
            image("ami-3", "shop-3", "available", 8),
            image("ami-2", "shop-2", "available", 5)
        ),
    };
    format!("<DescribeImagesResponse>{page}</DescribeImagesResponse>").into_response()
}

fn wanted(place: ArtifactPlace, version: ArtifactVersion) -> WantedArtifact {
    let connector = ConnectorPlan {
        reference: "account.aws".to_owned(),
        kind: "Aws".to_owned(),
        spec: json!({"credential": {"type": "InheritFromDelegate", "region": "us-east-1"}}),
    };
    WantedArtifact {
        question: ArtifactQuestion {
            connector: connector.reference.clone(),
            place,
            version: Some(version),
            digest: None,
        },
        connector,
        scope: Scope::account(AccountId::new("acme")),
    }
}

async fn ask(
    address: &str,
    place: ArtifactPlace,
    version: ArtifactVersion,
) -> Result<FoundArtifact, String> {
    let source = source_of(address, false, Duration::from_secs(10));
    let mut found = source.find_artifacts(&[wanted(place, version)]).await;
    match found.remove(0)? {
        ArtifactAnswer::Found(found) => Ok(found),
        ArtifactAnswer::Unasked(why) => panic!("not asked: {why}"),
    }
}

fn bucket(name: &str) -> ArtifactPlace {
    ArtifactPlace::S3 {
        region: Some("us-east-1".to_owned()),
        bucket: name.to_owned(),
    }
}

fn machines(filters: &[(&str, &str)]) -> ArtifactPlace {
    let filters = filters.iter();
    ArtifactPlace::Ami {
        region: "us-east-1".to_owned(),
        filters: filters
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
    }
}

fn exact(name: &str) -> ArtifactVersion {
    ArtifactVersion::Exact(name.to_owned())
}

fn pattern(text: &str) -> ArtifactVersion {
    ArtifactVersion::Pattern(text.to_owned())
}

#[tokio::test]
async fn the_object_that_was_written_last_is_found_over_all_pages() {
    let (address, asked) = account().await;
    let found = ask(&address, bucket("shop"), pattern("app/.*\\.zip")).await;
    let found = found.expect("an object");
    assert_eq!(
        (found.version.as_str(), found.digest.as_deref()),
        ("app/2.zip", Some("v-2"))
    );
    assert_eq!(found.metadata["fileName"], "2.zip");
    let told = [
        ("etag", "abc"),
        ("Content-Type", "application/zip"),
        ("Last-Modified", "Wed, 21 Oct 2015 07:28:00 GMT"),
        ("x-amz-server-side-encryption", "AES256"),
        ("x-amz-version-id", "v-2"),
        ("team", "shop"),
    ];
    for (name, value) in told {
        assert_eq!(found.metadata[name], value, "{name}");
    }
    assert!(found.metadata["url"].contains("/app/2.zip"));
    let lists = asked.lock().expect("a lock").clone();
    assert_eq!(
        lists
            .iter()
            .filter(|one| one.contains("list-type=2"))
            .count(),
        2,
        "{lists:?}"
    );
    // A bucket that keeps no versions has nothing to pin.
    let found = ask(&address, bucket("shop"), exact("app/3.zip")).await;
    assert_eq!(found.expect("an object").digest, None);
}

#[tokio::test]
async fn why_s3_gives_no_object_is_said() {
    let (address, _) = account().await;
    let table = [
        (
            "shop",
            exact("app/4.zip"),
            "there is no object app/4.zip in bucket shop",
        ),
        (
            "shop",
            pattern("x.*"),
            "has 4 objects, and none that matches `x.*`",
        ),
        ("empty", ArtifactVersion::Last, "has 0 objects"),
        ("gone", exact("app/1.zip"), "or no such bucket"),
        (
            "gone",
            ArtifactVersion::Last,
            "there is no bucket gone in us-east-1: check `bucketName`",
        ),
        (
            "private",
            exact("app/1.zip"),
            "s3:GetObject and s3:ListBucket",
        ),
        (
            "private",
            ArtifactVersion::Last,
            "the connector may not (403)",
        ),
        (
            "far",
            exact("app/1.zip"),
            "the bucket far is in eu-west-1 and was looked for in us-east-1: correct `region`",
        ),
        (
            "far",
            ArtifactVersion::Last,
            "the bucket far is in eu-west-1",
        ),
    ];
    for (name, version, expected) in table {
        let why = ask(&address, bucket(name), version).await.unwrap_err();
        assert!(why.contains(expected), "{name}: {why}");
    }
}

#[tokio::test]
async fn the_newest_machine_image_that_can_be_started_is_found_over_all_pages() {
    let (address, asked) = account().await;
    let found = ask(
        &address,
        machines(&[("tag:app", "shop")]),
        ArtifactVersion::Last,
    )
    .await;
    let found = found.expect("an image");
    assert_eq!(
        (found.version.as_str(), found.digest.as_deref()),
        ("shop-3", Some("ami-3"))
    );
    let first = asked.lock().expect("a lock")[0].clone();
    assert!(
        first.contains("Filter.1.Name=tag%3Aapp&Filter.1.Value.1=shop"),
        "{first}"
    );
    let found = ask(&address, machines(&[]), pattern("shop-[12]")).await;
    assert_eq!(found.expect("an image").version, "shop-2");
}

#[tokio::test]
async fn a_machine_image_of_a_fixed_id_is_looked_up() {
    let (address, _) = account().await;
    let found = ask(&address, machines(&[]), exact("ami-00000007")).await;
    let found = found.expect("an image");
    assert_eq!(
        (found.version.as_str(), found.digest.as_deref()),
        ("ami-00000007", Some("ami-00000007"))
    );
    assert_eq!(found.metadata["name"], "shared-1");
    assert_eq!(found.metadata["creationDate"], "2026-01-03T00:00:00.000Z");
}

#[tokio::test]
async fn why_there_is_no_machine_image_is_said() {
    let (address, _) = account().await;
    let table = [
        (
            machines(&[]),
            exact("ami-00000404"),
            "an image of another account must be shared with this one",
        ),
        (
            machines(&[]),
            exact("ami-00000008"),
            "ami-00000008 in us-east-1 is pending",
        ),
        (
            machines(&[]),
            exact("ami-of-nobody-1"),
            "there is no available machine image called ami-of-nobody-1",
        ),
        (
            machines(&[]),
            exact("shop-9"),
            "there is no available machine image called shop-9",
        ),
        (
            machines(&[]),
            exact("of-another-account"),
            "that the account of the connector account.aws owns",
        ),
        (
            machines(&[("tag:app", "nothing")]),
            ArtifactVersion::Last,
            "check `version`, `tags` and `filters`",
        ),
        (
            machines(&[("name", "denied")]),
            ArtifactVersion::Last,
            "UnauthorizedOperation",
        ),
    ];
    for (place, version, expected) in table {
        let why = ask(&address, place, version).await.unwrap_err();
        assert!(why.contains(expected), "{why}");
    }
}

#[tokio::test]
async fn what_there_is_is_listed_the_newest_first() {
    let (address, _) = account().await;
    let source = source_of(&address, false, Duration::from_secs(10));
    let list = async |place: ArtifactPlace, skip: usize, most: usize| {
        let wanted = wanted(place, ArtifactVersion::Last);
        let listed = source.list_versions(&wanted, skip, most).await?;
        let names = listed.versions.iter().map(|one| one.found.version.clone());
        Ok::<_, String>((listed.total, names.collect::<Vec<_>>().join(" ")))
    };
    assert_eq!(
        list(bucket("shop"), 0, 9).await,
        Ok((4, "readme.txt app/2.zip app/3.zip app/1.zip".to_owned()))
    );
    assert_eq!(
        list(bucket("shop"), 1, 2).await,
        Ok((4, "app/2.zip app/3.zip".to_owned()))
    );
    assert_eq!(
        list(machines(&[]), 0, 2).await,
        Ok((3, "shop-3 shop-2".to_owned()))
    );
    assert_eq!(list(bucket("shop"), 9, 9).await, Ok((4, String::new())));
    let why = list(bucket("private"), 0, 9).await.unwrap_err();
    assert!(why.contains("s3:ListBucket"), "{why}");
}
