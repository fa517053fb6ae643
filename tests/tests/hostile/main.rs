//! The "bad input" of the design, against `slipway local` as users start it: each gets a clear error in
//! bounded time, and nothing that was accepted before is lost.

mod damage;
mod disk;
mod requests;
mod scripts;
mod target;
mod texts;

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use slipway_tests::{LocalProcess, checkout};

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// Writes a text into the folder and applies it.
fn apply(local: &LocalProcess, dir: &Path, name: &str, text: &str) -> Output {
    let path = dir.join(name);
    std::fs::write(&path, text).expect("a file");
    local.slipway(&["apply", "-f", path.to_str().expect("text")])
}

/// Applies what must be accepted.
fn accept(local: &LocalProcess, dir: &Path, name: &str, text: &str) {
    let output = apply(local, dir, name, text);
    assert_eq!(code(&output), 0, "{name}: {}", errors(&output));
}

/// A pipeline of one Custom stage with these steps (a YAML list without indentation).
fn pipeline(id: &str, variables: &str, steps: &str) -> String {
    let indented = |text: &str, by: &str| {
        text.lines()
            .map(|line| format!("{by}{line}\n"))
            .collect::<String>()
    };
    let variables = if variables.is_empty() {
        String::new()
    } else {
        format!("  variables:\n{}", indented(variables, "    "))
    };
    format!(
        "pipeline:\n  name: {id}\n  identifier: {id}\n  orgIdentifier: default\n  projectIdentifier: default\n\
         {variables}  stages:\n    - stage:\n        name: work\n        identifier: work\n        type: Custom\n        \
         spec:\n          execution:\n            steps:\n{}",
        indented(steps, "              ")
    )
}

/// A ShellScript step on the delegate.
fn script(id: &str, text: &str) -> String {
    let text: String = text
        .lines()
        .map(|line| format!("          {line}\n"))
        .collect();
    format!(
        "- step:\n    name: {id}\n    identifier: {id}\n    type: ShellScript\n    timeout: 5m\n    spec:\n      \
         shell: Bash\n      onDelegate: true\n      source:\n        type: Inline\n        spec:\n          \
         script: |\n  {}",
        text.replace('\n', "\n  ").trim_end_matches(' ')
    )
}

fn wait(id: &str, duration: &str) -> String {
    format!(
        "- step:\n    name: {id}\n    identifier: {id}\n    type: Wait\n    timeout: 1d\n    spec:\n      \
         duration: {duration}\n"
    )
}

/// Starts a pipeline and stays until it ends.
fn run(local: &LocalProcess, pipeline: &str, inputs: &[&str]) -> Output {
    let mut arguments = vec!["run", pipeline, "--follow", "-o", "json"];
    for input in inputs {
        arguments.extend(["--input", input]);
    }
    local.slipway(&arguments)
}

/// What a followed run printed at its end.
fn outcome(output: &Output) -> Value {
    let said = errors(output);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {said}"))
}

/// Local mode with the golden pipeline, whose cluster `shop` is made on request.
async fn shop(dir: &Path, cluster: bool) -> LocalProcess {
    let local = LocalProcess::start(&dir.join("data"));
    if cluster {
        let create = local.ecs().create_cluster().cluster_name("shop");
        create.send().await.expect("a cluster");
    }
    let templates = checkout("templates/ecs-rolling");
    let applied = local.slipway(&["apply", "-f", templates.to_str().expect("text")]);
    assert_eq!(code(&applied), 0, "{}", errors(&applied));
    local
}
