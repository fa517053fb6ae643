//! A registry on this machine, as real ones answer and as bad ones do.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use slipway_engine::gather::SourceReader;
use slipway_model::id::{AccountId, Scope};
use slipway_plan::{
    ArtifactAnswer, ArtifactPlace, ArtifactQuestion, ArtifactVersion, ConnectorPlan, FoundArtifact,
    WantedArtifact,
};

use crate::support::{TOKEN, source, tested};

/// A manifest, and what it is.
const MANIFEST: &str = "{\"schemaVersion\": 2}";

fn digest() -> String {
    let digest = Sha256::digest(MANIFEST);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digest}")
}

/// What is wrong with a registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Trouble {
    #[default]
    None,
    /// Tokens are asked for at the metadata service of the cloud.
    RealmOfTheCloud,
    /// Everything goes on there.
    RedirectToTheCloud,
    /// Tokens are given to nobody.
    NoTokens,
    /// The manifest never ends.
    Endless,
    /// The manifest never comes.
    Silent,
    /// The digest in the header is of something else.
    WrongDigest,
    /// The digest in the header is none.
    StrangeDigest,
    /// The list of tags goes on elsewhere.
    StrangeLink,
    /// The list of tags goes on for ever.
    Circle,
    /// It is busy so many times.
    Busy(usize),
    /// It is broken for good.
    Broken,
    /// It tells no digest in a header.
    NoHeader,
    /// It is none: a page for people answers.
    LoginPage,
}

#[derive(Default)]
struct Shop {
    trouble: Trouble,
    /// Whether tokens are asked for, and of whom.
    login: Option<&'static str>,
    basic: bool,
    address: Mutex<String>,
    asked: Mutex<Vec<String>>,
    busy: AtomicUsize,
}

/// A registry with the repository `acme/web` and five tags, two on a page.
async fn registry(shop: Shop) -> (String, Arc<Shop>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let shop = Arc::new(shop);
    *shop.address.lock().expect("a lock") = address.clone();
    let app = Router::new().fallback(answer).with_state(Arc::clone(&shop));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, shop)
}

const TAGS: [&str; 5] = ["1.0-dev", "latest", "v1", "v10", "v9"];

async fn answer(State(shop): State<Arc<Shop>>, request: Request) -> Response {
    let (path, query) = (
        request.uri().path().to_owned(),
        request.uri().query().unwrap_or_default().to_owned(),
    );
    let authorization = request.headers().get(header::AUTHORIZATION);
    let authorization = authorization.map(|value| value.to_str().unwrap_or_default().to_owned());
    let who = authorization.clone().unwrap_or_else(|| "nobody".to_owned());
    let who = who.split(' ').next().unwrap_or_default().to_owned();
    shop.asked
        .lock()
        .expect("a lock")
        .push(format!("{} {path} {who}", request.method()));
    if path == "/token" {
        return token(&shop, &query, authorization.as_deref());
    }
    if let Some(refused) = shop.refusal(authorization.as_deref()) {
        return refused;
    }
    let busy = match shop.trouble {
        Trouble::Busy(times) => times,
        Trouble::Broken => usize::MAX,
        _ => 0,
    };
    if shop.busy.fetch_add(1, Ordering::SeqCst) < busy {
        let status = if shop.trouble == Trouble::Broken {
            503
        } else {
            429
        };
        return (
            StatusCode::from_u16(status).expect("a status"),
            [(header::RETRY_AFTER, "0")],
        )
            .into_response();
    }
    if shop.trouble == Trouble::RedirectToTheCloud {
        let to = "http://169.254.169.254/latest/meta-data/";
        return (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to)]).into_response();
    }
    if path == "/v2/" && shop.trouble == Trouble::LoginPage {
        return "<html>Log in</html>".into_response();
    }
    if path == "/v2/" {
        return "{}".into_response();
    }
    match path.strip_prefix("/v2/acme/web/") {
        Some("tags/list") => shop.tags(&query),
        Some(rest) => match rest.strip_prefix("manifests/") {
            Some(name) if TAGS.contains(&name) || name == digest() => {
                shop.manifest(request.method()).await
            }
            _ => missing(),
        },
        None => missing(),
    }
}

