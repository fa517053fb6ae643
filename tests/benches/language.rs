//! What reading, checking and planning YAML costs, measured on this machine, judged by nobody.
//!
//! `cargo xtask bench` runs it. Times are medians. Memory is how much the peak of a process of its own grows
//! while it reads one document, as a multiple of the document's size.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use slipway_model::entity::{self, Parsed};
use slipway_model::id::{AccountId, OrgId, ProjectId, Scope};
use slipway_model::yaml::MOST_BYTES;
use slipway_plan::{Request, Snapshot};

/// Says that this process is to read a document from its input and tell its memory.
const CHILD: &str = "SLIPWAY_BENCH_READ";
/// Steps of the pipelines of the growth part. The last has more than a pipeline may have: it is checked, refused
/// and not planned.
const SIZES: [usize; 5] = [10, 100, 1_000, 5_000, 10_000];
const STEPS_OF_STAGE: usize = 100;

fn main() {
    if std::env::var_os(CHILD).is_some() {
        return read_and_tell();
    }
    growth();
    println!("\na document of {MOST_BYTES} bytes: aim 300 ms, memory 10 times its size");
    for (name, text) in documents() {
        large(name, &text);
    }
}

/// Times for pipelines of growing size.
fn growth() {
    println!("a pipeline of so many steps: aim for 1,000 steps 20 ms in all, growth at most 1.1");
    println!(
        "{:>8} {:>12} {:>12} {:>12}",
        "steps", "bytes", "validate ms", "plan ms"
    );
    let (mut validated, mut planned) = (Vec::new(), Vec::new());
    for steps in SIZES {
        let text = pipeline(steps);
        let repeats = (20_000 / steps).clamp(5, 200);
        let validate = median(repeats, || drop(entity::parse("p", &text)));
        validated.push((steps, validate));
        let plan = entity::parse("p", &text).ok().map(|parsed| {
            plan(&parsed);
            median(repeats, || plan(&parsed))
        });
        planned.extend(plan.map(|plan| (steps, plan)));
        let plan = plan.map_or("refused".to_owned(), |plan| format!("{:.3}", ms(plan)));
        println!(
            "{steps:>8} {:>12} {:>12.3} {plan:>12}",
            text.len(),
            ms(validate)
        );
    }
    println!(
        "growth exponent: validate {:.2}, plan {:.2}",
        exponent(&validated),
        exponent(&planned)
    );
}

/// The power of the size that the time grows with, from the first to the last.
fn exponent(times: &[(usize, Duration)]) -> f64 {
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return f64::NAN;
    };
    let time = last.1.as_secs_f64() / first.1.as_secs_f64();
    let size = last.0 as f64 / first.0 as f64;
    time.ln() / size.ln()
}

fn plan(parsed: &Parsed) {
    let scope = Scope::project(
        AccountId::new("acc"),
        OrgId::new("default"),
        ProjectId::new("default"),
    );
    let plan = slipway_plan::resolve(&Request {
        pipeline: parsed,
        inputs: &[],
        scope: &scope,
        entities: &Snapshot::default(),
        runnable: &|_| true,
        chosen: None,
        trigger: None,
    });
    if let Err(faults) = plan {
        panic!("{}", faults[0]);
    }
}

/// A pipeline of steps of two types; small, so that the longest fits into the largest document.
fn pipeline(steps: usize) -> String {
    let mut text = "pipeline:\n  identifier: p\n  name: p\n  stages:\n".to_owned();
    for step in 0..steps {
        if step % STEPS_OF_STAGE == 0 {
            let stage = step / STEPS_OF_STAGE;
            let _ = write!(
                text,
                "  - stage:\n      identifier: s{stage}\n      name: s {stage}\n      type: Custom\n      spec:\n        \
                 execution:\n          steps:\n"
            );
        }
        let head = format!(
            "          - step:\n              identifier: x{step}\n              name: step {step}\n"
        );
        text.push_str(&head);
        text.push_str(if step % 2 == 0 {
            "              type: Http\n              timeout: 1m\n              spec:\n                \
             url: https://<+stage.name>/<+pipeline.name>\n                method: GET\n"
        } else {
            "              type: ShellScript\n              spec:\n                shell: Bash\n                source:\n                  \
             type: Inline\n                  spec:\n                    script: |\n                      echo <+stage.name>\n"
        });
    }
    text
}

