//! The words of elements of one turn: ten rounds over 32 counters at once.

use super::{MULTIPLIERS, WEYL};
use crate::rows::Span;
use crate::simd::Simd;

/// Vectors of words that are drawn before they are looked at.
const AT_ONCE: usize = 8;

/// What makes a word a signed number that stands in the same order.
pub(super) const SIGN: u32 = 1 << 31;

/// What the elements of one turn share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// The first of them, which has thread 0.
    first: u64,
    /// Which word of the four is theirs.
    word: u64,
    /// What the first two rounds take from the counter's low half, which is the same for all: so are half of their products.
    start: [u32; 4],
    /// The keys of the rounds.
    keys: [[u32; 2]; 10],
}

impl Turn {
    /// Of elements from `first` on, with the low half of a counter and which of its words is theirs.
    #[inline(always)]
    pub(super) fn new(key: [u32; 2], counter: u64, first: u64, word: u64) -> Turn {
        let mut keys = [key; 10];
        for i in 1..10 {
            keys[i] = [keys[i - 1][0].wrapping_add(WEYL[0]), keys[i - 1][1].wrapping_add(WEYL[1])];
        }
        let [third, fourth] = product(counter as u32, MULTIPLIERS[0]);
        let [fresh, second] = product(third ^ keys[0][1], MULTIPLIERS[1]);
        let start = [(counter >> 32) as u32 ^ keys[0][0], fresh ^ keys[1][0], second, fourth ^ keys[1][1]];
        Turn { first, word, start, keys }
    }

    /// [`Exponential::reaching`](super::Exponential::reaching) for `n` elements `first + place`; returns the next `least`.
    #[inline(always)]
    pub(super) fn reaching<S: Simd>(
        &self,
        s: S,
        first: u64,
        n: usize,
        mut least: i32,
        mut places: impl FnMut(Span) -> S::I32,
        mut body: impl FnMut(Span, S::I32) -> i32,
    ) -> i32 {
        let mut words = [[0; 16]; AT_ONCE];
        for start in (0..n).step_by(16 * AT_ONCE) {
            let (block, mut top) = (16 * AT_ONCE.min((n - start).div_ceil(16)), s.splat_i32(i32::MIN));
            self.walk(
                s,
                first,
                block.min(n - start),
                #[inline(always)]
                |span| places(span.moved(start)),
                #[inline(always)]
                |span, found| {
                    top = s.max_i32(top, found);
                    s.store_i32(found, &mut words[span.at / 16]);
                },
            );
            if !reaches(s, top, least) {
                continue;
            }
            for (words, at) in words.iter().zip((start..start + block).step_by(16)) {
                let words = s.load_i32(words);
                if reaches(s, words, least) {
                    least = body(Span { at, len: 16.min(n - at) }, words);
                }
            }
        }
        least
    }

    /// Calls `body` with the [`words`](Turn::words) of `n` elements `first + place`, up to 16 at a time.
    #[inline(always)]
    pub(super) fn walk<S: Simd>(
        &self,
        s: S,
        first: u64,
        n: usize,
        mut places: impl FnMut(Span) -> S::I32,
        mut body: impl FnMut(Span, S::I32),
    ) {
        for start in (0..n).step_by(32) {
            let second = n.min(start + 16);
            let spans = [Span { at: start, len: second - start }, Span { at: second, len: 16.min(n - second) }];
            let words = self.words(s, first, [places(spans[0]), places(spans[1])]);
            for i in 0..2 {
                if spans[i].len > 0 {
                    body(spans[i], words[i]);
                }
            }
        }
    }

