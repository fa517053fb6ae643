//! What a service's scheduler does next: which tasks it stops, how many it starts. Pure.
//!
//! The rules of a rolling update ("Deploy Amazon ECS services by replacing tasks", developer guide): never
//! fewer healthy tasks than the minimum healthy percent of the desired count by the scheduler's own doing,
//! never more tasks than the maximum percent of it.

/// Tasks that one look of the scheduler starts at most.
const BATCH: i64 = 10;

/// One task of the service that has not stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) key: String,
    /// Of the PRIMARY deployment.
    pub(crate) primary: bool,
    /// Already told to stop.
    pub(crate) stopping: bool,
    pub(crate) running: bool,
    pub(crate) healthy: bool,
    /// Found unhealthy, which is more than not healthy yet.
    pub(crate) unhealthy: bool,
}

/// Bounds on what the scheduler may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) desired: i64,
    /// Healthy tasks to leave.
    pub(crate) minimum: i64,
    /// Tasks to have at most.
    pub(crate) maximum: i64,
}

/// What to do now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Moves {
    /// Unhealthy tasks.
    pub(crate) unhealthy: Vec<String>,
    /// Tasks that are RUNNING and no longer wanted.
    pub(crate) running: Vec<String>,
    /// Tasks that never got to RUNNING and are no longer wanted.
    pub(crate) pending: Vec<String>,
    pub(crate) start: i64,
}

/// Decides, over `members` in the order of their creation.
pub(crate) fn decide(bounds: Bounds, members: &[Member]) -> Moves {
    let mut moves = Moves::default();
    let occupying = count(members, |_| true);
    let staying: Vec<&Member> = members.iter().filter(|one| !one.stopping).collect();
    for one in staying.iter().filter(|one| one.unhealthy) {
        moves.unhealthy.push(one.key.clone());
    }
    let well: Vec<&Member> = staying.into_iter().filter(|one| !one.unhealthy).collect();
    let (primary, old): (Vec<&Member>, Vec<&Member>) =
        well.into_iter().partition(|one| one.primary);

    let surplus = as_count(primary.len()) - bounds.desired;
    // The youngest go first, and before them those that do not run yet.
    let mut order: Vec<&Member> = primary.iter().rev().copied().collect();
    order.sort_by_key(|one| one.running);
    for one in order.into_iter().take(as_size(surplus)) {
        moves.stop(one);
    }

    let healthy_primary = healthy(&primary).min(bounds.desired);
    let mut spare = (healthy_primary + healthy(&old) - bounds.minimum).max(0);
    let mut covered = as_count(old.len()) - (bounds.desired - healthy_primary);
    let need = (bounds.desired - as_count(primary.len())).max(0);
    let room = bounds.maximum - occupying;
    // Without room for the new, old ones go first, as far as enough healthy ones stay.
    let shortage = (need - room.max(0)).max(0).min(need);
    if room <= 0 {
        let leaving = count(members, |one| one.stopping);
        covered = covered.max(shortage - leaving);
    }
    // What does not run serves nobody and does not count against the healthy.
    let mut order = old;
    order.sort_by_key(|one| one.healthy);
    for one in order {
        if !one.running {
            moves.stop(one);
            covered -= 1;
        } else if covered > 0 && (!one.healthy || spare > 0) {
            spare -= i64::from(one.healthy);
            covered -= 1;
            moves.stop(one);
        }
    }
    moves.start = need.min(room).clamp(0, BATCH);
    moves
}

impl Moves {
    fn stop(&mut self, one: &Member) {
        let list = if one.running {
            &mut self.running
        } else {
            &mut self.pending
        };
        list.push(one.key.clone());
    }
}

fn healthy(members: &[&Member]) -> i64 {
    as_count(members.iter().filter(|one| one.healthy).count())
}

fn count(members: &[Member], test: impl Fn(&Member) -> bool) -> i64 {
    as_count(members.iter().filter(|one| test(one)).count())
}

fn as_count(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

fn as_size(count: i64) -> usize {
    usize::try_from(count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A member per word: `p` of the PRIMARY deployment or `o` of an older one, then `+` healthy, `~` running
    /// and not healthy yet, `-` unhealthy, `.` pending, `x` told to stop.
    fn members(text: &str) -> Vec<Member> {
        let member = |(number, word): (usize, &str)| Member {
            key: format!("{word}{number}"),
            primary: word.starts_with('p'),
            stopping: word.ends_with('x'),
            running: !word.ends_with(['.', 'x']),
            healthy: word.ends_with('+'),
            unhealthy: word.ends_with('-'),
        };
        text.split_whitespace().enumerate().map(member).collect()
    }

    fn moves(desired: i64, minimum: i64, maximum: i64, text: &str) -> String {
        let bounds = Bounds {
            desired,
            minimum,
            maximum,
        };
        let moves = decide(bounds, &members(text));
        let stops: Vec<&str> = [&moves.unhealthy, &moves.running, &moves.pending]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        format!("start {} stop [{}]", moves.start, stops.join(" "))
    }

    #[test]
    fn table() {
        let rows = [
            (4, 4, 8, "", "a new service"),
            (20, 20, 40, "", "one batch at a time"),
            (4, 4, 8, "o+ o+ o+ o+", "room to start all"),
            (4, 4, 8, "o+ o+ o+ o+ p. p. p. p.", "waiting"),
            (4, 4, 8, "o+ o+ o+ o+ p+ p~ p. p.", "one covered"),
            (4, 4, 6, "o+ o+ o+ o+ p+ p+", "no room, two covered"),
            (
                4,
                4,
                6,
                "ox ox o+ o+ p+ p+",
                "room is free only when they are gone",
            ),
            (4, 2, 4, "o+ o+ o+ o+", "no room: old ones go first"),
            (4, 2, 4, "ox ox o+ o+", "and no more than that"),
            (1, 1, 1, "o+", "blocked by its own percentages"),
            (1, 0, 1, "o+", "down, then up"),
            (
                4,
                4,
                8,
                "o. o+ o~ o+ p+ p+ p+ p.",
                "what does not run goes first",
            ),
            (1, 1, 2, "p+ p+ p.", "scaled in"),
            (0, 0, 0, "p+ o+ o.", "scaled to nothing"),
            (2, 2, 4, "p- p+", "unhealthy"),
            (2, 2, 4, "o+ o+ p- p-", "unhealthy over good ones"),
        ];
        let table: Vec<String> = rows
            .into_iter()
            .map(|(desired, minimum, maximum, text, why)| {
                format!("{why}: {}", moves(desired, minimum, maximum, text))
            })
            .collect();
        insta::assert_snapshot!(table.join("\n"), @r"
    a new service: start 4 stop []
    one batch at a time: start 10 stop []
    room to start all: start 4 stop []
    waiting: start 0 stop []
    one covered: start 0 stop [o+0]
    no room, two covered: start 0 stop [o+0 o+1]
    room is free only when they are gone: start 0 stop []
    no room: old ones go first: start 0 stop [o+0 o+1]
    and no more than that: start 0 stop []
    blocked by its own percentages: start 0 stop []
    down, then up: start 0 stop [o+0]
    what does not run goes first: start 0 stop [o~2 o+1 o.0]
    scaled in: start 0 stop [p+1 p.2]
    scaled to nothing: start 0 stop [p+0 o+1 o.2]
    unhealthy: start 1 stop [p-0]
    unhealthy over good ones: start 0 stop [p-2 p-3]
    ");
    }
}
