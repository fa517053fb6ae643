//! The account over loopback, as `aws-sdk-ecs` and `aws-sdk-sts` see it.

use std::time::Duration;

use aws_sdk_ecs::client::Waiters;
use aws_sdk_ecs::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_ecs::error::ProvideErrorMetadata;
use aws_sdk_ecs::types::{
    AwsVpcConfiguration, Compatibility, ContainerDefinition, DeploymentRolloutState, LaunchType,
    NetworkConfiguration, NetworkMode,
};
use slipway_clock::Clock;
use slipway_sandbox::{Fault, FaultEffect, Pace, Sandbox, SandboxConfig};

/// A pace that leaves real time only for the wire.
fn instant() -> Pace {
    let none = Duration::ZERO;
    Pace {
        provision: none,
        pull: none,
        start: none,
        exit: none,
        health: none,
        exit_later: none,
        drain: none,
        drain_max: none,
        stop: none,
        deprovision: none,
        scheduler: none,
        throttle: none,
        throttle_max: none,
        function: none,
        keep_stopped: Duration::from_secs(3_600),
    }
}

pub(crate) async fn serve() -> (Sandbox, String) {
    let config = SandboxConfig {
        clock: Clock::system(),
        region: "us-east-1".into(),
        account: "123456789012".into(),
        pace: instant(),
    };
    let sandbox = Sandbox::open(None, config).expect("an account");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let router = sandbox.router();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (sandbox, endpoint)
}

fn ecs(endpoint: &str) -> aws_sdk_ecs::Client {
    let config = aws_sdk_ecs::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(Credentials::new("AKIATEST", "secret", None, None, "test"))
        .endpoint_url(endpoint)
        .build();
    aws_sdk_ecs::Client::from_conf(config)
}

async fn register(ecs: &aws_sdk_ecs::Client) -> String {
    let container = ContainerDefinition::builder()
        .name("app")
        .image("web:1")
        .build();
    let registered = ecs
        .register_task_definition()
        .family("web")
        .network_mode(NetworkMode::Awsvpc)
        .requires_compatibilities(Compatibility::Fargate)
        .cpu("256")
        .memory("512")
        .container_definitions(container)
        .send()
        .await
        .expect("a revision");
    let arn = registered
        .task_definition()
        .and_then(|one| one.task_definition_arn());
    arn.expect("an ARN").to_owned()
}

#[tokio::test]
async fn a_service_through_the_sdk() {
    let (_, endpoint) = serve().await;
    let ecs = ecs(&endpoint);
    let missing = ecs
        .describe_services()
        .cluster("c")
        .services("web")
        .send()
        .await;
    let missing = missing.expect_err("no cluster");
    assert!(
        missing
            .as_service_error()
            .is_some_and(|error| error.is_cluster_not_found_exception())
    );

    ecs.create_cluster()
        .cluster_name("c")
        .send()
        .await
        .expect("a cluster");
    let arn = register(&ecs).await;
    assert!(arn.starts_with("arn:aws:ecs:eu-west-1:123456789012:task-definition/web:1"));
    let subnets = AwsVpcConfiguration::builder()
        .subnets("subnet-1")
        .build()
        .expect("subnets");
    ecs.create_service()
        .cluster("c")
        .service_name("web")
        .task_definition(&arn)
        .desired_count(2)
        .launch_type(LaunchType::Fargate)
        .network_configuration(
            NetworkConfiguration::builder()
                .awsvpc_configuration(subnets)
                .build(),
        )
        .send()
        .await
        .expect("a service");
    // The waiter looks every 15 s of real time; here its first look is enough.
    for _ in 0..10_000 {
        let described = ecs
            .describe_services()
            .cluster("c")
            .services("web")
            .send()
            .await;
        let service = described.expect("a service").services()[0].clone();
        if service.deployments().len() == 1 && service.running_count() == 2 {
            break;
        }
    }
    ecs.wait_until_services_stable()
        .cluster("c")
        .services("web")
        .wait(Duration::from_secs(1))
        .await
        .expect("a stable service");
    let described = ecs
        .describe_services()
        .cluster("c")
        .services("web")
        .send()
        .await;
    let described = described.expect("a service");
    let deployment = &described.services()[0].deployments()[0];
    assert_eq!(
        deployment.rollout_state(),
        Some(&DeploymentRolloutState::Completed)
    );
    let listed = ecs
        .list_tasks()
        .cluster("c")
        .service_name("web")
        .send()
        .await;
    assert_eq!(listed.expect("tasks").task_arns().len(), 2);
}

#[tokio::test]
async fn a_cut_connection_is_an_error_of_the_connection() {
    let (sandbox, endpoint) = serve().await;
    let ecs = ecs(&endpoint);
    // The SDK tries three times.
    sandbox.faults().add(Fault {
        service: None,
        operation: Some("CreateCluster".into()),
        skip: 0,
        count: Some(3),
        effect: FaultEffect::Cut { after: true },
    });
    let cut = ecs
        .create_cluster()
        .cluster_name("c")
        .send()
        .await
        .expect_err("no answer");
    assert!(cut.code().is_none(), "{cut:?}");
    let found = ecs.list_clusters().send().await.expect("clusters");
    assert_eq!(
        found.cluster_arns().len(),
        1,
        "it was carried out all the same"
    );
}

#[tokio::test]
async fn a_role_through_the_sdk() {
    let (_, endpoint) = serve().await;
    let config = aws_sdk_sts::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("AKIATEST", "secret", None, None, "test"))
        .endpoint_url(&endpoint)
        .build();
    let sts = aws_sdk_sts::Client::from_conf(config);
    let assumed = sts
        .assume_role()
        .role_arn("arn:aws:iam::999999999999:role/deploy")
        .role_session_name("slipway")
        .external_id("id")
        .send()
        .await
        .expect("a session");
    assert!(
        assumed
            .credentials()
            .is_some_and(|keys| keys.access_key_id().starts_with("ASIA"))
    );
    let who = sts.get_caller_identity().send().await.expect("an identity");
    assert_eq!(who.arn(), Some("arn:aws:iam::123456789012:root"));
}
