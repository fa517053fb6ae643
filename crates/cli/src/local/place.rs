//! Where local mode stands: region, account, the ARNs that follow from them, and what Lambda would bound.

use std::time::Duration;

/// Region of the engine and of the tables; target accounts have their own.
pub const REGION: &str = "us-east-1";

/// AWS account id of local mode: the sandbox account and the engine.
pub const AWS_ACCOUNT: &str = "123456789012";

/// Slipway's account; the second segment of tokens.
pub const ACCOUNT: &str = "local";

/// Role of the machines: nothing checks it here, but the API wants one.
pub const ROLE: &str = "arn:aws:iam::123456789012:role/slipway-local";

/// Name of the activity that delegates work on.
pub const DELEGATE_ACTIVITY: &str = "slipway-delegate";

/// ARN of a function.
pub fn function(name: &str) -> String {
    format!("arn:aws:lambda:{REGION}:{AWS_ACCOUNT}:function:{name}")
}

/// How long an invocation of a function may take, as `Timeout` in `infra/app.yaml`: less than the states wait that
/// invoke it, so that none goes on when nobody expects it.
pub fn time_limit(name: &str) -> Duration {
    Duration::from_secs(match name {
        "slipway-instances" => 300,
        "slipway-lane-common" | "slipway-lane-asg" | "slipway-lane-ecs" | "slipway-lane-lambda" => {
            110
        }
        _ => 55,
    })
}

/// ARN of a state machine.
pub fn machine(name: &str) -> String {
    format!("arn:aws:states:{REGION}:{AWS_ACCOUNT}:stateMachine:{name}")
}

/// ARN of the activity that delegates work on.
pub fn delegate_activity() -> String {
    format!("arn:aws:states:{REGION}:{AWS_ACCOUNT}:activity:{DELEGATE_ACTIVITY}")
}
