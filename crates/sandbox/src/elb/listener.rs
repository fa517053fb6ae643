//! Listeners. What one does without any other rule is a rule of its own, the default one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::load_balancer::{self, Kind, LoadBalancer};
use super::request::{arn_prefix, bounded, listed, missing, page, required, validation};
use super::rule::Rule;
use super::{action, attributes, rule, tag};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields};

/// Most listeners of a load balancer (ELB quotas).
const MOST: usize = 50;
/// Policy of listeners that terminate TLS and name none.
const SSL_POLICY: &str = "ELBSecurityPolicy-2016-08";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Listener {
    pub(super) arn: String,
    /// ARN of the load balancer.
    pub(super) load_balancer: String,
    port: i64,
    pub(super) protocol: String,
    certificates: Vec<Value>,
    ssl_policy: Option<String>,
    alpn_policy: Vec<String>,
    /// ARN of the default rule.
    default_rule: String,
    pub(super) attributes: BTreeMap<String, String>,
    pub(super) tags: Document,
}

impl Listener {
    /// What the ARNs of its rules begin with.
    pub(super) fn rules_prefix(&self) -> String {
        let rules = self.arn.replacen(":listener/", ":listener-rule/", 1);
        format!("{rules}/")
    }

    /// Takes over what a request says; what it does not say stays.
    fn set(&mut self, kind: Kind, request: Fields<'_>) -> Result<(), ApiError> {
        if let Some(protocol) = request.text("Protocol")? {
            check_protocol(kind, protocol)?;
            protocol.clone_into(&mut self.protocol);
        }
        if let Some(port) = bounded(request, "Port", 1, 65_535)? {
            self.port = port;
        }
        let certificates = request.objects("Certificates")?;
        if !certificates.is_empty() {
            self.certificates = certificates.into_iter().map(|one| json!(one)).collect();
        }
        let alpn = request.texts("AlpnPolicy")?;
        if !alpn.is_empty() {
            self.alpn_policy = alpn.into_iter().map(str::to_owned).collect();
        }
        let ssl_policy = request.text("SslPolicy")?.map(str::to_owned);
        self.ssl_policy = ssl_policy.or(self.ssl_policy.take());
        if !["HTTPS", "TLS"].contains(&self.protocol.as_str()) {
            self.certificates.clear();
            self.ssl_policy = None;
            return Ok(());
        }
        if self.certificates.is_empty() {
            return Err(validation(format!(
                "A certificate must be specified for {} listeners",
                self.protocol
            )));
        }
        let policy = self.ssl_policy.take();
        self.ssl_policy = Some(policy.unwrap_or_else(|| SSL_POLICY.to_owned()));
        Ok(())
    }

    fn view(&self, account: &Account) -> Value {
        let default = account.elb.rules.get(&self.default_rule);
        let actions = default.map(|rule| action::views(&rule.actions));
        json!({
            "ListenerArn": self.arn,
            "LoadBalancerArn": self.load_balancer,
            "Port": self.port,
            "Protocol": self.protocol,
            "Certificates": self.certificates,
            "SslPolicy": self.ssl_policy,
            "AlpnPolicy": self.alpn_policy,
            "DefaultActions": actions,
        })
    }
}

fn check_protocol(kind: Kind, protocol: &str) -> Result<(), ApiError> {
    let known: &[&str] = match kind {
        Kind::Application => &["HTTP", "HTTPS"],
        Kind::Network => &["TCP", "TLS", "UDP", "TCP_UDP"],
    };
    if known.contains(&protocol) {
        return Ok(());
    }
    Err(ApiError::client(
        "UnsupportedProtocol",
        format!(
            "Protocol '{protocol}' must be one of '{}'",
            known.join(", ")
        ),
    ))
}

pub(super) fn not_found() -> ApiError {
    ApiError::client("ListenerNotFound", "One or more listeners not found")
}

/// The listener that a request names by `ListenerArn`, and its load balancer.
pub(super) fn find<'a>(
    account: &'a Account,
    request: Fields<'_>,
) -> Result<(&'a Listener, &'a LoadBalancer), ApiError> {
    let arn = required(request, "ListenerArn")?;
    let found = account.elb.listeners.get(arn).ok_or_else(not_found)?;
    let balancer = account.elb.load_balancers.get(&found.load_balancer);
    let balancer = balancer.ok_or_else(|| load_balancer::not_found(&found.load_balancer))?;
    Ok((found, balancer))
}

fn on_port<'a>(account: &'a Account, balancer: &LoadBalancer, port: i64) -> Option<&'a Listener> {
    let mut all = account.elb.listeners.iter().map(|(_, row)| row);
    all.find(|row| row.load_balancer == balancer.arn && row.port == port)
}

fn duplicate(balancer: &str) -> ApiError {
    ApiError::client(
        "DuplicateListener",
        format!("A listener already exists on this port for this load balancer '{balancer}'"),
    )
}

