//! The grouped product on the host, a chunk of rows at a time: packed rows, sums by tiles over the pool, then each row's epilogue.
//!
//! A chunk is as many whole groups of rows as fit in the cache with their sums, or one large group or part of it. Its tiles, of whichever
//! expert, are divided among the workers alike; so skewed routing costs nothing but the reading of the weights.

use super::Host;
use super::activations::{PackedChunk, RowSlots, chunk_rows, most_chunk_rows};
use super::half_products::{self, HalfProducts, WIDTH};
use super::quant_matmul::{Offset, Target, store_integers};
use super::weight::{Weight, plan_stage, product_words};
use crate::backend::{Backend, Run};
use crate::error::{Error, Value};
use crate::ops::{Bias, ChannelScale, GroupedMatmulSwigluQuant, GroupedScale, GroupedSizes, GroupedWeight};
use crate::parallel::{self, Column, From, ParallelFor};
use crate::scratch::{PerWorker, Plan, Slot, WorkerSlot};
use crate::tensor::{Describe, Dims, Tensor, TensorMut};
use core::alloc::Layout;
use tilekern_kernels::dispatch::{Isa, Level};
use tilekern_kernels::element::Element;
use tilekern_kernels::rows::{GroupScale, GroupSwigluQuant, Quantiser, SwigluQuant};
use tilekern_kernels::tiles::PackedRows;

/// Bytes of a chunk's sums, about: they share the second cache with the packed rows.
const SUMS: usize = 1 << 20;

/// The same of a large group on a unit for tiles, which computes sooner than weights are read again.
const LARGE_GROUP_SUMS: usize = 4 << 20;

/// Words between two rows of the sums, a cache line: so rows of a power of two do not share the sets of a cache.
const APART: usize = 16;

/// Some rows of one expert: the expert, the first row of the chunk and the last but one.
type Segment = [usize; 3];

pub(super) struct Slots {
    capacity: Capacity,
    rows: RowSlots,
    words: WorkerSlot<u64>,
    stage: WorkerSlot<[i8; 64]>,
    segments: Slot<Segment>,
    sums: Slot<i32>,
    /// Scales, bias and offset of an expert, where they are not contiguous.
    columns: WorkerSlot<f32>,
    row: WorkerSlot<f32>,
    output: WorkerSlot<i8>,
    halves: half_products::Slots,
}

/// The most rows of a chunk: of several groups, and of one, which is no less.
#[derive(Clone, Copy)]
struct Capacity {
    groups: usize,
    group: usize,
}

impl Capacity {
    fn of(level: Level, d: GroupedSizes, format: i32) -> Capacity {
        let fit = |sums: usize| (sums / 4 / d.n).clamp(64, 256);
        let groups = chunk_rows(d.m, d.k, format).min(fit(SUMS));
        let group = match level.isa() == Isa::Avx512Amx && d.scales.is_none() {
            true => most_chunk_rows(d.m, d.k, format).min(fit(LARGE_GROUP_SUMS)),
            false => groups,
        };
        Capacity { groups, group }
    }
}

pub(super) fn plan(workers: usize, level: Level, d: GroupedSizes, format: i32) -> Result<(Plan, Slots), Error> {
    let (mut plan, capacity) = (Plan::new(), Capacity::of(level, d, format));
    let rows = capacity.group;
    let too_large = || Error::invalid("x", "a size that fits in memory", "an overflow");
    let slots = Slots {
        capacity,
        rows: RowSlots::plan(&mut plan, workers, if d.scales.is_none() { rows } else { 1 }, d.k)?,
        words: plan.each(workers, product_words(format))?,
        stage: plan_stage(&mut plan, workers, format, d.weight())?,
        segments: plan.slot(rows)?,
        sums: plan.slot(d.n.checked_add(APART).and_then(|pitch| pitch.checked_mul(rows)).ok_or_else(too_large)?)?,
        columns: plan.each(workers, d.n.checked_mul(3).ok_or_else(too_large)?)?,
        row: plan.each(workers, d.n / 2)?,
        output: plan.each(workers, d.n / 2)?,
        halves: half_products::plan(&mut plan, workers, d, rows)?,
    };
    Ok((plan, slots))
}