    /// The words of vectors of elements `first + indices`, as signed numbers in the order of the words. Threads are few: the high word of
    /// their number is 0.
    #[inline(always)]
    pub(super) fn words<S: Simd, const N: usize>(&self, s: S, first: u64, indices: [S::I32; N]) -> [S::I32; N] {
        let Turn { word, start, keys, .. } = self;
        let thread = splat(s, first.wrapping_sub(self.first) as u32);
        // A product takes two lanes, so half of the counters go in one vector each, in its even lanes; the odd lanes mean nothing.
        let mut c = [[[splat(s, 0); 4]; 2]; N];
        for v in 0..N {
            let threads = s.add_i32(indices[v], thread);
            let halves = [threads, odd(s, threads)];
            for half in 0..2 {
                let b = s.mul_even(halves[half], MULTIPLIERS[1]);
                let a = s.mul_even(s.xor(odd(s, b), splat(s, start[0])), MULTIPLIERS[0]);
                c[v][half] = [s.xor(b, splat(s, start[1])), splat(s, start[2]), s.xor(odd(s, a), splat(s, start[3])), a];
            }
        }
        if const { S::IS_WIDE } {
            // Side by side no counter waits for its own multiplications.
            for key in &keys[2..8] {
                for c in c.as_flattened_mut() {
                    *c = round(s, *c, key);
                }
            }
        } else {
            // Elsewhere the registers are for one of them at a time.
            for v in 0..N {
                for half in 0..2 {
                    let mut state = c[v][half];
                    for key in &keys[2..8] {
                        state = round(s, state, key);
                    }
                    c[v][half] = state;
                }
            }
        }
        if *word < 2 { self.last::<S, N, 0>(s, c) } else { self.last::<S, N, 1>(s, c) }
    }

    /// The last two rounds, and the words of them: words 0 and 1 are of one product, 2 and 3 of the other, so half of
    /// the work is for others.
    #[inline(always)]
    fn last<S: Simd, const N: usize, const HALF: usize>(&self, s: S, counters: [[[S::I32; 4]; 2]; N]) -> [S::I32; N] {
        let mut words = [splat(s, 0); N];
        for v in 0..N {
            let mut halves = [words[v]; 2];
            for half in 0..2 {
                let c = counters[v][half];
                let far = s.mul_even(c[2 * HALF], MULTIPLIERS[HALF]);
                let near = s.mul_even(c[2 - 2 * HALF], MULTIPLIERS[1 - HALF]);
                let factor = s.xor(s.xor(odd(s, far), c[3 - 2 * HALF]), splat(s, self.keys[8][1 - HALF]));
                let product = s.mul_even(factor, MULTIPLIERS[1 - HALF]);
                halves[half] = match self.word % 2 {
                    0 => s.xor(s.xor(odd(s, product), near), splat(s, self.keys[9][HALF] ^ SIGN)),
                    _ => s.xor(product, splat(s, SIGN)),
                };
            }
            words[v] = s.zip_even(halves[0], halves[1]);
        }
        words
    }
}

/// A round, in the even lanes.
#[inline(always)]
fn round<S: Simd>(s: S, c: [S::I32; 4], key: &[u32; 2]) -> [S::I32; 4] {
    let (a, b) = (s.mul_even(c[0], MULTIPLIERS[0]), s.mul_even(c[2], MULTIPLIERS[1]));
    [s.xor(s.xor(odd(s, b), c[1]), splat(s, key[0])), b, s.xor(s.xor(odd(s, a), c[3]), splat(s, key[1])), a]
}

/// Whether one of some words is `least` or more, both as signed numbers in the order of the words.
#[inline(always)]
fn reaches<S: Simd>(s: S, words: S::I32, least: i32) -> bool {
    s.mask_bits(s.gt_i32(s.splat_i32(least), words)) != u16::MAX
}

/// A word in every lane.
#[inline(always)]
fn splat<S: Simd>(s: S, word: u32) -> S::I32 {
    s.splat_i32(word as i32)
}

/// The odd lanes, moved to the even ones.
#[inline(always)]
fn odd<S: Simd>(s: S, v: S::I32) -> S::I32 {
    s.bits(s.dup_odd(s.from_bits(v)))
}

/// The high and the low word of a product.
#[inline(always)]
const fn product(a: u32, b: u32) -> [u32; 2] {
    let product = a as u64 * b as u64;
    [(product >> 32) as u32, product as u32]
}
