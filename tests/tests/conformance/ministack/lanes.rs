//! Which golden pipelines run on ministack, and how far.

use super::lane::Ending::{Deploys, Fails, Stalls, Undone};
use super::lane::Lane;

/// The services whose calls are judged.
pub(crate) const SERVICES: &[&str] = &[
    "autoscaling",
    "ec2",
    "ecs",
    "elasticloadbalancing",
    "lambda",
    "s3",
    "sts",
];

/// Images that each account of ministack has.
const OLD: &str = "ami-0abcdef1234567890";
const NEW: &str = "ami-0c2023a1b2c3d4e5f";

/// ministack replaces the tasks of a service at once or, where they do not all fit beside the old ones, not to the end.
const WIDE: (&str, &str) = ("maximumPercent: 150", "maximumPercent: 200");

/// The inputs of pipelines with two listeners.
const SWAPPED: &[&str] = &["prodListener", "prodRule", "stageListener", "stageRule"];

/// A lane of ECS without a load balancer.
const ECS: Lane = Lane {
    id: "",
    templates: &[],
    changes: &[WIDE],
    balancer: None,
    arns: &[],
    direct: false,
    version: "tag",
    plays: &[],
};

/// What is waited for here is ministack's real time.
const HASTY: (&str, &str) = ("HealthCheckGracePeriod: 30", "HealthCheckGracePeriod: 1");

/// A lane of Auto Scaling groups without a load balancer.
const MACHINES: Lane = Lane {
    changes: &[HASTY],
    version: "image",
    ..ECS
};

pub(crate) const LANES: &[Lane] = &[
    Lane {
        id: "rolling",
        templates: &["ecs-rolling", "ecs-canary"],
        plays: &[
            ("deploy_shop", "1.0", Deploys),
            ("deploy_shop", "2.0", Deploys),
            ("deploy_shop_by_canary", "3.0", Deploys),
            ("deploy_shop", "4.0", Undone),
            ("deploy_shop_by_canary", "5.0", Undone),
        ],
        ..ECS
    },
    Lane {
        id: "unscaled",
        templates: &["ecs-rolling"],
        direct: true,
        plays: &[
            ("deploy_shop", "1.0", Deploys),
            ("deploy_shop", "2.0", Fails),
        ],
        ..ECS
    },
    Lane {
        id: "narrow",
        templates: &["ecs-rolling"],
        changes: &[],
        plays: &[
            ("deploy_shop", "1.0", Deploys),
            ("deploy_shop", "2.0", Stalls),
        ],
        ..ECS
    },
    Lane {
        id: "tasks",
        templates: &["ecs-rolling", "ecs-task"],
        // Without containers no task of ministack ends.
        changes: &[
            WIDE,
            (
                "ENABLED\n                    skipSteadyStateCheck: false",
                "ENABLED\n                    skipSteadyStateCheck: true",
            ),
        ],
        plays: &[
            ("migrate_and_deploy_shop", "1.0", Deploys),
            ("migrate_and_deploy_shop", "2.0", Undone),
        ],
        ..ECS
    },
    Lane {
        id: "run-task",
        templates: &["ecs-rolling", "ecs-task"],
        plays: &[("migrate_and_deploy_shop", "1.0", Stalls)],
        ..ECS
    },
    Lane {
        id: "basic",
        templates: &["ecs-rolling", "ecs-basic"],
        plays: &[
            ("deploy_shop_in_phases", "1.0", Deploys),
            ("deploy_shop_in_phases", "2.0", Deploys),
            ("deploy_shop_in_phases", "3.0", Undone),
        ],
        ..ECS
    },
    Lane {
        id: "blue-green",
        templates: &["ecs-rolling", "ecs-blue-green"],
        balancer: Some(("ip", false)),
        arns: SWAPPED,
        plays: &[
            ("deploy_shop_blue_green", "1.0", Deploys),
            ("deploy_shop_blue_green", "2.0", Deploys),
            ("deploy_shop_blue_green", "3.0", Undone),
        ],
        ..ECS
    },
    Lane {
        id: "ecs-shift",
        templates: &["ecs-rolling", "ecs-blue-green", "ecs-traffic-shift"],
        balancer: Some(("ip", true)),
        arns: &["listener", "rule", "testListener", "testRule"],
        plays: &[("shift_requests_to_shop", "1.0", Fails)],
        ..ECS
    },
    Lane {
        id: "machines",
        templates: &["ecs-rolling", "asg-rolling", "asg-canary", "asg-scale"],
        plays: &[
            ("scale_machines", OLD, Deploys),
            ("deploy_machines", NEW, Fails),
            ("deploy_machines_by_canary", NEW, Fails),
        ],
        ..MACHINES
    },
    Lane {
        id: "phased",
        templates: &["ecs-rolling", "asg-rolling", "asg-phased"],
        plays: &[
            ("deploy_machines_in_phases", OLD, Deploys),
            ("deploy_machines_in_phases", NEW, Undone),
        ],
        ..MACHINES
    },
    Lane {
        id: "swap",
        templates: &["ecs-rolling", "asg-rolling", "asg-swap"],
        balancer: Some(("instance", false)),
        arns: SWAPPED,
        plays: &[("swap_machines", OLD, Stalls)],
        ..MACHINES
    },
    Lane {
        id: "asg-shift",
        templates: &["ecs-rolling", "asg-rolling", "asg-blue-green"],
        balancer: Some(("instance", true)),
        arns: &["listener", "rule"],
        plays: &[("deploy_machines_blue_green", OLD, Fails)],
        ..MACHINES
    },
    Lane {
        id: "functions",
        templates: &["ecs-rolling", "lambda", "lambda-canary"],
        changes: &[],
        version: "version",
        plays: &[
            ("deploy_checkout", "v1", Deploys),
            ("deploy_checkout", "v2", Deploys),
            ("deploy_checkout_by_canary", "v3", Deploys),
            ("deploy_checkout", "v1", Undone),
            ("deploy_checkout_by_canary", "v2", Undone),
        ],
        ..ECS
    },
];

/// The lanes that need a row in docs/sandbox-judges.md.
pub(crate) fn lacking() -> Vec<&'static str> {
    let lacks = |lane: &&Lane| {
        let mut endings = lane.plays.iter().map(|(_, _, ending)| ending);
        endings.any(|ending| [Fails, Stalls].contains(ending))
    };
    LANES.iter().filter(lacks).map(|lane| lane.id).collect()
}
