//! From a seed to what happens in a world, and who posts what of it when.

use fastrand::Rng;

use super::sender::Sender;
use super::{Counts, WHOLE};

/// About so many deliveries in a world.
const DELIVERIES: usize = 250;

/// The same where runs really run.
const FEW_DELIVERIES: usize = 40;

/// When the first thing happens: an hour before the world begins.
const FIRST_S: i64 = 1_767_225_600 - 3_600;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Number in its world, from 1.
    pub(super) unique: u64,
    /// Who tells of it.
    pub(super) sender: Sender,
    /// Which of the branches or pull requests it is about.
    pub(super) line: usize,
    /// How many states its line had before.
    pub(super) number: usize,
    /// What the branch was at before, by [`Told::unique`]; 0 for nothing.
    pub(super) after: u64,
    /// When it happened.
    pub(super) at_s: i64,
}

impl Told {
    pub(super) fn commit(&self) -> String {
        format!("{:040x}", self.unique)
    }

    pub(super) fn before(&self) -> String {
        format!("{:040x}", self.after)
    }

    pub(super) fn branch(&self) -> String {
        match self.line {
            0 => "main".to_owned(),
            line => format!("branch-{line}"),
        }
    }

    pub(super) fn repository(&self) -> &'static str {
        match self.sender {
            Sender::GithubOther => "billing",
            _ => "shop",
        }
    }
}

/// One delivery: of what happened, by index, under which of its ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) post: usize,
    pub(super) id: u8,
}

/// What is posted at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) sent: Vec<Sent>,
    /// Milliseconds until the next moment.
    pub(super) then_ms: u64,
}

/// How bad it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weather {
    /// Of so many requests one goes wrong.
    pub(super) requests: u32,
    /// Of so many invocations one goes wrong.
    pub(super) invocations: u32,
}

/// A world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) seed: u64,
    /// Whether runs run on the real machines.
    pub(super) whole: bool,
    pub(super) weather: Weather,
    /// What happened.
    pub(super) told: Vec<Told>,
    /// What one delivery tells of, by index in `told`.
    pub(super) posts: Vec<Vec<usize>>,
    pub(super) moments: Vec<Moment>,
    /// What is posted again after the end, and after how many hours.
    pub(super) replays: Vec<(u64, Sent)>,
    /// Duplicates, replays and late deliveries of it.
    pub(super) counts: Counts,
}

impl Script {
    pub(super) fn of(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let whole = seed % WHOLE == WHOLE - 1;
        let weather = match random.u32(0..10) {
            0 => Weather {
                requests: u32::MAX,
                invocations: u32::MAX,
            },
            1..=3 => Weather {
                requests: 400,
                invocations: 20,
            },
            4..=8 => Weather {
                requests: 80,
                invocations: 8,
            },
            _ => Weather {
                requests: 25,
                invocations: 3,
            },
        };
        let mut script = Self {
            seed,
            whole,
            weather,
            told: Vec::new(),
            posts: Vec::new(),
            moments: Vec::new(),
            replays: Vec::new(),
            counts: Counts {
                whole: u64::from(whole),
                ..Counts::default()
            },
        };
        let most = if whole { FEW_DELIVERIES } else { DELIVERIES };
        script.happen(most * 69 / 100, &mut random);
        let order = script.order(&mut random);
        script.send(order, &mut random);
        script
    }

    /// What happens, one thing after the other.
    fn happen(&mut self, most: usize, random: &mut Rng) {
        let mut newest = std::collections::BTreeMap::<(Sender, usize), (usize, u64)>::new();
        while self.posts.len() < most {
            let sender = Sender::ALL[random.usize(0..Sender::ALL.len())];
            let lines = match sender.at_once() {
                1 => vec![random.usize(0..3)],
                several => (0..several).collect(),
            };
            let at_s = FIRST_S + i64::try_from(self.posts.len()).unwrap_or_default();
            let mut post = Vec::new();
            for line in lines {
                let unique = self.told.len() as u64 + 1;
                let before = newest.entry((sender, line)).or_default();
                post.push(self.told.len());
                self.told.push(Told {
                    unique,
                    sender,
                    line,
                    number: before.0,
                    after: before.1,
                    at_s,
                });
                *before = (before.0 + 1, unique);
            }
            self.posts.push(post);
        }
    }

    /// The order in which it is posted for the first time: a tenth comes after what happened later.
    fn order(&mut self, random: &mut Rng) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.posts.len()).collect();
        for at in 0..order.len() {
            // Of all deliveries, with the duplicates.
            if random.u32(0..100) < 17 {
                let to = (at + random.usize(2..30)).min(order.len() - 1);
                let moved = order.remove(at);
                order.insert(to, moved);
            }
        }
        let mut newest = 0;
        for at in &order {
            self.counts.late += u64::from(*at < newest);
            newest = newest.max(*at);
        }
        order
    }

    /// Who posts it when: three of ten deliveries tell what another one told, at the same moment or some moments later.
    fn send(&mut self, order: Vec<usize>, random: &mut Rng) {
        let mut later: Vec<(usize, Sent)> = Vec::new();
        let mut order = order.into_iter().peekable();
        let mut moment = 0;
        while order.peek().is_some() || !later.is_empty() {
            let mut sent = Vec::new();
            later.retain(|(when, again)| {
                let due = *when <= moment;
                if due {
                    sent.push(*again);
                }
                !due
            });
            for post in order.by_ref().take(random.usize(1..4)) {
                sent.push(Sent { post, id: 0 });
                // Of 69 there are some 30 more.
                while random.u32(0..100) < 30 {
                    let sender = self.told[self.posts[post][0]].sender;
                    let id = if sender.has_keys() {
                        random.u8(0..2)
                    } else {
                        0
                    };
                    let again = Sent { post, id };
                    match random.u32(0..3) {
                        0 => sent.push(again),
                        _ => later.push((moment + random.usize(1..40), again)),
                    }
                    self.counts.duplicates += 1;
                }
                if random.u32(0..69) == 0 {
                    let hours = random.u64(24..24 * 40);
                    self.replays.push((hours, Sent { post, id: 0 }));
                    self.counts.replays += 1;
                    self.counts.duplicates += 1;
                }
            }
            self.counts.deliveries += sent.len() as u64;
            let then_ms = match random.u32(0..4) {
                0 => 0,
                1..=2 => random.u64(1..4_000),
                _ => random.u64(4_000..20_000),
            };
            self.moments.push(Moment { sent, then_ms });
            moment += 1;
        }
        self.counts.deliveries += self.replays.len() as u64;
        self.counts.happenings = self.told.len() as u64;
    }
}
