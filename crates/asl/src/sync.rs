//! Locks whose data stays usable after a panic elsewhere: every critical section here leaves it whole.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes `mutex`, ignoring poison.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
