//! Masses: a probability as the integer `round(pr * 2^52)`. Integers have no order, so a sum is the same however it is gathered.

use super::vectors;
use crate::math::constants::ROUND;
use crate::simd::Simd;

/// 2^52
pub const ONE: f64 = 4_503_599_627_370_496.0;

/// `round(pr * 2^52)`, half to even, for a probability in [0,1].
#[inline(always)]
pub fn mass(pr: f32) -> u64 {
    // Adding 2^52 rounds to an integer, which then stands in the low bits; 2^52 itself carries into the exponent, to the same effect.
    (f64::from(pr) * ONE + ONE).to_bits() - ONE.to_bits()
}

/// A running sum as the operator sees it: rounded once.
#[inline(always)]
pub fn running_sum(mass: u64) -> f32 {
    // The division is exact.
    mass as f32 / ONE as f32
}

/// What a probability outside [0,1] counts as.
#[inline(always)]
pub fn bounded(pr: f32) -> f32 {
    pr.clamp(0.0, 1.0)
}

/// Whether top-p keeps an entry, from the mass up to and with it: `f32(f32(prefix) - pr) < p`, or nothing stands before it.
/// Probabilities descend with the list, so this never turns true again once it was false, and any search finds the one cut.
#[inline(always)]
pub fn stays(prefix: u64, pr: f32, p: f32) -> bool {
    // The first entry's own mass may be rounded up by more than p.
    running_sum(prefix) - pr < p || prefix <= mass(pr)
}

/// How many entries of a sorted list top-p keeps.
#[inline(always)]
pub fn cut(probabilities: &[f32], p: f32) -> usize {
    let mut prefix: u64 = 0;
    for (j, &pr) in probabilities.iter().enumerate() {
        let pr = bounded(pr);
        // Beyond 2^52 nothing stays.
        prefix = prefix.saturating_add(mass(pr));
        if !stays(prefix, pr, p) {
            return j;
        }
    }
    probabilities.len()
}

/// Where the descending entries of a row end that are kept. Any search finds the one end: what does not stay has nothing behind it
/// that does.
#[derive(Clone, Copy)]
pub enum End {
    /// Before the first that [`stays`] denies.
    TopP(f32),
    /// Behind the first up to which the mass is at least this.
    Mass(u128),
}

impl End {
    /// About the sum of what is kept.
    pub fn sum(self) -> f64 {
        match self {
            End::TopP(p) => p.into(),
            End::Mass(mass) => mass as f64 / ONE,
        }
    }

    /// Whether an entry is kept, from the mass up to and with it.
    #[inline(always)]
    pub fn stays(self, prefix: u128, pr: f32) -> bool {
        match self {
            // Beyond 2^52 nothing stays.
            End::TopP(p) => stays(prefix.try_into().unwrap_or(u64::MAX), pr, p),
            End::Mass(least) => prefix - u128::from(mass(pr)) < least,
        }
    }

    /// How many entries of a sorted list are kept, given the mass before it.
    pub fn cut(self, probabilities: &[f32], before: u128) -> usize {
        // In 64 bits, which takes less time.
        if let (End::TopP(p), 0) = (self, before) {
            return cut(probabilities, p);
        }
        let mut prefix = before;
        let ends = |pr: &f32| {
            let pr = bounded(*pr);
            prefix += u128::from(mass(pr));
            !self.stays(prefix, pr)
        };
        probabilities.iter().position(ends).unwrap_or(probabilities.len())
    }
}

/// The sum of the masses of many probabilities, 16 at a time.
///
/// A mass has up to 53 bits; here it is three numbers, of 22, 22 and 8 bits, the lower two with a sign: the multiples of 2^-22, of
/// 2^-44 and of 2^-52 nearest to what is left. They are rounded by the addition of 1.5 * 2^23, and the bits of these sums are added
/// as integers, which may wrap: those of 1.5 * 2^23 itself are taken off in the end.
pub struct Total<S: Simd> {
    parts: [S::I32; 3],
    /// How many numbers each lane of `parts` holds.
    terms: u32,
    sum: i128,
}

impl<S: Simd> Total<S> {
    /// Nothing yet.
    #[inline(always)]
    pub fn new(s: S) -> Self {
        Total { parts: [s.splat_i32(0); 3], terms: 0, sum: 0 }
    }

    /// Adds 16 probabilities, all in [0,1].
    #[inline(always)]
    pub fn add(&mut self, s: S, pr: S::F32) {
        /// 2^22, 2^44 and 2^52 over the unit of what was left before.
        const STEPS: [f32; 3] = [4_194_304.0, 17_592_186_044_416.0, 4_503_599_627_370_496.0];
        let round = s.splat(ROUND);
        let mut left = pr;
        for i in 0..3 {
            let shifted = s.fma(left, s.splat(STEPS[i]), round);
            self.parts[i] = s.add_i32(self.parts[i], s.bits(shifted));
            left = s.fma(s.sub(shifted, round), s.splat(-1.0 / STEPS[i]), left);
        }
        self.terms += 1;
        // 2^22 * 511 is the most that a lane holds.
        if self.terms == 511 {
            self.flush(s);
        }
    }

    #[inline(always)]
    fn flush(&mut self, s: S) {
        for (part, shift) in self.parts.iter_mut().zip([30, 8, 0]) {
            let mut lanes = [0; 16];
            let rounds = self.terms.wrapping_mul(ROUND.to_bits()) as i32;
            s.store_i32(s.sub_i32(*part, s.splat_i32(rounds)), &mut lanes);
            let sum: i64 = lanes.iter().map(|&lane| i64::from(lane)).sum();
            self.sum += i128::from(sum) << shift;
            *part = s.splat_i32(0);
        }
        self.terms = 0;
    }

    /// The sum: of rows that are not normalised it may have more than 64 bits.
    #[inline(always)]
    pub fn get(mut self, s: S) -> u128 {
        self.flush(s);
        self.sum as u128
    }
}

/// The mass of a list of probabilities in any order.
#[inline(always)]
pub fn total<S: Simd>(s: S, probabilities: &[f32]) -> u128 {
    s.apart(
        #[inline(always)]
        move || {
            let mut total = Total::new(s);
            vectors(
                probabilities.len(),
                #[inline(always)]
                |span| total.add(s, clamp(s, span.load(s, probabilities, 0.0))),
            );
            total.get(s)
        },
    )
}

/// [`bounded`] for 16.
#[inline(always)]
pub fn clamp<S: Simd>(s: S, pr: S::F32) -> S::F32 {
    s.min(s.max(pr, s.splat(0.0)), s.splat(1.0))
}
