//! A bare repository behind a real `sshd` on loopback, with keys made for the test. It needs OpenSSH's server (Debian's
//! package `openssh-server`), and to be root, as who it lets in is who runs it:
//! `cargo test --workspace --test source -- --ignored sshd`.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;
use serde_json::{Value, json};
use slipway_engine::gather::SourceReader;
use slipway_model::id::{AccountId, Scope};
use slipway_model::status::{ErrorType, Failure};
use slipway_source::{Source, SshConfig};
use slipway_steps::secrets::SecretSource;

use crate::ssh::connector;
use crate::support::{branch, commit, git, one, repository, shown, source_keyed, wanted};

const LIMIT: Duration = Duration::from_secs(20);
const PHRASE: &str = "open s3same";

/// The keys of a folder, by the names of their files.
struct Keys(std::path::PathBuf);

#[async_trait]
impl SecretSource for Keys {
    async fn value(&self, _: &Scope, reference: &str) -> Result<SecretString, Failure> {
        if reference == "phrase" {
            return Ok(SecretString::from(PHRASE));
        }
        let read = std::fs::read_to_string(self.0.join(reference));
        read.map(SecretString::from).map_err(|why| Failure {
            error: ErrorType::Authentication,
            message: format!("{reference}: {why}"),
            left_behind: None,
        })
    }

    async fn described(&self, _: &Scope, reference: &str) -> Result<Value, Failure> {
        let mut fields = json!({"userName": "root", "key": reference});
        if reference == "locked" {
            fields["encryptedPassphrase"] = json!("phrase");
        }
        Ok(
            json!({"auth": {"type": "SSH", "spec": {"credentialType": "KeyReference", "spec": fields}}}),
        )
    }
}

/// A server, which ends with the test.
struct Sshd(Child);

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn make_key(folder: &Path, name: &str, kind: &str, phrase: &str) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", kind, "-N", phrase, "-C", name, "-f"])
        .arg(folder.join(name))
        .status();
    assert!(made.expect("ssh-keygen").success());
}

fn public(folder: &Path, name: &str) -> String {
    let text = std::fs::read_to_string(folder.join(format!("{name}.pub"))).expect("a key");
    text.trim().to_owned()
}

/// Lets in who has one of the keys, on a free port; `more` is the end of its configuration.
fn serve(folder: &Path, more: &str) -> (Sshd, u16) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    std::fs::create_dir_all("/run/sshd").expect("the folder that sshd runs in");
    let at = folder.display();
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nPidFile none\nAuthorizedKeysFile {at}/authorized\n\
         StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n{more}"
    );
    std::fs::write(folder.join("config"), config).expect("a configuration");
    let program = Command::new("/usr/sbin/sshd")
        .args(["-D", "-e", "-f"])
        .arg(folder.join("config"))
        .stdin(Stdio::null())
        .stderr(std::fs::File::create(folder.join("log")).expect("a log"))
        .spawn();
    let server = Sshd(program.expect("sshd: install openssh-server"));
    for _ in 0..1_000_000 {
        if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
            break;
        }
        std::thread::yield_now();
    }
    (server, port)
}

#[tokio::test]
#[ignore = "needs Debian's openssh-server, and to be root"]
async fn a_repository_behind_a_real_sshd_is_read_with_the_connectors_key() {
    let (folder, work) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let keys = folder.path();
    for (name, kind, phrase) in [
        ("host", "ed25519", ""),
        ("other_host", "ed25519", ""),
        ("own", "ed25519", ""),
        ("rsa", "rsa", ""),
        ("locked", "ed25519", PHRASE),
        ("stranger", "ed25519", ""),
    ] {
        make_key(keys, name, kind, phrase);
    }
    let let_in = ["own", "rsa", "locked"]
        .map(|name| public(keys, name))
        .join("\n");
    std::fs::write(keys.join("authorized"), let_in + "\n").expect("who may come in");
    let [first, second] = repository(work.path());
    let bare = keys.join("shop.git");
    git(
        work.path(),
        &["clone", "-q", "--bare", ".", bare.to_str().expect("text")],
    );
    let (_server, port) = serve(keys, "AcceptEnv GIT_PROTOCOL\n");
    let (_plain, plain_port) = serve(keys, "");
    let known = |host: &str| {
        let key = public(keys, host);
        let path = keys.join(format!("known_{host}"));
        let lines = [port, plain_port].map(|port| format!("[127.0.0.1]:{port} {key}\n"));
        std::fs::write(&path, lines.concat()).expect("known hosts");
        let ssh = SshConfig {
            known_hosts: Some(path),
            ..SshConfig::default()
        };
        source_keyed(ssh, LIMIT, Arc::new(Keys(keys.to_owned())))
    };
    let source: Source = known("host");
    let url = format!("ssh://root@127.0.0.1:{port}{}", bare.display());
    for (key, version, text, id) in [
        ("own", branch("main"), "family: two", &second),
        ("rsa", commit("v1"), "family: one", &first),
        ("locked", commit(&first), "family: one", &first),
    ] {
        let found = one(
            &source,
            wanted(&connector(&url, key), version, &["ecs/task.yaml"]),
        )
        .await;
        let found = found.unwrap_or_else(|why| panic!("{key}: {why}"));
        assert_eq!(shown(&found), format!("ecs/task.yaml={text}"));
        assert_eq!(found.commit.as_ref(), Some(id));
    }
    let scope = Scope::account(AccountId::new("acme"));
    let tested = source
        .test_connection(&connector(&url, "own"), &scope)
        .await;
    assert!(matches!(tested, Some(Ok(()))), "{tested:?}");
    // A server that hears nothing of version 2 of the protocol gives branches and tags.
    let plain = url.replace(&port.to_string(), &plain_port.to_string());
    let own = connector(&plain, "own");
    let found = one(&source, wanted(&own, branch("main"), &["ecs/task.yaml"])).await;
    assert_eq!(found.expect("a file").commit.as_ref(), Some(&second));
    let found = one(&source, wanted(&own, commit(&first), &["ecs"])).await;
    let why = found.expect_err("a commit that is no tip");
    assert!(why.contains("AcceptEnv GIT_PROTOCOL"), "{why}");
    let gone = url.replace("shop.git", "gone.git");
    for (source, url, key, told) in [
        (
            &source,
            &url,
            "stranger",
            "the host does not accept the connector's key",
        ),
        (&source, &gone, "own", "there is no such repository"),
        (&known("other_host"), &url, "own", "SLIPWAY_SSH_KNOWN_HOSTS"),
    ] {
        let found = one(
            source,
            wanted(&connector(url, key), branch("main"), &["ecs"]),
        )
        .await;
        let why = found.expect_err(told);
        assert!(why.contains(told), "{key}: {why}");
    }
}
