//! `GET /slipway/api/export` and `POST /slipway/api/import`: everything that people wrote in an account, from one
//! installation to another.
//!
//! An export is `{"data":{"format":1,"version":"0.1.0","records":[…],"secretsWithoutValue":["account.token"]}}`: the
//! records of entities as they are stored, so that nothing of them is lost, and no values of secrets. Runs, instances
//! and tokens are no part of it.
//!
//! An import takes that `data` as its body, and looks through all of it before it changes anything: what this version
//! cannot read, and what is there and says something else, is told in one list, and nothing is imported. Answers
//! `{"data":{"imported":3,"unchanged":2,"secretsWithoutValue":[…]}}`; repeating it changes nothing.

mod export;
mod import;

use slipway_model::entity::Kind;
use slipway_plan::FOLDER;

use crate::place::NODES;

pub(super) use export::export;
pub(super) use import::import;

/// The layout of an export. A version that writes more raises it, and no earlier one reads it.
const FORMAT: u64 = 1;

/// Whose identifiers records of a kind are kept below.
enum Below {
    /// Nobody's.
    None,
    /// Those of another kind, of this scope or one above.
    Each(Kind),
    /// A name of their own.
    Named(&'static str),
}

/// Every list of records, what others refer to first.
const LISTS: &[(Kind, Below)] = &[
    (Kind::Secret, Below::None),
    (Kind::Variable, Below::None),
    (Kind::File, Below::Named(FOLDER)),
    (Kind::File, Below::None),
    (Kind::File, Below::Named(NODES)),
    (Kind::UserGroup, Below::None),
    (Kind::Template, Below::None),
    (Kind::Template, Below::Each(Kind::Template)),
    (Kind::Connector, Below::None),
    (Kind::Service, Below::None),
    (Kind::Environment, Below::None),
    (Kind::EnvironmentGroup, Below::None),
    (Kind::Infrastructure, Below::Each(Kind::Environment)),
    (Kind::ServiceOverrides, Below::Each(Kind::Environment)),
    (Kind::Overrides, Below::None),
    (Kind::Overrides, Below::Each(Kind::Environment)),
    (Kind::Pipeline, Below::None),
    (Kind::InputSet, Below::Each(Kind::Pipeline)),
    (Kind::Trigger, Below::Each(Kind::Pipeline)),
    (Kind::Freeze, Below::None),
];
