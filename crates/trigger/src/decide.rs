//! Whether a trigger starts a run for an event.

use serde_json::{Map, Value as Json};
use slipway_expr::{EvalError, Limits, Reason};

use crate::condition::Test;
use crate::facts::{EventContext, head};
use crate::key::Key;
use crate::text::shown;
use crate::{
    ChangedFiles, Condition, Event, Operator, Outcome, Provider, Refusal, Trigger, WebhookSpec,
};

/// Whether a webhook trigger starts a run for an event: all that it asks for must hold.
///
/// `repository` is the URL that the trigger's connector and `repoName` stand for, `files` what the provider said where it
/// was asked for the changed files. A condition whose value the event does not have does not hold, unless it says what a
/// value is not (`NotIn`, `NotEquals`, `DoesNotContain`).
///
/// # Errors
/// Why it does not, for the trigger's history. [`Outcome::NoMatchingTriggerForFilepathConditions`] where nobody knows the
/// changed files says that all else holds: whoever asks the provider for them, and then asks again, gets the answer.
/// [`Outcome::FailedToFetchPrDetails`] says the same of what the pull request has and the event does not tell ([`untold`]);
/// files are asked for after that.
pub fn webhook(
    trigger: &Trigger,
    spec: &WebhookSpec,
    event: &Event,
    repository: Option<&str>,
    files: Option<&[String]>,
) -> Result<(), Refusal> {
    if !trigger.enabled {
        let why = format!(
            "the trigger {} is disabled: enable it to let it start runs",
            trigger.identifier
        );
        return Err(Refusal::new(Outcome::NoEnabledTriggerForProject, why));
    }
    of_provider(spec, event)?;
    is_of(spec, event, repository)?;
    listens(spec, event)?;
    let known = match &event.changed_files {
        ChangedFiles::Known(files) => Some(files.as_slice()),
        ChangedFiles::Unknown => files,
    };
    conditions(spec, event, known)?;
    match wants_files(spec) && known.is_none() {
        true => Err(Refusal::new(
            Outcome::NoMatchingTriggerForFilepathConditions,
            format!(
                "a condition asks for changed files, and this {} of {} does not list all of them: they must be asked for",
                event.name,
                event.provider.name()
            ),
        )),
        false => Ok(()),
    }
}

/// Whether the conditions hold, as far as they can be decided; those that cannot for want of the pull request refuse where
/// all others hold.
fn conditions(spec: &WebhookSpec, event: &Event, files: Option<&[String]>) -> Result<(), Refusal> {
    let facts = head(event);
    let context = || EventContext::new(&facts, &event.payload);
    let mut missing = None;
    let mut but_untold = |decided: Result<(), Refusal>| match decided {
        Err(refusal) if refusal.outcome == Outcome::FailedToFetchPrDetails => {
            missing.get_or_insert(refusal);
            Ok(())
        }
        decided => decided,
    };
    let of_headers = Outcome::NoMatchingTriggerForHeaderConditions;
    for condition in &spec.header_conditions {
        but_untold(check(condition, &context(), of_headers))?;
    }
    let of_payload = Outcome::NoMatchingTriggerForPayloadConditions;
    for condition in &spec.payload_conditions {
        match (condition.key.trim() == CHANGED_FILES, files) {
            (false, _) => but_untold(check(condition, &context(), of_payload))?,
            (true, Some(files)) => changed_files(condition, files)?,
            (true, None) => {}
        }
    }
    if let Some(jexl) = &spec.jexl {
        but_untold(holds_jexl(jexl, &context()))?;
    }
    missing.map_or(Ok(()), Err)
}

/// Whether the payload conditions of a system event hold for facts of the form of [`crate::facts`].
///
/// # Errors
/// The first that does not, for the trigger's history.
pub fn payload(conditions: &[Condition], facts: &Map<String, Json>) -> Result<(), Refusal> {
    let payload = facts.get("payload").unwrap_or(&Json::Null);
    let context = EventContext::new(facts, payload);
    let outcome = Outcome::NoMatchingTriggerForPayloadConditions;
    let mut all = conditions.iter();
    all.try_for_each(|condition| check(condition, &context, outcome))
}

const CHANGED_FILES: &str = "changedFiles";

/// Whether a condition of the trigger is about changed files.
pub fn wants_files(spec: &WebhookSpec) -> bool {
    let conditions = &spec.payload_conditions;
    conditions
        .iter()
        .any(|condition| condition.key.trim() == CHANGED_FILES)
}

/// Whether a webhook trigger has anything to do with an event: the provider and the repository are its own. `repository` is
/// that of [`webhook`].
///
/// # Errors
/// Why it has not.
pub fn concerns(
    spec: &WebhookSpec,
    event: &Event,
    repository: Option<&str>,
) -> Result<(), Refusal> {
    of_provider(spec, event)?;
    is_of(spec, event, repository)
}

