//! The sandbox account as the `aws` CLI reads it: waiters end when they should and not before, listings page, errors
//! have AWS's codes and the CLI's exit status. The account is as slow as AWS, so that the waiters have something to wait
//! for.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use slipway_tests::SandboxProcess;

/// Status of version 1 of the CLI for an error that AWS answered, for a waiter that gave up, and for anything else.
const FAILED: i32 = 255;

/// Version 1 looks this often at most before a waiter gives up, 15 seconds apart: no waiter here may need as long.
const LONGEST: Duration = Duration::from_secs(150);

/// The CLI, configured by nothing but what is here.
#[derive(Clone)]
struct Aws {
    program: PathBuf,
    endpoint: String,
    folder: PathBuf,
}

impl Aws {
    fn run(&self, words: &str, documents: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("AWS_") {
                command.env_remove(name);
            }
        }
        command
            .args(["--endpoint-url", &self.endpoint, "--output", "json"])
            .args(words.split_whitespace())
            .args(documents)
            .env("AWS_CONFIG_FILE", self.folder.join("config"))
            .env("AWS_SHARED_CREDENTIALS_FILE", self.folder.join("keys"))
            .env("AWS_DEFAULT_REGION", "eu-west-1")
            .env("AWS_ACCESS_KEY_ID", "AKIATEST")
            .env("AWS_SECRET_ACCESS_KEY", "x")
            .env("AWS_MAX_ATTEMPTS", "1");
        command.output().expect("the CLI starts")
    }

    /// Runs what has to go well, and gives what it answers.
    fn well(&self, words: &str, documents: &[&str]) -> Value {
        let output = self.run(words, documents);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "aws {words}: {errors}");
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }

    /// Runs what has to be refused with this code.
    fn refused(&self, words: &str, (code, operation): (&str, &str)) {
        let output = self.run(words, &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        let told = format!("An error occurred ({code}) when calling the {operation} operation: ");
        assert!(errors.contains(&told), "aws {words}: {errors}");
        assert_eq!(output.status.code(), Some(FAILED), "aws {words}: {errors}");
        println!("refused with {code}");
    }

    /// Starts a waiter, and tells how it ended and how long it took.
    fn waits(&self, words: String) -> thread::JoinHandle<(Output, Duration)> {
        let aws = self.clone();
        thread::spawn(move || {
            let start = Instant::now();
            (aws.run(&words, &[]), start.elapsed())
        })
    }
}

/// How often an operation was called.
async fn calls(endpoint: &str, operation: &str) -> usize {
    let answer = reqwest::get(format!("{endpoint}/_sandbox/calls")).await;
    let calls: Value = answer.expect("an answer").json().await.expect("calls");
    let calls = calls.as_array().expect("a list").iter();
    calls.filter(|call| call["operation"] == operation).count()
}

fn ended(name: &str, waiter: thread::JoinHandle<(Output, Duration)>) {
    let (output, took) = waiter.join().expect("the waiter");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {errors}");
    assert!(took < LONGEST, "{name} took {took:?}");
    println!("waiter {name} ended after {} s", took.as_secs());
}

const NETWORK: &str = "awsvpcConfiguration={subnets=[subnet-1]}";

/// A cluster, a target group behind a listener, and three revisions of a task definition. Answers with the group's ARN.
fn furnish(aws: &Aws) -> String {
    aws.well("ecs create-cluster --cluster-name c", &[]);
    let made = aws.well(
        "elbv2 create-load-balancer --name web --subnets subnet-1 subnet-2",
        &[],
    );
    let balancer = &made["LoadBalancers"][0]["LoadBalancerArn"];
    let balancer = balancer.as_str().expect("an ARN");
    let made = aws.well(
        "elbv2 create-target-group --name web --protocol HTTP --port 80 --vpc-id vpc-1 --target-type ip",
        &[],
    );
    let group = made["TargetGroups"][0]["TargetGroupArn"].as_str();
    let group = group.expect("an ARN").to_owned();
    let listen =
        format!("elbv2 create-listener --load-balancer-arn {balancer} --protocol HTTP --port 80");
    let forward = format!("Type=forward,TargetGroupArn={group}");
    aws.well(&listen, &["--default-actions", &forward]);
    for image in 1..=3 {
        let containers = format!(
            r#"[{{"name": "app", "image": "web:{image}", "portMappings": [{{"containerPort": 80}}]}}]"#
        );
        let made = aws.well(
            "ecs register-task-definition --family web --network-mode awsvpc --cpu 256 --memory 512 \
             --requires-compatibilities FARGATE",
            &["--container-definitions", &containers],
        );
        assert_eq!(made["taskDefinition"]["revision"], image);
    }
    group
}

