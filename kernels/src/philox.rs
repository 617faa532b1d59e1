//! Random numbers without a state: Philox4x32-10 on counters, and the exponential numbers that the sampling operators draw.
//!
//! Element i of a tensor of n gets its number from (seed, offset, i, n) alone, by the mapping of the operator's newest device, which is
//! CUDA's on 78 multiprocessors: `min(ceil(n / 256), 624) * 256` threads take turns over the elements, thread t counts in the high
//! half of the counter, its turns in the low half and in the word. Up to 159 744 elements everyone has one turn. Ten rounds over 16
//! counters at once, in 32 x 32 -> 64 bit products that the compiler vectorises; the logarithm is the one of [`crate::math`].

use crate::math;
use crate::simd::Simd;

/// Multipliers of the rounds, for words 0 and 2.
pub const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// What the key grows by from round to round.
pub const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
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
        let turn = |element: u64| if element < self.threads { 0 } else { element / self.threads };
        // Neighbours mostly share their turn; 16 of them see at most two.
        let (round, next) = (turn(first), turn(first + 15));
        let mut words = self.words(first, round);
        if next != round {
            let later = self.words(first, next);
            for i in 0..16 {
                if first + i as u64 >= next * self.threads {
                    words[i] = later[i];
                }
            }
        }
        // Zero is taken in, one is: the greatest words round up to it.
        let u = words.map(|word| word as f32 * f32::from_bits(0x2F80_0000) + f32::from_bits(0x2F00_0000));
        let u = s.load(&u);
        let smallest = s.splat(f32::EPSILON / 2.0);
        let below_one = s.lt(u, s.sub(s.splat(1.0), smallest));
        s.select(below_one, s.sub(s.splat(0.0), math::log(s, u)), smallest)
    }

    /// The words of 16 elements, as if all had the turn `round`.
    #[inline(always)]
    fn words(&self, first: u64, round: u64) -> [u32; 16] {
        let low = self.turn.wrapping_add(round / 4);
        let thread = first.wrapping_sub(round * self.threads);
        let mut c = [[low as u32; 16], [(low >> 32) as u32; 16], [0; 16], [0; 16]];
        for i in 0..16 {
            let thread = thread.wrapping_add(i as u64);
            c[2][i] = thread as u32;
            c[3][i] = (thread >> 32) as u32;
        }
        let mut key = self.key;
        for _ in 0..10 {
            for i in 0..16 {
                let a = u64::from(MULTIPLIERS[0]) * u64::from(c[0][i]);
                let b = u64::from(MULTIPLIERS[1]) * u64::from(c[2][i]);
                c[0][i] = (b >> 32) as u32 ^ c[1][i] ^ key[0];
                c[2][i] = (a >> 32) as u32 ^ c[3][i] ^ key[1];
                c[1][i] = b as u32;
                c[3][i] = a as u32;
            }
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        c[(round % 4) as usize]
    }
}
