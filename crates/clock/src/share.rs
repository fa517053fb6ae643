//! Who waits while others keep coming: what comes from outside is taken in before what it sets going is done.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// While more keeps coming, one begins for so many that came.
const ONE_IN: u64 = 16;
/// However many come, one begins after so long.
const LATEST: Duration = Duration::from_millis(250);

/// How many of those that stand in line may begin. Whoever keeps the line looks at it now and then: a look that finds
/// nobody new lets in as many as there is room for.
#[derive(Debug, Default)]
pub struct Share {
    /// How many have come, and how many there were at the last look.
    came: u64,
    seen: u64,
    /// How many came for whom nobody was let in yet.
    owed: u64,
    /// When somebody was let in last.
    let_in: Option<Timestamp>,
}

impl Share {
    /// Notes that so many joined the line.
    pub fn come(&mut self, count: u64) {
        self.came += count;
    }

    /// Notes that somebody was let in.
    pub fn let_in(&mut self, now: Timestamp) {
        self.let_in = Some(now);
    }

    /// Looks at the line: how many may be let in, as far as those who still come are concerned.
    pub fn due(&mut self, now: Timestamp) -> usize {
        let came = self.came - std::mem::replace(&mut self.seen, self.came);
        if came == 0 {
            self.owed = 0;
            return usize::MAX;
        }
        self.owed += came;
        let due = self.owed / ONE_IN;
        self.owed %= ONE_IN;
        let latest = SignedDuration::try_from(LATEST).unwrap_or(SignedDuration::MAX);
        let late = self
            .let_in
            .is_some_and(|last| now.duration_since(last) >= latest);
        usize::try_from(due.max(u64::from(late))).unwrap_or(usize::MAX)
    }
}
