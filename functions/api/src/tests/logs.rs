//! Step logs in every form.

use serde_json::Value;
use slipway_model::id::{NodeId, RunId};
use slipway_model::status::Status;
use slipway_store::record::LogLine;

use super::execution::{ROLLOUT, node, unit};
use super::{Api, SCOPE};

fn line(out: &str) -> LogLine {
    LogLine {
        level: "INFO".to_owned(),
        out: out.to_owned(),
        time: "2026-01-01T00:00:00.5Z".to_owned(),
    }
}

/// A run whose rollout has two units with a log, the second one still open.
async fn rolling_out(api: &Api) -> String {
    let run = api.run_golden().await;
    let mut step = node(&run, ROLLOUT, "EcsRollingDeploy", Status::Running);
    step.units = vec![
        unit("Prepare Rollback Data", "SUCCESS"),
        unit("Deploy", "RUNNING"),
    ];
    api.store.start_node(&step).await.expect("a stored node");
    let (id, node) = (RunId::new(&*run), NodeId::new(ROLLOUT));
    let prepare = [line("preparing\n"), line("\u{1b}[32mdone\u{1b}[0m\n")];
    api.store
        .append_log(&id, &node, "Prepare Rollback Data", &prepare)
        .await
        .expect("a log");
    api.store
        .close_log(&id, &node, "Prepare Rollback Data")
        .await
        .expect("a closed log");
    api.store
        .append_log(&id, &node, "Deploy", &[line("rolling\n")])
        .await
        .expect("a log");
    run
}

