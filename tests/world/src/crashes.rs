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
            let after = crashes % 2 == 0;
            self.crash.arm(request, after);
            let run = self.start(pipeline).await;
            let run = self.finish(&run).await;
            if self.crash.is_armed() {
                self.crash.disarm();
                return crashes;
            }
            let found = self.story(&run).await;
            assert_eq!(found, story, "crash at request {request}, done: {after}");
            self.assert_clean(&run.id).await;
        }
        unreachable!("there is always another request")
    }
}
