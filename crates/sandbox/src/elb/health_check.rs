//! How a target group checks its targets: kept and checked as AWS does. How long a check takes is the
//! account's pace, not the interval.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::request::{bounded, flag, validation};
use super::target_group::Layer;
use crate::error::ApiError;
use crate::fields::{Document, Fields};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HealthCheck {
    enabled: bool,
    protocol: String,
    port: String,
    path: Option<String>,
    interval: i64,
    timeout: i64,
    healthy_threshold: i64,
    unhealthy_threshold: i64,
    http_code: Option<String>,
    grpc_code: Option<String>,
}

impl HealthCheck {
    /// What a new target group has without a word (ELBv2 API reference, `CreateTargetGroup`).
    pub(super) fn of_new(layer: Layer, protocol: Option<&str>) -> Result<Self, ApiError> {
        let protocol = protocol.unwrap_or(match layer {
            Layer::Network => "TCP",
            Layer::Application | Layer::Function => "HTTP",
        });
        let http = is_http(protocol);
        let timeout = match (layer, protocol) {
            (Layer::Function, _) => 30,
            (Layer::Network, "HTTP") => 6,
            (Layer::Network, _) => 10,
            (Layer::Application, _) => 5,
        };
        let check = Self {
            enabled: layer != Layer::Function,
            protocol: protocol.to_owned(),
            port: "traffic-port".to_owned(),
            path: http.then(|| "/".to_owned()),
            interval: if layer == Layer::Function { 35 } else { 30 },
            timeout,
            healthy_threshold: 5,
            unhealthy_threshold: 2,
            http_code: http.then(|| {
                let codes = if layer == Layer::Network {
                    "200-399"
                } else {
                    "200"
                };
                codes.to_owned()
            }),
            grpc_code: None,
        };
        check.checked(layer)
    }

    /// With what a request says in `HealthCheck…`, `…ThresholdCount` and `Matcher`.
    pub(super) fn with(mut self, layer: Layer, request: Fields<'_>) -> Result<Self, ApiError> {
        if let Some(protocol) = request.text("HealthCheckProtocol")? {
            protocol.clone_into(&mut self.protocol);
        }
        if let Some(port) = request.text("HealthCheckPort")? {
            let number = port.parse::<u16>().is_ok_and(|port| port > 0);
            if port != "traffic-port" && !number {
                return Err(validation(format!(
                    "Health check port '{port}' must be 'traffic-port' or in the range [1 - 65535]"
                )));
            }
            port.clone_into(&mut self.port);
        }
        if let Some(path) = request.text("HealthCheckPath")? {
            self.path = Some(path.to_owned());
        }
        let set = |field: &mut i64, name: &str, least: i64, most: i64| {
            bounded(request, name, least, most).map(|found| *field = found.unwrap_or(*field))
        };
        set(&mut self.interval, "HealthCheckIntervalSeconds", 5, 300)?;
        set(&mut self.timeout, "HealthCheckTimeoutSeconds", 2, 120)?;
        set(&mut self.healthy_threshold, "HealthyThresholdCount", 2, 10)?;
        set(
            &mut self.unhealthy_threshold,
            "UnhealthyThresholdCount",
            2,
            10,
        )?;
        self.enabled = flag(request, "HealthCheckEnabled")?.unwrap_or(self.enabled);
        if let Some(matcher) = request.object("Matcher")?.map(Fields) {
            let text = |name: &str| Ok::<_, ApiError>(matcher.text(name)?.map(str::to_owned));
            self.http_code = text("HttpCode")?.or(self.http_code);
            self.grpc_code = text("GrpcCode")?.or(self.grpc_code);
        }
        self.checked(layer)
    }

    fn checked(self, layer: Layer) -> Result<Self, ApiError> {
        let known = match layer {
            Layer::Network => ["HTTP", "HTTPS", "TCP"].as_slice(),
            Layer::Application | Layer::Function => ["HTTP", "HTTPS"].as_slice(),
        };
        if !known.contains(&self.protocol.as_str()) {
            return Err(validation(format!(
                "Health check protocol '{}' must be one of {}",
                self.protocol,
                known.join(", ")
            )));
        }
        if !is_http(&self.protocol) && (self.path.is_some() || self.http_code.is_some()) {
            return Err(validation(
                "Health check path and matcher cannot be specified for health checks over TCP",
            ));
        }
        if self.timeout >= self.interval {
            return Err(validation(
                "Health check interval must be greater than the timeout.",
            ));
        }
        Ok(self)
    }

    /// Port that checks go to, for a target on `port`.
    pub(super) fn port_for(&self, port: i64) -> String {
        if self.port == "traffic-port" {
            port.to_string()
        } else {
            self.port.clone()
        }
    }

    pub(super) fn write(&self, into: &mut Document) {
        let mut set = |name: &str, value: Value| {
            into.insert(name.to_owned(), value);
        };
        set("HealthCheckEnabled", json!(self.enabled));
        set("HealthCheckProtocol", json!(self.protocol));
        set("HealthCheckPort", json!(self.port));
        set("HealthCheckPath", json!(self.path));
        set("HealthCheckIntervalSeconds", json!(self.interval));
        set("HealthCheckTimeoutSeconds", json!(self.timeout));
        set("HealthyThresholdCount", json!(self.healthy_threshold));
        set("UnhealthyThresholdCount", json!(self.unhealthy_threshold));
        let mut matcher = Map::new();
        for (name, code) in [("HttpCode", &self.http_code), ("GrpcCode", &self.grpc_code)] {
            if let Some(code) = code {
                matcher.insert(name.to_owned(), json!(code));
            }
        }
        if !matcher.is_empty() {
            set("Matcher", Value::Object(matcher));
        }
    }
}

fn is_http(protocol: &str) -> bool {
    protocol.starts_with("HTTP")
}
