//! Feature flags: Harness FF and FME.

use super::common::{FLAG, FLAG_TAG, PERCENT, TREATMENT};
use crate::schema::{ANY, BOOL, FILLED, TEXT, TEXTS, TYPE, VARIABLES, object};
use crate::shape::{Field, Object, Shape, Typed};

object!(FLAG_PLACE, "a step", [
    must "environment": FILLED,
    must "flagName": FLAG,
]);

bare!(FLAG_CONFIGURATION, "`FlagConfiguration`", [
    must "environment": TEXT,
    must "feature": TEXT,
    must "instructions": Shape::List(&Shape::Object(&PATCH_INSTRUCTION)),
]);
bare!(FLAG_ADD_REMOVE_FLAGSETS, "`FmeFlagAddRemoveFlagsets`" + FLAG_PLACE, [
    may "addFlagsets": TEXTS,
    may "removeFlagsets": TEXTS,
]);
bare!(FLAG_ADD_REMOVE_INDIVIDUAL_TARGETS, "`FmeFlagAddRemoveIndividualTargets`" + FLAG_PLACE, [
    must "treatments": Shape::List(&Shape::Object(&CHANGED_TARGETS)),
]);
bare!(NAMED, "`FmeFlagArchive`, `FmeFlagsetDelete` or `FmeSegmentDelete`", [must "name": FLAG]);
bare!(FLAG_CREATE, "`FmeFlagCreate`", [
    must "trafficType": TEXT,
    must "name": FLAG,
    may "description": TEXT,
    may "owners": TEXTS,
    may "tags": Shape::List(&FLAG_TAG),
    may "defaultTreatment": TREATMENT,
    may "baselineTreatment": TREATMENT,
    may "treatments": Shape::List(&Shape::Object(&NEW_TREATMENT)),
]);
bare!(FLAG_DEFAULT_ALLOCATION, "`FmeFlagDefaultAllocation`" + FLAG_PLACE, [
    must "allocation": Shape::List(&Shape::Object(&DEFAULT_SHARE)),
]);
bare!(FLAG_DEFINITION_INSTRUCTIONS, "`FmeFlagDefinitionInstructions`" + FLAG_PLACE, [
    must "instructions": Shape::List(&Shape::Object(&INSTRUCTION)),
    may "defaultDefinition": Shape::Object(&DEFAULT_DEFINITION),
]);
bare!(FLAG_DELETE, "`FmeFlagDelete`", [must "name": FLAG, may "deleteAllDefinitions": BOOL]);
bare!(
    PLACED,
    "`FmeFlagKill`, `FmeFlagReallocateTraffic` or `FmeFlagRestore`" + FLAG_PLACE,
    []
);
bare!(FLAG_LIMIT_EXPOSURE, "`FmeFlagLimitExposure`" + FLAG_PLACE, [must "limit": PERCENT]);
bare!(FLAG_PATCH_DEFINITION, "`FmeFlagPatchDefinition`" + FLAG_PLACE, [
    must "operations": TEXT,
    may "inputVariables": VARIABLES,
]);
bare!(FLAG_SET_DYNAMIC_CONFIGURATIONS, "`FmeFlagSetDynamicConfigurations`" + FLAG_PLACE, [
    must "treatments": Shape::List(&Shape::Object(&TREATMENT_CONFIGURATION)),
    may "inputVariables": VARIABLES,
]);
bare!(FLAG_SET_IMPRESSION_TRACKING, "`FmeFlagSetImpressionTracking`" + FLAG_PLACE, [must "enabled": BOOL]);
bare!(FLAG_SET_INDIVIDUAL_TARGETS, "`FmeFlagSetIndividualTargets`" + FLAG_PLACE, [
    must "treatments": Shape::List(&Shape::Object(&TREATMENT_TARGETS)),
]);
bare!(FLAG_SET_TARGETING_RULES, "`FmeFlagSetTargetingRules`" + FLAG_PLACE, [
    must "targetingRules": Shape::List(&Shape::Object(&TARGETING_RULE)),
]);
bare!(FLAG_SET_TREATMENTS, "`FmeFlagSetTreatments`" + FLAG_PLACE, [
    must "defaultTreatment": TREATMENT,
    must "baselineTreatment": TREATMENT,
    must "treatments": Shape::List(&Shape::Object(&NEW_TREATMENT)),
]);
bare!(FLAG_UPDATE, "`FmeFlagUpdate`", [
    must "name": FLAG,
    may "description": TEXT,
    may "rolloutStatus": TEXT,
    may "owners": TEXTS,
    may "tags": Shape::List(&FLAG_TAG),
]);
bare!(FLAGSET_CREATE, "`FmeFlagsetCreate`", [must "name": FLAG, may "description": TEXT]);
bare!(METRIC_CHECK, "`FmeMetricCheck`" + FLAG_PLACE, [
    must "lookbackWindow": TEXT,
    must "failureCriteria": Shape::Object(&FAILURE_CRITERIA),
    may "metrics": Shape::List(&Shape::Object(&METRIC)),
]);
bare!(SEGMENT_ADD_REMOVE_TARGETS, "`FmeSegmentAddRemoveTargets`", [
    must "segmentName": FLAG,
    must "environment": FILLED,
    may "addKeys": TEXTS,
    may "removeKeys": TEXTS,
]);
bare!(SEGMENT_CREATE, "`FmeSegmentCreate`", [
    must "trafficType": TEXT,
    must "name": FLAG,
    must "segmentType": Shape::OneOf(&["Standard", "Large", "RuleBased"]),
    may "description": TEXT,
    may "owners": TEXTS,
    may "tags": Shape::List(&FLAG_TAG),
]);
bare!(SEGMENT_SET_TARGETING_RULES, "`FmeSegmentSetTargetingRules`", [
    must "segmentName": FLAG,
    must "environment": FILLED,
    may "rules": Shape::List(&Shape::Object(&SEGMENT_RULE)),
    may "excludeKeys": TEXTS,
    may "excludeSegments": TEXTS,
    may "comment": TEXT,
    may "title": TEXT,
]);
bare!(SEGMENT_UPDATE, "`FmeSegmentUpdate`", [
    must "name": FLAG,
    may "description": TEXT,
    may "owners": TEXTS,
    may "tags": Shape::List(&FLAG_TAG),
]);

