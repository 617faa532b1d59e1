//! The value at which a sum over the elements of a row, smaller ones first, reaches a target: of ones, or of masses.
//!
//! A sample tells about where: one pass adds up what lies below a window of values and lists what lies in it, and in the list the same
//! question is a small one. If the list has no room for all of it, what it has is the next sample. Where a sample was wrong, digits of
//! the values' bits answer: sums by digit, the digit in which the target is reached, the same within that digit. A look costs an element
//! a load, two comparisons and two compressions, and what lies below its exponential; digits cost three walks, an element at a time.

mod sums;
pub use sums::{Masses, Ones, Sums};

use super::blocks::BLOCK;
use super::key::{ascending_to_value, order};
use super::samples::{SAMPLE, quantile, sample, weight_from};
use super::select::List;
use super::{Span, first_lanes, hits, vectors};
use crate::element::Element;
use crate::simd::Simd;

/// Where a target is reached.
#[derive(Clone, Copy)]
pub struct Reached {
    /// The value.
    pub value: f32,
    /// The sum of all smaller ones.
    pub before: u64,
}

/// Values in their order: NaN as -inf, -0 as +0.
#[inline(always)]
pub fn without_nan<S: Simd>(s: S, v: S::F32) -> S::F32 {
    s.add(s.max(v, s.splat(f32::NEG_INFINITY)), s.splat(0.0))
}

/// Unsigned, ascending with values [`without_nan`]: digits have no sign.
#[inline(always)]
fn ascending<S: Simd>(s: S, v: S::F32) -> S::I32 {
    s.xor(order(s, s.bits(v)), s.splat_i32(i32::MIN))
}

/// How many elements are `value`, and how many are above it. The maxima are those of the row.
#[inline(always)]
pub fn count<S: Simd, T: Element>(s: S, row: &[T], maxima: &[f32], value: f32) -> (usize, usize) {
    let (all, mut equals, mut above) = (s.splat(value), 0, 0);
    for (block, _) in row.chunks(BLOCK).zip(maxima).filter(|&(_, &max)| max >= value) {
        vectors(
            block.len(),
            #[inline(always)]
            |span| {
                let v = without_nan(s, span.load(s, block, T::NEG_INFINITY));
                equals += hits(s, s.eq(all, v), span.len).count_ones() as usize;
                above += hits(s, s.lt(all, v), span.len).count_ones() as usize;
            },
        );
    }
    (equals, above)
}

/// The question, for elements from `least` on.
#[derive(Clone, Copy)]
pub struct Reach<W> {
    /// What to add up.
    pub sums: W,
    /// The least element that is added.
    pub least: f32,
    /// The sum to begin with: of all below `least`, where these count.
    pub before: u64,
    /// The least sum that is enough, more than `before`.
    pub target: u64,
}

/// Up to so many elements are sorted.
const FEW: usize = 512;

/// Windows that are tried before digits.
const LOOKS: usize = 3;

/// What a look at a window of values found.
struct Seen {
    /// The sum of what lies below it.
    below: u64,
    /// How many elements lie in it.
    inside: usize,
    /// How many of these are in the list, the first ones.
    listed: usize,
}

impl<W: Sums> Reach<W> {
    /// The value at which the target is reached; none if it is not. What is in the list is lost.
    #[inline(never)]
    pub fn within<S: Simd, T: Element>(self, s: S, row: &[T], list: &mut List<'_>) -> Option<Reached> {
        let half = list.values.len() / 2;
        if half < FEW {
            return self.by_digits(s, row);
        }
        if row.len() <= FEW {
            return self.of_few(s, row, list);
        }
        let (front, values) = list.values.split_at_mut(half);
        let mut back = List { values, indices: &mut list.indices[half..] };
        let (mut rest, mut window) = (self, self.guess(s, row, row.len(), f32::INFINITY, &mut back));
        for _ in 0..LOOKS {
            let Seen { below, inside, listed } = rest.look(s, row, window, front);
            let before = rest.before + below;
            if before >= self.target {
                break;
            }
            let [low, high] = window;
            rest = Reach { least: low, before, ..self };
            if low == high {
                let each = self.sums.each(s, s.splat(low))[0];
                if before + each * inside as u64 >= self.target {
                    return Some(Reached { value: low, before });
                }
                break;
            }
            if listed == inside {
                let found = rest.within(s, &front[..listed], &mut back);
                if found.is_some() {
                    return found;
                }
                break;
            }
            // The first of the window tell about all of it; where the row rises or falls they mislead.
            window = rest.guess(s, &front[..listed], inside, high, &mut back);
        }
        // A sample was wrong.
        rest.by_digits(s, row)
    }

    /// A window of values that a sample of `part` suggests, both ends in it. The part stands for `n` elements, none above `most`.
    #[inline(always)]
    fn guess<S: Simd, T: Element>(self, s: S, part: &[T], n: usize, most: f32, list: &mut List<'_>) -> [f32; 2] {
        s.apart(
            #[inline(always)]
            move || {
                let taken = sample(s, part, SAMPLE, list);
                let half = list.values.len() / 2;
                let (values, weights) = list.values.split_at_mut(half);
                let (values, weights) = (&mut values[..taken], &mut weights[..taken]);
                weights.copy_from_slice(values);
                self.sums.about(s, weights);
                let squares = bytemuck::cast_slice_mut(&mut list.indices[..taken]);
                for ((v, w), square) in values.iter_mut().zip(&mut *weights).zip(&mut *squares) {
                    *w = if *v >= self.least { *w } else { 0.0 };
                    *square = *w * *w;
                    // Smaller ones first.
                    *v = -*v;
                }
                let (values, weights, squares) = (&*values, &*weights, &*squares);
                let whole = weight_from(s, values, weights, f32::NEG_INFINITY);
                let target = ((self.target - self.before) as f64 / W::UNIT * taken as f64 / n as f64) as f32;
                // Of the negated values: up from the smallest of the row.
                let middle = quantile(s, values, weights, (target / whole).min(1.0), 0.03);
                let variance = weight_from(s, values, squares, middle) - target * target / taken as f32;
                // Three standard deviations of the sum of what is smaller, and what either end may be off by, a sixteenth.
                let off = 3.2 * libm::sqrtf(variance.max(0.0));
                let [low, high] = [target - off, target + off];
                let slack = |sum: f32| off / (16.0 * sum);
                let low = if low > 0.0 { -quantile(s, values, weights, low / whole, slack(low)) } else { self.least };
                let high = if high < whole { -quantile(s, values, weights, high / whole, slack(high)) } else { most };
                // -0 as +0.
                [low.max(self.least) + 0.0, high.clamp(self.least, most) + 0.0]
            },
        )
    }

