//! Int8 weights on the host, in whatever format: as panels, where they lie or packed on the way.

use crate::error::Error;
use crate::ops::{FORMAT_NZ, FORMAT_PACKED, WeightSizes, packed_header};
use crate::scratch::{Plan, WorkerSlot};
use crate::tensor::{Describe, Dims, Tensor};
use core::ops::Range;
use tilekern_kernels::dispatch::Level;
use tilekern_kernels::pack::{self, Packed, Panels, Source, panel_vectors};
use tilekern_kernels::tiles::{
    Finished, Lie, MATMUL_WORDS, Matmul, MatmulRows, NibbleRows, PackColumns, PackNibbles, PackStrip, PackedRows, UNPACKED_WORDS,
    WeightColumns, WeightRows, strip_columns, suit_bands,
};

/// Bytes of panels that are packed at once, about: they stay in the second cache beside the rows that pass.
const STRIP: usize = 1 << 19;

/// The weights of all experts.
#[derive(Clone, Copy)]
pub(super) enum Weight<'a> {
    Packed(Packed<'a>),
    /// `[E,K,N]` with a contiguous last dimension.
    Rows {
        data: &'a [i8],
        expert: usize,
        pitch: usize,
        among: usize,
    },
    /// `[E,N/32,K/16,16,32]`: for each 32 columns the rows, one after the other.
    Stripes {
        data: &'a [i8],
        among: usize,
    },
    /// `[E,K,N]` or `[K,N]`, of which K is contiguous.
    Columns {
        data: &'a [i8],
        expert: usize,
        pitch: usize,
    },
    /// `[E,K,N]` or `[K,N]` with any strides.
    Strided(Tensor<'a, i8>),
    /// `[E,K,N/2]` or `[K,N/2]`, two columns to a byte, with a contiguous last dimension; or `[E,N/64,K/16,16,32]` or without E, for each
    /// 64 columns the rows.
    NibbleRows {
        data: &'a [u8],
        expert: usize,
        pitch: usize,
        stripe: usize,
    },
    /// `[E,K,N/2]` or `[K,N/2]` with any strides.
    Nibbles(Tensor<'a, u8>),
}

/// Panels, and the number of the first of them.
pub(super) struct Strip<'a> {
    pub panels: Panels<'a>,
    pub range: Range<usize>,
    pub first: usize,
}

impl<'a> Weight<'a> {
    /// Of a weight that was found valid, and is read while these bytes are written; a packed one shows its header.
    pub fn new(
        name: &'static str,
        view: &Tensor<'a, i8>,
        format: i32,
        d: WeightSizes,
        outputs: &[Range<usize>],
    ) -> Result<Weight<'a>, Error> {
        let (among, [expert, row, column]) = (view.dims().elements(), steps(view.dims(), d));
        Ok(match (format, view.memory_beside(outputs)) {
            (FORMAT_PACKED, _) => Weight::Packed(packed_header(name, view, d)?),
            (FORMAT_NZ, Some(data)) => Weight::Stripes { data, among },
            (_, Some(data)) if view.dims().has_contiguous_rows() => Weight::Rows { data, expert, pitch: row, among },
            (_, Some(data)) if d.k == 1 || row == 1 => Weight::Columns { data, expert, pitch: column },
            _ => Weight::Strided(*view),
        })
    }

    /// The same among weights of so many bytes that are read in turn.
    pub fn among(mut self, bytes: usize) -> Weight<'a> {
        match &mut self {
            Weight::Packed(packed) => *packed = packed.among(bytes),
            Weight::Rows { among, .. } | Weight::Stripes { among, .. } => *among = bytes,
            _ => {}
        }
        self
    }

    /// A packed weight must be of the kind that the call is about; in others the dtype says it.
    pub fn expect_four_bits(&self, name: &'static str, four: bool) -> Result<(), Error> {
        match self {
            Weight::Packed(packed) if (packed.source() == Source::I4) != four => {
                Err(Error::invalid(name, "a packed weight of the bits that its scale says", "another"))
            }
            _ => Ok(()),
        }
    }

    /// Of a weight of four bits that was found valid, and is read while these bytes are written.
    pub fn of_nibbles(view: &Tensor<'a, u8>, format: i32, d: WeightSizes, outputs: &[Range<usize>]) -> Weight<'a> {
        match (format, view.memory_beside(outputs)) {
            (FORMAT_NZ, Some(data)) => Weight::NibbleRows { data, expert: d.k * d.n / 2, pitch: 32, stripe: 32 * d.k },
            (_, Some(data)) if view.dims().has_contiguous_rows() => {
                let [expert, pitch, _] = steps(view.dims(), d);
                Weight::NibbleRows { data, expert, pitch, stripe: 32 }
            }
            _ => Weight::Nibbles(*view),
        }
    }

    /// How it lies for a product.
    pub fn lie(&self) -> Lie {
        match self {
            Weight::Rows { .. } => Lie::Rows,
            Weight::Stripes { .. } => Lie::Stripes,
            _ => Lie::Panels,
        }
    }

    /// Whether so many rows that meet it lie in bands.
    pub fn suits_bands(&self, level: Level, rows: usize) -> bool {
        suit_bands(level.isa(), rows, self.lie())
    }

    /// The columns that a product of so many rows takes at a time, if it packs the weights itself.
    fn packed_on_the_way(&self, level: Level, rows: usize) -> Option<usize> {
        strip_columns(level.isa(), rows, self.lie())
    }

    fn in_stripes(&self) -> bool {
        match self {
            Weight::Stripes { .. } => true,
            Weight::NibbleRows { stripe, .. } => *stripe != 32,
            _ => false,
        }
    }

    /// The most columns of a task over so many rows, if the weights are not packed.
    pub fn task_columns(&self, level: Level, rows: usize, d: WeightSizes) -> usize {
        self.packed_on_the_way(level, rows).unwrap_or_else(|| packed_columns(self.in_stripes(), d.k))
    }

    /// An expert whose weights lie row by row.
    fn rows(&self, expert: usize, d: WeightSizes) -> Option<WeightRows<'a>> {
        let (k, n) = (d.k, d.n);
        match *self {
            Weight::Rows { data, expert: stride, pitch, among } => {
                Some(WeightRows { data: &data[expert * stride..], pitch, stripe: 32, k, n, among })
            }
            Weight::Stripes { data, among } => {
                Some(WeightRows { data: &data[expert * k * n..][..k * n], pitch: 32, stripe: 32 * k, k, n, among })
            }
            _ => None,
        }
    }

    /// Packs columns of an expert, 16 to a panel.
    pub fn pack(
        &self,
        level: Level,
        expert: usize,
        columns: Range<usize>,
        d: WeightSizes,
        panels: &mut [[i8; 64]],
        sums: &mut [[i8; 64]],
    ) {
        let (k, n) = (d.k, columns.len());
        match *self {
            Weight::Packed(packed) => {
                let (from, range) = (packed.expert(expert), columns.start / 16..columns.end.div_ceil(16));
                for (to, p) in panels.chunks_exact_mut(panel_vectors(k)).zip(range.clone()) {
                    to.copy_from_slice(from.panel(p));
                }
                for (to, p) in sums.iter_mut().zip(range) {
                    *to = bytemuck::cast(from.sums(p));
                }
            }
            Weight::Rows { .. } | Weight::Stripes { .. } => {
                if let Some(weights) = self.rows(expert, d) {
                    level.run(PackStrip { weights, first: columns.start / 16, panels, sums });
                }
            }
            Weight::Columns { data, expert: stride, pitch } => {
                let weights = WeightColumns { data: &data[expert * stride..], pitch, k, n: d.n };
                level.run(PackColumns { weights, first: columns.start / 16, panels, sums });
            }
            Weight::Strided(view) => {
                let row = |i: usize| view.row(expert * k + i);
                pack::pack_columns(panels, sums, k, n, |i, column| row(i).get(columns.start + column));
            }
            Weight::NibbleRows { data, expert: stride, pitch, stripe } => {
                let weights = NibbleRows { data: &data[expert * stride..], pitch, stripe, k, n: d.n };
                level.run(PackNibbles { weights, first: columns.start / 16, panels, sums });
            }
            Weight::Nibbles(view) => {
                let byte = |i: usize, column: usize| view.row(expert * k + i).get(column / 2);
                pack::pack_columns(panels, sums, k, n, |i, j| nibble(byte(i, columns.start + j), columns.start + j));
            }
        }
    }

    /// The panels of some columns of an expert, packed into `stage` where they are not.
    pub fn strip<'s>(
        &self,
        level: Level,
        expert: usize,
        columns: Range<usize>,
        d: WeightSizes,
        stage: &'s mut [[i8; 64]],
    ) -> Strip<'s>
    where
        'a: 's,
    {
        let (first, n, count) = (columns.start / 16, columns.len(), columns.len().div_ceil(16));
        if let Weight::Packed(packed) = self {
            return Strip { panels: packed.expert(expert), range: first..first + count, first: 0 };
        }
        let (panels, sums) = stage.split_at_mut(count * panel_vectors(d.k));
        let sums = &mut sums[..count];
        self.pack(level, expert, columns, d, panels, sums);
        Strip { panels: Panels::new(panels, sums, d.k, n), range: 0..count, first }
    }

    /// The product of some rows and columns of an expert; `sink` takes the sums, and the number of the first of all panels.
    pub fn multiply(
        &self,
        level: Level,
        x: PackedRows<'_>,
        (expert, columns, d): (usize, Range<usize>, WeightSizes),
        (words, stage): (&mut [u64], &mut [[i8; 64]]),
        mut sink: impl FnMut(Finished<'_>, usize),
    ) {
        match self.rows(expert, d) {
            Some(weights) if self.packed_on_the_way(level, x.rows()).is_some() => {
                let panels = columns.start / 16..columns.end.div_ceil(16);
                level.run(MatmulRows { x, weights, panels, words, stage, sink: &mut |sums| sink(sums, 0) });
            }
            _ => {
                let Strip { panels: weights, range: panels, first } = self.strip(level, expert, columns, d, stage);
                level.run(Matmul { x, weights, panels, words, sink: &mut |sums| sink(sums, first) });
            }
        }
    }
}

