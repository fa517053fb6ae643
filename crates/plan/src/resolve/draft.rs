//! A pipeline before anybody runs it: the faults that show in its text, whatever its inputs are given.
//!
//! It is planned as a run would be, with its inputs open. What an input or an expression may still put right is
//! passed over, and so is everything that only whoever runs it has: entities that are not at hand, templates
//! among them.

use std::cell::RefCell;

use slipway_model::inputs::{RuntimeInput, Unfilled};
use slipway_model::{Code, Diagnostic, Ref};

use super::{Request, Resolver, filled, once_each, stage_inputs};

/// The faults of a pipeline as it is written, for whoever writes it. Warnings tell what Harness has and this version
/// does not do yet. Inputs and chosen stages of the request do not count.
pub fn draft(request: &Request<'_>) -> Vec<Diagnostic> {
    let asked = RefCell::default();
    let request = &Request {
        inputs: &[],
        chosen: None,
        ..*request
    };
    // Links to templates have a check of their own ([`crate::template::links`]).
    let pipeline = match filled(request, &asked, Unfilled::Keep) {
        Ok((pipeline, _)) => pipeline,
        Err(_) => request.pipeline.clone(),
    };
    let (pipeline, later) = stage_inputs::set_aside(pipeline);
    let mut resolver = Resolver::new(request, &asked, later);
    resolver.is_draft = true;
    resolver.pipeline(&pipeline);
    let mut found = once_each(resolver.faults.into_vec());
    found.retain(|fault| !is_of_others(fault));
    let told = found.into_iter().map(|fault| match fault.code {
        Code::NotSupported => fault.warning(),
        _ => fault,
    });
    told.collect()
}

/// Whether a value may still become right: it is an expression, or part of it is given when a run starts.
pub(super) fn is_open(value: Ref<'_>) -> bool {
    let asks = |value: Ref<'_>| RuntimeInput::of(value).is_some();
    value.is_expression()
        || value.items().any(asks)
        || value.entries().any(|(_, inner)| asks(inner))
}

/// Whether a fault is about something that is not at hand, or is given when a run starts.
fn is_of_others(fault: &Diagnostic) -> bool {
    match fault.code {
        Code::MissingInput | Code::BadInput => true,
        // What the pipeline itself has to have is known. A stage that is used may come of a template.
        Code::NotFound => ![".barrierRef", ".useFromStage"]
            .iter()
            .any(|own| fault.path.ends_with(own)),
        _ => false,
    }
}
