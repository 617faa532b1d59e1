//! A queue of work.

use crate::device::Device;
use crate::error::Error;
use crate::event::Event;
use crate::types::aclrtStream;

/// A stream of a device. Work in it runs in the order in which it was enqueued; threads that share it see to that order themselves.
/// Streams are not ordered among each other: what one writes and another uses needs an [`Event`] or a synchronise in between.
///
/// Dropping it waits for its work.
#[derive(Debug)]
pub struct Stream<'d> {
    device: &'d Device<'d>,
    raw: aclrtStream,
}

// SAFETY: a stream is a handle of its context; any thread that works in that context may use it.
unsafe impl Send for Stream<'_> {}
// SAFETY: as above; the runtime takes work of several threads, in whichever order it comes.
unsafe impl Sync for Stream<'_> {}

impl<'d> Stream<'d> {
    /// A stream.
    pub fn new(device: &'d Device<'d>) -> Result<Stream<'d>, Error> {
        device.enter()?;
        let mut raw = core::ptr::null_mut();
        // SAFETY: `raw` is a place for it, and this thread has a context.
        Error::check(device.table(), "aclrtCreateStream", unsafe { (device.table().runtime.aclrtCreateStream)(&mut raw) })?;
        Ok(Stream { device, raw })
    }

    /// Waits for everything in it. What failed in between is reported here.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.device.enter()?;
        // SAFETY: the stream lives.
        let code = unsafe { (self.device.table().runtime.aclrtSynchronizeStream)(self.raw) };
        Error::check(self.device.table(), "aclrtSynchronizeStream", code)
    }

    /// What follows in it waits for what came before `event` in the stream that recorded it.
    pub fn wait(&self, event: &Event<'_>) -> Result<(), Error> {
        event.wait_in(self)
    }

    /// Its device.
    pub fn device(&self) -> &'d Device<'d> {
        self.device
    }

    /// The handle.
    pub fn raw(&self) -> aclrtStream {
        self.raw
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        _ = self.synchronize();
        // SAFETY: made by `new`, and nothing borrows it any more.
        _ = unsafe { (self.device.table().runtime.aclrtDestroyStream)(self.raw) };
    }
}
