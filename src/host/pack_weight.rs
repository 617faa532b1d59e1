//! Packing on the host: four panels to a task.

use super::Host;
use super::weight::Weight;
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

/// Columns of a task: one line of each row of a weight of bytes.
const WIDTH: usize = 64;

impl<P: ParallelFor> Host<P> {
    fn pack_weight(&self, call: &mut PackWeight<'_, Self>, d: WeightSizes) -> Result<(), Error> {
        let format = call.weight_format;
        let outputs = [call.packed.bytes()];
        let mut row = call.packed.row_mut(0);
        let Some(packed) = row.as_slice() else { return Ok(()) };
        let four = matches!(call.weight, UnpackedWeight::I4(_));
        pack_header(packed, [d.experts.unwrap_or(1), d.k, d.n], if four { Source::I4 } else { Source::I8 });
        let scale = call.weight_scale.as_ref();
        match &call.weight {
            UnpackedWeight::I8(view) => self.pack_integers(packed, Weight::new("weight", view, format, d, &outputs)?, d),
            UnpackedWeight::I4(view) => self.pack_integers(packed, Weight::of_nibbles(view, format, d, &outputs), d),
            UnpackedWeight::F32(view) => self.pack_floats(packed, view, scale, d),
            UnpackedWeight::F16(view) => self.pack_floats(packed, view, scale, d),
            UnpackedWeight::BF16(view) => self.pack_floats(packed, view, scale, d),
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
        scale: Option<&TensorMut<'_, f32>>,
        d: WeightSizes,
    ) {
        self.each_strip(packed, scale, d, |expert, columns, (panels, sums, scale)| {
            let mut scales = [0.0; WIDTH];
            let weight = |k: usize, n: usize| view.row(expert * d.k + k).get(columns.start + n).as_();
            quantize_columns(panels, sums, d.k, columns.len(), weight, &mut scales);
            if let Some(mut scale) = scale {
                for i in 0..columns.len() {
                    scale.set(i, scales[i]);
                }
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
        let experts = packed[HEADER..].as_chunks_mut().0.chunks_exact_mut(count * (vectors + 1));
        for (expert, all) in experts.enumerate() {
            let (panels, sums) = all.split_at_mut(count * vectors);
            let (panels, sums) = (PerWorker::over(panels, WIDTH / 16 * vectors), PerWorker::over(sums, WIDTH / 16));
            let parts = (ByRow(panels), ByRow(sums), scale.map(|matrix| Columns { matrix, row: expert, columns: WIDTH }));
            parallel::rows(&self.pool, d.n.div_ceil(WIDTH), 1, parts, |i, strip| {
                body(expert, WIDTH * i..d.n.min(WIDTH * (i + 1)), strip);
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
        self.pack_weight(call, d)
    }
}
