//! Drawing from rows of weights, chunk by chunk, by the exact masses under a running sum: `round(w / sum * 2^52)`, integers, so that
//! blocks of any size have the same sums.

use super::mass::{Total, mass, running_sum};
use super::{Span, row_sum, vectors};
use crate::dispatch::{Kernel, compiled_here};
use crate::simd::{Dot, Simd};

/// What weights count as: negative ones and NaN as 0, an infinite one as the largest finite number.
#[inline(always)]
pub(super) fn counted<S: Simd>(s: S, v: S::F32) -> S::F32 {
    s.min(s.max(v, s.splat(0.0)), s.splat(f32::MAX))
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
