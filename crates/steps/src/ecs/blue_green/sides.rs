//! Which service serves and which does not, told by target groups; what contradicts that is refused.

use aws_sdk_ecs::types::Service;
use slipway_model::status::Failure;

use super::super::cluster::{self, number};
use super::super::site::Site;
use super::routes::Routes;
use super::{tag, wrong};

/// A service as far as it matters here.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) name: String,
    pub(super) arn: String,
    pub(super) task_definition: String,
    pub(super) desired: i64,
    pub(super) running: i64,
    /// Value of `BG_VERSION`.
    pub(super) tag: Option<String>,
    /// `false` while it is being deleted.
    pub(super) active: bool,
    /// Whether it is on its way to something else than what it ran, or did not get there.
    pub(super) unsettled: bool,
    /// Target groups.
    groups: Vec<String>,
}

impl Seen {
    fn of(service: &Service) -> Self {
        let groups = service.load_balancers().iter();
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        Self {
            name: text(service.service_name()),
            arn: text(service.service_arn()),
            task_definition: text(service.task_definition()),
            desired: i64::from(service.desired_count()),
            running: i64::from(service.running_count()),
            tag: tag::of(service).map(str::to_owned),
            active: service.status() == Some("ACTIVE"),
            unsettled: service.deployments().len() > 1,
            groups: groups
                .filter_map(|one| one.target_group_arn().map(str::to_owned))
                .collect(),
        }
    }

    fn is_on(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known == group)
    }

    /// Whether it has tasks, or is to have some.
    pub(super) fn works(&self) -> bool {
        self.active && (self.desired > 0 || self.running > 0)
    }
}

/// The two sides of a deployment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sides {
    /// What serves.
    pub(super) blue: Option<Seen>,
    /// What does not, and is in the stage target group.
    pub(super) green: Option<Seen>,
    /// Services of the stage target group that are being deleted.
    pub(super) going: Vec<String>,
    /// Name of the service to deploy.
    pub(super) new: String,
}

impl Sides {
    /// Looks at all services of the cluster. `base` is `serviceName`; `update` says whether the new version takes
    /// the place of the green service.
    pub(super) async fn look(
        site: &Site,
        routes: &Routes,
        base: &str,
        update: bool,
    ) -> Result<Self, Failure> {
        let names = cluster::names(site).await?;
        let services = cluster::services(site, &names).await?;
        let seen: Vec<Seen> = services.iter().map(Seen::of).collect();
        tell(routes, base, update, &seen).map_err(|why| {
            wrong(format!(
                "Invalid request: Invalid Load balancer configuration in Service. In {site}, {why}"
            ))
        })
    }
}

/// Tells the sides apart, or why they cannot be.
fn tell(routes: &Routes, base: &str, update: bool, all: &[Seen]) -> Result<Sides, String> {
    let on = |group: &str| {
        let found = all.iter().filter(|one| one.is_on(group)).cloned();
        found.collect::<Vec<Seen>>()
    };
    let (prod, stage) = (on(&routes.prod_group), on(&routes.stage_group));
    let (blues, greens): (Vec<Seen>, Vec<Seen>) = match routes.is_shared() {
        true => prod.into_iter().partition(Seen::works),
        false => {
            if let Some(both) = prod.iter().find(|one| one.is_on(&routes.stage_group)) {
                return Err(format!(
                    "service {} is attached to both target groups, {} and {}: it would get the requests of both \
                     versions. Attach it to one of them.",
                    both.name, routes.prod_group, routes.stage_group
                ));
            }
            (prod, stage)
        }
    };
    let blue = the_only(&routes.prod_group, &blues)?;
    if let (None, Some(going)) = (&blue, blues.first()) {
        return Err(format!(
            "service {} of the prod target group {} is being deleted (DRAINING). Wait until it is gone.",
            going.name, routes.prod_group
        ));
    }
    let green = the_only(&routes.stage_group, &greens)?;
    for one in [&blue, &green].into_iter().flatten() {
        check_name(one, base)?;
    }
    let going = greens.iter().filter(|one| !one.active);
    let mut sides = Sides {
        going: going.map(|one| one.name.clone()).collect(),
        blue,
        green,
        new: String::new(),
    };
    check_live(routes, &sides)?;
    sides.new = new_name(base, update, &sides);
    let taken = all.iter().find(|one| one.name == sides.new);
    match taken {
        Some(taken) if sides.green.as_ref() != Some(taken) && taken.active => Err(format!(
            "service {} has the name that the new version needs, and it is not in the stage target group {}. It is \
             not touched: delete it by hand if nobody needs it, or change `serviceName`.",
            taken.name, routes.stage_group
        )),
        Some(taken) if !taken.active && !sides.going.contains(&taken.name) => {
            sides.going.push(taken.name.clone());
            Ok(sides)
        }
        _ => Ok(sides),
    }
}

