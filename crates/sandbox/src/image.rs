//! Images that fail to pull, die at start or never get healthy, on request.
//!
//! Three sources, the first that matches wins:
//! 1. rules set in process or by `PUT /_sandbox/images`, the longest pattern first;
//! 2. a repository below `sandbox.invalid/`, or a tag `missing` or `does-not-exist`: the pull fails;
//! 3. a tag `exits` (exit code 1) or `exits-<code>`: dies at start; `exits-later`: dies after it was
//!    healthy; `unhealthy`: fails its health checks. So a pipeline alone can show each of them.
//!
//! Any other image runs until it is stopped. A task of no service whose container has a `command` is a job, though: it ends well
//! after a while.

use serde::{Deserialize, Serialize};

/// What a container does with an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageBehaviour {
    /// Starts, gets healthy, and runs until stopped.
    #[default]
    Runs,
    /// Cannot be pulled: `CannotPullContainerError`.
    PullFails,
    /// Ends shortly after its start.
    Exits,
    /// Ends some time after it was healthy.
    ExitsLater,
    /// Runs, but fails its health checks.
    Unhealthy,
}

/// A rule for images.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageRule {
    /// The image as task definitions write it; a `*` at the end stands for any rest.
    pub image: String,
    /// What such images do.
    pub behaviour: ImageBehaviour,
    /// Exit code of the behaviours that exit. 1 unless given.
    #[serde(default = "one")]
    pub exit_code: i32,
}

fn one() -> i32 {
    1
}

impl ImageRule {
    /// Whether the rule is for an image.
    pub(crate) fn matches(&self, image: &str) -> bool {
        match self.image.strip_suffix('*') {
            Some(prefix) => image.starts_with(prefix),
            None => self.image == image,
        }
    }
}

/// What `image` does, with its exit code.
pub(crate) fn behaviour<'a>(
    rules: impl Iterator<Item = &'a ImageRule>,
    image: &str,
) -> (ImageBehaviour, i32) {
    rules
        .filter(|rule| rule.matches(image))
        .max_by_key(|rule| rule.image.len())
        .map_or_else(
            || by_convention(image),
            |rule| (rule.behaviour, rule.exit_code),
        )
}

fn by_convention(image: &str) -> (ImageBehaviour, i32) {
    if image.starts_with("sandbox.invalid/") {
        return (ImageBehaviour::PullFails, 1);
    }
    match tag(image) {
        "missing" | "does-not-exist" => (ImageBehaviour::PullFails, 1),
        "exits" => (ImageBehaviour::Exits, 1),
        "exits-later" => (ImageBehaviour::ExitsLater, 1),
        "unhealthy" => (ImageBehaviour::Unhealthy, 1),
        other => match other.strip_prefix("exits-").map(str::parse) {
            Some(Ok(code)) => (ImageBehaviour::Exits, code),
            _ => (ImageBehaviour::Runs, 0),
        },
    }
}

/// The tag of an image; a colon before a slash belongs to the registry's port.
fn tag(image: &str) -> &str {
    let name = image.rsplit('/').next().unwrap_or(image);
    match name.split_once(':') {
        Some((_, tag)) => tag,
        None => "latest",
    }
}

/// The image as container runtimes name it in errors: registry and tag spelled out.
pub(crate) fn reference(image: &str) -> String {
    let has_registry = image.split_once('/').is_some_and(|(first, _)| {
        first.contains('.') || first.contains(':') || first == "localhost"
    });
    let mut full = match (has_registry, image.contains('/')) {
        (true, _) => image.to_owned(),
        (false, true) => format!("docker.io/{image}"),
        (false, false) => format!("docker.io/library/{image}"),
    };
    let name = image.rsplit('/').next().unwrap_or(image);
    if !name.contains(':') && !name.contains('@') {
        full.push_str(":latest");
    }
    full
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conventions_and_rules() {
        let rules = [
            ImageRule {
                image: "shop/*".into(),
                behaviour: ImageBehaviour::Unhealthy,
                exit_code: 1,
            },
            ImageRule {
                image: "shop/web:exits".into(),
                behaviour: ImageBehaviour::Runs,
                exit_code: 1,
            },
        ];
        let seen: Vec<String> = [
            "nginx",
            "nginx:missing",
            "localhost:5000/nginx",
            "sandbox.invalid/web:1",
            "web:exits-137",
            "web:exits-later",
            "shop/cart:1",
            "shop/web:exits",
        ]
        .iter()
        .map(|image| format!("{image} {:?}", behaviour(rules.iter(), image)))
        .collect();
        insta::assert_snapshot!(seen.join("\n"), @r"
        nginx (Runs, 0)
        nginx:missing (PullFails, 1)
        localhost:5000/nginx (Runs, 0)
        sandbox.invalid/web:1 (PullFails, 1)
        web:exits-137 (Exits, 137)
        web:exits-later (ExitsLater, 1)
        shop/cart:1 (Unhealthy, 1)
        shop/web:exits (Runs, 1)
        ");
    }

    #[test]
    fn references_are_spelled_out() {
        assert_eq!(reference("nginx"), "docker.io/library/nginx:latest");
        assert_eq!(reference("shop/web:2"), "docker.io/shop/web:2");
        assert_eq!(reference("ghcr.io/a/b:2"), "ghcr.io/a/b:2");
    }
}
