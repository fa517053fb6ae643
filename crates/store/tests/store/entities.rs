//! Entities, tokens and secrets.

use std::collections::HashMap;

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest as _, Sha256};
use slipway_model::id::{AccountId, EntityId, PrincipalId, Scope};
use slipway_store::embedded::Embedded;
use slipway_store::record::{ConnectionRecord, EntityRecord, TokenRecord};
use slipway_store::{Page, Store, StoreError};

use crate::{clock, id, noise, scope, store};

fn service(name: &str) -> EntityRecord {
    EntityRecord {
        scope: scope(),
        kind: "service".to_owned(),
        parent: None,
        id: id(name),
        name: name.to_uppercase(),
        description: None,
        tags: vec![("team".to_owned(), "a".to_owned())],
        entity_type: Some("ECS".to_owned()),
        yaml: format!("service:\n  identifier: {name}\n"),
        version: 0,
        created_ms: 1,
        updated_ms: 2,
        connection: None,
        git: None,
        saved_by: None,
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_test_of_a_connection_said_goes_with_the_version_that_was_tested() {
    let store = store();
    let first = store
        .put_entity(&service("cart"), None)
        .await
        .expect("created");
    let said = ConnectionRecord {
        tested_ms: 5,
        connected_ms: None,
        failure: None,
    };
    store.put_connection(&first, &said).await.expect("noted");
    let (place, cart) = (scope(), id("cart"));
    let read = async || {
        let read = store.get_entity(&place, "service", None, &cart);
        read.await.expect("read")
    };
    assert_eq!(read().await.connection.as_ref(), Some(&said));
    let second = store.put_entity(&read().await, Some(1)).await;
    assert_eq!(second.expect("replaced").connection, None);
    assert_eq!(read().await.connection, None);
    let late = store.put_connection(&first, &said).await;
    assert!(matches!(late, Err(StoreError::Conflict { .. })), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn an_entity_is_created_once_and_replaced_version_by_version() {
    let store = store();
    let first = store
        .put_entity(&service("cart"), None)
        .await
        .expect("created");
    assert_eq!(first.version, 1);
    let again = store
        .put_entity(&service("cart"), None)
        .await
        .expect_err("it is there");
    assert_eq!(again.to_string(), "service cart exists already");

    let changed = EntityRecord {
        name: "New".to_owned(),
        ..first.clone()
    };
    let second = store.put_entity(&changed, Some(1)).await.expect("replaced");
    let late = store
        .put_entity(&changed, Some(1))
        .await
        .expect_err("somebody was faster");
    assert!(matches!(late, StoreError::Conflict { .. }), "{late}");
    let read = store
        .get_entity(&scope(), "service", None, &id("cart"))
        .await
        .expect("read");
    assert_eq!(read, second);
    assert_eq!((read.version, read.name.as_str()), (2, "New"));

    let late = store
        .delete_entity(&scope(), "service", None, &id("cart"), Some(1))
        .await;
    assert!(matches!(late, Err(StoreError::Conflict { .. })), "{late:?}");
    store
        .delete_entity(&scope(), "service", None, &id("cart"), Some(2))
        .await
        .expect("deleted");
    let gone = store
        .get_entity(&scope(), "service", None, &id("cart"))
        .await;
    assert!(matches!(gone, Err(StoreError::NotFound { .. })), "{gone:?}");
}

#[tokio::test(start_paused = true)]
async fn entities_are_listed_page_by_page_and_only_those_of_the_place() {
    let store = store();
    for name in ["c", "a", "e", "b", "d"] {
        store
            .put_entity(&service(name), None)
            .await
            .expect("created");
    }
    let org = Scope {
        project: None,
        ..scope()
    };
    let elsewhere = EntityRecord {
        scope: org,
        ..service("x")
    };
    store.put_entity(&elsewhere, None).await.expect("created");
    let below = EntityRecord {
        parent: Some(id("prod")),
        ..service("y")
    };
    store.put_entity(&below, None).await.expect("created");

    let mut page = Page::first(2);
    let mut names = Vec::new();
    loop {
        let listing = store
            .list_entities(&scope(), "service", None, page)
            .await
            .expect("listed");
        names.push(
            listing
                .items
                .iter()
                .map(|e| e.id.to_string())
                .collect::<String>(),
        );
        let Some(next) = listing.next else { break };
        page = Page {
            limit: 2,
            after: Some(next),
        };
    }
    assert_eq!(names.concat(), "abcde");
    assert_eq!(names[..2], ["ab", "cd"]);
    let listing = store
        .list_entities(&scope(), "service", Some(&id("prod")), Page::first(9))
        .await;
    assert_eq!(listing.expect("listed").items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn hostile_identifiers_reach_nothing_else() {
    let store = store();
    store
        .put_entity(&service("cart"), None)
        .await
        .expect("created");
    for hostile in [
        "",
        "cart#",
        "../cart",
        "#service#cart",
        &"x".repeat(5000),
        "\u{10FFFF}",
    ] {
        let found = store
            .find_entity(&scope(), "service", None, &id(hostile))
            .await;
        assert_eq!(found.expect("an answer"), None, "{hostile:.20}");
    }
    let long = store
        .put_entity(&service(&"x".repeat(5000)), None)
        .await
        .expect_err("too long");
    assert!(matches!(long, StoreError::Invalid { .. }), "{long}");
}

#[tokio::test(start_paused = true)]
async fn large_texts_leave_the_item_and_come_back() {
    let embedded = Embedded::temporary().expect("embedded services");
    let store = embedded.store(clock());
    let yaml = noise(3_000_000);
    let large = EntityRecord {
        yaml: yaml.clone(),
        ..service("big")
    };
    store.put_entity(&large, None).await.expect("stored");
    let read = store
        .get_entity(&scope(), "service", None, &id("big"))
        .await
        .expect("read");
    assert!(read.yaml == yaml);

    let items = embedded
        .dynamodb()
        .query()
        .table_name(&store.layout().entities);
    let items = items
        .key_condition_expression("pk = :pk")
        .expression_attribute_values(
            ":pk",
            aws_sdk_dynamodb::types::AttributeValue::S("entity#acc/org/shop#service#".to_owned()),
        )
        .send()
        .await
        .expect("a query");
    let size: usize = items
        .items()
        .iter()
        .map(|item| format!("{item:?}").len())
        .sum();
    assert!(size < 2_000, "the item has {size} bytes");
}

#[tokio::test(start_paused = true)]
async fn one_bad_record_does_not_break_a_list() {
    let embedded = Embedded::temporary().expect("embedded services");
    let store = embedded.store(clock());
    for name in ["a", "b", "c"] {
        store
            .put_entity(&service(name), None)
            .await
            .expect("created");
    }
    let text = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
    embedded
        .dynamodb()
        .put_item()
        .table_name(&store.layout().entities)
        .item("pk", text("entity#acc/org/shop#service#"))
        .item("sk", text("b"))
        .item("body", text("{\"of\": \"the future\"}"))
        .send()
        .await
        .expect("written");
    let listing = store
        .list_entities(&scope(), "service", None, Page::first(9))
        .await;
    let ids: Vec<_> = listing
        .expect("listed")
        .items
        .into_iter()
        .map(|e| e.id)
        .collect();
    assert_eq!(ids, [id("a"), id("c")]);
    let alone = store
        .get_entity(&scope(), "service", None, &id("b"))
        .await
        .expect_err("damaged");
    assert!(matches!(alone, StoreError::Unreadable { .. }), "{alone}");
}

#[tokio::test(start_paused = true)]
async fn tokens_are_found_by_hash_until_they_are_deleted() {
    let store = store();
    let token = TokenRecord {
        account: AccountId::new("acc"),
        principal: PrincipalId::new("me"),
        id: "t1".to_owned(),
        name: "laptop".to_owned(),
        permissions: vec!["admin".to_owned()],
        valid_from_ms: 1,
        valid_to_ms: 0,
    };
    store.put_token("abc", &token).await.expect("stored");
    assert_eq!(store.get_token("abc").await.expect("read"), Some(token));
    assert_eq!(store.get_token("abd").await.expect("read"), None);
    store.delete_token("abc").await.expect("deleted");
    assert_eq!(store.get_token("abc").await.expect("read"), None);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_anybody_deletes_is_gone_at_once() {
    let embedded = Embedded::temporary().expect("embedded services");
    let (store, other) = (embedded.store(clock()), embedded.store(clock()));
    let token = TokenRecord {
        account: AccountId::new("acc"),
        principal: PrincipalId::new("me"),
        id: "t1".to_owned(),
        name: "laptop".to_owned(),
        permissions: vec!["admin".to_owned()],
        valid_from_ms: 1,
        valid_to_ms: 0,
    };
    for by in ["another store", "a client", "a batch", "a statement"] {
        assert_eq!(store.get_token("abc").await.expect("read"), None);
        other.put_token("abc", &token).await.expect("stored");
        let reads = store.reads();
        for _ in 0..3 {
            let found = store.get_token("abc").await.expect("read");
            assert_eq!(found.as_ref(), Some(&token));
        }
        assert_eq!(store.reads(), reads + 1);
        delete(&embedded, &other, by).await;
        assert_eq!(store.get_token("abc").await.expect("read"), None, "{by}");
    }
}

/// Deletes the token `abc` in one of several ways.
async fn delete(embedded: &Embedded, store: &Store, by: &str) {
    use aws_sdk_dynamodb::types::{AttributeValue, DeleteRequest, WriteRequest};
    let (client, table) = (embedded.dynamodb(), &store.layout().entities);
    let digest = Sha256::digest(b"abc");
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let (pk, sk) = (format!("token#{digest}"), "token".to_owned());
    let values = [AttributeValue::S(pk), AttributeValue::S(sk)];
    let key = ["pk".to_owned(), "sk".to_owned()]
        .into_iter()
        .zip(values.clone());
    let key: HashMap<_, _> = key.collect();
    match by {
        "a client" => {
            let gone = client.delete_item().table_name(table).set_key(Some(key));
            gone.send().await.map(drop).expect("deleted");
        }
        "a batch" => {
            let gone = DeleteRequest::builder().set_key(Some(key)).build();
            let gone = gone.expect("a request");
            let gone = WriteRequest::builder().delete_request(gone).build();
            let call = client.batch_write_item().request_items(table, vec![gone]);
            call.send().await.map(drop).expect("deleted");
        }
        "a statement" => {
            let gone = format!(r#"DELETE FROM "{table}" WHERE pk = ? AND sk = ?"#);
            let call = client.execute_statement().statement(gone);
            let call = call.set_parameters(Some(values.to_vec()));
            call.send().await.map(drop).expect("deleted");
        }
        _ => store.delete_token("abc").await.expect("deleted"),
    }
}

#[tokio::test]
async fn secrets_are_kept_in_files_of_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a folder");
    let secrets = Embedded::open(dir.path())
        .expect("embedded services")
        .secrets();
    let name = EntityId::new("db_password");
    let missing = secrets.get(&scope(), &name).await.expect_err("not there");
    assert_eq!(missing.to_string(), "secret db_password does not exist");
    for value in ["first", "second"] {
        secrets
            .put(&scope(), &name, &SecretString::from(value))
            .await
            .expect("stored");
        let read = secrets.get(&scope(), &name).await.expect("read");
        assert_eq!(read.expose_secret(), value);
    }
    let account = Scope::account(AccountId::new("acc"));
    assert!(
        secrets.get(&account, &name).await.is_err(),
        "another scope has another secret"
    );
    let files: Vec<_> = std::fs::read_dir(dir.path().join("secrets"))
        .expect("a folder")
        .collect();
    assert_eq!(files.len(), 1);
    let mode = files[0]
        .as_ref()
        .expect("a file")
        .metadata()
        .expect("its mode")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    secrets.delete(&scope(), &name).await.expect("deleted");
    secrets
        .delete(&scope(), &name)
        .await
        .expect("deleted twice");
    assert!(secrets.get(&scope(), &name).await.is_err());
}
