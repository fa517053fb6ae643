//! Rules for texts.

use crate::diagnostic::shown;
use crate::{duration, number};

/// Rules for texts. The patterns are those of Harness's pipeline schema.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A letter or `_`, then at most 127 letters, digits and `_`.
    Identifier,
    /// A name for people, at most 128 characters.
    Name,
    /// Name of a variable.
    Variable,
    /// A duration such as `10m` or `1h 30m`.
    Duration,
    /// A reference to an entity: not blank.
    Reference,
    /// Not blank.
    Filled,
    /// How often to look: a duration, or 0 for not at all.
    Poll,
    /// Name of a feature flag, flag set or segment: a letter, then letters, digits, `-` and `_`.
    Flag,
    /// Name of a treatment: as a flag's, but may begin with a digit and hold dots.
    Treatment,
    /// A tag of a feature flag: letters, digits, `-`, `_` and `:`.
    FlagTag,
    /// A span in minutes or hours, such as `15m`.
    Window,
    /// The value of a variable of type `Number`, or nothing.
    Number,
    /// The version of a template: a letter or digit, then anything but white space, `/` and `&`.
    Version,
}

impl Rule {
    pub(super) fn holds(self, text: &str) -> bool {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let within = |longest: usize| text.chars().count() <= longest;
        let starts = |also: &str| {
            text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || also.contains(c))
        };
        match self {
            Self::Identifier => within(128) && starts("") && text.chars().all(word),
            Self::Name => {
                let inside = |c: char| word(c) || matches!(c, '-' | '.') || c.is_whitespace();
                within(128) && starts("-.0123456789") && text.chars().all(inside)
            }
            Self::Variable => {
                let inside = |c: char| word(c) || matches!(c, '.' | '$' | '-');
                within(128) && starts("") && text.chars().all(inside)
            }
            Self::Duration => text.trim().is_empty() || duration::parse(text).is_ok(),
            Self::Poll => text == "0" || Self::Duration.holds(text),
            Self::Version => {
                let inside = |c: char| !c.is_whitespace() && !matches!(c, '/' | '&');
                within(128)
                    && text.starts_with(|c: char| c.is_ascii_alphanumeric())
                    && text.chars().all(inside)
            }
            Self::Number => text.is_empty() || number::parse(text).is_some(),
            Self::Reference | Self::Filled => !text.trim().is_empty(),
            Self::Flag => {
                text.starts_with(|c: char| c.is_ascii_alphabetic())
                    && text.chars().all(|c| word(c) || c == '-')
            }
            Self::Treatment => {
                text.starts_with(|c: char| c.is_ascii_alphanumeric())
                    && text.chars().all(|c| word(c) || matches!(c, '-' | '.'))
            }
            Self::FlagTag => {
                !text.is_empty() && text.chars().all(|c| word(c) || matches!(c, '-' | ':'))
            }
            Self::Window => text
                .strip_suffix(['m', 'M', 'h', 'H'])
                .is_some_and(|digits| {
                    !digits.starts_with('0')
                        && !digits.is_empty()
                        && digits.chars().all(|c| c.is_ascii_digit())
                }),
        }
    }

    pub(super) fn form(self) -> &'static str {
        match self {
            Self::Identifier => {
                "an identifier: a letter or `_`, then letters, digits and `_`, at most 128 in all"
            }
            Self::Name => "a name: letters, digits, spaces, `_`, `-` and `.`, at most 128 in all",
            Self::Variable => {
                "a variable name: a letter or `_`, then letters, digits, `_`, `.`, `-` and `$`"
            }
            Self::Duration => {
                "a duration of whole numbers with units w, d, h, m or s, such as `30s`, `10m`, `1h 30m` or `2d`"
            }
            Self::Reference => {
                "the identifier of an entity, with `account.` or `org.` before it where it lives there"
            }
            Self::Filled => "a text that is not empty",
            Self::Poll => "a duration such as `2m` or `1h`, or 0 for not at all",
            Self::Flag => "a letter, then letters, digits, `-` and `_`",
            Self::Treatment => "a letter or digit, then letters, digits, `-`, `_` and `.`",
            Self::FlagTag => "letters, digits, `-`, `_` and `:`",
            Self::Number => "a number such as `3`, `-2` or `0.5`",
            Self::Window => "a span in minutes or hours such as `15m` or `2h`",
            Self::Version => {
                "a version: a letter or digit, then no spaces, `/` or `&`, at most 128 in all"
            }
        }
    }
}

/// What is wrong with a text that should be a duration.
pub(super) fn why_no_duration(text: &str) -> String {
    match duration::parse(text) {
        Err(duration::DurationError::Range(text)) => {
            format!("`{text}` is out of range: from 1 second to 53 weeks")
        }
        _ => format!("`{}` is no duration", shown(text)),
    }
}
