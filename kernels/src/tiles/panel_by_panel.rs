//! Up to eight rows times packed int8 weights that come from memory.
//!
//! Memory is read fastest in one stream. Panels side by side are as many pages at once, each of which costs hardware a start of its own;
//! they spare work only where a cache delivers.

use super::gemv::gemv;
use super::matmul::{Finished, Matmul, PARKED, Sweep};
use super::side_by_side::slices;
use crate::dispatch::Kernel;
use crate::simd::Dot;
use core::ops::Range;

/// Lines of a page. Once a page a line is touched that lies a page further on than the requests, so that none of them waits for its
/// address.
const PAGE: usize = 64;

/// Lines from those of a step to those that it asks for. One row asks for nothing but that touch: its steps are so short that a
/// processor sees enough of them ahead.
const AHEAD: usize = 128;

/// [`Matmul`] of at most [`MOST`](PanelByPanel::MOST) rows, one panel after the other: what a `Matmul` does, on some
/// processors, where its weights come from memory, and here always.
///
/// ```
/// use tilekern_kernels::dispatch::Level;
/// use tilekern_kernels::pack::{Packed, pack_i8, packed_bytes};
/// use tilekern_kernels::tiles::{Activations, MATMUL_WORDS, Matmul, PackRows, PackedRows, PanelByPanel, row_words};
///
/// let (k, n, level) = (2, 3, Level::detect());
/// let mut packed = vec![0; packed_bytes(1, k, n).unwrap()];
/// pack_i8(&mut packed, k, n, |i, j| (10 * i + j) as i8);
/// let mut row = vec![0; row_words(k).unwrap()];
/// level.run(PackRows { x: Activations { data: &[1, -1], stride: k, rows: 1 }, k, words: &mut row });
///
/// let mut out = [0; 3];
/// level.run(PanelByPanel(Matmul {
///     x: PackedRows::new(&row, k, 1),
///     weights: Packed::new(&packed).unwrap().expert(0),
///     panels: 0..1,
///     words: &mut vec![0; MATMUL_WORDS],
///     sink: &mut |finished| finished.each_row(|_, sums| out.copy_from_slice(&sums[0][..3])),
/// }));
/// assert_eq!(out, [-10; 3]);
/// ```
pub struct PanelByPanel<'a>(pub Matmul<'a>);

impl PanelByPanel<'_> {
    /// The most rows.
    pub const MOST: usize = 8;
}

impl Kernel for PanelByPanel<'_> {
    type Output = ();

    /// # Panics
    ///
    /// If there are more rows.
    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let Matmul { x, weights, panels, words, sink } = self.0;
        let mut sweep = Sweep::new(x, weights, words);
        let (rows, most) = (x.rows(), PARKED / PanelByPanel::MOST);
        for first in panels.clone().step_by(most) {
            let panels = first..panels.end.min(first + most);
            match rows {
                0 => return,
                1 => sweep.one_by_one::<S, 1>(s, &panels),
                2 => sweep.one_by_one::<S, 2>(s, &panels),
                3 => sweep.one_by_one::<S, 3>(s, &panels),
                4 => sweep.one_by_one::<S, 4>(s, &panels),
                5 => sweep.one_by_one::<S, 5>(s, &panels),
                6 => sweep.one_by_one::<S, 6>(s, &panels),
                7 => sweep.one_by_one::<S, 7>(s, &panels),
                8 => sweep.one_by_one::<S, 8>(s, &panels),
                _ => panic!("more than {} rows", PanelByPanel::MOST),
            }
            sink(Finished { rows: 0..rows, sums: &sweep.parked[..rows * panels.len()], pitch: panels.len(), panels });
        }
    }
}

impl Sweep<'_> {
    /// All rows, which are MR, over some panels.
    #[inline(always)]
    fn one_by_one<S: Dot, const MR: usize>(&mut self, s: S, panels: &Range<usize>) {
        s.apart(
            #[inline(always)]
            move || {
                let x = self.x.group(0, 0..self.weights.panel(panels.start).len());
                for panel in panels.clone() {
                    s.prefetch(self.weights.sums_line(panel));
                    let acc = products::<S, MR>(s, x, self.weights.from(panel));
                    self.finish(s, acc, 0..MR, panel, panels);
                }
            },
        )
    }
}

/// The products of the rows and the first panel of `lines`, behind which the others follow.
#[inline(always)]
fn products<S: Dot, const MR: usize>(s: S, x: [&[S::Quad]; MR], lines: &[[i8; 64]]) -> [[S::I32; 1]; MR] {
    let (mut acc, steps) = ([[s.splat_i32(0); 1]; MR], x[0].len());
    for first in (0..steps).step_by(PAGE) {
        let page = first..steps.min(first + PAGE);
        if let Some(line) = lines.get(first + AHEAD + PAGE) {
            s.prefetch(line);
        }
        let (x, w) = (slices(x, page.clone()), slices([lines], page.clone()));
        acc = if const { MR == 1 } {
            gemv::<S, MR, 1, 0, false>(s, x, w, [], acc)
        } else {
            // Behind the last line, for what is there already.
            let coming = lines.get(page.start + AHEAD..page.end + AHEAD).unwrap_or(w[0]);
            gemv::<S, MR, 1, 1, false>(s, x, w, [coming], acc)
        };
    }
    acc
}