fn create_service(aws: &Aws, name: &str, count: u32, balanced: &[&str]) {
    let words = format!(
        "ecs create-service --cluster c --service-name {name} --task-definition web --desired-count {count} \
         --launch-type FARGATE"
    );
    let mut documents = vec!["--network-configuration", NETWORK];
    documents.extend(balanced);
    let made = aws.well(&words, &documents);
    assert_eq!(made["service"]["status"], "ACTIVE");
}

fn create_function(aws: &Aws, name: &str) {
    // The CLI sends nothing but archives: this one ends with an empty directory.
    let package = aws.folder.join("code.zip");
    let archive = [b"PK\x03\x04one".as_slice(), b"PK\x05\x06", &[0; 18]].concat();
    std::fs::write(&package, archive).expect("written");
    let words = format!(
        "lambda create-function --function-name {name} --runtime python3.13 --handler index.handler \
         --role arn:aws:iam::123456789012:role/worker --zip-file fileb://{}",
        package.display()
    );
    let made = aws.well(&words, &[]);
    assert_eq!(made["State"], "Pending");
}

fn listings(aws: &Aws) {
    for name in ["worker", "other"] {
        create_service(aws, name, 0, &[]);
    }
    let (all, key) = ("ecs list-services --cluster c", "serviceArns");
    let first = aws.well(&format!("{all} --max-items 2"), &[]);
    let token = first["NextToken"].as_str().expect("there is more");
    let rest = aws.well(
        &format!("{all} --max-items 2 --starting-token {token}"),
        &[],
    );
    assert!(rest["NextToken"].is_null(), "{rest}");
    let mut seen: Vec<&Value> = Vec::new();
    for page in [&first, &rest] {
        seen.extend(page[key].as_array().expect("a list"));
    }
    assert_eq!(seen.len(), 3, "{first}{rest}");
    seen.dedup();
    assert_eq!(seen.len(), 3, "an item twice: {first}{rest}");
    println!("list-services pages by --max-items");

    for (words, key, least) in [
        (all, key, 3),
        ("ecs list-task-definitions", "taskDefinitionArns", 3),
        ("ecs list-tasks --cluster c", "taskArns", 2),
        (
            "lambda list-versions-by-function --function-name one",
            "Versions",
            2,
        ),
        ("elbv2 describe-target-groups", "TargetGroups", 1),
    ] {
        let whole = aws.well(words, &[]);
        let paged = aws.well(&format!("{words} --page-size 1"), &[]);
        let count = whole[key].as_array().map_or(0, Vec::len);
        assert!(count >= least, "aws {words}: {whole}");
        assert_eq!(whole[key], paged[key], "aws {words}");
        println!("aws {words} gives the same by --page-size 1");
    }
}