fn missing() -> Response {
    let body = json!({"errors": [{"code": "MANIFEST_UNKNOWN"}]});
    (StatusCode::NOT_FOUND, body.to_string()).into_response()
}

/// Gives tokens as Docker Hub does.
fn token(shop: &Shop, query: &str, authorization: Option<&str>) -> Response {
    let pair = "Basic Ym90OnQwcC1zM2NyZXQtdG9rZW4=";
    let known = shop.login == Some("anybody") || authorization == Some(pair);
    if shop.trouble == Trouble::NoTokens || !known {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let of_the_repository = "service=shop.example&scope=repository%3Aacme%2Fweb%3Apull";
    assert!(
        [of_the_repository, "service=shop.example"].contains(&query),
        "{query}"
    );
    json!({"token": "short-lived", "expires_in": 300})
        .to_string()
        .into_response()
}

impl Shop {
    fn refusal(&self, authorization: Option<&str>) -> Option<Response> {
        let wanted = match (self.login, self.basic) {
            (None, _) => return None,
            (Some(_), true) => "Basic Ym90OnQwcC1zM2NyZXQtdG9rZW4=",
            (Some(_), false) => "Bearer short-lived",
        };
        if authorization == Some(wanted) {
            return None;
        }
        let realm = match self.trouble {
            Trouble::RealmOfTheCloud => "http://169.254.169.254".to_owned(),
            _ => self.address.lock().expect("a lock").clone(),
        };
        let challenge = match self.basic {
            true => "Basic realm=\"shop\"".to_owned(),
            false => format!(
                "Bearer realm=\"{realm}/token\",service=\"shop.example\",scope=\"repository:acme/web:pull\""
            ),
        };
        Some(
            (
                StatusCode::UNAUTHORIZED,
                [(header::WWW_AUTHENTICATE, challenge)],
            )
                .into_response(),
        )
    }

    async fn manifest(&self, method: &Method) -> Response {
        match self.trouble {
            Trouble::Silent => std::future::pending().await,
            Trouble::Endless if *method == Method::GET => {
                let chunk = Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 1 << 16]));
                let endless = futures::stream::repeat_with(move || match &chunk {
                    Ok(chunk) => Ok(chunk.clone()),
                    Err(_) => Err(std::io::Error::other("no")),
                });
                return Response::new(Body::from_stream(endless));
            }
            _ => {}
        }
        let told = match self.trouble {
            Trouble::NoHeader | Trouble::Endless => None,
            // Only with the whole manifest can it be seen.
            Trouble::WrongDigest => {
                (*method == Method::GET).then(|| format!("sha256:{}", "00".repeat(32)))
            }
            Trouble::StrangeDigest => Some("sha256:../../etc/passwd".to_owned()),
            _ => Some(digest()),
        };
        let mut response = MANIFEST.into_response();
        if let Some(told) = told {
            let told = told.parse().expect("a header");
            response.headers_mut().insert("docker-content-digest", told);
        }
        response
    }

    fn tags(&self, query: &str) -> Response {
        let after = query.split('&').find_map(|pair| pair.strip_prefix("last="));
        let rest: Vec<&str> = TAGS
            .into_iter()
            .filter(|tag| after.is_none_or(|after| *tag > after))
            .collect();
        let page: Vec<&str> = rest.iter().copied().take(2).collect();
        let body = json!({"name": "acme/web", "tags": page}).to_string();
        let link = match (self.trouble, page.last()) {
            (Trouble::StrangeLink, _) => {
                Some("<http://169.254.169.254/v2/>; rel=\"next\"".to_owned())
            }
            (Trouble::Circle, _) => {
                Some("</v2/acme/web/tags/list?n=1000>; rel=\"next\"".to_owned())
            }
            (_, Some(last)) if rest.len() > 2 => Some(format!(
                "</v2/acme/web/tags/list?last={last}&n=1000>; rel=\"next\""
            )),
            _ => None,
        };
        match link {
            Some(link) => ([(header::LINK, link)], body).into_response(),
            None => body.into_response(),
        }
    }
}

