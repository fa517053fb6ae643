//! A repository behind SSH. The program `ssh` speaks to the host: it is started without a shell, with an empty
//! environment and no settings of the machine, and learns its key from a file that nobody else may read and that goes
//! with the session. Hosts are known beforehand or not spoken to.

use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use slipway_model::id::Scope;
use slipway_plan::ConnectorPlan;
use slipway_steps::secrets::Secrets;

use super::address::{SshAddress, logs_in_over_ssh};

/// Most of what `ssh` says about a failure, in bytes.
const MOST_TOLD: u64 = 4096;

/// How often it is looked whether the session is still wanted.
const LOOK: Duration = Duration::from_millis(200);

/// How long is waited for what the program says when its output has ended.
const AFTERWORD: Duration = Duration::from_millis(500);

/// The user of hosts that serve Git alone.
const GIT: &str = "git";

/// How `ssh` is started.
#[derive(Clone, Debug)]
pub struct SshConfig {
    /// The program, by its path or by a name on `PATH`.
    pub program: PathBuf,
    /// The file with the keys of hosts; those of the machine (`~/.ssh/known_hosts`, `/etc/ssh/ssh_known_hosts`) where
    /// there is none.
    pub known_hosts: Option<PathBuf>,
}

impl Default for SshConfig {
    fn default() -> Self {
        Self {
            program: PathBuf::from("ssh"),
            known_hosts: None,
        }
    }
}

impl SshConfig {
    /// The program `ssh`, with the file that `SLIPWAY_SSH_KNOWN_HOSTS` names.
    pub fn from_env() -> Self {
        let known_hosts = std::env::var_os("SLIPWAY_SSH_KNOWN_HOSTS");
        Self {
            known_hosts: known_hosts
                .filter(|path| !path.is_empty())
                .map(PathBuf::from),
            ..Self::default()
        }
    }
}

/// A key, and whom it logs in.
#[derive(Clone, Debug)]
pub(crate) struct SshLogin {
    user: Option<String>,
    port: Option<u16>,
    key: SecretString,
    passphrase: Option<SecretString>,
}

/// The key of a connector that lives in `scope`.
///
/// # Errors
/// When it has none, or a secret cannot be read. No secret is in the reason.
pub(crate) async fn login(
    connector: &ConnectorPlan,
    scope: &Scope,
    secrets: &mut Secrets<'_>,
) -> Result<SshLogin, String> {
    let spec = &connector.spec;
    if !logs_in_over_ssh(spec) {
        let why = "its `url` is an SSH address: authenticate with type `Ssh` and a key, or use an https address";
        return Err(why.to_owned());
    }
    let fields = [&spec["authentication"]["spec"], &spec["spec"]];
    let named = fields.iter().find_map(|fields| text(fields, "sshKeyRef"));
    let reference = named.ok_or("it has no `sshKeyRef`")?;
    let described = secrets.described_in(scope, reference).await;
    let described = described.map_err(|failure| failure.message)?;
    let auth = &described["auth"];
    let kind = [&auth["type"], &auth["spec"]["credentialType"]]
        .map(|kind| kind.as_str().unwrap_or_default());
    if kind != ["SSH", "KeyReference"] {
        let kind = if kind[0] == "SSH" { kind[1] } else { kind[0] };
        return Err(format!(
            "its secret {reference} logs in with `{kind}`: only an SSH key that names a secret (`KeyReference`) is used for Git"
        ));
    }
    let fields = &auth["spec"]["spec"];
    let key =
        text(fields, "key").ok_or_else(|| format!("its secret {reference} names no `key`"))?;
    // The key's own references are seen from where the secret lives.
    let (owner, _) = scope.resolve(reference);
    let key = secrets
        .value_in(&owner, key)
        .await
        .map_err(|failure| failure.message)?;
    let passphrase = match text(fields, "encryptedPassphrase") {
        Some(passphrase) => {
            let value = secrets.value_in(&owner, passphrase).await;
            Some(value.map_err(|failure| failure.message)?)
        }
        None => None,
    };
    let user = text(fields, "userName").map(str::to_owned);
    let strange = |sign: char| !(sign.is_ascii_alphanumeric() || "._-".contains(sign));
    if user
        .as_ref()
        .is_some_and(|user| user.starts_with('-') || user.contains(strange))
    {
        return Err(format!(
            "its secret {reference} has a `userName` that is no name of a user"
        ));
    }
    Ok(SshLogin {
        user,
        port: described["port"]
            .as_u64()
            .and_then(|port| u16::try_from(port).ok()),
        key,
        passphrase,
    })
}

