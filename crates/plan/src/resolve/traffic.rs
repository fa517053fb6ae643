//! How a blue-green stage moves its requests: with a swap, or by weights. Both in one stage would undo one another, so
//! that is refused while planning where it can be seen; the step looks again at what expressions have become.

use slipway_model::{Code, Ref};

use super::Resolver;

const CREATE: &str = "EcsBlueGreenCreateService";
const SWAP: &str = "EcsBlueGreenSwapTargetGroups";
const SHIFT: &str = "EcsBlueGreenTrafficShift";

impl Resolver<'_> {
    /// Refuses a swap step beside steps that shift the requests of the service by weights.
    pub(super) fn check_traffic(&mut self, spec: Ref<'_>) {
        let mut steps = Vec::new();
        if let Some(list) = spec.at(&["execution", "steps"]) {
            collect(list, &mut steps);
        }
        let of_type = |step: &&Ref<'_>, kind: &str| step.get_text("type") == Some(kind);
        let Some(swap) = steps.iter().find(|step| of_type(step, SWAP)) else {
            return;
        };
        let Some(shift) = steps.iter().find(|step| shifts(**step)) else {
            return;
        };
        let name = |step: &Ref<'_>| step.get_text("identifier").unwrap_or("?").to_owned();
        let message = format!(
            "step `{}` swaps the target groups, and step `{}` shifts requests between them by weights: a stage does one \
             of the two. Take out the swap, or the traffic shift with its `isTrafficShift`",
            name(swap),
            name(shift)
        );
        let at = swap.get("type").unwrap_or(*swap);
        self.fault(Code::BadValue, at, message);
    }
}

/// Whether a step shifts the requests of the stage's service; a Standalone shift is about another rule.
fn shifts(step: Ref<'_>) -> bool {
    let text = |path: &[&str]| step.at(path).and_then(Ref::text);
    match step.get_text("type") {
        Some(CREATE) => text(&["spec", "isTrafficShift"]) == Some("true"),
        Some(SHIFT) => text(&["spec", "ecsTrafficShiftWrapper", "type"]) == Some("Inherit"),
        _ => false,
    }
}

fn collect<'r>(list: Ref<'r>, into: &mut Vec<Ref<'r>>) {
    for item in list.items() {
        if let Some(step) = item.get("step") {
            into.push(step);
        } else if let Some(steps) = item.at(&["stepGroup", "steps"]) {
            collect(steps, into);
        } else if let Some(branches) = item.get("parallel") {
            collect(branches, into);
        }
    }
}
