//! The two groups of a blue-green deployment: which of them serves, and which is deployed.

use serde::{Deserialize, Serialize};
use slipway_model::status::Failure;

use super::super::before::Before;
use super::super::canary_deploy::{canary_of, warn_of_left};
use super::super::group::{Group, described};
use super::super::site::Site;
use super::super::template::{self, Look};
use super::super::{PREPARE, invalid, name, scaling_loss};
use super::route::Routes;
use super::{BLUE, COLOUR};
use crate::context::StepContext;
use crate::deployment::Replaced;

/// How things were before a deployment. Written down before its first change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Sides {
    /// Name of the group that gets the new version.
    pub(super) new: String,
    /// That group as it was; `None` where it is created.
    pub(super) new_before: Option<Before>,
    /// The group that serves; `None` for the first deployment.
    pub(super) old: Option<Before>,
    /// The launch template of the new group as it was.
    pub(super) template: Look,
    pub(super) routes: Vec<Routes>,
    /// Who had deployed what serves, where that is known.
    pub(super) replaced: Option<Replaced>,
}

impl Sides {
    /// Looks at both groups of `main`.
    pub(super) async fn look(
        cx: &mut StepContext<'_>,
        site: &Site,
        main: &str,
        routes: Vec<Routes>,
    ) -> Result<Self, Failure> {
        let [one, two] = names(main);
        name::check(&two)?;
        let canary = canary_of(main);
        let mut asked = vec![one.as_str(), two.as_str()];
        asked.extend(Some(canary.as_str()).filter(|canary| name::check(canary).is_ok()));
        let mut found = described(site, &asked).await?;
        let canary = found.iter().position(|group| group.name() == canary);
        let canary = canary.map(|at| found.swap_remove(at));
        warn_of_left(cx, site, (main, canary.as_ref())).await?;
        if let Some(leaving) = found.iter().find(|group| group.is_leaving()) {
            return Err(invalid(format!(
                "Auto Scaling group {} in {site} is being deleted. Run the pipeline again when it is gone.",
                leaving.name()
            )));
        }
        let of = |name: &str| found.iter().find(|group| group.name() == name);
        let old = serving([of(&one), of(&two)], &routes, site)?;
        let new = match old {
            Some(old) if old.name() == one => two,
            _ => one,
        };
        let told = match old {
            Some(old) => format!(
                "Auto Scaling group {} serves; {new} gets the new version",
                old.name()
            ),
            None => {
                format!("No Auto Scaling group of {main} serves: {new} is its first deployment")
            }
        };
        cx.info(PREPARE, told);
        let template = template::look(site, &new).await?;
        let new_before = match of(&new) {
            Some(group) => Some(Before::look(cx, site, group, &template).await?),
            None => None,
        };
        let old = match old {
            Some(group) => {
                let next = (new.as_str(), of(&new));
                scaling_loss::warn_of_processes(cx, site, group, next).await?;
                let look = template::look(site, group.name()).await?;
                let mut before = Before::look(cx, site, group, &look).await?;
                let asked = (group, before.version.clone());
                before.look_what_serves(cx, site, asked, false).await?;
                Some(before)
            }
            None => None,
        };
        Ok(Self {
            new,
            new_before,
            old,
            template,
            routes,
            replaced: Replaced::read(cx).await?,
        })
    }

    pub(super) fn old_name(&self) -> Option<&str> {
        self.old.as_ref().map(|old| old.group.name())
    }

    /// Target groups of the new version: those of production in the first deployment, which nothing else serves.
    pub(super) fn new_groups(&self) -> Vec<String> {
        let group = |routes: &Routes| match self.old {
            Some(_) => routes.stage_group.clone(),
            None => routes.prod_group.clone(),
        };
        self.routes.iter().map(group).collect()
    }
}

/// Names of the two groups.
pub(super) fn names(main: &str) -> [String; 2] {
    [format!("{main}__1"), format!("{main}__2")]
}

/// The group that serves: the one behind the target group of production, or the one that is tagged so where no rule
/// tells.
fn serving<'g>(
    found: [Option<&'g Group>; 2],
    routes: &[Routes],
    site: &Site,
) -> Result<Option<&'g Group>, Failure> {
    let there: Vec<&Group> = found.into_iter().flatten().collect();
    let behind = |group: &&&Group| {
        let has = group.target_groups();
        routes.iter().any(|routes| has.contains(&routes.prod_group))
    };
    let blue = |group: &&&Group| group.tag(COLOUR) == Some(BLUE);
    let candidates: Vec<&Group> = there.iter().filter(behind).copied().collect();
    let candidates = match candidates.as_slice() {
        [] => there.iter().filter(blue).copied().collect(),
        [_] => candidates,
        _ => candidates.iter().filter(blue).copied().collect(),
    };
    match (candidates.as_slice(), there.as_slice()) {
        ([only], _) => Ok(Some(*only)),
        ([], []) => Ok(None),
        _ => {
            let names: Vec<&str> = there.iter().map(|group| group.name()).collect();
            Err(invalid(format!(
                "cannot tell which of the Auto Scaling groups {} in {site} serves: none or several of them are behind \
                 the target group of the prod rule, and the tag `{COLOUR}` does not tell either. Tag the one that \
                 serves with `{COLOUR}={BLUE}`, or delete the others.",
                names.join(" and ")
            )))
        }
    }
}
