//! Where the mass that is kept of a row ends: by windows of values, for lists longer than what is worth sorting and for rows longer
//! than any list.
//!
//! A window of values holds the cut if its largest entry stays and its smallest does not. What lies above it matters only by its
//! mass, an integer sum in any order; what lies in it is sorted. A first window comes from a sample of the row, and whatever it
//! turns out to be narrows down where the next one has to be.

use super::key::{ascending_to_value, clean, prefix, value_to_ascending};
use super::mass::{End, ONE, Total, bounded, mass, total};
use super::samples::{NEARLY, SAMPLE, Window, quantile};
use super::select::{List, next_above, next_below};
use super::softmax::Weights;
use super::survivors::Above;
use super::threshold::count;
use super::{first_lanes, lanes, vectors};
use crate::element::Element;
use crate::simd::Simd;

/// Where a nucleus ends that is looked for in a list.
pub enum Cut {
    /// Not in the list. The mass of all of it, if that surely stays.
    Beyond(Option<u128>),
    /// At more than one place.
    InDoubt,
    /// Behind so many of those that are sorted.
    At {
        /// Entries that stay.
        kept: usize,
        /// Entries at the front of the list.
        sorted: usize,
    },
}

impl List<'_> {
    /// The first `n` values, at most half of the list, and their weights, which go into its upper half.
    #[inline(always)]
    pub fn weigh<S: Simd>(&mut self, s: S, n: usize, weights: &Weights) -> (&[f32], &mut [f32]) {
        let (values, e) = self.values.split_at_mut(self.values.len() / 2);
        let (values, e) = (&values[..n], &mut e[..n]);
        e.copy_from_slice(values);
        weights.apply(s, e);
        (values, e)
    }

    /// Keeps, of the first `n`, the largest that have about that `part` of all weights, or all if that saves little; returns how
    /// many. The weights stand in the upper half of the list.
    #[inline(always)]
    pub fn keep_weight<S: Simd>(&mut self, s: S, n: usize, part: f32) -> usize {
        if n <= 256 || part > 0.99 {
            return n;
        }
        let (values, e) = self.values.split_at_mut(self.values.len() / 2);
        let kept = count(s, &values[..n], quantile(s, &values[..n], &e[..n], part, NEARLY));
        if kept < n {
            self.cut(s, n, kept);
        }
        kept
    }

    /// Where all of these ends are among the first `n`, at most half of the list. It sorts these to the front, or those of them that
    /// matter. `whole` says that there is nothing else.
    #[inline(always)]
    pub fn nucleus<S: Simd>(&mut self, s: S, n: usize, whole: bool, weights: &Weights, ends: &[End]) -> Cut {
        let (_, e) = self.weigh(s, n, weights);
        let all = total(s, e);
        // What is kept, were the sums exact.
        let part = ends[0].sum() * ONE / all as f64;
        if part > 1.0 && !whole {
            // The sum is rounded before it is compared.
            return Cut::Beyond((part > 1.0 + 1e-6).then_some(all));
        }
        let sorted = self.keep_weight(s, n, 1.002 * part as f32);
        self.sort(s, sorted);
        let (_, e) = self.weigh(s, sorted, weights);
        let kept = ends[0].cut(e, 0);
        if kept == sorted && !(whole && sorted == n) {
            Cut::Beyond((sorted == n).then_some(all))
        } else if ends[1..].iter().any(|end| end.cut(e, 0) != kept) {
            Cut::InDoubt
        } else {
            Cut::At { kept, sorted }
        }
    }
}

/// What is known of a row: all elements from a value on stay, and this is their mass.
#[derive(Clone, Copy)]
pub struct Known {
    /// The value.
    pub from: f32,
    /// The mass.
    pub mass: u128,
}

impl Known {
    /// Where nothing is known of a row of which nothing is above `most`.
    pub fn nothing(most: f32) -> Known {
        Known { from: next_above(most), mass: 0 }
    }
}

/// The question where a row ends that is kept, or the part of one that is below what has the mass `before`.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// What probabilities come from.
    pub weights: &'a Weights,
    /// What is kept.
    pub end: End,
    /// The mass of what is larger than the row.
    pub before: u128,
    /// About the sum of the probabilities of the row.
    pub whole: f32,
    /// The end is not above this.
    pub known: Known,
}

/// What a pass with a window found.
struct Seen {
    /// The mass of all elements above the window.
    above: u128,
    /// The largest element that is not.
    top: f32,
    /// How many elements of the window are in the list: at most half of it.
    listed: usize,
    /// Whether these are all.
    complete: bool,
    /// About the sum of the probabilities in the window.
    whole: f32,
    /// The least element of the window, if it has one.
    bottom: f32,
}

/// Elements whose larger ones are made a list before anything is computed of them.
const PIECE: usize = 1024;

