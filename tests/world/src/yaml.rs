//! Pipelines of few lines.

/// A pipeline of stages; each is `(identifier, lines)` with the lines of `stage` below `type`.
pub fn pipeline(stages: &[String]) -> String {
    format!(
        "pipeline:\n  name: release\n  identifier: release\n  orgIdentifier: default\n  \
         projectIdentifier: shop\n  stages:\n{}",
        stages.concat()
    )
}

/// A custom stage; `rollback` holds its rollback steps, `more` lines of the stage.
pub fn stage(id: &str, steps: &str, rollback: &str, more: &str) -> String {
    let indent = |text: &str, by: usize| {
        let pad = " ".repeat(by);
        text.lines()
            .map(|line| format!("{pad}{line}\n"))
            .collect::<String>()
    };
    let rollback = match rollback {
        "" => String::new(),
        steps => format!("            rollbackSteps:\n{}", indent(steps, 14)),
    };
    format!(
        "    - stage:\n        name: {id}\n        identifier: {id}\n        type: Custom\n        \
         spec:\n          execution:\n            steps:\n{}{rollback}{}",
        indent(steps, 14),
        indent(more, 8),
    )
}

/// A script that the delegate plays.
pub fn script(id: &str, script: &str, more: &str) -> String {
    let more: String = more.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "- step:\n    name: {id}\n    identifier: {id}\n    type: ShellScript\n    timeout: 10m\n{more}    \
         spec:\n      shell: Bash\n      onDelegate: true\n      source:\n        type: Inline\n        \
         spec:\n          script: {script}\n"
    )
}

/// A script that says a word for later: its output variable `word`.
pub fn says(id: &str, word: &str) -> String {
    let output = "      outputVariables:\n        - name: word\n          type: String\n          value: word\n";
    script(id, &format!("'word={word}'"), "").replacen(
        "      source:",
        &format!("{output}      source:"),
        1,
    )
}

/// A step or step group that loops.
pub fn looped(element: &str, strategy: &str) -> String {
    let name = element.find("    name:").unwrap_or(0);
    let (head, tail) = element.split_at(name);
    format!("{head}    strategy: {strategy}\n{tail}")
}

/// Stages side by side.
pub fn together(stages: &[String]) -> String {
    let lines = stages.iter().flat_map(|stage| stage.lines());
    let inside: String = lines.map(|line| format!("    {line}\n")).collect();
    format!("    - parallel:\n{inside}")
}

/// A pipeline with the barrier `gate`.
pub fn with_gate(pipeline: &str) -> String {
    let barriers =
        "  flowControl:\n    barriers:\n      - {identifier: gate, name: gate}\n  stages:\n";
    pipeline.replacen("  stages:\n", barriers, 1)
}

/// A pipeline of stages side by side that meet at the barrier `gate`.
pub fn meeting(stages: &[String]) -> String {
    with_gate(&pipeline(&[together(stages)]))
}

/// A step that waits at the barrier `gate`.
pub fn gate(id: &str, timeout: &str) -> String {
    format!(
        "- step:\n    name: {id}\n    identifier: {id}\n    type: Barrier\n    timeout: {timeout}\n    spec:\n      \
         barrierRef: gate\n"
    )
}

/// The failure strategy of a stage or step, for all errors: an action as flow YAML.
pub fn on_failure(action: &str) -> String {
    format!(
        "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action:\n        {action}\n"
    )
}

/// A `Queue` step on the key `shared`, held until the end of its `scope`.
pub fn queue(id: &str, scope: &str) -> String {
    format!(
        "- step:\n    name: {id}\n    identifier: {id}\n    type: Queue\n    timeout: 1d\n    spec:\n      key: \
         shared\n      scope: {scope}\n"
    )
}

/// A step that lets time pass.
pub fn wait(id: &str, time: &str) -> String {
    format!(
        "- step:\n    name: {id}\n    identifier: {id}\n    type: Wait\n    timeout: 1d\n    spec:\n      \
         duration: {time}\n"
    )
}

/// Steps side by side.
pub fn beside(branches: &[String]) -> String {
    let indent = |text: &String| {
        text.lines()
            .map(|l| format!("    {l}\n"))
            .collect::<String>()
    };
    format!(
        "- parallel:\n{}",
        branches.iter().map(indent).collect::<String>()
    )
}

/// A step group.
pub fn group(id: &str, steps: &[String]) -> String {
    let indent = |text: &String| {
        text.lines()
            .map(|l| format!("      {l}\n"))
            .collect::<String>()
    };
    let steps = steps.iter().map(indent).collect::<String>();
    format!("- stepGroup:\n    name: {id}\n    identifier: {id}\n    steps:\n{steps}")
}

/// Rolls a stage back after any failure.
pub const ROLL_BACK: &str = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action:\n        \
                         type: StageRollback\n";

/// The user group that approvals of these tests ask.
pub const LEADS: &str = "userGroup:
  name: Leads
  identifier: leads
  orgIdentifier: default
  projectIdentifier: shop
  users: [sam, kim, alex, pat]
";

/// A service, an environment and an infrastructure, to deploy to.
pub const TARGET: &str = "service:
  name: shop
  identifier: shop
  orgIdentifier: default
  projectIdentifier: shop
  serviceDefinition:
    type: ECS
    spec: {}
---
environment:
  name: prod
  identifier: prod
  orgIdentifier: default
  projectIdentifier: shop
  type: Production
---
infrastructureDefinition:
  name: cluster
  identifier: cluster
  orgIdentifier: default
  projectIdentifier: shop
  environmentRef: prod
  deploymentType: ECS
  type: ECS
  spec:
    connectorRef: aws
    region: us-east-1
    cluster: main
  allowSimultaneousDeployments: false
---
connector:
  name: aws
  identifier: aws
  orgIdentifier: default
  projectIdentifier: shop
  type: Aws
  spec:
    credential:
      type: InheritFromDelegate
";

/// A stage, as [`stage`] writes it, that deploys the service of [`TARGET`].
pub fn deployment(stage: &str) -> String {
    let target = "          deploymentType: ECS\n          service:\n            serviceRef: shop\n          \
                  environment:\n            environmentRef: prod\n            deployToAll: false\n            \
                  infrastructureDefinitions:\n              - identifier: cluster\n";
    let stage = stage.replace("type: Custom\n", "type: Deployment\n");
    stage.replacen("        spec:\n", &format!("        spec:\n{target}"), 1)
}

/// A pipeline with rules; each is `(events, method)` in flow style.
pub fn with_rules(stages: &[String], rules: &[(&str, String)]) -> String {
    let mut text =
        pipeline(stages).replacen("  stages:", "  notificationRules:RULES\n  stages:", 1);
    let mut lines = String::new();
    for (number, (events, method)) in rules.iter().enumerate() {
        lines.push_str(&format!(
            "\n    - {{name: rule{number}, identifier: rule{number}, enabled: true, pipelineEvents: [{events}], \
             notificationMethod: {method}}}"
        ));
    }
    text = text.replacen("RULES", &lines, 1);
    text
}

/// The method that sends to a URL.
pub fn webhook(url: &str) -> String {
    format!("{{type: Webhook, spec: {{webhookUrl: '{url}'}}}}")
}
