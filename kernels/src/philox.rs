//! Random numbers without a state: Philox4x32-10 on counters, and the exponential numbers that the sampling operators draw.
//!
//! Element i of a tensor of n gets its number from (seed, offset, i, n) alone, by the mapping of the operator's newest device, which is
//! CUDA's on 78 multiprocessors: `min(ceil(n / 256), 624) * 256` threads take turns over the elements, thread t counts in the high
//! half of the counter, its turns in the low half and in the word. Up to 159 744 elements everyone has one turn. Words of many counters
//! are drawn at once, and go about as signed numbers in their order; the logarithm is the one of [`crate::math`].

mod turn;

use crate::math;
use crate::rows::{Span, lanes, vectors};
use crate::simd::Simd;
use core::ops::Range;
use turn::Turn;

/// Multipliers of the rounds, for words 0 and 2.
pub const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// What the key grows by from round to round.
pub const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
/// The smallest exponential number: 2^-24.
pub const SMALLEST: f32 = f32::EPSILON / 2.0;
/// The most blocks of 256 threads.
pub const BLOCKS: u64 = 78 * 8;

/// The exponential numbers (rate 1) of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct Exponential {
    key: [u32; 2],
    turn: u64,
    threads: u64,
}

impl Exponential {
    /// For a tensor of `elements`; seed and offset are their 64-bit patterns.
    #[inline]
    pub const fn new(seed: u64, offset: u64, elements: u64) -> Exponential {
        let blocks = elements.div_ceil(256);
        let blocks = if blocks == 0 { 1 } else { blocks };
        let blocks = if blocks > BLOCKS { BLOCKS } else { blocks };
        Exponential { key: [seed as u32, (seed >> 32) as u32], turn: offset.div_ceil(4), threads: 256 * blocks }
    }

    /// The numbers of elements `first` to `first + 15`.
    #[inline(always)]
    pub fn at<S: Simd>(&self, s: S, first: u64) -> S::F32 {
        let mut numbers = [0.0; 16];
        self.write_16(s, first, &mut numbers);
        s.load(&numbers)
    }

    /// [`Exponential::at`], out of line: it is long, and has many callers.
    #[inline(always)]
    fn write_16<S: Simd>(&self, s: S, first: u64, numbers: &mut [f32; 16]) {
        s.apart(
            #[inline(always)]
            move || s.store(self.draw(s, first), numbers),
        );
    }

    /// Writes the numbers of elements from `first` on.
    #[inline(always)]
    pub fn write<S: Simd>(&self, s: S, first: u64, numbers: &mut [f32]) {
        s.apart(
            #[inline(always)]
            move || {
                self.walk(
                    s,
                    first,
                    numbers.len(),
                    #[inline(always)]
                    |span, words| span.store(s, Self::of_words(s, words), numbers),
                )
            },
        )
    }

    /// How many elements from `first` on have one turn.
    #[inline(always)]
    fn left_in_turn(&self, first: u64) -> u64 {
        // A division takes its time, and most rows have one turn.
        self.threads - if first < self.threads { first } else { first % self.threads }
    }

    /// The turn of an element.
    #[inline(always)]
    fn turn(&self, element: u64) -> Turn {
        // As in [`Exponential::left_in_turn`].
        let number = if element < self.threads { 0 } else { element / self.threads };
        Turn::new(self.key, self.turn.wrapping_add(number / 4), number * self.threads, number % 4)
    }

    /// Exponential numbers of words, which come as signed numbers in the order of the words.
    #[inline(always)]
    pub fn of_words<S: Simd>(s: S, words: S::I32) -> S::F32 {
        let (u, smallest) = (uniform(s, words), s.splat(SMALLEST));
        let below_one = s.lt(u, s.sub(s.splat(1.0), smallest));
        s.select(below_one, s.sub(s.splat(0.0), math::log(s, u)), smallest)
    }

    /// The smallest number of each of some runs of elements, which follow one another from `first` on: that of the largest word. What is
    /// written for an empty run means nothing.
    #[inline(always)]
    pub fn least<S: Simd>(&self, s: S, mut first: u64, runs: &[u32], least: &mut [f32]) {
        s.apart(
            #[inline(always)]
            move || {
                let mut words = [0; 1024];
                let (mut left, mut at, mut end) = (runs.iter().sum::<u32>() as usize, 0, 0);
                for (largest, &run) in bytemuck::cast_slice_mut(least).iter_mut().zip(runs) {
                    let mut run = run as usize;
                    *largest = i32::MIN;
                    while run > 0 {
                        if at == end {
                            (at, end) = (0, left.min(words.len()));
                            self.fill(s, first, &mut words[..end]);
                            (first, left) = (first + end as u64, left - end);
                        }
                        let n = run.min(end - at);
                        *largest = words[at..][..n].iter().fold(*largest, |largest, &word| largest.max(word));
                        (run, at) = (run - n, at + n);
                    }
                }
                vectors(
                    least.len(),
                    #[inline(always)]
                    |span| {
                        let words = s.bits(span.load(s, least, 0.0));
                        span.store(s, Self::of_words(s, words), least);
                    },
                );
            },
        )
    }

