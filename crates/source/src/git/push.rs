//! Sends commits: the part of `git push` that a single branch needs (gitprotocol-pack(5), "Pushing Data To a Server").
//! The host itself compares the branch with what it was when it was read, so that nothing is overwritten.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use gix::zlib::Compression;
use gix::zlib::stream::deflate;
use reqwest::Url;
use reqwest::blocking::{Client, Response};
use sha1::{Digest, Sha1};
use slipway_steps::http::address::{self, Resolver};

use super::because;
use super::login::Login;
use super::remote::{Way, may_show};

/// Most of a host's list of branches, in bytes.
const MOST_LISTED: usize = 16 << 20;

/// Most of a host's answer to a push, in bytes.
const MOST_ANSWERED: usize = 1 << 20;

/// Most redirects.
const REDIRECTS: usize = 3;

/// No object: a branch that is not there.
const NOTHING: &str = "0000000000000000000000000000000000000000";

/// One branch that is to move.
pub(super) struct Push<'a> {
    pub(super) full: &'a str,
    /// Where it must be; `None` where it must not be there.
    pub(super) old: Option<gix::ObjectId>,
    pub(super) new: gix::ObjectId,
    pub(super) objects: &'a [gix::ObjectId],
}

/// Why a branch did not move.
pub(super) enum Refused {
    /// It is somewhere else by now.
    Moved,
    /// Anything else.
    Because(String),
}

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self::Because(why)
    }
}

/// Moves a branch of a repository.
pub(super) fn push(
    way: &Way,
    limit: Duration,
    repository: &gix::Repository,
    push: &Push<'_>,
    stop: &Arc<AtomicBool>,
) -> Result<(), Refused> {
    let pack = pack(repository, push.objects)?;
    match way {
        Way::Http { url, login } => {
            let host = Http::new(url, login.as_ref(), limit)?;
            host.push(push, pack)
        }
        Way::Ssh(ssh) => {
            let why = |what: String| {
                let told = ssh.told();
                match super::ssh::advice(&told) {
                    Some(advice) => format!("{advice} ({told})"),
                    None => format!("{what} {told}"),
                }
            };
            let mut session = ssh.start("git-receive-pack", stop)?;
            let listed = refs(&mut session.output).map_err(why)?;
            let body = match request(&listed, push, pack) {
                Ok(body) => body,
                Err(refused) => {
                    // The host waits for an end.
                    let _ = session.input.write_all(b"0000");
                    return Err(refused);
                }
            };
            let sent = session
                .input
                .write_all(&body)
                .and_then(|()| session.input.flush());
            sent.map_err(|error| why(format!("the host closed the connection: {error}")))?;
            drop(session.input);
            report(&mut session.output, push.full)
        }
    }
}

/// A host that takes pushes over HTTP (gitprotocol-http(5)).
struct Http<'a> {
    client: Client,
    url: &'a Url,
    login: Option<&'a Login>,
}

