//! A queue of work.

use crate::device::Device;
use crate::error::Error;
use crate::event::Event;
use crate::late::Late;
use crate::types::aclrtStream;

/// A stream of a device. Work in it runs in the order in which it was enqueued; threads that share it see to that order themselves.
/// Streams are not ordered among each other: what one writes and another uses needs an [`Event`] or a synchronise in between.
///
/// Dropping it waits for its work; a failure that it meets is reported by the next synchronise of a stream of the device. Where waiting is
/// impossible it is not destroyed.
#[derive(Debug)]
pub struct Stream<'d> {
    device: &'d Device<'d>,
    raw: aclrtStream,
    pub(crate) late: Late,
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
        Ok(Stream { device, raw, late: Late::new() })
    }

    /// Waits for everything in it. What failed since the last time is reported here, also where something was dropped meanwhile, which
    /// waited for the failure and had nobody to tell.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.wait_for_all()?;
        self.late.report()?;
        self.device.late.report()
    }

    /// Waits for everything in it, and reports what failed in this wait.
    pub(crate) fn wait_for_all(&self) -> Result<(), Error> {
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
        let late = &self.device.late;
        // What drops left with the stream came before.
        late.keep(self.late.report());
        if late.keep(self.wait_for_all()) {
            // SAFETY: made by `new`, and nothing borrows it any more.
            _ = unsafe { (self.device.table().runtime.aclrtDestroyStream)(self.raw) };
        }
    }
}
