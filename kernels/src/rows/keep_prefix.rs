//! What top-p and min-p leave of a row of probabilities that descends.
//!
//! The sum is the operator's own: in f64, element after element, each prefix rounded to f32; so no order is free here, and a kept entry
//! costs the latency of one addition. Behind the first dropped entry nothing is kept where the rest lies between 0 and that entry:
//! sums do not fall there, and what is subtracted from them is no larger. That is tested a vector at a time, without adding. A row
//! that fails the test is no descending row of probabilities; it must be walked again, by the formula alone.

use super::vectors;
use crate::dispatch::Kernel;
use crate::element::Element;
use crate::per_element::per_element;
use crate::simd::{Dot, Simd};

/// What was found so far in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prefix {
    /// The sum of the entries.
    pub sum: f64,
    /// The first entry that was dropped.
    pub dropped: Option<f32>,
    /// Whether to rely on the row's order.
    pub descends: bool,
}

impl Prefix {
    /// Of a row that begins.
    pub const fn new(descends: bool) -> Prefix {
        Prefix { sum: 0.0, dropped: None, descends }
    }
}

/// `output[j] = row[j]` where `!(f32(prefix_j) - row[j] > p)` and `!(row[j] < least)`, else 0, for a part of a row. Says whether the
/// part is as the prefix relies on; where not, the output means nothing.
pub struct KeepPrefix<'a, T> {
    /// A part of the row.
    pub row: &'a [T],
    /// The parts before; becomes that of the parts so far.
    pub prefix: &'a mut Prefix,
    /// The sum that an entry may have before it.
    pub p: f32,
    /// The least probability; NaN for none.
    pub least: f32,
    /// As long as `row`.
    pub output: &'a mut [T],
}

/// Whether all elements are at least 0 and at most `top`.
#[inline(always)]
fn lies_below<S: Simd, T: Element>(s: S, row: &[T], top: f32) -> bool {
    let (zero, top) = (s.splat(0.0), s.splat(top));
    let mut inside = s.eq(zero, zero);
    vectors(
        row.len(),
        #[inline(always)]
        |span| {
            // Behind a tail there is 0.
            let v = span.load(s, row, T::default());
            inside = s.both(inside, s.both(s.le(zero, v), s.le(v, top)));
        },
    );
    s.mask_bits(inside) == u16::MAX
}

impl<T: Element> Kernel for KeepPrefix<'_, T> {
    type Output = bool;
    const DOT: bool = false;
    per_element!(run_keep_prefix);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> bool {
        let KeepPrefix { row, prefix, p, least, output } = self;
        let mut at = 0;
        while at < row.len() && prefix.dropped.is_none() {
            let v: f32 = row[at].as_();
            prefix.sum += f64::from(v);
            let dropped = prefix.sum as f32 - v > p || v < least;
            output[at] = if dropped { T::default() } else { row[at] };
            at += 1;
            if dropped && prefix.descends {
                prefix.dropped = Some(v);
            }
        }
        output[at..].fill(T::default());
        prefix.dropped.is_none_or(|top| lies_below(s, &row[at..], top))
    }
}
