//! The race among sorted survivors too many to sort: only the ranks that can still win are located.
//!
//! A histogram over the values tells which ranks fall into which narrow range of probabilities. With the smallest noise of these ranks
//! every range has a most and a least that its winner can score; the few ranges whose most reaches the greatest least are
//! made lists, or split again.

use core::array;

use super::key::{ascending_to_value, bisect, clean, value_to_ascending};
use super::race::{Noise, first_place, race};
use super::select::{List, next_above, next_below};
use super::shortlist::winner;
use super::softmax::Weights;
use super::survivors::Above;
use super::{Span, first_lanes, lanes, vectors};
use crate::element::Element;
use crate::math::constants::ROUND;
use crate::simd::Simd;

/// Ranges of a histogram.
const BINS: usize = 1024;
/// What is sorted rather than split.
const FEW: usize = 4096;
/// Histograms within one another, at most: each waits with its numbers for those within, and mostly two separate what is left.
const HISTOGRAMS: usize = 2;

/// Which range a value falls into: the first holds the largest.
#[derive(Clone, Copy)]
struct Scale {
    most: f32,
    per_unit: f32,
}

impl Scale {
    fn new(least: f32, most: f32, weights: &Weights) -> Scale {
        // Logits further down have no probability.
        let range = (most - least).min(if matches!(weights, Weights::Given) { f32::MAX } else { 100.0 });
        Scale { most, per_unit: (BINS - 1) as f32 / range }
    }

    #[inline(always)]
    fn bins<S: Simd>(self, s: S, v: S::F32) -> S::I32 {
        let at = s.mul(s.sub(s.splat(self.most), v), s.splat(self.per_unit));
        let at = s.min(at, s.splat((BINS - 1) as f32));
        s.sub_i32(s.bits(s.add(at, s.splat(ROUND))), s.splat_i32(ROUND.to_bits() as i32))
    }

    /// [`Scale::bins`] of one.
    fn bin(self, value: f32) -> usize {
        let at = (self.most - value) * self.per_unit;
        let last = (BINS - 1) as f32;
        let at = if at < last { at } else { last };
        ((at + ROUND).to_bits() - ROUND.to_bits()) as usize
    }

    /// The largest value, up to `most`, that is in range `bin` or behind it; -inf if none is.
    fn largest(self, bin: usize) -> f32 {
        bisect(value_to_ascending(f32::NEG_INFINITY), value_to_ascending(self.most) + 1, |value| self.bin(value) < bin).0
    }
}

/// Survivors within a range of values.
#[derive(Clone, Copy)]
struct Part {
    kept: Above,
    most: f32,
}

impl Part {
    /// What of it is kept from `low` on.
    fn above(self, low: f32) -> Above {
        if low > self.kept.value { Above::from(low) } else { self.kept }
    }

    #[inline(always)]
    fn mask<S: Simd>(&mut self, s: S, v: S::F32, len: usize) -> S::Mask {
        s.both(self.kept.mask(s, v, len), s.le(v, s.splat(self.most)))
    }
}

/// How many, the least and the greatest.
#[inline(always)]
fn extent<S: Simd, T: Element>(s: S, row: &[T], part: Part) -> (usize, f32, f32) {
    s.apart(
        #[inline(always)]
        move || {
            let mut part = part;
            let (mut n, mut top, mut bottom) = (0, s.splat(f32::NEG_INFINITY), s.splat(f32::NEG_INFINITY));
            vectors(
                row.len(),
                #[inline(always)]
                |span| {
                    let v = clean(s, span.load(s, row, T::NEG_INFINITY));
                    let m = part.mask(s, v, span.len);
                    n += s.mask_bits(m).count_ones() as usize;
                    top = s.max(s.select(m, v, s.splat(f32::NEG_INFINITY)), top);
                    let below = s.select(m, s.sub(s.splat(0.0), v), s.splat(f32::NEG_INFINITY));
                    bottom = s.max(below, bottom);
                },
            );
            (n, 0.0 - s.reduce_max(bottom), s.reduce_max(top))
        },
    )
}

#[inline(always)]
fn collect<S: Simd, T: Element>(s: S, row: &[T], part: Part, list: &mut List<'_>) -> usize {
    s.apart(
        #[inline(always)]
        move || {
            // Copies, which no store to the list can change.
            let (mut part, mut list, mut n) = (part, list.reborrow(), 0);
            vectors(
                row.len(),
                #[inline(always)]
                |Span { at, len }| {
                    let v = clean(s, Span { at, len }.load(s, row, T::NEG_INFINITY));
                    let m = part.mask(s, v, len);
                    n = list.push(s, n, m, v, s.add_i32(lanes(s), s.splat_i32(at as i32)));
                },
            );
            n
        },
    )
}

