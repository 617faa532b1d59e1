//! The exponential race of rows of weights, chunk by chunk: the largest `weight / e`.
//!
//! Its results are keys, so that chunks can be raced in any order and the best, or the k best, are those of the whole row. A number takes
//! far longer to draw than a weight to read, and most weights need none: with the smallest number there is they would lose to what is
//! known already. Of those that are left one comparison of their random words tells which could win.

use super::draw::collect;
use super::key::{key, value_of};
use super::select::look_up_apart;
use super::sort::sort_all;
use super::weights::counted;
use super::{Span, each_hit, first_lanes, hits, lanes, vectors};
use crate::dispatch::{Kernel, compiled_here};
use crate::philox::{Exponential, SMALLEST};
use crate::simd::{Dot, Simd};

/// Weights that are looked at before some of them race.
const AT_ONCE: usize = 1024;

/// The least score that tells anything: times [`SMALLEST`] it is still a normal number, so that this product is exact.
const NORMAL: f32 = 1e-30;

/// Keys of a [`LeaderKeys`].
pub const LEADERS: usize = 16;

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

/// What a racer has to beat.
#[derive(Clone, Copy)]
struct Bound {
    key: u64,
    /// Its score, at most the largest finite number; below 0 where it is nobody's.
    score: f32,
}

impl Bound {
    #[inline(always)]
    fn new(key: u64) -> Bound {
        Bound { key, score: if key == u64::MAX { -1.0 } else { value_of(key).min(f32::MAX) } }
    }

    /// Whether it tells who cannot win.
    #[inline(always)]
    fn tells(&self) -> bool {
        self.score >= NORMAL
    }

    /// What words have to be at least, if no weight is more than `most`, where it [`tells`](Bound::tells).
    #[inline(always)]
    fn least_word(&self, most: f32) -> i32 {
        Exponential::least_word(f64::from(most) / f64::from(self.score))
    }
}

/// Those of a part who may beat a bound, and what becomes of their keys: `body` gets those below the bound, and returns the next one.
/// Where ONE, only the best counts.
struct Race<F, const ONE: bool> {
    bound: Bound,
    body: F,
}

impl<F: FnMut(u64) -> u64, const ONE: bool> Race<F, ONE> {
    /// Racers with these words, of which `index` tells the lane's place in the row.
    #[inline(always)]
    fn meets<S: Simd>(&mut self, s: S, weights: S::F32, words: S::I32, len: usize, index: impl Fn(usize) -> usize) {
        let v = s.div(counted(s, weights), Exponential::of_words(s, words));
        let mut least = self.bound.score;
        if ONE {
            // Lanes behind a tail weigh nothing.
            least = least.max(s.reduce_max(v));
        }
        each_hit(
            s,
            hits(s, s.le(s.splat(least), v), len),
            v,
            #[inline(always)]
            |lane, score| {
                let key = key(score, index(lane));
                if key < self.bound.key {
                    self.bound = Bound::new((self.body)(key));
                }
            },
        );
    }
}

/// Racers whose words could beat a bound, until there are enough for a vector.
struct Near {
    indices: [i32; 32],
    words: [i32; 32],
    n: usize,
}

impl Near {
    /// Adds those of the first `len` lanes whose words are at least `least`; whether a vector is full.
    #[inline(always)]
    fn push<S: Simd>(&mut self, s: S, indices: S::I32, words: S::I32, least: i32, len: usize) -> bool {
        let first = first_lanes(s, len);
        let near = s.differ(first, s.both(first, s.gt_i32(s.splat_i32(least), words)));
        s.compress(near, words, self.words[self.n..].first_chunk_mut().expect("room"));
        self.n += s.compress(near, indices, self.indices[self.n..].first_chunk_mut().expect("room"));
        self.n >= 16
    }