/// Documents of the largest size, of different make.
fn documents() -> Vec<(&'static str, String)> {
    let head = "pipeline:\n  identifier: p\n  name: p\n";
    let filled = |before: &str, unit: &dyn Fn(usize) -> String| {
        let mut text = before.to_owned();
        for n in 0.. {
            let unit = unit(n);
            if text.len() + unit.len() + 2 > MOST_BYTES {
                break;
            }
            text.push_str(&unit);
        }
        text
    };
    let script = filled(head, &|n| {
        format!("  description{n}: |\n{}", "    echo hello\n".repeat(100))
    });
    vec![
        (
            "steps",
            filled(&pipeline(4_000), &|n| {
                let line = format!("            # a comment, number {n}, of no interest\n");
                if n == 0 {
                    "  description: x\n".to_owned()
                } else {
                    line
                }
            }),
        ),
        (
            "unknown fields",
            filled(head, &|n| format!("  field{n}: value\n")),
        ),
        (
            "empty unknown fields",
            filled(head, &|n| format!("  field{n}:\n")),
        ),
        ("long texts", script),
        (
            "one text",
            format!("{head}  description: {}\n", "x".repeat(MOST_BYTES - 100)),
        ),
        (
            "short items",
            filled(&format!("{head}  tags: ["), &|_| "a,".to_owned()) + "]",
        ),
        (
            "wrong stages",
            filled(&format!("{head}  stages:\n"), &|_| "  - a: b\n".to_owned()),
        ),
        (
            "expressions",
            filled(&format!("{head}  tags:\n"), &|n| {
                format!("    k{n}: <+pipeline.variables.x>\n")
            }),
        ),
        (
            "one text of expressions",
            filled(&format!("{head}  description: "), &|_| "<+a.b>".to_owned()),
        ),
        (
            "bad expressions",
            filled(&format!("{head}  metadata:\n"), &|n| {
                format!("    k{n}: <+pipeline.>\n")
            }),
        ),
        (
            "steps of one name",
            filled(
                &format!(
                    "{head}  stages:\n  - stage:\n      spec:\n        execution:\n          steps:\n"
                ),
                &|_| "          - step: {identifier: a}\n".to_owned(),
            ),
        ),
        ("open brackets", filled(head, &|_| "[".to_owned())),
        ("comments", filled(head, &|_| "#\n".to_owned())),
    ]
}

fn large(name: &str, text: &str) {
    let mut outcome = String::new();
    let time = median(3, || {
        outcome = match entity::parse("p", text) {
            Ok(_) => "accepted".to_owned(),
            Err(faults) => faults[0].message.chars().take(60).collect(),
        };
    });
    let grown = memory(text).map_or("?".to_owned(), |bytes| {
        format!("{:.1}", bytes as f64 / text.len() as f64)
    });
    println!(
        "{name:>24} {:>9.1} ms {grown:>6} times  {outcome}",
        ms(time)
    );
}

/// By how many bytes the peak of a new process grows when it reads the text.
fn memory(text: &str) -> Option<u64> {
    let mut child = Command::new(std::env::current_exe().ok()?)
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(text.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

fn read_and_tell() {
    let mut text = String::with_capacity(MOST_BYTES + 1);
    let _ = std::io::stdin().read_to_string(&mut text);
    let before = peak();
    let parsed = entity::parse("p", &text);
    println!("{}", peak().saturating_sub(before));
    drop(parsed);
}

/// The most memory that this process ever had, in bytes; 0 where the system does not tell.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}

fn median(repeats: usize, mut work: impl FnMut()) -> Duration {
    let mut times: Vec<_> = (0..repeats)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
