//! How a row of the batch chooses its tokens.
//!
//! The logits are divided by the temperature and filtered as [`TopKTopPSample`](crate::ops::TopKTopPSample) does; from what stays a token
//! is drawn by one number of 64 bits against sums of exact integer masses, so that a token of probability 2^-52 still has its chance. The
//! number is Philox4x32-10 of the row's seed and of how many tokens the row has: neither the batch nor the place in it can change a draw.

use crate::error::Error;
use crate::host::{Host, Lists};
use crate::ops::check;
use crate::parallel::{self, Column, ParallelFor};
use crate::scratch::{Pieces, Plan, Slot, Space, WorkerSlot};
use crate::tensor::TensorMut;
use tilekern_kernels::reference;
use tilekern_kernels::rows::{Divide, KeepLargest, MAX_K, Noise, Sample, Stages};

/// How a row chooses. The default draws from all tokens as the model weighs them, with seed 0. A draw counts places in the list of what
/// is kept, which is sorted where `top_k`, up to 1024, or `top_p` is on: to switch a stage on changes what a seed draws, even where all stay.
///
/// ```
/// use tilekern::llama::RowSampling;
///
/// let sampling = RowSampling { temperature: 0.8, top_p: 0.95, seed: 7, ..Default::default() };
/// assert_eq!((sampling.top_k, sampling.min_p), (0, 0.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowSampling {
    /// Divides the logits, or their distances from the largest where quotients would be beyond f32; 0 takes the largest logit, always.
    /// Finite as f32. 1.
    pub temperature: f64,
    /// Draws among the k largest of the divided logits, of equal ones those of lower index; off for k <= 0. Any k. 0.
    pub top_k: i64,
    /// Draws among the smallest set whose probability reaches p; off outside (0,1). 1.
    pub top_p: f64,
    /// Draws among the tokens with at least this fraction of the largest probability; off for m <= 0, the best one for m >= 1. 0.
    pub min_p: f64,
    /// What the draws follow from, together with the number of tokens of the row. 0.
    pub seed: u64,
}

impl Default for RowSampling {
    fn default() -> Self {
        RowSampling { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0 }
    }
}

/// Where the sampling of a batch will lie.
pub(super) struct SamplingSlots {
    temperature: Slot<f32>,
    seed: Slot<u64>,
    k: Slot<usize>,
    top_p: Slot<f32>,
    min_p: Slot<f32>,
    chosen: Slot<i64>,
}

/// Plans the sampling of `batch` rows.
pub(super) fn plan(plan: &mut Plan, batch: usize) -> Result<SamplingSlots, Error> {
    Ok(SamplingSlots {
        temperature: plan.slot(batch)?,
        seed: plan.slot(batch)?,
        k: plan.slot(batch)?,
        top_p: plan.slot(batch)?,
        min_p: plan.slot(batch)?,
        chosen: plan.slot(batch)?,
    })
}

/// Plans what each worker works in.
fn plan_lists<P: ParallelFor>(host: &Host<P>, vocab: usize) -> Result<(Plan, WorkerSlot<u8>), Error> {
    check::vocabulary("vocab", vocab)?;
    let mut plan = Plan::new();
    let slot = plan.each(host.pool().workers(), Lists::of(vocab).bytes())?;
    Ok((plan, slot))
}

/// Workspace, in bytes.
pub(super) fn workspace<P: ParallelFor>(host: &Host<P>, vocab: usize) -> Result<usize, Error> {
    Ok(plan_lists(host, vocab)?.0.layout().size())
}

/// The sampling of a batch.
pub(super) struct Sampling<'d> {
    /// 0 for greedy rows.
    temperature: &'d mut [f32],
    seed: &'d mut [u64],
    /// 0 for all.
    k: &'d mut [usize],
    top_p: &'d mut [f32],
    min_p: &'d mut [f32],
    /// The tokens of the last step.
    pub chosen: &'d mut [i64],
}

