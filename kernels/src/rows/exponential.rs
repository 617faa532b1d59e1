//! Exponential numbers as a tensor holds them, one row or a part of one.

use crate::dispatch::Kernel;
use crate::element::Element;
use crate::per_element::per_element;
use crate::philox::Exponential;
use crate::simd::Dot;

/// `output[i] = e / rate`, where e is number `first + i`.
pub struct Exponentials<'a, T> {
    /// Of which tensor, with rate 1.
    pub numbers: Exponential,
    /// The element of the tensor that comes first.
    pub first: u64,
    /// Above 0; 1 costs no division.
    pub rate: f32,
    /// Where they go.
    pub output: &'a mut [T],
}

impl<T: Element> Kernel for Exponentials<'_, T> {
    type Output = ();
    const DOT: bool = false;
    per_element!(run_exponentials);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        self.numbers.walk(
            s,
            self.first,
            self.output.len(),
            #[inline(always)]
            |span, words| {
                let e = Exponential::of_words(s, words);
                let e = if self.rate == 1.0 { e } else { s.div(e, s.splat(self.rate)) };
                span.store(s, e, self.output);
            },
        );
    }
}