/// The only service of a side that is not being deleted.
fn the_only(group: &str, side: &[Seen]) -> Result<Option<Seen>, String> {
    let mut active = side.iter().filter(|one| one.active);
    match (active.next(), active.next()) {
        (Some(one), Some(other)) => Err(format!(
            "the services {} and {} are both attached to target group {group}: which of them is the right one \
             cannot be told. Take one of them away.",
            one.name, other.name
        )),
        (only, _) => Ok(only.cloned()),
    }
}

/// A service of another name is somebody else's.
fn check_name(one: &Seen, base: &str) -> Result<(), String> {
    if one.name == base || number(base, &one.name).is_some() {
        return Ok(());
    }
    Err(format!(
        "service {} is attached to a target group of this deployment and is no version of {base}. It is not \
         touched: give it another target group, or this deployment.",
        one.name
    ))
}

/// Refuses to take away what serves.
fn check_live(routes: &Routes, sides: &Sides) -> Result<(), String> {
    let works = |side: &Option<Seen>| side.as_ref().is_some_and(Seen::works);
    let weight = routes.stage_weight();
    if weight > 0 && (works(&sides.blue) || works(&sides.green)) {
        let serves = sides.green.as_ref().filter(|green| green.works());
        let serves = serves.map_or_else(
            || "The new version would get requests before anybody shifted them to it".to_owned(),
            |green| {
                format!(
                    "Service {} serves them, and it would be deleted",
                    green.name
                )
            },
        );
        let advice = match routes.prod.forward.weight(&routes.prod_group) {
            0 => format!(
                "`stageTargetGroupArn` must be the other target group, {}, in every second deployment; or shift its \
                 requests away first.",
                routes.prod_group
            ),
            // Whichever target group is named, a version that serves would go.
            _ => "Both target groups get requests, as a traffic shift that did not end leaves them: send all of them \
                  to one first, by `slipway rollback` of the run that shifted them, if it succeeded, by an \
                  EcsBlueGreenTrafficShift of type Standalone on this rule in a stage of its own, or by hand. \
                  `stageTargetGroupArn` is then the other one."
                .to_owned(),
        };
        return Err(format!(
            "listener rule {} sends requests to the stage target group {} (weight {weight}). {serves}. {advice}",
            routes.prod.place.rule, routes.stage_group
        ));
    }
    match &sides.green {
        Some(green) if green.works() && green.tag.as_deref() == Some(tag::BLUE) => Err(format!(
            "service {} is in the stage target group {}, and would be replaced, but it runs {} tasks and is tagged \
             BG_VERSION=BLUE as what serves. Check that `prodListenerRuleArn` and `stageListenerRuleArn` are not \
             mixed up; if it does not serve, tag it BG_VERSION=GREEN.",
            green.name, routes.stage_group, green.running
        )),
        _ => Ok(()),
    }
}

/// The name that the service in production does not have.
fn new_name(base: &str, update: bool, sides: &Sides) -> String {
    if let (true, Some(green)) = (update, &sides.green) {
        return green.name.clone();
    }
    let blue = sides
        .blue
        .as_ref()
        .and_then(|blue| number(base, &blue.name));
    match blue {
        Some(1) => format!("{base}__2"),
        _ => format!("{base}__1"),
    }
}

#[cfg(test)]
#[path = "sides_tests.rs"]
mod tests;
