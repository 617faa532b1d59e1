//! Contexts, and the one device. A thread has none until it sets the device or a context.

use crate::failure::Failure;
use crate::stream::{STREAMS, Stream};
use crate::table::{Table, fresh, lock};
use core::cell::Cell;
use std::sync::{Arc, Mutex, OnceLock};
use tilekern_acl::{aclrtContext, codes};

/// How many devices there are.
pub(crate) const DEVICES: i32 = 1;

/// The live contexts, the default one included.
static CONTEXTS: Table<Context> = Table::new();

/// The default context, and how often it was set more than reset.
static DEFAULT: Mutex<Option<(usize, u64)>> = Mutex::new(None);

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// What streams belong to.
pub(crate) struct Context {
    handle: usize,
    is_default: bool,
    stream: OnceLock<Arc<Stream>>,
}

impl Context {
    fn insert(is_default: bool) -> usize {
        CONTEXTS.insert_with(|handle| Context { handle, is_default, stream: OnceLock::new() })
    }

    /// The thread's own.
    pub fn current() -> Result<Arc<Context>, Failure> {
        let none = || Failure::new(codes::ACL_ERROR_RT_CONTEXT_NULL, "this thread has no context: call aclrtSetDevice");
        CONTEXTS.get(CURRENT.get()).ok_or_else(none)
    }

    pub fn handle(&self) -> usize {
        self.handle
    }

    /// The stream that null stands for.
    pub fn default_stream(&self) -> Arc<Stream> {
        Arc::clone(self.stream.get_or_init(|| Arc::new(Stream::new(fresh(), self.handle))))
    }

    /// With its default stream, which takes no work from here on, whoever still holds the context.
    fn close(&self) {
        self.default_stream().close(true);
    }
}

fn device(id: i32) -> Result<(), Failure> {
    let none = || Failure::new(codes::ACL_ERROR_RT_INVALID_DEVICEID, format!("no device {id}, there is {DEVICES}"));
    (0..DEVICES).contains(&id).then_some(()).ok_or_else(none)
}

/// This thread works in the default context of the device.
pub(crate) fn set_device(id: i32) -> Result<(), Failure> {
    device(id)?;
    let mut default = lock(&DEFAULT);
    let (handle, count) = default.get_or_insert_with(|| (Context::insert(true), 0));
    *count += 1;
    CURRENT.set(*handle);
    Ok(())
}

/// The counterpart of `set_device`: the last one ends the default context.
pub(crate) fn reset_device(id: i32, force: bool) -> Result<(), Failure> {
    device(id)?;
    let mut default = lock(&DEFAULT);
    let Some((handle, count)) = &mut *default else {
        return Err(Failure::new(codes::ACL_ERROR_RT_CONTEXT_NULL, "the device is not set"));
    };
    *count -= 1;
    if force || *count == 0 {
        let context = CONTEXTS.remove(*handle);
        *default = None;
        drop(default);
        if let Some(context) = context {
            context.close();
        }
    }
    Ok(())
}

/// A context beside the default one; the thread's from here on.
pub(crate) fn create(id: i32) -> Result<usize, Failure> {
    device(id)?;
    let handle = Context::insert(false);
    CURRENT.set(handle);
    Ok(handle)
}

/// The end of a context that was created.
pub(crate) fn destroy(handle: aclrtContext) -> Result<(), Failure> {
    let keep = |context: &Context| match context.is_default {
        true => Err(Failure::parameter("a default context ends with aclrtResetDevice")),
        false => Ok(()),
    };
    CONTEXTS.remove_if(handle as usize, keep)?.ok_or_else(unknown)?.close();
    Ok(())
}

/// This thread works in that context.
pub(crate) fn set_current(handle: aclrtContext) -> Result<(), Failure> {
    CURRENT.set(CONTEXTS.get(handle as usize).ok_or_else(unknown)?.handle);
    Ok(())
}

/// Every stream of the device.
pub(crate) fn streams() -> Vec<Arc<Stream>> {
    let defaults = CONTEXTS.all().into_iter().filter_map(|context| context.stream.get().cloned());
    STREAMS.all().into_iter().chain(defaults).collect()
}

/// Contexts that were created and not destroyed.
pub(crate) fn count() -> usize {
    CONTEXTS.all().iter().filter(|context| !context.is_default).count()
}

fn unknown() -> Failure {
    Failure::new(codes::ACL_ERROR_RT_INVALID_HANDLE, "no live context: destroyed, or another pointer")
}