    /// Adds up what lies below a window, and lists what lies in it, as far as the list has room.
    #[inline(always)]
    fn look<S: Simd, T: Element>(self, s: S, row: &[T], [low, high]: [f32; 2], list: &mut [f32]) -> Seen {
        const PIECE: usize = 4096;
        s.apart(
            #[inline(always)]
            move || {
                let [least, low, high] = [self.least, low, high].map(|bound| s.splat(bound));
                let (mut below, mut inside, mut listed) = (0, 0, 0);
                let mut lower = [0.0; PIECE + 16];
                for part in row.chunks(PIECE) {
                    let mut n = 0;
                    vectors(
                        part.len(),
                        #[inline(always)]
                        |span| {
                            let v = without_nan(s, span.load(s, part, T::NEG_INFINITY));
                            let mut added = s.both(s.le(least, v), s.le(v, high));
                            if span.len < 16 {
                                added = s.both(added, first_lanes(s, span.len));
                            }
                            let within = s.both(added, s.le(low, v));
                            let to = lower[n..].first_chunk_mut::<16>().expect("room");
                            n += s.compress(s.differ(added, within), s.bits(v), bytemuck::cast_mut(to));
                            inside += match list[listed..].first_chunk_mut::<16>() {
                                Some(to) => {
                                    let found = s.compress(within, s.bits(v), bytemuck::cast_mut(to));
                                    listed += found;
                                    found
                                }
                                None => s.mask_bits(within).count_ones() as usize,
                            };
                        },
                    );
                    below += self.sums.all(s, &lower[..n]);
                }
                Seen { below, inside, listed }
            },
        )
    }

    /// By sorting.
    #[inline(always)]
    fn of_few<S: Simd, T: Element>(self, s: S, row: &[T], list: &mut List<'_>) -> Option<Reached> {
        s.apart(
            #[inline(always)]
            move || {
                let n = row.len();
                vectors(
                    n,
                    #[inline(always)]
                    |span| span.store(s, without_nan(s, span.load(s, row, T::NEG_INFINITY)), list.values),
                );
                list.indices[..n].fill(0);
                list.sort(s, n);
                let values = &list.values[..n];
                let mut each = [0; FEW];
                for (each, at) in each.as_chunks_mut().0.iter_mut().zip((0..n).step_by(16)) {
                    *each = self.sums.each(s, Span { at, len: 16.min(n - at) }.load(s, values, f32::NEG_INFINITY));
                }
                let (mut before, mut end) = (self.before, n);
                while end > 0 {
                    let value = values[end - 1];
                    let equals = values[..end].iter().rev().take_while(|&&v| v == value).count();
                    let sum = before + each[end - 1] * equals as u64;
                    if value >= self.least {
                        if sum >= self.target {
                            return Some(Reached { value, before });
                        }
                        before = sum;
                    }
                    end -= equals;
                }
                None
            },
        )
    }

    /// By digits.
    #[inline(always)]
    fn by_digits<S: Simd, T: Element>(self, s: S, row: &[T]) -> Option<Reached> {
        s.apart(
            #[inline(always)]
            move || {
                let Reach { sums, least, mut before, target } = self;
                let least = s.splat(least);
                let (mut known, mut found) = (0i32, 0i32);
                for (shift, bits) in [(21, 11), (10, 11), (0, 10)] {
                    let mut by_digit = [0u64; 2048];
                    let digit = (1usize << bits) - 1;
                    let (mask, prefix) = (s.splat_i32(known), s.splat_i32(found));
                    vectors(
                        row.len(),
                        #[inline(always)]
                        |span| {
                            let v = without_nan(s, span.load(s, row, T::NEG_INFINITY));
                            let order = ascending(s, v);
                            let here = s.both(s.le(least, v), s.eq_i32(s.and(order, mask), prefix));
                            let mut hits = hits(s, here, span.len);
                            if hits != 0 {
                                let mut orders = [0; 16];
                                s.store_i32(order, &mut orders);
                                let each = sums.each(s, v);
                                while hits != 0 {
                                    let lane = hits.trailing_zeros() as usize;
                                    hits &= hits - 1;
                                    by_digit[orders[lane] as u32 as usize >> shift & digit] += each[lane];
                                }
                            }
                        },
                    );
                    let first = by_digit.iter().position(
                        #[inline(always)]
                        |&sum| {
                            let within = before + sum >= target;
                            if !within {
                                before += sum;
                            }
                            within
                        },
                    )?;
                    found |= ((first as u32) << shift) as i32;
                    known |= ((digit as u32) << shift) as i32;
                }
                // Back from the order that counts from below.
                Some(Reached { value: ascending_to_value(found ^ i32::MIN), before })
            },
        )
    }
}

#[cfg(test)]
mod tests;
