//! Registries of Google and Azure, and the servers that give their tokens, as the real ones answer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use secrecy::SecretString;
use serde_json::{Value, json};
use slipway_clock::Clock;
use slipway_engine::gather::SourceReader;
use slipway_model::id::{AccountId, Scope};
use slipway_model::status::{ErrorType, Failure};
use slipway_plan::{
    ArtifactAnswer, ArtifactPlace, ArtifactQuestion, ArtifactVersion, ConnectorPlan, WantedArtifact,
};
use slipway_source::{Source, SourceConfig};
use slipway_steps::aws::{Ambient, AwsTargets, TargetConfig};
use slipway_steps::secrets::SecretSource;

use crate::feed_host::{Asked, Host, connector, page, patient};
use crate::support::{TOKEN, tested};

/// `_json_key:t0p-s3cret-token` and `app:t0p-s3cret-token`, as a browser would send them.
const GOOGLE: &str = "Basic X2pzb25fa2V5OnQwcC1zM2NyZXQtdG9rZW4=";
const AZURE: &str = "Basic YXBwOnQwcC1zM2NyZXQtdG9rZW4=";

const DIGEST: &str = "sha256:abababababababababababababababababababababababababababababababab";

fn gcp() -> ConnectorPlan {
    let key = json!({"type": "ManualConfig", "spec": {"secretKeyRef": "account.token"}});
    connector("Gcp", json!({"credential": key}))
}

fn azure() -> ConnectorPlan {
    let auth = json!({"type": "Secret", "spec": {"secretRef": "account.token"}});
    let given = json!({"applicationId": "app", "tenantId": "shop.example", "auth": auth});
    connector(
        "Azure",
        json!({"credential": {"type": "ManualConfig", "spec": given}}),
    )
}

/// A registry that gives a token for `login`, in the field that its cloud uses, and for one thing at a time.
async fn registry(login: &'static str, field: &'static str) -> Host {
    Host::new(move |asked: &Asked| {
        let said = asked.header("authorization");
        if asked.path == "/oauth2/token" {
            let wanted = asked.query.split('&').find_map(|one| one.strip_prefix("scope="));
            return match said == login {
                true => page(&json!({field: format!("for {}", wanted.unwrap_or_default())})),
                false => StatusCode::UNAUTHORIZED.into_response(),
            };
        }
        let (may, answer) = match asked.path.as_str() {
            "/v2/shop/web/tags/list" => (
                "metadata_read",
                page(&json!({"tags": ["v1", "v10", "v9"]})),
            ),
            "/v2/shop/web/manifests/v1" | "/v2/shop/web/manifests/v9" => {
                ("pull", ([("docker-content-digest", DIGEST)], "").into_response())
            }
            _ => return StatusCode::NOT_FOUND.into_response(),
        };
        if said == format!("Bearer for repository%3Ashop%2Fweb%3A{may}") {
            return answer;
        }
        let host = asked.header("host");
        let challenge = format!(
            "Bearer realm=\"http://{host}/oauth2/token\",service=\"{host}\",scope=\"repository:shop/web:{may}\""
        );
        (StatusCode::UNAUTHORIZED, [("www-authenticate", challenge)]).into_response()
    })
    .await
}

fn wanted(connector: ConnectorPlan, host: &str, version: ArtifactVersion) -> WantedArtifact {
    WantedArtifact {
        question: ArtifactQuestion {
            connector: connector.reference.clone(),
            place: ArtifactPlace::Image {
                registry: format!("https://{}", host.trim_start_matches("http://")),
                repository: "shop/web".to_owned(),
            },
            version: Some(version),
            digest: None,
        },
        connector,
        scope: Scope::account(AccountId::new("acme")),
    }
}

async fn ask(wanted: WantedArtifact) -> Result<ArtifactAnswer, String> {
    let found = patient().find_artifacts(&[wanted]).await.remove(0);
    if let Err(why) = &found {
        assert!(!why.contains(TOKEN) && !why.contains("Bearer"), "{why}");
    }
    found
}

#[tokio::test]
async fn images_of_clouds_are_looked_up_with_the_clouds_own_accounts() {
    for (connector, login, field) in [(gcp(), GOOGLE, "token"), (azure(), AZURE, "access_token")] {
        let host = registry(login, field).await;
        let pattern = ArtifactVersion::Pattern("v\\d".to_owned());
        for (version, expected) in [
            (ArtifactVersion::Exact("v1".to_owned()), "v1"),
            (pattern, "v9"),
        ] {
            let found = ask(wanted(connector.clone(), &host.address, version)).await;
            let Ok(ArtifactAnswer::Found(found)) = found else {
                panic!("{found:?}");
            };
            assert_eq!(found.version, expected);
            assert_eq!(found.digest.as_deref(), Some(DIGEST));
        }
        let exact = ArtifactVersion::Exact("v1".to_owned());
        let listed = patient()
            .list_versions(&wanted(connector.clone(), &host.address, exact), 0, 2)
            .await;
        assert_eq!(listed.expect("a list").total, 3);
        let other = match connector.kind.as_str() {
            "Gcp" => azure(),
            _ => gcp(),
        };
        let exact = ArtifactVersion::Exact("v1".to_owned());
        let why = ask(wanted(other, &host.address, exact)).await.unwrap_err();
        assert!(
            why.contains("does not accept the connector's login"),
            "{why}"
        );
    }
}