/// How many fall into each range.
#[inline(always)]
fn histogram<S: Simd, T: Element>(s: S, row: &[T], part: Part, scale: Scale) -> [u32; BINS] {
    s.apart(
        #[inline(always)]
        move || {
            let (mut part, scale) = (part, scale);
            // Neighbours often share a range: lanes take turns between two tables, so that an addition seldom waits for the one before.
            // What is outside counts behind the ranges.
            let (mut counts, mut others) = ([0; 2 * BINS], [0; 2 * BINS]);
            vectors(
                row.len(),
                #[inline(always)]
                |span| {
                    let v = clean(s, span.load(s, row, T::NEG_INFINITY));
                    let m = part.mask(s, v, span.len);
                    let mut bins = [0; 16];
                    s.store_i32(s.select_i32(m, scale.bins(s, v), s.splat_i32(BINS as i32)), &mut bins);
                    for [even, odd] in bins.as_chunks::<2>().0 {
                        counts[*even as usize % (2 * BINS)] += 1;
                        others[*odd as usize % (2 * BINS)] += 1;
                    }
                },
            );
            array::from_fn(|bin| counts[bin] + others[bin])
        },
    )
}

/// The smallest noise of each range: of as many ranks as it counts, from `first` on. NaN where there is nothing else.
#[inline(never)]
fn least_noise<S: Simd>(s: S, noise: &Noise<'_>, counts: &[u32; BINS], first: usize) -> [f32; BINS] {
    let mut all = [1.0; BINS];
    if let Noise::Drawn { numbers, first: element } = *noise {
        numbers.least(s, element + first as u64, counts, &mut all);
        return all;
    }
    s.vectorize(
        #[inline(always)]
        || {
            let mut rank = first;
            for (all, &n) in all.iter_mut().zip(counts) {
                let (n, noise) = (n as usize, noise.from(rank));
                let (mut least, mut numbers) = (s.splat(f32::NEG_INFINITY), 0);
                vectors(
                    n,
                    #[inline(always)]
                    |span| {
                        let v = s.sub(s.splat(0.0), noise.at(s, span));
                        let inside = first_lanes(s, span.len);
                        numbers |= s.mask_bits(s.eq(v, v)) & s.mask_bits(inside);
                        least = s.max(s.select(inside, v, s.splat(f32::NEG_INFINITY)), least);
                    },
                );
                *all = if numbers == 0 { f32::NAN } else { 0.0 - s.reduce_max(least) };
                rank += n;
            }
        },
    );
    all
}

/// The place of a run of equals that wins, and its score.
#[inline(always)]
fn race_run<S: Simd>(s: S, n: usize, pr: f32, noise: &Noise<'_>) -> (usize, f32) {
    s.apart(
        #[inline(always)]
        move || {
            first_place(
                s,
                n,
                noise.floor(),
                #[inline(always)]
                |span| s.div(s.splat(pr), noise.at(s, span)),
            )
        },
    )
}

/// The index of the element equal to `value` that has `before` equals before it.
#[inline(always)]
fn nth_equal<S: Simd, T: Element>(s: S, row: &[T], value: f32, mut before: usize) -> usize {
    s.apart(
        #[inline(always)]
        move || {
            for at in (0..row.len()).step_by(16) {
                let v = clean(s, Span { at, len: 16.min(row.len() - at) }.load(s, row, T::NEG_INFINITY));
                let mut hits = s.mask_bits(s.eq(v, s.splat(value)));
                if before < hits.count_ones() as usize {
                    for _ in 0..before {
                        hits &= hits - 1;
                    }
                    return at + hits.trailing_zeros() as usize;
                }
                before -= hits.count_ones() as usize;
            }
            0
        },
    )
}

/// The index of the winner among what is kept of a row; `first` is the first of its largest: where it stands, and its value.
#[inline(always)]
pub fn race_sorted<S: Simd, T: Element>(
    s: S,
    row: &[T],
    weights: Weights,
    noise: Noise<'_>,
    kept: Above,
    first: (usize, f32),
    list: &mut List<'_>,
) -> usize {
    let (token, most) = first;
    let mut ranks = Ranks { row, weights, noise, token, score: noise.floor() };
    ranks.race(s, kept, most, list);
    ranks.token
}

/// The row, and who leads.
struct Ranks<'a, T> {
    row: &'a [T],
    weights: Weights,
    /// By rank.
    noise: Noise<'a>,
    /// Who leads, at first the best.
    token: usize,
    /// With what.
    score: f32,
}

