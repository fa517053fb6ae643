//! Operators of conditions.
//!
//! Everything is compared as a whole: `main` is not `main-evil`, and a pattern matches from the first to the last character
//! of a value or not at all. Patterns run in linear time. What the documentation shows and such patterns do not have is a
//! negative look-ahead: the two shapes `^((?!text).)*$` and `^(?!text).*$` are understood.

use globset::GlobBuilder;
use regex::{Regex, RegexBuilder};

use crate::Operator;

/// Bytes that a compiled pattern may have.
const PATTERN_SIZE: usize = 1 << 20;

/// The same for each of a list.
const ELEMENT_SIZE: usize = 1 << 16;

/// Most patterns and texts in a list.
const MOST_ELEMENTS: usize = 500;

/// Whether a value has the relation to what a condition wants. A pattern that is not well formed has it to nothing.
pub fn holds(operator: Operator, actual: &str, wanted: &str) -> bool {
    check(operator, actual, wanted).unwrap_or(false)
}

/// The same, with the reason where the pattern cannot be used.
///
/// # Errors
/// What is wrong with the pattern, for people.
pub fn check(operator: Operator, actual: &str, wanted: &str) -> Result<bool, String> {
    Test::new(operator, wanted, false).map(|test| test.holds(actual))
}

impl Operator {
    /// Whether it says what a value is not. Such a condition holds where there is no value.
    pub fn is_negative(self) -> bool {
        matches!(self, Self::NotIn | Self::NotEquals | Self::DoesNotContain)
    }

    /// As the schema spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Equals => "Equals",
            Self::NotEquals => "NotEquals",
            Self::Regex => "Regex",
            Self::EndsWith => "EndsWith",
            Self::StartsWith => "StartsWith",
            Self::Contains => "Contains",
            Self::DoesNotContain => "DoesNotContain",
        }
    }
}

/// What a condition wants, made ready to be compared with many values.
pub(crate) struct Test {
    operator: Operator,
    wanted: Wanted,
}

enum Wanted {
    Text(String),
    Any(Vec<Element>),
    Pattern(Pattern),
}

impl Test {
    /// `paths` lets patterns of the shell (`docs/**`, `ci/*`) stand for files too.
    pub(crate) fn new(operator: Operator, wanted: &str, paths: bool) -> Result<Self, String> {
        let wanted = match operator {
            Operator::In | Operator::NotIn => Wanted::Any(elements(wanted, paths)?),
            Operator::Regex => {
                match (
                    Pattern::new(wanted, PATTERN_SIZE),
                    paths.then(|| glob(wanted)).flatten(),
                ) {
                    (Ok(pattern), None) => Wanted::Pattern(pattern),
                    (Err(why), None) => return Err(why),
                    (pattern, glob) => Wanted::Any(vec![Element {
                        text: wanted.to_owned(),
                        pattern: pattern.ok(),
                        glob,
                    }]),
                }
            }
            _ => Wanted::Text(wanted.to_owned()),
        };
        Ok(Self { operator, wanted })
    }

    pub(crate) fn holds(&self, actual: &str) -> bool {
        let is = match &self.wanted {
            Wanted::Any(elements) => elements.iter().any(|element| element.is(actual)),
            Wanted::Pattern(pattern) => pattern.is_whole(actual),
            Wanted::Text(text) => match self.operator {
                Operator::StartsWith => actual.starts_with(text.as_str()),
                Operator::EndsWith => actual.ends_with(text.as_str()),
                Operator::Contains | Operator::DoesNotContain => actual.contains(text.as_str()),
                _ => actual == text,
            },
        };
        is != self.operator.is_negative()
    }

    /// Whether it holds for a list of values, such as changed files: one of them is enough, and where it says what a value
    /// is not, all must be.
    pub(crate) fn holds_for_any(&self, values: &[String]) -> bool {
        match self.operator.is_negative() {
            true => values.iter().all(|value| self.holds(value)),
            false => values.iter().any(|value| self.holds(value)),
        }
    }
}

/// One of a list: the text itself, or a pattern of it (`main,release/.*`).
struct Element {
    text: String,
    pattern: Option<Pattern>,
    glob: Option<globset::GlobMatcher>,
}

impl Element {
    fn is(&self, actual: &str) -> bool {
        actual == self.text
            || self
                .pattern
                .as_ref()
                .is_some_and(|pattern| pattern.is_whole(actual))
            || self.glob.as_ref().is_some_and(|glob| glob.is_match(actual))
    }
}

/// The elements of a list: commas between, quotes around one that has a comma in it, spaces around them are not theirs.
fn elements(list: &str, paths: bool) -> Result<Vec<Element>, String> {
    let texts = split(list);
    if texts.len() > MOST_ELEMENTS {
        return Err(format!("the list has more than {MOST_ELEMENTS} elements"));
    }
    let element = |text: String| Element {
        // A name is mostly no pattern, and one that is not well formed is a name: `c++`.
        pattern: text
            .contains(SPECIAL)
            .then(|| Pattern::new(&text, ELEMENT_SIZE).ok())
            .flatten(),
        glob: paths.then(|| glob(&text)).flatten(),
        text,
    };
    Ok(texts.into_iter().map(element).collect())
}

