//! The line of a hold: who has it and who waits, in order. Pure; [`crate::Store`] reads and writes it.
//!
//! Who asks may stand within others: what these hold is not waited for, since they wait for who asks. Those that stand
//! within a holder come right behind it, before all others, and take turns among themselves. So a line of
//! `parent, child, other child, stranger` is held by the parent and its child at once.

use serde::{Deserialize, Serialize};

use crate::hold::Holder;

/// Who asks for a hold.
#[derive(Clone, Debug)]
pub struct Claim {
    /// In whose name.
    pub holder: Holder,
    /// Those that who asks is a part of: what they hold is no reason to wait.
    pub within: Vec<Holder>,
    /// A part of who asks: where it has the hold, who asks has it from now on, for longer.
    pub widens: Option<Holder>,
    /// What wakes who asks.
    pub token: Option<String>,
}

/// A holder or waiter, and the token that wakes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    holder: Holder,
    #[serde(default)]
    token: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    within: Vec<Holder>,
}

impl Entry {
    fn is_within(&self, other: &Entry) -> bool {
        self.within.contains(&other.holder)
    }
}

/// The line of one hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Line(Vec<Entry>);

/// What became of a claim.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// How many are waited for; none where the hold is had.
    pub(crate) ahead: usize,
    /// Whether the line is another than before.
    pub(crate) changed: bool,
}

impl Line {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Finds the place of who asks, or gives it one. Asking again keeps it, unless a better one has come up meanwhile.
    pub(crate) fn place(&mut self, claim: &Claim) -> Placed {
        if self.is_covered(claim) {
            return Placed {
                ahead: 0,
                changed: false,
            };
        }
        let known = self.0.iter().position(|own| own.holder == claim.holder);
        let mut changed = match known {
            Some(at) => {
                let entry = &mut self.0[at];
                let newer = claim.token.is_some() && entry.token != claim.token;
                if newer {
                    entry.token.clone_from(&claim.token);
                }
                let moved = entry.within != claim.within;
                entry.within.clone_from(&claim.within);
                newer || moved
            }
            None => {
                self.0.push(Entry {
                    holder: claim.holder.clone(),
                    token: claim.token.clone(),
                    within: claim.within.clone(),
                });
                true
            }
        };
        let mut at = known.unwrap_or(self.0.len() - 1);
        if let Some(better) = self.better(at, claim) {
            let entry = self.0.remove(at);
            self.0.insert(better, entry);
            (at, changed) = (better, true);
        }
        Placed {
            ahead: self.waited_for(at).count(),
            changed,
        }
    }

    /// Takes a holder or waiter out; `false` where it was not in the line.
    pub(crate) fn leave(&mut self, holder: &Holder) -> bool {
        let before = self.0.len();
        self.0.retain(|entry| entry.holder != *holder);
        self.0.len() != before
    }

    /// The tokens of those that have the hold, and of those that may have it when they ask again.
    pub(crate) fn called(&self) -> Vec<String> {
        let mut tokens: Vec<String> = Vec::new();
        for (at, entry) in self.0.iter().enumerate() {
            let enclosed = (0..at).any(|other| entry.is_within(&self.0[other]) && self.has(other));
            let token = entry.token.as_ref();
            let token = token.filter(|token| (enclosed || self.has(at)) && !tokens.contains(token));
            tokens.extend(token.cloned());
        }
        tokens
    }

    /// The tokens of those that need not wait for `holder`, which they are within.
    pub(crate) fn parts_of(&self, holder: &Holder) -> Vec<String> {
        let parts = self.0.iter().filter(|part| part.within.contains(holder));
        let mut tokens: Vec<String> = parts.filter_map(|part| part.token.clone()).collect();
        tokens.dedup();
        tokens
    }

    /// Whom the first waits for that `own` is true of.
    pub(crate) fn ahead_of(&self, own: impl Fn(&Holder) -> bool) -> Vec<Holder> {
        let at = self.0.iter().position(|entry| own(&entry.holder));
        let ahead = at.map(|at| self.waited_for(at).map(|entry| entry.holder.clone()));
        ahead.into_iter().flatten().collect()
    }

    /// Those ahead of a place that are a reason to wait.
    fn waited_for(&self, at: usize) -> impl Iterator<Item = &Entry> {
        let own = &self.0[at];
        self.0[..at].iter().filter(|other| !own.is_within(other))
    }

    fn has(&self, at: usize) -> bool {
        self.waited_for(at).next().is_none()
    }

    /// Whether the run that who asks belongs to has the hold as a whole: its parts need no place of their own, since
    /// they do not outlive it.
    fn is_covered(&self, claim: &Claim) -> bool {
        let whole = |entry: &Entry| {
            entry.holder.run == claim.holder.run && claim.within.contains(&entry.holder)
        };
        (0..self.0.len()).any(|at| whole(&self.0[at]) && self.has(at))
    }

    /// Where who stands at `at` belongs instead, if it does not have the hold: before what it widens, or behind the one
    /// that has the hold and that it is within, before all who are not.
    fn better(&self, at: usize, claim: &Claim) -> Option<usize> {
        if self.has(at) {
            return None;
        }
        let mut ahead = (0..at).rev().filter(|other| self.has(*other));
        if let Some(part) = &claim.widens
            && let Some(other) = ahead.clone().find(|other| self.0[*other].holder == *part)
        {
            return Some(other);
        }
        let around = ahead.find(|other| claim.within.contains(&self.0[*other].holder))?;
        let stranger = |other: &usize| !self.0[*other].is_within(&self.0[around]);
        (around + 1..at).find(stranger)
    }
}

#[cfg(test)]
mod tests;
