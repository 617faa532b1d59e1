//! `exp`, `log` and `sigmoid`: every instruction set against the scalar definition, bit for bit, and both against `f64`.
//!
//! All 2^32 arguments of each: `cargo test -p tilekern-kernels --test math -- --ignored --nocapture`, some minutes a function.

mod common;
use common::{Random, bits, levels};
use tilekern_kernels::dispatch::Kernel;
use tilekern_kernels::math::{self, constants::*};
use tilekern_kernels::reference;
use tilekern_kernels::simd::{Dot, Simd};

/// A function in its three forms, and what it promises.
trait Function: Send + Sync {
    fn vector<S: Simd>(s: S, x: S::F32) -> S::F32;
    fn scalar(x: f32) -> f32;
    fn exact(x: f64) -> f64;
    /// The bound on the error, in units of the last place of the exact result; where it is `None`, the result is exact.
    fn bound(x: f32) -> Option<f64>;
    /// Arguments around which the reduction changes, over and over.
    fn seams() -> Vec<f32>;
}

struct Exp;

impl Function for Exp {
    #[inline(always)]
    fn vector<S: Simd>(s: S, x: S::F32) -> S::F32 {
        math::exp(s, x)
    }
    fn scalar(x: f32) -> f32 {
        reference::math::exp(x)
    }
    fn exact(x: f64) -> f64 {
        // Flushed where the result would not be normal.
        if x < f64::from(EXP_MIN) { 0.0 } else { x.exp() }
    }
    fn bound(x: f32) -> Option<f64> {
        (EXP_MIN..=EXP_MAX).contains(&x).then_some(1.05)
    }
    fn seams() -> Vec<f32> {
        (-130..=130).map(|n| ((f64::from(n) + 0.5) * std::f64::consts::LN_2) as f32).chain([0.0, EXP_MIN, EXP_MAX]).collect()
    }
}

struct Log;

impl Function for Log {
    #[inline(always)]
    fn vector<S: Simd>(s: S, x: S::F32) -> S::F32 {
        math::log(s, x)
    }
    fn scalar(x: f32) -> f32 {
        reference::math::log(x)
    }
    fn exact(x: f64) -> f64 {
        x.ln()
    }
    fn bound(x: f32) -> Option<f64> {
        (x > 0.0 && x < f32::INFINITY).then_some(1.0)
    }
    fn seams() -> Vec<f32> {
        let roots = (-149..=127).map(|e| (std::f64::consts::FRAC_1_SQRT_2 * f64::from(e).exp2()) as f32);
        roots.chain([1.0, f32::MIN_POSITIVE, f32::MAX, 0.0]).collect()
    }
}

struct Sigmoid;

impl Function for Sigmoid {
    #[inline(always)]
    fn vector<S: Simd>(s: S, x: S::F32) -> S::F32 {
        math::sigmoid(s, x)
    }
    fn scalar(x: f32) -> f32 {
        reference::math::sigmoid(x)
    }
    fn exact(x: f64) -> f64 {
        // Below, e^-x is infinite in f32.
        if x < -f64::from(EXP_MAX) { 0.0 } else { 1.0 / (1.0 + (-x).exp()) }
    }
    fn bound(x: f32) -> Option<f64> {
        (-EXP_MAX..f32::INFINITY).contains(&x).then_some(3.0)
    }
    fn seams() -> Vec<f32> {
        Exp::seams().into_iter().map(|x| -x).collect()
    }
}

struct Apply<F>([f32; 16], F);

impl<F: Function> Kernel for Apply<F> {
    type Output = [f32; 16];

    #[inline(always)]
    fn run<S: Dot>(mut self, s: S) -> [f32; 16] {
        s.store(F::vector(s, s.load(&self.0)), &mut self.0);
        self.0
    }
}

/// The distance from `exact` in units of its last place.
fn ulps(found: f32, exact: f64) -> f64 {
    let exponent = (exact.abs().to_bits() >> 52) as i32 - 1023;
    (f64::from(found) - exact).abs() / f64::from((exponent - 23).max(-149)).exp2()
}

/// Checks 16 arguments on every instruction set; returns the largest error.
fn check<F: Function>(x: [f32; 16], function: fn() -> F) -> f64 {
    let expected = x.map(F::scalar);
    for level in levels() {
        assert_eq!(level.run(Apply(x, function())).map(bits), expected.map(bits), "{x:?} on {level:?}");
    }
    let errors = std::iter::zip(x, expected).map(|(x, found)| {
        let exact = F::exact(f64::from(x));
        let Some(bound) = F::bound(x) else {
            assert_eq!(bits(found), bits(exact as f32), "{x:e}");
            return 0.0;
        };
        let error = ulps(found, exact);
        assert!(error <= bound, "{x:e}: {found:e} is {error} ulp from {exact:e}");
        error
    });
    errors.fold(0.0, f64::max)
}

/// Mantissas for each exponent; fewer where an emulator or an interpreter runs the test.
const MANTISSAS: u32 = if cfg!(miri) {
    16
} else if cfg!(target_arch = "x86_64") {
    4096
} else {
    512
};

