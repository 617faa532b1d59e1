//! Lanes to try, and lanes to look at.

use crate::common::Random;
use std::fmt::Debug;
use tilekern_kernels::simd::Simd;

/// Vectors drawn for each method.
pub const ROUNDS: usize = if cfg!(miri) { 8 } else { 2000 };

/// Numbers where a comparison, a conversion or a zero can go wrong.
const FLOATS: [f32; 16] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    f32::NAN,
    -f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::MAX,
    f32::MIN,
    f32::MIN_POSITIVE,
    -f32::MIN_POSITIVE,
    f32::from_bits(1),
    f32::from_bits(0x8000_0001),
    f32::from_bits(0x007F_FFFF),
    1.0 + f32::EPSILON,
];

const INTS: [i32; 12] = [0, 1, -1, 127, -128, 255, 32_768, i32::MAX, i32::MIN, i32::MAX - 1, i32::MIN + 1, (1 << 24) + 1];

/// Any bits, with a special one in every fourth lane.
pub fn float(random: &mut Random) -> f32 {
    match random.below(8) {
        0 | 1 => FLOATS[random.below(FLOATS.len())],
        2 | 3 => random.number(),
        _ => f32::from_bits(random.bits() as u32),
    }
}

/// Any bits, with a special one in every fourth lane.
pub fn int(random: &mut Random) -> i32 {
    if random.below(4) == 0 { INTS[random.below(INTS.len())] } else { random.bits() as i32 }
}

/// 16 of them.
pub fn lanes<T>(mut of: impl FnMut(usize) -> T) -> [T; 16] {
    std::array::from_fn(&mut of)
}

/// The lanes of a vector.
pub fn get<S: Simd>(s: S, v: S::F32) -> [f32; 16] {
    let mut a = [0.0; 16];
    s.store(v, &mut a);
    a
}

/// The lanes of an integer vector.
pub fn get_i32<S: Simd>(s: S, v: S::I32) -> [i32; 16] {
    let mut a = [0; 16];
    s.store_i32(v, &mut a);
    a
}

/// Compares the results of a kernel with those of the scalar definitions, method by method.
pub fn compare<T: PartialEq + Debug, D, const N: usize>(
    level: impl Debug,
    found: [[T; 16]; N],
    methods: &[(&str, D); N],
    expected: impl Fn(&D, usize) -> T,
) {
    for (found, (name, definition)) in found.into_iter().zip(methods) {
        assert_eq!(found, lanes(|i| expected(definition, i)), "{name} on {level:?}");
    }
}
