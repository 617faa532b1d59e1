//! The host: SIMD kernels over the caller's memory and the caller's threads.

mod activations;
mod apply_top_k_top_p;
mod apply_top_k_top_p_min_p;
mod attention;
mod decoder_layer;
mod dequant_residual;
mod dequant_swiglu_quant;
mod dequant_transpose;
mod embedding_lookup;
mod exponential;
mod grouped_matmul_swiglu_quant;
mod half_products;
mod multinomial;
mod next_token;
mod pack_weight;
mod positions;
mod project;
mod quant_matmul;
mod quantize_rows;
mod remove_prompt_tokens;
mod rms_norm;
mod rope_table;
mod stages;
mod store_kv_cache;
mod task_columns;
mod top_k_sampling;
mod top_k_top_p_sample;
mod top_k_top_p_sample_v1;
mod top_p_sampling;
mod update_logits;
mod weight;

pub(crate) use top_k_top_p_sample::Lists;

use crate::backend::Backend;
use crate::error::{Error, Status};
use crate::parallel::{ParallelFor, Serial};
use crate::tensor::{Tensor, TensorMut};
use tilekern_kernels::dispatch::{Isa, Level};

/// An instruction set that this processor has, and a pool of threads.
///
/// ```
/// use tilekern::{Host, Isa, Serial};
///
/// let best = Host::new();
/// let portable = Host::with(Isa::Portable, Serial)?;
/// assert_eq!(portable.isa().name(), "portable");
/// # let _ = best;
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Host<P = Serial> {
    level: Level,
    pool: P,
}

impl Host<Serial> {
    /// The best instruction set, on the calling thread.
    pub fn new() -> Host<Serial> {
        Host::best(Serial)
    }
}

impl Default for Host<Serial> {
    fn default() -> Self {
        Host::new()
    }
}

impl<P: ParallelFor> Host<P> {
    /// The best instruction set, on a pool. A pool without a worker, which [`Host::with`] refuses, is not looked for here: it breaks the
    /// contract of [`ParallelFor`], and calls panic or leave their outputs as they were.
    ///
    /// ```
    /// use tilekern::{Host, Isa, Serial};
    ///
    /// assert_eq!(Host::best(Serial).isa(), Isa::detect());
    /// ```
    #[inline]
    pub fn best(pool: P) -> Host<P> {
        Host { level: Level::detect(), pool }
    }

    /// A given instruction set and pool. An instruction set that the processor lacks is an error (-2), never silently another; so is a
    /// pool without a worker (161002).
    pub fn with(isa: Isa, pool: P) -> Result<Host<P>, Error> {
        if pool.workers() == 0 {
            return Err(Error::invalid("pool", "at least one worker", 0usize));
        }
        let level = Level::new(isa);
        let lacks = || Error::new(Status::Unsupported, "isa", "one that this processor has", isa.name());
        Ok(Host { level: level.ok_or_else(lacks)?, pool })
    }

    /// What this host runs on.
    pub fn isa(&self) -> Isa {
        self.level.isa()
    }

    /// The instruction set, to run kernels on.
    pub(crate) fn level(&self) -> Level {
        self.level
    }

    /// The pool of threads.
    pub fn pool(&self) -> &P {
        &self.pool
    }
}

impl<P: ParallelFor> Backend for Host<P> {
    type View<'a, T: 'a> = Tensor<'a, T>;
    type ViewMut<'a, T: 'a> = TensorMut<'a, T>;
    type Scratch<'a> = &'a mut [u8];
}
