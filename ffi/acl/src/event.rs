//! Marks in streams.

use crate::device::Device;
use crate::error::Error;
use crate::stream::Stream;
use crate::types::aclrtEvent;
use core::sync::atomic::{AtomicBool, Ordering};

/// An event of a device: one stream records it, others wait for it.
///
/// Dropping it waits for the device if it was ever used.
///
/// ```no_run
/// use tilekern_acl::{Error, Event, Stream};
///
/// /// What follows in `second` begins when what is in `first` is done.
/// fn behind(first: &Stream<'_>, second: &Stream<'_>) -> Result<(), Error> {
///     let event = Event::new(first.device())?;
///     event.record(first)?;
///     second.wait(&event)
/// }
/// ```
#[derive(Debug)]
pub struct Event<'d> {
    device: &'d Device<'d>,
    raw: aclrtEvent,
    used: AtomicBool,
}

// SAFETY: an event is a handle of its context, which any thread may use.
unsafe impl Send for Event<'_> {}
// SAFETY: as above.
unsafe impl Sync for Event<'_> {}

impl<'d> Event<'d> {
    /// An event.
    pub fn new(device: &'d Device<'d>) -> Result<Event<'d>, Error> {
        let (table, mut raw) = (device.table(), core::ptr::null_mut());
        // Both, so that what is made can be given back.
        table.runtime.aclrtDestroyEvent.ok_or(Error::missing("aclrtDestroyEvent"))?;
        let create = table.runtime.aclrtCreateEvent.ok_or(Error::missing("aclrtCreateEvent"))?;
        device.enter()?;
        // SAFETY: `raw` is a place for it, and this thread has a context.
        Error::check(table, "aclrtCreateEvent", unsafe { create(&mut raw) })?;
        Ok(Event { device, raw, used: AtomicBool::new(false) })
    }

    /// A stream of another device, or of another library's, does not know the event, and dropping it would not wait for that one.
    fn expect_own(&self, stream: &Stream<'_>, function: &'static str) -> Result<(), Error> {
        if stream.device().place() == self.device.place() { Ok(()) } else { Err(Error::of_another_device(function)) }
    }

    /// Marks the place that `stream`, one of the event's device (else 107003), has come to.
    pub fn record(&self, stream: &Stream<'_>) -> Result<(), Error> {
        self.expect_own(stream, "aclrtRecordEvent")?;
        stream.device().enter()?;
        let record = self.device.table().runtime.aclrtRecordEvent.ok_or(Error::missing("aclrtRecordEvent"))?;
        self.used.store(true, Ordering::Relaxed);
        // SAFETY: both live, belong to one device of one library, and dropping the event waits.
        Error::check(self.device.table(), "aclrtRecordEvent", unsafe { record(self.raw, stream.raw()) })
    }

    pub(crate) fn wait_in(&self, stream: &Stream<'_>) -> Result<(), Error> {
        self.expect_own(stream, "aclrtStreamWaitEvent")?;
        stream.device().enter()?;
        let wait = self.device.table().runtime.aclrtStreamWaitEvent.ok_or(Error::missing("aclrtStreamWaitEvent"))?;
        self.used.store(true, Ordering::Relaxed);
        // SAFETY: both live, belong to one device of one library, and dropping the event waits.
        Error::check(self.device.table(), "aclrtStreamWaitEvent", unsafe { wait(stream.raw(), self.raw) })
    }

    /// This thread waits for what came before it.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.device.enter()?;
        let wait = self.device.table().runtime.aclrtSynchronizeEvent.ok_or(Error::missing("aclrtSynchronizeEvent"))?;
        // SAFETY: the event lives.
        Error::check(self.device.table(), "aclrtSynchronizeEvent", unsafe { wait(self.raw) })
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        if self.device.enter().is_err() {
            return;
        }
        if *self.used.get_mut() && !self.device.late.keep(self.device.synchronize()) {
            // Streams may still refer to it.
            return;
        }
        if let Some(destroy) = self.device.table().runtime.aclrtDestroyEvent {
            // SAFETY: made by `new`, and nothing refers to it.
            _ = unsafe { destroy(self.raw) };
        }
    }
}
