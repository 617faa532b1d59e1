//! How a row of the batch chooses its tokens.
//!
//! The logits are divided by the temperature and filtered by [`TopKTopPSample`]; from what stays a token is drawn by one number of 64
//! bits against sums of exact integer masses, so that a token of probability 2^-52 still has its chance. The number is Philox4x32-10
//! of the row's seed and of how many tokens the row has: neither the batch nor the place in it can change a draw.

use crate::backend::Run;
use crate::error::Error;
use crate::host::Host;
use crate::ops::TopKTopPSample;
use crate::parallel::{self, ParallelFor};
use crate::scratch::{Plan, Slot, Space};
use crate::tensor::{Dims, Tensor, TensorMut};
use tilekern_kernels::{reference, rows};

/// The largest k that the operation takes; beyond it the row is cut before.
const OPERATION_K: i64 = 1024;

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
    cut: Slot<i64>,
    seed: Slot<u64>,
    top_k: Slot<i32>,
    top_p: Slot<f32>,
    min_p: Slot<f32>,
    chosen: Slot<i64>,
    list: Slot<i64>,
    probabilities: Slot<f32>,
}

/// Plans the sampling of `batch` rows of `vocab` logits.
pub(super) fn plan(plan: &mut Plan, batch: usize, vocab: usize) -> Result<SamplingSlots, Error> {
    let all = batch.checked_mul(vocab).ok_or_else(|| Error::invalid("batch", "a size that fits in memory", batch))?;
    Ok(SamplingSlots {
        temperature: plan.slot(batch)?,
        cut: plan.slot(batch)?,
        seed: plan.slot(batch)?,
        top_k: plan.slot(batch)?,
        top_p: plan.slot(batch)?,
        min_p: plan.slot(batch)?,
        chosen: plan.slot(batch)?,
        list: plan.slot(all)?,
        probabilities: plan.slot(all)?,
    })
}

/// Workspace of the operation, in bytes.
pub(super) fn workspace<P: ParallelFor>(host: &Host<P>, batch: usize, vocab: usize) -> Result<usize, Error> {
    let (rows, all) = (Dims::contiguous(&[batch])?, Dims::contiguous(&[batch, vocab])?);
    let logits = Tensor::<f32>::shape_only(all);
    let (top_k, top_p, chosen) = (Tensor::shape_only(rows), Tensor::shape_only(rows), TensorMut::shape_only(rows));
    let mut call = TopKTopPSample::<Host<P>, f32>::new(logits, top_k, top_p, chosen);
    call.min_ps = Some(Tensor::shape_only(rows));
    let without = host.workspace(&call)?.size();
    call.logits_idx = Some(TensorMut::shape_only(all));
    call.logits_sort_masked = Some(TensorMut::shape_only(all));
    Ok(host.workspace(&call)?.size().max(without))
}

/// The sampling of a batch.
pub(super) struct Sampling<'d> {
    /// 0 for greedy rows.
    temperature: &'d mut [f32],
    /// A k that the operation does not take, or 0.
    cut: &'d mut [i64],
    seed: &'d mut [u64],
    top_k: &'d mut [i32],
    top_p: &'d mut [f32],
    min_p: &'d mut [f32],
    /// The tokens of the last step.
    pub chosen: &'d mut [i64],
    list: &'d mut [i64],
    probabilities: &'d mut [f32],
}

