//! Manifests from Git repositories, buckets and folders of the file store.

use slipway_model::id::{AccountId, EntityId, Scope};
use slipway_model::{Diagnostic, entity, yaml};

use super::tests::{PIPELINE, entities, faults, project, world};
use super::{Request, resolve, wanted};
use crate::{
    FILE, FOLDER, Fetched, Found, Plan, Reference, RemoteFiles, RemotePlace, Snapshot, text,
};

const CONNECTORS: [&str; 2] = [
    "connector: {identifier: code, name: Code, type: Github, spec: {url: 'https://github.com/acme', type: Account, authentication: {type: Http, spec: {type: UsernameToken, spec: {username: 'bot-<+pipeline.variables.where>', tokenRef: account.token}}}}}",
    "connector: {identifier: secret, name: S, type: Github, spec: {url: 'https://<+secrets.getValue(\"account.host\")>/x', type: Repo, authentication: {type: Http, spec: {type: Anonymous, spec: {}}}}}",
];

type Planned = Result<Plan, Vec<Diagnostic>>;

/// The golden pipeline with `store` for its first manifest: what it asks for, and its plan with the answers.
fn planned(
    store: &str,
    answer: impl Fn(&RemoteFiles) -> Result<Fetched, String>,
) -> (Vec<RemoteFiles>, Planned) {
    let inline = "type: Inline, spec: {content: '{}'}";
    let mut all: Vec<String> = entities()
        .iter()
        .map(|entity| entity.replacen(inline, store, 1))
        .collect();
    assert_ne!(all, entities(), "no manifest has an inline store");
    all.extend(CONNECTORS.map(str::to_owned));
    let mut snapshot = world(&all);
    put_folders(&mut snapshot);
    let pipeline = entity::parse("pipeline.yaml", PIPELINE).unwrap();
    let inputs = yaml::parse("inputs.yaml", "pipeline: {identifier: web}").unwrap();
    let (inputs, scope) = ([&inputs], project());
    let before = Request {
        pipeline: &pipeline,
        inputs: &inputs,
        scope: &scope,
        entities: &snapshot.clone(),
        runnable: &|_| true,
        chosen: None,
        trigger: None,
    };
    let asked = snapshot.unknown(wanted(&before)).files;
    for files in &asked {
        snapshot.put_files(files.clone(), answer(files));
    }
    let after = Request {
        entities: &snapshot,
        ..before
    };
    let again = snapshot.unknown(wanted(&after)).files;
    assert_eq!(again, [], "what was answered is asked again");
    let plan = resolve(&after);
    (asked, plan)
}

fn put_folders(snapshot: &mut Snapshot) {
    let files = [("/ecs/a.yaml", "a: 1"), ("/ecs/b/c.yaml", "c: 22")];
    let files = files.map(|(path, text)| (path.to_owned(), text.into()));
    for (path, files) in [("/ecs", files.to_vec()), ("/empty", Vec::new())] {
        let reference = Reference {
            scope: Scope::account(AccountId::new("acc")),
            kind: FILE,
            parent: Some(EntityId::new(FOLDER)),
            id: EntityId::new(path),
        };
        snapshot.put(reference, Some(Found::Files(files)));
    }
}

fn two_files(wanted: &RemoteFiles) -> Result<Fetched, String> {
    let text = |path: &&String| ((*path).clone(), "text".into());
    Ok(Fetched {
        commit: matches!(wanted.place, RemotePlace::Git { .. }).then(|| "c0ffee".repeat(6)),
        branch: None,
        files: wanted
            .paths
            .iter()
            .collect::<Vec<_>>()
            .iter()
            .map(text)
            .collect(),
    })
}

const BRANCH: &str = "type: Github, spec: {connectorRef: account.code, gitFetchType: Branch, branch: '<+pipeline.variables.where>', repoName: shop, paths: [/ecs/task.yaml, './more:x/']}";

#[test]
fn a_git_store_is_asked_for_whole_and_the_plan_says_at_which_commit() {
    let (asked, plan) = planned(BRANCH, two_files);
    let [asked] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    let place = r#"Git { repository: Some("shop"), version: Branch("prod") }"#;
    assert_eq!(format!("{:?}", asked.place), place);
    assert_eq!(asked.paths, ["ecs/task.yaml", "more:x"]);
    assert_eq!(
        (&asked.scope, &*asked.connector.reference),
        (&project(), "account.code")
    );
    let login = &asked.connector.spec["authentication"]["spec"]["spec"];
    assert_eq!(
        login["username"], "bot-prod",
        "its expressions are evaluated"
    );
    assert_eq!(login["tokenRef"], "account.token", "its secrets are not");
    let plan = plan.unwrap_or_else(|faults| panic!("{faults:?}"));
    let shown = text(&plan);
    let line = shown.lines().find(|line| line.contains("manifest task"));
    assert_eq!(
        line.map(str::trim),
        Some(
            "manifest task (EcsTaskDefinition) from Github at c0ffeec0ffeec0ffeec0ffeec0ffeec0ffee, 2 files, 8 bytes"
        )
    );
    let json = serde_json::to_value(&plan).unwrap();
    let manifest = &json["groups"][1][0]["service"]["manifests"][0];
    assert_eq!(manifest["files"][1][0], "more:x");
    assert_eq!(manifest["commit"], "c0ffee".repeat(6));
}

