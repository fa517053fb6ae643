//! Continuous verification.

use super::common::{NUMBER, TEXT_MAP, WINDOW};
use super::container::CONTAINED;
use crate::schema::{ANY, BOOL, FILLED, IDENTIFIER, TEXT, TYPE, typed};
use crate::shape::{Field, Object, Shape};

step!(AI_VERIFY_NG, "`AIVerifyNG`" + CONTAINED, [
    must "healthSources": Shape::List(&Shape::Object(&AI_VERIFY_NG_HEALTH_SOURCE)),
    must "dataCollectionWindow": WINDOW,
    may "envVariables": TEXT_MAP,
    may "optionalConfigurations": Shape::Object(&OPTIONAL_CONFIGURATIONS),
]);
bare!(ANALYZE_DEPLOYMENT_IMPACT, "`AnalyzeDeploymentImpact`", [
    must "duration": TEXT,
    may "failOnNoAnalysis": BOOL,
    may "monitoredService": Shape::Object(&DEFAULT_AND_CONFIGURED_MONITORED_SERVICE),
]);
bare!(VERIFY, "`Verify`", [
    must "type": TYPE,
    may "isMultiServicesOrEnvs": BOOL,
    may "failOnNoAnalysis": BOOL,
    may "configurableProperties": Shape::List(&Shape::Object(&VERIFY_CONFIGURABLE_PROPERTY)),
    may "monitoredService": Shape::Object(&MONITORED_SERVICE),
], typed: typed(&[
    ("Auto", Shape::Object(&AUTO_VERIFICATION_JOB)),
    ("Bluegreen", Shape::Object(&AUTO_VERIFICATION_JOB)),
    ("Canary", Shape::Object(&AUTO_VERIFICATION_JOB)),
    ("LoadTest", Shape::Object(&TEST_VERIFICATION_JOB)),
    ("Rolling", Shape::Object(&AUTO_VERIFICATION_JOB)),
    ("SimpleVerification", Shape::Object(&SIMPLE_VERIFICATION_JOB)),
], &[]));

part!(AI_VERIFY_NG_HEALTH_SOURCE, "an item of `healthSources`", [must "healthSourceRef": FILLED]);
part!(OPTIONAL_CONFIGURATIONS, "`optionalConfigurations`", [
    may "sensitivity": TEXT,
    may "verificationType": TEXT,
    may "failOnNoAnalysis": BOOL,
    may "controlNodeRegexPattern": TEXT,
    may "testNodeRegexPattern": TEXT,
    may "baselineEndTime": TEXT,
    may "verificationStartTime": TEXT,
]);
part!(DEFAULT_AND_CONFIGURED_MONITORED_SERVICE, "`monitoredService`", [
    must "type": TYPE,
], typed: typed(&[
    ("Default", Shape::Object(&DEFAULT_MONITORED_SERVICE)),
    ("Configured", Shape::Object(&CONFIGURED_MONITORED_SERVICE)),
], &[]));
part!(DEFAULT_MONITORED_SERVICE, "the `spec` of type `Default`", [may "type": TEXT, may "branch": TEXT]);
part!(CONFIGURED_MONITORED_SERVICE, "the `spec` of type `Configured`", [
    must "monitoredServiceRef": TEXT,
    may "type": TEXT,
    may "branch": TEXT,
]);
part!(VERIFY_CONFIGURABLE_PROPERTY, "an item of `configurableProperties`", [
    must "name": Shape::OneOf(&[
        "deploymentStartTime", "customVerificationStartTime", "dataCollectionDuration",
    ]),
    must "type": TEXT,
    must "value": NUMBER,
]);
part!(MONITORED_SERVICE, "`monitoredService`", [
    must "type": TYPE,
], typed: typed(&[
    ("Default", Shape::Object(&DEFAULT_MONITORED_SERVICE)),
    ("Template", Shape::Object(&TEMPLATE_MONITORED_SERVICE)),
], &[]));
part!(TEMPLATE_MONITORED_SERVICE, "the `spec` of type `Template`", [
    must "monitoredServiceTemplateRef": TEXT,
    must "templateInputs": ANY,
    must "versionLabel": TEXT,
    may "type": TEXT,
    may "label": IDENTIFIER,
]);
part!(AUTO_VERIFICATION_JOB, "the `spec` of type `Auto`", [
    must "duration": TEXT,
    may "failOnNoAnalysis": BOOL,
    may "deploymentTag": TEXT,
    may "sensitivity": TEXT,
    may "supportedDataTypesForVerification": Shape::List(&Shape::OneOf(&["TIME_SERIES", "LOG"])),
    may "trafficSplitPercentage": TEXT,
]);
part!(TEST_VERIFICATION_JOB, "the `spec` of type `LoadTest`", [
    must "duration": TEXT,
    may "failOnNoAnalysis": BOOL,
    may "deploymentTag": TEXT,
    may "sensitivity": TEXT,
    may "supportedDataTypesForVerification": Shape::List(&Shape::OneOf(&["TIME_SERIES", "LOG"])),
    may "baseline": TEXT,
]);
part!(SIMPLE_VERIFICATION_JOB, "the `spec` of type `SimpleVerification`", [
    must "duration": TEXT,
    may "failOnNoAnalysis": BOOL,
    may "deploymentTag": TEXT,
    may "sensitivity": TEXT,
    may "supportedDataTypesForVerification": Shape::List(&Shape::OneOf(&["TIME_SERIES", "LOG"])),
]);
