//! Services that Slipway itself needs and that do not answer: no failure of the step that needed them. Its call is
//! repeated by the machine, as after a crash; failure strategies have no say.

use std::cell::Cell;
use std::future::Future;

use slipway_model::status::Failure;

tokio::task_local! {
    /// Whether the call of a step in this task has met one.
    static MET: Cell<bool>;
}

/// Makes a call of a step. Answers also whether it failed where such a service did not answer.
pub async fn watched<T>(
    call: impl Future<Output = Result<T, Failure>>,
) -> (Result<T, Failure>, bool) {
    let watched = async {
        let came = call.await;
        let met = came.is_err() && MET.with(Cell::get);
        (came, met)
    };
    MET.scope(Cell::new(false), watched).await
}

/// Such a service does not answer.
pub(crate) fn met() {
    // Nobody watches calls that tests make.
    let _ = MET.try_with(|met| met.set(true));
}