#[tokio::test]
async fn what_a_cloud_has_no_login_for_is_not_asked_and_keys_go_nowhere_else() {
    let exact = || ArtifactVersion::Exact("v1".to_owned());
    let inherit = json!({"credential": {"type": "InheritFromDelegate", "spec": {}}});
    for kind in ["Gcp", "Azure"] {
        let asked = wanted(connector(kind, inherit.clone()), "127.0.0.1:1", exact());
        let found = ask(asked).await;
        let Ok(ArtifactAnswer::Unasked(why)) = found else {
            panic!("{found:?}");
        };
        assert!(why.contains("use ManualConfig"), "{why}");
    }
    // In the sandbox what is far away is not asked, so that only this machine can be named wrongly.
    let wrong = wanted(gcp(), "127.0.0.1:1/elsewhere", exact());
    let why = ask(wrong).await.unwrap_err();
    assert!(why.contains("no registry of the cloud"), "{why}");
}

/// One secret, whatever its name.
struct One(String);

#[async_trait]
impl SecretSource for One {
    async fn value(&self, _scope: &Scope, reference: &str) -> Result<SecretString, Failure> {
        match reference {
            "account.gone" => Err(Failure {
                error: ErrorType::Unknown,
                message: "Cannot read secret account.gone".to_owned(),
                left_behind: None,
            }),
            _ => Ok(SecretString::from(self.0.clone())),
        }
    }
}

/// What the test of a connector says, with this secret.
async fn said(connector: &ConnectorPlan, secret: &str, azure: Option<String>) -> String {
    let target = TargetConfig {
        endpoint_url: Some("http://target.invalid".to_owned()),
        http_client: None,
        ambient: Ambient::Sandbox,
        objects: None,
    };
    let clock = Clock::system();
    let config = SourceConfig {
        limit: Duration::from_secs(10),
        azure_login: azure,
        ..SourceConfig::default()
    };
    let targets = AwsTargets::new(target, clock.clone());
    let source = Source::new(config, targets, Arc::new(One(secret.to_owned())), clock);
    let scope = Scope::account(AccountId::new("acme"));
    let tested = source.test_connection(connector, &scope).await;
    match tested.expect("it is tested") {
        Ok(()) => "good".to_owned(),
        Err(failure) => format!("{:?}: {}", failure.error, failure.message),
    }
}

fn decoded(part: Option<&str>) -> Value {
    let bytes = URL_SAFE_NO_PAD.decode(part.expect("a part"));
    serde_json::from_slice(&bytes.expect("base64url")).expect("JSON")
}

#[tokio::test]
async fn a_service_account_proves_itself_with_a_signature() {
    let pair = KeyPair::generate(KeySize::Rsa2048).expect("a key");
    let public = pair.public_key().as_ref().to_vec();
    let host = Host::new(move |asked: &Asked| {
        let assertion = asked.body.strip_prefix(
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=",
        );
        let assertion = assertion.expect("a form").to_owned();
        let (signed, signature) = assertion.rsplit_once('.').expect("a signature");
        let mut parts = signed.split('.').map(Some);
        let (head, claims) = (
            decoded(parts.next().flatten()),
            decoded(parts.next().flatten()),
        );
        assert_eq!(head, json!({"alg": "RS256", "typ": "JWT", "kid": "k1"}));
        let lasts = claims["exp"].as_i64().zip(claims["iat"].as_i64());
        assert_eq!(lasts.map(|(exp, iat)| exp - iat), Some(3600));
        assert_eq!(
            claims["scope"],
            "https://www.googleapis.com/auth/cloud-platform"
        );
        assert_eq!(
            claims["aud"],
            format!("http://{}/token", asked.header("host"))
        );
        let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &public);
        let signature = URL_SAFE_NO_PAD.decode(signature).expect("base64url");
        let is_signed = key.verify(signed.as_bytes(), &signature).is_ok();
        match (is_signed, claims["iss"].as_str()) {
            (true, Some("bot@shop.example")) => page(&json!({"access_token": "ya29"})),
            (true, Some("busy@shop.example")) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
            _ => refused("invalid_grant", "Invalid JWT Signature."),
        }
    })
    .await;
    let der = |pair: &KeyPair| {
        let der = pair.as_der().expect("a key");
        let body = STANDARD.encode(der.as_ref());
        format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n")
    };
    let key = |user: &str, pem: &str, server: &str| {
        json!({"type": "service_account", "private_key_id": "k1", "private_key": pem, "client_email": user,
            "token_uri": server})
        .to_string()
    };
    let (own, server) = (der(&pair), format!("{}/token", host.address));
    let other = der(&KeyPair::generate(KeySize::Rsa2048).expect("a key"));
    for (secret, expected) in [
        (key("bot@shop.example", &own, &server), "good"),
        (
            key("bot@shop.example", &other, &server),
            "Authentication: Cannot test connector account.shop: 127.0.0.1, which gives tokens: it does not accept the \
             connector's credentials (400): Invalid JWT Signature.",
        ),
        (
            key("busy@shop.example", &own, &server),
            "Connectivity: Cannot test connector account.shop: 127.0.0.1, which gives tokens: it answers 503: try again \
             later",
        ),
        (
            key("bot@shop.example", "AAAA", &server),
            "Authentication: Cannot test connector account.shop: the `private_key` in the secret account.token is no \
             RSA key in PKCS #8",
        ),
        (
            key("bot@shop.example", &own, "https://evil.example/token"),
            "Authentication: Cannot test connector account.shop: the key in the secret account.token names a server \
             for tokens that is not Google's",
        ),
        (
            "AKIA".to_owned(),
            "Authentication: Cannot test connector account.shop: the secret account.token is no key of a service \
             account: give it the whole JSON file that Google made",
        ),
    ] {
        assert_eq!(said(&gcp(), &secret, None).await, expected);
    }
    let gone = json!({"type": "ManualConfig", "spec": {"secretKeyRef": "account.gone"}});
    let gone = connector("Gcp", json!({"credential": gone}));
    assert_eq!(
        said(&gone, "", None).await,
        "Authentication: Cannot test connector account.shop: Cannot read secret account.gone"
    );
}

