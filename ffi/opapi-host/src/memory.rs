//! What `aclrtMalloc` and `aclrtMallocHost` gave, and which parts of it work still uses that no synchronise has waited for.
//!
//! Nothing of it is read, written or freed by address alone: bounds are looked up first, and memory in use stays.

use crate::failure::Failure;
use crate::table::{fresh, lock};
use core::ops::Range;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use tilekern_acl::codes;

/// Of every buffer: a cache line, and what kernels are promised.
const ALIGN: usize = 64;
/// Behind every buffer, as on the device: kernels may read ahead.
const SLACK: usize = 32;

/// Where memory counts as being.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Device,
    Host,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Place::Device => "device memory",
            Place::Host => "memory of aclrtMallocHost",
        }
    }
}

/// Bytes that a piece of work reads or writes.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub name: &'static str,
    pub bytes: Range<usize>,
    pub place: Place,
    pub writes: bool,
}

struct Buffer {
    size: usize,
    place: Place,
}

/// The spans of one piece of work of an owner.
struct Use {
    sequence: u64,
    spans: Vec<Span>,
}

struct Memory {
    buffers: BTreeMap<usize, Buffer>,
    uses: BTreeMap<usize, VecDeque<Use>>,
}

static MEMORY: Mutex<Memory> = Mutex::new(Memory { buffers: BTreeMap::new(), uses: BTreeMap::new() });

impl Memory {
    /// The buffer around an address.
    fn around(&self, address: usize) -> Option<(Range<usize>, Place)> {
        let (&start, buffer) = self.buffers.range(..=address).next_back()?;
        (address < start + buffer.size).then_some((start..start + buffer.size, buffer.place))
    }

    /// Why the span is not inside one live buffer of its place.
    fn refuses(&self, span: &Span) -> Option<String> {
        let Span { name, bytes, place, .. } = span;
        let whole = match self.around(bytes.start) {
            Some((whole, found)) if found == *place => whole,
            _ => {
                return Some(format!(
                    "{name}: expected {}, found {:#x}: freed, or never allocated as such",
                    place.name(),
                    bytes.start
                ));
            }
        };
        let room = whole.end - bytes.start;
        (bytes.end > whole.end)
            .then(|| format!("{name}: {} bytes reach beyond their buffer, which has {room} from there", bytes.len()))
    }

    fn used(&self) -> impl Iterator<Item = &Span> {
        self.uses.values().flatten().flat_map(|work| &work.spans)
    }

    fn claim(&mut self, owner: usize, sequence: u64, spans: Vec<Span>) -> Result<(), String> {
        match spans.iter().find_map(|span| self.refuses(span)) {
            Some(reason) => Err(reason),
            None => {
                self.uses.entry(owner).or_default().push_back(Use { sequence, spans });
                Ok(())
            }
        }
    }
}

fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(SLACK)?.checked_next_multiple_of(SLACK)?, ALIGN).ok()
}

/// A new buffer, of zeros: what is read before it was written is then at least a value.
pub(crate) fn allocate(size: usize, place: Place) -> Result<usize, Failure> {
    if size == 0 {
        return Err(Failure::new(codes::ACL_ERROR_INVALID_PARAM, "a size of 0"));
    }
    let none = || Failure::new(codes::ACL_ERROR_RT_MEMORY_ALLOCATION, format!("{size} bytes are not to be had"));
    // SAFETY: the layout is not empty.
    let start = unsafe { alloc_zeroed(layout(size).ok_or_else(none)?) } as usize;
    if start == 0 {
        return Err(none());
    }
    lock(&MEMORY).buffers.insert(start, Buffer { size, place });
    Ok(start)
}

/// The end of a buffer that nothing uses any more.
pub(crate) fn free(start: usize, place: Place) -> Result<(), Failure> {
    let mut memory = lock(&MEMORY);
    let size = match memory.buffers.get(&start) {
        Some(buffer) if buffer.place == place => buffer.size,
        _ => return Err(Failure::parameter(format!("{start:#x} is no live {}: freed before, or another pointer", place.name()))),
    };
    if let Some(span) = memory.used().find(|span| meet(&span.bytes, &(start..start + size))) {
        let message = format!("the buffer at {start:#x} is still used ({}): synchronise the stream first", span.name);
        return Err(Failure::new(codes::ACL_ERROR_RT_MEMORY_FREE, message));
    }
    memory.buffers.remove(&start);
    drop(memory);
    if let Some(layout) = layout(size) {
        // SAFETY: `start` came from `allocate` with this layout, and was just taken out, so nobody else frees it.
        unsafe { dealloc(start as *mut u8, layout) };
    }
    Ok(())
}

/// Whether two ranges have bytes in common.
pub(crate) fn meet(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start.max(b.start) < a.end.min(b.end)
}

/// Live buffers.
pub(crate) fn count() -> usize {
    lock(&MEMORY).buffers.len()
}

/// Their sizes.
pub(crate) fn sizes() -> Vec<usize> {
    lock(&MEMORY).buffers.values().map(|buffer| buffer.size).collect()
}

/// Where an address is; `None` for memory that is the program's own.
pub(crate) fn place(address: usize) -> Option<Place> {
    lock(&MEMORY).around(address).map(|(_, place)| place)
}

/// Whether a span lies in a live buffer of its place.
pub(crate) fn is_inside(span: &Span) -> bool {
    check(span).is_ok()
}

/// The same, or why not.
pub(crate) fn check(span: &Span) -> Result<(), String> {
    lock(&MEMORY).refuses(span).map_or(Ok(()), Err)
}

/// Marks spans as used by work number `sequence` of an owner, until it is released; or says which of them cannot be.
pub(crate) fn claim(owner: usize, sequence: u64, spans: Vec<Span>) -> Result<(), String> {
    lock(&MEMORY).claim(owner, sequence, spans)
}

/// The owner's work up to that number, included, uses nothing any more.
pub(crate) fn release(owner: usize, sequence: u64) {
    let mut memory = lock(&MEMORY);
    if let Some(uses) = memory.uses.get_mut(&owner) {
        while uses.front().is_some_and(|work| work.sequence <= sequence) {
            uses.pop_front();
        }
        if uses.is_empty() {
            memory.uses.remove(&owner);
        }
    }
}

/// Bytes that the calling thread reads or writes itself, until dropped.
pub(crate) struct Held(usize);

impl Held {
    /// Not while work on a stream uses them, unless both only read.
    pub fn new(spans: Vec<Span>) -> Result<Held, Failure> {
        let mut memory = lock(&MEMORY);
        let clash = |span: &Span| memory.used().find(|used| (used.writes || span.writes) && meet(&used.bytes, &span.bytes));
        if let Some(used) = spans.iter().find_map(clash) {
            let message = format!("these bytes are still used ({}): synchronise the stream first", used.name);
            return Err(Failure::parameter(message));
        }
        let owner = fresh();
        memory.claim(owner, 0, spans).map_err(Failure::parameter)?;
        Ok(Held(owner))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        release(self.0, 0);
    }
}
