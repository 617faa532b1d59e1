//! Philox4x32-10 and the exponential numbers, one at a time.

use super::math::log;
use crate::philox::{BLOCKS, MULTIPLIERS, WEYL};

/// The four words of one counter.
pub fn philox4x32(mut c: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let a = u64::from(MULTIPLIERS[0]) * u64::from(c[0]);
        let b = u64::from(MULTIPLIERS[1]) * u64::from(c[2]);
        c = [(b >> 32) as u32 ^ c[1] ^ key[0], b as u32, (a >> 32) as u32 ^ c[3] ^ key[1], a as u32];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    c
}

/// A uniform number in (0, 1].
pub fn uniform(word: u32) -> f32 {
    word as f32 / 4_294_967_296.0 + 1.0 / 8_589_934_592.0
}

/// The word of element `i` of a tensor of `elements`.
pub fn random_word(seed: u64, offset: u64, elements: u64, i: u64) -> u32 {
    let threads = elements.div_ceil(256).clamp(1, BLOCKS) * 256;
    let (thread, turn) = (i % threads, i / threads);
    let low = offset.div_ceil(4).wrapping_add(turn / 4);
    let counter = [low as u32, (low >> 32) as u32, thread as u32, (thread >> 32) as u32];
    philox4x32(counter, [seed as u32, (seed >> 32) as u32])[(turn % 4) as usize]
}

/// The exponential number of element `i` of a tensor of `elements`.
pub fn exponential(seed: u64, offset: u64, elements: u64, i: u64) -> f32 {
    let u = uniform(random_word(seed, offset, elements, i));
    if u < 1.0 - f32::EPSILON / 2.0 { -log(u) } else { f32::EPSILON / 2.0 }
}
