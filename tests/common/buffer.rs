//! Tensors that lie in memory in other ways than row-major.

use tilekern::{Dims, Tensor, TensorMut};

/// How the elements of a test's tensor lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// Row-major, without gaps.
    Contiguous,
    /// Row-major, the last dimension contiguous, a gap behind each row.
    Pitched,
    /// The last dimension outermost, with gaps.
    Transposed,
}

impl Order {
    /// The shape of one number for each of `n` rows: `[n]`, or `[n,1]`.
    pub fn column(self, n: usize) -> Vec<usize> {
        if self == Order::Contiguous { vec![n] } else { vec![n, 1] }
    }
}

/// A tensor of a test: its elements somewhere in a buffer, rubbish between them.
#[derive(Clone, Debug)]
pub struct Buffer<T> {
    dims: Dims,
    rubbish: T,
    data: Vec<T>,
}

impl<T: Copy + PartialEq + std::fmt::Debug> Buffer<T> {
    /// `values` in row-major order, laid out in `order`.
    pub fn new(shape: &[usize], order: Order, values: &[T], rubbish: T) -> Buffer<T> {
        let mut strides = vec![0; shape.len()];
        let mut next = if order == Order::Transposed { 2 } else { 1 };
        let inner_first: Vec<usize> = match order {
            Order::Transposed => (0..shape.len()).collect(),
            _ => (0..shape.len()).rev().collect(),
        };
        for (n, i) in inner_first.into_iter().enumerate() {
            strides[i] = next;
            next *= shape[i];
            next += if order == Order::Contiguous || n > 0 { 0 } else { 3 };
        }
        let dims = Dims::strided(shape, &strides).unwrap();
        let mut buffer = Buffer { dims, rubbish, data: vec![rubbish; dims.extent() + 2] };
        assert_eq!(values.len(), dims.elements());
        for (i, &value) in values.iter().enumerate() {
            let at = buffer.offset(i);
            buffer.data[at] = value;
        }
        buffer
    }

    /// Nothing but rubbish, to be written.
    pub fn empty(shape: &[usize], order: Order, rubbish: T) -> Buffer<T> {
        Buffer::new(shape, order, &vec![rubbish; shape.iter().product()], rubbish)
    }

    fn offset(&self, mut i: usize) -> usize {
        let mut offset = 0;
        for (&n, &stride) in self.dims.shape().iter().zip(self.dims.strides()).rev() {
            offset += i % n * stride;
            i /= n;
        }
        offset
    }

    /// To read.
    pub fn view(&self) -> Tensor<'_, T> {
        Tensor::with(self.dims, &self.data).unwrap()
    }

    /// To write.
    pub fn view_mut(&mut self) -> TensorMut<'_, T> {
        TensorMut::with(self.dims, &mut self.data).unwrap()
    }

    /// The elements in row-major order; what lies between them must still be rubbish.
    pub fn values(&self) -> Vec<T> {
        let mut between = vec![true; self.data.len()];
        let offsets = (0..self.dims.elements()).map(|i| self.offset(i));
        let values = offsets.inspect(|&at| between[at] = false).map(|at| self.data[at]).collect();
        for (value, _) in self.data.iter().zip(between).filter(|(_, between)| *between) {
            assert_eq!(*value, self.rubbish, "written between the elements");
        }
        values
    }
}

/// A shape without data.
pub fn shape_only<'a, T>(shape: &[usize]) -> Tensor<'a, T> {
    Tensor::shape_only(Dims::contiguous(shape).unwrap())
}

/// A shape without data, to write.
pub fn shape_only_mut<'a, T>(shape: &[usize]) -> TensorMut<'a, T> {
    TensorMut::shape_only(Dims::contiguous(shape).unwrap())
}