/// Calls `each(expert, first, end)` for every group that has rows, or names the entry that is wrong.
fn groups(list: &Tensor<'_, i64>, counts: bool, rows: usize, mut each: impl FnMut(usize, usize, usize)) -> Result<(), Error> {
    let mut after = 0usize;
    for index in 0..list.dims().elements() {
        let value = list.get(index);
        let end = if counts { (after as i64).checked_add(value) } else { Some(value) };
        let end = end.and_then(|end| usize::try_from(end).ok()).filter(|&end| end >= after && end <= rows);
        let found = Value::Group { index, value, after, rows };
        let end = end.ok_or_else(|| Error::invalid("group_list", "rows that follow each other", found))?;
        if end > after {
            each(index, after, end);
        }
        after = end;
    }
    Ok(())
}

/// Calls `each(first, segments, rows)` for every chunk; segments count from the chunk's first row.
fn chunks(
    list: &Tensor<'_, i64>,
    counts: bool,
    m: usize,
    room: Capacity,
    segments: &mut [Segment],
    mut each: impl FnMut(usize, &[Segment], usize) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut first, mut used, mut result) = (0, 0, Ok(()));
    groups(list, counts, m, |expert, start, end| {
        // A group that does not fit is cut into equal parts.
        let part = (end - start).div_ceil((end - start).div_ceil(room.group));
        for start in (start..end).step_by(part) {
            let end = end.min(start + part);
            if used > 0 && end - first > room.groups {
                let full = core::mem::take(&mut used);
                if result.is_ok() {
                    result = each(first, &segments[..full], start - first);
                }
            }
            if used == 0 {
                first = start;
            }
            segments[used] = [expert, start - first, end - first];
            used += 1;
        }
    })?;
    result?;
    match segments[..used].last() {
        Some(&[_, _, rows]) => each(first, &segments[..used], rows),
        None => Ok(()),
    }
}

/// Whether nothing is written: what the weights and the list hold is not looked at then.
fn is_empty<B: Backend>(call: &GroupedMatmulSwigluQuant<'_, B>, d: GroupedSizes) -> bool {
    d.m == 0 || call.group_list.dims().elements() == 0
}

impl<P: ParallelFor> Host<P> {
    /// A call that was found valid.
    fn grouped(&self, call: &GroupedMatmulSwigluQuant<'_, Self>, d: GroupedSizes, scratch: &mut [u8]) -> Result<(), Error> {
        if is_empty(call, d) {
            return Ok(());
        }
        let (plan, slots) = plan(self.pool.workers(), self.level, d, call.weight_format)?;
        let space = plan.carve(scratch)?;
        let offset = call.output_offset.as_ref().map_or(0..0, |offset| offset.bytes());
        let written = [call.output.bytes(), call.output_scale.bytes(), offset];
        let weight = match &call.weight {
            GroupedWeight::I8(view) => {
                let weight = Weight::new("weight", view, call.weight_format, d.weight(), &written)?;
                weight.expect_four_bits("weight", d.scales.is_some())?;
                weight
            }
            GroupedWeight::I4(view) => Weight::of_nibbles(view, call.weight_format, d.weight(), &written),
        };
        let (list, counts) = (call.group_list, call.group_list_type == 1);
        groups(&list, counts, d.m, |_, _, _| {})?;
        let (segments, sums) = (space.take(slots.segments), space.take(slots.sums));
        let own = (space.take_each(slots.words), space.take_each(slots.stage));
        let (mut rows, mut halves) = (slots.rows.take(&space, d.k), slots.halves.take(&space));
        let finish = Finish {
            call,
            column_first: call.arithmetic == 2,
            quantiser: match (&call.output_offset, call.arithmetic, call.fp16_rounding) {
                (Some(_), ..) => Quantiser::Asymmetric,
                (None, 1, false) => Quantiser::Reciprocal,
                (None, 1, true) => Quantiser::Half,
                _ => Quantiser::Division,
            },
        };
        let outputs = (&call.output, Column(&call.output_scale), call.output_offset.as_ref().map(Column));
        let rooms = (space.take_each(slots.columns), space.take_each(slots.row), space.take_each(slots.output));
        chunks(&list, counts, d.m, slots.capacity, segments, |first, segments, count| {
            let product = GroupedProduct { host: self, d, weight, segments, own: &own };
            let (all, pitch) = (first..first + count, d.n + APART);
            let lie = Dims::strided(&[count, d.n], &[pitch, 1])?;
            match d.scales {
                None => {
                    product.pack(&mut rows, &call.x, first);
                    product.sums(rows.rows(count), &TensorMut::with(lie, &mut *sums)?);
                }
                Some(_) => {
                    halves.pack(self.level, &self.pool, &call.x, all);
                    product.halves(&halves, &finish, first, &TensorMut::with(lie, bytemuck::cast_slice_mut(sums))?);
                }
            }
            let (sums, parts) = (&*sums, (From(&outputs, first), &rooms));
            parallel::rows(&self.pool, count, parallel::grain(d.n, 8), parts, |row, ((mut output, scale, offset), rooms)| {
                let (columns, stage, bytes) = rooms;
                let expert = segments[segments.partition_point(|segment| segment[2] <= row)][0];
                let sums = &sums[row * pitch..][..d.n];
                let [found, zero] = output.scatter(bytes, |output| match d.scales {
                    None => finish.row(self.level, [expert, first + row], sums, [columns, stage], output),
                    Some(_) => {
                        let (values, quantiser) = (bytemuck::cast_slice(sums), finish.quantiser);
                        self.level.run(SwigluQuant { values, quantiser, stage, output })
                    }
                });
                *scale = found;
                if let Some(offset) = offset {
                    *offset = zero;
                }
            });
            Ok(())
        })
    }
}

