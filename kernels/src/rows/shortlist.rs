//! The race among sorted survivors whose weights are close together: few of their ranks can win.
//!
//! The smallest noises name these ranks, a sample of the row tells about which values have them, and one pass proves it: of the likely
//! winner it lists what may have its rank, of each other rank it counts what is too small to win with its noise.

use super::key::{bisect, clean, value_to_ascending};
use super::race::Noise;
use super::samples::{SAMPLE, sample};
use super::select::List;
use super::softmax::Weights;
use super::survivors::Above;
use super::{Span, each_hit, hits, lanes, vectors};
use crate::element::Element;
use crate::philox::Exponential;
use crate::simd::Simd;

/// How many times as heavy as the lightest the heaviest survivor may be.
const CLOSE: f32 = 8.0;
/// Values whose place the pass counts: the end of a list, and one for each rank that does not win.
pub(super) const COUNTS: usize = 6;

/// The index of the winner among what is kept of a row, of which nothing is above `most`; `None` where that is not certain.
#[inline(never)]
pub fn winner<S: Simd, T: Element>(
    s: S,
    row: &[T],
    weights: &Weights,
    noise: &Noise<'_>,
    kept: Above,
    most: f32,
    list: &mut List<'_>,
) -> Option<usize> {
    let (heaviest, lightest) = (weights.of_one(s, most), weights.of_one(s, kept.value));
    let spread = 1.1 * heaviest / lightest;
    // A sample of a longer row leaves more places in doubt than a list takes.
    let suits = (4 * SAMPLE..=16 * list.values.len()).contains(&row.len());
    let close = lightest > 0.0 && spread < CLOSE;
    if !suits || !close {
        return None;
    }
    let ranks = Smallest::of(s, noise, kept.count(s, row), spread)?;
    let likely = Likely::of(s, row, weights, ranks.all(), (kept.value, most), list)?;
    // What it scores at least; the noises that are not among the smallest lose with every weight.
    let score = weights.of_one(s, likely.least) / likely.noise;
    let others_lose = heaviest / ranks.limit() < score;
    if !others_lose {
        return None;
    }
    let (mut values, mut rivals, mut n) = ([f32::INFINITY; COUNTS], [0; COUNTS], 1);
    values[0] = likely.most;
    for &(rank, noise) in ranks.all() {
        if rank != likely.rank && weights.of_one(s, most) / noise >= score {
            *values.get_mut(n)? = largest_below(s, weights, noise, score, (kept.value, most))?;
            rivals[n] = rank;
            n += 1;
        }
    }

    let (above, listed) = look(s, row, values, likely.least, list)?;
    let place = likely.rank.checked_sub(above[0]).filter(|&place| place < listed)?;
    // Unused values have nothing above them.
    above[1..].iter().zip(&rivals[1..]).all(|(above, rank)| above <= rank).then(|| {
        list.cut(s, listed, place + 1);
        let (values, indices) = (&list.values[..=place], &list.indices[..=place]);
        let last = values.iter().fold(f32::INFINITY, |last, &v| last.min(v));
        indices[values.iter().rposition(|&v| v == last).unwrap_or(0)] as usize
    })
}

/// The rank that a sample of the row lets win, and the values that the sample puts about it.
struct Likely {
    rank: usize,
    noise: f32,
    least: f32,
    most: f32,
}

impl Likely {
    #[inline(always)]
    fn of<S: Simd, T: Element>(
        s: S,
        row: &[T],
        weights: &Weights,
        ranks: &[(usize, f32)],
        (least, most): (f32, f32),
        list: &mut List<'_>,
    ) -> Option<Likely> {
        let taken = sample(s, row, SAMPLE, list);
        for (i, index) in list.indices[..taken].iter_mut().enumerate() {
            *index = i as i32;
        }
        list.sort(s, taken);
        let sample = &list.values[..taken];
        let place = |rank: usize| rank * taken / row.len();
        let score = |&(rank, noise): &(usize, f32)| weights.of_one(s, sample[place(rank)]) / noise;
        let &(rank, noise) = ranks.iter().max_by(|a, b| score(a).total_cmp(&score(b)))?;
        // Three standard deviations of a place in the sample, as far as the list has room for them on both sides.
        let (part, place) = (rank as f32 / row.len() as f32, place(rank));
        let off = libm::sqrtf(9.0 * part * (1.0 - part) * taken as f32) as usize + 2;
        let off = off.min(7 * list.values.len() * taken / (16 * row.len()));
        Some(Likely {
            rank,
            noise,
            least: sample.get(place + off).map_or(least, |v| v.max(least)),
            most: place.checked_sub(off).map_or(most, |place| sample[place]),
        })
    }
}

