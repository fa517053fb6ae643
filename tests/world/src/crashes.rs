//! The same run again and again, each time with a function that dies somewhere else.

use crate::World;

impl World {
    /// Runs a pipeline until a run needs fewer requests to the store than the next crash waits for: a crash at the
    /// first request, then at every `step`-th after it, in turn after the request was carried out, which nobody hears
    /// of, and before. Each run must come to the same story, and leave nothing behind. Answers how many runs had a
    /// crash.
    ///
    /// # Panics
    /// When a run comes to another story, or leaves something behind.
    pub async fn survives_crashes(&self, pipeline: &str, step: usize, story: &str) -> usize {
        for (crashes, request) in (1..).step_by(step).enumerate() {
            if !self
                .survives_crash(pipeline, request, crashes % 2 == 0, story)
                .await
            {
                return crashes;
            }
        }
        unreachable!("there is always another request")
    }

    /// The same with a crash after every single request: what was written counts, and nobody heard of it.
    ///
    /// # Panics
    /// When a run comes to another story, or leaves something behind.
    pub async fn survives_crashes_unheard(&self, pipeline: &str, story: &str) -> usize {
        for request in 1.. {
            if !self.survives_crash(pipeline, request, true, story).await {
                return request - 1;
            }
        }
        unreachable!("there is always another request")
    }

    /// Whether there was a request to crash at.
    async fn survives_crash(
        &self,
        pipeline: &str,
        request: usize,
        after: bool,
        story: &str,
    ) -> bool {
        self.crash.arm(request, after);
        let run = self.start(pipeline).await;
        let run = self.finish(&run).await;
        if self.crash.is_armed() {
            self.crash.disarm();
            return false;
        }
        let found = self.story(&run).await;
        assert_eq!(found, story, "crash at request {request}, done: {after}");
        self.assert_clean(&run.id).await;
        true
    }
}