fn wanted(
    address: &str,
    login: Value,
    version: Option<ArtifactVersion>,
    digest: Option<&str>,
) -> WantedArtifact {
    let connector = ConnectorPlan {
        reference: "account.shop".to_owned(),
        kind: "DockerRegistry".to_owned(),
        spec: json!({"dockerRegistryUrl": address, "auth": login}),
    };
    WantedArtifact {
        question: ArtifactQuestion {
            connector: connector.reference.clone(),
            place: ArtifactPlace::Image {
                registry: address.to_owned(),
                repository: "acme/web".to_owned(),
            },
            version,
            digest: digest.map(str::to_owned),
        },
        connector,
        scope: Scope::account(AccountId::new("acme")),
    }
}

fn anonymous() -> Value {
    json!({"type": "Anonymous"})
}

fn user() -> Value {
    json!({"type": "UsernamePassword", "spec": {"username": "bot", "passwordRef": "account.token"}})
}

fn tag(name: &str) -> Option<ArtifactVersion> {
    Some(ArtifactVersion::Exact(name.to_owned()))
}

fn pattern(text: &str) -> Option<ArtifactVersion> {
    Some(ArtifactVersion::Pattern(text.to_owned()))
}

async fn ask(wanted: WantedArtifact) -> Result<FoundArtifact, String> {
    let source = source(false, Duration::from_secs(10));
    let mut found = source.find_artifacts(&[wanted]).await;
    assert_eq!(found.len(), 1);
    match found.remove(0)? {
        ArtifactAnswer::Found(found) => Ok(found),
        ArtifactAnswer::Unasked(why) => panic!("not asked: {why}"),
    }
}

#[tokio::test]
async fn a_tag_becomes_the_digest_that_it_has_now() {
    let (address, shop) = registry(Shop::default()).await;
    let found = ask(wanted(&address, anonymous(), tag("v1"), None))
        .await
        .expect("an image");
    assert_eq!(
        (found.version.as_str(), found.digest),
        ("v1", Some(digest()))
    );
    assert_eq!(
        *shop.asked.lock().expect("a lock"),
        ["HEAD /v2/acme/web/manifests/v1 nobody"]
    );

    let digest = digest();
    let both = ask(wanted(&address, anonymous(), tag("v1"), Some(&digest))).await;
    assert_eq!(
        both.expect("the same").digest.as_deref(),
        Some(digest.as_str())
    );
    let alone = ask(wanted(&address, anonymous(), None, Some(&digest)))
        .await
        .expect("an image");
    assert_eq!(
        (alone.version.as_str(), alone.digest.as_deref()),
        ("", Some(digest.as_str()))
    );
    let other = format!("sha256:{}", "ab".repeat(32));
    let why = ask(wanted(&address, anonymous(), tag("v1"), Some(&other)))
        .await
        .unwrap_err();
    assert!(why.contains(&digest) && why.contains(&other), "{why}");
}

#[tokio::test]
async fn the_last_tag_is_found_over_all_pages() {
    let (address, shop) = registry(Shop::default()).await;
    for (version, expected) in [
        (Some(ArtifactVersion::Last), "v9"),
        (pattern("v1.*"), "v10"),
        (pattern(".*-dev"), "1.0-dev"),
    ] {
        let found = ask(wanted(&address, anonymous(), version, None))
            .await
            .expect("an image");
        assert_eq!(found.version, expected);
    }
    let pages = shop
        .asked
        .lock()
        .expect("a lock")
        .iter()
        .filter(|asked| asked.contains("tags"))
        .count();
    assert_eq!(pages, 9);
    let why = ask(wanted(&address, anonymous(), pattern("x+"), None))
        .await
        .unwrap_err();
    assert!(
        why.contains("it has 5 tags there, and none that matches `x+`"),
        "{why}"
    );
    let why = ask(wanted(&address, anonymous(), pattern("(?=x)"), None))
        .await
        .unwrap_err();
    assert!(why.contains("no regular expression"), "{why}");
}

