use super::super::balancer::Place;
use super::super::forward::Forward;
use super::super::routes::Route;
use super::*;

fn route(rule: &str, forward: Forward) -> Route {
    let place = Place {
        listener: "listener".to_owned(),
        rule: rule.to_owned(),
    };
    Route { place, forward }
}

/// Rules that forward to `p` and `s`.
fn swap() -> Routes {
    Routes {
        balancer: None,
        prod: route("prod", Forward::to("p")),
        stage: Some(route("stage", Forward::to("s"))),
        prod_group: "p".to_owned(),
        stage_group: "s".to_owned(),
    }
}

/// One rule for both, with the weight of `s`.
fn shift(weight: i32) -> Routes {
    Routes {
        prod: route("prod", Forward::of([("p", 100 - weight), ("s", weight)])),
        stage: None,
        ..swap()
    }
}

fn shared() -> Routes {
    Routes {
        stage: Some(route("stage", Forward::to("p"))),
        stage_group: "p".to_owned(),
        ..swap()
    }
}

/// `name group running tag`; a name in brackets is being deleted.
fn seen(text: &str) -> Seen {
    let mut words = text.split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let (name, groups, running, tag) = (word(), word(), word(), word());
    let running = running.parse().unwrap_or_default();
    Seen {
        active: !name.starts_with('('),
        unsettled: false,
        name: name.trim_matches(['(', ')']).to_owned(),
        arn: String::new(),
        task_definition: String::new(),
        desired: running,
        running,
        tag: Some(tag).filter(|tag| !tag.is_empty()),
        groups: groups.split('+').map(str::to_owned).collect(),
    }
}

fn told(routes: &Routes, update: bool, services: &[&str]) -> String {
    let all: Vec<Seen> = services.iter().map(|text| seen(text)).collect();
    match tell(routes, "web", update, &all) {
        Ok(sides) => {
            let name =
                |side: &Option<Seen>| side.as_ref().map_or("-".to_owned(), |s| s.name.clone());
            let going = sides.going.join(",");
            format!(
                "{} {} {} [{going}]",
                name(&sides.blue),
                name(&sides.green),
                sides.new
            )
        }
        Err(why) => why,
    }
}

#[test]
fn target_groups_tell_what_serves() {
    let table: &[(Routes, bool, &[&str], &str)] = &[
        (swap(), false, &[], "- - web__1 []"),
        (swap(), false, &["web__1 p 2 BLUE"], "web__1 - web__2 []"),
        (
            swap(),
            false,
            &["web__1 s 0 GREEN", "web__2 p 2 BLUE"],
            "web__2 web__1 web__1 []",
        ),
        (
            swap(),
            true,
            &["web__1 s 0 GREEN", "web__2 p 2 BLUE"],
            "web__2 web__1 web__1 []",
        ),
        (swap(), false, &["web p 2"], "web - web__1 []"),
        (
            swap(),
            false,
            &["other x 2", "web__1 p 2"],
            "web__1 - web__2 []",
        ),
        (
            swap(),
            false,
            &["web__1 p 2", "(web__2) s 0"],
            "web__1 - web__2 [web__2]",
        ),
        (
            swap(),
            false,
            &["web__1 p 2", "(web__2) x 0"],
            "web__1 - web__2 [web__2]",
        ),
        (swap(), false, &["web__1 s 2"], "- web__1 web__1 []"),
        // Tags that a crash left behind are put right where nothing contradicts them.
        (
            swap(),
            false,
            &["web__1 s 0 BLUE", "web__2 p 2 GREEN"],
            "web__2 web__1 web__1 []",
        ),
        (
            shift(0),
            false,
            &["web__1 p 2", "web__2 s 0"],
            "web__1 web__2 web__2 []",
        ),
        (shift(50), false, &[], "- - web__1 []"),
        (shift(50), false, &["web__1 s 0"], "- web__1 web__1 []"),
        (shared(), false, &["web__1 p 2"], "web__1 - web__2 []"),
        (
            shared(),
            false,
            &["web__1 p 2", "web__2 p 0"],
            "web__1 web__2 web__2 []",
        ),
    ];
    for (routes, update, services, expected) in table {
        assert_eq!(told(routes, *update, services), *expected, "{services:?}");
    }
}

#[test]
fn what_would_take_away_a_live_service_is_refused() {
    let table: &[(Routes, &[&str], &[&str])] = &[
        (
            swap(),
            &["web__1 p+s 2"],
            &["web__1", "both target groups", "Attach it to one"],
        ),
        (
            swap(),
            &["web__1 p 2", "web__3 p 2"],
            &["web__1 and web__3", "target group p", "Take one"],
        ),
        (
            swap(),
            &["web__1 p 2", "web__2 s 0", "web__3 s 0"],
            &["web__2 and web__3"],
        ),
        (
            swap(),
            &["shop p 2"],
            &["shop", "no version of web", "not touched"],
        ),
        (
            swap(),
            &["web__1 p 2", "shop s 2"],
            &["shop", "no version of web", "not touched"],
        ),
        (
            swap(),
            &["web__1 s 2 BLUE"],
            &["web__1", "runs 2 tasks", "BLUE", "mixed up"],
        ),
        (swap(), &["(web__1) p 2"], &["web__1", "DRAINING"]),
        (
            swap(),
            &["web__1 p 2", "web__2 x 2"],
            &["web__2", "not in the stage target group s"],
        ),
        (
            shift(100),
            &["web__1 s 2 BLUE"],
            &[
                "web__1 serves them",
                "deleted",
                "must be the other target group, p",
            ],
        ),
        (
            shift(40),
            &["web__1 p 2", "web__2 s 2"],
            &["weight 40", "web__2 serves them"],
        ),
        (
            shift(40),
            &["web__1 p 2"],
            &["weight 40", "before anybody shifted"],
        ),
        (
            shared(),
            &["web__1 p 2", "web__2 p 2"],
            &["web__1 and web__2"],
        ),
    ];
    for (routes, services, parts) in table {
        let why = told(routes, false, services);
        for part in *parts {
            assert!(why.contains(part), "{services:?}: {why}");
        }
    }
}
