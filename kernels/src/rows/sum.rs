//! The sum of a row: 16 virtual lanes inside fixed blocks of 256 elements, the fixed tree, one `f64` per block, blocks in order.
//!
//! Neither the instruction set nor the caller's blocking can move a bit, and a row of 10^6 terms loses no more than a block does.

use super::Span;
use crate::simd::Simd;

/// Sum of `value` over a row of `n` elements. Behind a tail `value` must give zeros.
#[inline(always)]
pub fn row_sum<S: Simd>(s: S, n: usize, mut value: impl FnMut(Span) -> S::F32) -> f64 {
    const BLOCK: usize = 256;
    let mut total = 0.0;
    let mut sums = [s.splat(0.0); 16];
    let (blocks, rest) = (n / BLOCK, n % BLOCK);
    // 16 blocks at a time, so that their trees run side by side.
    for first in (0..blocks).step_by(16) {
        let count = 16.min(blocks - first);
        for (block, sum) in sums[..count].iter_mut().enumerate() {
            let mut lanes = s.splat(0.0);
            for i in 0..BLOCK / 16 {
                lanes = s.add(lanes, value(Span { at: BLOCK * (first + block) + 16 * i, len: 16 }));
            }
            *sum = lanes;
        }
        let mut trees = [0.0; 16];
        s.store(s.reduce_add_each(sums), &mut trees);
        for tree in &trees[..count] {
            total += f64::from(*tree);
        }
    }
    if rest != 0 {
        let start = n - rest;
        let mut lanes = s.splat(0.0);
        super::vectors(
            rest,
            #[inline(always)]
            |span| lanes = s.add(lanes, value(span.moved(start))),
        );
        total += f64::from(s.reduce_add(lanes));
    }
    total
}
