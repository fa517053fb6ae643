//! Ticket systems on real ports. Their server can be told to fail, to be slow, and to see its client die.

pub mod jira;
pub mod service_now;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::Value;
use tokio::sync::Notify;

/// The only user of a system.
pub const USER: &str = "sam";

/// The password of its user.
pub const PASSWORD: &str = "correct-horse-battery";

/// What a system answers: code and body.
pub type Answer = (u16, Value);

/// What a system is asked.
pub struct Asked {
    /// `GET`, `POST` and so on.
    pub method: String,
    /// Parts of the path, decoded.
    pub path: Vec<String>,
    /// Its query, decoded.
    pub query: BTreeMap<String, String>,
    /// Its body; null where it has none.
    pub body: Value,
}

impl Asked {
    /// A value of the query; empty where it has none.
    pub fn query(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }
}

/// A ticket system.
pub trait System: Send + 'static {
    /// What it answers to who has logged in.
    fn answer(&mut self, asked: &Asked) -> Answer;
    /// How it refuses a login.
    fn refuse(&self) -> Answer;
}

/// Something that goes wrong once: code, headers and body as they go over the wire.
pub type Trouble = (u16, &'static [(&'static str, &'static str)], String);

struct Shared<S> {
    system: Mutex<S>,
    asked: Mutex<Vec<String>>,
    troubles: Mutex<VecDeque<Trouble>>,
    /// At which request the client dies, and whether the request is carried out before.
    death: Mutex<Option<(usize, bool)>>,
    hung: Notify,
}

/// A running server.
pub struct Server<S> {
    /// Its address.
    pub url: String,
    shared: Arc<Shared<S>>,
}

impl<S: System> Server<S> {
    /// Starts it on a free port.
    ///
    /// # Panics
    /// When there is none.
    pub async fn start(system: S) -> Self {
        let shared = Arc::new(Shared {
            system: Mutex::new(system),
            asked: Mutex::default(),
            troubles: Mutex::default(),
            death: Mutex::default(),
            hung: Notify::new(),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let app = Router::new()
            .fallback(serve::<S>)
            .with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, shared }
    }

    /// Looks at the system, or changes it.
    ///
    /// # Panics
    /// When a system has panicked before.
    pub fn with<T>(&self, look: impl FnOnce(&mut S) -> T) -> T {
        look(&mut self.shared.system.lock().expect("a lock"))
    }

    /// Requests so far: `GET /path`.
    ///
    /// # Panics
    /// When a system has panicked before.
    pub fn asked(&self) -> Vec<String> {
        self.shared.asked.lock().expect("a lock").clone()
    }

    /// The next request meets this instead of an answer.
    ///
    /// # Panics
    /// When a system has panicked before.
    pub fn trouble(&self, trouble: Trouble) {
        self.shared
            .troubles
            .lock()
            .expect("a lock")
            .push_back(trouble);
    }

    /// The client dies at its n-th request from now on; `after` it was carried out, or before.
    ///
    /// # Panics
    /// When a system has panicked before.
    pub fn kill_at(&self, request: usize, after: bool) {
        let so_far = self.asked().len();
        *self.shared.death.lock().expect("a lock") = Some((so_far + request, after));
    }

    /// Whether the death is still to come.
    ///
    /// # Panics
    /// When a system has panicked before.
    pub fn spared(&self) -> bool {
        self.shared.death.lock().expect("a lock").take().is_some()
    }

    /// Returns when the client has died.
    pub async fn hung(&self) {
        self.shared.hung.notified().await;
    }
}

async fn serve<S: System>(State(shared): State<Arc<Shared<S>>>, request: Request) -> Response {
    let url = reqwest::Url::parse(&format!("http://x{}", request.uri())).expect("a URL");
    let method = request.method().to_string();
    let authorization = request.headers().get("authorization").cloned();
    let bytes = axum::body::to_bytes(request.into_body(), 1 << 20)
        .await
        .expect("a body");
    let number = {
        let mut asked = shared.asked.lock().expect("a lock");
        asked.push(format!("{method} {}", url.path()));
        asked.len()
    };
    let death = {
        let mut death = shared.death.lock().expect("a lock");
        death.take_if(|(at, _)| *at == number)
    };
    if let Some((_, false)) = death {
        return dead(&shared).await;
    }
    if let Some((code, headers, body)) = shared.troubles.lock().expect("a lock").pop_front() {
        let mut response = Response::builder().status(code);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        return response.body(Body::from(body)).expect("a response");
    }
    let login = aws_smithy_types::base64::encode(format!("{USER}:{PASSWORD}"));
    let known = authorization.is_some_and(|own| own == format!("Basic {login}").as_str());
    let asked = Asked {
        method,
        path: url
            .path_segments()
            .expect("a path")
            .map(str::to_owned)
            .collect(),
        query: url
            .query_pairs()
            .map(|(k, v)| (k.into_owned(), v.into_owned()))
            .collect(),
        body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
    };
    let (code, body) = {
        let mut system = shared.system.lock().expect("a lock");
        if known {
            system.answer(&asked)
        } else {
            system.refuse()
        }
    };
    if death.is_some() {
        return dead(&shared).await;
    }
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    Response::builder()
        .status(code)
        .header("content-type", "application/json")
        .body(Body::from(body))
        .expect("a response")
}

async fn dead<S>(shared: &Shared<S>) -> Response {
    shared.hung.notify_one();
    std::future::pending().await
}
