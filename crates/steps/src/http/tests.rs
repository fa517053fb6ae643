use serde_json::json;

use super::*;

#[test]
fn a_spec_is_checked_before_the_run() {
    let good = json!({"url": "https://<+env.name>.example.com", "method": "GET",
        "assertion": "<+httpResponseCode> == 200", "headers": [{"key": "a", "value": "b"}]});
    assert_eq!(Http.check(&good), Vec::<String>::new());
    let bad = json!({"url": "ftp://x", "method": "FETCH", "assertion": "<+httpResponseCode> =="});
    let faults = Http.check(&bad);
    assert_eq!(faults.len(), 3, "{faults:?}");
    let certificate = json!({"url": "https://x", "method": "GET", "certificate": "pem"});
    assert!(Http.check(&certificate)[0].contains("unknown field `certificate`"));
}

#[test]
fn what_a_server_asks_for_is_clamped() {
    let now: Timestamp = "2026-03-01T12:00:00Z".parse().expect("a time");
    let cases = [
        ("0", 1),
        ("-1", 1),
        ("7", 7),
        ("1000000000", 300),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30),
        ("Sat, 28 Feb 2026 12:00:00 GMT", 1),
        ("soon", 1),
    ];
    for (asked, seconds) in cases {
        let wait = retry_after(asked, now).clamp(RETRY_AFTER.0, RETRY_AFTER.1);
        assert_eq!(wait, Duration::from_secs(seconds), "{asked}");
    }
}

/// Answers each connection with the next of `answers`, and returns the requests that came.
async fn server(answers: Vec<String>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("its address"));
    let task = tokio::spawn(async move {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut buffer = vec![0; 8192];
            let read = stream.read(&mut buffer).await.expect("a request");
            requests.push(String::from_utf8_lossy(&buffer[..read]).into_owned());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
        requests
    });
    (address, task)
}

fn answer(head: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

fn get(url: &str) -> Request {
    let headers = vec![("x-key".to_owned(), "s3cret".to_owned().into())];
    Request::new(reqwest::Method::GET, &url.to_owned().into(), headers, None).expect("a request")
}

#[tokio::test]
async fn headers_do_not_follow_a_redirect_to_another_origin() {
    let (other, elsewhere) = server(vec![answer("200 OK", "hi")]).await;
    let redirect = answer(&format!("302 Found\r\nlocation: {other}/there"), "");
    let (first, here) = server(vec![redirect]).await;
    let got = get(&first)
        .send(Duration::from_secs(5))
        .await
        .expect("an answer");
    assert_eq!((got.code, got.body.as_str()), (200, "hi"));
    assert!(here.await.expect("requests")[0].contains("s3cret"));
    assert!(!elsewhere.await.expect("requests")[0].contains("s3cret"));
}

#[tokio::test]
async fn a_redirect_to_a_metadata_service_is_refused() {
    let (url, _server) = server(vec![answer(
        "302 Found\r\nlocation: http://169.254.169.254/",
        "",
    )])
    .await;
    let failure = get(&url)
        .send(Duration::from_secs(5))
        .await
        .err()
        .expect("a failure");
    assert!(
        failure.message.contains("link-local"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn a_large_answer_is_cut() {
    let (url, _server) = server(vec![answer("200 OK", &"a".repeat(BODY_LIMIT_FOR_TEST + 5))]).await;
    let got = get(&url)
        .send(Duration::from_secs(5))
        .await
        .expect("an answer");
    assert_eq!((got.body.len(), got.truncated), (BODY_LIMIT_FOR_TEST, true));
}

const BODY_LIMIT_FOR_TEST: usize = super::request::BODY_LIMIT;