fn errors(aws: &Aws, group: &str) {
    for (words, code) in [
        (
            "ecs list-services --cluster nobody",
            ("ClusterNotFoundException", "ListServices"),
        ),
        (
            "ecs update-service --cluster c --service nobody",
            ("ServiceNotFoundException", "UpdateService"),
        ),
        (
            "elbv2 describe-target-groups --names nobody",
            ("TargetGroupNotFound", "DescribeTargetGroups"),
        ),
        (
            &format!("elbv2 delete-target-group --target-group-arn {group}"),
            ("ResourceInUse", "DeleteTargetGroup"),
        ),
        (
            "lambda get-function --function-name nobody",
            ("ResourceNotFoundException", "GetFunction"),
        ),
        (
            "autoscaling set-desired-capacity --auto-scaling-group-name nobody --desired-capacity 1",
            ("ValidationError", "SetDesiredCapacity"),
        ),
        (
            "ec2 describe-images --image-ids ami-0123456789abcd404",
            ("InvalidAMIID.NotFound", "DescribeImages"),
        ),
        (
            "ecr describe-images --repository-name nobody",
            ("RepositoryNotFoundException", "DescribeImages"),
        ),
    ] {
        aws.refused(words, code);
    }
    let given_up = aws.run(
        "ecs wait services-stable --cluster c --services nobody",
        &[],
    );
    let told = String::from_utf8_lossy(&given_up.stderr);
    assert!(told.contains("terminal failure state"), "{told}");
    assert_eq!(given_up.status.code(), Some(FAILED));
    println!("waiter services-stable fails for a service that is not there");
}

/// Waits for a service, its targets and a function, all at once, and looks at what is there when they have ended.
async fn waiters(aws: &Aws, group: &str) {
    let balanced = format!("targetGroupArn={group},containerName=app,containerPort=80");
    create_service(aws, "web", 2, &["--load-balancers", &balanced]);
    let stable = aws.waits("ecs wait services-stable --cluster c --services web".to_owned());
    let serving = aws.waits(format!(
        "elbv2 wait target-in-service --target-group-arn {group}"
    ));

    create_function(aws, "one");
    aws.waits("lambda wait function-active-v2 --function-name one".to_owned())
        .join()
        .map(|(output, _)| assert!(output.status.success()))
        .expect("the waiter");
    let shown = aws.well("lambda get-function --function-name one", &[]);
    assert_eq!(shown["Configuration"]["State"], "Active");
    let looks = calls(&aws.endpoint, "GetFunction").await - 1;
    assert!(looks >= 2, "function-active-v2 looked {looks} times");
    println!("waiter function-active-v2 looked {looks} times");
    aws.well(
        "lambda update-function-configuration --function-name one --memory-size 256",
        &[],
    );
    ended(
        "function-updated-v2",
        aws.waits("lambda wait function-updated-v2 --function-name one".to_owned()),
    );
    let shown = aws.well("lambda get-function --function-name one", &[]);
    assert_eq!(shown["Configuration"]["LastUpdateStatus"], "Successful");
    let more = calls(&aws.endpoint, "GetFunction").await - looks - 2;
    assert!(more >= 2, "function-updated-v2 looked {more} times");
    aws.well("lambda publish-version --function-name one", &[]);

    ended("services-stable", stable);
    let shown = aws.well("ecs describe-services --cluster c --services web", &[]);
    let service = &shown["services"][0];
    assert_eq!(
        (&service["runningCount"], &service["deployments"][1]),
        (&2.into(), &Value::Null)
    );
    ended("target-in-service", serving);
    let words = format!("elbv2 describe-target-health --target-group-arn {group}");
    let shown = aws.well(
        &words,
        &["--query", "TargetHealthDescriptions[].TargetHealth.State"],
    );
    assert_eq!(shown, serde_json::json!(["healthy", "healthy"]));
    for operation in ["DescribeServices", "DescribeTargetHealth"] {
        // One look is that of this test.
        let looks = calls(&aws.endpoint, operation).await - 1;
        assert!(looks >= 2, "a waiter ended after its first {operation}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cli_uses_the_sandbox_as_it_uses_aws() {
    let program = std::env::var_os("SLIPWAY_AWS_CLI")
        .expect("SLIPWAY_AWS_CLI names the `aws` CLI; `cargo xtask conformance` sets it");
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = SandboxProcess::start(&["--pace", "realistic"]);
    let aws = Aws {
        program: Path::new(&program).to_owned(),
        endpoint: sandbox.url().to_owned(),
        folder: folder.path().to_owned(),
    };
    let group = furnish(&aws);
    waiters(&aws, &group).await;
    listings(&aws);
    errors(&aws, &group);
}
