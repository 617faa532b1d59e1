//! What every test of an operation needs.
#![allow(dead_code, unused_imports)]

use tilekern::{Host, Isa, ParallelFor, Run, Scratch, Serial};

#[path = "../../kernels/tests/common/mod.rs"]
mod kernels;
pub use kernels::{LENGTHS, Random, bits, rounds};

pub mod sampling;

mod buffer;
pub use buffer::{Buffer, Order, shape_only, shape_only_mut};

mod counted;
pub use counted::Counted;

/// A host for every instruction set that this processor has.
pub fn hosts() -> Vec<Host<Serial>> {
    Isa::ALL.into_iter().filter_map(|isa| Host::with(isa, Serial).ok()).collect()
}

/// Asks for the workspace, fills it with rubbish, and runs.
pub fn run<B, C>(backend: &B, call: C) -> Result<(), tilekern::Error>
where
    B: Run<C> + for<'a> tilekern::Backend<Scratch<'a> = &'a mut [u8]>,
{
    let mut scratch = Scratch::new(backend.workspace(&call)?);
    scratch.fill(0xA5);
    backend.run(call, &mut scratch)
}

/// Every instruction set of this processor, on the calling thread and on two.
pub fn every_host(test: impl Fn(&Host<&dyn ParallelFor>)) {
    #[cfg_attr(not(feature = "rayon"), allow(unused_mut))]
    let mut pools: Vec<Box<dyn ParallelFor>> = vec![Box::new(Serial)];
    #[cfg(feature = "rayon")]
    pools.push(Box::new(tilekern::Rayon::new(2).unwrap()));
    for pool in &pools {
        Isa::ALL.into_iter().filter_map(|isa| Host::with(isa, &**pool).ok()).for_each(|host| test(&host));
    }
}

/// How a call is refused, status and argument. The query refuses it in the same way, or leaves it to the run.
pub fn refused<B, C>(backend: &B, call: C) -> (i32, &'static str)
where
    B: Run<C> + for<'a> tilekern::Backend<Scratch<'a> = &'a mut [u8]>,
{
    let query = backend.workspace(&call);
    let mut scratch = Scratch::new(query.unwrap_or(core::alloc::Layout::new::<()>()));
    let error = backend.run(call, &mut scratch).unwrap_err();
    if let Err(query) = query {
        assert_eq!(query.to_string(), error.to_string());
    }
    (error.status().code(), error.argument())
}