    /// Up to 16 of them, the first.
    #[inline(always)]
    fn take(&mut self) -> ([i32; 16], [i32; 16], usize) {
        let (mut indices, mut words, n) = ([0; 16], [0; 16], self.n.min(16));
        for (to, all) in [(&mut indices, &mut self.indices), (&mut words, &mut self.words)] {
            to.copy_from_slice(&all[..16]);
            all.copy_within(16.., 0);
        }
        self.n -= n;
        (indices, words, n)
    }
}

impl Racers<'_> {
    /// Calls `body` with the keys that are below a bound; it returns the next bound, which is no higher. Where ONE, the best of them is
    /// enough.
    #[inline(always)]
    fn below<S: Simd, const ONE: bool>(&self, s: S, bound: u64, body: impl FnMut(u64) -> u64) {
        let (mut race, mut start) = (Race::<_, ONE> { bound: Bound::new(bound), body }, 0);
        while start < self.weights.len() && !race.bound.tells() {
            self.all(s, start, &mut race);
            start += AT_ONCE;
        }
        if start < self.weights.len() {
            self.some(s, start, &mut race);
        }
    }

    /// Lets the next [`AT_ONCE`] weights from `start` on all race.
    #[inline(always)]
    fn all<S: Simd, const ONE: bool>(&self, s: S, start: usize, race: &mut Race<impl FnMut(u64) -> u64, ONE>) {
        let weights = &self.weights[start..];
        let weights = &weights[..weights.len().min(AT_ONCE)];
        self.numbers.walk(
            s,
            self.first + start as u64,
            weights.len(),
            #[inline(always)]
            |span, words| race.meets(s, span.load(s, weights, 0.0), words, span.len, |lane| self.at + start + span.at + lane),
        );
    }

    /// Lets those from `start` on race who could beat the bound, which tells it, with the smallest number.
    #[inline(always)]
    fn some<S: Simd, const ONE: bool>(&self, s: S, start: usize, race: &mut Race<impl FnMut(u64) -> u64, ONE>) {
        let (mut list, mut near) = ([0; AT_ONCE], Near { indices: [0; 32], words: [0; 32], n: 0 });
        for (weights, start) in self.weights[start..].chunks(AT_ONCE).zip((start..).step_by(AT_ONCE)) {
            let n = collect(s, weights, start, race.bound.score * SMALLEST, &mut list);
            let (indices, most) = (&list[..n], largest(s, weights));
            let mut least = race.bound.least_word(most);
            self.numbers.reaching_listed(
                s,
                self.first,
                indices,
                least,
                #[inline(always)]
                |span, words| {
                    if near.push(s, span.load_i32(s, indices), words, least, span.len) {
                        self.meet(s, &mut near, race);
                        least = race.bound.least_word(most);
                    }
                    least
                },
            );
        }
        self.meet(s, &mut near, race);
    }

    /// Lets the first of those that are near meet the bound.
    #[inline(always)]
    fn meet<S: Simd, const ONE: bool>(&self, s: S, near: &mut Near, race: &mut Race<impl FnMut(u64) -> u64, ONE>) {
        let (indices, words, n) = near.take();
        if n == 0 {
            return;
        }
        let indices = &indices[..n];
        race.meets(s, self.look_up(s, indices), s.load_i32(&words), n, |lane| self.at + indices[lane] as usize);
    }

    /// Up to 16 weights, 0 in the lanes behind them.
    #[inline(always)]
    fn look_up<S: Simd>(&self, s: S, indices: &[i32]) -> S::F32 {
        let mut weights = [0.0; 16];
        look_up_apart(s, self.weights, indices, &mut weights[..indices.len()]);
        s.load(&weights)
    }

    /// The places of the largest weights of each lane; they ascend. Lanes without weights keep the place behind them that is their own.
    #[inline(always)]
    fn leaders<S: Simd>(&self, s: S) -> [i32; LEADERS] {
        // Each vector would wait for the comparison of the one before: four parts of them do not.
        let (mut tops, mut places) = ([s.splat(f32::NEG_INFINITY); 4], [s.splat_i32(0); 4]);
        let n = self.weights.len();
        for start in (0..n).step_by(64) {
            for (i, at) in (start..n.min(start + 64)).step_by(16).enumerate() {
                let v = Span { at, len: 16.min(n - at) }.load(s, self.weights, f32::NEG_INFINITY);
                let more = s.lt(tops[i], v);
                tops[i] = s.select(more, v, tops[i]);
                places[i] = s.select_i32(more, s.splat_i32(at as i32), places[i]);
            }
        }
        let (mut top, mut place) = (tops[0], places[0]);
        for i in 1..4 {
            let more = s.lt(top, tops[i]);
            top = s.select(more, tops[i], top);
            place = s.select_i32(more, places[i], place);
        }
        let mut leaders = [0; LEADERS];
        let [sorted] = sort_all(s, [s.add_i32(place, lanes(s))], true);
        s.store_i32(sorted, &mut leaders);
        leaders
    }
}

