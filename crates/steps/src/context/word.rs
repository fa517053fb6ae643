//! What a step says about its run: to its other steps, and to whoever looks at it.

use sha2::{Digest, Sha256};
use slipway_engine::signal::WARNING;
use slipway_engine::woken::were_woken;
use slipway_model::id::PrincipalId;
use slipway_model::status::Failure;
use slipway_store::StoreError;
use slipway_store::record::SignalRecord;

use super::{StepContext, store_failure};

impl StepContext<'_> {
    /// Says something to the other steps of the run, once for each attempt and kind; those that hold are woken.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn say(&mut self, kind: &str, says: &str) -> Result<(), Failure> {
        self.note_word(kind, says).await?;
        // Said before a crash, perhaps: then the others are woken once more, and only until it is known that they were.
        // Steps that wait for one another would wake one another without end.
        if !were_woken(self.heard(), self.node(), self.attempt(), kind) {
            self.said = Some(kind.to_owned());
        }
        Ok(())
    }

    /// Warns whoever looks at the run, not only at the log of the step, once for each attempt and text.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn warn_of_run(&mut self, unit: &'static str, text: &str) -> Result<(), Failure> {
        self.warn(unit, text);
        self.tell_run(text).await
    }

    /// As [`StepContext::warn_of_run`], for steps that have no log.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn tell_run(&self, text: &str) -> Result<(), Failure> {
        if self.put_word(WARNING, text).await? {
            return Ok(());
        }
        // An attempt may have several; of one that was told before a crash, whoever reads them sees one.
        let digest = Sha256::digest(text);
        let digest: String = digest
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        self.note_word(&format!("{WARNING}:{digest}"), text).await
    }

    async fn note_word(&self, kind: &str, says: &str) -> Result<(), Failure> {
        self.put_word(kind, says).await.map(|_| ())
    }

    /// Whether it is the first word of its kind.
    async fn put_word(&self, kind: &str, says: &str) -> Result<bool, Failure> {
        let signal = SignalRecord {
            run: self.run().clone(),
            node: self.node().clone(),
            attempt: self.attempt(),
            kind: kind.to_owned(),
            says: says.to_owned(),
            who: PrincipalId::new("slipway"),
            at_ms: self.clock().now_ms(),
        };
        match self.store().put_signal(&signal).await {
            Ok(()) => Ok(true),
            Err(StoreError::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(store_failure("note it in the run", &error)),
        }
    }
}
