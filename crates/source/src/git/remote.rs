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
use super::known::Known;
use super::login::Login;
use super::ssh::Ssh;
use crate::fault::Fault;
use crate::tree::pick;

/// What a repository names its default branch by.
const HEAD: &str = "HEAD";

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
    /// What was read before.
    pub(super) known: &'a Known,
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
    let repository = repository(folder)?;
    let before = |tip: &gix::oid| {
        let (url, commit) = (remote.url(), tip.to_string());
        let known = asked
            .iter()
            .map(|paths| remote.known.find(&url, &commit, paths));
        known.collect::<Option<Vec<Fetched>>>()
    };
    let (object, branch) = remote.fetch(&repository, &place, stop, &|tip| before(tip).is_some())?;
    let branch = branch.filter(|_| *remote.version == GitVersion::Default);
    if let Some(known) = before(&object) {
        let at_branch = |fetched: Fetched| Fetched {
            branch: branch.clone(),
            ..fetched
        };
        return Ok(known.into_iter().map(at_branch).map(Ok).collect());
    }
    let commit = Commit::of(&repository, object).map_err(|why| format!("in {place} {why}"))?;
    let files = asked.iter().map(|paths| {
        let files = pick(&commit, paths, &format!("{place} at {}", commit.id), stop)?;
        let fetched = Fetched {
            commit: Some(commit.id.clone()),
            branch: branch.clone(),
            files,
        };
        remote.known.keep(&remote.url(), paths, &fetched);
        Ok(fetched)
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
pub(super) fn repository(folder: &Path) -> Result<gix::Repository, String> {
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
    /// Fetches a commit, unless it is known before; with the name of the default branch where that is told.
    pub(super) fn fetch(
        &self,
        repository: &gix::Repository,
        place: &str,
        stop: &Arc<AtomicBool>,
        is_known: &dyn Fn(&gix::oid) -> bool,
    ) -> Result<(gix::ObjectId, Option<String>), String> {
        let full = full_name(self.version)?;
        let source = match (full.as_deref(), self.version) {
            (Some(full), _) => full,
            (None, GitVersion::Branch(id) | GitVersion::Commit(id)) => id.as_str(),
            (None, GitVersion::Default) => HEAD,
        };
        let spec = format!("+{source}:{KEPT}");
        let failed = |why: gix::Error| self.failed(place, &why, stop);
        let remote = self.remote(repository, &spec).map_err(failed)?;
        let connection = self.connect(&remote, stop).map_err(failed)?;
        let prepared = connection
            .prepare_fetch(Discard, Default::default())
            .map_err(failed)?;
        let known = &prepared.ref_map().remote_refs;
        if let Some(full) = full.as_deref()
            && !known.iter().any(|known| name(known) == full)
        {
            let names = self.names(repository, stop).map_err(failed)?;
            let names = names.iter().filter_map(|name| name.to_str().ok());
            return Err(missing(self.version, place, names));
        }
        let default = known.iter().find_map(|known| match known {
            Ref::Symbolic {
                full_ref_name,
                target,
                ..
            } if full_ref_name == HEAD => target.to_str().ok()?.strip_prefix("refs/heads/"),
            _ => None,
        });
        let default = default.map(str::to_owned);
        if *self.version == GitVersion::Default && !known.iter().any(|known| name(known) == HEAD) {
            return Err(format!("{place} has no default branch: name one"));
        }
        let wanted = full.as_deref().unwrap_or(HEAD);
        let tip = known.iter().find(|known| name(known) == wanted);
        if let Some(Ref::Direct { object, .. } | Ref::Symbolic { object, .. }) = tip
            && commit_id(source).is_none()
            && is_known(object)
        {
            return Ok((*object, default));
        }
        prepared
            .with_shallow(Shallow::DepthAtRemote(NonZeroU32::MIN))
            .receive(Discard, stop)
            .map_err(failed)?;
        if let Some(id) = commit_id(source) {
            return Ok((id, None));
        }
        let mut kept = repository.find_reference(KEPT).map_err(failed)?;
        Ok((kept.peel_to_id().map_err(failed)?.detach(), default))
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
            GitVersion::Branch(_) | GitVersion::Default => "heads",
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
            let advice = "it has no such commit, or gives only what branches and tags are at: behind a plain `sshd` \
                that takes `AcceptEnv GIT_PROTOCOL` in its configuration";
            (ErrorType::Unknown, advice)
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
fn clear_text(url: &Url, login: Option<&Login>) -> Option<String> {
    let login = login.filter(|_| url.scheme() == "http")?;
    let pair = format!("{}:{}", login.user, login.password.expose_secret());
    may_show(url).then(|| format!("Authorization: Basic {}", BASE64.encode(pair)))
}

/// Whether a login may be sent to an address: over TLS, or to this machine.
pub(super) fn may_show(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let address: Option<IpAddr> = host.parse().ok();
    let here = host == "localhost" || address.is_some_and(|address| address.is_loopback());
    here || url.scheme() == "https"
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
