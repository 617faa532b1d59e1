//! What every kernel test needs: all instruction sets of this processor, lengths that matter, and reproducible numbers.
#![allow(dead_code)]

use tilekern_kernels::dispatch::{Isa, Level};

/// Every instruction set that this processor has.
pub fn levels() -> Vec<Level> {
    Isa::ALL.into_iter().filter_map(Level::new).collect()
}

/// Around one vector, one block of sums and several: where a tail or a block boundary can go wrong.
pub const LENGTHS: [usize; 20] = [1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 64, 172, 255, 256, 257, 271, 511, 512, 513, 1000];

/// As many rounds of a test as there is time for: less under an emulator or an interpreter.
pub fn rounds(n: usize) -> usize {
    let emulated = cfg!(target_arch = "aarch64") && std::env::var_os("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER").is_some();
    if cfg!(miri) {
        n.div_ceil(1000)
    } else if emulated {
        n.div_ceil(20)
    } else {
        n
    }
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// In [-1, 1), 24 bits.
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / 8_388_608.0 - 1.0
    }

    /// Any int8, the extremes more often than by chance.
    pub fn int8(&mut self) -> i8 {
        match self.below(8) {
            0 => -128,
            1 => 127,
            _ => self.bits() as i8,
        }
    }

    /// Mostly ordinary, now and then zero of either sign, subnormal, tiny or huge.
    pub fn number(&mut self) -> f32 {
        match self.below(24) {
            0 => 0.0,
            1 => -0.0,
            2 => f32::from_bits(self.bits() as u32 & 0x807F_FFFF),
            3 => self.unit() * 1e-30,
            4 => self.unit() * 1e6,
            _ => self.unit() * 4.0,
        }
    }
}

/// The bits, all NaN alike: sign and payload of a NaN are nobody's promise.
pub fn bits(x: f32) -> u32 {
    if x.is_nan() { 0x7FC0_0000 } else { x.to_bits() }
}