impl<'d> Sampling<'d> {
    /// Every row at the default.
    pub fn new(space: &Space<'d>, slots: SamplingSlots) -> Sampling<'d> {
        let mut sampling = Sampling {
            temperature: space.take(slots.temperature),
            seed: space.take(slots.seed),
            k: space.take(slots.k),
            top_p: space.take(slots.top_p),
            min_p: space.take(slots.min_p),
            chosen: space.take(slots.chosen),
        };
        (0..sampling.temperature.len()).for_each(|row| sampling.write(row, &RowSampling::default()));
        sampling
    }

    /// Sets a row that exists.
    pub fn set(&mut self, row: usize, to: &RowSampling) -> Result<(), Error> {
        let temperature = to.temperature as f32;
        if !(to.temperature >= 0.0 && temperature.is_finite()) {
            return Err(Error::invalid("temperature", "a number of at least 0 that is finite as f32", to.temperature));
        }
        self.write(row, to);
        Ok(())
    }

    fn write(&mut self, row: usize, to: &RowSampling) {
        let greedy = to.temperature as f32 == 0.0;
        self.temperature[row] = to.temperature as f32;
        self.seed[row] = to.seed;
        self.k[row] = usize::try_from(to.top_k.max(0)).unwrap_or(usize::MAX);
        // A number between the limits must not be rounded to one of them, which has a meaning of its own.
        let (least, most) = (f32::from_bits(1), 1.0f32.next_down());
        self.top_p[row] = if to.top_p > 0.0 && to.top_p < 1.0 && !greedy { (to.top_p as f32).clamp(least, most) } else { 1.0 };
        self.min_p[row] = match to.min_p {
            _ if greedy => 0.0,
            m if m < 1.0 => (m as f32).min(most),
            m => m as f32,
        };
    }

    /// Chooses `chosen` for every row from `logits`, `[batch][vocab]`, which it overwrites. `counts` says how many tokens each row has,
    /// `active` which rows count.
    pub fn choose<P: ParallelFor>(
        &mut self,
        host: &Host<P>,
        logits: &mut [f32],
        counts: &[usize],
        active: &[u8],
        scratch: &mut [u8],
    ) -> Result<(), Error> {
        let Sampling { temperature, seed, k, top_p, min_p, chosen } = self;
        let (temperature, seed, k, top_p, min_p) = (&*temperature, &*seed, &*k, &*top_p, &*min_p);
        let batch = temperature.len();
        let vocab = logits.len() / batch;
        let (lists, (plan, memory)) = (Lists::of(vocab), plan_lists(host, vocab)?);
        let memory = plan.carve(scratch)?.take_each(memory);
        let (rows, chosen) = (TensorMut::new([batch, vocab], logits)?, TensorMut::new([batch], chosen)?);
        let parts = (rows, Column(&chosen), memory);
        parallel::rows(host.pool(), batch, parallel::grain(vocab, 8), parts, |row, (mut logits, chosen, memory)| {
            let Some(logits) = logits.as_slice() else { return };
            let k = k[row];
            let mut noise = Noise::None;
            if active[row] != 0 && temperature[row] > 0.0 {
                host.level().run(Divide { row: logits, by: temperature[row] });
                // What the stages do not take.
                if (MAX_K + 1..vocab).contains(&k) {
                    let work = lists.take(&mut Pieces::of(&mut *memory));
                    host.level().run(KeepLargest { row: logits, k, work });
                }
                noise = Noise::Share(number(seed[row], counts[row]));
            }
            let stages =
                Stages { k: if k <= MAX_K.min(vocab) { k } else { 0 }, p: top_p[row], min_p: min_p[row], is_logits: true };
            let work = lists.take(&mut Pieces::of(memory));
            let call = &mut Sample { row: &*logits, stages, noise, nan: false, filtered: None, middle: None, work };
            *chosen = host.level().run(call).token as i64;
        });
        Ok(())
    }
}

/// The number that token number `count` of a row with this seed draws.
fn number(seed: u64, count: usize) -> u64 {
    let counter = [count as u32, (count as u64 >> 32) as u32, 0, 0];
    let words = reference::philox4x32(counter, [seed as u32, (seed >> 32) as u32]);
    u64::from(words[0]) | u64::from(words[1]) << 32
}

#[cfg(test)]
mod tests {
    use super::number;
    use tilekern_kernels::reference::share_choice;

    fn draw(probabilities: &[f32], seed: u64, count: usize) -> Option<usize> {
        share_choice(probabilities, number(seed, count))
    }

    #[test]
    fn draws_follow_the_probabilities() {
        let probabilities = [0.5f32, 0.0, 0.25, 0.125, 0.125, 0.0];
        let mut counts = [0; 6];
        const DRAWS: usize = 40_000;
        for n in 0..DRAWS {
            counts[draw(&probabilities, 0xDEAD_BEEF_0000_0001, n).unwrap()] += 1;
        }
        let expected = probabilities.map(|p| f64::from(p) * DRAWS as f64);
        let term = |i: usize| (counts[i] as f64 - expected[i]) * (counts[i] as f64 - expected[i]) / expected[i];
        let chi: f64 = [0, 2, 3, 4].into_iter().map(term).sum();
        assert_eq!((counts[1], counts[5]), (0, 0));
        // Three degrees of freedom: above this once in 10^5.
        assert!(chi < 25.9, "{chi} {counts:?}");
    }
}