/// Characters that make a text a pattern. A dot alone does not: `v1.0` is a name.
const SPECIAL: [char; 11] = ['*', '+', '?', '[', '(', '|', '^', '$', '{', '\\', ')'];

fn split(list: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut text = String::new();
    let mut quote = None;
    let mut chars = list.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '"' | '\'') if text.trim().is_empty() => {
                text.clear();
                quote = Some(c);
            }
            (Some(open), _) if c == open => {
                // A quote is written in quotes by doubling it.
                if chars.next_if_eq(&open).is_some() {
                    text.push(open);
                    continue;
                }
                quote = None;
                texts.push(std::mem::take(&mut text));
                while chars.next_if(|c| *c != ',').is_some() {}
                chars.next();
            }
            (None, ',') => texts.push(std::mem::take(&mut text).trim().to_owned()),
            _ => text.push(c),
        }
    }
    texts.push(text.trim().to_owned());
    texts.retain(|text| !text.is_empty());
    texts
}

/// A pattern of the shell, where the text is one. `*` crosses folders, as `ci/*` means all below `ci`.
fn glob(text: &str) -> Option<globset::GlobMatcher> {
    if !text.contains(['*', '?']) || text.len() > 1024 {
        return None;
    }
    let glob = GlobBuilder::new(text)
        .literal_separator(false)
        .build()
        .ok()?;
    Some(glob.compile_matcher())
}

/// A regular expression that matches whole values, or what a negative look-ahead would leave.
struct Pattern {
    wanted: Option<Regex>,
    unwanted: Option<Regex>,
}

impl Pattern {
    fn new(text: &str, size: usize) -> Result<Self, String> {
        let regex = |pattern: &str, around: fn(&str) -> String| regex(pattern, size, around);
        if let Some(inner) = within(text, "^((?!", ").)*$").or_else(|| within(text, "((?!", ").)*"))
        {
            return Ok(Self {
                wanted: None,
                unwanted: Some(regex(inner, |it| it.to_owned())?),
            });
        }
        if let Some(rest) = text.trim_start_matches('^').strip_prefix("(?!")
            && let Some((inner, rest)) = closed(rest)
        {
            return Ok(Self {
                wanted: Some(regex(rest, whole)?),
                unwanted: Some(regex(inner, |it| format!("^(?:{it})"))?),
            });
        }
        Ok(Self {
            wanted: Some(regex(text, whole)?),
            unwanted: None,
        })
    }

    fn is_whole(&self, value: &str) -> bool {
        self.wanted
            .as_ref()
            .is_none_or(|regex| regex.is_match(value))
            && !self
                .unwanted
                .as_ref()
                .is_some_and(|regex| regex.is_match(value))
    }
}

fn whole(pattern: &str) -> String {
    format!("^(?:{pattern})$")
}

/// What stands between two ends of a text.
fn within<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    text.strip_prefix(open)?.strip_suffix(close)
}

