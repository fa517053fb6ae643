//! What people do, a line each: `[refused] WHO VERB … [in RUN] [when NODE is STATUS [in RUN]]`.
//!
//! | verb | what follows | what it is |
//! |---|---|---|
//! | `starts` | `with variable=value` …, or `only` some stages | a run of the pipeline `release` |
//! | `approves`, `rejects` | step, `input=value` … | an answer to a HarnessApproval |
//! | `answers` | step, action | an answer to a failure that asks (ManualIntervention) |
//! | `gives` | step, `field=value` … | execution-time inputs |
//! | `begins` | stage | a stage that somebody must start (`runMode: Manual`) |
//! | `fails` | step, `stages.` and a stage, or none for all that runs | marked as failed |
//! | `pauses`, `resumes` | | interrupts of the run |
//! | `aborts` | nothing, or `stages.` and a stage | the run, or that stage |
//! | `retries` | stages | a retry from these stages |
//! | `reruns`, `notes` | nothing, a word | a run that repeats it; a note about it |
//! | `undoes` | nothing | a post-deployment rollback of the run |
//! | `moves` | ticket, `to`, state | what somebody does in Jira or ServiceNow |
//!
//! Runs are numbered in the order of their start; without a number it is the first. NODE is `run`, or the identifier
//! of a stage, step group or step. `kill` in the place of WHO and VERB kills `slipway local`, where there is one.

/// One line.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    /// As it is written.
    pub(crate) text: String,
    /// Who says it; nobody kills.
    pub(crate) who: Option<String>,
    /// What is done.
    pub(crate) verb: String,
    /// To what, and with what.
    pub(crate) rest: Vec<String>,
    /// About which run, from 0.
    pub(crate) run: usize,
    /// When it is said; at once if not given.
    pub(crate) when: Option<When>,
    /// Whether it is refused.
    pub(crate) refused: bool,
}

/// A moment that is waited for.
#[derive(Clone, Debug)]
pub(crate) struct When {
    /// The run, from 0.
    pub(crate) run: usize,
    /// `run`, or an identifier.
    pub(crate) node: String,
    /// One of its statuses.
    pub(crate) status: String,
}

impl Word {
    /// Whether it begins a run of its own accord.
    pub(crate) fn starts(&self) -> bool {
        self.verb == "starts"
    }

    /// Whether it adds a run.
    pub(crate) fn adds_run(&self) -> bool {
        matches!(&*self.verb, "starts" | "retries" | "reruns" | "undoes")
    }

    /// The ticket that is moved, and to which state.
    pub(crate) fn moves(&self) -> Option<(&str, &str)> {
        match (&*self.verb, self.rest.as_slice()) {
            ("moves", [ticket, to, state]) if to == "to" => Some((ticket, state)),
            _ => None,
        }
    }

    /// `NAME=VALUE`s among what follows the verb.
    pub(crate) fn values(&self) -> Vec<(&str, &str)> {
        self.rest
            .iter()
            .filter_map(|word| word.split_once('='))
            .collect()
    }
}

/// Reads a line.
///
/// # Errors
/// When it is none.
pub(crate) fn read(line: &str) -> Result<Word, String> {
    let text = line.trim().to_owned();
    let (said, when) = match text.split_once(" when ") {
        Some((said, when)) => (said, Some(moment(when)?)),
        None => (text.as_str(), None),
    };
    let mut words: Vec<String> = said.split_whitespace().map(str::to_owned).collect();
    let run = run_of(&mut words)?;
    let refused = words.first().is_some_and(|word| word == "refused");
    if refused {
        words.remove(0);
    }
    let who = match words.first().map(String::as_str) {
        None => return Err("nobody does anything".to_owned()),
        Some("kill") => None,
        Some(_) => Some(words.remove(0)),
    };
    if words.is_empty() {
        return Err("nothing is done".to_owned());
    }
    let verb = words.remove(0);
    let when = when.map(|(at, node, status)| When {
        run: at.or(run).unwrap_or(0),
        node,
        status,
    });
    Ok(Word {
        who,
        verb,
        rest: words,
        run: run.unwrap_or(0),
        when,
        refused,
        text: said.to_owned(),
    })
}

type Moment = (Option<usize>, String, String);

fn moment(text: &str) -> Result<Moment, String> {
    let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let run = run_of(&mut words)?;
    match words.as_slice() {
        [node, is, status] if is == "is" => Ok((run, node.clone(), status.clone())),
        _ => Err(format!("`{text}` is not NODE is STATUS")),
    }
}

/// Takes `in RUN` from the end.
fn run_of(words: &mut Vec<String>) -> Result<Option<usize>, String> {
    let at = words.len().saturating_sub(2);
    match &words[at..] {
        [word, number] if word == "in" => {
            let number: usize = number.parse().map_err(|_| format!("run {number}?"))?;
            words.truncate(at);
            Ok(Some(number.checked_sub(1).ok_or("runs count from 1")?))
        }
        _ => Ok(None),
    }
}
