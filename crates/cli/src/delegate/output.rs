//! From the bytes that a script prints to the lines of its log, in constant memory.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use slipway_clock::Clock;
use slipway_store::record::LogLine;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc::Sender;

use super::mask::{Masker, Secrets};

/// Longest line of the log, in bytes: the log service's limit is 64 KiB with what is around it.
const LONGEST_LINE: usize = 60 * 1024;

/// What a line costs beside its text, so that a flood of empty lines ends too.
const LINE_COST: usize = 64;

/// Bytes that are read at once.
const CHUNK: usize = 32 * 1024;

/// What a script may still print into its log; both of its streams draw on it.
pub(super) struct Budget {
    limit: usize,
    left: AtomicUsize,
    told: AtomicBool,
}

impl Budget {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            left: AtomicUsize::new(limit),
            told: AtomicBool::new(false),
        }
    }

    fn take(&self, bytes: usize) -> bool {
        let left = |left: usize| left.checked_sub(bytes);
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left)
            .is_ok()
    }

    /// Nothing more is kept from now on; answers the line that says so, once.
    fn end(&self) -> Option<String> {
        self.left.store(0, Ordering::Relaxed);
        let limit = self.limit / (1024 * 1024);
        (!self.told.swap(true, Ordering::Relaxed)).then(|| {
            format!(
                "The output is longer than {limit} MiB, with {LINE_COST} bytes counted for each line; the \
                 rest of it is not kept."
            )
        })
    }
}

/// Reads one stream to its end and sends its lines. Goes on reading when the budget is used up or nobody
/// takes lines any more, so that the script does not hang on a full pipe.
pub(super) async fn copy(
    mut stream: impl AsyncRead + Unpin,
    level: &'static str,
    secrets: &Secrets,
    budget: &Budget,
    clock: &Clock,
    lines: &Sender<LogLine>,
) {
    let mut masker = Masker::new(secrets);
    let mut cutter = Cutter::default();
    let mut chunk = vec![0; CHUNK];
    let mut open = true;
    while let Ok(read @ 1..) = stream.read(&mut chunk).await {
        if open {
            let masked = masker.push(&chunk[..read]);
            open = send(cutter.push(&masked), level, secrets, budget, clock, lines).await;
        }
    }
    if open {
        let mut rest = cutter.push(&masker.finish());
        rest.extend(cutter.finish());
        send(rest, level, secrets, budget, clock, lines).await;
    }
}

/// Sends lines while the budget lasts; answers whether more are welcome.
async fn send(
    texts: Vec<Vec<u8>>,
    level: &'static str,
    secrets: &Secrets,
    budget: &Budget,
    clock: &Clock,
    lines: &Sender<LogLine>,
) -> bool {
    for text in texts {
        let welcome = budget.take(text.len() + LINE_COST);
        // Once more, because taking control characters out may have put a secret together.
        let out = match welcome {
            true => Some(secrets.mask(&clean(&text))),
            false => budget.end(),
        };
        let Some(out) = out else { return false };
        if lines.send(line(clock, level, out)).await.is_err() || !welcome {
            return false;
        }
    }
    true
}

/// A line of the log as of now.
pub(super) fn line(clock: &Clock, level: &str, mut out: String) -> LogLine {
    out.push('\n');
    LogLine {
        level: level.to_owned(),
        out,
        time: clock.now().to_string(),
    }
}

/// Cuts bytes into lines. A carriage return ends a line as well, so that a progress bar cannot
/// overwrite what stands before it; a line that is too long is cut.
#[derive(Default)]
struct Cutter {
    line: Vec<u8>,
    after_return: bool,
}

impl Cutter {
    fn push(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        for &byte in bytes {
            let was_return = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if was_return => {}
                b'\n' | b'\r' => lines.push(std::mem::take(&mut self.line)),
                _ => {
                    // Not in the middle of a character.
                    if self.line.len() >= LONGEST_LINE && !(0x80..0xc0).contains(&byte) {
                        lines.push(std::mem::take(&mut self.line));
                    }
                    if self.line.len() < LONGEST_LINE + 4 {
                        self.line.push(byte);
                    }
                }
            }
        }
        lines
    }

    fn finish(&mut self) -> Option<Vec<u8>> {
        let rest = std::mem::take(&mut self.line);
        (!rest.is_empty()).then_some(rest)
    }
}

/// Text of a line: no control characters but tabs, no terminal sequences (colours, links, cursor moves).
fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if !text.contains(|c: char| c.is_control() && c != '\t') {
        return text.into_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => match chars.next() {
                Some('[') => {
                    while chars.next_if(|c| !('@'..='~').contains(c)).is_some() {}
                    chars.next();
                }
                Some(']') => while chars.next().is_some_and(|c| c != '\x07' && c != '\\') {},
                _ => {}
            },
            '\t' => out.push('\t'),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], secrets: &[&str], limit: usize) -> Vec<String> {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(100_000);
        let secrets = Secrets::new(secrets.iter().copied());
        let budget = Budget::new(limit);
        copy(input, "INFO", &secrets, &budget, &Clock::system(), &sender).await;
        drop(sender);
        let mut out = Vec::new();
        while let Some(line) = receiver.recv().await {
            out.push(line.out);
        }
        out
    }

    #[tokio::test]
    async fn lines_are_cut_and_cleaned() {
        let input = b"a\r\n\nred \x1b[31mfish\x1b[0m\x1b]8;;http://x\x07link\x1b]8;;\x07\n50%\r100%\nz\xff\0!";
        let out = lines(input, &[], 1 << 20).await;
        assert_eq!(
            out,
            [
                "a\n",
                "\n",
                "red fishlink\n",
                "50%\n",
                "100%\n",
                "z\u{fffd}!\n"
            ]
        );
    }

    #[tokio::test]
    async fn a_secret_is_masked_even_when_control_characters_split_it() {
        let out = lines(b"hun\0ter2 hun\x1b[1mter2", &["hunter2"], 1 << 20).await;
        assert_eq!(out, ["************** **************\n"]);
    }

    #[tokio::test]
    async fn long_lines_and_long_outputs_end() {
        let out = lines(&vec![b'x'; 150_000], &[], 1 << 20).await;
        assert_eq!(
            out.iter().map(String::len).collect::<Vec<_>>(),
            [61_441, 61_441, 27_121]
        );
        let out = lines("y\n".repeat(1_000_000).as_bytes(), &[], 1 << 20).await;
        assert_eq!(out.len(), (1 << 20) / 65 + 1);
        let last = out.last().expect("lines");
        assert!(
            last.starts_with("The output is longer than 1 MiB"),
            "{last}"
        );
        // A budget that is used up to the last byte.
        let out = lines("abc\n".repeat(100).as_bytes(), &[], 67 * 10).await;
        assert_eq!(out.len(), 11);
    }
}