fn text<'v>(fields: &'v Value, name: &str) -> Option<&'v str> {
    let text = fields[name].as_str().map(str::trim);
    text.filter(|text| !text.is_empty())
}

/// What is asked of a host, again and again where it must.
#[derive(Clone, Debug)]
pub(crate) struct Ssh {
    pub(crate) address: SshAddress,
    pub(crate) login: SshLogin,
    pub(crate) config: SshConfig,
    /// What the program said about its failure.
    pub(crate) told: Arc<Told>,
}

/// The first that a program said, once it has said it all.
pub(crate) type Told = (Mutex<Option<String>>, Condvar);

/// A conversation with `git` on the host. The program ends with it.
pub(crate) struct Session {
    pub(crate) input: ChildStdin,
    pub(crate) output: Output,
}

/// What the host says.
pub(crate) struct Output {
    stdout: ChildStdout,
    child: Arc<Mutex<Child>>,
    /// Ends the thread that watches the program.
    _watched: mpsc::Sender<()>,
    /// Holds the key, and goes with it.
    _folder: tempfile::TempDir,
}

impl Read for Output {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.stdout.read(buffer)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        end(&self.child);
    }
}

/// Ends a program, and waits for it so that nothing of it is left.
fn end(child: &Mutex<Child>) {
    let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

impl Ssh {
    /// The repository as a URL of Git's; nothing connects by it.
    pub(crate) fn url(&self) -> String {
        self.address.to_string()
    }

    /// What the program said about its failure; it may say it after its output has ended.
    pub(crate) fn told(&self) -> String {
        let (told, written) = &*self.told;
        let told = told.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = written.wait_timeout_while(told, AFTERWORD, |told| told.is_none());
        let (told, _) = waited.unwrap_or_else(PoisonError::into_inner);
        told.clone().unwrap_or_default()
    }

    /// Starts `service` (`git-upload-pack`, `git-receive-pack`) on the host. Ended when `stop` is set.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub(crate) fn start(&self, service: &str, stop: &Arc<AtomicBool>) -> Result<Session, String> {
        let folder = tempfile::Builder::new()
            .prefix("slipway-ssh-")
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir()
            .map_err(|why| format!("cannot make a temporary folder: {why}"))?;
        let mut command = self.command(folder.path(), service)?;
        let mut child = command.spawn().map_err(|why| {
            format!(
                "cannot start {}, which speaks to SSH hosts: {why}: install an SSH client where Slipway runs, or use an https address and a token",
                self.config.program.display()
            )
        })?;
        let gone = || "the SSH client has no pipes".to_owned();
        let input = child.stdin.take().ok_or_else(gone)?;
        let stdout = child.stdout.take().ok_or_else(gone)?;
        let stderr = child.stderr.take().ok_or_else(gone)?;
        let child = Arc::new(Mutex::new(child));
        let (watched, gone) = mpsc::channel();
        listen(stderr, Arc::clone(&self.told));
        watch(Arc::clone(&child), Arc::clone(stop), gone);
        let output = Output {
            stdout,
            child,
            _watched: watched,
            _folder: folder,
        };
        Ok(Session { input, output })
    }

    fn command(&self, folder: &Path, service: &str) -> Result<Command, String> {
        let Self {
            address,
            login,
            config,
            ..
        } = self;
        let key = folder.join("key");
        let mut text = login.key.expose_secret().replace("\r\n", "\n");
        if !text.ends_with('\n') {
            // Without its last line break OpenSSH does not know a key for one.
            text.push('\n');
        }
        write(&key, 0o600, text.as_bytes())?;
        let mut command = Command::new(&config.program);
        command.env_clear();
        for kept in ["PATH", "HOME"] {
            if let Some(value) = std::env::var_os(kept) {
                command.env(kept, value);
            }
        }
        command.env("GIT_PROTOCOL", "version=2").env("LC_ALL", "C");
        command.args(["-F", "none", "-T", "-x", "-a"]);
        let mut options = vec![
            "IdentitiesOnly=yes".to_owned(),
            "IdentityAgent=none".to_owned(),
            format!("IdentityFile={}", key.display()),
            "StrictHostKeyChecking=yes".to_owned(),
            "PreferredAuthentications=publickey".to_owned(),
            "ClearAllForwardings=yes".to_owned(),
            "PermitLocalCommand=no".to_owned(),
            "ControlPath=none".to_owned(),
            "ConnectTimeout=10".to_owned(),
            "SendEnv=GIT_PROTOCOL".to_owned(),
        ];
        if let Some(known) = &config.known_hosts {
            // Quoted: OpenSSH splits it at blanks.
            options.push(format!("UserKnownHostsFile=\"{}\"", known.display()));
            options.push("GlobalKnownHostsFile=none".to_owned());
        }
        match &login.passphrase {
            Some(passphrase) => {
                let (value, asked) = (folder.join("passphrase"), folder.join("ask"));
                write(&value, 0o600, passphrase.expose_secret().as_bytes())?;
                write(
                    &asked,
                    0o700,
                    b"#!/bin/sh\nexec cat \"${0%/*}/passphrase\"\n",
                )?;
                command
                    .env("SSH_ASKPASS", asked)
                    .env("SSH_ASKPASS_REQUIRE", "force");
            }
            None => options.push("BatchMode=yes".to_owned()),
        }
        for option in options {
            command.arg("-o").arg(option);
        }
        if let Some(port) = address.port.or(login.port) {
            command.args(["-p", &port.to_string()]);
        }
        let user = address.user.as_deref().or(login.user.as_deref());
        command.args(["-l", user.unwrap_or(GIT), "--", &address.host]);
        // The host's shell reads it; the path has nothing that ends the quotes.
        command.arg(format!("{service} '{}'", address.path));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(command)
    }
}

