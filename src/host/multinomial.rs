//! Multinomial draws on the host. Many short rows are spread over the pool; a long row, or one with many samples, is cut into pieces.
//!
//! Neither way changes a draw: the best keys of a race and sums of masses are the same however a row is cut, and a whole row is asked for
//! its winner only where no rounding could make it another.

use super::Host;
use crate::backend::Run;
use crate::error::Error;
use crate::ops::{Draws, Multinomial, Weight};
use crate::parallel::{self, Cut, ParallelFor, Serial};
use crate::scratch::{PerWorker, Plan, Slot, WorkerSlot};
use crate::tensor::{Row, Tensor, TensorMut};
use core::alloc::Layout;
use core::ops::Range;
use tilekern_kernels::dispatch::Level;
use tilekern_kernels::philox::Exponential;
use tilekern_kernels::reference::{philox4x32, uniform};
use tilekern_kernels::rows::{
    BestKey, BlockMasses, KeysBelow, LEADERS, LeaderKeys, Racers, Reaches, Share, WINNER_OF, WeightSum, Winner, running_sum,
};

/// Weights of a piece: a multiple of the blocks of a sum.
const PIECE: usize = 4096;
/// Words that a row has to work in: 128 KiB.
const WORDS: usize = 16_384;
/// Weights that all race, since it takes as long to tell who cannot win.
const SHORT: usize = 256;
/// Samples of a task.
const SAMPLES: usize = 256;

struct Slots {
    stage: WorkerSlot<f32>,
    /// Of short rows.
    each: WorkerSlot<u64>,
    /// Of long rows.
    shared: Slot<u64>,
}

/// Whether a row is spread over the pool.
fn is_long(d: Draws) -> bool {
    d.categories > WORDS || d.samples > WORDS
}

fn is_race(d: Draws, replacement: bool) -> bool {
    d.samples == 1 || !replacement
}

fn plan(workers: usize, d: Draws, replacement: bool) -> Result<(Plan, Slots), Error> {
    let words = if d.samples > 1 && !replacement {
        // Room behind the best for candidates that may displace them.
        d.categories.min(d.samples.saturating_add(WORDS.max(d.samples / 2)))
    } else {
        WORDS.min(d.categories)
    };
    let (each, shared) = if is_long(d) { (0, words) } else { (words, 0) };
    let mut plan = Plan::new();
    let slots = Slots { stage: plan.each(workers, PIECE)?, each: plan.each(workers, each)?, shared: plan.slot(shared)? };
    Ok((plan, slots))
}

impl<T: Weight, P: ParallelFor> Run<Multinomial<'_, Self, T>> for Host<P> {
    fn workspace(&self, call: &Multinomial<'_, Self, T>) -> Result<Layout, Error> {
        match call.check(false)? {
            Some(d) => Ok(plan(self.pool.workers(), d, call.replacement)?.0.layout()),
            None => Ok(Plan::new().layout()),
        }
    }

    fn run_mut(&self, call: &mut Multinomial<'_, Self, T>, scratch: &mut [u8]) -> Result<(), Error> {
        let Some(d) = call.check(true)? else { return Ok(()) };
        let (plan, slots) = plan(self.pool.workers(), d, call.replacement)?;
        let space = plan.carve(scratch)?;
        let (stage, words) = (space.take_each(slots.stage), space.take(slots.shared));
        let drawn = Drawn {
            level: self.level,
            probs: call.probs,
            d,
            race: is_race(d, call.replacement),
            numbers: Exponential::new(call.seed as u64, call.offset as u64, (d.rows * d.categories) as u64),
            seed: call.seed as u64,
            offset: call.offset as u64,
        };
        let out = &mut call.out;
        if is_long(d) {
            for row in 0..d.rows {
                drawn.row(&self.pool, row, &stage, words, out.row_mut(row).into_tensor());
            }
            return Ok(());
        }
        // A weight costs at most about as much as reading a cache line, a sample ten times that.
        let grain = parallel::grain(d.samples.saturating_mul(10).saturating_add(d.categories), 16);
        let parts = (&*out, stage, space.take_each(slots.each));
        parallel::rows(&self.pool, d.rows, grain, parts, |row, (out, stage, words)| {
            drawn.row(&Serial, row, &PerWorker::alone(stage), words, out.into_tensor());
        });
        Ok(())
    }
}

