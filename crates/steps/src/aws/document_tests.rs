use serde_json::json;

use super::*;

#[test]
fn names_in_both_cases_and_nulls_and_types_become_what_aws_wants() {
    let text = r"
Family: web
cpu: 256
memory: '512'
pidMode:
requiresCompatibilities: [FARGATE]
containerDefinitions:
- name: nginx
  image: nginx:1.27
  essential: 'true'
  cpu: '0'
  portMappings:
  - ContainerPort: 80
  environment:
  - {name: RETRIES, value: 3}
  dockerLabels: {stage: null, team: 7}
  command:
tags: []
";
    let given = read("task.yaml", text).expect("YAML");
    let Conformed { document, notes } = conform("RegisterTaskDefinition", given).expect("it fits");
    assert_eq!(
        document,
        json!({
            "family": "web",
            "cpu": "256",
            "memory": "512",
            "requiresCompatibilities": ["FARGATE"],
            "containerDefinitions": [{
                "name": "nginx",
                "image": "nginx:1.27",
                "essential": true,
                "cpu": 0,
                "portMappings": [{"containerPort": 80}],
                "environment": [{"name": "RETRIES", "value": "3"}],
                "dockerLabels": {"team": "7"},
            }],
            "tags": [],
        })
    );
    assert_eq!(notes, Vec::<String>::new());
}