fn of_provider(spec: &WebhookSpec, event: &Event) -> Result<(), Refusal> {
    if spec.provider == event.provider {
        return Ok(());
    }
    let [wanted, found] = [spec.provider, event.provider].map(Provider::name);
    let why = format!("the trigger listens to {wanted}, and this event is of {found}");
    Err(Refusal::new(Outcome::NoMatchingTriggerForEventAction, why))
}

/// Whether one of them says what no changed file is: then some files of many do not decide it.
pub fn denies_files(spec: &WebhookSpec) -> bool {
    let conditions = &spec.payload_conditions;
    conditions
        .iter()
        .any(|condition| condition.key.trim() == CHANGED_FILES && condition.operator.is_negative())
}

/// Whether the trigger listens to this kind of event.
fn listens(spec: &WebhookSpec, event: &Event) -> Result<(), Refusal> {
    let refuse = |why| Err(Refusal::new(Outcome::NoMatchingTriggerForEventAction, why));
    if spec.event != event.name {
        let [wanted, found] = [&spec.event, &event.name];
        return refuse(format!(
            "the trigger listens to {wanted}, and this event is {found}"
        ));
    }
    let action = event.action.as_deref();
    let listed = |action: &str| spec.actions.iter().any(|wanted| wanted == action);
    match action {
        Some(action) if !spec.actions.is_empty() && !listed(action) => refuse(format!(
            "the trigger listens to the actions {} of {}, and this one is {action}",
            spec.actions.join(", "),
            event.name
        )),
        _ => Ok(()),
    }
}

/// Whether two URLs are of one repository, however they are written.
pub fn is_same_repository(one: &str, other: &str) -> bool {
    same(&place(one), &place(other))
}

/// Whether the event is of the trigger's repository.
fn is_of(spec: &WebhookSpec, event: &Event, repository: Option<&str>) -> Result<(), Refusal> {
    let refuse = |wanted: &str| {
        let why = format!(
            "the trigger is about the repository {}, and this event is of {}",
            shown(wanted),
            shown(event.urls.first().unwrap_or(&event.repository))
        );
        Err(Refusal::new(Outcome::NoMatchingTriggerForRepo, why))
    };
    if event.provider == Provider::Custom {
        return Ok(());
    }
    if let Some(registry) = &spec.registry
        && *registry != event.repository
    {
        return refuse(registry);
    }
    if let Some(wanted) = repository {
        let wanted_place = place(wanted);
        let mut urls = event.urls.iter();
        let found = match event.urls.is_empty() {
            true => is_named(&wanted_place, event),
            false => urls.any(|url| same(&place(url), &wanted_place)),
        };
        return match found {
            true => Ok(()),
            // Without what stands before its host: that may be a password.
            false => refuse(&format!("{}/{}", wanted_place.host, wanted_place.path)),
        };
    }
    match &spec.repo_name {
        Some(name) if !ends_with_name(&event.repository, name) => refuse(name),
        _ => Ok(()),
    }
}

/// Whether a place has the name of an event's repository: older Bitbucket Servers send project and slug, and no URL. Those
/// differ in case.
fn is_named(place: &Place, event: &Event) -> bool {
    let [path, name] = [&place.path, &event.repository].map(|text| text.to_lowercase());
    event.provider == Provider::Bitbucket
        && place.host != "bitbucket.org"
        && ends_with_name(&path, &name)
}

/// Whether a path ends with a name, which may have folders itself.
fn ends_with_name(path: &str, name: &str) -> bool {
    let name = name.trim_matches('/');
    let name = name.strip_suffix(".git").unwrap_or(name);
    let before = path.strip_suffix(name);
    !name.is_empty() && before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Where a repository is, however its URL is written.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    host: String,
    /// Of http only: ssh has another one for the same repository.
    port: Option<String>,
    path: String,
}

fn same(one: &Place, other: &Place) -> bool {
    let port = match (&one.port, &other.port) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    };
    port && one.host == other.host && one.path == other.path
}

fn place(url: &str) -> Place {
    let url = url.trim();
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let scheme = scheme.to_ascii_lowercase();
    let (authority, path) = match scheme.is_empty() {
        // `git@host:path`, as ssh is written without a scheme; or host and path without any.
        true => match rest.split_once(':') {
            Some((host, path)) if !host.contains('/') => (host, path),
            _ => rest.split_once('/').unwrap_or((rest, "")),
        },
        false => rest.split_once('/').unwrap_or((rest, "")),
    };
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, Some(port)),
        _ => (host, None),
    };
    let default = [("https", "443"), ("http", "80")];
    let port = port
        .filter(|port| scheme.starts_with("http") && !default.contains(&(scheme.as_str(), port)));
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let (host, mut path) = alike(&host.to_ascii_lowercase(), path);
    // These hosts have no two repositories that differ in case alone.
    if ["github.com", "gitlab.com", "bitbucket.org", "dev.azure.com"].contains(&host.as_str()) {
        path = path.to_lowercase();
    }
    Place {
        host,
        port: port.map(str::to_owned),
        path,
    }
}

