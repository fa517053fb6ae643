//! What a rule does with a request.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::load_balancer::{Kind, LoadBalancer};
use super::request::{bounded, flag, missing, validation};
use super::target_group::{Arns, Layer, TargetGroup};
use super::{target_group, usage};
use crate::account::Account;
use crate::error::ApiError;
use crate::fields::{Document, Fields, omit, pick};

/// Most target groups of one action (ELB quotas).
const MOST_GROUPS: usize = 5;
/// Heaviest weight of a target group (ELBv2 API reference, `TargetGroupTuple`).
const HEAVIEST: i64 = 999;
/// Longest stickiness to a target group, seconds: 7 days.
const STICKIEST: i64 = 604_800;

/// Type and member of an action that asks an identity provider first.
const OIDC: (&str, &str) = ("authenticate-oidc", "AuthenticateOidcConfig");
/// The same of Cognito.
const COGNITO: (&str, &str) = ("authenticate-cognito", "AuthenticateCognitoConfig");

/// A target group and its share of the requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Weighted {
    pub(super) group: String,
    pub(super) weight: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Action {
    kind: String,
    order: Option<i64>,
    /// Of a `forward`.
    pub(super) groups: Vec<Weighted>,
    stickiness: Document,
    /// `RedirectConfig`, `FixedResponseConfig` or `Authenticate…Config`, as it came, but for the client's secret: AWS
    /// tells it to nobody.
    other: Document,
}

impl Action {
    pub(super) fn is_forward(&self) -> bool {
        self.kind == "forward"
    }

    fn authenticates(&self) -> bool {
        [OIDC.0, COGNITO.0].contains(&self.kind.as_str())
    }

    fn view(&self) -> Value {
        let mut view = self.other.clone();
        view.insert("Type".into(), json!(self.kind));
        view.insert("Order".into(), json!(self.order));
        if self.is_forward() {
            if let [only] = self.groups.as_slice() {
                view.insert("TargetGroupArn".into(), json!(only.group));
            }
            let groups = self.groups.iter();
            let groups: Vec<Value> = groups
                .map(|one| json!({"TargetGroupArn": one.group, "Weight": one.weight}))
                .collect();
            let config =
                json!({"TargetGroups": groups, "TargetGroupStickinessConfig": self.stickiness});
            view.insert("ForwardConfig".into(), config);
        }
        Value::Object(view)
    }
}

pub(super) fn views(actions: &[Action]) -> Vec<Value> {
    actions.iter().map(Action::view).collect()
}

/// Target groups that the actions forward to.
pub(super) fn groups(actions: &[Action]) -> Arns {
    let all = actions.iter().flat_map(|action| &action.groups);
    all.map(|one| one.group.clone()).collect()
}

/// Reads the actions of a listener or rule of `balancer`, which has those of `before` where it is changed.
pub(super) fn read(
    account: &Account,
    balancer: &LoadBalancer,
    protocol: &str,
    items: &[&Document],
    before: &[Action],
) -> Result<Vec<Action>, ApiError> {
    let known = before.iter().any(|action| action.kind == OIDC.0);
    let mut actions = Vec::new();
    for item in items {
        actions.push(read_one(Fields(item), known)?);
    }
    actions.sort_by_key(|action| action.order);
    let Some(last) = actions.last() else {
        return Err(missing("Actions"));
    };
    if let Some(first) = actions.iter().find(|action| action.authenticates()) {
        if protocol != "HTTPS" {
            return Err(ApiError::client(
                "InvalidLoadBalancerAction",
                format!(
                    "Actions of type '{}' are supported only on HTTPS listeners",
                    first.kind
                ),
            ));
        }
        if last.authenticates() {
            return Err(ApiError::client(
                "InvalidLoadBalancerAction",
                "The last action must be of type forward, redirect or fixed-response",
            ));
        }
    }
    if actions
        .iter()
        .filter(|action| !action.authenticates())
        .count()
        > 1
    {
        return Err(ApiError::client(
            "TooManyActions",
            "Only one action of type forward, redirect or fixed-response can be specified",
        ));
    }
    if balancer.kind == Kind::Network && !last.is_forward() {
        return Err(ApiError::client(
            "InvalidLoadBalancerAction",
            format!(
                "Actions of type '{}' are not supported with Network Load Balancers",
                last.kind
            ),
        ));
    }
    for group in groups(&actions) {
        let found = account.elb.target_groups.get(&group);
        let found = found.ok_or_else(target_group::not_found)?;
        check_protocol(balancer.kind, protocol, found)?;
        let other = usage::load_balancer_of(account, &group).filter(|arn| *arn != balancer.arn);
        if other.is_some() {
            return Err(ApiError::client(
                "TargetGroupAssociationLimit",
                format!(
                    "The following target groups cannot be associated with more than one load balancer: {group}"
                ),
            ));
        }
    }
    Ok(actions)
}

