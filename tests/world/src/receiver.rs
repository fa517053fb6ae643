//! Who gets notices: a web server and a server of mails, on real sockets of this machine.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;
use slipway_fn_notify::{MailServer, Security};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// One request that was taken.
#[derive(Clone, Debug)]
pub struct Got {
    /// Its path, without the first slash.
    pub path: String,
    /// Its query.
    pub query: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, as a text where it is no JSON.
    pub body: Value,
}

#[derive(Clone, Default)]
struct Inbox {
    got: Arc<Mutex<Vec<Got>>>,
    mails: Arc<Mutex<Vec<String>>>,
    /// So many requests are not taken.
    away: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
}

/// Both servers.
pub struct Receiver {
    web: SocketAddr,
    mail: SocketAddr,
    inbox: Inbox,
}

impl Receiver {
    /// Two servers that have got nothing yet.
    ///
    /// # Panics
    /// When no port can be had.
    pub async fn new() -> Self {
        let inbox = Inbox::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let web = listener.local_addr().expect("an address");
        let router = Router::new().fallback(take).with_state(inbox.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let mail = listener.local_addr().expect("an address");
        tokio::spawn(serve_mail(listener, inbox.clone()));
        Self { web, mail, inbox }
    }

    /// A URL of the web server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.web)
    }

    /// How the server of mails is reached.
    ///
    /// # Panics
    /// Never: the sender is an address.
    pub fn mail_server(&self) -> MailServer {
        MailServer {
            host: "127.0.0.1".to_owned(),
            port: self.mail.port(),
            security: Security::None,
            user: None,
            password: None,
            from: "Slipway <slipway@example.com>".parse().expect("an address"),
        }
    }

    /// The next requests are answered with 503.
    pub fn go_away(&self, requests: usize) {
        self.inbox.away.store(requests, Ordering::SeqCst);
    }

    /// How many requests were answered with 503.
    pub fn refused(&self) -> usize {
        self.inbox.refused.load(Ordering::SeqCst)
    }

    /// What was taken so far.
    ///
    /// # Panics
    /// When another test has panicked over the inbox.
    pub fn got(&self) -> Vec<Got> {
        self.inbox.got.lock().expect("the inbox").clone()
    }

    /// Forgets what was taken.
    ///
    /// # Panics
    /// When another test has panicked over the inbox.
    pub fn empty(&self) {
        self.inbox.got.lock().expect("the inbox").clear();
    }

    /// The mails that were taken, with the commands before each.
    ///
    /// # Panics
    /// When another test has panicked over the inbox.
    pub fn mails(&self) -> Vec<String> {
        self.inbox.mails.lock().expect("the inbox").clone()
    }

    /// Type, stage and step of the events that came to a path, sorted.
    pub fn events(&self, path: &str) -> Vec<String> {
        let got = self.got().into_iter().filter(|got| got.path == path);
        let mut events: Vec<String> = got
            .map(|got| {
                let data = &got.body["eventData"];
                let fields = ["eventType", "stageIdentifier", "stepIdentifier"];
                let words = fields.iter().filter_map(|field| data[field].as_str());
                words.collect::<Vec<_>>().join(" ")
            })
            .collect();
        events.sort();
        events
    }
}

async fn take(State(inbox): State<Inbox>, request: Request) -> (StatusCode, String) {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.expect("a body");
    let left = inbox
        .away
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
            left.checked_sub(1)
        });
    if left.is_ok() {
        inbox.refused.fetch_add(1, Ordering::SeqCst);
        return (StatusCode::SERVICE_UNAVAILABLE, "away".to_owned());
    }
    if head.uri.path().starts_with("/refuse") {
        // As some do, with all that it was sent.
        let said = format!("no: {} {:?}", head.uri, head.headers.get("x-key"));
        return (StatusCode::BAD_REQUEST, said);
    }
    inbox.got.lock().expect("the inbox").push(Got {
        path: head.uri.path().trim_start_matches('/').to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body: serde_json::from_slice(&body)
            .unwrap_or_else(|_| String::from_utf8_lossy(&body).into_owned().into()),
    });
    (StatusCode::OK, "ok".to_owned())
}

async fn serve_mail(listener: TcpListener, inbox: Inbox) {
    while let Ok((stream, _)) = listener.accept().await {
        let inbox = inbox.clone();
        tokio::spawn(async move {
            let _ = one_mail(stream, inbox).await;
        });
    }
}

/// As much of RFC 5321 as a client needs to get rid of one mail.
async fn one_mail(stream: TcpStream, inbox: Inbox) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    write.write_all(b"220 receiver\r\n").await?;
    let mut mail = String::new();
    while let Some(line) = lines.next_line().await? {
        let word = line.split([' ', ':']).next().unwrap_or_default();
        let answer = match word.to_ascii_uppercase().as_str() {
            "EHLO" | "HELO" => "250 receiver",
            "DATA" => {
                write.write_all(b"354 go on\r\n").await?;
                while let Some(line) = lines.next_line().await? {
                    if line == "." {
                        break;
                    }
                    mail.push_str(&line);
                    mail.push('\n');
                }
                inbox.mails.lock().expect("the inbox").push(mail.clone());
                "250 taken"
            }
            "QUIT" => "221 bye",
            _ => {
                mail.push_str(&line);
                mail.push('\n');
                "250 fine"
            }
        };
        write.write_all(format!("{answer}\r\n").as_bytes()).await?;
    }
    Ok(())
}
