//! AWS Lambda, AWS SAM and the Serverless Framework.

use super::common::SHARE;
use super::container::CONTAINED;
use crate::schema::{FILLED, TEXT, TEXTS};
use crate::shape::{Field, Object};

step!(AWS_LAMBDA_TRAFFIC_SHIFT, "`AwsLambdaTrafficShift`", [may "trafficPercentage": SHARE]);
step!(AWS_SAM_BUILD, "`AwsSamBuild`" + CONTAINED, [
    may "buildCommandOptions": TEXTS,
    may "samBuildDockerRegistryConnectorRef": TEXT,
    may "samVersion": TEXT,
]);
step!(AWS_SAM_DEPLOY, "`AwsSamDeploy`" + CONTAINED, [
    must "stackName": FILLED,
    may "deployCommandOptions": TEXTS,
    may "samVersion": TEXT,
]);
step!(SERVERLESS_AWS_LAMBDA_DEPLOY, "`ServerlessAwsLambdaDeploy`", [may "commandOptions": TEXT]);
step!(SERVERLESS_AWS_LAMBDA_DEPLOY_V2, "`ServerlessAwsLambdaDeployV2`" + CONTAINED, [
    may "deployCommandOptions": TEXTS,
    may "serverlessVersion": TEXT,
]);
step!(SERVERLESS_AWS_LAMBDA_PACKAGE_V2, "`ServerlessAwsLambdaPackageV2`" + CONTAINED, [
    may "packageCommandOptions": TEXTS,
    may "serverlessVersion": TEXT,
]);
step!(SERVERLESS_ROLLBACK, "`ServerlessAwsLambdaPrepareRollbackV2` or `ServerlessAwsLambdaRollbackV2`" + CONTAINED, [
    may "serverlessVersion": TEXT,
]);
