//! Rows of logits, and what reading one costs.

#[path = "../largest/mod.rs"]
mod largest;

pub use largest::Floor;

/// SplitMix64, by Box and Muller's transformation.
pub fn normal(state: &mut u64) -> f32 {
    let mut unit = || {
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 40) as f32 / 16_777_216.0 + 3e-8
    };
    (-2.0 * unit().ln()).sqrt() * (std::f32::consts::TAU * unit()).cos()
}
