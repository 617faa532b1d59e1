//! Packing on the host: sixteen panels to a task, or four where there would be few tasks.

use super::Host;
use super::weight::{Weight, steps};
use crate::backend::Run;
use crate::error::Error;
use crate::ops::{PackWeight, UnpackedWeight, WeightSizes};
use crate::parallel::{self, ByRow, Columns, ParallelFor};
use crate::scratch::PerWorker;
use crate::tensor::{Describe, RowMut, Tensor, TensorMut};
use core::alloc::Layout;
use core::ops::Range;
use tilekern_kernels::element::Element;
use tilekern_kernels::pack::{HEADER, Source, pack_header, panel_vectors, quantize_columns};
use tilekern_kernels::tiles::{FloatRows, PackFloatColumns, PackFloats, WeightColumns};

/// The most columns of a task: some lines of each row, which may be a page of its own.
const WIDTH: usize = 256;
/// Columns of a task where there would be few: one line of each row of a weight of bytes.
const NARROW: usize = 64;
/// Tasks for each worker, at least, that leave no one without work for long.
const TASKS: usize = 4;

impl<P: ParallelFor> Host<P> {
    fn pack_weight(&self, call: &mut PackWeight<'_, Self>, d: WeightSizes) -> Result<(), Error> {
        let format = call.weight_format;
        let scale = call.weight_scale.as_ref();
        let outputs = [call.packed.bytes(), scale.map_or(0..0, Describe::bytes)];
        let mut row = call.packed.row_mut(0);
        let Some(packed) = row.as_slice() else { return Ok(()) };
        let four = matches!(call.weight, UnpackedWeight::I4(_));
        pack_header(packed, [d.experts.unwrap_or(1), d.k, d.n], if four { Source::I4 } else { Source::I8 });
        match &call.weight {
            UnpackedWeight::I8(view) => self.pack_integers(packed, Weight::new("weight", view, format, d, &outputs)?, d),
            UnpackedWeight::I4(view) => self.pack_integers(packed, Weight::of_nibbles(view, format, d, &outputs), d),
            UnpackedWeight::F32(view) => self.pack_floats(packed, view, view.memory_beside(&outputs), scale, d),
            UnpackedWeight::F16(view) => self.pack_floats(packed, view, view.memory_beside(&outputs), scale, d),
            UnpackedWeight::BF16(view) => self.pack_floats(packed, view, view.memory_beside(&outputs), scale, d),
        }
        Ok(())
    }

    fn pack_integers(&self, packed: &mut [i8], weight: Weight<'_>, d: WeightSizes) {
        self.each_strip(packed, None, d, |expert, columns, (panels, sums, _)| {
            weight.pack(self.level, expert, columns, d, panels, sums);
        });
    }

    fn pack_floats<T: Element>(
        &self,
        packed: &mut [i8],
        view: &Tensor<'_, T>,
        memory: Option<&[T]>,
        scale: Option<&TensorMut<'_, f32>>,
        d: WeightSizes,
    ) {
        let (k, n, level) = (d.k, d.n, self.level);
        let [expert_step, row, column] = steps(view.dims(), d);
        self.each_strip(packed, scale, d, |expert, columns, (panels, sums, to)| {
            let (first, mut scales) = (columns.start / 16, [0.0; WIDTH]);
            let scales = &mut scales[..columns.len()];
            match memory.map(|data| &data[expert * expert_step..]) {
                Some(data) if view.dims().has_contiguous_rows() => {
                    let weights = FloatRows { data, pitch: row, k };
                    level.run(PackFloats { weights, first, panels, sums, scales });
                }
                Some(data) if k == 1 || row == 1 => {
                    let weights = WeightColumns { data, pitch: column, k, n };
                    level.run(PackFloatColumns { weights, first, panels, sums, scales });
                }
                _ => {
                    let weight = |i: usize, j: usize| view.row(expert * k + i).get(columns.start + j).as_();
                    quantize_columns(panels, sums, k, columns.len(), weight, scales);
                }
            }
            if let Some(mut to) = to {
                (0..columns.len()).for_each(|i| to.set(i, scales[i]));
            }
        });
    }

    /// Calls `body(expert, columns, (panels, sums, scales))` for all columns of all experts.
    fn each_strip(
        &self,
        packed: &mut [i8],
        scale: Option<&TensorMut<'_, f32>>,
        d: WeightSizes,
        body: impl Fn(usize, Range<usize>, Strip<'_>) + Sync,
    ) {
        let (vectors, count) = (panel_vectors(d.k), d.n.div_ceil(16));
        let width = if d.n / (WIDTH * TASKS) >= self.pool.workers() { WIDTH } else { NARROW };
        let experts = packed[HEADER..].as_chunks_mut().0.chunks_exact_mut(count * (vectors + 1));
        for (expert, all) in experts.enumerate() {
            let (panels, sums) = all.split_at_mut(count * vectors);
            let (panels, sums) = (PerWorker::over(panels, width / 16 * vectors), PerWorker::over(sums, width / 16));
            let parts = (ByRow(panels), ByRow(sums), scale.map(|matrix| Columns { matrix, row: expert, columns: width }));
            parallel::rows(&self.pool, d.n.div_ceil(width), 1, parts, |i, strip| {
                body(expert, width * i..d.n.min(width * (i + 1)), strip);
            });
        }
    }
}

/// Panels, their sums, and the scales of their columns.
type Strip<'a> = (&'a mut [[i8; 64]], &'a mut [[i8; 64]], Option<RowMut<'a, f32>>);

impl<P: ParallelFor> Run<PackWeight<'_, Self>> for Host<P> {
    fn workspace(&self, call: &PackWeight<'_, Self>) -> Result<Layout, Error> {
        call.check(false)?;
        Ok(Layout::new::<()>())
    }

    fn run_mut(&self, call: &mut PackWeight<'_, Self>, _scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check(true)?;
        let weights = d.experts.unwrap_or(1).saturating_mul(d.k).saturating_mul(d.n);
        self.inside(1, weights, || self.pack_weight(call, d))
    }
}
