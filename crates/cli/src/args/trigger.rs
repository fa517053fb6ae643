//! Options of `slipway trigger`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Options of `slipway trigger`.
#[derive(Debug, Args)]
pub struct TriggerArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TriggerCommand,
}

/// What can be done with triggers.
#[derive(Debug, Subcommand)]
pub enum TriggerCommand {
    /// List the triggers of a pipeline, with their URLs and what came of the last event
    List {
        /// The pipeline.
        #[arg(long)]
        pipeline: String,
        /// Triggers at most.
        #[arg(long, default_value_t = 100)]
        limit: u32,
    },
    /// List the events of a trigger, the newest first, with what came of each
    History {
        /// The trigger.
        #[arg(value_name = "TRIGGER")]
        id: String,
        /// Its pipeline.
        #[arg(long)]
        pipeline: String,
        /// Which page, from 0.
        #[arg(long, default_value_t = 0)]
        page: u32,
        /// Events of one page.
        #[arg(long, default_value_t = 20)]
        limit: u32,
    },
    /// Say what a delivery would start, or why not; nothing is started. Fails where nothing would be
    Test(DeliveryArgs),
    /// Send a delivery to a trigger as if its sender had; prints the ids of the events
    Fire(DeliveryArgs),
    /// List events that could not be handled
    Dead,
    /// Handle an event again that could not be handled
    Redrive {
        /// Its id.
        event: String,
    },
}

/// A delivery.
#[derive(Debug, Args)]
pub struct DeliveryArgs {
    /// The trigger; `test` asks all that listen without one.
    #[arg(value_name = "TRIGGER")]
    pub trigger: Option<String>,
    /// Its pipeline.
    #[arg(long)]
    pub pipeline: Option<String>,
    /// File with the body; `-` for standard input. Schedules have none.
    #[arg(short = 'f', long = "payload", value_name = "FILE")]
    pub payload: Option<PathBuf>,
    /// A header, `X-GitHub-Event: push`; as often as needed.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub headers: Vec<String>,
}
