//! A repository of another host, over HTTP or SSH.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use gix::bstr::{BString, ByteSlice};
use gix::credentials::helper::{Action, NextAction};
use gix::credentials::protocol::Outcome;
use gix::progress::Discard;
use gix::protocol::handshake::Ref;
use gix::protocol::transport::client::blocking_io::{Transport, http};
use gix::protocol::transport::client::git::{ConnectMode, blocking_io::Connection};
use gix::protocol::transport::{Protocol, client};
use gix::remote::Direction;
use gix::remote::fetch::{Shallow, Tags};
use reqwest::Url;
use secrecy::ExposeSecret;
use slipway_model::status::ErrorType;
use slipway_plan::{Fetched, GitVersion};
use slipway_steps::http::address::Resolver;

use super::because;
use super::commit::{Commit, commit_id, full_name, missing};
use super::login::Login;
use super::ssh::Ssh;
use crate::fault::Fault;
use crate::tree::pick;

/// Where the fetched commit is kept in the temporary repository.
const KEPT: &str = "refs/slipway/fetched";

/// Most memory for one object of a repository, in bytes: a larger one is no manifest, and is never needed whole.
const OBJECT_MEMORY: &str = "gitoxide.objects.allocLimit=67108864";

/// How a host is reached.
pub(crate) enum Way {
    /// Over HTTP.
    Http { url: Url, login: Option<Login> },
    /// Over SSH.
    Ssh(Ssh),
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Http { url, .. } => write!(f, "{url}"),
            Self::Ssh(ssh) => write!(f, "{}", ssh.address),
        }
    }
}

/// What is read, and how.
pub(super) struct Remote<'a> {
    pub(super) way: Way,
    pub(super) version: &'a GitVersion,
    /// For the whole of one request.
    pub(super) limit: Duration,
}

