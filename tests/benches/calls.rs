//! `cargo xtask bench`: AWS calls of the golden pipelines, counted by the sandbox account for the first, second and third
//! deployment of each strategy. Counted, not timed; how often a step asks whether something is ready depends on the pace
//! of the account, which is `brisk` unless `SLIPWAY_BENCH_PACE` says otherwise.

use std::collections::BTreeMap;

use aws_credential_types::Credentials;
use aws_sdk_elasticloadbalancingv2::types::TargetTypeEnum;
use serde_json::Value;
use slipway_tests::balancer::{self, Forwarding};
use slipway_tests::{LocalProcess, binary, checkout};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a pipeline deploys behind.
#[derive(Clone, Copy)]
enum Behind {
    Nothing,
    /// Another service of the cluster, of this name, which the pipeline makes smaller and larger.
    Service(&'static str),
    /// A load balancer: targets, ports, and the pipeline's variables for the listeners and rules of these ports.
    Balancer(
        TargetKind,
        &'static [i32],
        Forwarding,
        &'static [&'static str],
    ),
}

#[derive(Clone, Copy)]
enum TargetKind {
    Ip,
    Instance,
}

/// A golden pipeline.
struct Strategy {
    folders: &'static [&'static str],
    pipeline: &'static str,
    /// Its variable that says what is deployed, with three values.
    version: (&'static str, [&'static str; 3]),
    behind: Behind,
}

const TAGS: (&str, [&str; 3]) = ("tag", ["1.0", "2.0", "3.0"]);
const IMAGES: (&str, [&str; 3]) = ("image", ["ami-000000a1", "ami-000000a2", "ami-000000a3"]);
const PACKAGES: (&str, [&str; 3]) = ("version", ["v1", "v2", "v3"]);

const STRATEGIES: &[Strategy] = &[
    plain(&["ecs-rolling"], "deploy_shop", TAGS),
    plain(
        &["ecs-rolling", "ecs-canary"],
        "deploy_shop_by_canary",
        TAGS,
    ),
    plain(&["ecs-rolling", "ecs-basic"], "deploy_shop_in_phases", TAGS),
    Strategy {
        folders: &["ecs-rolling", "ecs-task"],
        pipeline: "migrate_and_deploy_shop",
        version: TAGS,
        behind: Behind::Service("shop-workers"),
    },
    Strategy {
        folders: &["ecs-rolling", "ecs-blue-green"],
        pipeline: "deploy_shop_blue_green",
        version: TAGS,
        behind: Behind::Balancer(
            TargetKind::Ip,
            &[80, 8080],
            Forwarding::Apart,
            &["prodListener", "prodRule", "stageListener", "stageRule"],
        ),
    },
    Strategy {
        folders: &["ecs-rolling", "ecs-blue-green", "ecs-traffic-shift"],
        pipeline: "shift_requests_to_shop",
        version: TAGS,
        behind: Behind::Balancer(
            TargetKind::Ip,
            &[80, 8080],
            Forwarding::Weighted([1, 0]),
            &["listener", "rule", "testListener", "testRule"],
        ),
    },
    plain(&["ecs-rolling", "asg-rolling"], "deploy_machines", IMAGES),
    plain(
        &["ecs-rolling", "asg-rolling", "asg-canary"],
        "deploy_machines_by_canary",
        IMAGES,
    ),
    plain(
        &["ecs-rolling", "asg-rolling", "asg-phased"],
        "deploy_machines_in_phases",
        IMAGES,
    ),
    Strategy {
        folders: &["ecs-rolling", "asg-rolling", "asg-blue-green"],
        pipeline: "deploy_machines_blue_green",
        version: IMAGES,
        behind: Behind::Balancer(
            TargetKind::Instance,
            &[80],
            Forwarding::Weighted([100, 0]),
            &["listener", "rule"],
        ),
    },
    Strategy {
        folders: &["ecs-rolling", "asg-rolling", "asg-swap"],
        pipeline: "swap_machines",
        version: IMAGES,
        behind: Behind::Balancer(
            TargetKind::Instance,
            &[80, 8080],
            Forwarding::Apart,
            &["prodListener", "prodRule", "stageListener", "stageRule"],
        ),
    },
    plain(
        &["ecs-rolling", "asg-rolling", "asg-scale"],
        "scale_machines",
        IMAGES,
    ),
    plain(&["ecs-rolling", "lambda"], "deploy_checkout", PACKAGES),
    plain(
        &["ecs-rolling", "lambda", "lambda-canary"],
        "deploy_checkout_by_canary",
        PACKAGES,
    ),
];

