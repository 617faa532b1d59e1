//! What top-k and top-p leave of a row, each entry in its place: everything above a value, and of its equals all but the first few.
//!
//! Both cuts are values that a sum reaches, of ones from the top for k, of masses from the bottom for p, and both are found by digits of
//! the value's bits: sums by digit, the digit in which the cut lies, the same within that digit. Equal values have equal masses, so
//! where among equals the cut lies follows from their mass. Most elements are spared the digits: for k all below a bound that k elements
//! reach, for p all below a value so low that they must be dropped, whose masses are summed 16 at a time. Where few elements reach the
//! bound for k, the k-th largest is found among them without digits.

use super::blocks::{BLOCK, block_maxima, maxima_len};
use super::bound::bound;
use super::key::{ascending_to_value, bisect, order, value_to_ascending};
use super::mass::{ONE, Total, mass, running_sum};
use super::threshold::threshold;
use super::{lanes, row_sum, vectors};
use crate::dispatch::Kernel;
use crate::element::Element;
use crate::math::exp_below_overflow;
use crate::per_element::per_element;
use crate::simd::{Dot, Simd};

/// Numbers that a row of `n` elements needs to work in: its block maxima, and half as many.
pub const fn apply_len(n: usize) -> usize {
    let maxima = maxima_len(n, BLOCK);
    maxima + maxima / 2
}

/// Elements among which the k-th largest is found without digits.
const FEW: usize = 1024;

/// A row of ApplyTopKTopP.
pub struct ApplyTopKTopP<'a, T> {
    /// At least one element.
    pub row: &'a [T],
    /// How many top-k keeps, at least 1, with all equals of the last; the length of the row, or more, for all.
    pub k: usize,
    /// Top-p; NaN for none.
    pub p: f32,
    /// As long as the row.
    pub output: &'a mut [T],
    /// As long as [`apply_len`] says; need not be initialised.
    pub work: &'a mut [f32],
}

/// What stays: all above `value`, and its equals but the first `skip`.
#[derive(Clone, Copy)]
struct Kept {
    value: f32,
    skip: usize,
}

/// Values in their order: NaN as -inf, -0 as +0.
#[inline(always)]
fn without_nan<S: Simd>(s: S, v: S::F32) -> S::F32 {
    s.add(s.max(v, s.splat(f32::NEG_INFINITY)), s.splat(0.0))
}

/// Unsigned, ascending with values [`without_nan`]: digits have no sign.
#[inline(always)]
fn ascending<S: Simd>(s: S, v: S::F32) -> S::I32 {
    s.xor(order(s, s.bits(v)), s.splat_i32(i32::MIN))
}

/// Where a sum is reached.
struct Reached {
    value: f32,
    /// The sum of all smaller values.
    before: u64,
    /// The sum of its equals.
    equals: u64,
}

/// The first value, from below, at which the sum of weights is `enough`; none if it never is. Values below `floor` weigh `before`.
#[inline(always)]
fn reach<S: Simd, T: Element>(
    s: S,
    row: &[T],
    floor: f32,
    mut before: u64,
    weigh: impl Fn(S::F32) -> [u64; 16],
    enough: impl Fn(u64) -> bool,
) -> Option<Reached> {
    let floor = s.splat(floor);
    let (mut known, mut found, mut equals) = (0i32, 0i32, 0);
    for (shift, bits) in [(21, 11), (10, 11), (0, 10)] {
        let mut sums = [0u64; 2048];
        let digit = (1usize << bits) - 1;
        let (mask, prefix) = (s.splat_i32(known), s.splat_i32(found));
        vectors(
            row.len(),
            #[inline(always)]
            |span| {
                let v = without_nan(s, span.load(s, row, T::NEG_INFINITY));
                let order = ascending(s, v);
                let here = s.both(s.le(floor, v), s.eq_i32(s.and(order, mask), prefix));
                let mut hits = u32::from(s.mask_bits(here)) & ((1 << span.len) - 1);
                if hits != 0 {
                    let mut orders = [0; 16];
                    s.store_i32(order, &mut orders);
                    let weights = weigh(v);
                    while hits != 0 {
                        let lane = hits.trailing_zeros() as usize;
                        hits &= hits - 1;
                        sums[orders[lane] as u32 as usize >> shift & digit] += weights[lane];
                    }
                }
            },
        );
        let first = sums.iter().position(
            #[inline(always)]
            |&sum| {
                let within = enough(before + sum);
                if within {
                    equals = sum;
                } else {
                    before += sum;
                }
                within
            },
        )?;
        found |= ((first as u32) << shift) as i32;
        known |= ((digit as u32) << shift) as i32;
    }
    // Back from the order that counts from below.
    Some(Reached { value: ascending_to_value(found ^ i32::MIN), before, equals })
}

