//! What a swap and a complete shift do once requests go to the new version: colours change, the old group may shrink.

use serde_json::json;
use slipway_model::status::Failure;

use super::super::group::{self, Standing};
use super::super::instances::{self, By, Counted};
use super::super::scaling::Scaling;
use super::super::site::Site;
use super::super::template::Version;
use super::deploy::{replaced, tag};
use super::sides::Sides;
use super::{BLUE, GREEN, others};
use crate::aws::other_rules::Other;
use crate::context::StepContext;

/// Lets the new group be the one that serves, and notes it.
pub(super) async fn release(
    cx: &mut StepContext<'_>,
    site: &Site,
    (sides, version): (&Sides, Option<&Version>),
    downsizes: bool,
    unit: &'static str,
) -> Result<(), Failure> {
    let Some(old) = sides.old_name() else {
        return Ok(());
    };
    cx.info(
        unit,
        format!("Updating tags of Asg {} and Asg {old}", sides.new),
    );
    let tags = [tag(&sides.new, BLUE), tag(old, GREEN)];
    group::put_tags(site, &sides.new, &tags).await?;
    let downsizes = downsizes && !still_serves(cx, site, (sides, old), unit).await?;
    if downsizes {
        downsize(cx, site, old, unit).await?;
    }
    let mut mine = vec![Counted {
        name: sides.new.clone(),
        version: version.cloned(),
        strategy: "BlueGreen".to_owned(),
        production: true,
        by: Some(By::this(cx)?),
    }];
    // What is downsized has nothing to count, once its instances have drained.
    let gone: &[&str] = match downsizes {
        true => &[old],
        false => {
            mine.extend(sides.old.iter().map(|old| old.counted("BlueGreen", false)));
            &[]
        }
    };
    instances::note(cx, site, (&mine, gone), replaced(sides)).await?;
    Ok(())
}

/// Whether rules that no step moves still send requests of production to the old group; the run is warned of it.
async fn still_serves(
    cx: &mut StepContext<'_>,
    site: &Site,
    (sides, old): (&Sides, &str),
    unit: &'static str,
) -> Result<bool, Failure> {
    let reached = |other: &Other| {
        let mut routes = sides.routes.iter();
        routes.any(|one| other.reaches(&one.prod_group))
    };
    let mut others = others::find(site, &sides.routes).await?;
    others.retain(|other| !other.of_testers && reached(other));
    if others.is_empty() {
        return Ok(false);
    }
    let others: Vec<String> = others.iter().map(Other::sends).collect();
    let warning = format!(
        "Asg {old} keeps its instances: {}, its target group, and no step moves them. Let them forward to where the new \
         version is, and downsize the group.",
        others.join(", and ")
    );
    cx.warn_of_run(unit, &warning).await?;
    Ok(true)
}

/// Takes all instances from the old group. What scales it goes too, or it would bring them back.
async fn downsize(
    cx: &mut StepContext<'_>,
    site: &Site,
    old: &str,
    unit: &'static str,
) -> Result<(), Failure> {
    if let Standing::There(found) = group::describe(site, old).await?
        && (found.sizes().min, found.sizes().desired) == (0, 0)
    {
        // A call before this one was cut off after it.
        return Ok(());
    }
    cx.info(unit, format!("Downsizing Asg {old} to 0 instances"));
    let has = Scaling::describe(site, old).await?;
    Scaling::default()
        .replace(cx, (site, old), &has, unit)
        .await?;
    let request = json!({"AutoScalingGroupName": old, "MinSize": 0, "DesiredCapacity": 0});
    let doing = format!("downsize Auto Scaling group {old}");
    site.scaling("UpdateAutoScalingGroup", &request, &doing)
        .await?;
    Ok(())
}
