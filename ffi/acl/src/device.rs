//! A device of this process.

use crate::codes;
use crate::error::Error;
use crate::late::Late;
use crate::table::Table;
use crate::types::aclrtContext;
use core::sync::atomic::{AtomicUsize, Ordering};

/// A device. Streams, buffers and events borrow it, so it is given back after them.
///
/// Threads work in a context of their own choice: what needs one takes the device's default context first, and
/// [`enter`](Self::enter) does so for calls of ACL that come from elsewhere. A thread that never did gets 107002 from them.
///
/// ```no_run
/// use tilekern_acl::{Buffer, Device, Error, Stream, Table};
///
/// fn twice(table: &Table) -> Result<(), Error> {
///     let device = Device::open(table, 0)?;
///     std::thread::scope(|scope| {
///         let threads = [0, 1].map(|n| {
///             let device = &device;
///             scope.spawn(move || {
///                 let stream = Stream::new(device)?;
///                 Buffer::from_slice(&stream, &[n; 100]).map(|_| ())
///             })
///         });
///         threads.into_iter().try_for_each(|thread| thread.join().unwrap())
///     })
/// }
/// ```
#[derive(Debug)]
pub struct Device<'t> {
    table: &'t Table,
    id: i32,
    /// Null where the runtime cannot say.
    context: aclrtContext,
    /// How often it was taken; each time is given back.
    taken: AtomicUsize,
    /// Of streams that are not known, or no more.
    pub(crate) late: Late,
}

/// Which device, and of which library: its number alone does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    table: usize,
    id: i32,
}

// SAFETY: a device's default context belongs to the process; each thread makes it current for itself.
unsafe impl Send for Device<'_> {}
// SAFETY: as above.
unsafe impl Sync for Device<'_> {}

impl<'t> Device<'t> {
    /// How many devices there are. None where the runtime cannot say: in a container that was given none, or where it wants a
    /// device to be open first.
    pub fn count(table: &Table) -> u32 {
        let mut count = 0;
        // SAFETY: `count` is a place for the number.
        let code = table.runtime.aclrtGetDeviceCount.map(|get| unsafe { get(&mut count) });
        if code == Some(codes::ACL_SUCCESS) { count } else { 0 }
    }

    /// Starts ACL, unless somebody did, and takes device `id` for this thread. ACL is never ended: its libraries cannot be trusted
    /// with it while a process exits.
    pub fn open(table: &'t Table, id: i32) -> Result<Device<'t>, Error> {
        let runtime = &table.runtime;
        // SAFETY: null stands for the defaults.
        let begun = unsafe { (runtime.aclInit)(core::ptr::null()) };
        if begun != codes::ACL_ERROR_REPEAT_INITIALIZE {
            Error::check(table, "aclInit", begun)?;
        }
        // SAFETY: ACL is started.
        Error::check(table, "aclrtSetDevice", unsafe { (runtime.aclrtSetDevice)(id) })?;
        let mut device = Device { table, id, context: core::ptr::null_mut(), taken: AtomicUsize::new(1), late: Late::new() };
        if let (Some(get), Some(_)) = (runtime.aclrtGetCurrentContext, runtime.aclrtSetCurrentContext) {
            // SAFETY: `context` is a place for it. The device is given back where this fails.
            Error::check(table, "aclrtGetCurrentContext", unsafe { get(&mut device.context) })?;
        }
        Ok(device)
    }

    /// Lets this thread work on the device.
    pub fn enter(&self) -> Result<(), Error> {
        match self.table.runtime.aclrtSetCurrentContext {
            Some(set) if !self.context.is_null() => {
                // SAFETY: the default context stays as long as the device is held.
                Error::check(self.table, "aclrtSetCurrentContext", unsafe { set(self.context) })
            }
            _ => {
                // SAFETY: ACL is started.
                Error::check(self.table, "aclrtSetDevice", unsafe { (self.table.runtime.aclrtSetDevice)(self.id) })?;
                self.taken.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Its functions.
    pub fn table(&self) -> &'t Table {
        self.table
    }

    /// Its number.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// What memory and events of the same device have in common.
    pub fn place(&self) -> Place {
        Place { table: core::ptr::from_ref(self.table).addr(), id: self.id }
    }

    /// Waits for everything on the device.
    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        let wait = self.table.runtime.aclrtSynchronizeDevice.ok_or(Error::missing("aclrtSynchronizeDevice"))?;
        // SAFETY: a call without arguments, on a thread that has entered.
        Error::check(self.table, "aclrtSynchronizeDevice", unsafe { wait() })
    }
}

impl Drop for Device<'_> {
    fn drop(&mut self) {
        for _ in 0..*self.taken.get_mut() {
            // SAFETY: the counterpart of `open` or `enter`; whatever borrowed the device is gone.
            _ = unsafe { (self.table.runtime.aclrtResetDevice)(self.id) };
        }
    }
}