/// Elements from expert to expert of `[E,K,N]` or `[K,N]`, from row to row and from column to column. Where there is one, its stride may be
/// any.
pub(super) fn steps(dims: &Dims, d: WeightSizes) -> [usize; 3] {
    let some = |count: usize, stride: usize| if count > 1 { stride } else { 0 };
    match *dims.strides() {
        [expert, row, column] => [some(d.experts.unwrap_or(1), expert), some(d.k, row), some(d.n, column)],
        [row, column] => [0, some(d.k, row), some(d.n, column)],
        _ => [0; 3],
    }
}

/// The four bits of a column, the low half of its byte for an even one.
#[inline(always)]
fn nibble(byte: u8, column: usize) -> i8 {
    let high = if column % 2 == 0 { byte << 4 } else { byte };
    (high as i8) >> 4
}

/// Columns that are packed whole: where K is long few, but of rows, each of which may be a page of its own, two lines.
fn packed_columns(stripes: bool, k: usize) -> usize {
    (STRIP / k.next_multiple_of(64) / 64 * 64).clamp(if stripes { 64 } else { 128 }, 256)
}

/// Room for the panels of one strip for each worker; none for packed weights.
pub(super) fn plan_stage(plan: &mut Plan, workers: usize, format: i32, d: WeightSizes) -> Result<WorkerSlot<[i8; 64]>, Error> {
    let panels = packed_columns(format == FORMAT_NZ, d.k).min(d.n.next_multiple_of(16)) / 16;
    plan.each(workers, if format == FORMAT_PACKED { 0 } else { panels * (panel_vectors(d.k) + 1) })
}

/// 64-bit words of workspace of a product.
pub(super) fn product_words(format: i32) -> usize {
    if format == FORMAT_PACKED { MATMUL_WORDS } else { UNPACKED_WORDS.max(MATMUL_WORDS) }
}
