//! Events: marks in a stream that others wait for.

use crate::failure::Failure;
use crate::stream::Stream;
use crate::table::{Table, lock};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Instant;
use tilekern_acl::{aclrtEvent, codes};

/// The live events.
pub(crate) static EVENTS: Table<Event> = Table::new();

/// A mark that may be set again and again: each recording is one more.
pub(crate) struct Event {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    recorded: u64,
    completed: u64,
    when: Option<Instant>,
    /// Where it was recorded last, and behind which work.
    source: Option<(Weak<Stream>, u64)>,
}

impl Event {
    pub fn new() -> Event {
        let state = State { recorded: 0, completed: 0, when: None, source: None };
        Event { state: Mutex::new(state), changed: Condvar::new() }
    }

    pub fn of(handle: aclrtEvent) -> Result<Arc<Event>, Failure> {
        EVENTS.get(handle as usize).ok_or_else(unknown)
    }

    /// One more recording, which `enqueue` puts into the stream; it answers the number of its work there.
    pub fn record(&self, stream: &Arc<Stream>, enqueue: impl FnOnce(u64) -> Result<u64, Failure>) -> Result<(), Failure> {
        let mut state = lock(&self.state);
        let sequence = enqueue(state.recorded + 1)?;
        state.recorded += 1;
        state.source = Some((Arc::downgrade(stream), sequence));
        Ok(())
    }

    /// The recording has come to pass.
    pub fn complete(&self, recording: u64) {
        let mut state = lock(&self.state);
        state.completed = state.completed.max(recording);
        state.when = Some(Instant::now());
        self.changed.notify_all();
    }

    /// The last recording, and what stands before it; `None` before the first.
    pub fn recording(&self) -> Option<(u64, Weak<Stream>, u64)> {
        let state = lock(&self.state);
        state.source.as_ref().map(|(stream, sequence)| (state.recorded, stream.clone(), *sequence))
    }

    /// Until the recording has come to pass.
    pub fn wait(&self, recording: u64) {
        let mut state = lock(&self.state);
        while state.completed < recording {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether it was recorded, and the last recording has come to pass.
    pub fn is_complete(&self) -> bool {
        let state = lock(&self.state);
        state.recorded > 0 && state.completed == state.recorded
    }

    /// When its last recording came to pass.
    pub fn time(&self) -> Result<Instant, Failure> {
        let state = lock(&self.state);
        let pending = || Failure::parameter("the event was not recorded, or has not come to pass");
        state.when.filter(|_| state.completed == state.recorded).ok_or_else(pending)
    }
}

/// An event that does not exist.
pub(crate) fn unknown() -> Failure {
    Failure::new(codes::ACL_ERROR_RT_INVALID_HANDLE, "no live event: destroyed, or another pointer")
}
