//! Where the requests of a rule go: target groups and their weights.

use std::fmt;

use aws_sdk_elasticloadbalancingv2::types::{
    Action, ActionTypeEnum, ForwardActionConfig, TargetGroupStickinessConfig, TargetGroupTuple,
};
use serde::{Deserialize, Serialize};

/// Target groups that share the requests of a rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Forward {
    pub(super) groups: Vec<Weighted>,
    /// Seconds for which a client stays with a target group; `None` where it does not.
    sticky: Option<i32>,
}

/// A target group and its weight, 0 to 999.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Weighted {
    pub(super) group: String,
    pub(super) weight: i32,
}

impl Forward {
    /// Everything to one target group.
    pub(super) fn to(group: &str) -> Self {
        Self::of([(group, 1)])
    }

    /// Shares by weight.
    pub(super) fn of<'g>(groups: impl IntoIterator<Item = (&'g str, i32)>) -> Self {
        let groups = groups.into_iter().map(|(group, weight)| Weighted {
            group: group.to_owned(),
            weight,
        });
        Self {
            groups: groups.collect(),
            sticky: None,
        }
    }

    /// The same shares, with the stickiness of `other`.
    pub(super) fn sticky_as(mut self, other: &Self) -> Self {
        self.sticky = other.sticky;
        self
    }

    /// What an action forwards to; `None` where it forwards to nothing.
    pub(super) fn read(action: &Action) -> Option<Self> {
        if action.r#type() != Some(&ActionTypeEnum::Forward) {
            return None;
        }
        let config = action.forward_config();
        let tuples = config.map(ForwardActionConfig::target_groups);
        let mut groups: Vec<Weighted> = tuples
            .unwrap_or_default()
            .iter()
            .filter_map(|tuple| {
                Some(Weighted {
                    group: tuple.target_group_arn()?.to_owned(),
                    weight: tuple.weight().unwrap_or(1),
                })
            })
            .collect();
        if let (true, Some(group)) = (groups.is_empty(), action.target_group_arn()) {
            groups = Self::to(group).groups;
        }
        let sticky = config
            .and_then(ForwardActionConfig::target_group_stickiness_config)
            .filter(|sticky| sticky.enabled() == Some(true));
        let sticky = sticky.and_then(TargetGroupStickinessConfig::duration_seconds);
        (!groups.is_empty()).then_some(Self { groups, sticky })
    }

    /// `action`, forwarding to this instead.
    pub(super) fn write(&self, action: &mut Action) {
        // Network Load Balancers take a bare target group.
        if let ([only], None) = (self.groups.as_slice(), self.sticky) {
            action.target_group_arn = Some(only.group.clone());
            action.forward_config = None;
            return;
        }
        let tuples = self.groups.iter().map(|one| {
            TargetGroupTuple::builder()
                .target_group_arn(&one.group)
                .weight(one.weight)
                .build()
        });
        let sticky = TargetGroupStickinessConfig::builder()
            .enabled(self.sticky.is_some())
            .set_duration_seconds(self.sticky)
            .build();
        action.target_group_arn = None;
        action.forward_config = Some(
            ForwardActionConfig::builder()
                .set_target_groups(Some(tuples.collect()))
                .target_group_stickiness_config(sticky)
                .build(),
        );
    }

    /// Whether requests are shared in the same way; the weight of an only target group means nothing.
    pub(super) fn same_shares(&self, other: &Self) -> bool {
        let shares = |forward: &Self| {
            let mut groups = forward.groups.clone();
            if let [only] = groups.as_mut_slice() {
                only.weight = 1;
            }
            groups.sort_unstable();
            groups
        };
        shares(self) == shares(other)
    }

    /// Whether a target group gets a greater share of the requests than by `before`.
    pub(super) fn gives_more(&self, before: &Self, group: &str) -> bool {
        let (now, all) = self.share(group);
        let (then, all_then) = before.share(group);
        now * all_then.max(1) > then * all.max(1)
    }

    /// The weight of a target group, and of all; that of an only one means nothing.
    fn share(&self, group: &str) -> (i64, i64) {
        let of = |one: &Weighted| match self.groups.len() {
            1 => 1,
            _ => i64::from(one.weight),
        };
        let mine = self.groups.iter().filter(|one| one.group == group);
        (mine.map(of).sum(), self.groups.iter().map(of).sum())
    }

    /// Whether a target group is named, with or without requests: its targets are checked then.
    pub(super) fn names(&self, group: &str) -> bool {
        self.groups.iter().any(|one| one.group == group)
    }

    /// Whether a target group gets requests, also as the only one, whose weight means nothing.
    pub(super) fn sends_to(&self, group: &str) -> bool {
        self.share(group).0 > 0
    }

    /// Whether a target group has a weight.
    pub(super) fn reaches(&self, group: &str) -> bool {
        self.weight(group) > 0
    }

    /// The weight of a target group; 0 where there is none.
    pub(super) fn weight(&self, group: &str) -> i32 {
        let found = self.groups.iter().find(|one| one.group == group);
        found.map_or(0, |one| one.weight)
    }

    /// The only target group that gets requests.
    pub(super) fn only(&self) -> Option<&str> {
        if let [only] = self.groups.as_slice() {
            return Some(&only.group);
        }
        let mut reached = self.groups.iter().filter(|one| one.weight > 0);
        match (reached.next(), reached.next()) {
            (Some(only), None) => Some(&only.group),
            _ => None,
        }
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, one) in self.groups.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            write!(f, "{comma}{}", one.group)?;
            if self.groups.len() > 1 {
                write!(f, " with weight {}", one.weight)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(forward: &Forward) -> Option<Forward> {
        let mut action = Action::builder().r#type(ActionTypeEnum::Forward).build();
        forward.write(&mut action);
        Forward::read(&action)
    }

    #[test]
    fn what_is_written_is_read_again() {
        let sticky = Forward {
            sticky: Some(600),
            ..Forward::default()
        };
        for forward in [
            Forward::to("a"),
            Forward::of([("a", 30), ("b", 70)]),
            Forward::of([("a", 30), ("b", 70)]).sticky_as(&sticky),
            Forward::to("a").sticky_as(&sticky),
        ] {
            assert_eq!(back(&forward).as_ref(), Some(&forward));
        }
        let redirect = Action::builder().r#type(ActionTypeEnum::Redirect).build();
        assert_eq!(Forward::read(&redirect), None);
    }

    #[test]
    fn shares_are_compared_by_what_they_mean() {
        let table = [
            (Forward::of([("a", 5)]), Forward::to("a"), true),
            (
                Forward::of([("a", 1), ("b", 2)]),
                Forward::of([("b", 2), ("a", 1)]),
                true,
            ),
            (
                Forward::of([("a", 1), ("b", 2)]),
                Forward::of([("a", 2), ("b", 1)]),
                false,
            ),
            (Forward::to("a"), Forward::to("b"), false),
        ];
        for (one, other, same) in table {
            assert_eq!(one.same_shares(&other), same, "{one} and {other}");
        }
        assert_eq!(Forward::of([("a", 0), ("b", 2)]).only(), Some("b"));
        assert_eq!(Forward::of([("a", 1), ("b", 2)]).only(), None);
        assert_eq!(Forward::of([("a", 0)]).only(), Some("a"));
    }
}
