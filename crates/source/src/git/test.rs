//! Whether the host of a connector shows its repository.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use slipway_model::id::Scope;
use slipway_plan::{ConnectorPlan, GitVersion};
use slipway_steps::secrets::Secrets;

use super::address::address;
use super::known::Known;
use super::{Allowed, Place, Stopper, local, place, remote};
use crate::fault::Fault;

/// Lists the branches of a connector's repository: of the one that `validationRepo` names, where the connector is for
/// several (docs: platform/connectors/code-repositories).
///
/// # Errors
/// What keeps the repository from being read.
pub(crate) async fn test(
    connector: &ConnectorPlan,
    scope: &Scope,
    allowed: Allowed<'_>,
    secrets: &mut Secrets<'_>,
) -> Result<(), Fault> {
    let named = connector.spec["validationRepo"].as_str().map(str::trim);
    let named = named.filter(|name| !name.is_empty());
    let several = ["connectionType", "type"]
        .iter()
        .any(|field| matches!(connector.spec[*field].as_str(), Some("Account" | "Project")));
    if several && named.is_none() {
        let why =
            "it is for several repositories: name one in `validationRepo`, by which it is tested";
        return Err(why.to_owned().into());
    }
    let address = address(connector, named, allowed.local_files)?;
    let place = place(connector, address, scope, allowed, secrets).await;
    let way = match place.map_err(Fault::login)? {
        Place::Local(folder) => {
            return local::open(&folder).map(drop).map_err(Fault::from);
        }
        Place::Remote(way) => way,
    };
    let folder =
        tempfile::tempdir().map_err(|why| format!("cannot make a temporary folder: {why}"))?;
    let stop = Arc::new(AtomicBool::new(false));
    // Dropped with this call, also when its caller gives up: the thread then ends by itself.
    let _stopper = Stopper(Arc::clone(&stop));
    let limit = allowed.limit;
    let thread = tokio::task::spawn_blocking(move || {
        let remote = remote::Remote {
            way,
            version: &GitVersion::Branch(String::new()),
            known: &Known::default(),
            limit,
        };
        remote::test(&remote, folder.path(), &stop)
    });
    let tested = thread.await;
    tested.unwrap_or_else(|why| Err(format!("reading it broke: {why}").into()))
}
