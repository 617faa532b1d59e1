//! What is the process's own: how often ACL was begun, what is alive, and how much memory the machine has.

use crate::descriptor::{ARRAYS, LISTS, SCALARS, TENSORS};
use crate::event::EVENTS;
use crate::executor::EXECUTORS;
use crate::failure::Failure;
use crate::stream::STREAMS;
use crate::table::lock;
use crate::{context, memory};
use std::collections::BTreeMap;
use std::sync::Mutex;
use tilekern_acl::codes;

#[derive(Clone, Copy, PartialEq, Eq)]
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
        0 => TENSORS.len() + SCALARS.len() + ARRAYS.len() + LISTS.len(),
        1 => EXECUTORS.len(),
        2 => memory::count(),
        3 => STREAMS.len(),
        4 => EVENTS.len(),
        5 => context::count(),
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
    let kinds = ["descriptors", "", "", "streams", "events", "contexts"];
    for (name, kind) in kinds.into_iter().zip(0..).filter(|(name, _)| !name.is_empty()) {
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