/// What Azure and Bitbucket Server write differently for ssh, http and people.
fn alike(host: &str, path: &str) -> (String, String) {
    let parts: Vec<&str> = path.split('/').collect();
    let azure = |parts: &[&str]| ("dev.azure.com".to_owned(), parts.join("/"));
    match (host, parts.as_slice()) {
        ("ssh.dev.azure.com" | "vs-ssh.visualstudio.com", ["v3", rest @ ..]) => azure(rest),
        ("dev.azure.com", [organisation, project, "_git", name]) => {
            azure(&[organisation, project, name])
        }
        // The repository that has its project's name is written without it.
        ("dev.azure.com", [organisation, "_git", name]) => azure(&[organisation, name, name]),
        (host, [project, "_git", name]) if host.ends_with(".visualstudio.com") => {
            let organisation = host.split('.').next().unwrap_or_default();
            azure(&[organisation, project, name])
        }
        (host, ["scm", project, name]) => {
            (host.to_owned(), format!("{project}/{name}").to_lowercase())
        }
        (host, ["projects", project, "repos", name, ..]) => {
            (host.to_owned(), format!("{project}/{name}").to_lowercase())
        }
        (host, _) => (host.to_owned(), path.to_owned()),
    }
}

/// A condition on something that the event has or has not.
fn check(condition: &Condition, context: &EventContext, outcome: Outcome) -> Result<(), Refusal> {
    let refuse = |why| Err(Refusal::new(outcome, why));
    let undecided = |why: String| not_decided(condition, &why, outcome);
    let key = Key::of(&condition.key).map_err(undecided)?;
    if let Some(why) = key.credential() {
        return Err(undecided(why));
    }
    let read = key.facts();
    if let Some(why) = not_told(context, |name| read.iter().any(|fact| fact == name)) {
        return Err(not_decided(
            condition,
            &why,
            Outcome::FailedToFetchPrDetails,
        ));
    }
    let found = value(&key, context).map_err(undecided)?;
    let test = Test::new(condition.operator, &condition.value, false);
    let test = test.map_err(|why| not_decided(condition, &why, outcome))?;
    let holds = match &found {
        Some(found) => test.holds(found),
        None => condition.operator.is_negative(),
    };
    match (holds, found) {
        (true, _) => Ok(()),
        (false, Some(found)) => refuse(format!(
            "{}: the event has `{}`",
            wanted(condition),
            shown(&found)
        )),
        (false, None) => refuse(format!(
            "{}: the event has no such value",
            wanted(condition)
        )),
    }
}

fn not_decided(condition: &Condition, why: &str, outcome: Outcome) -> Refusal {
    let key = shown(&condition.key);
    Refusal::new(
        outcome,
        format!("the condition on `{key}` cannot be decided: {why}"),
    )
}

/// A condition, as a message says it.
fn wanted(condition: &Condition) -> String {
    let operator: Operator = condition.operator;
    format!(
        "the condition `{} {} {}` does not hold",
        shown(&condition.key),
        operator.name(),
        shown(&condition.value)
    )
}

/// What a key stands for. `None` where the event has nothing of that name, or null.
fn value(key: &Key, context: &EventContext) -> Result<Option<String>, String> {
    let template = match key {
        Key::Fact(name) => return Ok(context.head.get(*name).map(text)),
        Key::Expression(template) => template,
    };
    match template.evaluate(context, &Limits::default()) {
        Ok(slipway_expr::Value::Null) => Ok(None),
        Ok(value) => Ok(value.text()),
        Err(EvalError {
            reason: Reason::Undefined { .. },
            ..
        }) => Ok(None),
        Err(why) => Err(why.full_text()),
    }
}

/// What every pull request has. Comments on one need not say it: GitHub's do not.
const OF_PULL_REQUESTS: [&str; 5] = [
    "sourceBranch",
    "targetBranch",
    "branch",
    "commitSha",
    "baseCommitSha",
];

/// What the pull request that an event is about has, and the event does not tell, by the names of facts.
pub fn untold(event: &Event) -> Vec<&'static str> {
    if event.pr_number.is_none() {
        return Vec::new();
    }
    let told = [
        &event.source_branch,
        &event.target_branch,
        &event.branch,
        &event.commit,
        &event.base_commit,
    ];
    let named = OF_PULL_REQUESTS.into_iter().zip(told);
    named
        .filter(|(_, told)| told.is_none())
        .map(|(name, _)| name)
        .collect()
}