impl<'d> Sampling<'d> {
    /// Every row at the default.
    pub fn new(space: &Space<'d>, slots: SamplingSlots) -> Sampling<'d> {
        let mut sampling = Sampling {
            temperature: space.take(slots.temperature),
            cut: space.take(slots.cut),
            seed: space.take(slots.seed),
            top_k: space.take(slots.top_k),
            top_p: space.take(slots.top_p),
            min_p: space.take(slots.min_p),
            chosen: space.take(slots.chosen),
            list: space.take(slots.list),
            probabilities: space.take(slots.probabilities),
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
        self.cut[row] = if to.top_k > OPERATION_K && !greedy { to.top_k } else { 0 };
        // One candidate is all that a greedy row needs, where it stands beside others.
        self.top_k[row] = if greedy { 1 } else { i32::try_from(to.top_k).unwrap_or(0) };
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
        let batch = self.temperature.len();
        let vocab = logits.len() / batch;
        let (temperature, cut, seed) = (&*self.temperature, &*self.cut, &*self.seed);
        let draws = |row: usize| active[row] != 0 && temperature[row] > 0.0;
        let any = (0..batch).any(draws);
        let grain = parallel::grain(vocab, 8);
        if any {
            let rows = TensorMut::new([batch, vocab], logits)?;
            parallel::rows(host.pool(), batch, grain, rows, |row, mut logits| {
                if let Some(logits) = logits.as_slice().filter(|_| draws(row)) {
                    host.level().run(rows::Divide { row: logits, by: temperature[row] });
                    keep_largest(logits, usize::try_from(cut[row]).unwrap_or(usize::MAX));
                }
            });
        }
        let mut call = TopKTopPSample::new(
            Tensor::new([batch, vocab], logits)?,
            Tensor::new([batch], self.top_k)?,
            Tensor::new([batch], self.top_p)?,
            TensorMut::new([batch], self.chosen)?,
        );
        call.min_ps = Some(Tensor::new([batch], self.min_p)?);
        if any {
            call.logits_idx = Some(TensorMut::new([batch, vocab], self.list)?);
            call.logits_sort_masked = Some(TensorMut::new([batch, vocab], self.probabilities)?);
        }
        host.run(call, scratch)?;
        if any {
            let (list, probabilities) = (&*self.list, &*self.probabilities);
            let chosen = TensorMut::new([batch, 1], self.chosen)?;
            parallel::rows(host.pool(), batch, grain, chosen, |row, mut chosen| {
                let probabilities = &probabilities[row * vocab..][..vocab];
                if draws(row)
                    && let Some(place) = draw(probabilities, seed[row], counts[row])
                {
                    chosen.set(0, list[row * vocab + place]);
                }
            });
        }
        Ok(())
    }
}

/// The place that token number `count` of a row with this seed draws; none where no probability is above 0.
fn draw(probabilities: &[f32], seed: u64, count: usize) -> Option<usize> {
    const ONE: f64 = 4_503_599_627_370_496.0;
    // round(p * 2^52): adding 2^52 rounds to an integer, which then stands in the low bits.
    let mass = |&p: &f32| (f64::from(p) * ONE + ONE).to_bits() - ONE.to_bits();
    let total: u64 = probabilities.iter().map(mass).sum();
    let counter = [count as u32, (count as u64 >> 32) as u32, 0, 0];
    let words = reference::philox4x32(counter, [seed as u32, (seed >> 32) as u32]);
    let random = u64::from(words[0]) | u64::from(words[1]) << 32;
    // Below the total, and every unit of mass equally often but for one part in 2^11.
    let mut rest = ((u128::from(random) * u128::from(total)) >> 64) as u64;
    probabilities.iter().position(|p| {
        let mass = mass(p);
        let found = rest < mass;
        rest = rest.saturating_sub(mass);
        found
    })
}

/// Leaves the `k` largest logits, of equal ones those of lower index, and makes the others -inf. None for a k of 0.
///
/// A digit of eight bits at a time, from the top: count the candidates by digit, find the digit of the k-th, keep its candidates.
fn keep_largest(row: &mut [f32], k: usize) {
    if k == 0 || k >= row.len() {
        return;
    }
    // Orders as the numbers do; -0 as +0, a NaN as -inf.
    let key = |x: f32| {
        let bits = if x.is_nan() { f32::NEG_INFINITY } else { x + 0.0 }.to_bits();
        if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
    };
    let (mut found, mut known, mut rest) = (0u32, 0u32, k);
    for shift in [24, 16, 8, 0] {
        let mut counts = [0usize; 256];
        for &x in row.iter().filter(|&&x| key(x) & known == found) {
            counts[(key(x) >> shift & 0xFF) as usize] += 1;
        }
        let mut digit = 255;
        while counts[digit] < rest {
            rest -= counts[digit];
            digit -= 1;
        }
        found |= (digit as u32) << shift;
        known |= 0xFF << shift;
    }
    for x in row {
        let key = key(*x);
        let tied = key == found && rest > 0;
        rest -= usize::from(tied);
        if key < found || key == found && !tied {
            *x = f32::NEG_INFINITY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{draw, keep_largest};

    #[test]
    fn the_largest_stay_and_ties_go_by_index() {
        const LOW: f32 = f32::NEG_INFINITY;
        let row = [1.0, f32::NAN, 3.0, -0.0, 3.0, 0.0, -2.0, f32::INFINITY];
        let keep = |k| {
            let mut row = row;
            keep_largest(&mut row, k);
            row.map(f32::to_bits)
        };
        let bits = |row: [f32; 8]| row.map(f32::to_bits);
        assert_eq!(keep(1), bits([LOW, LOW, LOW, LOW, LOW, LOW, LOW, f32::INFINITY]));
        assert_eq!(keep(2), bits([LOW, LOW, 3.0, LOW, LOW, LOW, LOW, f32::INFINITY]));
        assert_eq!(keep(5), bits([1.0, LOW, 3.0, -0.0, 3.0, LOW, LOW, f32::INFINITY]));
        assert_eq!(keep(7), bits([1.0, LOW, 3.0, -0.0, 3.0, 0.0, -2.0, f32::INFINITY]));
        assert_eq!(keep(0), row.map(f32::to_bits));
        assert_eq!(keep(8), row.map(f32::to_bits));
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

    /// Tokens 18 to 20 nats below the best, between two that have half each: a number of 24 bits has no value that falls on them.
    /// They are drawn as often as they should be: 18 nats below twice in the first 271 223 520 counts, where 2.07 are expected. The
    /// counts are the result of a search.
    #[test]
    fn unlikely_tokens_are_drawn() {
        for (gap, counts) in
            [(18.0f64, [259_545_263, 271_223_519]), (19.0, [259_545_263, 271_223_519]), (20.0, [271_223_519, 601_292_160])]
        {
            let probabilities = [0.5, (0.5 * libm::exp(-gap)) as f32, 0.5];
            for count in counts {
                assert_eq!(draw(&probabilities, 7, count), Some(1), "{gap}");
                assert_ne!(draw(&probabilities, 7, count + 1), Some(1), "{gap}");
            }
        }
    }

    #[test]
    fn a_row_without_mass_draws_nothing() {
        assert_eq!(draw(&[0.0, 0.0], 1, 2), None);
        assert_eq!(draw(&[0.0, f32::from_bits(0x2500_0000)], 1, 2), None);
        assert_eq!(draw(&[0.0, f32::from_bits(0x2580_0001)], 1, 2), Some(1));
    }
}