#[tokio::test]
async fn tags_are_listed_with_the_digests_of_one_page() {
    let (address, shop) = registry(Shop::default()).await;
    let source = source(false, Duration::from_secs(10));
    let wanted = wanted(&address, anonymous(), Some(ArtifactVersion::Last), None);
    let listed = source.list_versions(&wanted, 1, 2).await.expect("tags");
    let seen: Vec<_> = listed
        .versions
        .iter()
        .map(|one| (one.found.version.as_str(), one.found.digest.clone()))
        .collect();
    assert_eq!(
        (listed.total, seen),
        (5, vec![("v10", Some(digest())), ("v1", Some(digest()))])
    );
    let heads = shop
        .asked
        .lock()
        .expect("a lock")
        .iter()
        .filter(|one| one.starts_with("HEAD"))
        .count();
    assert_eq!(heads, 2);
}

#[tokio::test]
async fn registries_are_logged_in_to_as_they_ask() {
    for (login, basic, auth, way) in [
        (Some("anybody"), false, anonymous(), "Bearer"),
        (Some("bot"), false, user(), "Bearer"),
        (Some("bot"), true, user(), "Basic"),
    ] {
        let (address, shop) = registry(Shop {
            login,
            basic,
            ..Shop::default()
        })
        .await;
        ask(wanted(&address, auth, tag("v1"), None))
            .await
            .expect("an image");
        let asked = shop.asked.lock().expect("a lock").clone();
        assert_eq!(
            asked.last().map(String::as_str),
            Some(format!("HEAD /v2/acme/web/manifests/v1 {way}").as_str()),
            "{asked:?}"
        );
    }
    // A login that nobody takes is tried once.
    let (address, shop) = registry(Shop {
        login: Some("somebody else"),
        basic: true,
        trouble: Trouble::None,
        ..Shop::default()
    })
    .await;
    let auth = json!({"type": "UsernamePassword", "spec": {"username": "other", "passwordRef": "account.token"}});
    let why = ask(wanted(&address, auth, tag("v1"), None))
        .await
        .unwrap_err();
    assert!(
        why.contains("login may not read acme/web") && !why.contains(TOKEN),
        "{why}"
    );
    assert_eq!(shop.asked.lock().expect("a lock").len(), 2);
}