/// Whether a text may read a fact of this name: `trigger.branch` and `trigger.branch.length()` do read the branch,
/// `trigger.branches` does not.
pub fn reads(text: &str, fact: &str) -> bool {
    let mut found = text.match_indices("trigger.");
    found.any(|(at, before)| {
        let rest = text.get(at + before.len()..).unwrap_or_default();
        let after = rest.strip_prefix(fact);
        after.is_some_and(|after| {
            !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        })
    })
}

/// Why a condition on something that is there, and that the delivery does not tell, is not decided. That it is not
/// something must not be taken from nobody having said what it is.
fn not_told(context: &EventContext, reads: impl Fn(&str) -> bool) -> Option<String> {
    let number = context.head.get("prNumber")?;
    let name = OF_PULL_REQUESTS
        .into_iter()
        .find(|name| !context.head.contains_key(*name) && reads(name))?;
    let provider = context.head.get("sourceRepo").map(text).unwrap_or_default();
    Some(format!(
        "pull request {number} has a `{name}`, and the delivery does not say which: {provider} must be asked for it"
    ))
}

fn text(fact: &Json) -> String {
    fact.as_str()
        .map_or_else(|| fact.to_string(), str::to_owned)
}

fn changed_files(condition: &Condition, files: &[String]) -> Result<(), Refusal> {
    let outcome = Outcome::NoMatchingTriggerForFilepathConditions;
    let test = Test::new(condition.operator, &condition.value, true);
    let test = test.map_err(|why| not_decided(condition, &why, outcome))?;
    if test.holds_for_any(files) {
        return Ok(());
    }
    let first = files
        .iter()
        .take(3)
        .map(|file| shown(file))
        .collect::<Vec<_>>();
    let more = files.len().saturating_sub(first.len());
    let listed = match (first.is_empty(), more) {
        (true, _) => "no file was changed".to_owned(),
        (false, 0) => format!("`{}` were changed", first.join("`, `")),
        (false, more) => format!("`{}` and {more} more were changed", first.join("`, `")),
    };
    Err(Refusal::new(
        outcome,
        format!("{}: {listed}", wanted(condition)),
    ))
}

fn holds_jexl(jexl: &str, context: &EventContext) -> Result<(), Refusal> {
    let refuse = |why| {
        Err(Refusal::new(
            Outcome::NoMatchingTriggerForJexlConditions,
            why,
        ))
    };
    match slipway_expr::condition(jexl, context, &Limits::default()) {
        Ok(true) => Ok(()),
        Ok(false) => refuse(format!("the JEXL condition `{}` is false", shown(jexl))),
        Err(why) => {
            let undecided = |why: &str| format!("the JEXL condition cannot be decided: {why}");
            match not_told(context, |name| reads(jexl, name)) {
                Some(untold) => Err(Refusal::new(
                    Outcome::FailedToFetchPrDetails,
                    undecided(&untold),
                )),
                None => refuse(undecided(&why.full_text())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ends_with_name, place, same};

    #[test]
    fn a_repository_is_found_however_its_url_is_written() {
        let alike = [
            &[
                "https://github.com/a/b",
                "https://GitHub.com/A/b.git",
                "git@github.com:a/b.git",
                "ssh://git@github.com:22/a/b",
                "git://github.com/a/b.git/",
                "https://user:pass@github.com/a/b",
            ][..],
            &[
                "https://dev.azure.com/o/p/_git/r",
                "https://o@dev.azure.com/o/p/_git/r",
                "git@ssh.dev.azure.com:v3/o/p/r",
                "https://o.visualstudio.com/p/_git/r",
            ],
            &[
                "https://git.local:8443/scm/prj/r.git",
                "ssh://git@git.local:7999/prj/r.git",
                "https://git.local:8443/projects/PRJ/repos/r/browse",
            ],
        ];
        for (at, urls) in alike.iter().enumerate() {
            for one in *urls {
                for other in *urls {
                    assert!(same(&place(one), &place(other)), "{one} {other}");
                }
                for others in alike.iter().skip(at + 1) {
                    assert!(others.iter().all(|other| !same(&place(one), &place(other))));
                }
            }
        }
        for other in [
            "https://github.com/a/bc",
            "https://github.com/x/a/b",
            "https://github.com.evil.org/a/b",
            "https://evil.org/github.com/a/b",
            "https://github.com/a",
            "",
            "https://github.com@evil.org/a/b",
            "git@github.com:x/../a/b",
        ] {
            assert!(
                !same(&place("https://github.com/a/b"), &place(other)),
                "{other}"
            );
        }
        assert!(!same(
            &place("http://git.local:1/a/b"),
            &place("http://git.local:2/a/b")
        ));
        assert!(
            ends_with_name("owner/name", "name") && ends_with_name("owner/name", "owner/name.git")
        );
        assert!(!ends_with_name("owner/other-name", "name") && !ends_with_name("owner/name", ""));
    }
}