fn write(path: &Path, mode: u32, content: &[u8]) -> Result<(), String> {
    let mut options = std::fs::OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(mode).open(path);
    let written = opened.and_then(|mut file| file.write_all(content));
    written.map_err(|why| format!("cannot keep a key for the SSH client: {why}"))
}

/// Keeps the first that a program says about its failure.
fn listen(stderr: std::process::ChildStderr, told: Arc<Told>) {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let mut stderr = stderr;
        // What came before it broke off is as good.
        let _ = Read::by_ref(&mut stderr)
            .take(MOST_TOLD)
            .read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text);
        let words: Vec<&str> = text.split_whitespace().collect();
        let (kept, written) = &*told;
        *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(words.join(" "));
        written.notify_all();
        // The program must not wait for somebody who reads the rest.
        let _ = std::io::copy(&mut stderr, &mut std::io::sink());
    });
}

/// Ends the program when nobody wants it any more: a thread that waits for its answer cannot be told otherwise.
fn watch(child: Arc<Mutex<Child>>, stop: Arc<AtomicBool>, gone: mpsc::Receiver<()>) {
    std::thread::spawn(move || {
        while let Err(RecvTimeoutError::Timeout) = gone.recv_timeout(LOOK) {
            if stop.load(Ordering::Relaxed) {
                end(&child);
                return;
            }
        }
    });
}

/// What kept `ssh` from its work, and what to do, where it can be told.
pub(crate) fn advice(told: &str) -> Option<&'static str> {
    let of = |words: &str| told.contains(words);
    if of("Host key verification failed") || of("host key is known for") {
        Some(
            "its host is not known by the key that it shows: put the host's key into the file that SLIPWAY_SSH_KNOWN_HOSTS names, or into known_hosts of the machine",
        )
    } else if of("Permission denied") {
        Some("the host does not accept the connector's key")
    } else if of("Load key") || of("invalid format") || of("incorrect passphrase") {
        Some(
            "the connector's key cannot be read: store it whole, in the format of OpenSSH or PEM, with its passphrase",
        )
    } else if of("Could not resolve hostname") {
        Some("its host is not known: check the connector's `url`")
    } else if of("timed out") || of("Connection refused") || of("No route") {
        Some("its host did not answer: check the connector's `url` and the network")
    } else if of("not found")
        || of("does not exist")
        || of("does not appear to be a git repository")
    {
        Some("there is no such repository, or the connector's key may not see it")
    } else {
        None
    }
}