impl<P: ParallelFor> Run<GroupedMatmulSwigluQuant<'_, Self>> for Host<P> {
    fn workspace(&self, call: &GroupedMatmulSwigluQuant<'_, Self>) -> Result<Layout, Error> {
        let d = call.check(false)?;
        let plan = if is_empty(call, d) { Plan::new() } else { plan(self.pool.workers(), self.level, d, call.weight_format)?.0 };
        Ok(plan.layout())
    }

    fn run_mut(&self, call: &mut GroupedMatmulSwigluQuant<'_, Self>, scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check(true)?;
        self.inside(d.m, d.k.saturating_mul(d.n), || self.grouped(call, d, scratch))
    }
}

/// The products of a chunk.
struct GroupedProduct<'a, P> {
    host: &'a Host<P>,
    d: GroupedSizes,
    weight: Weight<'a>,
    segments: &'a [Segment],
    own: &'a (PerWorker<'a, u64>, PerWorker<'a, [i8; 64]>),
}

impl<P: ParallelFor> GroupedProduct<'_, P> {
    /// Packs the rows of the chunk, which begins with row `first`: segments that suit it in bands, the others, as far as they are
    /// neighbours, together.
    fn pack(&self, to: &mut PackedChunk<'_>, x: &Tensor<'_, i8>, first: usize) {
        let in_bands = |[_, start, end]: &Segment| self.weight.suits_bands(self.host.level, end - start);
        for some in self.segments.chunk_by(|a, b| !in_bands(a) && !in_bands(b)) {
            if let [head @ [_, start, _], .., [_, _, end]] | [head @ [_, start, end]] = some {
                to.pack(self.host.level, &self.host.pool, (x, first + start..first + end), *start, in_bands(head));
            }
        }
    }

    /// `sums[row][n]` of all rows of the chunk.
    fn sums(&self, x: PackedRows<'_>, sums: &TensorMut<'_, i32>) {
        let (level, d) = (self.host.level, self.d.weight());
        let columns = |rows| self.host.task_columns(rows, d, &self.weight);
        parallel::tiles(&self.host.pool, self.segments, columns, sums, self.own, |expert, mut block, (words, stage)| {
            let x = x.range(block.rows.clone()).in_bands(self.weight.suits_bands(level, block.rows.len()));
            let (part, row) = ((expert, block.columns.clone(), d), block.rows.start);
            self.weight.multiply(level, x, part, (words, stage), |sums, panel| {
                store_integers(sums, Target { block: &mut block, offset: Offset { row, panel } }, None);
            });
        });
    }

    /// `c[row][n]` of all rows of the chunk, which begins with row `first`, from weights of four bits.
    fn halves(&self, x: &HalfProducts<'_>, finish: &Finish<'_, '_, Host<P>>, first: usize, c: &TensorMut<'_, f32>) {
        let (level, d) = (self.host.level, self.d.weight());
        let parts = (self.own, x.workers());
        parallel::tiles(
            &self.host.pool,
            self.segments,
            |_| WIDTH,
            c,
            &parts,
            |expert, mut block, ((words, stage), sums)| {
                let (rows, columns) = (block.rows.clone(), block.columns.clone());
                let strip = self.weight.strip(level, expert, columns.clone(), d, stage);
                let scales = |group: usize, to: &mut [f32]| finish.group_scales([expert, group, columns.start], to);
                let mut assist = [0.0; WIDTH];
                finish.assist([expert, columns.start], &mut assist[..columns.len()]);
                x.columns(level, &strip, (rows.clone(), columns.len()), scales, (words, sums), |row, values| {
                    let row = rows.start + row;
                    let scale = finish.call.x_scale.get(first + row);
                    let mut to = block.row(row);
                    // Rows of sums are contiguous: they are workspace.
                    let to = to.as_slice().into_iter().flatten();
                    for ((to, &value), &assist) in to.zip(values).zip(&assist) {
                        *to = (value + assist) * scale;
                    }
                });
            },
        );
    }
}