#[tokio::test]
async fn what_is_not_there_or_not_to_be_had_is_said() {
    let open = |trouble| Shop {
        trouble,
        ..Shop::default()
    };
    let closed = |trouble| Shop {
        trouble,
        login: Some("bot"),
        ..Shop::default()
    };
    for (shop, auth, version, expected) in [
        (
            open(Trouble::None),
            anonymous(),
            tag("v404"),
            "there is no v404 in acme/web",
        ),
        (
            open(Trouble::None),
            anonymous(),
            tag("../../x"),
            "is no tag",
        ),
        (
            closed(Trouble::None),
            anonymous(),
            tag("v1"),
            "gives no token without a login",
        ),
        (
            closed(Trouble::NoTokens),
            user(),
            tag("v1"),
            "does not accept the connector's login",
        ),
        (
            closed(Trouble::RealmOfTheCloud),
            user(),
            tag("v1"),
            "link-local",
        ),
        (
            open(Trouble::RedirectToTheCloud),
            anonymous(),
            tag("v1"),
            "link-local",
        ),
        (
            open(Trouble::Endless),
            anonymous(),
            tag("v1"),
            "more than 4194304 bytes",
        ),
        (
            open(Trouble::WrongDigest),
            anonymous(),
            tag("v1"),
            "something between here and there",
        ),
        (
            open(Trouble::StrangeDigest),
            anonymous(),
            tag("v1"),
            "is no digest",
        ),
        (
            open(Trouble::StrangeLink),
            anonymous(),
            pattern("v.*"),
            "not its own",
        ),
        (
            open(Trouble::Circle),
            anonymous(),
            pattern("v.*"),
            "on more than 100 pages",
        ),
        (
            open(Trouble::Broken),
            anonymous(),
            tag("v1"),
            "an error of its own (503)",
        ),
        (
            open(Trouble::Busy(9)),
            anonymous(),
            tag("v1"),
            "asked too often",
        ),
    ] {
        let trouble = shop.trouble;
        let (address, _) = registry(shop).await;
        let why = ask(wanted(&address, auth, version, None))
            .await
            .expect_err("trouble");
        assert!(why.contains(expected), "{trouble:?}: {why}");
        assert!(
            !why.contains(TOKEN) && !why.contains("short-lived"),
            "{why}"
        );
    }
    // Nobody listens there.
    let why = ask(wanted("http://127.0.0.1:1", anonymous(), tag("v1"), None))
        .await
        .unwrap_err();
    assert!(why.contains("the registry http://127.0.0.1:1, asked for acme/web with the connector account.shop: it cannot be reached"), "{why}");
}

#[tokio::test]
async fn a_registry_that_is_busy_is_asked_again_and_one_that_tells_no_digest_is_read() {
    for trouble in [Trouble::Busy(2), Trouble::NoHeader] {
        let (address, _) = registry(Shop {
            trouble,
            ..Shop::default()
        })
        .await;
        let found = ask(wanted(&address, anonymous(), tag("v1"), None)).await;
        assert_eq!(
            found.expect("an image").digest,
            Some(digest()),
            "{trouble:?}"
        );
    }
}

#[tokio::test]
async fn the_connection_of_a_docker_connector_is_tested() {
    let (address, _) = registry(Shop {
        login: Some("bot"),
        ..Shop::default()
    })
    .await;
    let test = async |address: &str, login: Value| {
        tested(&wanted(address, login, None, None).connector).await
    };
    assert_eq!(test(&format!("{address}/v2/"), user()).await, "good");
    let no = test(&address, anonymous()).await;
    assert!(no.starts_with("Authentication: "), "{no}");
    assert!(no.contains("gives no token without a login"), "{no}");
    let (page, _) = registry(Shop {
        trouble: Trouble::LoginPage,
        ..Shop::default()
    })
    .await;
    let no = test(&page, anonymous()).await;
    assert!(
        no.contains("what is no registry: check `dockerRegistryUrl`"),
        "{no}"
    );
    let no = test("http://169.254.169.254", user()).await;
    assert!(no.contains("link-local"), "{no}");
    let no = test("http://registry.example", user()).await;
    assert!(no.contains("a login is not sent over http"), "{no}");
}

#[tokio::test]
async fn a_registry_that_says_nothing_holds_nobody_up() {
    let (address, _) = registry(Shop {
        trouble: Trouble::Silent,
        ..Shop::default()
    })
    .await;
    let source = source(false, Duration::from_millis(300));
    let found = source
        .find_artifacts(&[wanted(&address, anonymous(), tag("v1"), None)])
        .await;
    let why = found[0].as_ref().unwrap_err();
    assert!(why.contains("did not answer within"), "{why}");
}

#[tokio::test]
async fn a_registry_far_away_is_not_asked_for_the_sandbox() {
    let source = source(false, Duration::from_secs(1));
    let found = source
        .find_artifacts(&[wanted(
            "https://registry-1.docker.io",
            anonymous(),
            tag("v1"),
            None,
        )])
        .await;
    let Ok(ArtifactAnswer::Unasked(why)) = &found[0] else {
        panic!("{found:?}");
    };
    assert!(why.contains("the account is the sandbox"), "{why}");
}
