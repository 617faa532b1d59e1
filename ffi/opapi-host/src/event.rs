//! Events: marks in a stream that others wait for.

use crate::failure::Failure;
use crate::stream::{Stream, Task};
use crate::table::{Table, lock};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Instant;
use tilekern_acl::{aclrtEvent, codes};

/// The live events.
pub(crate) static EVENTS: Table<Event> = Table::new();

/// What may be recorded again and again. Who waits for a recording waits for that one, also when the event is recorded anew meanwhile.
#[derive(Default)]
pub(crate) struct Event {
    last: Mutex<Option<Recording>>,
}

/// A mark in a stream, behind the work of a number.
#[derive(Clone)]
pub(crate) struct Recording {
    pub stream: Weak<Stream>,
    pub sequence: u64,
    mark: Arc<Mark>,
}

/// When a stream came to its place.
#[derive(Default)]
pub(crate) struct Mark {
    passed: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl Event {
    pub fn of(handle: aclrtEvent) -> Result<Arc<Event>, Failure> {
        EVENTS.get(handle as usize).ok_or_else(unknown)
    }

    /// One more recording.
    pub fn record(&self, stream: &Arc<Stream>) -> Result<(), Failure> {
        let mut last = lock(&self.last);
        let mark = Arc::<Mark>::default();
        let sequence = stream.submit(Task::Record(Arc::clone(&mark)), Vec::new())?;
        *last = Some(Recording { stream: Arc::downgrade(stream), sequence, mark });
        Ok(())
    }

    /// The last recording, if there is one.
    pub fn recording(&self) -> Option<Recording> {
        lock(&self.last).clone()
    }

    /// When its last recording came to pass.
    pub fn time(&self) -> Result<Instant, Failure> {
        let pending = || Failure::parameter("the event was not recorded, or has not come to pass");
        self.recording().and_then(|recording| recording.time()).ok_or_else(pending)
    }
}

impl Recording {
    /// Until it has come to pass.
    pub fn wait(&self) {
        let passed = lock(&self.mark.passed);
        let _passed = self.mark.changed.wait_while(passed, |passed| passed.is_none()).unwrap_or_else(PoisonError::into_inner);
    }

    /// When it came to pass, if it has.
    pub fn time(&self) -> Option<Instant> {
        *lock(&self.mark.passed)
    }
}

impl Mark {
    /// The stream is there.
    pub fn pass(&self) {
        *lock(&self.passed) = Some(Instant::now());
        self.changed.notify_all();
    }
}

/// An event that does not exist.
pub(crate) fn unknown() -> Failure {
    Failure::new(codes::ACL_ERROR_RT_INVALID_HANDLE, "no live event: destroyed, or another pointer")
}