const fn plain(
    folders: &'static [&'static str],
    pipeline: &'static str,
    version: (&'static str, [&'static str; 3]),
) -> Strategy {
    Strategy {
        folders,
        pipeline,
        version,
        behind: Behind::Nothing,
    }
}

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    let pace = std::env::var("SLIPWAY_BENCH_PACE").unwrap_or_else(|_| "brisk".to_owned());
    println!(
        "AWS calls of a deployment (those that ask whether something is ready in brackets), pace {pace}"
    );
    println!(
        "  {:<30} {:>12} {:>12} {:>12}",
        "pipeline", "first", "second", "third"
    );
    for strategy in STRATEGIES {
        runtime.block_on(measure(strategy, &pace))?;
    }
    Ok(())
}

async fn measure(strategy: &Strategy, pace: &str) -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    let local = LocalProcess::start_with(&binary(), dir.path(), &["--pace", pace]);
    for folder in strategy.folders {
        let folder = checkout("templates").join(folder);
        let applied = local.slipway(&["apply", "-f", folder.to_str().unwrap_or_default()]);
        succeeded(&applied)?;
    }
    let inputs = surroundings(&local, strategy).await?;
    let (variable, versions) = strategy.version;
    let (mut line, mut second) = (String::new(), BTreeMap::new());
    for (number, version) in versions.iter().enumerate() {
        let before = calls(&local).await?.len();
        deploy(
            &local,
            strategy.pipeline,
            &inputs,
            &format!("{variable}={version}"),
        )
        .await?;
        let made: Vec<String> = calls(&local).await?.split_off(before);
        let counted = count(made);
        let all: u32 = counted.values().sum();
        line.push_str(&format!(" {:>12}", format!("{all} ({})", asking(&counted))));
        if number == 1 {
            second = counted;
        }
    }
    println!("  {:<30}{line}", strategy.pipeline);
    let mut most: Vec<(String, u32)> = second.into_iter().collect();
    most.sort_by_key(|(name, often)| (std::cmp::Reverse(*often), name.clone()));
    let told: Vec<String> = most
        .iter()
        .map(|(name, often)| format!("{name} {often}"))
        .collect();
    println!("      second: {}", told.join(", "));
    Ok(())
}

/// What must be there before a pipeline runs, and the inputs that name it.
async fn surroundings(local: &LocalProcess, strategy: &Strategy) -> Result<Vec<String>, Failure> {
    let (variable, versions) = strategy.version;
    if variable == TAGS.0 {
        let cluster = local.ecs().create_cluster().cluster_name("shop");
        cluster.send().await?;
    }
    if variable == PACKAGES.0 {
        packages(local, versions).await?;
    }
    let (kind, ports, forwarding, names) = match strategy.behind {
        Behind::Nothing => return Ok(Vec::new()),
        Behind::Service(name) => {
            beside(local, name).await?;
            return Ok(Vec::new());
        }
        Behind::Balancer(kind, ports, forwarding, names) => (kind, ports, forwarding, names),
    };
    let kind = match kind {
        TargetKind::Ip => TargetTypeEnum::Ip,
        TargetKind::Instance => TargetTypeEnum::Instance,
    };
    let listeners = balancer::open(local, kind, ports, forwarding).await;
    let values = listeners.iter().flat_map(|one| [&one.arn, &one.rule]);
    let inputs = names.iter().zip(values);
    Ok(inputs
        .map(|(name, value)| format!("{name}={value}"))
        .collect())
}