/// One pass over the row with the window from `least` to `most`.
#[inline(always)]
fn look<S: Simd, T: Element>(s: S, row: &[T], weights: &Weights, least: f32, most: f32, list: &mut List<'_>) -> Seen {
    s.apart(
        #[inline(always)]
        move || {
            // Copies, which no store to the list can change.
            let (weights, mut list) = (*weights, list.reborrow());
            let (most, lowest) = (s.splat(most), s.splat(f32::NEG_INFINITY));
            let (least, room) = (Above::from(least), list.values.len() / 2);
            let mut above = Total::new(s);
            let (mut top, mut bottom) = (lowest, lowest);
            let (mut n, mut fits, mut whole) = (0, true, s.splat(0.0));
            let (mut values, mut indices) = ([0.0; PIECE + 16], [0; PIECE + 16]);
            let mut large = List { values: &mut values, indices: &mut indices };
            for (part, start) in row.chunks(PIECE).zip((0..).step_by(PIECE)) {
                let mut found = 0;
                vectors(
                    part.len(),
                    #[inline(always)]
                    |span| {
                        let (mut least, v) = (least, clean(s, span.load(s, part, T::NEG_INFINITY)));
                        top = s.max(s.select(s.lt(most, v), lowest, v), top);
                        let m = least.mask(s, v, span.len);
                        found = large.push(s, found, m, v, s.add_i32(lanes(s), s.splat_i32(start + span.at as i32)));
                    },
                );
                let (values, indices) = (&large.values[..found], &large.indices[..found]);
                vectors(
                    found,
                    #[inline(always)]
                    |span| {
                        let v = span.load(s, values, f32::NEG_INFINITY);
                        let higher = s.lt(most, v);
                        let pr = weights.bounded(s, v);
                        above.add(s, s.select(higher, pr, s.splat(0.0)));
                        let m = s.differ(first_lanes(s, span.len), higher);
                        whole = s.add(whole, s.select(m, pr, s.splat(0.0)));
                        bottom = s.max(bottom, s.select(m, s.sub(s.splat(0.0), v), lowest));
                        if n + 16 <= room {
                            n = list.push(s, n, m, v, span.load_i32(s, indices));
                        } else {
                            fits &= s.mask_bits(m) == 0;
                        }
                    },
                );
            }
            Seen {
                above: above.get(s),
                top: s.reduce_max(top),
                listed: n,
                complete: fits,
                whole: s.reduce_add(whole),
                bottom: 0.0 - s.reduce_max(bottom),
            }
        },
    )
}

/// The middle of two numbers in the order of all numbers.
fn between(low: f32, high: f32) -> f32 {
    ascending_to_value(((i64::from(value_to_ascending(low)) + i64::from(value_to_ascending(high))) >> 1) as i32)
}

/// Where a row ends, of which one stays; `None` where all of it does.
#[inline(never)]
pub fn flat_cut<S: Simd, T: Element>(s: S, row: &[T], asked: Question<'_>, list: &mut List<'_>) -> Option<Above> {
    let Question { weights, end, before, known, .. } = asked;
    // All above `high` stay; the cut is not below `low`.
    let (mut low, mut high) = (f32::NEG_INFINITY, next_below(known.from));
    // What a sample is off by has to have room in the list: of a longer row that is a smaller part.
    let sampled = (row.len() / 32).clamp(SAMPLE, 4 * SAMPLE);
    let Window { mut least, mut most, .. } = asked.guess(s, row, sampled, list);
    (least, most) = (least.min(high), most.min(high));
    loop {
        let Seen { above, top, listed, complete, whole, bottom } = look(s, row, weights, least, most, list);
        let before = before + above;
        let pr = bounded(weights.of_one(s, top));
        if !end.stays(before + u128::from(mass(pr)), pr) {
            low = next_above(most);
            if low > high {
                return Some(Above::from(low));
            }
            (least, most) = (between(low, high), high);
            continue;
        }
        high = top;
        let asked = Question { before, whole, known: Known::nothing(high), ..asked };
        let found = if listed == 0 {
            None
        } else if complete {
            list.end(s, listed, asked)
        } else if least == most {
            let run = Above::from(top).count(s, row) - Above::from(next_above(top)).count(s, row);
            run_end(run, before, pr, end).map(|ties| Above { value: top, ties })
        } else {
            // What is listed tells where in the window to look, not below its least element; if it says nothing new, from the
            // largest on half as many numbers.
            let old = (least, most);
            let half = list.values.len() / 2;
            let (values, e) = list.values.split_at_mut(half);
            let window = asked.quantiles(s, &values[..listed], &mut e[..listed], 0.8 * half as f32);
            (least, most) = (window.least.max(bottom).min(high), window.most.min(high).max(bottom));
            if (least, most) == old {
                least = next_above(between(least, high)).min(high);
            }
            continue;
        };
        if found.is_some() {
            return found;
        }
        if least <= low {
            return (low > f32::NEG_INFINITY).then_some(Above::from(low));
        }
        high = high.min(next_below(least));
        (least, most) = (between(low, high), high);
    }
}

/// How many of `n` equal entries stay, if not all do.
fn run_end(n: usize, before: u128, pr: f32, end: End) -> Option<usize> {
    let kept = prefix(n as u64, |i| end.stays(before + u128::from(mass(pr)) * (u128::from(i) + 1), pr)) as usize;
    (kept < n).then_some(kept)
}

impl List<'_> {
    /// The end of the nucleus among the first `n`, at most half of the list, if it is there. The first stays.
    #[inline(always)]
    fn end<S: Simd>(&mut self, s: S, n: usize, asked: Question<'_>) -> Option<Above> {
        /// What is sorted at once.
        const FEW: usize = 1024;
        let half = self.values.len() / 2;
        if n > FEW && half > 2 * FEW {
            let (_, e) = self.weigh(s, n, asked.weights);
            let whole = (total(s, e) as f64 / ONE) as f32;
            let ((values, e), (_, indices)) = (self.values.split_at_mut(half), self.indices.split_at_mut(half));
            return flat_cut(s, &values[..n], Question { whole, ..asked }, &mut List { values: e, indices });
        }
        self.sort(s, n);
        let (values, e) = self.weigh(s, n, asked.weights);
        let kept = asked.end.cut(e, asked.before);
        let value = values[kept.max(1) - 1];
        let ties = values[..kept].iter().filter(|&&v| v == value).count();
        (kept < n).then_some(Above { value, ties })
    }
}
