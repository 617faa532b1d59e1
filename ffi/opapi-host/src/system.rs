//! What is the process's own: how often ACL was begun, what is alive, and how much memory the machine has.

use crate::descriptor::{BOOL_ARRAYS, FLOAT_ARRAYS, INT_ARRAYS, SCALAR_LISTS, SCALARS, TENSOR_LISTS, TENSORS};
use crate::event::EVENTS;
use crate::executor::EXECUTORS;
use crate::failure::Failure;
use crate::stream::STREAMS;
use crate::table::lock;
use crate::{context, memory};
use std::collections::BTreeMap;
use std::sync::Mutex;
use tilekern_acl::codes;

/// What `tk_opapi_live` counts: tensors, scalars, arrays and lists.
pub const TK_OPAPI_DESCRIPTORS: i32 = 0;
/// What `tk_opapi_live` counts: executors that were neither run nor destroyed, and repeatable ones.
pub const TK_OPAPI_EXECUTORS: i32 = 1;
/// What `tk_opapi_live` counts: memory of the device and of aclrtMallocHost.
pub const TK_OPAPI_BUFFERS: i32 = 2;
/// What `tk_opapi_live` counts: streams that were created.
pub const TK_OPAPI_STREAMS: i32 = 3;
/// What `tk_opapi_live` counts: events.
pub const TK_OPAPI_EVENTS: i32 = 4;
/// What `tk_opapi_live` counts: contexts that were created.
pub const TK_OPAPI_CONTEXTS: i32 = 5;

#[derive(Clone, Copy)]
enum Phase {
    Before,
    /// With so many owners.
    During(u64),
    After,
}

static PHASE: Mutex<Phase> = Mutex::new(Phase::Before);

/// `aclInit`.
pub(crate) fn init() -> Result<(), Failure> {
    let mut phase = lock(&PHASE);
    match *phase {
        Phase::During(owners) => {
            *phase = Phase::During(owners + 1);
            Err(Failure::new(codes::ACL_ERROR_REPEAT_INITIALIZE, "ACL was begun before"))
        }
        _ => {
            *phase = Phase::During(1);
            Ok(())
        }
    }
}

/// `aclFinalize`, or one owner fewer; how many are left.
pub(crate) fn finalize(all: bool) -> Result<u64, Failure> {
    let mut phase = lock(&PHASE);
    let left = match *phase {
        Phase::Before => return Err(Failure::new(codes::ACL_ERROR_UNINITIALIZE, "ACL was not begun")),
        Phase::After => return Err(Failure::new(codes::ACL_ERROR_REPEAT_FINALIZE, "ACL was ended before")),
        Phase::During(owners) => owners - 1,
    };
    if left > 0 && !all {
        *phase = Phase::During(left);
        return Ok(left);
    }
    *phase = Phase::After;
    drop(phase);
    if std::env::var_os("TILEKERN_OPAPI_LEAKS").is_some_and(|value| !value.is_empty() && value != "0") {
        report();
    }
    Ok(0)
}

/// How many are alive: descriptors, executors, buffers, streams, events, contexts.
pub(crate) fn alive(kind: i32) -> Option<usize> {
    Some(match kind {
        TK_OPAPI_DESCRIPTORS => {
            let arrays = INT_ARRAYS.len() + FLOAT_ARRAYS.len() + BOOL_ARRAYS.len();
            TENSORS.len() + SCALARS.len() + arrays + TENSOR_LISTS.len() + SCALAR_LISTS.len()
        }
        TK_OPAPI_EXECUTORS => EXECUTORS.len(),
        TK_OPAPI_BUFFERS => memory::count(),
        TK_OPAPI_STREAMS => STREAMS.len(),
        TK_OPAPI_EVENTS => EVENTS.len(),
        TK_OPAPI_CONTEXTS => context::count(),
        _ => return None,
    })
}

/// Says on standard error what nobody destroyed.
fn report() {
    let mut never_run = BTreeMap::new();
    for executor in EXECUTORS.all() {
        *never_run.entry(executor.operator()).or_insert(0) += 1;
    }
    for (operator, count) in never_run {
        eprintln!("tilekern: {count} executors of {operator} were neither run nor destroyed");
    }
    let buffers = memory::sizes();
    if !buffers.is_empty() {
        eprintln!("tilekern: {} buffers were not freed, {} bytes", buffers.len(), buffers.iter().sum::<usize>());
    }
    let kinds = [
        (TK_OPAPI_DESCRIPTORS, "descriptors"),
        (TK_OPAPI_STREAMS, "streams"),
        (TK_OPAPI_EVENTS, "events"),
        (TK_OPAPI_CONTEXTS, "contexts"),
    ];
    for (kind, name) in kinds {
        match alive(kind) {
            None | Some(0) => {}
            Some(count) => eprintln!("tilekern: {count} {name} were not destroyed"),
        }
    }
}

/// Bytes of memory: available, and all.
pub(crate) fn memory() -> Result<[usize; 2], Failure> {
    let unknown = || Failure::new(codes::ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "this system does not tell");
    let text = std::fs::read_to_string("/proc/meminfo").map_err(|_| unknown())?;
    let line = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name))?;
        value.trim().split(' ').next()?.parse::<usize>().ok()?.checked_mul(1024)
    };
    Ok([line("MemAvailable:").ok_or_else(unknown)?, line("MemTotal:").ok_or_else(unknown)?])
}
