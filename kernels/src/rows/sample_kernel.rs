//! [`Sample`] as a kernel, and the size of its blocks.

use super::blocks::{BLOCK, LONGER_BLOCK, WIDER_BLOCK};
use super::runs::runs_are_short;
use super::sample::{Choice, Sample};
use crate::dispatch::{Isa, Kernel};
use crate::element::Element;
use crate::per_element::per_element;
use crate::simd::Dot;

/// A row of so many elements is long.
const LONG: usize = 1 << 16;

/// A row as the kernel takes it: where it is described, since a copy of thirty words would be waited for.
pub type InPlace<'a, T> = &'a mut Sample<'a, T>;

impl<T: Element> Kernel for InPlace<'_, T> {
    type Output = Choice;
    const DOT: bool = false;
    per_element!(run_sample);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Choice {
        if let Some(choice) = self.choose_best(s) {
            choice
        } else if const { matches!(S::ISA, Isa::Avx2) } {
            self.choose_by_blocks::<S, WIDER_BLOCK>(s)
        } else if const { S::IS_WIDE && size_of::<T>() == size_of::<f32>() } && self.is_long_for_few() {
            self.choose_by_blocks::<S, LONGER_BLOCK>(s)
        } else {
            self.choose_by_blocks::<S, BLOCK>(s)
        }
    }
}

/// [`Sample`] by way of blocks of another size.
pub struct Blocked<'a, T, const BLOCK: usize>(pub InPlace<'a, T>);

impl<T: Element, const BLOCK: usize> Kernel for Blocked<'_, T, BLOCK> {
    type Output = Choice;
    const DOT: bool = false;

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Choice {
        self.0.choose_best(s).unwrap_or_else(
            #[inline(always)]
            || self.0.choose_by_blocks::<S, BLOCK>(s),
        )
    }
}

impl<T: Element> Sample<'_, T> {
    /// Whether the row is long, and mostly little of it is looked for. Measured on processors that have AMX.
    #[inline(always)]
    pub(super) fn is_long_for_few(&self) -> bool {
        let (n, k) = (self.row.len(), self.stages.k);
        let few = if k > 0 { self.may_be_led() && k <= n / (2 * LONGER_BLOCK) } else { self.is_min_p_alone() };
        n >= LONG && few && runs_are_short()
    }
}