/// `known` says that the rule has a secret of a client already.
fn read_one(item: Fields<'_>, known: bool) -> Result<Action, ApiError> {
    let kind = item.text("Type")?.ok_or_else(|| missing("Type"))?;
    let config = match kind {
        "forward" => "",
        "redirect" => "RedirectConfig",
        "fixed-response" => "FixedResponseConfig",
        kind if kind == OIDC.0 => OIDC.1,
        kind if kind == COGNITO.0 => COGNITO.1,
        other => {
            return Err(validation(format!(
                "The sandbox account does not implement actions of type '{other}'"
            )));
        }
    };
    let mut action = Action {
        kind: kind.to_owned(),
        order: bounded(item, "Order", 1, 50_000)?,
        groups: Vec::new(),
        stickiness: Document::new(),
        other: pick(item.0, &[config]),
    };
    if action.is_forward() {
        action.groups = weights(item)?;
        action.stickiness = stickiness(item)?;
        return Ok(action);
    }
    let given = item.object(config)?.ok_or_else(|| missing(config))?;
    if action.authenticates() {
        let shown = check_provider(kind, Fields(given), known)?;
        action.other.insert(config.to_owned(), Value::Object(shown));
    } else {
        let status = Fields(given).text("StatusCode")?;
        if status.is_none() {
            return Err(missing("StatusCode"));
        }
    }
    Ok(action)
}

/// What an identity provider needs (ELBv2 API reference, `AuthenticateOidcActionConfig` and
/// `AuthenticateCognitoActionConfig`); gives what is shown of it. A changed rule may leave the secret out where it says so.
fn check_provider(kind: &str, given: Fields<'_>, known: bool) -> Result<Document, ApiError> {
    let required: &[&str] = match kind == OIDC.0 {
        true => &[
            "Issuer",
            "AuthorizationEndpoint",
            "TokenEndpoint",
            "UserInfoEndpoint",
            "ClientId",
        ],
        false => &["UserPoolArn", "UserPoolClientId", "UserPoolDomain"],
    };
    for name in required {
        given.text(name)?.ok_or_else(|| missing(name))?;
    }
    let keeps = flag(given, "UseExistingClientSecret")?.unwrap_or(false);
    let secret = given.text("ClientSecret")?;
    if kind == OIDC.0 && secret.is_none() && !(keeps && known) {
        return Err(ApiError::client(
            "InvalidLoadBalancerAction",
            "A client secret must be specified for actions of type 'authenticate-oidc'",
        ));
    }
    Ok(omit(given.0, &["ClientSecret", "UseExistingClientSecret"]))
}

/// Target groups of a `forward`, named by `TargetGroupArn`, by `ForwardConfig`, or by both alike.
fn weights(item: Fields<'_>) -> Result<Vec<Weighted>, ApiError> {
    let single = item.text("TargetGroupArn")?;
    let config = item.object("ForwardConfig")?.map(Fields);
    let mut groups: Vec<Weighted> = Vec::new();
    for tuple in config.map_or(Ok(Vec::new()), |config| config.objects("TargetGroups"))? {
        let tuple = Fields(tuple);
        let group = tuple.text("TargetGroupArn")?;
        let group = group.ok_or_else(|| missing("TargetGroupArn"))?;
        if groups.iter().any(|one| one.group == group) {
            return Err(validation(format!(
                "Target group '{group}' is specified more than once in an action"
            )));
        }
        groups.push(Weighted {
            group: group.to_owned(),
            weight: bounded(tuple, "Weight", 0, HEAVIEST)?.unwrap_or(1),
        });
    }
    if groups.len() > MOST_GROUPS {
        return Err(validation(format!(
            "An action can forward to at most '{MOST_GROUPS}' target groups"
        )));
    }
    match (single, groups.as_slice()) {
        (None, []) => Err(validation(
            "A target group ARN or a forward config must be specified for actions of type forward",
        )),
        (Some(group), []) => Ok(vec![Weighted {
            group: group.to_owned(),
            weight: 1,
        }]),
        (Some(group), [only]) if only.group == group => Ok(groups),
        (Some(_), _) => Err(validation(
            "You can specify both a target group ARN and a forward config only if they name the same one target group",
        )),
        (None, _) => Ok(groups),
    }
}

fn stickiness(item: Fields<'_>) -> Result<Document, ApiError> {
    let config = item.object("ForwardConfig")?.map(Fields);
    let given = match config {
        None => None,
        Some(config) => config.object("TargetGroupStickinessConfig")?,
    };
    let nothing = Document::new();
    let given = Fields(given.unwrap_or(&nothing));
    let enabled = flag(given, "Enabled")?.unwrap_or(false);
    let seconds = bounded(given, "DurationSeconds", 1, STICKIEST)?;
    if enabled && seconds.is_none() {
        return Err(missing("DurationSeconds"));
    }
    let mut view = Document::new();
    view.insert("Enabled".into(), json!(enabled));
    if let Some(seconds) = seconds {
        view.insert("DurationSeconds".into(), json!(seconds));
    }
    Ok(view)
}

fn check_protocol(kind: Kind, protocol: &str, group: &TargetGroup) -> Result<(), ApiError> {
    let of_group = group.protocol.as_deref().unwrap_or_default();
    let fits = match (kind, group.layer()) {
        (Kind::Application, layer) => layer != Layer::Network,
        (Kind::Network, Layer::Network) => match protocol {
            "TLS" => ["TCP", "TLS"].contains(&of_group),
            "TCP" | "UDP" => [protocol, "TCP_UDP"].contains(&of_group),
            _ => of_group == protocol,
        },
        (Kind::Network, _) => false,
    };
    if fits {
        return Ok(());
    }
    Err(ApiError::client(
        "IncompatibleProtocols",
        format!(
            "The listener protocol '{protocol}' is not supported with a target group with the \
             target-group-protocol '{of_group}'"
        ),
    ))
}
