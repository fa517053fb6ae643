//! The binary `slipway`: client commands, local mode, delegate.
//!
//! `args` says what can be typed, `commands` has a file per client verb, `local` is the whole service in one
//! process, `demo` plays with it, and `delegate` works for a service elsewhere.

pub mod args;
pub mod client;
pub mod commands;
pub mod delegate;
pub mod demo;
pub mod error;
pub mod exit;
pub mod local;
pub mod output;
pub mod sandbox;
pub mod token;

use slipway_clock::Clock;
use tracing_subscriber::EnvFilter;

use crate::args::{Cli, Command, Format};
use crate::client::Client;
use crate::commands::{
    abort, again, apply, approval, artifact, connector, entity, import_git, input, interrupt, logs,
    plan, rollback, run, schema, transfer, trigger, validate,
};
use crate::error::CliError;
use crate::exit::Exit;

/// Runs one command to its end; failures go to standard error.
pub fn main(cli: Cli) -> Exit {
    log();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(why) => return failed(&why.into()),
    };
    match runtime.block_on(command(cli)) {
        Ok(exit) => exit,
        Err(why) => failed(&why),
    }
}

async fn command(cli: Cli) -> anyhow::Result<Exit> {
    let clock = Clock::system();
    let format = cli.output;
    let client = || Client::new(&cli.connection);
    if format == Some(Format::Sarif) && !matches!(cli.command, Command::Validate(_)) {
        let why = "only `slipway validate` prints SARIF: choose json, yaml or table";
        return Err(CliError::Usage(why.to_owned()).into());
    }
    Ok(match cli.command {
        Command::Demo(args) => demo::demo(&clock, format, &args).await?,
        Command::Local(args) => local::serve(&clock, &cli.connection.data_dir, args).await?,
        Command::Sandbox(args) => sandbox::serve_account(&clock, &args).await?,
        Command::Delegate(args) => delegate::command(&clock, &cli.connection, args).await?,
        Command::Schema(args) => schema::schema(format, &args)?,
        Command::Validate(args) => validate::validate(format, &args)?,
        Command::Apply(args) => apply::apply(&client()?, format, &args).await?,
        Command::Plan(args) => plan::plan(&client()?, format, &args).await?,
        Command::Run(args) => run::run(&client()?, &clock, format, &args).await?,
        Command::Rerun(args) => again::rerun(&client()?, &clock, format, &args).await?,
        Command::Retry(args) => again::retry(&client()?, &clock, format, &args).await?,
        Command::Rollback(args) => rollback::rollback(&client()?, &clock, format, &args).await?,
        Command::Note(args) => again::note(&client()?, &args).await?,
        Command::Get(args) => entity::get(&client()?, format, &args).await?,
        Command::List(args) => entity::list(&client()?, format, &args).await?,
        Command::Artifact(args) => artifact::artifact(&client()?, format, &args.command).await?,
        Command::Trigger(args) => trigger::trigger(&client()?, format, &args.command).await?,
        Command::Connector(args) => connector::connector(&client()?, format, &args.command).await?,
        Command::Token(args) => commands::token::token(&client()?, &clock, &args.command).await?,
        Command::User(args) => commands::user::user(&client()?, format, &args.command).await?,
        Command::Logs(args) => logs::logs(&client()?, &clock, &args).await?,
        Command::Abort(args) => abort::abort(&client()?, &clock, &args).await?,
        Command::Approve(args) => approval::approve(&client()?, &args).await?,
        Command::Reject(args) => approval::reject(&client()?, &args).await?,
        Command::Pause(args) => interrupt::pause(&client()?, &args).await?,
        Command::Resume(args) => interrupt::resume(&client()?, &args).await?,
        Command::Answer(args) => interrupt::answer(&client()?, &args).await?,
        Command::Input(args) => input::input(&client()?, format, &args).await?,
        Command::Export => transfer::export(&client()?).await?,
        Command::Import(args) => transfer::import(&client()?, &args).await?,
        Command::ImportGit(args) => import_git::import(&client()?, format, &args).await?,
        Command::Start(args) => interrupt::start(&client()?, &args).await?,
        Command::Fail(args) => interrupt::fail(&client()?, &args).await?,
    })
}

/// Prints why with every cause, and gives the exit code.
fn failed(why: &anyhow::Error) -> Exit {
    anstream::eprintln!("error: {}", output::visible(&told(why)));
    let known = why.downcast_ref::<CliError>();
    for warning in known.map_or(&[][..], CliError::warnings) {
        anstream::eprintln!("warning: {}", output::visible(warning));
    }
    known.map_or(Exit::Failed, CliError::exit)
}

/// Why, with every cause. What the server shows of a document begins as this is shown.
fn told(why: &anyhow::Error) -> String {
    let text = format!("{why:#}");
    let bare = text.strip_prefix("error: ");
    bare.unwrap_or(&text).to_owned()
}

/// Logs go to standard error; `SLIPWAY_LOG` says which (`info`, `slipway_engine=debug`, …).
fn log() {
    let filter = EnvFilter::try_from_env("SLIPWAY_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // Another subscriber can only be there in a test; it stays.
    let _ = subscriber.try_init();
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    /// Found by a tester: `error: error: …`.
    #[test]
    fn an_error_says_once_that_it_is_one() {
        let rendered = anyhow!("error: `x` names no field of the pipeline");
        assert_eq!(super::told(&rendered), "`x` names no field of the pipeline");
        let why = anyhow!("no route").context("ask the server");
        assert_eq!(super::told(&why), "ask the server: no route");
    }
}
