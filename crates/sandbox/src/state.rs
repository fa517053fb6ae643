//! The account together with its data file: what is shown is what is stored, or follows from it.

use std::path::Path;

use crate::account::Account;
use crate::error::{OpenError, StoreError};
use crate::journal::Journal;
use crate::{SandboxConfig, error};

/// Changed rows after which changes that only time made are written too.
const PENDING_ROWS: usize = 512;

pub(crate) struct State {
    config: SandboxConfig,
    account: Account,
    journal: Option<Journal>,
    /// A write failed, so the account may hold what is not stored.
    stale: bool,
}

impl State {
    pub(crate) fn open(path: Option<&Path>, config: SandboxConfig) -> Result<Self, OpenError> {
        let mut state = Self {
            account: Account::new(config.account.clone(), config.pace.clone()),
            journal: path.map(Journal::open).transpose()?,
            config,
            stale: false,
        };
        state.reload()?;
        Ok(state)
    }

    pub(crate) fn is_on_disk(&self) -> bool {
        self.journal.is_some()
    }

    /// The account, brought to the present. Changes of time follow from what is stored, so writing them can
    /// wait.
    pub(crate) fn present(&mut self) -> Result<&mut Account, StoreError> {
        if self.stale {
            self.reload()?;
        }
        self.account.advance(self.config.clock.now());
        if self.account.pending() > PENDING_ROWS
            && let Err(error) = self.commit()
        {
            error::log(&error);
            self.reload()?;
            self.account.advance(self.config.clock.now());
        }
        Ok(&mut self.account)
    }

    /// Writes everything that changed. If that fails, the account goes back to what is stored before
    /// anybody sees it again.
    pub(crate) fn commit(&mut self) -> Result<(), StoreError> {
        let Some(journal) = &mut self.journal else {
            self.account.forget_changes();
            return Ok(());
        };
        let written = self
            .account
            .changes()
            .and_then(|changes| journal.commit(&changes));
        self.stale = written.is_err();
        written
    }

    fn reload(&mut self) -> Result<(), StoreError> {
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        let config = &self.config;
        let mut account = Account::new(config.account.clone(), config.pace.clone());
        journal.load(|key, value| account.load(key, value))?;
        account.loaded();
        self.account = account;
        self.stale = false;
        Ok(())
    }
}
