//! Copies and fills: what they touch is looked up first, then moved by the caller or by a stream's thread.

use crate::failure::Failure;
use crate::memory::{self, Held, Place, Span};
use crate::stream::{Stream, Task};
use std::sync::Arc;
use tilekern_acl::*;

/// `count` bytes at each of `rows` places, from one address to another.
#[derive(Clone, Copy)]
pub(crate) struct Transfer {
    pub to: usize,
    pub from: usize,
    pub to_pitch: usize,
    pub from_pitch: usize,
    pub count: usize,
    pub rows: usize,
}

impl Transfer {
    /// One row.
    pub fn row(to: usize, from: usize, count: usize) -> Transfer {
        Transfer { to, from, to_pitch: count, from_pitch: count, count, rows: 1 }
    }

    /// # Safety
    ///
    /// The bytes can be read, or written, and nobody else writes them meanwhile.
    unsafe fn perform(self) {
        for i in 0..self.rows {
            let (to, from) = (self.to + i * self.to_pitch, self.from + i * self.from_pitch);
            // SAFETY: as promised by the caller; `copy` allows an overlap.
            unsafe { core::ptr::copy(from as *const u8, to as *mut u8, self.count) };
        }
    }

    /// Both sides, of which the program's own memory is not looked up; and whether there is such memory.
    fn spans(&self, kind: aclrtMemcpyKind) -> Result<(Vec<Span>, bool), Failure> {
        let places = match kind {
            ACL_MEMCPY_HOST_TO_HOST => [Some(Place::Host), Some(Place::Host)],
            ACL_MEMCPY_HOST_TO_DEVICE | ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE => [Some(Place::Device), Some(Place::Host)],
            ACL_MEMCPY_DEVICE_TO_HOST => [Some(Place::Host), Some(Place::Device)],
            ACL_MEMCPY_DEFAULT => [None, None],
            ACL_MEMCPY_DEVICE_TO_DEVICE | ACL_MEMCPY_INNER_DEVICE_TO_DEVICE | ACL_MEMCPY_INTER_DEVICE_TO_DEVICE => {
                [Some(Place::Device), Some(Place::Device)]
            }
            aclrtMemcpyKind(other) => return Err(Failure::parameter(format!("kind: expected 0 to 7, found {other}"))),
        };
        let sides = [("dst", self.to, self.to_pitch, true), ("src", self.from, self.from_pitch, false)];
        let (mut spans, mut own) = (Vec::new(), false);
        for ((name, start, pitch, writes), expected) in sides.into_iter().zip(places) {
            let reach = (self.rows - 1).checked_mul(pitch).and_then(|n| n.checked_add(self.count));
            let end = reach.filter(|&n| n <= isize::MAX as usize).and_then(|n| start.checked_add(n));
            let bytes = start..end.ok_or_else(|| Failure::parameter(format!("{name}: a size beyond memory")))?;
            let found = memory::place(start);
            match (expected.or(found), found) {
                (None | Some(Place::Host), None) => own = true,
                (Some(place), _) => spans.push(Span { name, bytes, place, writes }),
                (None, Some(_)) => unreachable!("what was found is expected"),
            }
        }
        Ok((spans, own))
    }

    /// On the calling thread, at once.
    ///
    /// # Safety
    ///
    /// What is no memory of ours can be read, or written, for the time of the call.
    pub unsafe fn now(self, kind: aclrtMemcpyKind) -> Result<(), Failure> {
        let (spans, _) = self.spans(kind)?;
        let _held = Held::new(spans)?;
        // SAFETY: our own memory is inside live buffers that stay until `_held` is dropped; the rest is as promised by the caller.
        unsafe { self.perform() };
        Ok(())
    }

    /// In the stream. Where the program's own memory takes part the caller waits: it may be gone when the call returns.
    ///
    /// # Safety
    ///
    /// What is no memory of ours can be read, or written, for the time of the call.
    pub unsafe fn in_stream(self, kind: aclrtMemcpyKind, stream: &Arc<Stream>) -> Result<(), Failure> {
        let (spans, own) = self.spans(kind)?;
        let work = move || {
            // SAFETY: our own memory is claimed by this work, in whose order others use it; the rest is there until the work is done.
            unsafe { self.perform() };
            Ok(())
        };
        let sequence = stream.submit(Task::Work(Box::new(work)), spans)?;
        if own { stream.finish(sequence, None) } else { Ok(()) }
    }
}

/// `count` bytes of one value.
pub(crate) struct Fill {
    pub to: usize,
    pub value: u8,
    pub count: usize,
}

impl Fill {
    fn spans(&self) -> Result<Vec<Span>, Failure> {
        let end = self.to.checked_add(self.count).ok_or_else(|| Failure::parameter("devPtr: a size beyond memory"))?;
        // Memory of aclrtMallocHost may be filled too.
        let place = memory::place(self.to).unwrap_or(Place::Device);
        Ok(vec![Span { name: "devPtr", bytes: self.to..end, place, writes: true }])
    }

    /// # Safety
    ///
    /// The bytes can be written, and nobody else uses them meanwhile.
    unsafe fn perform(&self) {
        // SAFETY: as promised by the caller.
        unsafe { core::ptr::write_bytes(self.to as *mut u8, self.value, self.count) };
    }

    /// On the calling thread, at once.
    pub fn now(self) -> Result<(), Failure> {
        let _held = Held::new(self.spans()?)?;
        // SAFETY: the bytes are inside a live buffer that stays until `_held` is dropped, and no work uses them.
        unsafe { self.perform() };
        Ok(())
    }

    /// In the stream.
    pub fn in_stream(self, stream: &Arc<Stream>) -> Result<(), Failure> {
        let spans = self.spans()?;
        let work = move || {
            // SAFETY: the bytes are claimed by this work, in whose order others use them.
            unsafe { self.perform() };
            Ok(())
        };
        stream.submit(Task::Work(Box::new(work)), spans).map(|_| ())
    }
}
