//! What the service is made of: clients and machines, the tap between.

use std::path::Path;
use std::sync::Arc;

use slipway_clock::Clock;
use slipway_engine::runs::Runs;
use slipway_sandbox::Sandbox;
use slipway_steps::StepServices;
use slipway_steps::aws::{Ambient, AwsTargets, TargetConfig};
use slipway_steps::context::Starts;
use slipway_store::Store;
use slipway_store::embedded::{Embedded, in_process};

use crate::stillness::Moving;
use crate::tap::{Place, Tap, tapped};
use crate::{ACCOUNT, NoSecrets, NoSources, REGION};

/// A store whose requests pass the tap.
pub(crate) fn store(embedded: &Embedded, tap: &Arc<dyn Tap>, clock: Clock) -> Store {
    let router = tapped(Arc::clone(tap), Place::Store, embedded.router());
    let dynamodb = embedded.dynamodb().config().to_builder();
    let s3 = embedded.s3().config().to_builder();
    let client = in_process(router);
    let dynamodb = dynamodb.http_client(client.clone()).sleep_impl(Moving);
    let s3 = s3.http_client(client).sleep_impl(Moving);
    Store::new(
        aws_sdk_dynamodb::Client::from_conf(dynamodb.build()),
        aws_sdk_s3::Client::from_conf(s3.build()),
        slipway_store::Layout::local(),
        clock,
    )
}

/// What steps may touch, the tap between.
pub(crate) fn services(runs: &Runs, sandbox: &Sandbox, tap: &Arc<dyn Tap>) -> StepServices {
    let account = tapped(Arc::clone(tap), Place::Target, sandbox.router());
    let target = TargetConfig {
        endpoint_url: Some("http://sandbox.internal".to_owned()),
        http_client: Some(in_process(account)),
        ambient: Ambient::Sandbox,
        objects: None,
    };
    StepServices {
        store: runs.store.clone(),
        clock: runs.clock.clone(),
        aws: AwsTargets::new(target, runs.clock.clone()),
        secrets: Arc::new(NoSecrets),
        starts: Starts {
            runs: runs.clone(),
            sources: Arc::new(NoSources),
        },
    }
}

/// A client of Step Functions behind a router.
pub(crate) fn workflows(router: axum::Router) -> aws_sdk_sfn::Client {
    let config = aws_sdk_sfn::Config::builder()
        .behavior_version_latest()
        .http_client(in_process(router))
        .sleep_impl(Moving)
        .endpoint_url("http://states.internal")
        .region(aws_sdk_sfn::config::Region::new(REGION))
        .credentials_provider(aws_sdk_sfn::config::Credentials::new(
            "a", "b", None, None, "test",
        ))
        .stalled_stream_protection(aws_sdk_sfn::config::StalledStreamProtectionConfig::disabled())
        .build();
    aws_sdk_sfn::Client::from_conf(config)
}

/// ARN of a machine.
pub(crate) fn machine(name: &str) -> String {
    format!("arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:{name}")
}

/// ARN of the activity of delegates.
pub(crate) fn activity() -> String {
    format!("arn:aws:states:{REGION}:{ACCOUNT}:activity:delegate")
}

/// Creates a machine whose executions end as they begin, and answers its ARN.
pub(crate) async fn install_hollow(sfn: &aws_sdk_sfn::Client) -> String {
    let created = sfn
        .create_state_machine()
        .name("pipeline")
        .definition(r#"{"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}}"#)
        .role_arn(format!("arn:aws:iam::{ACCOUNT}:role/test"))
        .send()
        .await;
    created.expect("a machine").state_machine_arn
}

/// Creates the activity and the machines of `statemachines/`.
pub(crate) async fn install(sfn: &aws_sdk_sfn::Client) {
    sfn.create_activity()
        .name("delegate")
        .send()
        .await
        .expect("an activity");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../statemachines");
    for name in ["notify", "errand", "lane", "stage", "pipeline"] {
        let text =
            std::fs::read_to_string(folder.join(format!("{name}.asl.json"))).expect("a file");
        let text = text
            .replace("${NotifyFunctionArn}", "notify")
            .replace("${PipelineFunctionArn}", "pipeline")
            .replace("${StageMachineArn}", &machine("stage"))
            .replace("${LaneMachineArn}", &machine("lane"))
            .replace("${DelegateActivityArn}", &activity());
        let created = sfn
            .create_state_machine()
            .name(name)
            .definition(text)
            .role_arn(format!("arn:aws:iam::{ACCOUNT}:role/test"))
            .send()
            .await;
        created.unwrap_or_else(|error| panic!("{name}: {:?}", error.into_service_error()));
    }
}
