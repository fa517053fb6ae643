//! The embedded services as clients see them that know nothing of Slipway.

use aws_sdk_dynamodb::types::AttributeValue;
use slipway_store::embedded::Embedded;
use slipway_store::layout::TABLES;

use crate::{clock, runs, scope};

#[tokio::test]
async fn a_plain_query_finds_a_run() {
    let embedded = Embedded::temporary().expect("embedded services");
    let store = embedded.store(clock());
    store
        .create_run(&runs::record("r1", 10))
        .await
        .expect("created");
    let answer = embedded
        .dynamodb()
        .query()
        .table_name("slipway-runs")
        .key_condition_expression("pk = :run")
        .expression_attribute_values(":run", AttributeValue::S("run#r1".to_owned()))
        .send()
        .await
        .expect("a query");
    let item = &answer.items()[0];
    assert_eq!(item["sk"], AttributeValue::S("run".to_owned()));
    assert_eq!(item["status"], AttributeValue::S("NotStarted".to_owned()));
    assert_eq!(item["format"], AttributeValue::N("1".to_owned()));
}

#[tokio::test]
async fn the_tables_have_the_schema_of_the_layout() {
    let embedded = Embedded::temporary().expect("embedded services");
    let store = embedded.store(clock());
    for (name, definition) in store.layout().tables() {
        let table = embedded
            .dynamodb()
            .describe_table()
            .table_name(name)
            .send()
            .await;
        let table = table.expect("a table").table.expect("its description");
        let keys: Vec<_> = table
            .key_schema()
            .iter()
            .map(|k| k.attribute_name())
            .collect();
        assert_eq!(
            keys,
            [definition.partition_key, definition.sort_key],
            "{name}"
        );
    }
    assert_eq!(TABLES.len(), 3);
}

#[tokio::test]
async fn what_the_services_do_not_have_is_refused_by_name() {
    let embedded = Embedded::temporary().expect("embedded services");
    let refused = embedded
        .dynamodb()
        .list_backups()
        .send()
        .await
        .expect_err("not there");
    let message = refused.into_service_error().to_string();
    assert!(
        message.contains("ListBackups") || message.contains("ValidationException"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn calls_do_not_move_paused_time() {
    let embedded = Embedded::temporary().expect("embedded services");
    let clock = clock();
    let store = embedded.store(clock.clone());
    let before = clock.now();
    let wake = clock.clone();
    let timer = tokio::spawn(async move { wake.sleep(std::time::Duration::from_secs(3600)).await });
    for _ in 0..50 {
        store
            .next_sequence(&scope(), &crate::id("p"))
            .await
            .expect("a number");
        store
            .put_blob(crate::noise(200_000).as_bytes())
            .await
            .expect("stored");
    }
    assert!(!timer.is_finished());
    assert_eq!(clock.now(), before);
}

/// Amazon S3 user guide, "Naming Amazon S3 objects": a key is a text, and no path.
#[tokio::test]
async fn keys_that_are_no_paths_are_objects_of_their_own() {
    let embedded = Embedded::temporary().expect("embedded services");
    let s3 = embedded.s3();
    s3.create_bucket()
        .bucket("packages")
        .send()
        .await
        .expect("a bucket");
    let keys = ["/shop.zip", "//shop.zip", "a//b.zip", "a/b.zip", "shop.zip"];
    for key in keys {
        let put = s3.put_object().bucket("packages").key(key);
        let put = put.body(key.as_bytes().to_vec().into()).send().await;
        put.unwrap_or_else(|error| panic!("{key}: {error:?}"));
    }
    for key in keys {
        let got = s3.get_object().bucket("packages").key(key).send().await;
        let got = got.unwrap_or_else(|error| panic!("{key}: {error:?}"));
        let bytes = got.body.collect().await.expect("bytes").into_bytes();
        assert_eq!(bytes, key.as_bytes());
    }
    let listed = async |prefix: &str| {
        let list = s3.list_objects_v2().bucket("packages").prefix(prefix);
        let found = list.send().await.expect("a list");
        let found = found.contents().iter().filter_map(|object| object.key());
        let mut found: Vec<String> = found.map(str::to_owned).collect();
        found.sort();
        found.join(" ")
    };
    assert_eq!(listed("/").await, "//shop.zip /shop.zip");
    assert_eq!(listed("a/").await, "a//b.zip a/b.zip");
    assert_eq!(listed("sh").await, "shop.zip");
    let gone = s3.delete_object().bucket("packages").key("/shop.zip");
    gone.send().await.expect("deleted");
    let head = s3.head_object().bucket("packages").key("/shop.zip");
    let missing = head.send().await.expect_err("it is gone");
    assert_eq!(
        missing.raw_response().map(|raw| raw.status().as_u16()),
        Some(404)
    );
    let head = s3.head_object().bucket("packages").key("shop.zip");
    head.send().await.expect("the other one is there");
    // Nothing leaves its bucket.
    let put = s3.put_object().bucket("packages").key("../out.zip");
    put.body(b"out".to_vec().into())
        .send()
        .await
        .expect("a key like any other");
    assert_eq!(listed("../").await, "../out.zip");
    assert_eq!(listed("out").await, "");
}
