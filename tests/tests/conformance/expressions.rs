//! Every expression that Harness users write parses, and means what the documentation says.
//!
//! Runtime inputs (`<+input>…`) are read by the model, everything else by the expression language.

use slipway_expr::{Limits, parse};
use slipway_model::inputs::RuntimeInput;

use crate::expression_world::world;
use crate::shared;

/// A row of `reference/EXPRESSIONS.txt`.
struct Row {
    source: String,
    text: String,
}

fn rows() -> Vec<Row> {
    let path = shared().join("reference/EXPRESSIONS.txt");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path:?}: {why}"));
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut columns = line.splitn(4, '\t');
            let source = columns.nth(2)?;
            Some(Row {
                source: source.to_owned(),
                text: columns.next()?.to_owned(),
            })
        })
        .collect()
}

/// What the documentation says of rows, in the context above.
const DOCUMENTED: &[(&str, &str)] = &[
    (r#"<+pipeline.sequenceId>"#, r#"16"#),
    (r#"<+pipeline.sequenceId.toString()>"#, r#""16""#),
    (r#"<+pipeline.variables.abc.split(':')[1]>"#, r#""ghi""#),
    (r#"<+<+version>.charAt(0)>"#, r#""1""#),
    (
        r#"<+<+pipeline.variables.someVar>.substring(0,3)>"#,
        r#""pro""#,
    ),
    (r#"<+(100 - <+matrix.weight>)>"#, r#"70"#),
    (r#"<+<+pipeline.name> == "pipeline1">"#, r#"true"#),
    (r#"<+<+stage.variables.v1> != "dev">"#, r#"true"#),
    (r#"<+<+pipeline.variables.MAGIC>.toLowerCase()>"#, r#""up""#),
    (
        r#"<+<+pipeline.variables.changeType> =~ ["<+stage.name>","All"]>"#,
        r#"true"#,
    ),
    (
        r#"<+<+pipeline.variables.hosts>.split(",")>"#,
        r#"["h1","h2"]"#,
    ),
    (
        r#"<+<+pipeline.variables.var1> + "_suffix">"#,
        r#""secret1_suffix""#,
    ),
    (
        r#"<+<+pipeline.variables.var1>.concat("_suffix")>"#,
        r#""secret1_suffix""#,
    ),
    (
        r#"<+"https://abcdef.com/yoururl/"+<+pipeline.variables.var1>>"#,
        r#""https://abcdef.com/yoururl/secret1""#,
    ),
    (
        r#"<+<+pipeline.variables.var2>.replace("a", "<+pipeline.variables.var1>")>"#,
        r#""bsecret1nsecret1nsecret1""#,
    ),
    (
        r#"<+<+stage.variables.myvar>.substring(<+<+stage.variables.myvar>.indexOf("e")>)>"#,
        r#""ello""#,
    ),
    (
        r#"<+ <+<+pipeline.variables.listVar1> + "," + <+pipeline.variables.listVar2>>.split(",")>"#,
        r#"["a","b","c"]"#,
    ),
    (
        r#"<+ <+stage.variables.myvar> == "1.1"?"pass":"fail" >"#,
        r#""fail""#,
    ),
    (
        r#"<+<+<+env.name>.contains("dev")>?<+env.name>:"No Env">"#,
        r#""dev""#,
    ),
    (
        r#"<+<+<+pipeline.variables.var1>=="secret1">?<+secrets.getValue("secret1")>:<+secrets.getValue("defaultSecret")>>"#,
        r#""<+secrets.getValue(\"secret1\")>""#,
    ),
    (
        r#"<+ <+<+trigger.payload.pull_request.diff_url>.contains("triggerNgDemo")> || <+trigger.payload.repository.owner.name> == "wings-software" >"#,
        r#"true"#,
    ),
    (
        r#"<+<+artifacts.primary.label>.get("maintainer")>"#,
        r#""dev@someproject.org""#,
    ),
    (
        r#"<+<+strategy.node>.get("ShellScript_1").currentStatus>"#,
        r#""SUCCESS""#,
    ),
    (
        r#"<+strategy.node.get("ShellScript_1").currentStatus>"#,
        r#""SUCCESS""#,
    ),
    (
        r#"<+<+trigger.payload.input_set_refs>.split(",")>"#,
        r#"["a","b"]"#,
    ),
    (
        r#"<+execution.steps.httpstep.spec.headers["x-auth"]>"#,
        r#""t""#,
    ),
    (
        r#"<+execution.steps.get_jira_info.issue."Customer Name">"#,
        r#""ACME""#,
    ),
    (r#"<+trigger.header['X-GitHub-Event']>"#, r#""push""#),
    (
        r#"<+approval.approvalActivities[0].user.email>"#,
        r#""ann@example.com""#,
    ),
    (
        r#"<+pipeline.stages.<+pipeline.variables.stageName>.status>"#,
        r#""FAILED""#,
    ),
    (
        r#"<+stage.spec.execution.steps.s1<+strategy.identifierPostFix>.steps.ShellScript_1.output.outputVariables.v1>"#,
        r#""v1""#,
    ),
    (
        r#"<+pipeline.stages.STAGE_ID.spec.execution.steps.STEP_ID.deploymentInfoOutcome.serverInstanceInfoList[0].podIP>"#,
        r#""10.0.0.1""#,
    ),
    (r#"<+json.object(httpResponseBody).status>"#, r#"1"#),
    (
        r#"<+json.object(httpResponseBody).data.content.get(0).uuid>"#,
        r#""u""#,
    ),
    (
        r#"<+pipeline.variables.delegate_selectors.replace(',','\",\"')>"#,
        r#""delegate_selectors""#,
    ),
    (
        r#"<+pipeline.variables.artifact_manager_delegate.replace(',','\",\"')>"#,
        r#""a\\\",\\\"b""#,
    ),
    (r#"<+infra.namespace.toLowerCase()>"#, r#""shop""#),
    (
        r#"<+<+pipeline.variables.variableA>==\"yes\"?<+pipeline.variables.tag>:<+pipeline.name>>"#,
        r#""pipeline1""#,
    ),
    (
        r#"<+<+execution.steps.execute.variables.host> == "" ? <+execution.steps.execute.variables.host_file> : "hosts">"#,
        r#""host_file""#,
    ),
    (
        r#"<+secrets.getValue(\"account.crizstian_github_token\"\ )>"#,
        r#""<+secrets.getValue(\"account.crizstian_github_token\")>""#,
    ),
    (
        r#"<+configFile.getAsString("CONFIG_FILE_ID")>"#,
        r#""in CONFIG_FILE_ID""#,
    ),
    (
        r#"<+fileStore.getAsBase64("account:/folder1/folder2/ConfigFile")>"#,
        r#""aW4gaXQ=""#,
    ),
    (
        r#"<+terraformPlanHumanReadable."pipeline.stages.tf.spec.execution.steps.tf.tf_planHumanReadable">"#,
        r#""plan""#,
    ),
    (r#"<+pipeline.repo>"#, r#"null"#),
];

#[test]
fn every_expression_parses_and_has_its_value() {
    let rows = rows();
    let world = world();
    let (mut inputs, mut evaluated) = (0, 0);
    let (mut broken, mut unknown, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for Row { source, text } in &rows {
        if text.starts_with("<+input>") {
            match RuntimeInput::parse(text) {
                Some(_) => inputs += 1,
                None => broken.push(format!("{text} is no runtime input")),
            }
            continue;
        }
        let template = match parse(text) {
            Ok(template) => template,
            Err(error) => {
                broken.push(format!("{text}: {error}"));
                continue;
            }
        };
        match template.evaluate(&world, &Limits::default()) {
            Ok(_) => evaluated += 1,
            Err(error) if error.full_text().contains("is not defined") => {
                unknown.push(format!("{source} {}", error.full_text()));
            }
            Err(error) => failed.push(error.full_text()),
        }
    }
    println!(
        "{} rows: {} parse ({inputs} runtime inputs), {evaluated} evaluate, {} are not in the context",
        rows.len(),
        rows.len() - broken.len(),
        unknown.len()
    );
    assert!(rows.len() > 500, "only {} rows", rows.len());
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    // Such as `stage-provisioning` on one page; another says that a hyphen is no part of a name.
    assert!(unknown.len() * 20 < rows.len(), "{}", unknown.join("\n"));
}

#[test]
fn documented_expressions_have_their_documented_values() {
    let rows = rows();
    let world = world();
    for (text, expected) in DOCUMENTED {
        let listed = rows.iter().any(|row| row.text == *text);
        assert!(listed, "{text} is not in the list");
        let template = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let value = template.evaluate(&world, &Limits::default());
        let value = value.unwrap_or_else(|error| panic!("{text}: {}", error.full_text()));
        assert_eq!(value.to_shown_json().to_string(), *expected, "{text}");
    }
}
