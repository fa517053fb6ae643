//! `slipway delegate`: a delegate as a process of its own.

use anyhow::Context;
use aws_credential_types::Credentials;
use secrecy::SecretString;
use slipway_clock::Clock;
use tokio_util::sync::CancellationToken;

use super::{DelegateConfig, HEARTBEAT, run};
use crate::args::{Connection, DelegateArgs};
use crate::exit::Exit;
use crate::local::place;
use crate::token;

/// Works until Ctrl-C or SIGTERM.
///
/// # Errors
/// When there is no token, the folder cannot be used, or another delegate uses it.
pub async fn command(
    clock: &Clock,
    connection: &Connection,
    args: DelegateArgs,
) -> anyhow::Result<Exit> {
    let token = match &connection.token {
        Some(token) => token.clone(),
        None => token::read(&connection.data_dir)?,
    };
    token::account(&token)?;
    let states = states(connection, &args).await;
    let config = DelegateConfig {
        name: args.name,
        base_url: connection.url.trim_end_matches('/').to_owned(),
        token: SecretString::from(token),
        activity_arn: args.activity_arn.unwrap_or_else(place::delegate_activity),
        selectors: tags(&args.selectors),
        work_dir: args.work_dir,
        tasks: args.tasks,
        heartbeat: HEARTBEAT,
    };
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    tokio::spawn(async move {
        // Without a signal handler the default action ends the process, which a restart survives.
        if crate::local::interrupted().await.is_ok() {
            stop.cancel();
        }
    });
    anstream::eprintln!("delegate {} works for {}", config.name, config.base_url);
    run(
        config,
        states,
        reqwest::Client::new(),
        clock.clone(),
        shutdown,
    )
    .await
    .context("working as a delegate")?;
    Ok(Exit::Succeeded)
}

/// Tags as Harness's delegates take them, spaces around them and empty ones left out.
fn tags(given: &[String]) -> Vec<String> {
    let given = given.iter().map(|tag| tag.trim().to_owned());
    given.filter(|tag| !tag.is_empty()).collect()
}

/// Step Functions: AWS's own where an activity ARN was given, local mode's otherwise.
async fn states(connection: &Connection, args: &DelegateArgs) -> aws_sdk_sfn::Client {
    if args.activity_arn.is_some() {
        return aws_sdk_sfn::Client::new(&aws_config::load_from_env().await);
    }
    let config = aws_sdk_sfn::Config::builder()
        .behavior_version_latest()
        .endpoint_url(&connection.url)
        .region(aws_sdk_sfn::config::Region::new(place::REGION))
        .credentials_provider(Credentials::new(
            "slipway",
            "slipway-local",
            None,
            None,
            "local mode",
        ))
        .build();
    aws_sdk_sfn::Client::from_conf(config)
}