pub(super) fn create(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let arn = required(request, "LoadBalancerArn")?;
    let balancer = account.elb.load_balancers.get(arn);
    let balancer = balancer.ok_or_else(|| load_balancer::not_found(arn))?;
    required(request, "Protocol")?;
    required(request, "Port")?;
    let mut listener = Listener {
        arn: String::new(),
        load_balancer: arn.to_owned(),
        port: 0,
        protocol: String::new(),
        certificates: Vec::new(),
        ssl_policy: None,
        alpn_policy: Vec::new(),
        default_rule: String::new(),
        attributes: attributes::of_listener(balancer.kind),
        tags: tag::read(request)?,
    };
    listener.set(balancer.kind, request)?;
    let items = request.objects("DefaultActions")?;
    let actions = action::read(account, balancer, &listener.protocol, &items, &[])?;
    if let Some(found) = on_port(account, balancer, listener.port) {
        let view = found.view(account);
        let same = view["DefaultActions"] == json!(action::views(&actions))
            && view["Protocol"] == json!(listener.protocol)
            && view["Certificates"] == json!(listener.certificates);
        return if same {
            Ok(json!({"Listeners": [view]}))
        } else {
            Err(duplicate(arn))
        };
    }
    let resource = balancer.resource().to_owned();
    let prefix = arn_prefix(account, caller);
    let own = format!("{prefix}listener/{resource}/");
    if account.elb.listeners.under(&own).count() >= MOST {
        return Err(ApiError::client(
            "TooManyListeners",
            format!("The maximum number of listeners on load balancer '{arn}' ({MOST}) is reached"),
        ));
    }
    listener.arn = own + &account.draw_hex(16);
    listener.default_rule = listener.rules_prefix() + &account.draw_hex(16);
    let (key, default) = (listener.arn.clone(), listener.default_rule.clone());
    account.elb.listeners.put(key.clone(), listener);
    rule::put(account, Rule::default_of(&key, &default, actions));
    Ok(json!({"Listeners": shown(account, &key)}))
}

fn shown(account: &Account, arn: &str) -> Vec<Value> {
    let found = account.elb.listeners.get(arn).into_iter();
    found.map(|row| row.view(account)).collect()
}

pub(super) fn describe(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let arns = request.texts("ListenerArns")?;
    let balancer = request.text("LoadBalancerArn")?;
    if arns.is_empty() && balancer.is_none() {
        return Err(validation(
            "You must specify either listener ARNs or a load balancer ARN",
        ));
    }
    if let Some(arn) = balancer
        && account.elb.load_balancers.get(arn).is_none()
    {
        return Err(load_balancer::not_found(arn));
    }
    if arns
        .iter()
        .any(|arn| account.elb.listeners.get(arn).is_none())
    {
        return Err(not_found());
    }
    let wanted = account.elb.listeners.iter().filter(|(arn, row)| {
        arns.contains(&arn.as_str()) || balancer == Some(row.load_balancer.as_str())
    });
    let page = page(request, wanted.map(|(arn, _)| arn.as_str()))?;
    let views = page.items.iter().flat_map(|arn| shown(account, arn));
    Ok(listed("Listeners", views.collect(), page))
}

pub(super) fn modify(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let (found, balancer) = find(account, request)?;
    let mut listener = found.clone();
    listener.set(balancer.kind, request)?;
    let same_port = on_port(account, balancer, listener.port);
    if same_port.is_some_and(|other| other.arn != listener.arn) {
        return Err(duplicate(&balancer.arn));
    }
    let items = request.objects("DefaultActions")?;
    let default = account.elb.rules.get(&listener.default_rule).cloned();
    let default = default.ok_or_else(rule::not_found)?;
    let actions = if items.is_empty() {
        default.actions.clone()
    } else {
        action::read(
            account,
            balancer,
            &listener.protocol,
            &items,
            &default.actions,
        )?
    };
    let key = listener.arn.clone();
    account.elb.listeners.put(key.clone(), listener);
    rule::put(account, Rule { actions, ..default });
    Ok(json!({"Listeners": shown(account, &key)}))
}

pub(super) fn delete(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let arn = request
        .text("ListenerArn")?
        .ok_or_else(|| missing("ListenerArn"))?;
    let listener = account.elb.listeners.take(arn).ok_or_else(not_found)?;
    delete_rules(account, &listener);
    Ok(json!({}))
}

/// Deletes all listeners of the load balancer `balancer`.
pub(super) fn delete_all(account: &mut Account, balancer: &str) {
    let all = account.elb.listeners.iter();
    let own: Vec<String> = all
        .filter(|(_, row)| row.load_balancer == balancer)
        .map(|(arn, _)| arn.clone())
        .collect();
    for arn in own {
        if let Some(listener) = account.elb.listeners.take(&arn) {
            delete_rules(account, &listener);
        }
    }
}

fn delete_rules(account: &mut Account, listener: &Listener) {
    let rules = account.elb.rules.under(&listener.rules_prefix());
    let rules: Vec<String> = rules.map(|(arn, _)| arn.to_owned()).collect();
    for arn in rules {
        rule::remove(account, &arn);
    }
}