fn outs(ndjson: &str) -> Vec<String> {
    ndjson
        .lines()
        .map(|line| {
            let json: Value = serde_json::from_str(line).expect("a JSON line");
            assert!(json["level"].is_string() && json["pos"].is_u64() && json["time"].is_string());
            json["out"].as_str().expect("text").to_owned()
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_blob_holds_what_is_below_its_key() {
    let api = Api::new().await;
    let run = rolling_out(&api).await;
    let base = format!("acme/pipeline/deploy_shop/1/-{run}");
    let older = "accountId:acme/orgId:default/projectId:default/pipelineId:deploy_shop/runSequence:1/level0:pipeline/level1:stages/level2:deploy/level3:spec/level4:execution/level5:steps/level6:rollout";
    let all = ["preparing\n", "\u{1b}[32mdone\u{1b}[0m\n", "rolling\n"];
    let cases: [(String, &[&str]); 7] = [
        (
            format!("{base}/deploy/rollout-commandUnit:Deploy"),
            &all[2..],
        ),
        (
            format!("{base}/deploy/rollout-commandUnit:Prepare%20Rollback%20Data"),
            &all[..2],
        ),
        (format!("{base}/deploy/rollout"), &all),
        (base.clone(), &all),
        (format!("{base}/deploy/announce-commandUnit:Execute"), &[]),
        (format!("{older}-commandUnit:Deploy"), &all[2..]),
        (older.to_owned(), &all),
    ];
    for (key, expected) in cases {
        let answer = api
            .get(&format!(
                "/gateway/log-service/blob?accountID=acme&key={key}"
            ))
            .await;
        assert_eq!(answer.status, 200, "{key}: {}", answer.text);
        assert_eq!(outs(&answer.text), expected, "{key}");
    }
    for key in ["nonsense", "acme/pipeline/deploy_shop/1/-unknown/deploy"] {
        let answer = api
            .get(&format!("/log-service/blob?accountID=acme&key={key}"))
            .await;
        assert_eq!(answer.refusal().0, 404);
    }
}

#[tokio::test(start_paused = true)]
async fn a_download_link_leads_back_to_the_service() {
    let api = Api::new().await;
    let run = rolling_out(&api).await;
    let path = format!(
        "/gateway/log-service/blob/download?accountID=acme&accountIdentifier=acme&prefix=acme/pipeline/deploy_shop/1/-{run}"
    );
    let link = api.call("POST", &path, "", "").await.json();
    assert_eq!(link["status"], "success");
    let link = link["link"].as_str().expect("a link");
    let at = link
        .find("/gateway/log-service/")
        .expect("a path of the log service");
    assert_eq!(outs(&api.get(&link[at..]).await.text).len(), 3);
    let (id, node) = (RunId::new(&*run), NodeId::new(ROLLOUT));
    let many: Vec<LogLine> = (0..50)
        .map(|n| line(&format!("{n} {}\n", "x".repeat(50_000))))
        .collect();
    api.store
        .append_log(&id, &node, "Deploy", &many)
        .await
        .expect("a log");
    let text = api.get(&link[at..]).await.text;
    assert!(text.len() < 2_000_000, "{}", text.len());
    let shown = outs(&text);
    assert!(
        shown[0].contains("earlier lines are left out"),
        "{}",
        shown[0]
    );
    assert!(shown.last().is_some_and(|last| last.starts_with("49 ")));
}

#[tokio::test(start_paused = true)]
async fn a_stream_sends_lines_as_they_come_and_ends_with_eof() {
    let api = Api::new().await;
    let run = rolling_out(&api).await;
    let key = format!("acme/pipeline/deploy_shop/1/-{run}/deploy/rollout-commandUnit:Deploy");
    let (id, node) = (RunId::new(&*run), NodeId::new(ROLLOUT));
    let writer = async {
        api.clock.sleep(std::time::Duration::from_secs(20)).await;
        api.store
            .append_log(&id, &node, "Deploy", &[line("later\n")])
            .await
            .expect("a log");
        api.store
            .close_log(&id, &node, "Deploy")
            .await
            .expect("a closed log");
    };
    let path = format!("/gateway/log-service/stream?accountID=acme&key={key}");
    let (answer, ()) = tokio::join!(api.get(&path), writer);
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let frames: Vec<&str> = answer
        .text
        .split("\n\n")
        .filter(|frame| !frame.is_empty())
        .collect();
    assert_eq!(frames.len(), 4, "{frames:?}");
    let data = |frame: &str| outs(frame.strip_prefix("data: ").expect("data"));
    assert_eq!(data(frames[0]), ["rolling\n"]);
    assert!(frames[1].starts_with(':'));
    assert_eq!(data(frames[2]), ["later\n"]);
    assert_eq!(frames[3], "event: error\ndata: eof");
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_what_never_begins_ends_with_its_run_or_its_time() {
    let api = Api::new().await;
    let run = api.run_golden().await;
    let key = format!("acme/pipeline/deploy_shop/1/-{run}/deploy/rollout-commandUnit:Deploy");
    let path = format!("/gateway/log-service/stream?accountID=acme&key={key}");
    let began = api.clock.now_ms();
    assert!(
        api.get(&path)
            .await
            .text
            .ends_with("event: error\ndata: eof\n\n")
    );
    assert!(api.clock.now_ms() - began >= 59_000);
    let from = [Status::NotStarted, Status::Running];
    let id = RunId::new(&*run);
    api.store
        .set_run_status(&id, &from, Status::Aborted, None)
        .await
        .expect("a status");
    let began = api.clock.now_ms();
    assert_eq!(api.get(&path).await.text, "event: error\ndata: eof\n\n");
    assert!(api.clock.now_ms() - began < 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_log_token_reads_logs_for_an_hour() {
    let api = Api::new().await;
    let run = rolling_out(&api).await;
    let answer = api.get("/gateway/log-service/token?accountID=acme").await;
    assert_eq!(answer.headers["content-type"], "text/plain");
    let path =
        format!("/gateway/log-service/blob?accountID=acme&key=acme/pipeline/deploy_shop/1/-{run}");
    let ask = |path: String, token: String| {
        let request = axum::http::Request::get(path).header("X-Harness-Token", token);
        api.send(request.body(axum::body::Body::empty()).expect("a request"))
    };
    assert_eq!(ask(path.clone(), answer.text.clone()).await.status, 200);
    let elsewhere = format!("/ng/api/servicesV2?{SCOPE}");
    assert_eq!(ask(elsewhere, answer.text.clone()).await.status, 401);
    api.clock.sleep(std::time::Duration::from_secs(3_600)).await;
    assert_eq!(ask(path, answer.text).await.status, 401);
}
