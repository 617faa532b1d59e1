//! A row copied into another storage type, or scaled.

use super::vectors;
use crate::dispatch::Kernel;
use crate::element::Element;
use crate::per_element::per_element;
use crate::simd::Dot;

/// `output = input`, each number the nearest of its type.
pub struct Narrow<'a, T> {
    /// The row.
    pub input: &'a [f32],
    /// As long as the input.
    pub output: &'a mut [T],
}

impl<T: Element> Kernel for Narrow<'_, T> {
    type Output = ();
    const DOT: bool = false;
    per_element!(run_narrow);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        vectors(
            self.input.len(),
            #[inline(always)]
            |span| span.store(s, span.load(s, self.input, 0.0), self.output),
        );
    }
}

/// `output = input`, exactly.
pub struct Widen<'a, T> {
    /// The row.
    pub input: &'a [T],
    /// As long as the input.
    pub output: &'a mut [f32],
}

impl<T: Element> Kernel for Widen<'_, T> {
    type Output = ();
    const DOT: bool = false;
    per_element!(run_widen);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        vectors(
            self.input.len(),
            #[inline(always)]
            |span| span.store(s, span.load(s, self.input, T::default()), self.output),
        );
    }
}

/// `output = input * factor`
pub struct Scale<'a, T> {
    /// The row.
    pub input: &'a [T],
    /// One for the row.
    pub factor: f32,
    /// As long as the input.
    pub output: &'a mut [T],
}

impl<T: Element> Kernel for Scale<'_, T> {
    type Output = ();
    const DOT: bool = false;
    per_element!(run_scale);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let factor = s.splat(self.factor);
        vectors(
            self.input.len(),
            #[inline(always)]
            |span| {
                let x = span.load(s, self.input, T::default());
                span.store(s, s.mul(x, factor), self.output);
            },
        );
    }
}