/// The largest of some weights, 0 where none is more.
#[inline(always)]
fn largest<S: Simd>(s: S, weights: &[f32]) -> f32 {
    let mut tops = [s.splat(0.0); 4];
    let (parts, rest) = weights.as_chunks::<64>();
    for part in parts {
        for (top, v) in tops.iter_mut().zip(part.as_chunks::<16>().0) {
            *top = s.max(s.load(v), *top);
        }
    }
    vectors(
        rest.len(),
        #[inline(always)]
        |span| tops[0] = s.max(span.load(s, rest, 0.0), tops[0]),
    );
    s.reduce_max(s.max(s.max(tops[0], tops[1]), s.max(tops[2], tops[3])))
}

/// The keys of racers likely to be good: of the weights whose places are equal modulo 16 the largest each. In short parts some are not
/// there.
pub struct LeaderKeys<'a> {
    /// The part.
    pub racers: Racers<'a>,
    /// Where they go; `u64::MAX` for those that are not there.
    pub keys: &'a mut [u64; LEADERS],
}

impl Kernel for LeaderKeys<'_> {
    type Output = ();
    const DOT: bool = false;
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let LeaderKeys { racers, keys } = self;
        let leaders = racers.leaders(s);
        let leaders = &leaders[..racers.weights.len().min(LEADERS)];
        keys.fill(u64::MAX);
        let mut n = 0;
        let body = |key| {
            keys[n] = key;
            n += 1;
            u64::MAX
        };
        let mut race = Race::<_, false> { bound: Bound::new(u64::MAX), body };
        racers.numbers.reaching_listed(
            s,
            racers.first,
            leaders,
            i32::MIN,
            #[inline(always)]
            |span, words| {
                let leaders = &leaders[span.at..][..span.len];
                race.meets(s, racers.look_up(s, leaders), words, span.len, |lane| racers.at + leaders[lane] as usize);
                i32::MIN
            },
        );
    }
}

/// The best of a part of a row: its key, the smallest of all, if it is below a bound, else the bound.
pub struct BestKey<'a> {
    /// The part.
    pub racers: Racers<'a>,
    /// The best key that is known, else `u64::MAX`: the better it is, the fewer numbers are drawn.
    pub bound: u64,
}

impl Kernel for BestKey<'_> {
    type Output = u64;
    const DOT: bool = false;
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> u64 {
        let mut best = self.bound;
        self.racers.below::<_, true>(
            s,
            self.bound,
            #[inline(always)]
            |key| {
                best = key;
                key
            },
        );
        best
    }
}

/// The keys of a part of a row that are below a bound; returns how many they are.
pub struct KeysBelow<'a> {
    /// The part.
    pub racers: Racers<'a>,
    /// What a key must be below.
    pub bound: u64,
    /// Where they go, in the order of their indices. As many as there are weights.
    pub keys: &'a mut [u64],
}

impl Kernel for KeysBelow<'_> {
    type Output = usize;
    const DOT: bool = false;
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> usize {
        let mut n = 0;
        self.racers.below::<_, false>(
            s,
            self.bound,
            #[inline(always)]
            |key| {
                self.keys[n] = key;
                n += 1;
                self.bound
            },
        );
        n
    }
}

#[cfg(test)]
mod tests;
