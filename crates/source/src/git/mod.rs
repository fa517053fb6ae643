//! Files of Git repositories, at a commit.
//!
//! Only the objects of one commit are fetched, into a temporary folder that is always removed; nothing is
//! checked out, and no program is started but `ssh`, for hosts that are spoken to by it. docs/decisions/0007-git.md says
//! why it is done this way.

mod address;
pub(crate) mod app;
mod commit;
mod draft;
pub(crate) mod known;
mod local;
pub(crate) mod login;
mod push;
mod remote;
mod save;
pub(crate) mod ssh;
mod test;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use slipway_clock::Clock;
use slipway_plan::{Fetched, GitVersion, RemoteFiles};
use slipway_steps::secrets::Secrets;

use address::{Address, address};
use app::AppTokens;
use known::Known;
use remote::Way;
pub(crate) use save::save;
use slipway_model::id::Scope;
use slipway_plan::ConnectorPlan;
use ssh::{Ssh, SshConfig};
pub(crate) use test::test;

/// Most bytes of one fetch on the disk.
const MOST_ON_DISK: u64 = 256 * 1024 * 1024;

/// How often the disk is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// One version of one repository, and everything that is asked of it.
pub(crate) struct Asked<'a> {
    pub(crate) wanted: Vec<&'a RemoteFiles>,
    pub(crate) repository: Option<&'a str>,
    pub(crate) version: &'a GitVersion,
}

/// What a process allows.
#[derive(Clone, Copy)]
pub(crate) struct Allowed<'a> {
    pub(crate) local_files: bool,
    pub(crate) limit: Duration,
    pub(crate) clock: &'a Clock,
    /// Tokens that GitHub apps were given before.
    pub(crate) apps: &'a AppTokens,
    /// What was read before.
    pub(crate) known: &'a Arc<Known>,
    pub(crate) ssh: &'a SshConfig,
}

/// Reads everything that is asked of one version of a repository, at one commit. The outer error is about
/// the repository, an inner one about its files.
pub(crate) async fn read(
    asked: &Asked<'_>,
    allowed: Allowed<'_>,
    secrets: &mut Secrets<'_>,
) -> Result<Vec<Result<Fetched, String>>, String> {
    let Some(first) = asked.wanted.first() else {
        return Ok(Vec::new());
    };
    let connector = &first.connector;
    let of = |why: String| {
        format!(
            "the connector {} cannot be used: {why}",
            connector.reference
        )
    };
    let address = address(connector, asked.repository, allowed.local_files).map_err(of)?;
    let place = place(connector, address, &first.scope, allowed, secrets);
    let place = place.await.map_err(of)?;
    let paths: Vec<Vec<String>> = asked.wanted.iter().map(|one| one.paths.clone()).collect();
    let version = asked.version.clone();
    let limit = allowed.limit;
    // Removed when the last of this call and the blocking thread lets go of it.
    let folder =
        tempfile::tempdir().map_err(|why| format!("cannot make a temporary folder: {why}"))?;
    let folder = Arc::new(folder);
    let stop = Arc::new(AtomicBool::new(false));
    // Dropped with this call, also when its caller gives up: the thread then ends by itself.
    let _stopper = Stopper(Arc::clone(&stop));
    let thread = {
        let (folder, stop) = (Arc::clone(&folder), Arc::clone(&stop));
        let known = Arc::clone(allowed.known);
        tokio::task::spawn_blocking(move || {
            let paths: Vec<&[String]> = paths.iter().map(Vec::as_slice).collect();
            match place {
                Place::Local(local) => local::read(&local, &version, &paths, &stop),
                Place::Remote(way) => {
                    let remote = remote::Remote {
                        way,
                        version: &version,
                        known: &known,
                        limit,
                    };
                    remote::read(&remote, folder.path(), &paths, &stop)
                }
            }
        })
    };
    tokio::select! {
        read = thread => read.unwrap_or_else(|why| Err(format!("reading it broke: {why}"))),
        () = too_large(folder.path(), allowed.clock) => Err(format!(
            "one commit of it has more than {} MB: keep manifests in a smaller repository, or in S3",
            MOST_ON_DISK >> 20
        )),
    }
}

/// Where a repository is read from, with what is needed to get in.
pub(crate) enum Place {
    /// A folder of this machine.
    Local(PathBuf),
    /// Another host.
    Remote(Way),
}

/// The way into a repository, for a connector whose reference was written in `scope`.
///
/// # Errors
/// When a secret cannot be read or the way of logging in is not supported. No secret is in the reason.
async fn place(
    connector: &ConnectorPlan,
    address: Address,
    scope: &Scope,
    allowed: Allowed<'_>,
    secrets: &mut Secrets<'_>,
) -> Result<Place, String> {
    let (owner, _) = scope.resolve(&connector.reference);
    Ok(match address {
        Address::Local(folder) => Place::Local(folder),
        Address::Http(url) => {
            let login = login::to_repository(connector, &url, &owner, allowed, secrets).await?;
            Place::Remote(Way::Http { url, login })
        }
        Address::Ssh(address) => Place::Remote(Way::Ssh(Ssh {
            address,
            login: ssh::login(connector, &owner, secrets).await?,
            config: allowed.ssh.clone(),
            told: Arc::default(),
        })),
    })
}

/// Sets the flag when it goes.
struct Stopper(Arc<AtomicBool>);

impl Drop for Stopper {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns when a folder has grown too large.
async fn too_large(folder: &std::path::Path, clock: &Clock) {
    loop {
        clock.sleep(LOOK).await;
        if size(folder, 0) > MOST_ON_DISK {
            return;
        }
    }
}

/// Bytes of the files below a folder; what cannot be read counts nothing.
fn size(folder: &std::path::Path, depth: usize) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let found = entry.metadata().ok()?;
        match found.is_dir() {
            // A bare repository is not deeper.
            true if depth < 8 => Some(size(&entry.path(), depth + 1)),
            true => None,
            false => Some(found.len()),
        }
    });
    sizes.sum()
}

/// An error of gix with its causes, on one line and without the user of an address.
fn because(error: &gix::Error) -> String {
    let mut texts: Vec<String> = vec![error.to_string()];
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        let text = cause.to_string();
        if !texts.iter().any(|known| known.contains(&text)) {
            texts.push(text);
        }
        next = cause.source();
    }
    texts
        .join(": ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}