    /// The least word that may stand for a number up to `limit`.
    #[inline(always)]
    pub fn least_word(limit: f64) -> i32 {
        // -ln u is at least 1 - u, and the roundings of u are below 2^-23.
        let least = (1.0 - limit * 1.001 - f64::from(f32::EPSILON)) * 4_294_967_296.0;
        (least as u32 ^ turn::SIGN) as i32
    }

    /// The words of elements from `first` on.
    #[inline(always)]
    fn fill<S: Simd>(&self, s: S, first: u64, words: &mut [i32]) {
        s.apart(
            #[inline(always)]
            move || {
                self.walk(
                    s,
                    first,
                    words.len(),
                    #[inline(always)]
                    |span, found| span.store_i32(s, found, words),
                )
            },
        )
    }

    /// Calls `body` with the words of `n` elements from `first` on, up to 16 at a time.
    #[inline(always)]
    pub fn walk<S: Simd>(&self, s: S, first: u64, n: usize, mut body: impl FnMut(Span, S::I32)) {
        self.turns(
            first,
            n,
            #[inline(always)]
            |turn, part| {
                turn.walk(
                    s,
                    first + part.start as u64,
                    part.len(),
                    in_a_row(s),
                    #[inline(always)]
                    |span, words| body(span.moved(part.start), words),
                )
            },
        )
    }

    /// Calls `body` with the vectors of `n` elements from `first` on of whose words one is `least` or more; it returns the next `least`.
    /// Words are drawn many at a time, since few vectors reach it.
    #[inline(always)]
    pub fn reaching<S: Simd>(&self, s: S, first: u64, n: usize, mut least: i32, mut body: impl FnMut(Span, S::I32) -> i32) {
        self.turns(
            first,
            n,
            #[inline(always)]
            |turn, part| {
                least = turn.reaching(
                    s,
                    first + part.start as u64,
                    part.len(),
                    least,
                    in_a_row(s),
                    #[inline(always)]
                    |span, words| body(span.moved(part.start), words),
                )
            },
        )
    }

    /// [`Exponential::reaching`] for the elements `first + index` of some indices, which ascend.
    #[inline(always)]
    pub fn reaching_listed<S: Simd>(
        &self,
        s: S,
        first: u64,
        indices: &[i32],
        mut least: i32,
        mut body: impl FnMut(Span, S::I32) -> i32,
    ) {
        let mut at = 0;
        while let Some(&index) = indices.get(at) {
            let element = first + index as u64;
            let end = index as u64 + self.left_in_turn(element);
            let has_turn = |&index: &i32| (index as u64) < end;
            let rest = &indices[at..];
            // A search would guess wrong at most of its steps, and mostly there is nothing to search for.
            let n = if rest.last().is_some_and(has_turn) { rest.len() } else { rest.partition_point(has_turn) };
            least = self.turn(element).reaching(
                s,
                first,
                n,
                least,
                #[inline(always)]
                |span| span.load_i32(s, rest),
                #[inline(always)]
                |span, words| body(span.moved(at), words),
            );
            at += n;
        }
    }

    /// Calls `body` with each turn that `n` elements from `first` on have, and which of them have it.
    #[inline(always)]
    fn turns(&self, first: u64, n: usize, mut body: impl FnMut(&Turn, Range<usize>)) {
        let mut at = 0;
        while at < n {
            let element = first + at as u64;
            let end = at + self.left_in_turn(element).min((n - at) as u64) as usize;
            body(&self.turn(element), at..end);
            at = end;
        }
    }

    #[inline(always)]
    fn draw<S: Simd>(&self, s: S, first: u64) -> S::F32 {
        Self::of_words(s, self.row(s, first))
    }

    /// The words of elements `first` to `first + 15`.
    #[inline(always)]
    fn row<S: Simd>(&self, s: S, first: u64) -> S::I32 {
        // Neighbours mostly share their turn; 16 of them see at most two.
        let [words] = self.turn(first).words(s, first, [lanes(s)]);
        let later = self.left_in_turn(first);
        if later >= 16 {
            return words;
        }
        let [next] = self.turn(first + later).words(s, first, [lanes(s)]);
        s.select_i32(s.gt_i32(lanes(s), s.splat_i32(later as i32 - 1)), next, words)
    }
}

/// The places of elements that lie one behind the other.
#[inline(always)]
fn in_a_row<S: Simd>(s: S) -> impl FnMut(Span) -> S::I32 {
    #[inline(always)]
    move |span| s.add_i32(lanes(s), s.splat_i32(span.at as i32))
}

/// Numbers in (0,1] of uniform words, which come as signed numbers in the order of the words.
#[inline(always)]
fn uniform<S: Simd>(s: S, words: S::I32) -> S::F32 {
    let words = s.xor(words, s.splat_i32(turn::SIGN as i32));
    // The nearest `f32` of the unsigned word, rounded once: halves are exact.
    let (high, low) = (s.to_f32(s.shr(words, 16)), s.to_f32(s.and(words, s.splat_i32(0xFFFF))));
    let word = s.fma(high, s.splat(65536.0), low);
    // Zero is taken in, one is: the greatest words round up to it.
    s.fma(word, s.splat(f32::from_bits(0x2F80_0000)), s.splat(f32::from_bits(0x2F00_0000)))
}
