//! A CANN that computes nothing: it records what is called, keeps account of what lives, and fails where it is told to. Each test
//! thread has its own.

mod operators;
mod runtime;

use std::cell::RefCell;
use std::collections::BTreeMap;
use tilekern::acl::aclTensor;

pub use operators::{changed, custom, table};

/// What a call answers instead of success.
pub type Failure = Box<dyn FnMut(&'static str) -> Option<i32>>;

/// The account of one thread.
#[derive(Default)]
struct Recorder {
    log: Option<Vec<String>>,
    /// Kind and number of what lives, by handle.
    live: BTreeMap<usize, (&'static str, usize)>,
    /// Descriptions, for the log.
    shown: BTreeMap<usize, String>,
    sizes: BTreeMap<usize, usize>,
    made: BTreeMap<&'static str, usize>,
    failure: Option<Failure>,
    workspace: u64,
    /// Of this thread, and of each stream.
    context: usize,
    homes: BTreeMap<usize, usize>,
    next: usize,
}

thread_local! {
    static RECORDER: RefCell<Recorder> = RefCell::default();
}

fn with<R>(body: impl FnOnce(&mut Recorder) -> R) -> R {
    RECORDER.with(|recorder| body(&mut recorder.borrow_mut()))
}

/// Forgets everything; phase one answers that many bytes.
pub fn reset(workspace: u64) {
    with(|r| *r = Recorder { workspace, log: Some(Vec::new()), next: 0x1000, ..Recorder::default() });
}

/// Keeps the account alone.
pub fn quiet() {
    with(|r| r.log = None);
}

/// What the next calls answer.
pub fn fail(failure: impl FnMut(&'static str) -> Option<i32> + 'static) {
    with(|r| r.failure = Some(Box::new(failure)));
}

/// The `n`th call of that name from here on fails.
pub fn fail_once(name: &'static str, mut n: usize, code: i32) {
    fail(move |called| {
        n -= usize::from(called == name && n > 0);
        (called == name && n == 0).then(|| {
            n = usize::MAX;
            code
        })
    });
}

/// Nothing fails any more.
pub fn succeed() {
    with(|r| r.failure = None);
}

/// What was called since.
pub fn log() -> Vec<String> {
    with(|r| r.log.replace(Vec::new()).unwrap_or_default())
}

/// How many of each kind live.
pub fn live() -> BTreeMap<&'static str, usize> {
    with(|r| {
        r.live.values().fold(BTreeMap::new(), |mut counts, (kind, _)| {
            *counts.entry(*kind).or_default() += 1;
            counts
        })
    })
}

/// How many of that kind were ever made.
pub fn made(kind: &'static str) -> usize {
    with(|r| r.made.get(kind).copied().unwrap_or(0))
}

impl Recorder {
    fn say(&mut self, text: impl FnOnce(&Recorder) -> String) {
        let text = self.log.is_some().then(|| text(self));
        if let (Some(log), Some(text)) = (&mut self.log, text) {
            log.push(text);
        }
    }

    fn failure(&mut self, name: &'static str) -> Option<i32> {
        let failure = self.failure.as_mut()?;
        failure(name)
    }

    fn make(&mut self, kind: &'static str, handle: usize) -> usize {
        let number = self.made.entry(kind).or_default();
        *number += 1;
        assert!(self.live.insert(handle, (kind, *number)).is_none());
        *number
    }

    /// A handle that is no address.
    fn handle(&mut self, kind: &'static str) -> usize {
        self.next += 0x100;
        let handle = self.next;
        self.make(kind, handle);
        handle
    }

    fn end(&mut self, kind: &'static str, handle: usize) {
        let ended = self.live.remove(&handle);
        assert_eq!(ended.map(|(kind, _)| kind), Some(kind), "{kind} {handle:#x} does not live");
        self.shown.remove(&handle);
    }

    fn expect(&self, kind: &'static str, handle: usize) {
        assert_eq!(self.live.get(&handle).map(|(kind, _)| *kind), Some(kind), "{handle:#x} is no {kind}");
    }

    /// A stream that lives, of the context that is current.
    fn expect_stream(&self, stream: usize) {
        self.expect("stream", stream);
        assert_eq!(self.homes[&stream], self.context, "a stream of another context");
    }

    /// A place in memory: which allocation, which byte.
    fn place(&self, address: usize) -> String {
        let found = self.sizes.range(..=address).next_back().filter(|(start, size)| address < *start + **size);
        match found {
            _ if address == 0 => "null".into(),
            Some((start, _)) => format!("m{}+{}", self.live[start].1, address - start),
            None => format!("{address:#x}"),
        }
    }

    fn shown(&self, tensor: *const aclTensor) -> String {
        if tensor.is_null() { "-".into() } else { self.shown[&(tensor as usize)].clone() }
    }
}

/// Answers through a place of the caller's.
fn answer<T>(place: *mut T, value: T) {
    // SAFETY: a place of the caller of ACL.
    unsafe { *place = value };
}

/// A call without more to it: its name in the log, and whether it fails.
fn simple(name: &'static str) -> i32 {
    with(|r| {
        r.say(|_| name.into());
        r.failure(name).unwrap_or(0)
    })
}
