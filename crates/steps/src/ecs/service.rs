//! One ECS service: looked at, created, updated, deleted.

use aws_sdk_ecs::types::{Deployment, Service};
use serde_json::{Map, Value, json};
use slipway_model::status::{ErrorType, Failure};

use super::site::Site;
use crate::aws::document::fields;
use crate::aws::error::{Doing, failure};
use crate::aws::wire::{Answer, whole};

/// A service as AWS tells it: typed for decisions, and as JSON for what must be restored whole.
pub(super) struct Described {
    pub(super) service: Service,
    pub(super) json: Value,
}

/// Where a service name stands.
pub(super) enum Standing {
    /// Nothing there, or only the memory of a deleted one.
    Absent,
    /// Being deleted; the name is taken until then.
    Draining,
    /// There.
    Active(Box<Described>),
}

/// Looks at a service.
pub(super) async fn describe(site: &Site, name: &str) -> Result<Standing, Failure> {
    let doing = format!("look at service `{name}` in {site}");
    let answer = Answer::default();
    let described = site
        .aws
        .ecs
        .describe_services()
        .cluster(&site.cluster)
        .services(name)
        .customize()
        .interceptor(answer.clone())
        .send()
        .await
        .map_err(|error| failure(Doing::with(&doing), error))?;
    let Some(service) = described
        .services
        .and_then(|services| services.into_iter().next())
    else {
        return Ok(Standing::Absent);
    };
    Ok(match service.status() {
        Some("ACTIVE") => Standing::Active(Box::new(Described {
            service,
            json: answer.take()["services"][0].take(),
        })),
        Some("DRAINING") => Standing::Draining,
        _ => Standing::Absent,
    })
}

/// The deployment that AWS is working towards.
pub(super) fn primary(service: &Service) -> Option<&Deployment> {
    service
        .deployments()
        .iter()
        .find(|deployment| deployment.status() == Some("PRIMARY"))
}

/// Creates a service from `document`; with the same `token` once only.
pub(super) async fn create(site: &Site, document: &Value) -> Result<Described, Failure> {
    let name = document["serviceName"].as_str().unwrap_or_default();
    let doing = format!("create service `{name}` in {site}");
    let body = Answer::default();
    let answer = site
        .aws
        .ecs
        .create_service()
        .customize()
        .interceptor(body.clone())
        .mutate_request(whole(document))
        .send()
        .await
        .map_err(|error| failure(Doing::with(&doing), error))?;
    let service = answer.service.ok_or_else(|| silent(&doing))?;
    Ok(Described {
        service,
        json: body.take()["service"].take(),
    })
}

/// Updates a service from `document`.
pub(super) async fn update(site: &Site, document: &Value) -> Result<Described, Failure> {
    let name = document["service"].as_str().unwrap_or_default();
    let doing = format!("update service `{name}` in {site}");
    let body = Answer::default();
    let answer = site
        .aws
        .ecs
        .update_service()
        .customize()
        .interceptor(body.clone())
        .mutate_request(whole(document))
        .send()
        .await
        .map_err(|error| failure(Doing::with(&doing), error))?;
    let service = answer.service.ok_or_else(|| silent(&doing))?;
    Ok(Described {
        service,
        json: body.take()["service"].take(),
    })
}

/// Deletes a service with its tasks; one that is gone already is fine.
pub(super) async fn delete(site: &Site, name: &str) -> Result<(), Failure> {
    let doing = format!("delete service `{name}` in {site}");
    let deleted = site
        .aws
        .ecs
        .delete_service()
        .cluster(&site.cluster)
        .service(name)
        .force(true)
        .send()
        .await;
    match deleted {
        Ok(_) => Ok(()),
        Err(error)
            if matches!(
                crate::aws::error::code(&error),
                Some("ServiceNotFoundException" | "ServiceNotActiveException")
            ) =>
        {
            Ok(())
        }
        Err(error) => Err(failure(Doing::with(&doing), error)),
    }
}

/// `CreateService` for a manifest.
pub(super) fn create_document(
    site: &Site,
    definition: &Value,
    task_definition: &str,
    token: &str,
) -> Value {
    let mut document = definition.clone();
    document["cluster"] = json!(site.cluster);
    document["taskDefinition"] = json!(task_definition);
    document["clientToken"] = json!(token);
    document
}

/// `UpdateService` for a manifest, and the names of its fields that an update cannot change and that
/// therefore stay as the service was created. Fields that this version does not know are kept.
pub(super) fn update_document(
    site: &Site,
    definition: &Value,
    task_definition: &str,
) -> (Value, Vec<String>) {
    let changeable: Vec<&str> = fields("UpdateService").collect();
    let only_created: Vec<&str> = fields("CreateService")
        .filter(|name| !changeable.contains(name))
        .collect();
    let mut document = Map::new();
    let mut kept = Vec::new();
    for (name, value) in definition.as_object().into_iter().flatten() {
        if name == "serviceName" {
            document.insert("service".to_owned(), value.clone());
        } else if only_created.contains(&name.as_str()) {
            kept.push(name.clone());
        } else {
            document.insert(name.clone(), value.clone());
        }
    }
    document.insert("cluster".to_owned(), json!(site.cluster));
    document.insert("taskDefinition".to_owned(), json!(task_definition));
    (Value::Object(document), kept)
}

/// AWS answered well and said nothing.
fn silent(doing: &str) -> Failure {
    Failure {
        error: ErrorType::Unknown,
        message: format!("Cannot {doing}: AWS's answer holds no service."),
        left_behind: None,
    }
}
