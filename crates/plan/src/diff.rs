//! What changed between two plans, as text.

use std::fmt::Write as _;

use crate::{Plan, text};

/// Most pairs of lines that are compared one by one; what changed beyond is shown as replaced as a whole.
const MOST_PAIRS: usize = 4_000_000;

/// What changed from one plan to another: lines of [`text()`] that are gone (`-`) and new (`+`), each below the
/// unchanged lines that say where it belongs. Empty when the plans read alike.
pub fn diff(old: &Plan, new: &Plan) -> String {
    lines(&text(old), &text(new))
}

fn lines(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(&new).take_while(same).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev());
    let tail = tail.take_while(same).count();
    let (a, b) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut page = Page::default();
    old[..head].iter().for_each(|line| page.kept(line));
    if a.len().saturating_mul(b.len()) > MOST_PAIRS {
        a.iter().for_each(|line| page.changed('-', line));
        b.iter().for_each(|line| page.changed('+', line));
    } else {
        page.walk(a, b);
    }
    page.out
}

#[derive(Default)]
struct Page<'t> {
    out: String,
    /// Unchanged lines around, the outermost first, with whether each was written.
    around: Vec<(&'t str, bool)>,
}

fn depth(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

impl<'t> Page<'t> {
    /// Walks along a longest common sequence of lines.
    fn walk(&mut self, old: &[&'t str], new: &[&'t str]) {
        let width = new.len() + 1;
        let mut longest = vec![0u32; (old.len() + 1) * width];
        for i in (0..old.len()).rev() {
            for j in (0..new.len()).rev() {
                longest[i * width + j] = match old[i] == new[j] {
                    true => longest[(i + 1) * width + j + 1] + 1,
                    false => longest[(i + 1) * width + j].max(longest[i * width + j + 1]),
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < old.len() || j < new.len() {
            if i < old.len() && j < new.len() && old[i] == new[j] {
                self.kept(old[i]);
                (i, j) = (i + 1, j + 1);
            } else if j == new.len()
                || i < old.len() && longest[(i + 1) * width + j] >= longest[i * width + j + 1]
            {
                self.changed('-', old[i]);
                i += 1;
            } else {
                self.changed('+', new[j]);
                j += 1;
            }
        }
    }

    fn leave(&mut self, line: &str) {
        let inner = |(outer, _): &(&str, bool)| depth(outer) < depth(line);
        let kept = self.around.iter().take_while(|outer| inner(outer)).count();
        self.around.truncate(kept);
    }

    fn kept(&mut self, line: &'t str) {
        self.leave(line);
        self.around.push((line, false));
    }

    fn changed(&mut self, sign: char, line: &str) {
        self.leave(line);
        for (outer, written) in &mut self.around {
            if !*written {
                // Writing to a String cannot fail.
                let _ = writeln!(self.out, "  {outer}");
                *written = true;
            }
        }
        let _ = writeln!(self.out, "{sign} {line}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn changes_stand_below_what_they_belong_to() {
        let old = "pipeline p\n  variable a = 1\n  stage s\n    step x\n      time = 1\n      size = 2\n  stage t\n    step y\n";
        let new = "pipeline p\n  variable a = 1\n  stage s\n    step x\n      time = 3\n      size = 2\n  stage t\n    step z\n    step y\n";
        insta::assert_snapshot!(lines(old, new), @r"
          pipeline p
            stage s
              step x
        -       time = 1
        +       time = 3
            stage t
        +     step z
        ");
        assert_eq!(lines(old, old), "");
    }

    #[test]
    fn long_changes_are_shown_as_a_whole() {
        let text = |from: usize| {
            (from..from + 3_000)
                .map(|n| format!("l{n}\n"))
                .collect::<String>()
        };
        assert_eq!(lines(&text(0), &text(10_000)).lines().count(), 6_000);
    }

    proptest! {
        #[test]
        fn a_diff_leads_from_the_one_to_the_other(old in proptest::collection::vec("[ab]{1,2}", 0..12), new in proptest::collection::vec("[ab]{1,2}", 0..12)) {
            let found = lines(&old.join("\n"), &new.join("\n"));
            let count = |sign: char| found.lines().filter(|line| line.starts_with(sign)).count();
            // Lines without indentation have nothing around them, so only changes are written.
            prop_assert_eq!(count('-') + new.len(), count('+') + old.len());
            prop_assert_eq!(found.is_empty(), old == new);
        }
    }
}