/// Fetches one commit without its history into `folder`, and reads it.
pub(super) fn read(
    remote: &Remote<'_>,
    folder: &Path,
    asked: &[&[String]],
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Result<Fetched, String>>, String> {
    let place = format!("the repository {}", remote.way);
    let full = full_name(remote.version)?;
    let repository = repository(folder)?;
    let object = remote.fetch(&repository, full.as_deref(), &place, stop)?;
    let commit = Commit::of(&repository, object).map_err(|why| format!("in {place} {why}"))?;
    let files = asked.iter().map(|paths| {
        let files = pick(&commit, paths, &format!("{place} at {}", commit.id), stop)?;
        Ok(Fetched {
            commit: Some(commit.id.clone()),
            files,
        })
    });
    Ok(files.collect())
}

/// Whether the host shows the branches of a repository to the login. Nothing else of it is fetched.
pub(super) fn test(
    remote: &Remote<'_>,
    folder: &Path,
    stop: &Arc<AtomicBool>,
) -> Result<(), Fault> {
    let place = format!("the repository {}", remote.way);
    let names = remote.names(&repository(folder)?, stop);
    names
        .map(drop)
        .map_err(|why| remote.failed(&place, &why, stop))
}

/// An empty repository that obeys no settings of this machine: no credential helpers, no rewritten addresses.
fn repository(folder: &Path) -> Result<gix::Repository, String> {
    let options = gix::open::Options::isolated().config_overrides([OBJECT_MEMORY]);
    let kind = gix::create::Kind::Bare;
    let made = gix::ThreadSafeRepository::init_opts(
        folder,
        kind,
        gix::create::Options::default(),
        options,
    );
    let made = made.map_err(|why| format!("cannot prepare a folder for it: {}", because(&why)))?;
    Ok(made.to_thread_local())
}

impl Remote<'_> {
    fn fetch(
        &self,
        repository: &gix::Repository,
        full: Option<&str>,
        place: &str,
        stop: &Arc<AtomicBool>,
    ) -> Result<gix::ObjectId, String> {
        let source = match (full, self.version) {
            (Some(full), _) => full,
            (None, GitVersion::Branch(id) | GitVersion::Commit(id)) => id.as_str(),
        };
        let spec = format!("+{source}:{KEPT}");
        let failed = |why: gix::Error| self.failed(place, &why, stop);
        let remote = self.remote(repository, &spec).map_err(failed)?;
        let connection = self.connect(&remote, stop).map_err(failed)?;
        let prepared = connection
            .prepare_fetch(Discard, Default::default())
            .map_err(failed)?;
        if let Some(full) = full
            && !prepared
                .ref_map()
                .remote_refs
                .iter()
                .any(|known| name(known) == full)
        {
            let names = self.names(repository, stop).map_err(failed)?;
            let names = names.iter().filter_map(|name| name.to_str().ok());
            return Err(missing(self.version, place, names));
        }
        prepared
            .with_shallow(Shallow::DepthAtRemote(NonZeroU32::MIN))
            .receive(Discard, stop)
            .map_err(failed)?;
        if let Some(id) = commit_id(source) {
            return Ok(id);
        }
        let mut kept = repository.find_reference(KEPT).map_err(failed)?;
        Ok(kept.peel_to_id().map_err(failed)?.detach())
    }

    fn remote<'r>(
        &self,
        repository: &'r gix::Repository,
        spec: &str,
    ) -> gix::Result<gix::Remote<'r>> {
        repository
            .remote_at_without_url_rewrite(self.url())?
            .with_fetch_tags(Tags::None)
            .with_refspecs([spec], Direction::Fetch)
    }

    fn url(&self) -> String {
        match &self.way {
            Way::Http { url, .. } => url.to_string(),
            Way::Ssh(ssh) => ssh.url(),
        }
    }

    fn connect<'c, 'r>(
        &'c self,
        remote: &'c gix::Remote<'r>,
        stop: &Arc<AtomicBool>,
    ) -> gix::Result<gix::remote::Connection<'c, 'c, 'r, Box<dyn Transport + Send>>> {
        let (url, login) = match &self.way {
            Way::Http { url, login } => (url, login.as_ref()),
            Way::Ssh(ssh) => {
                let session = ssh.start("git-upload-pack", stop);
                let session =
                    session.map_err(|why| client::Error::from(std::io::Error::other(why)))?;
                let transport = Connection::new(
                    session.output,
                    session.input,
                    Protocol::V2,
                    ssh.address.path.as_str(),
                    None::<(&str, Option<u16>)>,
                    ConnectMode::Process,
                    false,
                );
                let transport = transport.custom_url(Some(self.url().into()));
                return Ok(remote.to_connection_with_transport(
                    Box::new(transport) as Box<dyn Transport + Send>
                ));
            }
        };
        let mut connection = remote.connect(Direction::Fetch)?;
        connection.set_credentials(move |action| Ok(credentials(url, login, action)));
        connection.set_transport_options(Box::new(self.transport(url, login)));
        Ok(connection)
    }

    /// The full names of all branches, or of all tags, whichever was asked for.
    fn names(
        &self,
        repository: &gix::Repository,
        stop: &Arc<AtomicBool>,
    ) -> gix::Result<Vec<BString>> {
        let space = match self.version {
            GitVersion::Branch(_) => "heads",
            GitVersion::Commit(_) => "tags",
        };
        let spec = format!("+refs/{space}/*:refs/slipway/{space}/*");
        let remote = self.remote(repository, &spec)?;
        let connection = self.connect(&remote, stop)?;
        let (known, _) = connection.ref_map(Discard, Default::default())?;
        Ok(known
            .remote_refs
            .iter()
            .map(|known| name(known).clone())
            .collect())
    }

    fn transport(&self, url: &Url, login: Option<&Login>) -> http::Options {
        let limit = self.limit;
        let mut options = http::Options::default();
        let client = http::reqwest::Options {
            configure_client: Some(Box::new(move |client| {
                Ok(client.timeout(limit).dns_resolver(Arc::new(Resolver)))
            })),
            configure_request: None,
        };
        options.extra_headers.extend(clear_text(url, login));
        options.backend = Some(Arc::new(std::sync::Mutex::new(client)));
        options
    }

    /// Why a fetch failed, and what to do.
    fn failed(&self, place: &str, why: &gix::Error, stop: &Arc<AtomicBool>) -> Fault {
        let mut why = because(why);
        if let Way::Ssh(ssh) = &self.way {
            let told = ssh.told();
            if let Some(advice) = super::ssh::advice(&told) {
                let why = format!("cannot fetch from {place}: {advice} ({told})");
                return Fault::new(ErrorType::Authentication, why);
            }
            if !told.is_empty() {
                why = format!("{why}: {told}");
            }
        }
        // An address may hold any of the words below: a port 44401, a repository `dns`.
        let address = self.url().to_ascii_lowercase();
        let told = why.to_ascii_lowercase().replace(&address, "");
        let of = |words: &[&str]| words.iter().any(|word| told.contains(word));
        let (kind, advice) = if stop.load(Ordering::Relaxed) {
            (ErrorType::Timeout, "it took too long, or was too large")
        } else if of(&["clear text"]) {
            let advice = "a login is not sent over http: give the connector an https address";
            (ErrorType::Authentication, advice)
        } else if of(&["too large to fit"]) {
            let advice = "it has an object of more than 64 MB: keep manifests in a repository without such files";
            (ErrorType::Unknown, advice)
        } else if of(&["status 401", "credential", "authentication"]) {
            let advice = match &self.way {
                Way::Ssh(_) | Way::Http { login: Some(_), .. } => {
                    "the host does not accept the connector's login: check its user and token, and that the token may read this repository"
                }
                Way::Http { login: None, .. } => {
                    "the host asks for a login, and the connector has none"
                }
            };
            (ErrorType::Authentication, advice)
        } else if of(&["status 403"]) {
            let advice = "the connector's login may not read it";
            (ErrorType::Authorization, advice)
        } else if of(&["status 404"]) {
            let advice = "there is no such repository, or the connector's login may not see it";
            (ErrorType::Unknown, advice)
        } else if of(&["dns", "resolve", "lookup", "name or service"]) {
            let advice = "its host is not known: check the connector's `url`";
            (ErrorType::Connectivity, advice)
        } else if of(&["timed out", "timeout"]) {
            let advice =
                "its host did not answer in time: check the connector's `url` and the network";
            (ErrorType::Timeout, advice)
        } else if of(&["not our ref", "unadvertised", "not found on remote"]) {
            (ErrorType::Unknown, "it has no such commit")
        } else {
            let advice = "check the connector's `url` and the network";
            (ErrorType::Connectivity, advice)
        };
        let why = format!("cannot fetch from {place}: {advice} ({why})");
        Fault::new(kind, why)
    }
}