impl<T: Element> Ranks<'_, T> {
    fn meets(&mut self, token: usize, score: f32) {
        if score > self.score {
            (self.token, self.score) = (token, score);
        }
    }

    /// Lets all survivors race, none of which is above `most`.
    #[inline(always)]
    fn race<S: Simd>(&mut self, s: S, kept: Above, most: f32, list: &mut List<'_>) {
        let part = Part { kept, most };
        if kept.value > f32::NEG_INFINITY && kept.value < most {
            if let Some(token) = winner(s, self.row, &self.weights, &self.noise, kept, most, list) {
                self.token = token;
                return;
            }
            return self.split(s, part, (kept.value, most), 0, 0, list);
        }
        let (n, ..) = extent(s, self.row, part);
        self.part(s, part, n, 0, 0, list);
    }

    /// The race of the `n` survivors in a range of values, the first of which has the rank `first`.
    #[inline(never)]
    fn part<S: Simd>(&mut self, s: S, part: Part, n: usize, first: usize, depth: usize, list: &mut List<'_>) {
        if let Some(range) = self.race_few(s, part, n, first, list) {
            if depth < HISTOGRAMS {
                self.split(s, part, range, first, depth, list)
            } else {
                self.halve(s, part, range, first, list)
            }
        }
    }

    /// The same, if they are few, or equal; else their least and greatest value are returned.
    #[inline(never)]
    fn race_few<S: Simd>(&mut self, s: S, part: Part, n: usize, first: usize, list: &mut List<'_>) -> Option<(f32, f32)> {
        if n == 0 {
            return None;
        }
        if n <= FEW && n + 16 <= list.values.len() / 2 {
            let n = collect(s, self.row, part, list);
            list.sort(s, n);
            self.weights.apply(s, &mut list.values[..n]);
            let (place, score) = race(s, &list.values[..n], &self.noise.from(first));
            self.meets(list.indices[place] as usize, score);
            return None;
        }
        let (_, least, most) = extent(s, self.row, part);
        if least < most {
            return Some((least, most));
        }
        let (place, score) = race_run(s, n, self.weights.of_one(s, most), &self.noise.from(first));
        if score > self.score {
            self.meets(nth_equal(s, self.row, most, place), score);
        }
        None
    }

    /// [`Ranks::part`] of values that histograms do not separate, which is rare: the upper half of what is left, as often halved as it
    /// takes. A loop, since that may be thirty times.
    #[inline(never)]
    fn halve<S: Simd>(&mut self, s: S, mut rest: Part, mut range: (f32, f32), mut first: usize, list: &mut List<'_>) {
        loop {
            let (mut upper, mut limits) = (rest, range);
            let (n, least) = loop {
                let (low, high) = (value_to_ascending(limits.0), value_to_ascending(limits.1));
                let middle = ascending_to_value(((i64::from(low) + i64::from(high) + 1) >> 1) as i32);
                upper.kept = upper.above(middle);
                let (n, ..) = extent(s, self.row, upper);
                match self.race_few(s, upper, n, first, list) {
                    Some(narrower) => limits = narrower,
                    None => break (n, middle),
                }
            };
            (rest.most, first) = (next_below(least), first + n);
            let (n, ..) = extent(s, self.row, rest);
            match self.race_few(s, rest, n, first, list) {
                Some(left) => range = left,
                None => return,
            }
        }
    }

    /// [`Ranks::part`] by way of narrower ranges, for values from `least` to `most`.
    #[inline(never)]
    fn split<S: Simd>(&mut self, s: S, part: Part, (least, most): (f32, f32), first: usize, depth: usize, list: &mut List<'_>) {
        let scale = Scale::new(least, most, &self.weights);
        let counts = histogram(s, self.row, part, scale);
        let (floor, limits) = self.limits(s, scale, least, &counts, first);
        let mut rank = first;
        for bin in 0..BINS {
            // The leader stands before the range, and has to be beaten; the floor is what somebody will have, perhaps in here.
            if counts[bin] > 0 && limits[bin] > self.score && limits[bin] >= floor {
                let low = if bin + 1 < BINS { next_above(scale.largest(bin + 1)) } else { f32::NEG_INFINITY };
                let range = Part { kept: part.above(low), most: scale.largest(bin).min(part.most) };
                self.part(s, range, counts[bin] as usize, rank, depth + 1, list);
            }
            rank += counts[bin] as usize;
        }
    }

    /// What somebody scores at least, and the most that the winner of each range can score.
    #[inline(never)]
    fn limits<S: Simd>(&self, s: S, scale: Scale, least: f32, counts: &[u32; BINS], first: usize) -> (f32, [f32; BINS]) {
        let (mut lows, mut highs) = ([0.0; BINS], [0.0; BINS]);
        // Half a range and what rounding may do to a limit.
        let slack = scale.most.abs().max(least.abs()).min(1e30) * f32::EPSILON;
        for bin in 0..BINS {
            let limit = |bin: f32| scale.most - bin / scale.per_unit;
            highs[bin] = (limit(bin as f32 - 0.51) + slack).min(scale.most);
            lows[bin] = if bin == BINS - 1 { least } else { (limit(bin as f32 + 0.51) - slack).max(least) };
        }
        self.weights.apply(s, &mut highs);
        self.weights.apply(s, &mut lows);
        let noise = least_noise(s, &self.noise, counts, first);
        let no_nan = |x: f32, otherwise: f32| if x.is_nan() { otherwise } else { x };
        let mut floor = self.score;
        for bin in 0..BINS {
            // A NaN never wins.
            if counts[bin] == 0 || noise[bin].is_nan() {
                highs[bin] = f32::NEG_INFINITY;
                continue;
            }
            // What is negative scores most with the largest noise, which is not known here, and always less than 0.
            highs[bin] = no_nan(highs[bin].max(0.0) / noise[bin], f32::INFINITY);
            let low = no_nan(lows[bin] / noise[bin], f32::NEG_INFINITY);
            floor = if low > floor { low } else { floor };
        }
        (floor, highs)
    }
}
