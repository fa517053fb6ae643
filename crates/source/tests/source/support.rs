//! Repositories made by `git`, and a source that reads them.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::RsaKeyPair;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::SecretString;
use serde_json::{Value, json};
use slipway_clock::Clock;
use slipway_engine::gather::SourceReader;
use slipway_model::id::{AccountId, Scope};
use slipway_model::status::{ErrorType, Failure};
use slipway_plan::{ConnectorPlan, Fetched, GitVersion, RemoteFiles, RemotePlace};
use slipway_source::{Source, SourceConfig, SshConfig};
use slipway_steps::aws::{Ambient, AwsTargets, TargetConfig};
use slipway_steps::secrets::SecretSource;

/// The only secret that there is.
pub const TOKEN: &str = "t0p-s3cret-token";

/// A key that no program reads.
pub const KEY: &str =
    "-----BEGIN OPENSSH PRIVATE KEY-----\nbm8gcmVhbCBrZXk\n-----END OPENSSH PRIVATE KEY-----";

struct Secrets;

#[async_trait]
impl SecretSource for Secrets {
    async fn value(&self, _scope: &Scope, reference: &str) -> Result<SecretString, Failure> {
        match reference {
            "account.token" => Ok(SecretString::from(TOKEN)),
            "account.key" | "key" => Ok(SecretString::from(KEY)),
            "account.phrase" => Ok(SecretString::from("open s3same")),
            "account.app" => Ok(SecretString::from(app_key())),
            other => Err(Failure {
                error: ErrorType::Authentication,
                message: format!("there is no secret {other}"),
                left_behind: None,
            }),
        }
    }

    async fn described(&self, _scope: &Scope, reference: &str) -> Result<Value, Failure> {
        let fields = match reference {
            "account.ssh" => json!({"userName": "deploy", "key": "key"}),
            "account.locked" => {
                json!({"userName": "", "key": "key", "encryptedPassphrase": "account.phrase"})
            }
            _ => {
                return Err(Failure {
                    error: ErrorType::Authentication,
                    message: format!("there is no secret {reference}"),
                    left_behind: None,
                });
            }
        };
        Ok(
            json!({"port": 2200, "auth": {"type": "SSH", "spec": {"credentialType": "KeyReference", "spec": fields}}}),
        )
    }
}

/// The private key of the app that is installed at the tests' host, as GitHub would have given it.
pub fn app_pair() -> &'static RsaKeyPair {
    static PAIR: OnceLock<RsaKeyPair> = OnceLock::new();
    PAIR.get_or_init(|| RsaKeyPair::generate(KeySize::Rsa2048).expect("a key"))
}

fn app_key() -> String {
    let der: Pkcs8V1Der<'_> = app_pair().as_der().expect("its form");
    let text = STANDARD.encode(der.as_ref());
    format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n")
}

pub fn source(local_files: bool, limit: Duration) -> Source {
    source_of("http://target.invalid", local_files, limit)
}

/// One whose accounts are at an address.
pub fn source_of(accounts: &str, local_files: bool, limit: Duration) -> Source {
    source_with(
        accounts,
        SourceConfig {
            limit,
            local_files,
            ssh: SshConfig::default(),
            ..SourceConfig::default()
        },
    )
}

/// One that speaks SSH by this program.
pub fn source_by(program: &Path, limit: Duration) -> Source {
    let ssh = SshConfig {
        program: program.to_owned(),
        known_hosts: Some("/srv/known hosts".into()),
    };
    source_with(
        "http://target.invalid",
        SourceConfig {
            limit,
            local_files: false,
            ssh,
            ..SourceConfig::default()
        },
    )
}

/// One that speaks SSH so, with secrets of its own.
pub fn source_keyed(ssh: SshConfig, limit: Duration, secrets: Arc<dyn SecretSource>) -> Source {
    let config = SourceConfig {
        limit,
        ssh,
        ..SourceConfig::default()
    };
    source_knowing("http://target.invalid", config, secrets)
}

fn source_with(accounts: &str, config: SourceConfig) -> Source {
    source_knowing(accounts, config, Arc::new(Secrets))
}