/// How many elements are `value`, and how many are above it.
#[inline(always)]
fn count<S: Simd, T: Element>(s: S, row: &[T], value: f32) -> (usize, usize) {
    let (value, mut equals, mut above) = (s.splat(value), 0, 0);
    vectors(
        row.len(),
        #[inline(always)]
        |span| {
            let v = without_nan(s, span.load(s, row, T::NEG_INFINITY));
            let hits = |mask| (u32::from(s.mask_bits(mask)) & ((1 << span.len) - 1)).count_ones() as usize;
            equals += hits(s.eq(value, v));
            above += hits(s.lt(value, v));
        },
    );
    (equals, above)
}

/// A value that exactly the k largest reach, or the k-th with its equals; `None` where more than [`FEW`] elements reach `floor`. At
/// least k do.
#[inline(always)]
fn kth_of_few<S: Simd, T: Element>(s: S, row: &[T], k: usize, maxima: &[f32], floor: f32) -> Option<f32> {
    let (mut few, mut n) = ([0.0; FEW + BLOCK + 16], 0);
    for (block, _) in row.chunks(BLOCK).zip(maxima).filter(|&(_, &max)| max >= floor) {
        vectors(
            block.len(),
            #[inline(always)]
            |span| {
                let v = without_nan(s, span.load(s, block, T::NEG_INFINITY));
                let hits = s.both(s.le(s.splat(floor), v), s.gt_i32(s.splat_i32(span.len as i32), lanes(s)));
                let to = few[n..].first_chunk_mut::<16>().expect("room");
                n += s.compress(hits, s.bits(v), bytemuck::cast_mut(to));
            },
        );
        if n > FEW {
            return None;
        }
    }
    Some(threshold(s, &few[..n], k, 0).0)
}

/// The k-th largest value, or one that the same elements reach.
#[inline(always)]
fn kth<S: Simd, T: Element>(s: S, row: &[T], k: usize, maxima: &[f32], folded: &mut [f32]) -> f32 {
    s.apart(
        #[inline(always)]
        move || {
            // At least k elements reach it.
            let floor = bound(s, maxima, k, folded);
            if let Some(kth) = kth_of_few(s, row, k, maxima, floor) {
                return kth;
            }
            // Where fewer are above, it is the k-th, and that many equals need no digits.
            let (equals, above) = count(s, row, floor);
            if above < k {
                return floor;
            }
            let below = row.len() - equals - above;
            let rank = (row.len() - k) as u64;
            let reached = reach(
                s,
                row,
                floor,
                below as u64,
                #[inline(always)]
                |_| [1; 16],
                #[inline(always)]
                |sum| sum > rank,
            );
            reached.map_or(
                floor,
                #[inline(always)]
                |reached| reached.value,
            )
        },
    )
}

/// Probabilities of what top-k left.
#[derive(Clone, Copy)]
struct Share {
    /// Below it nothing has any.
    least: f32,
    max: f32,
    sum: f32,
}

impl Share {
    #[inline(always)]
    fn exp<S: Simd>(&self, s: S, v: S::F32) -> S::F32 {
        let stays = s.le(s.splat(self.least), v);
        // Behind top-k nearly every vector has nothing left.
        if s.mask_bits(stays) == 0 {
            return s.splat(0.0);
        }
        s.select(stays, exp_below_overflow(s, s.sub(v, s.splat(self.max))), s.splat(0.0))
    }

    #[inline(always)]
    fn of<S: Simd>(&self, s: S, v: S::F32) -> S::F32 {
        s.div(self.exp(s, v), s.splat(self.sum))
    }

    #[inline(always)]
    fn lanes<S: Simd>(&self, s: S, v: S::F32) -> [f32; 16] {
        let mut lanes = [0.0; 16];
        s.store(self.of(s, v), &mut lanes);
        lanes
    }

    /// The smallest value whose probability is not 0: they do not fall where values rise.
    #[inline(always)]
    fn first_positive<S: Simd>(&self, s: S) -> f32 {
        let (_, first) = bisect(
            value_to_ascending(f32::NEG_INFINITY),
            value_to_ascending(self.max),
            #[inline(always)]
            |value| self.lanes(s, s.splat(value))[0] > 0.0,
        );
        first
    }
}

