//! A Step Functions service that can be restarted: clients go on talking to whatever engine there is.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::Request;
use slipway_asl::{Counters, Engine, EngineConfig, Lambda};
use tower::ServiceExt;

/// The engine of a world.
pub struct Service {
    now: Arc<Mutex<Now>>,
    config: EngineConfig,
    lambda: Arc<dyn Lambda>,
    journal: Option<PathBuf>,
}

struct Now {
    engine: Engine,
    router: Router,
}

impl Service {
    /// Starts an engine; only one with a journal can be restarted.
    pub(crate) fn start(
        config: EngineConfig,
        lambda: Arc<dyn Lambda>,
        journal: Option<PathBuf>,
    ) -> Self {
        let now = Now::open(&config, &lambda, journal.as_deref());
        Self {
            now: Arc::new(Mutex::new(now)),
            config,
            lambda,
            journal,
        }
    }

    /// What the engine has done since it was opened.
    pub fn counters(&self) -> Counters {
        lock(&self.now).engine.counters()
    }

    /// Step Functions' API, of whatever engine there is at the time of a request.
    pub(crate) fn router(&self) -> Router {
        let now = Arc::clone(&self.now);
        Router::new().fallback(move |request: Request| {
            let router = lock(&now).router.clone();
            async move { router.oneshot(request).await }
        })
    }

    /// Ends the engine as a kill would: functions under way are let go. Another one goes on from the journal.
    ///
    /// # Panics
    /// When the world has no journal.
    pub async fn restart(&self) {
        let journal = self.journal.as_deref().expect("a world with a journal");
        let old = {
            // The file is free once the last clone and router of the engine are gone.
            let mut now = lock(&self.now);
            now.router = Router::new();
            let idle = Engine::in_memory(self.config.clone(), Arc::clone(&self.lambda));
            std::mem::replace(&mut now.engine, idle.expect("an engine"))
        };
        old.shutdown().await;
        // Requests under way hold the engine until they have heard that it stops.
        let mut left = 100;
        let engine = loop {
            match Engine::open(journal, self.config.clone(), Arc::clone(&self.lambda)) {
                Ok(engine) => break engine,
                Err(slipway_asl::OpenError::InUse { .. }) if left > 0 => left -= 1,
                Err(error) => panic!("the journal cannot be opened again: {error}"),
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        };
        *lock(&self.now) = Now::of(engine);
    }
}

impl Now {
    fn open(
        config: &EngineConfig,
        lambda: &Arc<dyn Lambda>,
        journal: Option<&std::path::Path>,
    ) -> Self {
        let engine = match journal {
            Some(path) => Engine::open(path, config.clone(), Arc::clone(lambda)),
            None => Engine::in_memory(config.clone(), Arc::clone(lambda)),
        };
        Self::of(engine.expect("an engine"))
    }

    fn of(engine: Engine) -> Self {
        engine.resume();
        Self {
            router: engine.router(),
            engine,
        }
    }
}

fn lock(now: &Mutex<Now>) -> MutexGuard<'_, Now> {
    now.lock().unwrap_or_else(PoisonError::into_inner)
}
