//! Which load balancer a target group is on, and what changes for its targets when that changes.

use super::action;
use super::target::State;
use super::target_group::Arns;
use super::{target, traffic};
use crate::account::Account;

/// ARN of the load balancer that has a rule which forwards to the target group. There is one at most.
pub(crate) fn load_balancer_of<'a>(account: &'a Account, group: &str) -> Option<&'a str> {
    let mut rules = account.elb.rules.iter().map(|(_, rule)| rule);
    let rule = rules.find(|rule| rule.forwards_to(group))?;
    let listener = account.elb.listeners.get(&rule.listener)?;
    Some(&listener.load_balancer)
}

/// Target groups that rules of a load balancer forward to.
pub(super) fn groups_of_load_balancer(account: &Account, arn: &str) -> Arns {
    let mut groups = Arns::new();
    for (_, rule) in account.elb.rules.iter() {
        let listener = account.elb.listeners.get(&rule.listener);
        if listener.is_some_and(|listener| listener.load_balancer == arn) {
            groups.extend(action::groups(&rule.actions));
        }
    }
    groups
}

/// Begins to check the targets of groups that are in use now, and ends it where they are not any more.
pub(super) fn refresh(account: &mut Account, groups: &Arns) {
    for group in groups {
        let used = load_balancer_of(account, group).is_some();
        for key in target::keys(account, group) {
            let state = account.elb.targets.get(&key).map(|target| target.state);
            match state {
                Some(State::Unused) if used => target::turn(account, &key, State::Initial),
                Some(State::Initial | State::Healthy | State::Unhealthy) if !used => {
                    target::turn(account, &key, State::Unused);
                }
                _ => {}
            }
        }
        traffic::note_group(account, group);
    }
}
