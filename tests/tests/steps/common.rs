//! `Wait`, `Http` and `ShellScript`: steps that need no account.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use slipway_clock::Clock;
use slipway_expr::secret::{SecretRef, SecretText};
use slipway_model::status::{ErrorType, Failure};
use slipway_steps::{Progress, StepContext, StepInput};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::world::{PASSWORD, World};

/// One call of a step, as after a crash or a wait: with what was stored, and a delegate's result.
pub(crate) async fn call(
    world: &World,
    step_type: &str,
    spec: &Value,
    result: Option<Value>,
) -> Result<Progress, Failure> {
    let plan = world.plan(step_type, spec);
    let stage = &plan.groups[0][0];
    let slipway_plan::Node::Step(step) = &stage.steps[0] else {
        panic!("a step")
    };
    let record = world.record(step, 0, spec);
    let stored = match world
        .store
        .get_node(&world.run, &record.id)
        .await
        .expect("an answer")
    {
        Some(stored) => stored,
        None => {
            world.store.start_node(&record).await.expect("a new node");
            record.clone()
        }
    };
    let input = StepInput {
        run: &world.run,
        plan: &plan,
        stage,
        step,
        attempt: 0,
        spec,
        progress: stored.progress,
        started_ms: stored.started_ms,
        earlier: &[],
        said: &[],
        late_since_ms: None,
        aborted: false,
        delegate_result: result,
        expressions: &world.names,
    };
    let mut cx = StepContext::new(&world.services, input);
    let advanced = slipway_steps::find(step_type)
        .expect("a step")
        .advance(&mut cx)
        .await;
    cx.finish(None).await.expect("a stored log");
    advanced
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_called_again_does_not_begin_anew() {
    let world = World::new().await;
    let spec = json!({"duration": "1h"});
    let first = call(&world, "Wait", &spec, None).await.expect("a wait");
    assert_eq!(first, Progress::Again(Duration::from_secs(3600)));
    world.clock.sleep(Duration::from_secs(3000)).await;
    let second = call(&world, "Wait", &spec, None).await.expect("a wait");
    let Progress::Again(left) = second else {
        panic!("{second:?}")
    };
    assert!(left <= Duration::from_secs(600), "{left:?}");
    world.clock.sleep(left).await;
    let last = call(&world, "Wait", &spec, None).await.expect("an end");
    assert!(matches!(last, Progress::Done(_)), "{last:?}");
}

#[tokio::test(start_paused = true)]
async fn a_script_goes_to_a_delegate_and_comes_back_as_outputs() {
    let world = World::new().await;
    let spec = json!({
        "shell": "Bash", "source": {"type": "Inline", "spec": {"script": "true"}},
        "environmentVariables": [{"name": "P", "type": "Secret", "value": "account.password"}],
        "outputVariables": [{"name": "TAG", "type": "String", "value": "tag"}],
        "delegateSelectors": ["linux"],
    });
    let asked = call(&world, "ShellScript", &spec, None)
        .await
        .expect("work");
    let Progress::Delegate(work) = asked else {
        panic!("{asked:?}")
    };
    assert_eq!(
        (work.task_type.as_str(), work.selectors),
        ("ShellScript", vec!["linux".to_owned()])
    );
    assert_eq!(work.payload["timeoutSeconds"], 600);
    assert!(!work.payload.to_string().contains(PASSWORD));

    let result = json!({"status": "SUCCESS", "exitCode": 0, "outputs": {"TAG": "v1"}});
    let ended = call(&world, "ShellScript", &spec, Some(result))
        .await
        .expect("an end");
    let outputs = json!({"output": {"outputVariables": {"TAG": "v1"}}});
    assert_eq!(ended, Progress::Done(outputs));
}

/// A server that gives these answers, one a connection (`None`: it never answers), and notes the requests.
async fn server(answers: Vec<Option<&'static str>>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    tokio::spawn(async move {
        let mut silent = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut buffer = vec![0; 8192];
            let read = stream.read(&mut buffer).await.expect("a request");
            seen.lock()
                .expect("a lock")
                .push(String::from_utf8_lossy(&buffer[..read]).into_owned());
            match answer {
                Some(answer) => stream
                    .write_all(answer.as_bytes())
                    .await
                    .expect("an answer"),
                None => silent.push(stream),
            }
        }
        std::future::pending::<()>().await;
    });
    (url, requests)
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 45\r\nconnection: close\r\n\r\n\
    {\"state\": \"up\", \"t\": \"correct-horse-battery\"}";

#[tokio::test]
async fn a_request_is_judged_by_its_assertion_and_shows_no_secret() {
    let mut world = World::new().await;
    world.names.0.insert("env.expected".to_owned(), json!("up"));
    let (url, requests) = server(vec![Some(OK), Some(OK)]).await;
    let secret = SecretText::secret(SecretRef::new("account.password").expect("a reference"));
    let mut spec = json!({
        "url": format!("{url}/health"), "method": "POST", "requestBody": "{}",
        "headers": [{"key": "Authorization", "value": format!("Bearer {}", secret.encode())}],
        "assertion": "<+httpResponseCode> == 200 && <+json.object(httpResponseBody).state> == <+env.expected>",
        "outputVariables": [{"name": "STATE", "type": "String",
            "value": "<+json.select(\"state\", httpResponseBody)>"}],
    });
    let outputs = world.run("Http", spec.clone()).await.done();
    assert_eq!(outputs["output"]["outputVariables"], json!({"STATE": "up"}));
    assert_eq!(outputs["output"]["httpResponseCode"], 200);
    assert!(requests.lock().expect("a lock")[0].contains(&format!("Bearer {PASSWORD}")));
    assert!(!outputs.to_string().contains(PASSWORD), "{outputs}");
    assert!(!world.everything_stored().await.contains(PASSWORD));

    world.next_run();
    spec["assertion"] = json!("<+httpResponseCode> == 503");
    let failure = world.run("Http", spec).await.failed();
    assert!(
        failure.message.contains("does not hold"),
        "{}",
        failure.message
    );
}

/// Calls the step and kills it as soon as its request is there.
async fn kill_while_sending(world: &World, spec: &Value, requests: &Mutex<Vec<String>>) {
    let arrived = async {
        while requests.lock().expect("a lock").is_empty() {
            Clock::system().sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        advanced = call(world, "Http", spec, None) => panic!("{advanced:?}"),
        () = arrived => {}
    }
}

#[tokio::test]
async fn f18_a_request_that_may_have_arrived_is_not_sent_twice_unless_that_does_no_harm() {
    for (method, again) in [
        ("POST", false),
        ("PATCH", false),
        ("GET", true),
        ("PUT", true),
    ] {
        let world = World::new().await;
        let (url, requests) = server(vec![None, Some(OK)]).await;
        let spec = json!({"url": url, "method": method});
        kill_while_sending(&world, &spec, &requests).await;
        let advanced = call(&world, "Http", &spec, None).await;
        assert_eq!(advanced.is_ok(), again, "{method}: {advanced:?}");
        assert_eq!(
            requests.lock().expect("a lock").len(),
            if again { 2 } else { 1 }
        );
        if let Err(failure) = advanced {
            assert!(
                failure.message.contains("interrupted"),
                "{}",
                failure.message
            );
        }
    }
}

#[tokio::test]
async fn a_busy_server_is_asked_again_when_it_says_so() {
    let busy =
        "HTTP/1.1 503 Busy\r\nretry-after: 0\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let world = World::new().await;
    let (url, requests) = server(vec![Some(busy), Some(OK)]).await;
    let spec = json!({"url": url, "method": "GET"});
    let first = call(&world, "Http", &spec, None).await.expect("a wait");
    assert_eq!(first, Progress::Again(Duration::from_secs(1)));
    // Called too early, it waits for the rest.
    let early = call(&world, "Http", &spec, None).await.expect("a wait");
    assert!(matches!(early, Progress::Again(_)), "{early:?}");
    assert_eq!(requests.lock().expect("a lock").len(), 1);
}

#[tokio::test]
async fn an_absent_server_and_a_metadata_service_are_told_apart() {
    let world = World::new().await;
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("an address")
    };
    let spec = json!({"url": format!("http://{closed}/?token=x"), "method": "GET"});
    let failure = call(&world, "Http", &spec, None)
        .await
        .expect_err("nobody listens");
    assert_eq!(failure.error, ErrorType::Connectivity);
    assert!(!failure.message.contains("token"), "{}", failure.message);
    let spec = json!({"url": "http://169.254.169.254/latest/meta-data/", "method": "GET"});
    let failure = call(&world, "Http", &spec, None)
        .await
        .expect_err("never asked");
    assert!(
        failure.message.contains("link-local"),
        "{}",
        failure.message
    );
}
