//! Failures that nobody was told yet.

use crate::error::{Error, was_waited};
use crate::lock::Lock;
use core::fmt;

/// What work failed with while something was dropped: a drop waits and has nobody to tell, so the next synchronise does.
pub(crate) struct Late(Lock<Option<Error>>);

impl Late {
    pub fn new() -> Late {
        Late(Lock::new(None))
    }

    /// Keeps what work failed with, unless there is something already, and says whether the wait that answered so was one.
    pub fn keep(&self, found: Result<(), Error>) -> bool {
        let waited = was_waited(&found);
        if let Some(error) = found.err().filter(|_| waited) {
            self.0.with(|kept| _ = kept.get_or_insert(error));
        }
        waited
    }

    /// What was kept, once.
    pub fn report(&self) -> Result<(), Error> {
        self.0.with(Option::take).map_or(Ok(()), Err)
    }
}

impl fmt::Debug for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.with(|kept| kept.fmt(f))
    }
}
