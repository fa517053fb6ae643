//! Which versions a trigger's spec lets through, before its conditions.

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use crate::FeedSpec;

/// Most memory for a compiled pattern, bytes.
const LARGEST_PATTERN: usize = 1 << 20;

/// Fields that name one version.
const EXACT: &[&str] = &["tag", "version", "build", "chartVersion", "filePath"];
/// Fields that are a regular expression of versions.
const PATTERNS: &[&str] = &["tagRegex", "versionRegex"];
/// Fields that are a pattern of paths.
const PATHS: &[&str] = &["filePathRegex", "artifactFilter"];

/// Why a version is not one of those that the spec names; `None` where it is.
pub(super) fn refused(spec: &FeedSpec, version: &str) -> Option<String> {
    let fields = spec.spec.as_object()?;
    // A file where versions are files.
    let file = match (spec.kind.as_str(), &spec.spec["repositoryFormat"]) {
        ("GoogleCloudStorage", _) => Some("artifactPath"),
        ("ArtifactoryRegistry", Value::String(format)) if format == "generic" => {
            Some("artifactPath")
        }
        _ => None,
    };
    let given = |names: &[&'static str]| {
        let found = names.iter().filter_map(|name| {
            let text = fields.get(*name)?.as_str()?.trim();
            // `<+trigger.artifact.build>` is what every version is; `<+input>` is none.
            (!text.is_empty() && !text.contains("<+")).then(|| (*name, text.to_owned()))
        });
        found.collect::<Vec<_>>()
    };
    for (name, wanted) in given(EXACT).into_iter().chain(given(file.as_slice())) {
        if wanted != version {
            return Some(format!("`{name}` is `{wanted}`"));
        }
    }
    for (name, wanted) in given(PATTERNS) {
        match whole(&wanted) {
            Some(regex) if regex.is_match(version) => {}
            Some(_) => return Some(format!("`{name}` is `{wanted}`, which does not match it")),
            None => return Some(unreadable(name, &wanted)),
        }
    }
    for (name, wanted) in given(PATHS) {
        match path(&wanted) {
            Some(regex) if regex.is_match(version) => {}
            Some(_) => return Some(format!("`{name}` is `{wanted}`, which does not match it")),
            None => return Some(unreadable(name, &wanted)),
        }
    }
    None
}

fn unreadable(name: &str, wanted: &str) -> String {
    format!(
        "`{name}` is `{wanted:.100}`, which is no regular expression that can be used: it is not well formed, too large, or \
         uses look-around or back-references"
    )
}

/// A regular expression for whole texts.
fn whole(written: &str) -> Option<Regex> {
    let build = |text: &str| RegexBuilder::new(text).size_limit(LARGEST_PATTERN).build();
    // By itself first: `a)|(b` must not become a pattern by what is put around it.
    build(written).ok()?;
    build(&format!(r"\A(?:{written})\z")).ok()
}

/// A pattern of paths: `*.tgz` and `todolist-v*.zip` as Harness documents them, a folder with `/` at its end, or a regular
/// expression, which has more than stars.
fn path(written: &str) -> Option<Regex> {
    let is_regex = written.contains(".*")
        || written.contains(".+")
        || written.contains(['\\', '[', '(', '^', '$', '|', '{']);
    if is_regex {
        return whole(written);
    }
    let mut text: String = written
        .split('*')
        .map(|part| regex::escape(part).replace("\\?", "."))
        .collect::<Vec<_>>()
        .join(".*");
    if written.ends_with('/') {
        text.push_str(".*");
    }
    whole(&format!("(?s:{text})"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_spec_names_versions_or_leaves_them_open() {
        let table = [
            ("DockerRegistry", json!({}), "v1", true),
            ("DockerRegistry", json!({"tag": "v1"}), "v1", true),
            ("DockerRegistry", json!({"tag": "v1"}), "v10", false),
            (
                "DockerRegistry",
                json!({"tag": "<+trigger.artifact.build>"}),
                "v1",
                true,
            ),
            (
                "HelmChart",
                json!({"chartVersion": "<+trigger.manifest.version>"}),
                "1.0.0",
                true,
            ),
            ("DockerRegistry", json!({"tagRegex": "v\\d"}), "v1", true),
            (
                "DockerRegistry",
                json!({"tagRegex": "v\\d"}),
                "v1-evil",
                false,
            ),
            ("DockerRegistry", json!({"tagRegex": "v\\d"}), "v1\n", false),
            (
                "AmazonMachineImage",
                json!({"versionRegex": "base-.*"}),
                "base-7",
                true,
            ),
            (
                "AmazonMachineImage",
                json!({"versionRegex": "("}),
                "base-7",
                false,
            ),
            (
                "AmazonMachineImage",
                json!({"versionRegex": "a)|(base-7"}),
                "base-7",
                false,
            ),
            (
                "AmazonMachineImage",
                json!({"versionRegex": "x{9999}{9999}"}),
                "x",
                false,
            ),
            (
                "AmazonS3",
                json!({"filePathRegex": "todolist*.zip"}),
                "todolist-v2.0.zip",
                true,
            ),
            (
                "AmazonS3",
                json!({"filePathRegex": "todolist*.zip"}),
                "todolist-v2.0.zip.sig",
                false,
            ),
            (
                "AmazonS3",
                json!({"filePathRegex": "*.tgz"}),
                "a/b.tgz",
                true,
            ),
            (
                "AmazonS3",
                json!({"filePathRegex": "*.tgz"}),
                "a/btgz",
                false,
            ),
            (
                "AmazonS3",
                json!({"filePathRegex": "builds/"}),
                "builds/7/a.zip",
                true,
            ),
            (
                "AmazonS3",
                json!({"filePathRegex": "builds/"}),
                "old-builds/7",
                false,
            ),
            (
                "AmazonS3",
                json!({"filePathRegex": "app-(\\d+)\\.zip"}),
                "app-12.zip",
                true,
            ),
            (
                "AmazonS3",
                json!({"filePathRegex": ".*-DEV\\.tar"}),
                "x-DEV.tar",
                true,
            ),
            (
                "GoogleCloudStorage",
                json!({"artifactPath": "a.zip"}),
                "b.zip",
                false,
            ),
            (
                "ArtifactoryRegistry",
                json!({"repositoryFormat": "generic", "artifactDirectory": "x", "artifactFilter": "*.jar"}),
                "x/a.jar",
                true,
            ),
            (
                "ArtifactoryRegistry",
                json!({"repositoryFormat": "docker", "artifactPath": "web", "tag": "<+input>"}),
                "v1",
                true,
            ),
        ];
        for (kind, fields, version, passes) in table {
            let spec = FeedSpec {
                kind: kind.to_owned(),
                spec: fields.clone(),
                ..FeedSpec::default()
            };
            let refused = refused(&spec, version);
            assert_eq!(refused.is_none(), passes, "{fields} {version}: {refused:?}");
        }
    }
}
