//! Hosts that are left alone for a while, because they said so or broke.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use slipway_clock::Clock;

/// Shortest wait.
const SHORTEST: Duration = Duration::from_secs(1);
/// Longest wait, whatever a host says.
const LONGEST: Duration = Duration::from_mins(5);
/// Most hosts that are remembered.
const MOST_HOSTS: usize = 10_000;

/// The hosts of this process that are left alone.
#[derive(Debug, Default)]
pub(crate) struct Held {
    hosts: Mutex<HashMap<String, Hold>>,
}

#[derive(Clone, Copy, Debug)]
struct Hold {
    until_ms: i64,
    /// How often it failed in a row.
    times: u32,
}

impl Held {
    /// How long a host is still to be left alone.
    pub(super) fn wait(&self, host: &str, clock: &Clock) -> Option<Duration> {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let left = hosts.get(host)?.until_ms - clock.now_ms();
        let left = u64::try_from(left).ok().filter(|left| *left > 0)?;
        Some(Duration::from_millis(left))
    }

    /// Leaves a host alone that is busy or broken; for how long.
    pub(super) fn hold(&self, host: &str, headers: &HeaderMap, clock: &Clock) -> Duration {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock.now_ms();
        let times = hosts.get(host).map_or(0, |hold| hold.times);
        // Twice as long each time, where it says nothing or less.
        let doubled = SHORTEST.saturating_mul(2_u32.saturating_pow(times.min(20)));
        let wait = told(headers, now).unwrap_or(SHORTEST).max(doubled);
        let wait = wait.clamp(SHORTEST, LONGEST);
        if hosts.len() >= MOST_HOSTS {
            hosts.retain(|_, hold| hold.until_ms > now);
        }
        let until_ms = now.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
        if hosts.len() < MOST_HOSTS || hosts.contains_key(host) {
            let hold = Hold {
                until_ms,
                times: times + 1,
            };
            hosts.insert(host.to_owned(), hold);
        }
        wait
    }

    /// A host that answers is asked again.
    pub(super) fn release(&self, host: &str) {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.remove(host);
    }
}

/// `Retry-After`, in seconds or as a date, or GitHub's word for the same; `None` where it is none.
fn told(headers: &HeaderMap, now_ms: i64) -> Option<Duration> {
    let text = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.map(str::trim)
    };
    let until = |ms: i64| {
        let left = u64::try_from(ms.saturating_sub(now_ms)).ok()?;
        Some(Duration::from_millis(left))
    };
    if let Some(retry) = text(RETRY_AFTER.as_str()) {
        if let Ok(seconds) = retry.parse::<u64>() {
            return Some(Duration::from_secs(seconds));
        }
        let date = DateTimeParser::new().parse_timestamp(retry);
        return date
            .ok()
            .and_then(|at: Timestamp| until(at.as_millisecond()));
    }
    let reset = text("x-ratelimit-reset")?.parse::<i64>().ok()?;
    until(reset.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().expect("a header"));
        headers
    }

    /// N6.
    #[tokio::test(start_paused = true)]
    async fn waits_are_what_a_host_says_between_a_second_and_five_minutes() {
        let start: Timestamp = "2026-11-23T12:00:00Z".parse().expect("a time");
        for (told, seconds) in [
            ("3", 3),
            ("0", 1),
            ("-1", 1),
            ("1000000000", 300),
            ("99999999999999999999999", 1),
            ("soon", 1),
            ("", 1),
            ("Mon, 23 Nov 2026 12:00:30 GMT", 30),
            ("Mon, 23 Nov 2026 11:00:00 GMT", 1),
            ("Tue, 24 Nov 2026 12:00:00 GMT", 300),
            ("Mon, 99 Nov 2026 12:00:00 GMT", 1),
        ] {
            let (held, clock) = (Held::default(), Clock::paused(start));
            let wait = held.hold("h", &headers("retry-after", told), &clock);
            assert_eq!(wait, Duration::from_secs(seconds), "{told:?}");
            assert_eq!(held.wait("h", &clock), Some(wait));
            assert_eq!(held.wait("other", &clock), None);
        }
        let (held, clock) = (Held::default(), Clock::paused(start));
        let reset = (start.as_second() + 40).to_string();
        let wait = held.hold("h", &headers("x-ratelimit-reset", &reset), &clock);
        assert_eq!(wait, Duration::from_secs(40));
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_stays_broken_is_asked_ever_less_until_it_answers() {
        let clock = Clock::paused("2026-11-23T12:00:00Z".parse().expect("a time"));
        let held = Held::default();
        let mut waits = Vec::new();
        for _ in 0..11 {
            waits.push(held.hold("h", &HeaderMap::new(), &clock).as_secs());
            clock.sleep(Duration::from_mins(5)).await;
            assert_eq!(held.wait("h", &clock), None);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        held.release("h");
        assert_eq!(held.hold("h", &HeaderMap::new(), &clock).as_secs(), 1);
    }
}
