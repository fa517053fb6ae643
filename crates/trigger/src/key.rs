//! What the key of a condition stands for.

use slipway_expr::{Path, Segment, Template};

use crate::{facts, signature};

/// Keys that an author may want, for messages. `changedFiles` is one of payload conditions of webhooks only.
pub(crate) const COMMON: [&str; 6] = [
    "sourceBranch",
    "targetBranch",
    "changedFiles",
    "branch",
    "tag",
    "prTitle",
];

/// The key of a condition on an event.
#[derive(Debug)]
pub(crate) enum Key<'k> {
    /// The name of a fact (`v0/trigger`: `payload-conditions`, and the names of `<+trigger.…>` that Harness's documentation
    /// lets stand alone).
    Fact(&'k str),
    /// An expression that reads the event.
    Expression(Template),
}

impl<'k> Key<'k> {
    /// Reads a key: a name, or an expression with or without `<+` and `>` around it.
    ///
    /// # Errors
    /// Why it stands for nothing that an event may have, for people: a condition on it would hold for all events or for
    /// none.
    pub(crate) fn of(written: &'k str) -> Result<Self, String> {
        let written = written.trim();
        if facts::is_name(written) {
            return Ok(Self::Fact(written));
        }
        let expression = match written.contains("<+") {
            true => written.to_owned(),
            false => format!("<+{written}>"),
        };
        let template = slipway_expr::parse(&expression).map_err(|why| why.to_string())?;
        let references = template.references();
        if !references.is_empty() && references.iter().all(is_of_event) {
            return Ok(Self::Expression(template));
        }
        Err(format!(
            "no event has it: a key is one of {}, or an expression such as <+trigger.payload.NAME>",
            COMMON.join(", ")
        ))
    }

    /// The facts that it reads, by name.
    pub(crate) fn facts(&self) -> Vec<String> {
        match self {
            Self::Fact(name) => vec![(*name).to_owned()],
            Self::Expression(template) => below_trigger(template)
                .into_iter()
                .filter_map(|path| path.into_iter().nth(1))
                .collect(),
        }
    }

    /// The first header that it reads and that is taken out before anything of an event is kept, and why a condition on it
    /// has nothing to look at.
    pub(crate) fn credential(&self) -> Option<String> {
        let Self::Expression(template) = self else {
            return None;
        };
        let header = below_trigger(template).into_iter().find_map(|path| {
            let [_, part, name, ..] = path.as_slice() else {
                return None;
            };
            (part == "header" && signature::is_credential(name)).then(|| name.clone())
        })?;
        let header = crate::text::shown(&header);
        Some(format!(
            "the header `{header}` looks like a credential, and such headers are taken out before an event is kept: name a secret with `encryptedWebhookSecretIdentifier` to have the sender authenticated"
        ))
    }
}

fn is_of_event(path: &Path) -> bool {
    match path.segments.first().and_then(Segment::key) {
        Some("trigger") => path.segments.len() > 1 || !path.complete,
        Some("eventPayload") => true,
        _ => false,
    }
}

/// The paths below `trigger`, as far as they consist of names.
fn below_trigger(template: &Template) -> Vec<Vec<String>> {
    let named = template.references().into_iter().map(|path| {
        let names = path.segments.iter().map_while(Segment::key);
        names.map(str::to_owned).collect::<Vec<_>>()
    });
    named
        .filter(|path| path.first().is_some_and(|first| first == "trigger"))
        .collect()
}
