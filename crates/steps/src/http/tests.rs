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
    let reads = json!({"url": "https://<+spec.inputVariables.host>/", "method": "GET",
        "inputVariables": [{"name": "host", "type": "String", "value": "example.com"}]});
    assert_eq!(Http.check(&reads), Vec::<String>::new());
    let certificate = json!({"url": "https://x", "method": "GET", "certificate": "pem"});
    assert!(Http.check(&certificate)[0].starts_with("certificate: it is not supported"));
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

/// A server that writes these pieces, a moment between them, and then closes or goes on for ever.
async fn dribbling(pieces: Vec<Vec<u8>>, endless: bool) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("its address"));
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let _ = stream.read(&mut vec![0; 8192]).await;
        for piece in pieces.iter().take(pieces.len().saturating_sub(1)) {
            let _ = stream.write_all(piece).await;
        }
        while let Some(last) = pieces.last() {
            if stream.write_all(last).await.is_err() || !endless {
                break;
            }
            if last.len() == 1 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    });
    address
}

#[tokio::test]
async fn n4_a_server_that_is_slow_endless_or_lies_ends_in_bounded_time() {
    let head =
        |length: u64| format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").into_bytes();
    let cases = [
        (
            "a byte now and then",
            vec![head(1_000), b"a".to_vec()],
            true,
        ),
        (
            "endless headers",
            vec![
                b"HTTP/1.1 200 OK\r\n".to_vec(),
                b"x-more: and more\r\n".to_vec(),
            ],
            true,
        ),
        ("a short body", vec![head(10), b"abc".to_vec()], false),
        ("no answer at all", vec![Vec::new()], false),
        ("nonsense", vec![b"SSH-2.0-OpenSSH_9.6\r\n".to_vec()], false),
        (
            "a length that is none",
            vec![b"HTTP/1.1 200 OK\r\ncontent-length: -4\r\n\r\nabcd".to_vec()],
            false,
        ),
    ];
    for (what, pieces, endless) in cases {
        let url = dribbling(pieces, endless).await;
        let begun = std::time::Instant::now();
        let sent = get(&url).send(Duration::from_secs(1)).await;
        let failure = sent.err().unwrap_or_else(|| panic!("{what} is no answer"));
        let known = [ErrorType::Timeout, ErrorType::Connectivity];
        assert!(known.contains(&failure.error), "{what}: {failure:?}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{what}");
    }
    // 10 GB: what is kept is kept, and no more is read.
    let url = dribbling(vec![head(10_000_000_000), vec![b'a'; 65_536]], true).await;
    let got = get(&url)
        .send(Duration::from_secs(5))
        .await
        .expect("an answer");
    assert_eq!((got.body.len(), got.truncated), (BODY_LIMIT_FOR_TEST, true));
}
