//! Exponential numbers as a tensor holds them, one row or a part of one.

use crate::dispatch::Kernel;
use crate::element::Element;
use crate::per_element::per_element;
use crate::philox::Exponential;
use crate::simd::Dot;

/// `output[i] = factor * e`, where e is number `first + i`.
pub struct Exponentials<'a, T> {
    /// Of which tensor, with rate 1.
    pub numbers: Exponential,
    /// The element of the tensor that comes first.
    pub first: u64,
    /// 1 / rate.
    pub factor: f32,
    /// Where they go.
    pub output: &'a mut [T],
}

impl<T: Element> Kernel for Exponentials<'_, T> {
    type Output = ();
    const DOT: bool = false;
    per_element!(run_exponentials);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let factor = s.splat(self.factor);
        self.numbers.walk(
            s,
            self.first,
            self.output.len(),
            #[inline(always)]
            |span, words| span.store(s, s.mul(Exponential::of_words(s, words), factor), self.output),
        );
    }
}