/// A text up to the bracket that closes it, and what comes after.
fn closed(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '(' => depth += 1,
            ')' if depth == 0 => return Some((text.get(..at)?, text.get(at + 1..)?)),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn regex(pattern: &str, size: usize, around: fn(&str) -> String) -> Result<Regex, String> {
    let build = |text: &str| {
        let mut builder = RegexBuilder::new(text);
        builder.size_limit(size).dfa_size_limit(size);
        builder.build()
    };
    // Alone first: `a)|(b` is no pattern, and would be one in brackets.
    let built = build(pattern).and_then(|_| build(&around(pattern)));
    built.map_err(|why| {
        let pattern = crate::text::shown(pattern);
        match why {
            regex::Error::CompiledTooBig(_) => {
                format!("the pattern `{pattern}` is too large: write a smaller one")
            }
            _ => format!(
                "the pattern `{pattern}` is not well formed, or uses look-around or back-references: these are not supported"
            ),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{Test, check, holds, split};
    use crate::Operator;
    use proptest::prelude::*;

    #[test]
    fn operators_compare_as_documented() {
        let rows = [
            (Operator::Equals, "main", "main", true),
            (Operator::Equals, "main", "Main", false),
            (Operator::NotEquals, "main", "main", false),
            (Operator::NotEquals, "main", "dev", true),
            (Operator::StartsWith, "feature/x", "feature/", true),
            (Operator::StartsWith, "xfeature/", "feature/", false),
            (Operator::EndsWith, "a-release", "-release", true),
            (Operator::EndsWith, "a-release-1", "-release", false),
            (Operator::Contains, "fix [skip ci] now", "[skip ci]", true),
            (
                Operator::DoesNotContain,
                "fix [skip ci] now",
                "[skip ci]",
                false,
            ),
            (Operator::DoesNotContain, "fix", "[skip ci]", true),
            (Operator::In, "main", "main, develop", true),
            (Operator::In, "develop", "main, develop", true),
            (Operator::In, "release/1", "main,release/.*", true),
            (Operator::In, "mainx", "main,release/.*", false),
            (Operator::In, "v1x0", "v1.0", false),
            (Operator::In, "a,b", "x, \"a,b\" , y", true),
            (Operator::In, "c++", "c++", true),
            (Operator::In, "", "a,,b", false),
            (Operator::NotIn, "main", "main, develop", false),
            (Operator::NotIn, "other", "main, develop", true),
            (Operator::Regex, "feature/x", "^(feature|bugfix)/.*", true),
            (
                Operator::Regex,
                "my/feature/x",
                "(feature|bugfix)/.*",
                false,
            ),
            (Operator::Regex, "17", r"^\d+$", true),
            (Operator::Regex, "README.md", r"^((?!README\.md).)*$", false),
            (Operator::Regex, "docs/a.md", r"^((?!README\.md).)*$", true),
            (Operator::Regex, "main", "^(?!main$).*$", false),
            (Operator::Regex, "main2", "^(?!main$).*$", true),
        ];
        for (operator, actual, wanted, expected) in rows {
            assert_eq!(
                holds(operator, actual, wanted),
                expected,
                "{actual} {} {wanted}",
                operator.name()
            );
        }
        assert_eq!(split("a, 'b,''c' ,\"d\"x, e"), ["a", "b,'c", "d", "e"]);
    }

    #[test]
    fn w21_a_value_is_compared_as_a_whole() {
        for operator in [Operator::Equals, Operator::In, Operator::Regex] {
            for wanted in ["main", "123"] {
                assert!(holds(operator, wanted, wanted));
                let near = [
                    format!("{wanted}-evil"),
                    format!("evil{wanted}"),
                    format!("{wanted}\n"),
                    format!("\n{wanted}"),
                    format!("{wanted}%0a"),
                    format!("a\n{wanted}\nb"),
                    format!("9{wanted}4"),
                ];
                for value in near {
                    assert!(
                        !holds(operator, &value, wanted),
                        "{value:?} {} {wanted}",
                        operator.name()
                    );
                }
            }
        }
        assert!(!holds(Operator::Regex, "main-evil", "main|x"));
        assert!(!holds(Operator::Regex, "axb", "a|b"));
        assert!(check(Operator::Regex, "axb", "a)|(b").is_err());
    }

    #[test]
    fn w22_patterns_take_linear_time_and_bounded_room() {
        let long = "a".repeat(1 << 20) + "!";
        assert!(!holds(Operator::Regex, &long, "(a+)+$"));
        assert!(!holds(Operator::In, &long, "(a+)+$,(a|a)*$"));
        // One of a list is a name where it is too large to be a pattern.
        assert!(holds(Operator::In, "x", "(a{1000}){100},x"));
        assert!(check(Operator::In, "x", &"x,".repeat(501)).is_err());
        let why = check(Operator::Regex, "a", "((a{1000}){1000}){1000}").unwrap_err();
        assert!(why.contains("too large"), "{why}");
        for pattern in ["(", "(?=a)b", r"(a)\1", "(?!a"] {
            assert!(check(Operator::Regex, "a", pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn files_are_matched_by_patterns_of_the_shell_too() {
        let files = ["ci/build/a.yml".to_owned(), "src/main.rs".to_owned()];
        let rows = [
            (Operator::In, "ci/*", true),
            (Operator::In, "ci/.*", true),
            (Operator::In, "docs/**", false),
            (Operator::In, "**/*.rs", true),
            (Operator::NotIn, "**/*.rs", false),
            (Operator::NotIn, "docs/*", true),
            (Operator::Regex, "ci/*", true),
            (Operator::Regex, r".*\.rs", true),
            (Operator::Regex, r"\.rs", false),
            (Operator::Equals, "src/main.rs", true),
            (Operator::Equals, "main.rs", false),
            (Operator::NotEquals, "src/main.rs", false),
            (Operator::StartsWith, "src/", true),
            (Operator::EndsWith, ".yml", true),
            (Operator::Contains, "build", true),
            (Operator::DoesNotContain, "build", false),
            (Operator::DoesNotContain, "docs", true),
        ];
        for (operator, wanted, expected) in rows {
            let test = Test::new(operator, wanted, true).expect("a test");
            assert_eq!(
                test.holds_for_any(&files),
                expected,
                "{} {wanted}",
                operator.name()
            );
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(actual in ".{0,30}", wanted in ".{0,30}") {
            for operator in [Operator::In, Operator::Regex, Operator::NotIn, Operator::Contains] {
                let _ = check(operator, &actual, &wanted);
                let _ = Test::new(operator, &wanted, true).map(|test| test.holds(&actual));
            }
        }
    }
}
