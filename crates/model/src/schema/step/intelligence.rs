//! AI steps.

use super::common::{INT, MAP, OUTPUT_VARIABLES, POSITIVE, REPORTS, SHELL, TEXT_MAP};
use super::container::CONTAINER;
use crate::schema::{TEXT, TEXTS};
use crate::shape::{Field, Object, Shape};

bare!(AGENT, "`Agent`", [
    must "agentName": TEXT,
    may "agentSettings": MAP,
    may "llmConnector": TEXT,
    may "mcpConnectors": TEXTS,
]);
bare!(AI_EVAL, "`AiEval`", [
    must "apiKey": TEXT,
    may "evalId": TEXT,
    may "suiteId": TEXT,
    may "suitePath": TEXT,
    may "apiEndpoint": TEXT,
    may "concurrency": POSITIVE,
    may "repoFlags": TEXT,
    may "targetId": TEXT,
    may "datasetId": TEXT,
    may "llmConnectorRef": TEXT,
    may "model": TEXT,
]);
bare!(AI_TEST_AUTOMATION, "`AiTestAutomation`", [
    must "applicationName": TEXT,
    may "testType": Shape::OneOf(&["aiTestAutomation", "playwright"]),
    may "environmentName": TEXT,
    may "testSuiteName": TEXT,
    may "tunnelName": TEXT,
    may "buildId": TEXT,
    may "executionAliasId": TEXT,
    may "configOverride": TEXT,
    may "variables": Shape::List(&Shape::Object(&TEST_VARIABLE)),
]);
bare!(AI_VERIFY, "`AiVerify`" + CONTAINER, [
    may "command": TEXT,
    may "registryRef": TEXT,
    may "envVariables": TEXT_MAP,
    may "outputVariables": OUTPUT_VARIABLES,
    may "reports": Shape::Object(&REPORTS),
    may "shell": SHELL,
]);
bare!(CHANGE_ADVISOR, "`ChangeAdvisor`", [
    may "mode": TEXT,
    may "policyPack": TEXT,
    may "timeoutMinutes": INT,
    may "presets": TEXTS,
    may "env": TEXT,
]);

part!(TEST_VARIABLE, "an item of `variables`", [
    must "key": TEXT,
    must "valueType": Shape::OneOf(&["string", "secret"]),
    may "id": TEXT,
    may "value": TEXT,
]);