impl<'a> Http<'a> {
    fn new(url: &'a Url, login: Option<&'a Login>, limit: Duration) -> Result<Self, String> {
        if login.is_some() && !may_show(url) {
            return Err(
                "a login is not sent over http: give the connector an https address".to_owned(),
            );
        }
        let origin = url.origin();
        let redirect = reqwest::redirect::Policy::custom(move |attempt| {
            if attempt.previous().len() > REDIRECTS || attempt.url().origin() != origin {
                return attempt.error("it redirects to another host, or too often");
            }
            match address::check(attempt.url()) {
                Ok(()) => attempt.follow(),
                Err(why) => attempt.error(why),
            }
        });
        let client = Client::builder()
            .dns_resolver(Arc::new(Resolver))
            .no_proxy()
            .redirect(redirect)
            .timeout(limit)
            .user_agent(concat!("git/slipway-", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| format!("cannot set up an HTTP client: {error}"))?;
        Ok(Self { client, url, login })
    }

    fn send(&self, request: reqwest::blocking::RequestBuilder) -> Result<Response, String> {
        use secrecy::ExposeSecret;
        let request = match self.login {
            Some(login) => request.basic_auth(&login.user, Some(login.password.expose_secret())),
            None => request,
        };
        let answer = request.send().map_err(|why| {
            let why = why.without_url();
            format!("its host did not answer ({why}): check the connector's `url` and the network")
        })?;
        let advice = match answer.status().as_u16() {
            200 => return Ok(answer),
            401 if self.login.is_none() => "the host asks for a login, and the connector has none",
            401 => "the host does not accept the connector's login",
            403 => "the connector's login may not write to it",
            404 => "there is no such repository, or the connector's login may not see it",
            _ => "the host refuses it",
        };
        Err(format!("{advice} (status {})", answer.status().as_u16()))
    }

    fn push(&self, push: &Push<'_>, pack: Vec<u8>) -> Result<(), Refused> {
        let below = |base: &Url, name: &str| {
            let mut url = base.clone();
            if let Ok(mut path) = url.path_segments_mut() {
                path.pop_if_empty().extend(name.split('/'));
            }
            url
        };
        let mut listing = below(self.url, "info/refs");
        listing.set_query(Some("service=git-receive-pack"));
        let mut listed = self.send(self.client.get(listing))?;
        // Some hosts name a repository by a longer path (`shop.git`).
        let mut base = listed.url().clone();
        base.set_query(None);
        let path = base.path().trim_end_matches("/info/refs").to_owned();
        base.set_path(&path);
        let announced = line(&mut listed, MOST_LISTED)?;
        if announced
            .as_deref()
            .is_none_or(|line| !line.starts_with(b"# service=git-receive-pack"))
        {
            return Err("its host takes no commits over HTTP".to_owned().into());
        }
        // The announcement ends with a flush of its own.
        line(&mut listed, MOST_LISTED)?;
        let body = request(&refs(&mut listed)?, push, pack)?;
        let sent = self.client.post(below(&base, "git-receive-pack"));
        let sent = sent
            .header("content-type", "application/x-git-receive-pack-request")
            .header("accept", "application/x-git-receive-pack-result")
            .body(body);
        report(&mut self.send(sent)?, push.full)
    }
}

/// A packet (gitprotocol-common(5), "pkt-line Format"); `None` for a flush.
fn line(from: &mut impl Read, room: usize) -> Result<Option<Vec<u8>>, String> {
    let broken = |why: String| format!("the host's answer is no Git ({why})");
    let mut length = [0; 4];
    from.read_exact(&mut length)
        .map_err(|why| broken(why.to_string()))?;
    let length = std::str::from_utf8(&length).ok();
    let length = length.and_then(|text| usize::from_str_radix(text, 16).ok());
    match length {
        Some(0) => Ok(None),
        Some(length) if length >= 4 && length - 4 <= room => {
            let mut line = vec![0; length - 4];
            from.read_exact(&mut line)
                .map_err(|why| broken(why.to_string()))?;
            Ok(Some(line))
        }
        _ => Err(broken("a packet of no length".to_owned())),
    }
}

/// What a host says of its branches, and what it can do.
struct Listed {
    refs: Vec<(String, String)>,
    able: String,
}

fn refs(from: &mut impl Read) -> Result<Listed, String> {
    let mut listed = Listed {
        refs: Vec::new(),
        able: String::new(),
    };
    let mut room = MOST_LISTED;
    while let Some(line) = line(from, room)? {
        room = room.saturating_sub(line.len() + 4);
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches('\n');
        if let Some(why) = text.strip_prefix("ERR ") {
            return Err(format!("the host says: {why}"));
        }
        let (named, able) = text.split_once('\0').unwrap_or((text, ""));
        if listed.able.is_empty() {
            able.clone_into(&mut listed.able);
        }
        if let Some((id, name)) = named.split_once(' ') {
            listed.refs.push((name.to_owned(), id.to_owned()));
        }
    }
    Ok(listed)
}

/// The request that moves a branch; refused before anything is sent where it has moved already.
fn request(listed: &Listed, push: &Push<'_>, pack: Vec<u8>) -> Result<Vec<u8>, Refused> {
    let known = listed.refs.iter().find(|(name, _)| name == push.full);
    let old = push.old.map(|id| id.to_string());
    if known.map(|(_, id)| id) != old.as_ref() {
        return Err(Refused::Moved);
    }
    let able = |what: &str| listed.able.split(' ').any(|known| known == what);
    if !able("report-status") {
        return Err("its host does not say what became of a commit"
            .to_owned()
            .into());
    }
    let old = old.as_deref().unwrap_or(NOTHING);
    let command = format!(
        "{old} {} {}\0 report-status agent=slipway\n",
        push.new, push.full
    );
    let mut body = format!("{:04x}{command}0000", command.len() + 4).into_bytes();
    body.extend(pack);
    Ok(body)
}

/// What became of it (gitprotocol-pack(5), "Report Status").
fn report(from: &mut impl Read, full: &str) -> Result<(), Refused> {
    let mut room = MOST_ANSWERED;
    let mut done = Err(Refused::Because(
        "the host did not say what became of it".to_owned(),
    ));
    while let Some(line) = line(from, room)? {
        room = room.saturating_sub(line.len() + 4);
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if let Some(why) = text.strip_prefix("unpack ").filter(|said| *said != "ok") {
            return Err(Refused::Because(format!(
                "the host does not take the commit: {why}"
            )));
        }
        if text == format!("ok {full}") {
            done = Ok(());
        } else if let Some(why) = text.strip_prefix(&format!("ng {full} ")) {
            // The words of Git's own server for a branch that moved in between.
            let moved = [
                "fetch first",
                "non-fast-forward",
                "failed to update ref",
                "cannot lock ref",
                "already exists",
            ];
            let moved = moved.iter().any(|words| why.contains(words));
            done = Err(match moved {
                true => Refused::Moved,
                false => Refused::Because(format!("the host refuses the commit: {why}")),
            });
        }
    }
    done
}

/// Objects as a pack (gitformat-pack(5)), each whole.
fn pack(repository: &gix::Repository, objects: &[gix::ObjectId]) -> Result<Vec<u8>, String> {
    let count = u32::try_from(objects.len()).unwrap_or(u32::MAX);
    let mut pack = b"PACK\0\0\0\x02".to_vec();
    pack.extend(count.to_be_bytes());
    for id in objects {
        let object = repository.find_object(*id);
        let object = object.map_err(|why| format!("{id} is not there: {}", because(&why)))?;
        let kind: u8 = match object.kind {
            gix::objs::Kind::Commit => 1,
            gix::objs::Kind::Tree => 2,
            gix::objs::Kind::Blob => 3,
            gix::objs::Kind::Tag => 4,
        };
        let mut left = object.data.len();
        let mut byte = (kind << 4) | low(left, 4);
        left >>= 4;
        while left > 0 {
            pack.push(byte | 0x80);
            byte = low(left, 7);
            left >>= 7;
        }
        pack.push(byte);
        let mut packed = deflate::Write::new(Vec::new(), Compression::default());
        let written = packed.write_all(&object.data).and_then(|()| packed.flush());
        written.map_err(|why| format!("{id} cannot be packed: {why}"))?;
        pack.extend(packed.into_inner());
    }
    let digest = Sha1::digest(&pack);
    pack.extend(digest);
    Ok(pack)
}

/// The lowest bits of a number.
fn low(number: usize, bits: u32) -> u8 {
    u8::try_from(number & ((1 << bits) - 1)).unwrap_or_default()
}