/// A service of four tasks beside `shop`, with what the rolling deployment registered.
async fn beside(local: &LocalProcess, name: &str) -> Result<(), Failure> {
    deploy(local, "deploy_shop", &[], "tag=0.9").await?;
    let ecs = local.ecs();
    let found = ecs.describe_services().cluster("shop").services("shop");
    let found = found.send().await?;
    let shop = found.services().first().ok_or("no service `shop`")?;
    let call = ecs.create_service().cluster("shop").service_name(name);
    let call = call
        .set_task_definition(shop.task_definition.clone())
        .set_network_configuration(shop.network_configuration.clone())
        .launch_type("FARGATE".into());
    call.desired_count(4).send().await?;
    Ok(())
}

/// Packages of functions in the S3 of local mode.
async fn packages(local: &LocalProcess, versions: [&str; 3]) -> Result<(), Failure> {
    let config = aws_sdk_s3::Config::builder()
        .behavior_version_latest()
        .endpoint_url(local.url())
        .force_path_style(true)
        .region(aws_sdk_s3::config::Region::new("us-east-1"))
        .credentials_provider(Credentials::new(
            "slipway",
            "slipway-local",
            None,
            None,
            "bench",
        ));
    let s3 = aws_sdk_s3::Client::from_conf(config.build());
    s3.create_bucket().bucket("shop-packages").send().await?;
    for version in versions {
        let key = format!("checkout/{version}.zip");
        let put = s3.put_object().bucket("shop-packages").key(key);
        let body = format!("PK\x03\x04{version}").into_bytes();
        put.body(body.into()).send().await?;
    }
    Ok(())
}

/// Runs a pipeline to its end; approves whatever waits for it.
async fn deploy(
    local: &LocalProcess,
    pipeline: &str,
    inputs: &[String],
    version: &str,
) -> Result<(), Failure> {
    let mut line = vec!["run", pipeline, "-o", "json", "--input", version];
    for input in inputs {
        line.extend(["--input", input.as_str()]);
    }
    let started = local.json(&line);
    let run = started["run"].as_str().ok_or("no run was started")?;
    loop {
        let found = local.json(&["get", "run", run, "-o", "json"]);
        match found["status"].as_str().unwrap_or_default() {
            "Success" => return Ok(()),
            // Refused where the run has gone on since it was asked.
            "ApprovalWaiting" => {
                local.slipway(&["approve", run]);
            }
            status @ ("Failed" | "Aborted" | "Expired" | "Errored") => {
                return Err(format!("run {run} of {pipeline} ended {status}").into());
            }
            _ => tokio::time::sleep(std::time::Duration::from_millis(200)).await,
        }
    }
}

fn succeeded(output: &std::process::Output) -> Result<(), Failure> {
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

/// All calls that the account had so far, oldest first: operations with their service.
async fn calls(local: &LocalProcess) -> Result<Vec<String>, Failure> {
    let url = format!("{}/_sandbox/calls", local.url());
    let calls: Vec<Value> = reqwest::get(&url).await?.json().await?;
    let name = |call: &Value| call["operation"].as_str().unwrap_or_default().to_owned();
    Ok(calls.iter().map(name).collect())
}

fn count(calls: Vec<String>) -> BTreeMap<String, u32> {
    let mut counted = BTreeMap::new();
    for call in calls {
        *counted.entry(call).or_default() += 1;
    }
    counted
}

/// How many calls only asked.
fn asking(counted: &BTreeMap<String, u32>) -> u32 {
    let asks = |name: &String| {
        ["Describe", "Get", "List"]
            .iter()
            .any(|verb| name.starts_with(verb))
    };
    counted
        .iter()
        .filter(|(name, _)| asks(name))
        .map(|(_, often)| often)
        .sum()
}
