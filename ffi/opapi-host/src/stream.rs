//! Streams: work in order, on a thread of the stream's own that begins with the first piece of work.
//!
//! Work is numbered. What it uses stays claimed until somebody waited for it; a failure is kept until somebody who waited for it asks.

use crate::context::Context;
use crate::environment::Environment;
use crate::event::{Mark, Recording};
use crate::failure::Failure;
use crate::memory::{self, Span};
use crate::table::{Table, lock};
use core::time::Duration;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;
use tilekern_acl::{aclrtStream, codes};

/// The streams that were created; default streams belong to their contexts.
pub(crate) static STREAMS: Table<Stream> = Table::new();

/// What fails says a sentence.
pub(crate) type Work = Box<dyn FnOnce() -> Result<(), String> + Send>;

pub(crate) enum Task {
    Work(Work),
    Record(Arc<Mark>),
    Wait(Recording),
}

/// So many failures of a stream are kept; behind them the last one stands for all.
const KEPT: usize = 64;

/// A queue and its thread.
pub(crate) struct Stream {
    handle: usize,
    context: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Task>,
    submitted: u64,
    finished: u64,
    /// What failed and was not told, by number.
    failures: VecDeque<(u64, Failure)>,
    stops: bool,
    closing: bool,
    /// Work in the queue does not run any more.
    abandoned: bool,
    thread: Option<JoinHandle<()>>,
    /// What the stream waited for: whoever waits for that number has waited for the other stream too.
    waits: VecDeque<(u64, Weak<Stream>, u64)>,
}

impl Stream {
    pub fn new(handle: usize, context: usize) -> Stream {
        Stream { handle, context, state: Mutex::default(), changed: Condvar::new() }
    }

    /// The stream of a handle, null being the default one, for a thread in the same context.
    pub fn of(handle: aclrtStream) -> Result<Arc<Stream>, Failure> {
        let context = Context::current()?;
        if handle.is_null() {
            return Ok(context.default_stream());
        }
        let stream = STREAMS.get(handle as usize).ok_or_else(unknown)?;
        match stream.context == context.handle() {
            true => Ok(stream),
            false => Err(Failure::new(codes::ACL_ERROR_RT_STREAM_CONTEXT, "the stream belongs to another context")),
        }
    }

    /// Work behind everything that is there, and what it uses; its number.
    pub fn submit(self: &Arc<Stream>, task: Task, spans: Vec<Span>) -> Result<u64, Failure> {
        let mut state = lock(&self.state);
        if state.closing {
            return Err(unknown());
        }
        let sequence = state.submitted + 1;
        if state.thread.is_none() {
            let stream = Arc::clone(self);
            let none = |_| Failure::new(codes::ACL_ERROR_RT_NO_STREAM_RESOURCE, "no thread for the stream");
            state.thread = Some(Builder::new().name("tilekern-stream".into()).spawn(move || stream.serve()).map_err(none)?);
        }
        if !spans.is_empty() {
            memory::claim(self.handle, sequence, spans).map_err(Failure::parameter)?;
        }
        if let Task::Wait(recording) = &task {
            state.waits.push_back((sequence, recording.stream.clone(), recording.sequence));
        }
        state.submitted = sequence;
        state.queue.push_back(task);
        self.changed.notify_all();
        Ok(sequence)
    }

    /// The stream's thread.
    fn serve(&self) {
        let _environment = Environment::enter();
        let mut state = lock(&self.state);
        loop {
            let Some(task) = state.queue.pop_front() else {
                if state.closing {
                    return;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let skip = state.abandoned || state.stops && !state.failures.is_empty();
            drop(state);
            let result = match task {
                Task::Work(work) if !skip => {
                    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err("internal error".into()))
                }
                Task::Work(_) => Ok(()),
                Task::Record(mark) => {
                    mark.pass();
                    Ok(())
                }
                Task::Wait(recording) => {
                    recording.wait();
                    Ok(())
                }
            };
            state = lock(&self.state);
            state.finished += 1;
            if let Err(message) = result {
                let failure = (state.finished, Failure::new(codes::ACL_ERROR_RT_AICORE_EXCEPTION, message));
                state.failures.truncate(KEPT - 1);
                state.failures.push_back(failure);
            }
            self.changed.notify_all();
        }
    }

    /// The number of the last work.
    pub fn submitted(&self) -> u64 {
        lock(&self.state).submitted
    }

    /// Whether everything is done; if so, it counts as waited for.
    pub fn query(&self) -> bool {
        let state = lock(&self.state);
        let (done, sequence) = (state.finished == state.submitted, state.submitted);
        drop(state);
        if done {
            self.retire(sequence);
        }
        done
    }

    /// Until the work up to that number is done.
    pub fn finish(&self, sequence: u64, limit: Option<Duration>) -> Result<(), Failure> {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut state = lock(&self.state);
        while state.finished < sequence {
            state = match end {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(end) => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(Failure::new(codes::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "the stream is not done in time"));
                    }
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        Ok(())
    }

    /// Until the work up to that number is done, which then counts as waited for. What failed in it is kept.
    pub fn wait(&self, sequence: u64, limit: Option<Duration>) -> Result<(), Failure> {
        self.finish(sequence, limit)?;
        self.retire(sequence);
        Ok(())
    }

    /// Waits for the work up to that number. What failed first in it is answered once; in a stream that stops on failure, always.
    pub fn synchronise(&self, sequence: u64, limit: Option<Duration>) -> Result<(), Failure> {
        self.wait(sequence, limit)?;
        let mut state = lock(&self.state);
        let told = state.failures.partition_point(|(place, _)| *place <= sequence);
        let first = state.failures.front().filter(|_| told > 0).map(|(_, failure)| failure.clone());
        if !state.stops {
            state.failures.drain(..told);
        }
        first.map_or(Ok(()), Err)
    }

    /// What the work up to that number used is free again, and what it waited for as well.
    pub fn retire(&self, sequence: u64) {
        memory::release(self.handle, sequence);
        loop {
            let first = lock(&self.state).waits.front().filter(|wait| wait.0 <= sequence).cloned();
            let Some((number, source, before)) = first else { return };
            if let Some(source) = source.upgrade() {
                source.retire(before);
            }
            // Only now: whoever finds no wait here has nothing more to wait for.
            lock(&self.state).waits.pop_front_if(|wait| wait.0 == number);
        }
    }

    /// Whether work behind a failure does not run.
    pub fn set_stops(&self, stops: bool) {
        lock(&self.state).stops = stops;
    }

    /// The end: what is queued still runs, or without `drain` only its events come to pass. False where somebody else sees to it.
    pub fn close(&self, drain: bool) -> bool {
        let mut state = lock(&self.state);
        if core::mem::replace(&mut state.closing, true) {
            return false;
        }
        state.abandoned = !drain;
        self.changed.notify_all();
        let thread = state.thread.take();
        drop(state);
        if let Some(thread) = thread {
            // It caught every panic.
            let _ = thread.join();
        }
        self.retire(u64::MAX);
        true
    }
}

/// A stream that does not exist.
pub(crate) fn unknown() -> Failure {
    Failure::new(codes::ACL_ERROR_RT_INVALID_HANDLE, "no live stream: destroyed, or another pointer")
}
