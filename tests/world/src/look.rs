//! What a test sees of runs: their stories, the states they passed, what they left behind.

use slipway_model::id::RunId;
use slipway_model::status::Failure;
use slipway_store::record::RunRecord;

use crate::{ACCOUNT, REGION, World};

impl World {
    /// Status of the run, then of its stages, then of its nodes, in the order of the plan.
    ///
    /// # Panics
    /// When the store cannot be read.
    pub async fn story(&self, run: &RunRecord) -> String {
        let mut lines = vec![format!(
            "run {:?}{}",
            run.status,
            told(run.failure.as_ref())
        )];
        let (seen, _) = self.runs.load(&run.id).await.expect("the run");
        for stage in &seen.stages {
            lines.push(format!(
                "{} {:?}{}",
                stage.id,
                stage.status,
                told(stage.failure.as_ref())
            ));
        }
        let nodes = self
            .store
            .list_nodes(&run.id, None)
            .await
            .expect("the nodes");
        let mut nodes: Vec<_> = nodes
            .iter()
            .map(|node| {
                let id = node.id.as_str().replace(".spec.execution", "");
                let id = id
                    .trim_start_matches("pipeline.")
                    .trim_start_matches("stages.");
                format!("{id} #{} {:?}", node.attempt, node.status)
            })
            .collect();
        nodes.sort();
        lines.extend(nodes);
        lines.join("\n")
    }

    /// The states that an execution entered.
    ///
    /// # Panics
    /// When there is no such execution.
    pub async fn path(&self, machine: &str, name: &str) -> String {
        let arn = format!("arn:aws:states:{REGION}:{ACCOUNT}:execution:{machine}:{name}");
        let history = self
            .sfn
            .get_execution_history()
            .execution_arn(arn)
            .max_results(1000)
            .send();
        let history = history.await.expect("a history");
        let entered = history
            .events()
            .iter()
            .filter_map(|e| e.state_entered_event_details());
        entered
            .map(|details| details.name())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Calls ECS in the account that is deployed to, with no tap between.
    ///
    /// # Panics
    /// When it does not answer in JSON.
    pub async fn ecs(&self, operation: &str, request: &serde_json::Value) -> serde_json::Value {
        let target = format!("AmazonEC2ContainerServiceV20141113.{operation}");
        self.asked(("ecs", &target), request).await
    }

    /// As [`World::ecs`], of Application Auto Scaling.
    ///
    /// # Panics
    /// When it does not answer in JSON.
    pub async fn scaling(&self, operation: &str, request: &serde_json::Value) -> serde_json::Value {
        let target = format!("AnyScaleFrontendService.{operation}");
        let service = "application-autoscaling";
        self.asked((service, &target), request).await
    }

    async fn asked(
        &self,
        (service, target): (&str, &str),
        request: &serde_json::Value,
    ) -> serde_json::Value {
        use tower::ServiceExt as _;
        let scope = format!("AKIASLIPWAYSANDBOX00/20260101/{REGION}/{service}/aws4_request");
        let request = axum::http::Request::post("/")
            .header("x-amz-target", target)
            .header("content-type", "application/x-amz-json-1.1")
            .header(
                "authorization",
                format!("AWS4-HMAC-SHA256 Credential={scope}"),
            )
            .body(axum::body::Body::from(request.to_string()))
            .expect("a request");
        let answer = self.sandbox.router().oneshot(request).await;
        let body = answer.expect("an answer").into_body();
        let body = axum::body::to_bytes(body, 1 << 24).await.expect("a body");
        serde_json::from_slice(&body).expect("JSON")
    }

    /// Holds of infrastructures and queues that somebody has or waits for, whatever run they are of.
    ///
    /// # Panics
    /// When the tables cannot be read.
    pub async fn holds(&self) -> Vec<String> {
        let layout = slipway_store::Layout::local();
        let dynamodb = self.embedded.dynamodb();
        let scan = dynamodb.scan().table_name(&layout.runs);
        let items = scan
            .into_paginator()
            .items()
            .send()
            .collect::<Result<Vec<_>, _>>();
        let items = items.await.expect("the table of runs");
        let text = |item: &std::collections::HashMap<String, _>, name: &str| {
            let value: Option<&aws_sdk_dynamodb::types::AttributeValue> = item.get(name);
            value
                .and_then(|value| value.as_s().ok())
                .cloned()
                .unwrap_or_default()
        };
        let held = items.iter().filter_map(|item| {
            let (key, queue) = (text(item, "pk"), text(item, "queue"));
            (key.starts_with("hold#") && queue != "[]").then(|| format!("{key} {queue}"))
        });
        held.collect()
    }

    /// The causes of what failed in an execution.
    ///
    /// # Panics
    /// When there is no such execution.
    pub async fn reasons(&self, machine: &str, name: &str) -> String {
        let arn = format!("arn:aws:states:{REGION}:{ACCOUNT}:execution:{machine}:{name}");
        let history = self.sfn.get_execution_history().execution_arn(arn);
        let history = history.send().await.expect("a history");
        let failed = history.events().iter();
        let failed = failed.filter_map(|event| event.task_failed_event_details());
        failed
            .filter_map(|details| details.cause())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Nothing that a run needed is left: no open wait, no execution that still runs.
    ///
    /// # Panics
    /// When something is.
    pub async fn assert_clean(&self, run: &RunId) {
        let waits = self.store.list_waits(run).await.expect("the waits");
        assert_eq!(waits, [], "waits are left behind");
        assert_eq!(self.engine.counters().open, 0, "executions are left behind");
    }
}

fn told(failure: Option<&Failure>) -> String {
    let Some(failure) = failure else {
        return String::new();
    };
    let left = failure
        .left_behind
        .as_ref()
        .map(|left| format!(" LEFT BEHIND: {left}"));
    format!(": {}{}", failure.message, left.unwrap_or_default())
}