/// A call, row by row.
struct Drawn<'a, T> {
    level: Level,
    probs: Tensor<'a, T>,
    d: Draws,
    race: bool,
    numbers: Exponential,
    seed: u64,
    offset: u64,
}

impl<'a, T: Weight> Drawn<'a, T> {
    fn row<P: ParallelFor>(
        &self,
        pool: &P,
        row: usize,
        stage: &PerWorker<'_, f32>,
        words: &mut [u64],
        mut out: TensorMut<'_, i64>,
    ) {
        match (self.race, self.d.samples) {
            (true, 1) => {
                let winner = self.winner(pool, row, words).map(|token| token as i64);
                out.row_mut(0).set(0, winner.unwrap_or_else(|| index(self.best(pool, row, stage, words))));
            }
            (true, k) => {
                self.best_k(pool, row, stage, words);
                let mut out = out.row_mut(0);
                for (i, &key) in words[..k].iter().enumerate() {
                    out.set(i, index(key));
                }
            }
            (false, _) => self.search(pool, row, stage, words, out),
        }
    }

    /// Weights of a row, as `f32`.
    fn weights<'b>(&self, row: usize, range: Range<usize>, stage: &'b mut [f32]) -> &'b [f32]
    where
        'a: 'b,
    {
        let weights: Row<'a, T> = self.probs.row(row);
        let stage = &mut stage[..range.len()];
        match weights.as_slice() {
            Some(weights) => T::widened(self.level, &weights[range], stage),
            None => {
                for (to, i) in stage.iter_mut().zip(range) {
                    *to = weights.get(i).to_f32();
                }
                stage
            }
        }
    }

    /// How many pieces a row has.
    fn pieces(&self) -> usize {
        self.d.categories.div_ceil(PIECE)
    }

    /// The elements of a piece.
    fn piece(&self, i: usize) -> Range<usize> {
        PIECE * i..self.d.categories.min(PIECE * (i + 1))
    }

    fn racers<'b>(&self, row: usize, range: Range<usize>, stage: &'b mut [f32]) -> Racers<'b>
    where
        'a: 'b,
    {
        let (at, first) = (range.start, (row * self.d.categories + range.start) as u64);
        Racers { weights: self.weights(row, range, stage), at, numbers: self.numbers, first }
    }

    /// The winner, where one worker has the whole row as it lies, if it is certain.
    fn winner<P: ParallelFor>(&self, pool: &P, row: usize, words: &mut [u64]) -> Option<usize> {
        let weights: Row<'a, T> = self.probs.row(row);
        let weights = weights.as_slice()?;
        let suits = pool.workers() == 1 && WINNER_OF.contains(&weights.len());
        let (numbers, first) = (self.numbers, (row * self.d.categories) as u64);
        suits.then(|| T::winner(self.level, Winner { weights, numbers, first, words }))?
    }

    /// The key of the winner.
    fn best<P: ParallelFor>(&self, pool: &P, row: usize, stage: &PerWorker<'_, f32>, words: &mut [u64]) -> u64 {
        let mut lead = u64::MAX;
        if self.d.categories > SHORT {
            lead = self.fold(pool, row, stage, words, lead, |racers, lead| {
                let mut keys = [0; LEADERS];
                self.level.run(LeaderKeys { racers, keys: &mut keys });
                least(&keys).min(lead)
            });
        }
        self.fold(pool, row, stage, words, lead, |racers, bound| self.level.run(BestKey { racers, bound }))
    }

    /// The smallest key that `body` finds in the pieces of a row. It gets the smallest that its task knows so far, at first `bound`.
    fn fold<P: ParallelFor>(
        &self,
        pool: &P,
        row: usize,
        stage: &PerWorker<'_, f32>,
        words: &mut [u64],
        bound: u64,
        body: impl Fn(Racers<'_>, u64) -> u64 + Sync,
    ) -> u64 {
        let pieces = self.pieces();
        // The longer a task, the more it knows: a single worker has one, several have some each, lest one waits for another.
        let each = if pool.workers() == 1 { pieces } else { pieces.div_ceil(4 * pool.workers()) };
        let keys = &mut words[..pieces.div_ceil(each)];
        parallel::blocks(pool, Cut { rows: 1, columns: 1 }, &TensorMut::vector(&mut *keys), stage, |mut block, stage| {
            let first = each * block.columns.start;
            let key = (first..pieces.min(first + each))
                .fold(bound, |bound, piece| body(self.racers(row, self.piece(piece), stage), bound));
            block.row(0).set(0, key);
        });
        least(keys)
    }

    /// Writes the keys of the winners, best first.
    fn best_k<P: ParallelFor>(&self, pool: &P, row: usize, stage: &PerWorker<'_, f32>, words: &mut [u64]) {
        let k = self.d.samples;
        let (mut at, mut n, mut bound) = (0, 0, self.bound_of_k(pool, row, stage, words));
        while at < self.d.categories {
            let room = (words.len() - n).min(self.d.categories - at);
            let keys = TensorMut::vector(&mut words[n..n + room]);
            parallel::blocks(pool, Cut { rows: 1, columns: PIECE }, &keys, stage, |mut block, stage| {
                let range = at + block.columns.start..at + block.columns.end;
                let racers = self.racers(row, range, stage);
                if let Some(keys) = block.row(0).as_slice() {
                    let found = self.level.run(KeysBelow { racers, bound, keys: &mut *keys });
                    keys[found..].iter_mut().take(1).for_each(|end| *end = u64::MAX);
                }
            });
            at += room;
            let end = n + room;
            for start in (n..end).step_by(PIECE) {
                let keys = &words[start..end.min(start + PIECE)];
                let found = keys.iter().position(|&key| key == u64::MAX).unwrap_or(keys.len());
                words.copy_within(start..start + found, n);
                n += found;
            }
            if n > k {
                words[..n].select_nth_unstable(k - 1);
                (n, bound) = (k, words[k - 1]);
            }
        }
        words[..k].sort_unstable();
    }

    /// A key above those of the k winners: the k best of those that lead their pieces are below it. `u64::MAX` where too few lead.
    fn bound_of_k<P: ParallelFor>(&self, pool: &P, row: usize, stage: &PerWorker<'_, f32>, words: &mut [u64]) -> u64 {
        let k = self.d.samples;
        let leaders = LEADERS * self.pieces().min(words.len() / LEADERS);
        if self.d.categories <= SHORT || leaders < k {
            return u64::MAX;
        }
        let words = &mut words[..leaders];
        parallel::blocks(pool, Cut { rows: 1, columns: LEADERS }, &TensorMut::vector(&mut *words), stage, |mut block, stage| {
            let racers = self.racers(row, self.piece(block.columns.start / LEADERS), stage);
            if let Some(keys) = block.row(0).as_slice().and_then(|keys| keys.first_chunk_mut()) {
                self.level.run(LeaderKeys { racers, keys });
            }
        });
        words.select_nth_unstable(k - 1).1.saturating_add(1)
    }

    /// Draws from the running sum, kept at the ends of blocks.
    fn search<P: ParallelFor>(
        &self,
        pool: &P,
        row: usize,
        stage: &PerWorker<'_, f32>,
        words: &mut [u64],
        mut out: TensorMut<'_, i64>,
    ) {
        let c = self.d.categories;
        // A sample looks through one block, and the sum of each block takes a while: the fewer samples, the longer blocks.
        let block = (8 * c / self.d.samples).isqrt().clamp(16, 256).max(c.div_ceil(WORDS)).next_power_of_two();
        let share = self.share(row, stage, words);
        let masses = TensorMut::vector(&mut words[..c.div_ceil(block)]);
        parallel::blocks(pool, Cut { rows: 1, columns: PIECE / block }, &masses, stage, |mut part, stage| {
            let range = block * part.columns.start..c.min(block * part.columns.end);
            let weights = self.weights(row, range, stage);
            if let Some(masses) = part.row(0).as_slice() {
                self.level.run(BlockMasses { weights, share, block, masses });
            }
        });
        let sums = &mut words[..c.div_ceil(block)];
        let mut all = 0;
        for sum in sums.iter_mut() {
            all += *sum;
            *sum = all;
        }
        let (sums, all) = (&*sums, running_sum(all));
        let out = out.reborrow();
        parallel::blocks(pool, Cut { rows: 1, columns: SAMPLES }, &out, stage, |mut part, stage| {
            let samples = part.columns.clone();
            let mut to = part.row(0);
            for (i, sample) in samples.enumerate() {
                let target = self.uniform(row, sample).min(all);
                let b = sums.partition_point(|&sum| running_sum(sum) < target);
                let before = if b == 0 { 0 } else { sums[b - 1] };
                let range = block * b..c.min(block * (b + 1));
                let weights = self.weights(row, range, stage);
                to.set(i, (block * b + self.level.run(Reaches { weights, share, before, target })) as i64);
            }
        });
    }

    fn uniform(&self, row: usize, sample: usize) -> f32 {
        let (turn, line) = (self.offset.div_ceil(4), self.d.samples.next_multiple_of(128) as u64);
        let place = (row as u64).wrapping_mul(line).wrapping_add(sample as u64);
        let counter = [turn as u32, (turn >> 32) as u32, place as u32, (place >> 32) as u32];
        uniform(philox4x32(counter, [self.seed as u32, (self.seed >> 32) as u32])[0])
    }

    /// What the masses of a row are relative to.
    fn share(&self, row: usize, stage: &PerWorker<'_, f32>, words: &mut [u64]) -> Share {
        // 2^-30: no sum of 2^24 weights overflows then.
        let (whole, scaled) = (1.0, f32::from_bits(0x3080_0000));
        let sum = self.sum(whole, row, stage, words);
        if sum == f32::INFINITY {
            Share { scale: scaled, sum: self.sum(scaled, row, stage, words) }
        } else {
            // Without weight nothing has a mass, whatever it is divided by.
            Share { scale: whole, sum: if sum > 0.0 { sum } else { 1.0 } }
        }
    }

    /// The sum of a row's weights, each times `scale`. One task: its order is part of the definition.
    fn sum(&self, scale: f32, row: usize, stage: &PerWorker<'_, f32>, words: &mut [u64]) -> f32 {
        let c = self.d.categories;
        let sum = TensorMut::vector(&mut words[..1]);
        parallel::blocks(&Serial, Cut { rows: 1, columns: 1 }, &sum, stage, |mut block, stage| {
            let pieces = (0..c).step_by(PIECE).map(|at| at..c.min(at + PIECE));
            let sum = pieces.fold(0.0, |before, range| {
                let weights = self.weights(row, range, stage);
                self.level.run(WeightSum { weights, scale, before })
            });
            block.row(0).set(0, sum.to_bits());
        });
        f64::from_bits(words[0]) as f32
    }
}

/// The best of some keys.
fn least(keys: &[u64]) -> u64 {
    keys.iter().fold(u64::MAX, |best, &key| best.min(key))
}

/// The index in a key.
fn index(key: u64) -> i64 {
    i64::from(key as u32)
}