#[test]
fn every_kind_of_store_says_what_it_wants() {
    let table = [
        (
            "type: Git, spec: {connectorRef: account.code, gitFetchType: Commit, branch: old, commitId: v1.2, folderPath: /}",
            r#"Git { repository: None, version: Commit("v1.2") } [""]"#,
        ),
        (
            "type: GitLab, spec: {connectorRef: account.code, branch: main, paths: [a], folderPath: b}",
            r#"Git { repository: None, version: Branch("main") } ["a"]"#,
        ),
        (
            "type: S3, spec: {connectorRef: account.aws, region: eu-west-1, bucketName: 'b-<+pipeline.variables.where>', paths: a.yaml}",
            r#"S3 { bucket: "b-prod", region: "eu-west-1" } ["a.yaml"]"#,
        ),
        (
            "type: S3, spec: {connectorRef: account.aws, region: eu-west-1, bucketName: b, paths: [], folderPath: x/y/}",
            r#"S3 { bucket: "b", region: "eu-west-1" } ["x/y"]"#,
        ),
    ];
    for (store, expected) in table {
        let (asked, plan) = planned(store, two_files);
        let [asked] = asked.as_slice() else {
            panic!("{store}: {asked:?}");
        };
        assert_eq!(format!("{:?} {:?}", asked.place, asked.paths), expected);
        assert!(plan.is_ok(), "{store}: {plan:?}");
    }
}

#[test]
fn a_store_that_cannot_be_read_is_a_fault_of_the_plan() {
    let none = |_: &RemoteFiles| Err("there is no branch `prod`".to_owned());
    let (_, plan) = planned(BRANCH, none);
    let found = faults(plan);
    assert!(
        found.contains("the files of manifest `task` cannot be read: there is no branch `prod`"),
        "{found}"
    );
    let table = [
        (
            "type: Github, spec: {connectorRef: account.code, paths: [a]}",
            "`branch` must say which version",
        ),
        (
            "type: Github, spec: {connectorRef: account.code, gitFetchType: Commit, branch: main, paths: [a]}",
            "`commitId` must say which version",
        ),
        (
            "type: Github, spec: {connectorRef: account.code, branch: main}",
            "no file or folder is named here: give `paths` or `folderPath`",
        ),
        (
            "type: Github, spec: {connectorRef: '', branch: main, paths: [a]}",
            "`connectorRef` is missing from the store",
        ),
        (
            "type: Github, spec: {connectorRef: account.gone, branch: main, paths: [a]}",
            "the connector `gone` does not exist in the account",
        ),
        (
            "type: Github, spec: {connectorRef: account.aws, branch: main, paths: [a]}",
            "the connector `aws` is of type Aws; a store of type Github needs one of Git, Github",
        ),
        (
            "type: S3, spec: {connectorRef: account.code, region: r, bucketName: b, paths: [a]}",
            "the connector `code` is of type Github; a store of type S3 needs one of Aws",
        ),
        (
            "type: S3, spec: {connectorRef: account.aws, bucketName: b, paths: [a]}",
            "`region` is missing from the store",
        ),
        (
            "type: S3, spec: {connectorRef: account.aws, region: r, bucketName: b, paths: [../../etc/passwd]}",
            "`../../etc/passwd` is no path: `..` leads out of the store",
        ),
        (
            "type: Github, spec: {connectorRef: account.code, branch: main, paths: ['<+steps.x.output.y>']}",
            "this must be known before the run begins",
        ),
        (
            "type: Github, spec: {connectorRef: account.secret, branch: main, paths: [a]}",
            "the connector `secret` must be known before the run begins",
        ),
    ];
    for (store, expected) in table {
        let (asked, plan) = planned(store, two_files);
        assert_eq!(asked, [], "{store}");
        let found = faults(plan);
        assert!(found.contains(expected), "{store}\n{found}");
    }
}

#[test]
fn a_folder_of_the_file_store_stands_for_its_files() {
    let store = "type: Harness, spec: {files: ['account:/ecs/', 'account:/svc.yaml']}";
    let plan = planned(store, two_files).1;
    let plan = plan.unwrap_or_else(|faults| panic!("{faults:?}"));
    let service = plan.groups[1][0].service.as_ref();
    let files = service.map(|service| service.manifests[0].files.clone());
    let expected = [
        ("account:/ecs/a.yaml", "a: 1"),
        ("account:/ecs/b/c.yaml", "c: 22"),
        ("account:/svc.yaml", "serviceName: web"),
    ];
    let expected = expected.map(|(path, text)| (path.to_owned(), text.to_owned()));
    assert_eq!(files.unwrap_or_default(), expected);
    for (path, expected) in [
        (
            "account:/empty",
            "the folder `account:/empty` of the file store has no file",
        ),
        ("/ecs", "the file `/ecs` does not exist in the file store"),
    ] {
        let store = format!("type: Harness, spec: {{files: ['{path}']}}");
        let found = faults(planned(&store, two_files).1);
        assert!(found.contains(expected), "{found}");
    }
}
