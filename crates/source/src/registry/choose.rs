//! Which of many versions.

use regex::{Regex, RegexBuilder};
use slipway_plan::{ArtifactQuestion, ArtifactVersion};

/// Most memory for a compiled pattern, bytes.
const LARGEST_PATTERN: usize = 1 << 20;

/// What a question wants.
#[derive(Debug)]
pub(crate) enum Choice {
    /// The version of this name.
    Exact(String),
    /// The last that a pattern matches, or the last of all.
    Last(Option<Pattern>),
    /// Whatever has the digest of the question.
    Digest(String),
}

/// A regular expression for whole names.
#[derive(Debug)]
pub(crate) struct Pattern {
    written: String,
    regex: Regex,
}

impl Choice {
    /// Reads a question.
    ///
    /// # Errors
    /// When its pattern is none, or it names nothing.
    pub(crate) fn of(question: &ArtifactQuestion) -> Result<Self, String> {
        match (&question.version, &question.digest) {
            (Some(ArtifactVersion::Exact(name)), _) => Ok(Self::Exact(name.clone())),
            (Some(ArtifactVersion::Pattern(written)), _) => {
                Pattern::new(written).map(|pattern| Self::Last(Some(pattern)))
            }
            (Some(ArtifactVersion::Last), _) => Ok(Self::Last(None)),
            (None, Some(digest)) => Ok(Self::Digest(digest.clone())),
            (None, None) => Err("it names neither a version nor a digest".to_owned()),
        }
    }

    /// Whether a name is one of those that are looked for.
    pub(crate) fn fits(&self, name: &str) -> bool {
        match self {
            Self::Exact(wanted) => wanted == name,
            Self::Last(pattern) => pattern.as_ref().is_none_or(|one| one.regex.is_match(name)),
            Self::Digest(_) => false,
        }
    }

    /// For messages: `that matches v.*`.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Exact(name) => format!("called {name}"),
            Self::Last(Some(pattern)) => format!("that matches `{}` as a whole", pattern.written),
            Self::Last(None) => "at all".to_owned(),
            Self::Digest(digest) => format!("with the digest {digest}"),
        }
    }
}

impl Pattern {
    fn new(written: &str) -> Result<Self, String> {
        let build = |text: &str| RegexBuilder::new(text).size_limit(LARGEST_PATTERN).build();
        // By itself first: `a)|(b` must not become a pattern by what is put around it.
        let built = build(written).and_then(|_| build(&format!("^(?:{written})$")));
        let regex = built.map_err(|_| {
            format!(
                "`{written}` is no regular expression that can be used: it is not well formed, too large, or uses \
                 look-around or back-references"
            )
        })?;
        Ok(Self {
            written: written.to_owned(),
            regex,
        })
    }
}

#[cfg(test)]
mod tests {
    use slipway_plan::ArtifactPlace;

    use super::*;

    #[test]
    fn patterns_match_whole_names_or_are_refused() {
        let choice = |version| {
            Choice::of(&ArtifactQuestion {
                connector: "c".to_owned(),
                place: ArtifactPlace::S3 {
                    region: None,
                    bucket: "b".to_owned(),
                },
                version: Some(version),
                digest: None,
            })
        };
        let pattern = |text: &str| choice(ArtifactVersion::Pattern(text.to_owned()));
        let fits = pattern("v1|v\\d{2}").unwrap();
        let seen: Vec<_> = ["v1", "v10", "v100", "xv1"]
            .map(|name| fits.fits(name))
            .to_vec();
        assert_eq!(seen, [true, true, false, false]);
        assert!(choice(ArtifactVersion::Last).unwrap().fits("anything"));
        for bad in ["(", "a)|(b", "(?=x)", "x{9999}{9999}"] {
            assert!(
                pattern(bad).unwrap_err().contains("no regular expression"),
                "{bad}"
            );
        }
    }
}
