//! The two phases: the first validates and makes an executor, the second takes it and puts the work into a stream.

use crate::arguments::{Among, Arguments};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::memory::{self, Place, Span};
use crate::stream::{Stream, Task};
use crate::table::{Table, lock};
use std::sync::{Arc, Mutex, OnceLock};
use tilekern::{Backend, Host, Isa, Rayon, Run};
use tilekern_acl::{aclrtStream, codes};

/// Executors that were made, and neither run nor destroyed.
pub(crate) static EXECUTORS: Table<Executor> = Table::new();

/// What the host needs its workspace aligned to. Callers may cut theirs at any multiple of 32.
const ALIGN: usize = 64;

/// More would take longer to start than a program waits.
const MOST_THREADS: usize = 256;

/// Every stream's operators share one pool of threads; no result depends on it.
pub(crate) type Cpu = Host<&'static Rayon>;

/// What is asked of an operator: its workspace, or to run in one.
pub(crate) enum Job<'a> {
    Query(&'a mut usize),
    Run(&'a mut [u8]),
}

impl Job<'_> {
    /// Answers, by the host's operator.
    pub fn answer<C>(self, call: C) -> Result<(), Failure>
    where
        Cpu: Run<C> + for<'a> Backend<Scratch<'a> = &'a mut [u8]>,
    {
        let host = Host::with(Isa::detect(), pool()?)?;
        match self {
            Job::Query(bytes) => *bytes = host.workspace(&call)?.size(),
            Job::Run(scratch) => host.run(call, scratch)?,
        }
        Ok(())
    }
}

fn pool() -> Result<&'static Rayon, Failure> {
    static POOL: OnceLock<Result<Rayon, tilekern::Error>> = OnceLock::new();
    let threads = || std::env::var("TILEKERN_OPAPI_THREADS").ok().and_then(|text| text.parse().ok());
    let make = || {
        // Threads begin with the floating-point environment of the one that makes them.
        let _environment = Environment::enter();
        let threads: usize = threads().unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        Rayon::new(threads.min(MOST_THREADS))
    };
    POOL.get_or_init(make).as_ref().map_err(|error| (*error).into())
}

/// An operator with its attributes.
pub(crate) trait Operator: Send + Sync {
    /// Whether the second phase may run more than once.
    fn is_repeatable(&self) -> bool {
        true
    }

    /// Validates the arguments, and answers. What fails in a run is what tensors contain.
    fn answer(&self, arguments: &Arguments, job: Job<'_>) -> Result<(), Failure>;
}

/// A call between its phases.
pub(crate) struct Executor {
    name: &'static str,
    operator: Arc<dyn Operator>,
    workspace: usize,
    state: Mutex<State>,
}

struct State {
    arguments: Arguments,
    repeats: bool,
    /// Whether the second phase came: descriptors may be destroyed after it.
    ran: bool,
}

impl Executor {
    /// The operator's name.
    pub fn operator(&self) -> &'static str {
        self.name
    }

    /// The executor of a handle.
    pub fn of(handle: usize) -> Result<Arc<Executor>, Failure> {
        if handle == 0 {
            return Err(Failure::null("executor"));
        }
        EXECUTORS.get(handle).ok_or_else(gone)
    }

    /// From here on the second phase may run more than once.
    pub fn repeat(&self) -> Result<(), Failure> {
        if !self.operator.is_repeatable() {
            let message =
                format!("{} cannot be repeated: on the device it copies its results from tensors of its own", self.name);
            return Err(Failure::new(codes::ACLNN_ERR_INNER, message));
        }
        lock(&self.state).repeats = true;
        Ok(())
    }

    /// Another address for a tensor of a repeatable executor.
    pub fn set_address(
        &self,
        among: Among,
        place: [usize; 2],
        handle: usize,
        is_list: bool,
        address: usize,
    ) -> Result<(), Failure> {
        let mut state = lock(&self.state);
        if !state.repeats {
            return Err(Failure::invalid("executor: expected a repeatable one"));
        }
        state.arguments.set_address(among, place, handle, is_list, address)
    }
}

pub(crate) fn gone() -> Failure {
    Failure::new(codes::ACLNN_ERR_INNER, "executor: none that waits to be run: it was run or destroyed, or is another pointer")
}

/// Validates, and makes an executor: the workspace that it needs, and its handle.
pub(crate) fn phase_one(
    name: &'static str,
    mut arguments: Arguments,
    operator: impl Operator + 'static,
) -> Result<(u64, usize), Failure> {
    arguments.locate()?;
    let mut bytes = 0;
    operator.answer(&arguments, Job::Query(&mut bytes))?;
    let workspace = if bytes == 0 { 0 } else { bytes + ALIGN };
    let state = Mutex::new(State { arguments, repeats: false, ran: false });
    Ok((workspace as u64, EXECUTORS.insert(Executor { name, operator: Arc::new(operator), workspace, state })))
}

/// Takes the executor, unless it may run again, and puts the work into the stream.
pub(crate) fn phase_two(name: &str, [workspace, size]: [usize; 2], executor: usize, stream: aclrtStream) -> Result<(), Failure> {
    let call = Executor::of(executor)?;
    if call.name != name {
        let message = format!("executor: expected one of {name}, found one of {}", call.name);
        return Err(Failure::new(codes::ACLNN_ERR_INNER, message));
    }
    let (mut arguments, repeats, ran) = {
        let state = lock(&call.state);
        (state.arguments.clone(), state.repeats, state.ran)
    };
    if !repeats {
        EXECUTORS.remove(executor).ok_or_else(gone)?;
    }
    let stream = Stream::of(stream)?;
    if !ran {
        arguments.alive()?;
    }
    let mut spans = arguments.spans()?;
    if let Some(room) = room(workspace, size, call.workspace)? {
        if let Some(span) = spans.iter().find(|span| memory::meet(&span.bytes, &room.bytes)) {
            return Err(Failure::invalid(format!("workspace: expected memory of its own, found that of {}", span.name)));
        }
        spans.push(room);
    }
    // Once more, now that every address is known: tensors must not overlap.
    arguments.locate()?;
    call.operator.answer(&arguments, Job::Query(&mut 0))?;
    let (name, operator, needed) = (call.name, Arc::clone(&call.operator), call.workspace);
    let work = move || {
        let first = workspace.next_multiple_of(ALIGN);
        let scratch: &mut [u8] = match needed {
            0 => &mut [],
            // SAFETY: the workspace is claimed by this work, and has room for `needed` less what aligning takes.
            _ => unsafe { core::slice::from_raw_parts_mut(first as *mut u8, needed - ALIGN) },
        };
        operator.answer(&arguments, Job::Run(scratch)).map_err(|failure| format!("{name}: {}", failure.message))
    };
    stream.submit(Task::Work(Box::new(work)), spans)?;
    lock(&call.state).ran = true;
    Ok(())
}

/// The caller's workspace, which must have the bytes that the first phase asked for.
fn room(workspace: usize, size: usize, needed: usize) -> Result<Option<Span>, Failure> {
    if needed == 0 {
        return Ok(None);
    }
    if workspace == 0 {
        return Err(Failure::null("workspace"));
    }
    if size < needed {
        return Err(Failure::invalid(format!("workspaceSize: expected at least {needed}, found {size}")));
    }
    let end = workspace.checked_add(needed).ok_or_else(|| Failure::invalid("workspace: a size beyond memory"))?;
    let span = Span { name: "workspace", bytes: workspace..end, place: Place::Device, writes: true };
    memory::check(&span).map_err(Failure::invalid)?;
    Ok(Some(span))
}