fn source_knowing(accounts: &str, config: SourceConfig, secrets: Arc<dyn SecretSource>) -> Source {
    let clock = Clock::system();
    let target = TargetConfig {
        endpoint_url: Some(accounts.to_owned()),
        http_client: None,
        ambient: Ambient::Sandbox,
        objects: None,
    };
    let targets = AwsTargets::new(target, clock.clone());
    Source::new(config, targets, secrets, clock)
}

/// A connector of one repository; `login` is its `authentication.spec`.
pub fn connector(url: &str, login: Value) -> ConnectorPlan {
    ConnectorPlan {
        reference: "account.code".to_owned(),
        kind: "Github".to_owned(),
        spec: json!({"url": url, "type": "Repo", "authentication": {"type": "Http", "spec": login}}),
    }
}

pub fn anonymous() -> Value {
    json!({"type": "Anonymous"})
}

pub fn branch(name: &str) -> GitVersion {
    GitVersion::Branch(name.to_owned())
}

pub fn commit(name: &str) -> GitVersion {
    GitVersion::Commit(name.to_owned())
}

pub fn wanted(connector: &ConnectorPlan, version: GitVersion, paths: &[&str]) -> RemoteFiles {
    RemoteFiles {
        connector: connector.clone(),
        scope: Scope::account(AccountId::new("acme")),
        place: RemotePlace::Git {
            repository: None,
            version,
        },
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
    }
}

pub async fn one(source: &Source, wanted: RemoteFiles) -> Result<Fetched, String> {
    let mut found = source.fetch_files(&[wanted]).await;
    assert_eq!(found.len(), 1);
    found.remove(0)
}

/// The bare copy of a repository, as hosts keep them.
pub fn bare(of: &Path, folder: &Path) {
    let (from, to) = (of.display().to_string(), folder.display().to_string());
    git(of, &["clone", "-q", "--bare", &from, &to]);
    git(folder, &["config", "http.receivepack", "true"]);
}

/// What the test of a connector's connection says: `good`, `untested`, or the kind of failure and its message.
pub async fn tested(connector: &ConnectorPlan) -> String {
    let source = source(true, Duration::from_secs(5));
    let scope = Scope::account(AccountId::new("acme"));
    match source.test_connection(connector, &scope).await {
        None => "untested".to_owned(),
        Some(Ok(())) => "good".to_owned(),
        Some(Err(failure)) => {
            assert!(!failure.message.contains(TOKEN), "{}", failure.message);
            format!("{:?}: {}", failure.error, failure.message)
        }
    }
}

/// Paths and contents as one text.
pub fn shown(fetched: &Fetched) -> String {
    let files = fetched.files.iter();
    let files = files.map(|(path, text)| format!("{path}={}", text.trim()));
    files.collect::<Vec<_>>().join(" ")
}

/// Runs git in a folder; the person's own settings do not matter.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
        .args([
            "-c",
            "init.defaultBranch=main",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .expect("git runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub fn write(folder: &Path, path: &str, content: impl AsRef<[u8]>) {
    let file = folder.join(path);
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    std::fs::write(file, content).expect("a file");
}

/// A repository with two commits on `main`, the first of them tagged `v1`, and a branch `release/2`.
pub fn repository(folder: &Path) -> [String; 2] {
    git(folder, &["init", "-q"]);
    write(folder, "ecs/task.yaml", "family: one\n");
    write(folder, "ecs/service.yaml", "serviceName: web\n");
    write(folder, "ecs/more/b.yaml", "b: 1\n");
    write(folder, "ecs-old/task.yaml", "family: old\n");
    git(folder, &["add", "."]);
    git(folder, &["commit", "-qm", "first"]);
    git(folder, &["tag", "-a", "v1", "-m", "the first"]);
    let first = git(folder, &["rev-parse", "HEAD"]);
    write(folder, "ecs/task.yaml", "family: two\n");
    git(folder, &["commit", "-qam", "second"]);
    git(folder, &["branch", "release/2"]);
    let second = git(folder, &["rev-parse", "HEAD"]);
    // What is not committed is not there.
    write(folder, "ecs/task.yaml", "family: dirty\n");
    [first, second]
}

/// Serves until the test is over; answers with the address.
pub async fn serve(app: axum::Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}
