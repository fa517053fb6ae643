use serde_json::json;

use super::*;

const LISTENER: &str = "arn:aws:elasticloadbalancing:eu-west-1:1:listener/app/web/1/2";
const RULE: &str = "arn:aws:elasticloadbalancing:eu-west-1:1:listener-rule/app/web/1/2/3";
const GROUP: &str = "arn:aws:elasticloadbalancing:eu-west-1:1:targetgroup/one/4";

fn create(more: Value) -> Value {
    let mut spec = json!({
        "loadBalancer": "web", "prodListener": LISTENER, "prodListenerRuleArn": RULE,
        "stageListener": LISTENER, "stageListenerRuleArn": RULE,
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        spec[name] = value.clone();
    }
    spec
}

#[test]
fn faults_of_a_creation() {
    let table = [
        (json!({}), ""),
        (
            json!({"prodListener": "<+input>", "stageListener": "<+x>"}),
            "",
        ),
        (
            json!({"forceNewDeployment": false, "updateGreenService": "true"}),
            "",
        ),
        (json!({"loadBalancer": ""}), "`loadBalancer` is missing"),
        (
            json!({"stageListener": null}),
            "`stageListener` is missing: only with `isTrafficShift: true` there is one rule for both versions",
        ),
        (
            json!({"stageListener": null, "stageListenerRuleArn": null, "isTrafficShift": true}),
            "",
        ),
        (
            json!({"stageListener": null, "isTrafficShift": "<+pipeline.variables.shift>"}),
            "",
        ),
        (
            json!({"isTrafficShift": true, "enableAutoScalingInSwapStep": true}),
            "`enableAutoScalingInSwapStep` cannot be true with `isTrafficShift`: there is no swap step then",
        ),
        (
            json!({"prodListenerRuleArn": LISTENER}),
            "`prodListenerRuleArn` must be an ARN (arn:aws:elasticloadbalancing:…:listener-rule/…)",
        ),
        (
            json!({"prodListner": LISTENER}),
            "`prodListner` is not a field of this step; did you mean `prodListener`?",
        ),
        (
            json!({"updateGreenService": "maybe"}),
            "`updateGreenService` must be true or false",
        ),
    ];
    for (more, faults) in table {
        assert_eq!(
            check_create(&create(more.clone())).join("; "),
            faults,
            "{more}"
        );
    }
}

#[test]
fn faults_of_a_shift() {
    let inherit = |weight: Value| json!({"type": "Inherit", "spec": {"weightPercentage": weight}});
    let standalone = |config: Value| {
        json!({"type": "Standalone", "spec": {"loadBalancer": "web", "listener": LISTENER,
            "listenerRuleArn": RULE, "forwardConfig": config}})
    };
    let tuple = |weight: Value| json!({"targetGroupArn": GROUP, "weight": weight});
    let table = [
        (inherit(json!(0)), ""),
        (inherit(json!("100")), ""),
        (inherit(json!("<+matrix.weight>")), ""),
        (
            inherit(json!(101)),
            "`weightPercentage` must be from 0 to 100",
        ),
        (
            inherit(json!(-1)),
            "`weightPercentage` must be a whole number from 0",
        ),
        (inherit(json!(null)), "`weightPercentage` is missing"),
        (
            json!({"type": "Inherited"}),
            "`ecsTrafficShiftWrapper` must have `type: Inherit` or `type: Standalone`",
        ),
        (
            json!(null),
            "`ecsTrafficShiftWrapper` must have `type: Inherit` or `type: Standalone`",
        ),
        (standalone(json!([tuple(json!(70))])), ""),
        (standalone(json!("<+input>")), ""),
        (
            standalone(json!([])),
            "`forwardConfig` must be a list of 1 to 5 target groups with their weights",
        ),
        (
            standalone(json!([tuple(json!(1000))])),
            "`weight` must be from 0 to 999",
        ),
        (
            standalone(json!([tuple(json!(0))])),
            "`forwardConfig` has only weights of 0: no request would be answered",
        ),
        (
            standalone(json!([tuple(json!(1)), tuple(json!(2))])),
            "`forwardConfig` has target group arn:aws:elasticloadbalancing:eu-west-1:1:targetgroup/one/4 twice",
        ),
        (
            standalone(json!([{"targetGroupArn": "one", "weight": 1}])),
            "`targetGroupArn` must be an ARN (arn:aws:elasticloadbalancing:…:targetgroup/…)",
        ),
    ];
    for (wrapper, faults) in table {
        let spec = json!({"ecsTrafficShiftWrapper": wrapper});
        assert_eq!(check_shift(&spec).join("; "), faults, "{spec}");
    }
    let spec = json!({"ecsTrafficShiftWrapper": inherit(json!("30.0"))});
    assert_eq!(Shift::read(&spec).ok(), Some(Shift::Inherit(30)));
}
