//! Overrides of services in environments, of both versions.
//!
//! Version 2 lives where the plan looks for it: below its environment, by what it is for. Clients know it by
//! an identifier, which is its own or made of what it is for; a second record under that identifier says
//! where it lives. That one is written first: one that leads nowhere hurts nobody.

mod v1;
mod v2;

use axum::Router;

use crate::Deps;

pub(crate) use v2::apply;

pub(crate) fn routes() -> Router<Deps> {
    Router::new().merge(v1::routes()).merge(v2::router())
}
