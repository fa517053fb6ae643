//! Taking secrets out of a stream of bytes, wherever the stream was cut into chunks.

use std::ops::Range;

use aho_corasick::AhoCorasick;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// Values shorter than this are not masked: that would corrupt the log and hide nothing.
pub(super) const SHORTEST: usize = 4;

/// What stands where a secret was.
const MASK: &[u8] = b"**************";

/// The secrets of one task, in all forms in which they are looked for.
#[derive(Default)]
pub(super) struct Secrets {
    finder: Option<AhoCorasick>,
    /// Sorted, for finding what could be the beginning of a secret.
    forms: Vec<Vec<u8>>,
}

impl Secrets {
    /// Forms of a value: itself, without space at its end, each of its lines, and its base64 forms at
    /// all three alignments, so that it is found inside of `base64("user:" + value)` too.
    pub(super) fn new<'v>(values: impl IntoIterator<Item = &'v str>) -> Self {
        let mut forms = Vec::new();
        for value in values {
            let lines = value.lines().filter(|_| value.contains('\n'));
            for text in [value, value.trim_end()]
                .into_iter()
                .chain(lines.map(str::trim))
            {
                if text.len() >= SHORTEST {
                    forms.push(text.as_bytes().to_vec());
                }
            }
            if value.trim_end().len() >= SHORTEST {
                forms.extend(base64_forms(value.trim_end().as_bytes()));
            }
        }
        forms.sort_unstable();
        forms.dedup();
        let finder = AhoCorasick::new(&forms).ok().filter(|_| !forms.is_empty());
        Self { finder, forms }
    }

    /// `text` without secrets.
    pub(super) fn mask(&self, text: &str) -> String {
        let mut masker = Masker::new(self);
        let mut out = masker.push(text.as_bytes());
        out.extend(masker.finish());
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Where secrets are, in order; secrets that overlap are one.
    fn places(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let Some(finder) = &self.finder else {
            return Vec::new();
        };
        let found = finder
            .find_overlapping_iter(bytes)
            .map(|found| found.range());
        let mut found: Vec<Range<usize>> = found.collect();
        found.sort_unstable_by_key(|place| (place.start, place.end));
        let mut places: Vec<Range<usize>> = Vec::new();
        for place in found {
            match places.last_mut() {
                Some(last) if place.start < last.end => last.end = last.end.max(place.end),
                _ => places.push(place),
            }
        }
        places
    }

    /// Length of the longest end of `bytes` that could be the beginning of a secret.
    fn pending(&self, bytes: &[u8]) -> usize {
        let longest = self.forms.iter().map(Vec::len).max().unwrap_or(0);
        let first = bytes.len().saturating_sub(longest.saturating_sub(1));
        let begins = |start: &usize| {
            let tail = &bytes[*start..];
            let at = self.forms.partition_point(|form| form.as_slice() <= tail);
            self.forms
                .get(at)
                .is_some_and(|form| form.len() > tail.len() && form.starts_with(tail))
        };
        (first..bytes.len())
            .find(begins)
            .map_or(0, |start| bytes.len() - start)
    }
}

/// What of the base64 of a text that holds `value` does not depend on what stands around it.
fn base64_forms(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let padded: Vec<u8> = std::iter::repeat_n(0, before)
            .chain(value.iter().copied())
            .collect();
        // Characters that mix bits of the value with bits of its neighbours differ from case to case.
        let start = (before * 8).div_ceil(6);
        let end = padded.len() * 8 / 6;
        for text in [STANDARD.encode(&padded), URL_SAFE.encode(&padded)] {
            let stable = text.as_bytes().get(start..end).unwrap_or_default();
            if stable.len() >= SHORTEST {
                forms.push(stable.to_vec());
            }
        }
    }
    forms
}

/// Masks one stream.
pub(super) struct Masker<'s> {
    secrets: &'s Secrets,
    /// What could be the beginning of a secret.
    held: Vec<u8>,
    /// How many bytes of it belong to a secret whose mask is already out.
    covered: usize,
}

impl<'s> Masker<'s> {
    pub(super) fn new(secrets: &'s Secrets) -> Self {
        Self {
            secrets,
            held: Vec::new(),
            covered: 0,
        }
    }

    /// The next chunk; answers what is certain.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(chunk);
        let keep = self.held.len() - self.secrets.pending(&self.held);
        self.release(keep)
    }

    /// What is left at the end of the stream.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        self.release(self.held.len())
    }

    /// Lets the first `keep` bytes out, masked. A secret that begins in them may end in what stays.
    fn release(&mut self, keep: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(keep);
        let mut done = self.covered;
        for place in self.secrets.places(&self.held) {
            if place.start >= keep {
                break;
            }
            if place.start >= done {
                out.extend_from_slice(&self.held[done..place.start]);
                out.extend_from_slice(MASK);
            }
            done = done.max(place.end);
        }
        out.extend_from_slice(self.held.get(done..keep).unwrap_or_default());
        self.covered = done.saturating_sub(keep);
        self.held.drain(..keep);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(secrets: &[&str], text: &str, chunk: usize) -> String {
        let secrets = Secrets::new(secrets.iter().copied());
        let mut masker = Masker::new(&secrets);
        let mut out = Vec::new();
        for chunk in text.as_bytes().chunks(chunk) {
            out.extend(masker.push(chunk));
        }
        out.extend(masker.finish());
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn secrets_are_found_across_every_cut() {
        let text = "a hunter2 b hunt hunter2hunter2 line one\nline two; hunte";
        for chunk in 1..text.len() {
            let out = masked(&["hunter2", "line one\nline two"], text, chunk);
            let mask = "**************";
            assert_eq!(
                out,
                format!("a {mask} b hunt {mask}{mask} {mask}; hunte"),
                "{chunk}"
            );
        }
    }

    #[test]
    fn base64_around_a_secret_does_not_hide_it() {
        for before in ["", "u", "us", "user:"] {
            let encoded = STANDARD.encode(format!("{before}correct horse battery!"));
            let out = masked(&["correct horse battery"], &encoded, 5);
            assert!(out.contains("****") && !out.contains("b3JzZSBi"), "{out}");
        }
    }

    #[test]
    fn nothing_held_back_is_lost_and_short_values_are_left_alone() {
        assert_eq!(masked(&["abcd", "tru"], "true abc", 3), "true abc");
        assert_eq!(masked(&["pass\n"], "pass word", 2), "************** word");
    }

    #[test]
    fn a_secret_in_another_is_masked_with_it() {
        for chunk in 1..12 {
            let out = masked(&["abcdef", "cdefgh12"], "xabcdefgh12y", chunk);
            assert_eq!(out, "x**************y", "{chunk}");
        }
    }
}