/// What turns sums into bytes.
struct Finish<'t, 'a, B: Backend> {
    call: &'t GroupedMatmulSwigluQuant<'a, B>,
    column_first: bool,
    quantiser: Quantiser,
}

impl<P: ParallelFor> Finish<'_, '_, Host<P>> {
    /// The scales of a group of weights of four bits, from a column on.
    fn group_scales(&self, at: [usize; 3], to: &mut [f32]) {
        match &self.call.weight_scale {
            GroupedScale::Bits(view) => floats_of_bits(view, at, to, |bits| bits as u32),
            GroupedScale::SignedBits(view) => floats_of_bits(view, at, to, |bits| bits as u32),
            GroupedScale::Channel(_) => {}
        }
    }

    /// A row of the assist matrix, from a column on.
    fn assist(&self, [expert, first]: [usize; 2], to: &mut [f32]) {
        if let Some(Bias::F32(view)) = &self.call.bias {
            to.iter_mut().zip(first..).for_each(|(to, n)| *to = view.row(expert).get(n));
        }
    }

    /// The bytes of a row; its scale and offset.
    fn row(&self, level: Level, [expert, row]: [usize; 2], sums: &[i32], rooms: [&mut [f32]; 2], output: &mut [i8]) -> [f32; 2] {
        let [columns, stage] = rooms;
        let (scale, rest) = columns.split_at_mut(sums.len());
        let (bias, offset) = rest.split_at_mut(sums.len());
        let (mut integers, mut floats) = (None, None);
        match &self.call.bias {
            None => {}
            Some(Bias::I32(view)) => integers = Some(view.row(expert).gather(bytemuck::cast_slice_mut(bias))),
            Some(Bias::F32(view)) => floats = Some(view.row(expert).gather(bias)),
        }
        let epilogue = Epilogue {
            level,
            sums,
            row: self.call.x_scale.get(row),
            column_first: self.column_first,
            integers,
            floats,
            offset: self.call.offset.as_ref().map(|view| view.row(expert).gather(offset)),
            quantiser: self.quantiser,
            stage,
            output,
        };
        match &self.call.weight_scale {
            GroupedScale::Channel(ChannelScale::F32(view)) => epilogue.run(view.row(expert).gather(scale)),
            GroupedScale::Channel(ChannelScale::F16(view)) => epilogue.run(view.row(expert).gather(of_halves(scale, sums.len()))),
            GroupedScale::Channel(ChannelScale::BF16(view)) => {
                epilogue.run(view.row(expert).gather(of_halves(scale, sums.len())))
            }
            _ => [0.0; 2],
        }
    }
}

/// Numbers of an expert and group, from a column on, `[E,N]` or `[E,G,N]`.
fn floats_of_bits<T: Copy>(view: &Tensor<'_, T>, [expert, group, first]: [usize; 3], to: &mut [f32], bits: impl Fn(T) -> u32) {
    let row = view.row(if let [_, groups, _] = *view.dims().shape() { expert * groups + group } else { expert });
    for (n, to) in (first..).zip(to) {
        *to = f32::from_bits(bits(row.get(n)));
    }
}

/// Room for `n` numbers of 16 bits.
fn of_halves<T: bytemuck::Pod>(room: &mut [f32], n: usize) -> &mut [T] {
    &mut bytemuck::cast_slice_mut(room)[..n]
}

/// A row but for the scales of its columns.
struct Epilogue<'a> {
    level: Level,
    sums: &'a [i32],
    row: f32,
    column_first: bool,
    integers: Option<&'a [i32]>,
    floats: Option<&'a [f32]>,
    offset: Option<&'a [f32]>,
    quantiser: Quantiser,
    stage: &'a mut [f32],
    output: &'a mut [i8],
}

impl Epilogue<'_> {
    fn run<T: Element>(self, column: &[T]) -> [f32; 2] {
        let Epilogue { level, sums, row, column_first, integers, floats, offset, quantiser, stage, output } = self;
        let scale = GroupScale { row, column, column_first, integers, floats, offset };
        level.run(GroupSwigluQuant { sums, scale, quantiser, stage, output })
    }
}
