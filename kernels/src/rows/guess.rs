//! The candidates of a top-k in one pass: a sample of the row tells where its k-th largest is, about, and what reaches that is listed.
//!
//! Where k is a hundredth of the row most blocks have an element of it, and to find the blocks first saves nothing. A guess that
//! lets through too few, or more than the list takes, is given up.

use super::find::positions;
use super::first_max::{Summary, holds_nan};
use super::key::clean;
use super::lane_best::{FEW, reached_by};
use super::runs::{Length, runs};
use super::select::{List, look_up_apart};
use super::threshold::threshold;
use super::{lanes, vectors};
use crate::element::Element;
use crate::simd::Simd;

/// One vector of so many is looked at.
const PART: usize = 32;

/// The elements that reach a guessed bound, cleaned and in index order; `None` if they are not at least `least` or the list has no room
/// for them. They are k and more where that is least, else about k, rather fewer. And the summary of the row, which has at most 2^18
/// elements. `space` has a place for each 16 of them.
#[inline(never)]
pub fn candidates<S: Simd, T: Element>(
    s: S,
    row: &[T],
    (k, least): (usize, usize),
    space: &mut [f32],
    list: &mut List<'_>,
    nan: bool,
) -> Option<(Summary, usize)> {
    let (sample, rest) = space.split_at_mut(row.len() / (16 * PART) * 16);
    let share = k / PART;
    // Of so many draws of a share, two deviations more than are to be expected, where k must be among them.
    let wanted = if least < k { (share - share / 8).max(2) } else { share + 2 * share.isqrt() + 2 };
    if sample.len() < 2 * wanted {
        return None;
    }
    s.vectorize(
        #[inline(always)]
        || {
            for (i, to) in sample.as_chunks_mut::<16>().0.iter_mut().enumerate() {
                // Not always the same place of a part.
                let at = 16 * (PART * i + 7 * i % PART);
                s.store(clean(s, T::load(s, row[at..].first_chunk::<16>().expect("a part is whole"))), to);
            }
        },
    );
    let bound = match wanted {
        ..=FEW => reached_by(s, wanted, sample.as_chunks().0, 1),
        _ => threshold(s, sample, wanted, wanted / 8).0,
    };
    if bound == f32::NEG_INFINITY {
        return None;
    }
    let marks = &mut bytemuck::cast_slice_mut::<f32, u16>(rest)[..row.len().div_ceil(16).next_multiple_of(32)];
    let max = mark(s, row, bound, marks);
    let n = places(s, marks, list).filter(|&n| n >= least)?;
    look_up_apart(s, row, &list.indices[..n], &mut list.values[..n]);
    Some((Summary::new(max, nan && holds_nan(s, row)), n))
}

/// Chunks of 64 that are marked one after the other.
const STEP: usize = 16;

/// A bit for each element that reaches the bound, 16 to a mark; the largest element, NaN not counted.
#[inline(always)]
fn mark<S: Simd, T: Element>(s: S, row: &[T], bound: f32, marks: &mut [u16]) -> f32 {
    s.apart(
        #[inline(always)]
        move || {
            let bound = s.splat(bound);
            let mut max = [s.splat(f32::NEG_INFINITY); 4];
            let (chunks, rest) = row.as_chunks::<64>();
            let (whole, end) = marks.split_at_mut(4 * chunks.len());
            let whole = whole.as_chunks_mut::<4>().0;
            for run in runs::<T>(chunks.len().div_ceil(STEP), 64 * STEP, Length::Growing.or_step()) {
                let run = STEP * run.start..chunks.len().min(STEP * run.end);
                for (chunk, marks) in chunks[run.clone()].iter().zip(&mut whole[run]) {
                    for i in 0..4 {
                        let v = T::load(s, &chunk.as_chunks::<16>().0[i]);
                        max[i] = s.max(v, max[i]);
                        marks[i] = s.mask_bits(s.le(bound, v));
                    }
                }
            }
            end.fill(0);
            vectors(
                rest.len(),
                #[inline(always)]
                |span| {
                    let v = span.load(s, rest, T::NEG_INFINITY);
                    max[0] = s.max(v, max[0]);
                    end[span.at / 16] = s.mask_bits(s.le(bound, v));
                },
            );
            s.reduce_max(s.max(s.max(max[0], max[1]), s.max(max[2], max[3])))
        },
    )
}

/// Where the bits are that are set: how many, and their places in the indices of the list. `None` without room for them.
#[inline(always)]
fn places<S: Simd>(s: S, marks: &[u16], list: &mut List<'_>) -> Option<usize> {
    s.apart(
        #[inline(always)]
        move || {
            let pairs = bytemuck::cast_slice::<u16, i32>(marks);
            // The numbers of those with a bit.
            let (some, mut count) = (bytemuck::cast_slice_mut::<f32, i32>(list.values), 0);
            for (i, sixteen) in pairs.as_chunks::<16>().0.iter().enumerate() {
                let (zero, bits) = (s.splat_i32(0), s.load_i32(sixteen));
                let to = some.get_mut(count..)?.first_chunk_mut::<16>()?;
                let numbers = s.add_i32(lanes(s), s.splat_i32(16 * i as i32));
                count += s.compress(s.differ(s.gt_i32(bits, zero), s.gt_i32(zero, bits)), numbers, to);
            }
            let mut n = 0;
            for &number in &some[..count] {
                let to = list.indices.get_mut(n..n + 32)?;
                n += positions(u64::from(pairs[number as usize] as u32), number as usize * 32, to);
            }
            Some(n)
        },
    )
}