fn refused(error: &str, why: &str) -> Response {
    let body = json!({"error": error, "error_description": why});
    (StatusCode::BAD_REQUEST, body.to_string()).into_response()
}

#[tokio::test]
async fn a_service_principal_proves_itself_with_its_secret() {
    let host = Host::new(|asked: &Asked| {
        let form = "grant_type=client_credentials&client_id=app&client_secret=a%2Fb%26c&scope=\
                    https%3A%2F%2Fmanagement.azure.com%2F.default";
        match (asked.path.as_str(), asked.body == form) {
            ("/shop.example/oauth2/v2.0/token", true) => page(&json!({"access_token": "eyJ"})),
            _ => refused(
                "invalid_client",
                "AADSTS7000215: Invalid client secret provided.\r\nTrace ID: 1",
            ),
        }
    })
    .await;
    let at = || Some(host.address.clone());
    assert_eq!(said(&azure(), "a/b&c", at()).await, "good");
    assert_eq!(
        said(&azure(), "wrong", at()).await,
        "Authentication: Cannot test connector account.shop: 127.0.0.1, which gives tokens: it does not accept the \
         connector's credentials (400): AADSTS7000215: Invalid client secret provided."
    );
    let mut astray = azure();
    astray.spec["credential"]["spec"]["tenantId"] = json!("../x");
    let why = said(&astray, "a", at()).await;
    assert!(why.contains("neither an id nor a domain"), "{why}");
    let mut certificate = azure();
    certificate.spec["credential"]["spec"]["auth"] =
        json!({"type": "Certificate", "spec": {"certificateRef": "account.pem"}});
    let why = said(&certificate, "a", at()).await;
    assert!(why.contains("use ManualConfig with a Secret"), "{why}");
}

#[tokio::test]
async fn repositories_of_helm_charts_are_tested() {
    let host = Host::new(|asked: &Asked| {
        let known = asked.header("authorization") == crate::feed_host::BASIC;
        match asked.path.as_str() {
            "/charts/index.yaml" if known => {
                "apiVersion: v1\nentries:\n  web: []\n".into_response()
            }
            "/page/index.yaml" => "<html>sign in</html>".into_response(),
            "/v2/" if known => "{}".into_response(),
            "/v2/" => {
                let basic = [("www-authenticate", "Basic realm=\"shop\"")];
                (StatusCode::UNAUTHORIZED, basic).into_response()
            }
            "/charts/index.yaml" => StatusCode::UNAUTHORIZED.into_response(),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    let bare = host.address.trim_start_matches("http://");
    let none = json!({"type": "Anonymous"});
    let login = crate::feed_host::login();
    for (kind, url, auth, expected) in [
        (
            "HttpHelmRepo",
            format!("{}/charts/", host.address),
            &login,
            "good",
        ),
        (
            "HttpHelmRepo",
            format!("{}/charts", host.address),
            &none,
            "the connector has none",
        ),
        (
            "HttpHelmRepo",
            format!("{}/page", host.address),
            &none,
            "it answers 200 with what is no index of charts: check `helmRepoUrl`",
        ),
        ("OciHelmRepo", format!("oci://{bare}/team"), &login, "good"),
        (
            "OciHelmRepo",
            bare.to_owned(),
            &none,
            "the connector has none",
        ),
    ] {
        let told = tested(&connector(kind, json!({"helmRepoUrl": url, "auth": auth}))).await;
        assert!(told.contains(expected), "{kind} {url}: {told}");
    }
}
