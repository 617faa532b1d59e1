//! Events.

use crate::boundary::{null_parameter, put, runtime};
use crate::context::Context;
use crate::environment::Environment;
use crate::event::{EVENTS, Event, unknown};
use crate::failure::Failure;
use crate::stream::{Stream, Task};
use tilekern_acl::{ACL_EVENT_RECORDED_STATUS_COMPLETE, ACL_EVENT_RECORDED_STATUS_NOT_READY};
use tilekern_acl::{aclError, aclrtEvent, aclrtEventRecordedStatus, aclrtStream};

/// An event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateEvent(event: *mut aclrtEvent) -> aclError {
    // SAFETY: as promised by the caller.
    runtime("aclrtCreateEvent", || unsafe { create(event) })
}

/// The same; every event can do all that the flags ask for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateEventWithFlag(event: *mut aclrtEvent, flag: u32) -> aclError {
    let _ = flag;
    // SAFETY: as promised by the caller.
    runtime("aclrtCreateEventWithFlag", || unsafe { create(event) })
}

/// # Safety
///
/// `event` is null, or can be written.
unsafe fn create(event: *mut aclrtEvent) -> Result<(), Failure> {
    Context::current()?;
    if event.is_null() {
        return Err(null_parameter("event")());
    }
    let created = EVENTS.insert(Event::default()) as aclrtEvent;
    // SAFETY: as promised by the caller.
    unsafe { put(event, null_parameter("event"), created) }
}

/// The end of an event; streams that wait for it still do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtDestroyEvent(event: aclrtEvent) -> aclError {
    runtime("aclrtDestroyEvent", || EVENTS.remove(event as usize).map(|_| ()).ok_or_else(unknown))
}

/// The event comes to pass when the stream gets here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtRecordEvent(event: aclrtEvent, stream: aclrtStream) -> aclError {
    runtime("aclrtRecordEvent", || {
        let (event, stream) = (Event::of(event)?, Stream::of(stream)?);
        event.record(&stream)
    })
}

/// The stream waits here for the event's last recording, if it has one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtStreamWaitEvent(stream: aclrtStream, event: aclrtEvent) -> aclError {
    runtime("aclrtStreamWaitEvent", || {
        let (event, stream) = (Event::of(event)?, Stream::of(stream)?);
        if let Some(recording) = event.recording() {
            stream.submit(Task::Wait(recording), Vec::new())?;
        }
        Ok(())
    })
}

/// This thread waits for the event; what failed before it in its stream is reported here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSynchronizeEvent(event: aclrtEvent) -> aclError {
    runtime("aclrtSynchronizeEvent", || {
        Context::current()?;
        let unrecorded = || Failure::parameter("the event was never recorded");
        let recording = Event::of(event)?.recording().ok_or_else(unrecorded)?;
        recording.wait();
        recording.stream.upgrade().map_or(Ok(()), |stream| stream.synchronise(recording.sequence, None))
    })
}

/// Whether the event has come to pass; if so, what stands before it counts as waited for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtQueryEventStatus(event: aclrtEvent, status: *mut aclrtEventRecordedStatus) -> aclError {
    runtime("aclrtQueryEventStatus", || {
        Context::current()?;
        let done = Event::of(event)?.recording().filter(|recording| recording.time().is_some());
        let found = if done.is_some() { ACL_EVENT_RECORDED_STATUS_COMPLETE } else { ACL_EVENT_RECORDED_STATUS_NOT_READY };
        if let Some(recording) = done
            && let Some(stream) = recording.stream.upgrade()
        {
            stream.retire(recording.sequence);
        }
        // SAFETY: as promised by the caller.
        unsafe { put(status, null_parameter("status"), found) }
    })
}

/// Milliseconds from one event to another.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtEventElapsedTime(ms: *mut f32, startEvent: aclrtEvent, endEvent: aclrtEvent) -> aclError {
    runtime("aclrtEventElapsedTime", || {
        Context::current()?;
        let (start, end) = (Event::of(startEvent)?.time()?, Event::of(endEvent)?.time()?);
        // A program may have exceptions unmasked.
        let _environment = Environment::enter();
        let seconds = match end.checked_duration_since(start) {
            Some(after) => after.as_secs_f64(),
            None => -start.duration_since(end).as_secs_f64(),
        };
        // SAFETY: as promised by the caller.
        unsafe { put(ms, null_parameter("ms"), (seconds * 1e3) as f32) }
    })
}