/// The header of a login that may go in clear text: to this machine only. To others it is sent over TLS, and
/// only when they ask.
pub(super) fn clear_text(url: &Url, login: Option<&Login>) -> Option<String> {
    let login = login.filter(|_| url.scheme() == "http")?;
    let host = url.host_str()?.trim_matches(['[', ']']);
    let address: Option<IpAddr> = host.parse().ok();
    let here = host == "localhost" || address.is_some_and(|address| address.is_loopback());
    let pair = format!("{}:{}", login.user, login.password.expose_secret());
    here.then(|| format!("Authorization: Basic {}", BASE64.encode(pair)))
}

/// Answers the host that asks who is there; no other host, which a redirect may have led to.
fn credentials(url: &Url, login: Option<&Login>, action: Action) -> Option<Outcome> {
    let Action::Get(context) = action else {
        return None;
    };
    let asking = context.url.as_ref()?.to_str().ok()?;
    let asking = Url::parse(asking).ok()?;
    let known = login?;
    // What was sent unasked need not be sent again.
    if asking.origin() != url.origin() || clear_text(url, login).is_some() {
        return None;
    }
    Some(Outcome {
        identity: gix::sec::identity::Account {
            username: known.user.clone(),
            password: known.password.expose_secret().to_owned(),
            oauth_refresh_token: None,
        },
        next: NextAction::from(context),
    })
}

fn name(reference: &Ref) -> &BString {
    match reference {
        Ref::Peeled { full_ref_name, .. }
        | Ref::Direct { full_ref_name, .. }
        | Ref::Symbolic { full_ref_name, .. }
        | Ref::Unborn { full_ref_name, .. } => full_ref_name,
    }
}