/// Every exponent of both signs with many mantissas, then the neighbours of every seam.
fn everywhere<F: Function>(function: fn() -> F) {
    const STEP: u32 = (1 << 23) / MANTISSAS;
    let mut random = Random(1);
    let mut worst = 0f64;
    for exponent in 0..512 {
        for m in (0..MANTISSAS).step_by(16) {
            let mut mantissa = |i| (m + i as u32) * STEP + random.below(STEP as usize) as u32;
            worst = worst.max(check(std::array::from_fn(|i| f32::from_bits(exponent << 23 | mantissa(i))), function));
        }
    }
    let neighbours = MANTISSAS.min(256) as i32;
    for seam in F::seams() {
        for start in (-neighbours..neighbours).step_by(16) {
            let x = std::array::from_fn(|i| f32::from_bits(seam.to_bits().wrapping_add_signed(start + i as i32)));
            worst = worst.max(check(x, function));
        }
    }
    println!("{}: {worst:.4} ulp", std::any::type_name::<F>());
}

#[test]
fn exp_everywhere() {
    everywhere(|| Exp);
}

#[test]
fn log_everywhere() {
    everywhere(|| Log);
}

#[test]
fn sigmoid_everywhere() {
    everywhere(|| Sigmoid);
}

#[test]
fn special_values() {
    let infinity = f32::INFINITY;
    for nan in [f32::NAN, -f32::NAN, f32::from_bits(0x7F80_0001)] {
        assert!([Exp::scalar(nan), Log::scalar(nan), Sigmoid::scalar(nan)].iter().all(|x| x.is_nan()));
    }
    assert_eq!([Exp::scalar(0.0), Exp::scalar(-0.0), Exp::scalar(f32::from_bits(1))], [1.0; 3]);
    assert_eq!([Exp::scalar(infinity), Exp::scalar(f32::MAX)], [infinity; 2]);
    assert_eq!([-infinity, f32::MIN, EXP_MIN.next_down()].map(|x| Exp::scalar(x).to_bits()), [0; 3]);
    assert_eq!([Log::scalar(0.0), Log::scalar(-0.0)], [-infinity; 2]);
    assert_eq!([Log::scalar(1.0).to_bits(), Log::scalar(infinity).to_bits()], [0, infinity.to_bits()]);
    assert!([-infinity, -1.0, -f32::from_bits(1)].iter().all(|&x| Log::scalar(x).is_nan()));
    assert_eq!([Sigmoid::scalar(0.0), Sigmoid::scalar(-0.0)], [0.5; 2]);
    assert_eq!([Sigmoid::scalar(infinity), Sigmoid::scalar(100.0)], [1.0; 2]);
    assert_eq!([-infinity, -100.0].map(|x| Sigmoid::scalar(x).to_bits()), [0; 2]);
}

/// The limits are where they should be: the exponential of `EXP_MIN` is normal and that of its neighbour is not, and likewise at the
/// other end.
#[test]
fn limits_of_exp() {
    let exact = |x: f32| f64::from(x).exp();
    let (smallest, largest) = (f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX));
    assert!(exact(EXP_MIN) >= smallest && exact(EXP_MIN.next_down()) < smallest);
    // Rounds to infinity from half a unit above the largest number.
    assert!(exact(EXP_MAX) < largest && exact(EXP_MAX.next_up()) > largest * (1.0 + 2f64.powi(-25)));
    assert!(Exp::scalar(EXP_MIN).is_normal() && Exp::scalar(EXP_MAX).is_normal());
}

/// Calls `of` for all 2^32 arguments, 16 at a time, on all processors; returns the largest result.
fn exhaustive(of: impl Fn([f32; 16]) -> f64 + Sync) -> f64 {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let blocks = |thread| (thread as u32..1 << 28).step_by(threads);
    let block = |block: u32| of(std::array::from_fn(|i| f32::from_bits(block * 16 + i as u32)));
    std::thread::scope(|scope| {
        let share = |thread| scope.spawn(move || blocks(thread).map(block).fold(0.0, f64::max));
        let workers: Vec<_> = (0..threads).map(share).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).fold(0.0, f64::max)
    })
}

#[test]
#[ignore = "all 2^32 arguments"]
fn exhaustive_exp() {
    println!("exp: {:.4} ulp over all f32", exhaustive(|x| check(x, || Exp)));
}

/// It never falls where its argument rises.
#[test]
#[ignore = "all 2^32 arguments"]
fn exhaustive_exp_is_monotone() {
    exhaustive(|x| {
        let steps = x.map(|x| (Exp::scalar(x), Exp::scalar(x.next_up())));
        assert!(steps.iter().all(|(low, high)| low <= high || low.is_nan() || high.is_nan()), "{x:?}");
        0.0
    });
}

#[test]
#[ignore = "all 2^32 arguments"]
fn exhaustive_log() {
    println!("log: {:.4} ulp over all f32", exhaustive(|x| check(x, || Log)));
}

#[test]
#[ignore = "all 2^32 arguments"]
fn exhaustive_sigmoid() {
    println!("sigmoid: {:.4} ulp over all f32", exhaustive(|x| check(x, || Sigmoid)));
}
