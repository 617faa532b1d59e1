//! The panels of a weight, as products read them.

use super::panel_vectors;
use crate::dispatch::outgrow_caches;
use core::fmt;

/// The panels of one expert.
#[derive(Clone, Copy)]
pub struct Panels<'a> {
    /// One panel behind the other. Behind those of an expert lie its sums, and the experts that follow.
    weights: &'a [[i8; 64]],
    sums: &'a [[i8; 64]],
    /// Vectors from panel to panel.
    quads: usize,
    /// Vectors of a panel.
    window: usize,
    k: usize,
    n: usize,
    /// Bytes of all weights that are read in turn with these.
    among: usize,
}

/// Without the weights.
impl fmt::Debug for Panels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Panels").field("k", &self.k).field("n", &self.n).finish_non_exhaustive()
    }
}

impl<'a> Panels<'a> {
    /// Panels of `n` columns of depth `k` that were packed apart from a weight: [`panel_vectors`]`(k)` for each, and their sums. Columns
    /// of nothing are none, as for [`Packed::new`](super::Packed::new): tiles would have nothing to start their sums with.
    ///
    /// # Panics
    ///
    /// If `k` is 0, or the slices are shorter.
    pub fn new(weights: &'a [[i8; 64]], sums: &'a [[i8; 64]], k: usize, n: usize) -> Panels<'a> {
        assert!(k >= 1, "columns of nothing");
        let quads = panel_vectors(k);
        let count = n.div_ceil(16);
        let weights = &weights[..count * quads];
        Panels { weights, sums: &sums[..count], quads, window: quads, k, n, among: size_of_val(weights) }
    }

    /// The same, which `weights` begins with, among so many bytes that are read in turn.
    pub(super) fn before(self, weights: &'a [[i8; 64]], among: usize) -> Panels<'a> {
        Panels { weights, among, ..self }
    }

    /// Columns.
    pub fn n(&self) -> usize {
        self.n
    }

    /// The length of a dot product.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Number of panels.
    pub fn len(&self) -> usize {
        self.sums.len()
    }

    /// Never: a weight has columns.
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// The quads of panel `p`, `[K64 / 4][16][4]`.
    #[inline(always)]
    pub fn panel(&self, p: usize) -> &'a [[i8; 64]] {
        &self.weights[p * self.quads..][..self.window]
    }

    /// The quads of panel `p`, which is about to be read; behind the last, those of the expert that follows, if one does.
    #[inline(always)]
    pub(crate) fn coming(&self, p: usize) -> Option<&'a [[i8; 64]]> {
        let sums = if p < self.len() { 0 } else { self.len() };
        self.weights.get(p * self.quads + sums..)?.get(..self.window)
    }

    /// The lines of `count` panels at most, from `p` on; none of windows, which lie apart.
    #[inline(always)]
    pub(crate) fn behind(&self, p: usize, count: usize) -> &'a [[i8; 64]] {
        let count = if self.window == self.quads { count.min(self.len().saturating_sub(p)) } else { 0 };
        self.weights.get(p * self.quads..(p + count) * self.quads).unwrap_or_default()
    }

    /// The quads of the panels from `p` on, and what lies behind them.
    #[inline(always)]
    pub(crate) fn from(&self, p: usize) -> &'a [[i8; 64]] {
        &self.weights[p * self.quads..]
    }

    /// Whether all weights that are read in turn with these outgrow what counts of the caches.
    pub(crate) fn come_from_memory(&self) -> bool {
        outgrow_caches(self.among)
    }

    /// Rows `from ..` of the panels `first ..`, `k` rows, both multiples of 64, with column sums of their own, one for each panel. Whoever
    /// made these has just read them: they come from a cache.
    pub fn window(&self, first: usize, from: usize, k: usize, sums: &'a [[i8; 64]]) -> Panels<'a> {
        let weights = &self.weights[first * self.quads + from / 4..];
        Panels { weights, sums, window: k / 4, k, n: 16 * sums.len(), among: 0, ..*self }
    }

    /// Where the column sums of panel `p` lie.
    #[inline(always)]
    pub fn sums_line(&self, p: usize) -> &'a [i8; 64] {
        &self.sums[p]
    }

    /// The column sums of panel `p`.
    #[inline(always)]
    pub fn sums(&self, p: usize) -> [i32; 16] {
        bytemuck::cast(self.sums[p])
    }
}

#[cfg(test)]
mod tests {
    use crate::pack::{Packed, Source, pack_columns, pack_header, panel_vectors};

    #[test]
    fn the_next_expert_follows() {
        let (k, n) = (70, 40);
        let mut packed = [0; 64 + 2 * 3 * 33 * 64];
        pack_header(&mut packed, [2, k, n], Source::I8);
        let experts = packed[64..].as_chunks_mut().0.chunks_exact_mut(3 * (panel_vectors(k) + 1));
        for (expert, vectors) in experts.enumerate() {
            let (panels, sums) = vectors.split_at_mut(3 * panel_vectors(k));
            pack_columns(panels, sums, k, n, |i, j| (50 * expert + i + j) as i8);
        }
        let packed = Packed::new(&packed).unwrap();
        let [first, second] = [0, 1].map(|expert| packed.expert(expert));
        assert_eq!([first.len(), second.len()], [3, 3]);
        for p in 0..3 {
            assert_eq!(first.coming(p), Some(first.panel(p)));
            assert_eq!(first.coming(3 + p), Some(second.panel(p)));
            assert_eq!(second.coming(3 + p), None);
        }
        assert_ne!(first.panel(0), second.panel(0));
        assert_eq!(first.behind(1, 2), [first.panel(1), first.panel(2)].concat());
        assert_eq!([first.behind(2, 2), first.behind(3, 2)], [first.panel(2), &[]]);
        let sums = [[0; 64]; 2];
        assert!(first.window(0, 0, 64, &sums).behind(1, 1).is_empty(), "a window's panels lie apart");
    }
}
