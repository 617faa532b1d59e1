//! The tensors of a model file: what they may contain, and how they are laid out for a model.

use crate::error::Error;
use tilekern_kernels::dispatch::Level;
use tilekern_kernels::element::Element;
use tilekern_kernels::pack::{self, Source};
use tilekern_kernels::rows::Narrow;
use tilekern_kernels::tiles::{PackColumns, PackFloatColumns, WeightColumns};

/// Numbers in a file.
#[derive(Clone, Copy)]
pub(crate) struct Floats<'f>(pub(super) &'f [[u8; 4]]);

impl Floats<'_> {
    pub fn get(&self, i: usize) -> f32 {
        f32::from_le_bytes(self.0[i])
    }

    /// Where they are numbers of this machine as they lie.
    fn aligned(&self) -> Option<&[f32]> {
        let own = cfg!(target_endian = "little").then_some(self.0.as_flattened());
        own.and_then(|bytes| bytemuck::try_cast_slice(bytes).ok())
    }

    /// The largest magnitude of numbers that are all finite.
    pub(super) fn largest(&self, name: &'static str) -> Result<f32, Error> {
        // The bits of magnitudes order as they do, with infinity and NaN above all.
        let magnitudes = self.0.iter().map(|&bytes| u32::from_le_bytes(bytes) & 0x7FFF_FFFF);
        let largest = f32::from_bits(magnitudes.fold(0, u32::max));
        if largest.is_finite() { Ok(largest) } else { Err(Error::invalid(name, "finite numbers", "an infinity or a NaN")) }
    }
}

/// A weight `[outputs][inputs]` in a file.
pub(crate) struct Matrix<'f> {
    pub(super) outputs: usize,
    pub(super) inputs: usize,
    pub(super) values: Values<'f>,
}

/// What it holds.
pub(super) enum Values<'f> {
    F32(Floats<'f>),
    I8 { scales: Floats<'f>, values: &'f [i8], padding: &'f [u8] },
}

impl Matrix<'_> {
    /// The weight from input `i` to output `o`.
    pub fn get(&self, o: usize, i: usize) -> f32 {
        let at = o * self.inputs + i;
        match &self.values {
            Values::F32(values) => values.get(at),
            Values::I8 { scales, values, .. } => scales.get(o) * f32::from(values[at]),
        }
    }

    /// Bytes and scales that it packs into.
    pub fn packed(&self) -> (usize, usize) {
        (pack::packed_bytes(1, self.inputs, self.outputs).unwrap_or(0), self.outputs)
    }

    /// Packs it, one scale for each output.
    pub fn pack(&self, packed: &mut [i8], scales: &mut [f32]) {
        let (level, k, n) = (Level::detect(), self.inputs, self.outputs);
        pack::pack_header(packed, [1, k, n], Source::I8);
        let (panels, sums) = packed[pack::HEADER..].as_chunks_mut().0.split_at_mut(n.div_ceil(16) * pack::panel_vectors(k));
        match &self.values {
            Values::F32(values) => match values.aligned() {
                Some(data) => {
                    let weights = WeightColumns { data, pitch: k, k, n };
                    level.run(PackFloatColumns { weights, first: 0, panels, sums, scales });
                }
                None => pack::quantize_columns(panels, sums, k, n, |i, o| values.get(o * k + i), scales),
            },
            Values::I8 { scales: stored, values, .. } => {
                for (o, scale) in scales.iter_mut().enumerate() {
                    *scale = stored.get(o);
                }
                let weights = WeightColumns { data: values, pitch: k, k, n };
                level.run(PackColumns { weights, first: 0, panels, sums });
            }
        }
    }

    /// Narrows it, row by row.
    pub fn narrow<T: Element>(&self, to: &mut [T]) {
        const PART: usize = 256;
        let level = Level::detect();
        for (o, row) in to.chunks_exact_mut(self.inputs).enumerate() {
            for (part, output) in row.chunks_mut(PART).enumerate() {
                let mut numbers = [0.0; PART];
                let numbers = &mut numbers[..output.len()];
                numbers.iter_mut().zip(PART * part..).for_each(|(x, i)| *x = self.get(o, i));
                level.run(Narrow { input: numbers, output });
            }
        }
    }

    /// The largest magnitude of a matrix that contains what it may.
    pub(super) fn largest(&self, name: &'static str) -> Result<f32, Error> {
        match &self.values {
            Values::F32(values) => values.largest(name),
            Values::I8 { scales, values, padding } => {
                scales.largest(name)?;
                if (0..self.outputs).any(|o| scales.get(o) < 0.0) {
                    return Err(Error::invalid(name, "scales of at least 0", "a negative one"));
                }
                let most = |row: &[i8]| row.iter().map(|value| value.unsigned_abs()).fold(0, u8::max);
                if most(values) > 127 {
                    return Err(Error::invalid(name, "values from -127 to 127", -128i64));
                }
                if padding.iter().any(|&b| b != 0) {
                    return Err(Error::invalid(name, "padding of zeros", "other bytes"));
                }
                let rows = values.chunks_exact(self.inputs).enumerate();
                Ok(rows.map(|(o, row)| scales.get(o) * f32::from(most(row))).fold(0.0, f32::max))
            }
        }
    }
}
