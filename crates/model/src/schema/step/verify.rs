//! Continuous verification.

use super::common::{NUMBER, TEXT_MAP, WINDOW};
use super::container::CONTAINED;
use crate::schema::{ANY, BOOL, FILLED, IDENTIFIER, TEXT, TYPE, typed};
use crate::shape::{Field, Object, Shape};

step!(AI_VERIFY_NG, "`AIVerifyNG`" + CONTAINED, [
    must "healthSources": Shape::List(&Shape::Object(&HEALTH_SOURCE)),
    must "dataCollectionWindow": WINDOW,
    may "envVariables": TEXT_MAP,
    may "optionalConfigurations": Shape::Object(&OPTIONAL_CONFIGURATIONS),
]);
bare!(ANALYZE_DEPLOYMENT_IMPACT, "`AnalyzeDeploymentImpact`", [
    must "duration": TEXT,
    may "monitoredService": Shape::Object(&ANALYZED_SERVICE),
]);
bare!(VERIFY, "`Verify`", [
    must "type": TYPE,
    may "isMultiServicesOrEnvs": BOOL,
    may "failOnNoAnalysis": BOOL,
    may "configurableProperties": Shape::List(&Shape::Object(&PROPERTY)),
    may "monitoredService": Shape::Object(&MONITORED_SERVICE),
], typed: typed(&[
    ("Auto", Shape::Object(&VERIFICATION)),
    ("Bluegreen", Shape::Object(&VERIFICATION)),
    ("Canary", Shape::Object(&VERIFICATION)),
    ("LoadTest", Shape::Object(&LOAD_TEST)),
    ("Rolling", Shape::Object(&VERIFICATION)),
    ("SimpleVerification", Shape::Object(&SIMPLE_VERIFICATION)),
], &[]));

part!(HEALTH_SOURCE, "an item of `healthSources`", [must "healthSourceRef": FILLED]);
part!(OPTIONAL_CONFIGURATIONS, "`optionalConfigurations`", [
    may "sensitivity": TEXT,
    may "verificationType": TEXT,
    may "failOnNoAnalysis": BOOL,
    may "controlNodeRegexPattern": TEXT,
    may "testNodeRegexPattern": TEXT,
    may "baselineEndTime": TEXT,
    may "verificationStartTime": TEXT,
]);
part!(ANALYZED_SERVICE, "`monitoredService`", [must "type": TYPE], typed: typed(&[
    ("Default", Shape::Object(&DEFAULT_SERVICE)),
    ("Configured", Shape::Object(&CONFIGURED_SERVICE)),
], &[]));
part!(DEFAULT_SERVICE, "the `spec` of type `Default`", [may "type": TEXT, may "branch": TEXT]);
part!(CONFIGURED_SERVICE, "the `spec` of type `Configured`", [
    must "monitoredServiceRef": TEXT,
    may "type": TEXT,
    may "branch": TEXT,
]);
part!(PROPERTY, "an item of `configurableProperties`", [
    must "name": Shape::OneOf(&[
        "deploymentStartTime", "customVerificationStartTime", "dataCollectionDuration",
    ]),
    must "type": TEXT,
    must "value": NUMBER,
]);
part!(MONITORED_SERVICE, "`monitoredService`", [must "type": TYPE], typed: typed(&[
    ("Default", Shape::Object(&DEFAULT_SERVICE)),
    ("Template", Shape::Object(&TEMPLATE_SERVICE)),
], &[]));
part!(TEMPLATE_SERVICE, "the `spec` of type `Template`", [
    must "monitoredServiceTemplateRef": TEXT,
    must "templateInputs": ANY,
    must "versionLabel": TEXT,
    may "type": TEXT,
    may "label": IDENTIFIER,
]);
part!(VERIFICATION, "a verification", [
    must "duration": TEXT,
    may "failOnNoAnalysis": BOOL,
    may "deploymentTag": TEXT,
    may "sensitivity": TEXT,
    may "supportedDataTypesForVerification": Shape::List(&Shape::OneOf(&["TIME_SERIES", "LOG"])),
    may "trafficSplitPercentage": TEXT,
]);
part!(LOAD_TEST, "the `spec` of type `LoadTest`", [
    must "duration": TEXT,
    may "failOnNoAnalysis": BOOL,
    may "deploymentTag": TEXT,
    may "sensitivity": TEXT,
    may "supportedDataTypesForVerification": Shape::List(&Shape::OneOf(&["TIME_SERIES", "LOG"])),
    may "baseline": TEXT,
]);
part!(SIMPLE_VERIFICATION, "the `spec` of type `SimpleVerification`", [
    must "duration": TEXT,
    may "failOnNoAnalysis": BOOL,
    may "deploymentTag": TEXT,
    may "sensitivity": TEXT,
    may "supportedDataTypesForVerification": Shape::List(&Shape::OneOf(&["TIME_SERIES", "LOG"])),
]);