#[test]
fn a_typo_is_refused_with_the_nearest_name_and_a_new_field_is_sent() {
    let given = json!({
        "family": "web",
        "containerDefinition": [],
        "quantumMode": {"entangled": true, "phase": null},
        "memory": [512],
        "volumes": [{"name": "v", "host": {"sourcepath": "/x"}}],
    });
    let faults = conform("RegisterTaskDefinition", given).expect_err("two typos, one wrong type");
    insta::assert_snapshot!(faults.join("\n"), @r"
    `containerDefinition` is not a field of RegisterTaskDefinition; did you mean `containerDefinitions`?
    `memory` is a list; a text is expected
    `volumes[0].host.sourcepath` is not a field of HostVolumeProperties; did you mean `sourcePath`?
    ");

    let newer = json!({"family": "web", "quantumMode": {"entangled": true, "phase": null}});
    let Conformed { document, notes } = conform("RegisterTaskDefinition", newer).expect("sent");
    assert_eq!(document["quantumMode"], json!({"entangled": true}));
    assert_eq!(notes.len(), 1);
    assert!(notes[0].contains("quantumMode"), "{}", notes[0]);
}

#[test]
fn plain_scalars_are_typed_and_quoted_ones_are_texts() {
    let table = [
        ("a: 12", json!(12)),
        ("a: '12'", json!("12")),
        ("a: 012345678901", json!("012345678901")),
        ("a: 1.5", json!(1.5)),
        ("a: -3", json!(-3)),
        ("a: yes", json!("yes")),
        ("a: true", json!(true)),
        ("a: ~", json!(null)),
        ("a: 12:30:45", json!("12:30:45")),
        ("a: <+x.y>", json!("<+x.y>")),
        ("{\"a\": \"1\"}", json!("1")),
        ("a: .inf", json!(".inf")),
        ("a: 1e999", json!("1e999")),
    ];
    for (text, expected) in table {
        assert_eq!(read("t.yaml", text).expect(text)["a"], expected, "{text}");
    }
    assert!(
        read("t.yaml", "a: [")
            .expect_err("not YAML")
            .contains("t.yaml")
    );
}

#[test]
fn expressions_are_kept_where_yaml_alone_could_not_hold_them() {
    let table = [
        ("a: <+x.y>", json!("<+x.y>")),
        (
            r#"a: <+x == 1 ? "b" : "c">"#,
            json!(r#"<+x == 1 ? "b" : "c">"#),
        ),
        (r#"{"a": "<+x["y"].z>-1"}"#, json!(r#"<+x["y"].z>-1"#)),
        (r#"{"a": "<+x[\"y\"].z>"}"#, json!(r#"<+x["y"].z>"#)),
        (r#"{"a": <+x["y"]>, "b": 1}"#, json!(r#"<+x["y"]>"#)),
        ("a: [<+x.join(\",\")>, b]", json!(["<+x.join(\",\")>", "b"])),
    ];
    for (text, expected) in table {
        assert_eq!(read("t.yaml", text).expect(text)["a"], expected, "{text}");
    }
}

#[test]
fn a_list_that_a_variable_holds_as_text_becomes_a_list() {
    let definition = json!({"networkConfiguration": {"awsvpcConfiguration": {"subnets": "[subnet-1, subnet-2]"}}});
    let document = conform("CreateService", definition)
        .expect("it fits")
        .document;
    let subnets = &document["networkConfiguration"]["awsvpcConfiguration"]["subnets"];
    assert_eq!(*subnets, json!(["subnet-1", "subnet-2"]));
}

#[test]
fn every_shape_that_is_named_is_listed() {
    for (shape, fields) in shapes() {
        assert!(!fields.is_empty(), "{shape}");
        for (field, kind) in fields {
            let mut kind = kind;
            while let Kind::List(inner) | Kind::Map(inner) = kind {
                kind = inner;
            }
            if let Kind::Shape(target) = kind {
                assert!(shapes().contains_key(target), "{shape}.{field}: {target}");
            }
        }
    }
}

/// The SDK carries the names of its own requests: an update of it that brings new fields must bring them
/// here too.
#[test]
fn the_list_has_every_field_of_the_sdk() {
    use aws_sdk_ecs::operation as ecs;
    let requests = [
        (
            "RegisterTaskDefinition",
            ecs::register_task_definition::RegisterTaskDefinitionInput::SCHEMA,
        ),
        (
            "CreateService",
            ecs::create_service::CreateServiceInput::SCHEMA,
        ),
        (
            "UpdateService",
            ecs::update_service::UpdateServiceInput::SCHEMA,
        ),
        (
            "ContainerDefinition",
            aws_sdk_ecs::types::ContainerDefinition::SCHEMA,
        ),
    ];
    for (shape, schema) in requests {
        let ours: Vec<&str> = fields(shape).collect();
        for member in schema.members() {
            let name = member.member_name().expect("a member has a name");
            assert!(
                ours.contains(&name),
                "{shape} lacks {name}: add it to shapes.txt"
            );
        }
    }
}

#[test]
fn names_that_begin_with_an_acronym_have_a_camel_case_too() {
    for name in ["KMSKeyArn", "kmsKeyArn", "kMSKeyArn"] {
        let fitted = conform("CreateFunction", json!({name: "arn:aws:kms:x"})).expect("it fits");
        assert_eq!(
            fitted.document,
            json!({"KMSKeyArn": "arn:aws:kms:x"}),
            "{name}"
        );
    }
    let code = json!({"code": {"s3Bucket": "b", "S3Key": "k"}});
    let fitted = conform("CreateFunction", code).expect("it fits");
    assert_eq!(
        fitted.document,
        json!({"Code": {"S3Bucket": "b", "S3Key": "k"}})
    );
    let faults = conform(
        "CreateFunction",
        json!({"functionNme": "x", "kmsKeyArm": "y"}),
    )
    .expect_err("typos");
    assert_eq!(
        faults.join("; "),
        "`functionNme` is not a field of CreateFunction; did you mean `FunctionName`?; \
         `kmsKeyArm` is not a field of CreateFunction; did you mean `KMSKeyArn`?"
    );
    assert_eq!(camel("FunctionName"), "functionName");
    assert_eq!(camel("VPC"), "vpc");
    assert_eq!(camel(""), "");
}

/// The same for Lambda, whose requests show their names only as Rust's.
#[test]
fn the_list_has_every_field_of_lambdas_sdk() {
    use aws_sdk_lambda::operation as lambda;
    let create = lambda::create_function::CreateFunctionInput::builder().build();
    let update =
        lambda::update_function_configuration::UpdateFunctionConfigurationInput::builder().build();
    let alias = lambda::create_alias::CreateAliasInput::builder().build();
    let requests = [
        (
            "CreateFunction",
            format!("{:?}", create.expect("a request")),
        ),
        (
            "UpdateFunctionConfiguration",
            format!("{:?}", update.expect("a request")),
        ),
        ("CreateAlias", format!("{:?}", alias.expect("a request"))),
    ];
    for (shape, shown) in requests {
        let ours: Vec<String> = fields(shape).map(str::to_lowercase).collect();
        let (_, members) = shown.split_once(" { ").expect("a structure");
        let names = members
            .split(", ")
            .filter_map(|member| member.split_once(": "));
        let names: Vec<String> = names.map(|(name, _)| name.replace('_', "")).collect();
        assert!(names.len() > 3, "{shown}");
        for name in names {
            // In the path, for a function that exists.
            let in_path = name == "functionname" && shape != "CreateFunction";
            assert!(
                in_path || ours.contains(&name),
                "{shape} lacks {name}: add it to shapes.txt"
            );
        }
    }
}
