//! Work for delegates; what was deployed and counted.

use serde_json::{Value, json};
use slipway_model::id::{AccountId, NodeId, Scope};
use slipway_store::record::{DelegateTaskRecord, DeployedRecord, InstanceRecord};
use slipway_store::{InstanceFilter, StoreError};

use crate::{id, run, scope, store};

fn task() -> DelegateTaskRecord {
    DelegateTaskRecord {
        id: "r1.a.0".to_owned(),
        errand_of: None,
        run: run("r1"),
        node: NodeId::new("a"),
        attempt: 0,
        task_type: "ShellScript".to_owned(),
        payload: json!({"script": "echo"}),
        selectors: Vec::new(),
        unsuitable: Vec::new(),
        delegate: None,
        result: None,
        finished_ms: None,
        cancelled: false,
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_claim_and_the_first_result_win() {
    let store = store();
    store.put_delegate_task(&task()).await.expect("stored");
    assert!(store.put_delegate_task(&task()).await.is_err());
    let claimed = store
        .claim_delegate_task("r1.a.0", "d1")
        .await
        .expect("claimed");
    assert_eq!(
        claimed,
        DelegateTaskRecord {
            delegate: Some("d1".to_owned()),
            ..task()
        }
    );
    store
        .claim_delegate_task("r1.a.0", "d1")
        .await
        .expect("claimed again by the same");
    let other = store.claim_delegate_task("r1.a.0", "d2").await;
    assert!(
        matches!(other, Err(StoreError::Conflict { .. })),
        "{other:?}"
    );

    store
        .finish_delegate_task("r1.a.0", &json!({"exitCode": 0}))
        .await
        .expect("finished");
    let late = store
        .finish_delegate_task("r1.a.0", &json!({"exitCode": 1}))
        .await;
    assert!(matches!(late, Err(StoreError::Conflict { .. })), "{late:?}");
    let read = store.get_delegate_task("r1.a.0").await.expect("read");
    assert_eq!(read.result, Some(json!({"exitCode": 0})));
    let missing = store.claim_delegate_task("r1.b.0", "d1").await;
    assert!(
        matches!(missing, Err(StoreError::NotFound { .. })),
        "{missing:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn who_lacks_a_selector_is_noted_once_and_not_without_end() {
    let store = store();
    store.put_delegate_task(&task()).await.expect("stored");
    let note = |name: String| {
        let store = &store;
        async move { store.note_unsuitable("r1.a.0", &name).await.expect("noted") }
    };
    assert!(note("one".to_owned()).await);
    assert!(!note("one".to_owned()).await);
    for number in 0..30 {
        note(format!("d{number}")).await;
    }
    let read = store.get_delegate_task("r1.a.0").await.expect("read");
    assert_eq!((read.unsuitable.len(), &*read.unsuitable[0]), (20, "one"));
    store
        .claim_delegate_task("r1.a.0", "fits")
        .await
        .expect("claimed by one that fits");
    let missing = store.note_unsuitable("r1.b.0", "one").await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })));
}

#[tokio::test(start_paused = true)]
async fn cancelled_work_is_not_given_away() {
    let store = store();
    store.put_delegate_task(&task()).await.expect("stored");
    store
        .cancel_delegate_task("r1.a.0")
        .await
        .expect("cancelled");
    assert!(
        store
            .get_delegate_task("r1.a.0")
            .await
            .expect("read")
            .cancelled
    );
    assert!(store.claim_delegate_task("r1.a.0", "d1").await.is_err());
}

fn deployed(service: &str) -> DeployedRecord {
    DeployedRecord {
        scope: scope(),
        service: id(service),
        environment: id("prod"),
        infrastructure: id("eu"),
        deployment_type: "ECS".to_owned(),
        target: json!({"cluster": "c"}),
        run: run("r1"),
        restores: None,
        artifact: None,
        before: None,
        counted: None,
        uncounted: None,
    }
}

fn instance(of: &DeployedRecord, key: &str) -> InstanceRecord {
    InstanceRecord {
        scope: of.scope.clone(),
        service: of.service.clone(),
        environment: of.environment.clone(),
        infrastructure: of.infrastructure.clone(),
        key: key.to_owned(),
        info: Value::Null,
        artifact: None,
        run: None,
        seen_ms: 1,
    }
}

#[tokio::test(start_paused = true)]
async fn instances_are_replaced_as_a_set_and_found_by_what_they_are_of() {
    let store = store();
    let (cart, web) = (deployed("cart"), deployed("web"));
    let account = Scope::account(AccountId::new("acc"));
    let elsewhere = DeployedRecord {
        scope: account.clone(),
        ..deployed("cart")
    };
    for of in [&cart, &web, &elsewhere] {
        store.put_deployed(of).await.expect("noted");
        let three = ["a", "b", "c"].map(|key| instance(of, key));
        store.put_instances(of, &three).await.expect("counted");
    }
    store
        .put_instances(&cart, &[instance(&cart, "z")])
        .await
        .expect("counted");
    // A later deployment keeps what was counted.
    store
        .put_deployed(&DeployedRecord {
            run: run("r2"),
            ..cart.clone()
        })
        .await
        .expect("noted");

    // A sweep that fails keeps it too, and says why until one succeeds.
    store
        .note_uncounted(&web, "expired credentials")
        .await
        .expect("noted");
    let noted = store
        .list_deployed_in(&scope())
        .await
        .expect("listed")
        .remove(1);
    let seen = (noted.counted.map(|(n, _)| n), noted.uncounted.as_deref());
    assert_eq!(seen, (Some(3), Some("expired credentials")));
    let three = ["a", "b", "c"].map(|key| instance(&web, key));
    store.put_instances(&web, &three).await.expect("counted");
    let counted = store
        .list_deployed_in(&scope())
        .await
        .expect("listed")
        .remove(1);
    assert_eq!(counted.uncounted, None);

    let keys = |filter: InstanceFilter| {
        let store = store.clone();
        async move {
            let found = store
                .list_instances(&scope(), &filter)
                .await
                .expect("listed");
            found.into_iter().map(|i| i.key).collect::<String>()
        }
    };
    assert_eq!(keys(InstanceFilter::default()).await, "zabc");
    let of_cart = InstanceFilter {
        service: Some(id("cart")),
        ..Default::default()
    };
    assert_eq!(keys(of_cart).await, "z");
    let nowhere = InstanceFilter {
        environment: Some(id("qa")),
        ..Default::default()
    };
    assert_eq!(keys(nowhere).await, "");

    let all = store.list_deployed().await.expect("listed");
    let counts: Vec<_> = all.iter().map(|d| d.counted.map(|(n, _)| n)).collect();
    assert_eq!((all.len(), counts.iter().flatten().sum::<u32>()), (3, 7));
    let here = store.list_deployed_in(&scope()).await.expect("listed");
    let runs: Vec<_> = here.iter().map(|d| d.run.to_string()).collect();
    assert_eq!(runs, ["r2", "r1"]);
    store.delete_deployed(&elsewhere).await.expect("forgotten");
    assert_eq!(store.list_deployed_in(&account).await.expect("listed"), []);
}
