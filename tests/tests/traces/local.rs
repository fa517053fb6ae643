//! The same stories in a real `slipway local`, all at once, in real time: each comes to the outcome of its golden trace.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::stream::{self, StreamExt as _};
use serde_json::{Value, json};
use slipway_clock::Clock;
use slipway_fn_api::{NewToken, Permission, mint_token};
use slipway_model::id::{AccountId, PrincipalId};
use slipway_store::embedded::Embedded;
use slipway_tests::LocalProcess;

use crate::case::{Case, all};
use crate::golden::PEOPLE;
use crate::others::Others;
use crate::outcome::{CLUSTER, HEAD, outcome};
use crate::place::{Answer, Call, Place};
use crate::play::play;

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Stories at a time: more would only wait for one another's scripts.
const AT_ONCE: usize = 24;

/// Longest time for something that must come about.
const PATIENCE: Duration = Duration::from_secs(180);

/// A process that can be killed, and comes back with the same data.
pub(crate) struct Server {
    now: RefCell<Option<LocalProcess>>,
    data: PathBuf,
    tokens: BTreeMap<&'static str, String>,
    client: reqwest::Client,
    kills: Cell<u32>,
}

impl Server {
    /// A process over new data, with tokens for all who speak.
    pub(crate) async fn start(data: &Path) -> Self {
        // The first start makes the data; tokens of other people are made while nobody has it open.
        LocalProcess::start(data).kill();
        let clock = Clock::system();
        let embedded = Embedded::open(&data.join("store")).expect("the store");
        let store = embedded.store(clock.clone());
        let mut tokens = BTreeMap::new();
        for who in PEOPLE {
            let token = NewToken {
                account: AccountId::new(slipway_cli::local::place::ACCOUNT),
                principal: PrincipalId::new(who),
                name: who.to_owned(),
                permission: Permission::Admin,
                now_ms: clock.now_ms(),
                valid_to_ms: 0,
            };
            tokens.insert(who, mint_token(&store, token).await.expect("a token"));
        }
        drop((store, embedded));
        let server = Self {
            now: RefCell::new(Some(LocalProcess::start(data))),
            data: data.to_path_buf(),
            tokens,
            client: reqwest::Client::new(),
            kills: Cell::new(0),
        };
        server
            .ecs("CreateCluster", &json!({"clusterName": CLUSTER}))
            .await;
        server
    }

    /// Kills it with SIGKILL and starts it again.
    pub(crate) fn kill(&self) {
        let mut now = self.now.borrow_mut();
        if let Some(old) = now.take() {
            old.kill();
        }
        *now = Some(LocalProcess::start(&self.data));
        self.kills.set(self.kills.get() + 1);
    }

    /// How often it was killed.
    pub(crate) fn kills(&self) -> u32 {
        self.kills.get()
    }

    /// The process, which nobody kills any more.
    ///
    /// # Panics
    /// When it did not come back.
    pub(crate) fn into_process(self) -> LocalProcess {
        self.now.into_inner().expect("a process")
    }

    fn url(&self) -> String {
        let now = self.now.borrow();
        now.as_ref().expect("a process").url().to_owned()
    }

    pub(crate) async fn send(
        &self,
        who: &str,
        call: &Call,
    ) -> Result<(u16, Value), reqwest::Error> {
        let method = call.method.parse().expect("a method");
        let request = self.client.request(method, self.url() + &call.path);
        let request = request.header("x-api-key", &self.tokens[who]);
        let request = match &call.body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = request.send().await?;
        Ok((answer.status().as_u16(), answer.json().await?))
    }

    /// As [`Place::call`].
    pub(crate) async fn call(&self, who: &str, call: &Call, repeated: bool) -> Answer {
        let until = Instant::now() + PATIENCE;
        let mut again = false;
        loop {
            let why = match self.send(who, call).await {
                Ok((status, body)) => {
                    return Answer {
                        status,
                        body,
                        again,
                    };
                }
                Err(_) if !repeated => {
                    return Answer {
                        status: 0,
                        body: Value::Null,
                        again: true,
                    };
                }
                Err(why) => why,
            };
            again = true;
            assert!(Instant::now() < until, "{call:?}: {why}");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// As [`Place::pass`].
    pub(crate) async fn pass(&self) {
        tokio::time::sleep(PAUSE).await;
    }

    /// As [`Place::ecs`].
    pub(crate) async fn ecs(&self, operation: &str, body: &Value) -> Value {
        let key =
            "AWS4-HMAC-SHA256 Credential=AKIASLIPWAYSANDBOX00/20260101/us-east-1/ecs/aws4_request";
        let until = Instant::now() + PATIENCE;
        loop {
            let request = self
                .client
                .post(self.url())
                .header(
                    "x-amz-target",
                    format!("AmazonEC2ContainerServiceV20141113.{operation}"),
                )
                .header("content-type", "application/x-amz-json-1.1")
                .header("authorization", key)
                .body(body.to_string());
            let answer = match request.send().await {
                Ok(answer) => answer.bytes().await,
                Err(why) => Err(why),
            };
            match answer {
                Ok(body) => return serde_json::from_slice(&body).expect("JSON"),
                Err(why) => assert!(Instant::now() < until, "{operation}: {why}"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// A process that nobody kills.
struct Unharmed<'a>(&'a Server);

#[async_trait(?Send)]
impl Place for Unharmed<'_> {
    async fn call(&self, who: &str, call: &Call, repeated: bool) -> Answer {
        self.0.call(who, call, repeated).await
    }

    async fn ecs(&self, operation: &str, body: &Value) -> Value {
        self.0.ecs(operation, body).await
    }

    async fn pass(&self) {
        self.0.pass().await;
    }

    fn now_ms(&self) -> i64 {
        0
    }
}

/// Plays a story to the outcome of its golden trace; the error says what came instead.
pub(crate) async fn comes_true(
    place: &dyn Place,
    case: &Case,
    others: &Others,
) -> Result<(), String> {
    let golden = case.golden();
    let (_, golden) = golden.split_once(HEAD).expect("an outcome");
    let story = play(place, case, others).await;
    // Notices, and tasks that come and go, outlast their run.
    let until = Instant::now() + PATIENCE / 6;
    loop {
        let seen = outcome(&story).await;
        if seen == golden {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(format!(
                "{}: expected\n{golden}\nand came to\n{seen}",
                case.name
            ));
        }
        place.pass().await;
    }
}

/// Plays all stories at once; what did not come true.
pub(crate) async fn all_come_true(place: &dyn Place) -> Vec<String> {
    let others = &Others::new().await;
    let cases = all();
    let playing = stream::iter(&cases).map(|case| comes_true(place, case, others));
    let ended: Vec<_> = playing.buffer_unordered(AT_ONCE).collect().await;
    ended.into_iter().filter_map(Result::err).collect()
}

#[tokio::test]
async fn each_story_comes_true_in_a_real_process() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path()).await;
    let wrong = all_come_true(&Unharmed(&server)).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
