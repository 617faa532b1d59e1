//! The same tensor in several layouts, on the device and on the host.

use crate::device::{Buffer, Plain, Tensor, View};
use tilekern::Dims;
use tilekern_acl::ACL_FORMAT_ND;

/// Numbers that look random, the same in every run: SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// In [-scale, scale).
    pub fn float(&mut self, scale: f32) -> f32 {
        ((self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0) * scale
    }

    pub fn many<T>(&mut self, n: usize, mut make: impl FnMut(&mut Random) -> T) -> Vec<T> {
        (0..n).map(|_| make(self)).collect()
    }
}

/// Elements of a tensor where its strides put them.
#[derive(Clone)]
pub struct Laid<T> {
    pub memory: Vec<T>,
    pub shape: Vec<usize>,
    pub strides: Vec<usize>,
    pub offset: usize,
}

impl<T: Plain> Laid<T> {
    /// Row-major values in one of four layouts: without gaps, behind an offset with gaps between rows, with gaps between elements,
    /// and column-major. What lies in the gaps is `gap`.
    pub fn new(shape: &[usize], values: &[T], gap: T, layout: usize) -> Laid<T> {
        let rank = shape.len();
        let (mut strides, mut next) = (vec![0; rank], if layout == 2 { 3 } else { 1 });
        let order: Vec<usize> = if layout == 3 { (0..rank).collect() } else { (0..rank).rev().collect() };
        for (place, &d) in order.iter().enumerate() {
            strides[d] = next;
            next *= shape[d];
            if place == 0 && layout == 1 {
                next += 5;
            }
        }
        let offset = if layout == 0 { 0 } else { 7 };
        let mut memory = vec![gap; offset + next + 3];
        for (i, &value) in values.iter().enumerate() {
            let mut rest = i;
            let mut at = offset;
            for d in (0..rank).rev() {
                at += rest % shape[d] * strides[d];
                rest /= shape[d];
            }
            memory[at] = value;
        }
        Laid { memory, shape: shape.to_vec(), strides, offset }
    }

    pub fn host(&self) -> tilekern::Tensor<'_, T> {
        tilekern::Tensor::with(Dims::strided(&self.shape, &self.strides).unwrap(), &self.memory[self.offset..]).unwrap()
    }

    pub fn host_mut(&mut self) -> tilekern::TensorMut<'_, T> {
        let dims = Dims::strided(&self.shape, &self.strides).unwrap();
        tilekern::TensorMut::with(dims, &mut self.memory[self.offset..]).unwrap()
    }

    /// A copy of all of its memory, gaps and all, and a description of the view in it.
    pub fn device(&self) -> (Buffer, Tensor) {
        let numbers = |of: &[usize]| of.iter().map(|&n| n as i64).collect::<Vec<i64>>();
        let buffer = Buffer::of(&self.memory);
        let view = View {
            shape: numbers(&self.shape),
            strides: numbers(&self.strides),
            offset: self.offset as i64,
            dtype: T::DTYPE,
            format: ACL_FORMAT_ND,
            storage: vec![self.memory.len() as i64],
        };
        let tensor = view.describe(buffer.address);
        (buffer, tensor)
    }

    /// Whether the memory of the device holds the same bytes, gaps and all.
    pub fn equals(&self, buffer: &Buffer) -> bool {
        let found: Vec<u8> = buffer.read(size_of_val(&self.memory[..]));
        found == bytemuck::cast_slice::<T, u8>(&self.memory)
    }
}