/// The largest value with a weight that loses to `low` with this noise, between one that does and one that does not; `None` if the first
/// does not.
#[inline(never)]
pub(super) fn largest_below<S: Simd>(s: S, weights: &Weights, noise: f32, low: f32, (least, most): (f32, f32)) -> Option<f32> {
    let loses = |value| weights.of_one(s, value) / noise < low;
    let (least, most) = (least + 0.0, most + 0.0);
    loses(least).then(|| bisect(value_to_ascending(least), value_to_ascending(most), |value| !loses(value)).0)
}

/// How many elements are above each value, and a list of those from `least` to the first of the values; `None` without room for it.
#[inline(always)]
pub(super) fn look<S: Simd, T: Element>(
    s: S,
    row: &[T],
    values: [f32; COUNTS],
    least: f32,
    list: &mut List<'_>,
) -> Option<([usize; COUNTS], usize)> {
    s.apart(
        #[inline(always)]
        move || {
            // Copies, which no store to the list can change.
            let (mut list, least, most) = (list.reborrow(), s.splat(least), s.splat(values[0]));
            let (mut counts, mut n, mut fits) = ([s.splat_i32(0); COUNTS], 0, true);
            let mut bounds = [s.splat(f32::INFINITY); COUNTS];
            for (bound, value) in bounds.iter_mut().zip(values) {
                *bound = s.splat(value);
            }
            vectors(
                row.len(),
                #[inline(always)]
                |span| {
                    let v = clean(s, span.load(s, row, T::NEG_INFINITY));
                    for (count, bound) in counts.iter_mut().zip(bounds) {
                        *count = s.add_i32(*count, s.select_i32(s.lt(bound, v), s.splat_i32(1), s.splat_i32(0)));
                    }
                    fits &= n + 16 <= list.values.len();
                    if fits {
                        let m = s.both(s.le(least, v), s.le(v, most));
                        n = list.push(s, n, m, v, s.add_i32(lanes(s), s.splat_i32(span.at as i32)));
                    }
                },
            );
            let mut totals = [0; COUNTS];
            for (total, count) in totals.iter_mut().zip(counts) {
                let mut lanes = [0; 16];
                s.store_i32(count, &mut lanes);
                *total = lanes.iter().sum::<i32>() as usize;
            }
            fits.then_some((totals, n))
        },
    )
}

/// Room for the smallest noises.
const ROOM: usize = 32;

/// Ranks with a noise up to a multiple of the smallest.
struct Smallest {
    ranks: [(usize, f32); ROOM],
    n: usize,
    least: f32,
    spread: f32,
}

impl Smallest {
    /// Of `n` ranks; `None` where there are many, or one is so small that scores would tell nothing.
    #[inline(never)]
    fn of<S: Simd>(s: S, noise: &Noise<'_>, n: usize, spread: f32) -> Option<Smallest> {
        let mut found = Smallest { ranks: [(0, 0.0); ROOM], n: 0, least: f32::INFINITY, spread };
        s.vectorize(
            #[inline(always)]
            || match *noise {
                Noise::Drawn { numbers, first } => {
                    numbers.reaching(
                        s,
                        first,
                        n,
                        i32::MIN,
                        #[inline(always)]
                        |span, words| {
                            found.meets(s, Exponential::of_words(s, words), span);
                            Exponential::least_word(found.limit().into())
                        },
                    );
                }
                noise => vectors(
                    n,
                    #[inline(always)]
                    |span| found.meets(s, noise.at(s, span), span),
                ),
            },
        );
        found.forget();
        (found.least > 1e-20).then_some(found)
    }

    /// The largest noise that is listed.
    #[inline(always)]
    fn limit(&self) -> f32 {
        self.least * self.spread
    }

    fn all(&self) -> &[(usize, f32)] {
        &self.ranks[..self.n]
    }

    /// Takes the noises of the ranks under a span.
    #[inline(always)]
    fn meets<S: Simd>(&mut self, s: S, noise: S::F32, span: Span) {
        each_hit(
            s,
            hits(s, s.le(noise, s.splat(self.limit())), span.len),
            noise,
            #[inline(always)]
            |lane, noise| self.take(span.at + lane, noise),
        );
    }

    #[inline(never)]
    fn take(&mut self, rank: usize, noise: f32) {
        self.least = self.least.min(noise);
        if self.n == ROOM {
            self.forget();
        }
        match self.ranks.get_mut(self.n) {
            Some(to) => (*to, self.n) = ((rank, noise), self.n + 1),
            // Too many: gives up.
            None => self.least = 0.0,
        }
    }

    /// Forgets what is above the limit by now.
    fn forget(&mut self) {
        let (mut n, limit) = (0, self.limit());
        for i in 0..self.n {
            if self.ranks[i].1 <= limit {
                self.ranks[n] = self.ranks[i];
                n += 1;
            }
        }
        self.n = n;
    }
}