part!(INSTRUCTION, "an item of `instructions`", [must "type": TYPE], typed: Some(Typed {
    by: "type",
    field: "value",
    shapes: &[
        ("SetDefaultTreatment", TREATMENT),
        ("SetBaselineTreatment", TREATMENT),
        ("SetTrackImpression", BOOL),
        ("SetLimitExposure", PERCENT),
        ("SetTargetingRules", Shape::List(&Shape::Object(&TARGETING_RULE))),
        ("SetDefaultAllocations", Shape::List(&Shape::Object(&DEFAULT_SHARE))),
        ("SetTreatments", Shape::List(&Shape::Object(&NEW_TREATMENT))),
        ("SetFlagKilled", BOOL),
    ],
    names: &["UpdateIndividualTargets", "UpdateDynamicConfiguration", "SetRolloutStatus"],
}));
part!(PATCH_INSTRUCTION, "an item of `instructions`", [
    may "identifier": TEXT,
    may "spec": ANY,
    may "type": Shape::OneOf(&[
        "SetFeatureFlagState", "SetOnVariation", "SetOffVariation", "SetDefaultVariations", "AddRule",
        "UpdateRule", "AddTargetsToVariationTargetMap", "RemoveTargetsToVariationTargetMap",
        "AddSegmentToVariationTargetMap", "RemoveSegmentsToVariationTargetMap",
    ]),
]);
part!(CHANGED_TARGETS, "an item of `treatments`", [
    must "treatment": TEXT,
    may "addKeys": TEXTS,
    may "removeKeys": TEXTS,
    may "addSegments": TEXTS,
    may "removeSegments": TEXTS,
]);
part!(NEW_TREATMENT, "an item of `treatments`", [must "treatment": TEXT, must "description": TEXT]);
part!(DEFAULT_SHARE, "an item of `allocation`", [must "treatment": TEXT, must "amount": PERCENT]);
part!(DEFAULT_DEFINITION, "`defaultDefinition`", [
    must "treatments": Shape::List(&Shape::Object(&NEW_TREATMENT)),
    must "defaultTreatment": TREATMENT,
    must "baselineTreatment": TREATMENT,
]);
part!(TREATMENT_CONFIGURATION, "an item of `treatments`", [must "treatment": TEXT, must "configuration": TEXT]);
part!(TREATMENT_TARGETS, "an item of `treatments`", [
    must "treatment": TEXT,
    may "keys": TEXTS,
    may "segments": TEXTS,
]);
part!(TARGETING_RULE, "an item of `targetingRules`", [
    must "condition": Shape::Object(&RULE_CONDITION),
    must "allocation": Shape::List(&Shape::Object(&RULE_SHARE)),
]);
part!(RULE_CONDITION, "`condition`", [must "rules": Shape::List(&Shape::Object(&MATCHER))]);
part!(MATCHER, "an item of `rules`", [
    must "type": Shape::OneOf(&[
        "IN_SEGMENT", "IN_SPLIT", "BOOLEAN", "ON_DATE", "ON_OR_AFTER_DATE", "ON_OR_BEFORE_DATE",
        "BETWEEN_DATE", "EQUAL_SET", "ANY_OF_SET", "ALL_OF_SET", "PART_OF_SET", "EQUAL_NUMBER",
        "LESS_THAN_OR_EQUAL_NUMBER", "GREATER_THAN_OR_EQUAL_NUMBER", "BETWEEN_NUMBER", "IN_LIST_STRING",
        "STARTS_WITH_STRING", "ENDS_WITH_STRING", "CONTAINS_STRING", "MATCHES_STRING",
        "EQUAL_TO_SEMVER", "GREATER_THAN_OR_EQUAL_TO_SEMVER", "LESS_THAN_OR_EQUAL_TO_SEMVER",
        "BETWEEN_SEMVER", "IN_LIST_SEMVER",
    ]),
    may "negate": BOOL,
    may "feature_flag": FLAG,
    may "attribute": TEXT,
    may "value": ANY,
]);
part!(RULE_SHARE, "an item of `allocation`", [must "treatment": TREATMENT, must "size": PERCENT]);
part!(METRIC, "an item of `metrics`", [must "ref": TEXT]);
part!(FAILURE_CRITERIA, "`failureCriteria`", [
    must "type": Shape::OneOf(&["Jexl"]),
    must "spec": Shape::Object(&JEXL_CRITERIA),
]);
part!(JEXL_CRITERIA, "`spec`", [must "condition": TEXT]);
part!(SEGMENT_RULE, "an item of `rules`", [must "condition": Shape::Object(&RULE_CONDITION)]);
