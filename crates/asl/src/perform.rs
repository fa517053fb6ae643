//! Carries out the effects of committed steps.

use std::sync::Arc;

use crate::activity::Offer;
use crate::driver::Signal;
use crate::effect::Invocation;
use crate::engine::Inner;
use crate::items;
use crate::record::{Parent, Status};
use crate::run::{Effect, Run};
use crate::start::{Iteration, Start};
use crate::turns::going_on;

/// Carries out what a committed step has decided. Answers come back as signals.
pub(crate) fn perform(engine: &Arc<Inner>, run: &Run, effect: Effect) {
    let number = run.number;
    match effect {
        Effect::Invoke {
            branch,
            attempt,
            name,
            payload,
            settings,
        } => {
            let inner = Arc::clone(engine);
            let invocation = Invocation {
                machine: run.execution.machine.clone(),
                function: name,
                payload,
                settings,
            };
            engine.spawn(async move {
                let result = going_on(inner.lambda.carry_out(invocation)).await;
                inner.signal(
                    number,
                    Signal::Invoked {
                        branch,
                        attempt,
                        result,
                    },
                );
            });
        }
        Effect::Offer {
            branch,
            attempt,
            activity,
        } => engine.activities.offer(
            &activity,
            Offer {
                execution: number,
                branch,
                attempt,
            },
        ),
        Effect::StartChild {
            branch,
            attempt,
            machine,
            name,
            input,
            waits,
        } => {
            let parent = Parent {
                execution: number,
                branch,
                attempt,
                waits,
            };
            start_child(engine, parent, machine, name, input);
        }
        Effect::CheckChild {
            branch,
            attempt,
            execution,
        } => {
            // A read that fails is met again when the child ends or the engine restarts.
            if let Ok(Some(child)) = engine.journal.execution(execution)
                && child.status != Status::Running
            {
                engine.signal(
                    number,
                    Signal::ChildClosed {
                        branch,
                        attempt,
                        execution: Box::new(child),
                    },
                );
            }
        }
        Effect::StopChild { execution } => engine.signal(
            execution,
            Signal::Stop {
                error: None,
                cause: None,
                reply: None,
            },
        ),
        Effect::Call {
            branch,
            attempt,
            call,
            submitted,
        } => {
            let inner = Arc::clone(engine);
            engine.spawn(async move {
                let result = match submitted {
                    None => inner.services.call(&call).await,
                    Some(submitted) => inner.services.finish(&call, &submitted).await,
                };
                let called = Signal::Called {
                    branch,
                    attempt,
                    result,
                };
                inner.signal(number, called);
            });
        }
        effect => perform_for_map(engine, run, effect),
    }
}

/// Carries out what a distributed `Map` needs.
fn perform_for_map(engine: &Arc<Inner>, run: &Run, effect: Effect) {
    let number = run.number;
    let inner = Arc::clone(engine);
    match effect {
        Effect::ReadItems {
            branch,
            started,
            call,
            input,
        } => engine.spawn(async move {
            let result = items::read(inner.services.as_ref(), &call, &input).await;
            let read = Signal::ItemsRead {
                branch,
                started,
                result,
            };
            inner.signal(number, read);
        }),
        Effect::WriteResults {
            branch,
            started,
            call,
            map_run,
            results,
        } => engine.spawn(async move {
            let result = items::write(inner.services.as_ref(), &call, &map_run, &results).await;
            let written = Signal::ResultsWritten {
                branch,
                started,
                result,
            };
            inner.signal(number, written);
        }),
        Effect::StartIteration {
            branch,
            attempt,
            map_run,
            index,
            processor,
            express,
            input,
        } => {
            let iteration = Iteration {
                parent: Parent {
                    execution: number,
                    branch,
                    attempt,
                    waits: true,
                },
                map_run,
                index,
                processor,
                express,
                input,
            };
            let of = run.execution.clone();
            engine.spawn(async move {
                let result = inner.start_iteration(&of, iteration).await;
                let started = Signal::ChildStarted {
                    branch,
                    attempt,
                    result: Box::new(result),
                };
                inner.signal(number, started);
            });
        }
        _ => {}
    }
}

fn start_child(engine: &Arc<Inner>, parent: Parent, machine: String, name: String, input: String) {
    let inner = Arc::clone(engine);
    engine.spawn(async move {
        let request = Start {
            machine,
            name: Some(name),
            input,
            parent: Some(parent),
            trace: None,
        };
        let result = inner.start(request).await;
        inner.signal(
            parent.execution,
            Signal::ChildStarted {
                branch: parent.branch,
                attempt: parent.attempt,
                result: Box::new(result),
            },
        );
    });
}
