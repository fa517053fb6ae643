//! `slipway demo`: a first deployment, an update, a failure and its rollback, in a sandbox account.
//!
//! It is the local service with the golden pipeline of `templates/ecs-rolling`, used through the same API as
//! everything else.

use anyhow::{Context, bail};
use serde_json::{Value, json};
use slipway_clock::Clock;

use crate::args::{
    Connection, DemoArgs, FollowArgs, Format, InputArgs, Level, LocalArgs, PaceArg, RunArgs,
    StageArgs, Target,
};
use crate::client::{Body, Client};
use crate::commands::follow::{Patience, follow};
use crate::commands::run;
use crate::exit::Exit;
use crate::local::{self, Options, Running};
use crate::output::{self, Column};

/// The golden pipeline and what it refers to, in the order in which a reader would look.
const FILES: &[(&str, &str)] = &[
    (
        "connectors.yaml",
        include_str!("../../../../templates/ecs-rolling/connectors.yaml"),
    ),
    (
        "service.yaml",
        include_str!("../../../../templates/ecs-rolling/service.yaml"),
    ),
    (
        "environment.yaml",
        include_str!("../../../../templates/ecs-rolling/environment.yaml"),
    ),
    (
        "pipeline.yaml",
        include_str!("../../../../templates/ecs-rolling/pipeline.yaml"),
    ),
];

/// One act of the demo.
struct Act {
    title: &'static str,
    tag: &'static str,
    ends: &'static str,
    /// The tag that runs afterwards.
    leaves: &'static str,
}

/// The sandbox fails to pull an image with the tag `missing`.
const ACTS: &[Act] = &[
    Act {
        title: "first deployment",
        tag: "1.0",
        ends: "Success",
        leaves: "1.0",
    },
    Act {
        title: "second version, rolling",
        tag: "2.0",
        ends: "Success",
        leaves: "2.0",
    },
    Act {
        title: "a version whose image cannot be pulled",
        tag: "missing",
        ends: "Failed",
        leaves: "2.0",
    },
];

/// Tasks that the golden service definition asks for.
const DESIRED: usize = 3;

const COLUMNS: &[Column] = &[
    ("ACT", "/act"),
    ("TAG", "/tag"),
    ("STATUS", "/status"),
    ("SECONDS", "/seconds"),
    ("INSTANCES", "/instances"),
    ("RUNNING IMAGE", "/image"),
];

/// Plays the acts and prints what they left as a table.
///
/// # Errors
/// When the service cannot be started, or an act does not end as it must.
pub async fn demo(clock: &Clock, format: Option<Format>, args: &DemoArgs) -> anyhow::Result<Exit> {
    let folder =
        std::env::temp_dir().join(format!("slipway-demo-{}", uuid::Uuid::new_v4().simple()));
    let played = play(clock, format, args, &folder).await;
    if args.keep {
        anstream::eprintln!("the data directory is kept: {}", folder.display());
    } else {
        std::fs::remove_dir_all(&folder).or_else(|why| match why.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(why).with_context(|| format!("removing {}", folder.display())),
        })?;
    }
    played
}

async fn play(
    clock: &Clock,
    format: Option<Format>,
    args: &DemoArgs,
    folder: &std::path::Path,
) -> anyhow::Result<Exit> {
    let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let running = local::start(Options {
        data_dir: folder.to_path_buf(),
        clock: clock.clone(),
        local: LocalArgs {
            listen,
            target: Target::Sandbox,
            pace: PaceArg::Brisk,
            delegate_tasks: 8,
            delegate_tags: Vec::new(),
        },
    })
    .await?;
    let client = Client::new(&Connection {
        url: running.url().to_owned(),
        token: Some(running.token().to_owned()),
        org: "default".to_owned(),
        project: "default".to_owned(),
        level: Level::Project,
        data_dir: folder.to_path_buf(),
    })?;
    running.create_cluster("us-east-1", "shop").await?;
    apply(&client).await?;
    let mut rows = Vec::new();
    for act in ACTS {
        rows.push(perform(&client, clock, act).await?);
    }
    output::rows(Some(format.unwrap_or(Format::Table)), COLUMNS, &rows)?;
    anstream::eprintln!(
        "\nThe failed version was rolled back: {DESIRED} instances of 2.0 are running."
    );
    if args.keep {
        keep_serving(&running).await?;
    }
    running.stop().await?;
    Ok(Exit::Succeeded)
}

async fn keep_serving(running: &Running) -> anyhow::Result<()> {
    anstream::eprintln!(
        "serving on {} until Ctrl-C; token: {}",
        running.url(),
        running.token_path()
    );
    tokio::signal::ctrl_c().await.context("waiting for Ctrl-C")
}

async fn apply(client: &Client) -> anyhow::Result<()> {
    let files: Vec<Value> = FILES
        .iter()
        .map(|(file, yaml)| json!({ "file": file, "yaml": yaml }))
        .collect();
    let body = Body::Json(json!({ "files": files }));
    let answer = client
        .call(reqwest::Method::POST, "/slipway/api/apply", &[], body)
        .await?;
    let refused = answer["data"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|r| r["result"] == "refused");
    match refused {
        Some(row) => bail!("the golden pipeline was refused: {row}"),
        None => Ok(()),
    }
}

async fn perform(client: &Client, clock: &Clock, act: &Act) -> anyhow::Result<Value> {
    anstream::eprintln!("\n{}: tag {}", act.title, act.tag);
    let began = clock.now_ms();
    let id = run::start(
        client,
        &RunArgs {
            pipeline: "deploy_shop".to_owned(),
            given: InputArgs {
                inputs: vec![format!("tag={}", act.tag)],
                ..InputArgs::default()
            },
            chosen: StageArgs::default(),
            notes: None,
            branch: None,
            follow: FollowArgs {
                follow: true,
                ..FollowArgs::default()
            },
        },
    )
    .await?;
    let (_, run) = follow(client, clock, &id, Patience::default()).await?;
    if run.status != act.ends {
        let why = run.failure.unwrap_or_default();
        bail!(
            "{} ended {} and not {}: {why}",
            act.title,
            run.status,
            act.ends
        );
    }
    let instances = instances(client).await?;
    let all_good = instances
        .iter()
        .all(|image| image.ends_with(&format!(":{}", act.leaves)));
    if instances.len() != DESIRED || !all_good {
        bail!(
            "{} left {instances:?} and not {DESIRED} of {}",
            act.title,
            act.leaves
        );
    }
    let ms = clock.now_ms() - began;
    Ok(json!({
        "act": act.title, "tag": act.tag, "status": run.status,
        "seconds": format!("{}.{}", ms / 1_000, ms % 1_000 / 100),
        "instances": instances.len(), "image": instances.first(), "run": id,
    }))
}

/// The images of the counted instances.
async fn instances(client: &Client) -> anyhow::Result<Vec<String>> {
    let answer = client
        .get("/slipway/api/instances", &[("size", "100")])
        .await?;
    let rows = answer["data"]["content"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let image = |row: &Value| {
        row.pointer("/info/containers/0/image")?
            .as_str()
            .map(str::to_owned)
    };
    rows.iter()
        .map(|row| image(row).context("an instance without an image"))
        .collect()
}
