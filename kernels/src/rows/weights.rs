//! Drawing from rows of weights, chunk by chunk: the keys of an exponential race, and the exact masses under a running sum.
//!
//! A weight that is negative or NaN counts as 0, an infinite one as the largest finite number. The race is on `weight / e`; its results
//! are keys, so that chunks can be raced in any order and the best, or the k best, are those of the whole row. The running sum adds
//! masses `round(w / sum * 2^52)`: integers, so blocks of any size have the same sums.

use super::key::key;
use super::mass::{Total, mass, running_sum};
use super::{Span, row_sum, vectors};
use crate::dispatch::{Kernel, compiled_here};
use crate::philox::Exponential;
use crate::simd::{Dot, Simd};

/// What weights count as.
#[inline(always)]
fn counted<S: Simd>(s: S, v: S::F32) -> S::F32 {
    s.min(s.max(v, s.splat(0.0)), s.splat(f32::MAX))
}

/// A part of a row in an exponential race.
#[derive(Clone, Copy)]
pub struct Racers<'a> {
    /// The weights of the part.
    pub weights: &'a [f32],
    /// Index of the first in its row, below 2^32.
    pub at: usize,
    /// The numbers of the tensor.
    pub numbers: Exponential,
    /// The number that belongs to the first.
    pub first: u64,
}

impl Racers<'_> {
    #[inline(always)]
    fn ratios<S: Simd>(&self, s: S, span: Span) -> S::F32 {
        s.div(counted(s, span.load(s, self.weights, 0.0)), self.numbers.at(s, self.first + span.at as u64))
    }
}

/// The best of a part of a row: its key, the smallest of all.
pub struct BestKey<'a>(pub Racers<'a>);

impl Kernel for BestKey<'_> {
    type Output = u64;
    const DOT: bool = false;
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> u64 {
        // Lanes behind a tail weigh 0 and come later than all others.
        let mut best = s.splat(-1.0);
        let mut vector = s.splat_i32(0);
        vectors(
            self.0.weights.len(),
            #[inline(always)]
            |span| {
                let v = self.0.ratios(s, span);
                let better = s.lt(best, v);
                best = s.select(better, v, best);
                vector = s.select_i32(better, s.splat_i32((span.at / 16) as i32), vector);
            },
        );
        let (mut ratios, mut vectors) = ([0.0; 16], [0; 16]);
        s.store(best, &mut ratios);
        s.store_i32(vector, &mut vectors);
        let mut least = u64::MAX;
        for lane in 0..16 {
            least = least.min(key(ratios[lane], self.0.at + 16 * vectors[lane] as usize + lane));
        }
        least
    }
}

/// The keys of a part of a row that are below a bound; `u64::MAX`, which is nobody's, in place of the others.
pub struct KeysBelow<'a> {
    /// The part.
    pub racers: Racers<'a>,
    /// What a key must be below.
    pub bound: u64,
    /// As many as there are weights.
    pub keys: &'a mut [u64],
}

impl Kernel for KeysBelow<'_> {
    type Output = ();
    const DOT: bool = false;
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        vectors(
            self.racers.weights.len(),
            #[inline(always)]
            |span| {
                let mut ratios = [0.0; 16];
                s.store(self.racers.ratios(s, span), &mut ratios);
                for (i, to) in self.keys[span.at..span.at + span.len].iter_mut().enumerate() {
                    let key = key(ratios[i], self.racers.at + span.at + i);
                    *to = if key < self.bound { key } else { u64::MAX };
                }
            },
        );
    }
}

/// The sum so far and a part of a row more, added in blocks of 256: parts but the last are multiples of that.
pub struct WeightSum<'a> {
    /// The weights of the part.
    pub weights: &'a [f32],
    /// What each is multiplied with: 1, or a power of two where the sum would overflow.
    pub scale: f32,
    /// The sum of the parts before.
    pub before: f64,
}

impl Kernel for WeightSum<'_> {
    type Output = f64;
    const DOT: bool = false;
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> f64 {
        let mut sum = self.before;
        for block in self.weights.chunks(256) {
            sum += row_sum(
                s,
                block.len(),
                #[inline(always)]
                |span| s.mul(counted(s, span.load(s, block, 0.0)), s.splat(self.scale)),
            );
        }
        sum
    }
}

/// How weights become masses.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// What each weight is multiplied with.
    pub scale: f32,
    /// What it is then divided by.
    pub sum: f32,
}

impl Share {
    /// The shares of the weights under a span, in [0,1].
    #[inline(always)]
    fn of<S: Simd>(&self, s: S, weights: &[f32], span: Span) -> S::F32 {
        s.div(s.mul(counted(s, span.load(s, weights, 0.0)), s.splat(self.scale)), s.splat(self.sum))
    }
}

/// The mass of each block of a part of a row.
pub struct BlockMasses<'a> {
    /// The weights of the part.
    pub weights: &'a [f32],
    /// Of the row.
    pub share: Share,
    /// Weights of a block, a multiple of 16.
    pub block: usize,
    /// One for each block.
    pub masses: &'a mut [u64],
}

impl Kernel for BlockMasses<'_> {
    type Output = ();
    const DOT: bool = false;
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        for (block, mass) in self.weights.chunks(self.block).zip(self.masses) {
            let mut total = Total::new(s);
            vectors(
                block.len(),
                #[inline(always)]
                |span| total.add(s, self.share.of(s, block, span)),
            );
            // Shares add up to about 1.
            *mass = total.get(s) as u64;
        }
    }
}

/// The first weight of a part of a row whose running sum reaches a target; the length of the part if none does.
pub struct Reaches<'a> {
    /// The weights of the part.
    pub weights: &'a [f32],
    /// Of the row.
    pub share: Share,
    /// The mass before the part.
    pub before: u64,
    /// What is to be reached.
    pub target: f32,
}

impl Kernel for Reaches<'_> {
    type Output = usize;
    const DOT: bool = false;
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> usize {
        let mut before = self.before;
        let mut at = 0;
        while at < self.weights.len() {
            let span = Span { at, len: 16.min(self.weights.len() - at) };
            let mut shares = [0.0; 16];
            s.store(self.share.of(s, self.weights, span), &mut shares);
            for (i, &share) in shares[..span.len].iter().enumerate() {
                before += mass(share);
                if running_sum(before) >= self.target {
                    return at + i;
                }
            }
            at += 16;
        }
        self.weights.len()
    }
}