/// What top-p leaves of the elements from `least` on, 0 < p; `max` is finite.
#[inline(always)]
fn nucleus<S: Simd, T: Element>(s: S, row: &[T], least: f32, max: f32, t: f32) -> Kept {
    s.apart(
        #[inline(always)]
        move || {
            let mut share = Share { least, max, sum: 1.0 };
            let sum = row_sum(
                s,
                row.len(),
                #[inline(always)]
                |span| share.exp(s, without_nan(s, span.load(s, row, T::NEG_INFINITY))),
            );
            share.sum = sum as f32;
            if t == 0.0 {
                return Kept { value: share.first_positive(s).max(least), skip: 0 };
            }
            // All below it together have less than t: one part in 10^3 is more than the roundings of the function, a unit for each
            // element more than those of masses.
            let n = row.len() as f64;
            let spare = (f64::from(t) - n / ONE) * f64::from(share.sum) / n;
            let floor = if spare > 0.0 { (f64::from(max) + libm::log(spare) - 1e-3) as f32 } else { f32::NEG_INFINITY };
            // Nor has anything below what top-k left.
            let floor = if floor < least { least } else { floor };
            let (mut low, mut others) = (Total::new(s), 0);
            vectors(
                row.len(),
                #[inline(always)]
                |span| {
                    let v = without_nan(s, span.load(s, row, T::NEG_INFINITY));
                    // Behind a tail: exp(-inf) = 0.
                    let below = s.lt(v, s.splat(floor));
                    if s.mask_bits(s.both(below, s.le(s.splat(least), v))) != 0 {
                        low.add(s, s.select(below, share.of(s, v), s.splat(0.0)));
                    }
                    others |= s.mask_bits(s.differ(below, s.lt(v, s.splat(max)))) & (u32::MAX >> (32 - span.len)) as u16;
                },
            );
            // Shares add up to about 1.
            let before = low.get(s) as u64;
            let enough = |mass| running_sum(mass) > t;
            let reached = if others == 0 {
                // From the floor on there is but one value, and no digit to look for.
                let equals = count(s, row, max).0 as u64 * mass(share.lanes(s, s.splat(max))[0]);
                enough(before + equals).then_some(Reached { value: max, before, equals })
            } else {
                reach(
                    s,
                    row,
                    floor,
                    before,
                    #[inline(always)]
                    |v| share.lanes(s, v).map(mass),
                    enough,
                )
            };
            let Some(Reached { value, before, equals }) = reached else { return last(s, row, max) };
            let each = mass(share.lanes(s, s.splat(value))[0]);
            // Equals up to the first whose running sum is above t.
            let (mut low, mut high) = (0, equals / each.max(1));
            while low < high {
                let middle = (low + high) / 2;
                if enough(before + (middle + 1) * each) { high = middle } else { low = middle + 1 }
            }
            Kept { value, skip: low as usize }
        },
    )
}

/// The last of the largest.
#[inline(always)]
fn last<S: Simd, T: Element>(s: S, row: &[T], max: f32) -> Kept {
    Kept { value: max, skip: count(s, row, max).0 - 1 }
}

impl<T: Element> Kernel for ApplyTopKTopP<'_, T> {
    type Output = ();
    const DOT: bool = false;
    per_element!(run_apply_top_k_top_p);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let ApplyTopKTopP { row, k, p, output, work } = self;
        let all = Kept { value: f32::NEG_INFINITY, skip: 0 };
        let (maxima, folded) = work.split_at_mut(maxima_len(row.len(), BLOCK));
        let summary = block_maxima::<S, T, BLOCK>(s, row, maxima, false);
        let mut kept = all;
        if k < row.len() {
            kept.value = kth(s, row, k, maxima, folded);
        }
        let t = 1.0 - p;
        if !summary.infinite && summary.max > f32::NEG_INFINITY {
            if p <= 0.0 {
                kept = last(s, row, summary.max);
            } else if t >= 0.0 {
                kept = nucleus(s, row, kept.value, summary.max, t);
            }
        }
        copy(s, row, kept, output);
    }
}

/// Copies what stays, bit for bit; -inf elsewhere.
#[inline(always)]
fn copy<S: Simd, T: Element>(s: S, row: &[T], kept: Kept, output: &mut [T]) {
    if kept.value == f32::NEG_INFINITY {
        output.copy_from_slice(row);
        return;
    }
    let value = s.splat(kept.value);
    let mut skip = kept.skip;
    vectors(
        row.len(),
        #[inline(always)]
        |span| {
            let found = span.load(s, row, T::NEG_INFINITY);
            let v = without_nan(s, found);
            let stays = s.le(value, v);
            // Numbers of 16 bits would have to be narrowed again, which takes longer than to copy them.
            if const { size_of::<T>() == size_of::<f32>() } && skip == 0 {
                return span.store(s, s.select(stays, found, s.splat(f32::NEG_INFINITY)), output);
            }
            let mut bits = u32::from(s.mask_bits(stays));
            if skip > 0 {
                let mut equals = u32::from(s.mask_bits(s.eq(value, v)));
                while equals != 0 && skip > 0 {
                    bits &= !(equals & equals.wrapping_neg());
                    equals &= equals - 1;
                    skip -= 1;
                }
            }
            let (from, to) = (&row[span.at..span.at + span.len], &mut output[span.at..span.at + span.len]);
            for i in 0..span.len {
                to[i] = if bits >> i & 1 == 1 { from[i] } else { T::NEG_INFINITY };
            }
        },
    );
}
