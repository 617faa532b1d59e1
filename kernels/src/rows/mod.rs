//! One file per row algorithm. A body is written once for the whole row: [`vectors`] gives it full vectors, then the tail.
//!
//! A step that several paths share is compiled once, out of line, and enters the token again by
//! [`apart`](crate::simd::Simd::apart): slices and numbers cross such a boundary, vectors never.

mod sum;
pub use sum::row_sum;

mod rms_norm;
pub use rms_norm::{RmsNorm, RmsNormQuant};

pub(crate) mod quantize;
pub use quantize::{Quantize, quantize};

mod quantiser;
pub use quantiser::Quantiser;

mod dequant;
pub use dequant::{Dequant, DequantResidual, DequantResidualRmsNormQuant, add_bias, dequant, dequant_span};

mod rope;
pub use rope::{DequantRope, rotate};

mod rope_table;
pub use rope_table::{rope_frequencies, rope_row};

mod swiglu;
pub use swiglu::{DequantSwigluQuant, GroupScale, GroupSwigluQuant, SwigluQuant, swiglu};

mod convert;
pub use convert::{Narrow, Scale, Widen};
mod key;

mod runs;

mod first_max;
pub use first_max::{FirstMax, Summary};

mod blocks;
pub use blocks::{BLOCK, maxima_len};

mod groups;

mod lane_best;
mod threshold;

mod bound;

mod sort;
mod sort_few;

mod samples;
mod share;
mod survivors;

mod find;
mod finer;

mod largest;
mod leaders;
pub use largest::workspace_maxima;

mod select;
pub use select::{List, TopK, list_len};

mod softmax;

mod mass;
pub use mass::running_sum;

mod estimate;

mod nucleus;

mod window;

mod ranks;
mod shortlist;

mod draw;
pub use draw::{WINNER_OF, Winner};
mod lead;
mod race;
pub use race::Noise;

mod guess;

mod min_p;

mod outputs;

mod sample;
pub use sample::{Choice, Middle, Sample, Stages, Workspace, status};

mod sample_kernel;
pub use sample_kernel::{Blocked, InPlace};

mod sample_v1;
pub use sample_v1::{MAX_K, SampleV1};

mod project;
pub use project::Project;

mod divide;
pub use divide::Divide;

mod probabilities;
pub use probabilities::Probabilities;

mod top_k_choice;
pub use top_k_choice::{TopKChoice, choice_len};

mod top_p_choice;
pub use top_p_choice::TopPChoice;

mod exponential;
pub use exponential::Exponentials;

mod apply;
pub use apply::ApplyTopKTopP;
mod reach;
mod tail;

mod first_ranks;
mod front;
mod keep;
mod keep_largest;
pub use keep_largest::KeepLargest;
mod keep_prefix;
pub use keep_prefix::{KeepPrefix, Prefix};

mod racers;
pub use racers::{BestKey, KeysBelow, LEADERS, LeaderKeys, Racers};

mod weights;
pub use weights::{BlockMasses, Reaches, Share, WeightSum};

#[cfg(test)]
mod random;

use crate::element::Element;
use crate::simd::Simd;

/// Up to 16 neighbouring elements of a row: `len` is 16 but for the tail.
#[derive(Clone, Copy)]
pub struct Span {
    /// Index of the first element.
    pub at: usize,
    /// Number of elements, 1 to 16; 0 where a pair of vectors has no second.
    pub len: usize,
}

/// Calls `body` for each span of a row of `n` elements. The body is compiled twice, for `len == 16` and for the tail, so a test of
/// `len` inside costs nothing.
#[inline(always)]
pub fn vectors(n: usize, mut body: impl FnMut(Span)) {
    for i in 0..n / 16 {
        body(Span { at: 16 * i, len: 16 });
    }
    if n % 16 != 0 {
        body(Span { at: n / 16 * 16, len: n % 16 });
    }
}

/// What a function of vectors makes of one number.
#[inline(always)]
fn of_one<S: Simd>(s: S, x: f32, f: impl FnOnce(S, S::F32) -> S::F32) -> f32 {
    s.apart(
        #[inline(always)]
        move || {
            let mut lanes = [0.0; 16];
            s.store(f(s, s.splat(x)), &mut lanes);
            lanes[0]
        },
    )
}

/// The numbers of the lanes.
#[inline(always)]
pub fn lanes<S: Simd>(s: S) -> S::I32 {
    s.load_i32(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
}

/// The first `len` lanes.
#[inline(always)]
fn first_lanes<S: Simd>(s: S, len: usize) -> S::Mask {
    s.gt_i32(s.splat_i32(len as i32), lanes(s))
}

/// The bits of a mask for the first `len` lanes, at least one.
#[inline(always)]
fn hits<S: Simd>(s: S, mask: S::Mask, len: usize) -> u16 {
    s.mask_bits(mask) & (u32::MAX >> (32 - len)) as u16
}

/// Calls `body` with the numbers of the lanes that are hit, and what they hold.
#[inline(always)]
fn each_hit<S: Simd>(s: S, mut hits: u16, v: S::F32, mut body: impl FnMut(usize, f32)) {
    if hits == 0 {
        return;
    }
    let mut lanes = [0.0; 16];
    s.store(v, &mut lanes);
    while hits != 0 {
        let lane = hits.trailing_zeros() as usize;
        hits &= hits - 1;
        body(lane, lanes[lane]);
    }
}

impl Span {
    /// As many elements, `by` further on.
    #[inline(always)]
    pub fn moved(self, by: usize) -> Span {
        Span { at: by + self.at, ..self }
    }

    /// The elements of `row` under this span; the lanes behind a tail hold `fill`.
    #[inline(always)]
    pub fn load<S: Simd, T: Element>(self, s: S, row: &[T], fill: T) -> S::F32 {
        let a = &row[self.at..self.at + self.len];
        match a.first_chunk::<16>() {
            Some(full) => T::load(s, full),
            None => T::load_partial(s, a, fill),
        }
    }

    /// Writes the elements of `row` under this span.
    #[inline(always)]
    pub fn store<S: Simd, T: Element>(self, s: S, v: S::F32, row: &mut [T]) {
        let a = &mut row[self.at..self.at + self.len];
        match a.first_chunk_mut::<16>() {
            Some(full) => T::store(s, v, full),
            None => T::store_partial(s, v, a),
        }
    }

    /// The integers of `row` under this span; the lanes behind a tail hold 0.
    #[inline(always)]
    pub fn load_i32<S: Simd>(self, s: S, row: &[i32]) -> S::I32 {
        let a = &row[self.at..self.at + self.len];
        match a.first_chunk::<16>() {
            Some(full) => s.load_i32(full),
            None => s.load_i32_partial(a),
        }
    }

    /// Writes the low bytes of the lanes to `row`.
    #[inline(always)]
    pub fn store_i8<S: Simd>(self, s: S, v: S::I32, row: &mut [i8]) {
        let a = &mut row[self.at..self.at + self.len];
        match a.first_chunk_mut::<16>() {
            Some(full) => s.store_i8(v, full),
            None => {
                let mut all = [0; 16];
                s.store_i8(v, &mut all);
                a.copy_from_slice(&all[..a.len()]);
            }
        }
    }

    /// Writes the lanes to `row`.
    #[inline(always)]
    pub fn store_i32<S: Simd>(self, s: S, v: S::I32, row: &mut [i32]) {
        let a = &mut row[self.at..self.at + self.len];
        match a.first_chunk_mut::<16>() {
            Some(full) => s.store_i32(v, full),
            None => s.store_partial(s.from_bits(v), bytemuck::cast_slice_mut(a)),
        }
    }
}
