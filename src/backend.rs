//! What an operation runs on.

use crate::error::Error;
use crate::tensor::Describe;
use core::alloc::Layout;

/// A place to run operations: what its tensors and its scratch memory are.
pub trait Backend: Sized {
    /// A tensor to read.
    type View<'a, T: 'a>: Copy + Describe + core::fmt::Debug;
    /// A tensor to write.
    type ViewMut<'a, T: 'a>: Describe + core::fmt::Debug;
    /// Memory for the time of a call, the caller's.
    type Scratch<'a>;
}

/// A backend that has operation `C`. Two phases, as aclnn has: ask for the workspace, then run in it.
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::RmsNorm};
///
/// let (x, gamma, mut y) = ([3.0f32, 4.0], [1.0f32, 1.0], [0.0f32; 2]);
/// let host = Host::new();
/// let call = RmsNorm::new(Tensor::new([1, 2], &x)?, Tensor::new([2], &gamma)?, TensorMut::new([1, 2], &mut y)?);
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert!((y[0] - 0.848_528).abs() < 1e-5);
/// # Ok::<(), tilekern::Error>(())
/// ```
pub trait Run<C>: Backend {
    /// How much workspace `call` needs: more work does not always need more. Validates everything but what tensors contain, and touches
    /// no data.
    fn workspace(&self, call: &C) -> Result<Layout, Error>;

    /// Validates, and runs. Nothing is written where an error is returned, but by an NPU that fails in the midst of its work.
    #[inline]
    fn run(&self, mut call: C, scratch: Self::Scratch<'_>) -> Result<(), Error> {
        self.run_mut(&mut call, scratch)
    }

    /// The same for a call that stays, to be run again with other attributes, or with other tensors in its fields. Those that it has
    /// borrow their memory for as long as it lives: what it wrote is read through them ([`TensorMut::as_slice`](crate::TensorMut::as_slice)),
    /// and memory that somebody writes in between is described by [`Tensor::from_raw`](crate::Tensor::from_raw).
    ///
    /// One token after the other:
    ///
    /// ```
    /// use tilekern::{Dims, Host, Run, Scratch, Tensor, TensorMut, ops::RmsNorm};
    ///
    /// let (tokens, gamma, mut normed) = ([3.0f32, 4.0, 5.0, 12.0, 8.0, 15.0], [1.0f32, 1.0], [0.0f32; 6]);
    /// let (host, row) = (Host::new(), Dims::contiguous(&[1, 2])?);
    /// let mut call = RmsNorm::new(Tensor::shape_only(row), Tensor::new([2], &gamma)?, TensorMut::shape_only(row));
    /// let mut scratch = Scratch::new(host.workspace(&call)?);
    /// for (x, y) in tokens.chunks_exact(2).zip(normed.chunks_exact_mut(2)) {
    ///     (call.input, call.output) = (Tensor::with(row, x)?, TensorMut::with(row, y)?);
    ///     host.run_mut(&mut call, &mut scratch)?;
    ///     assert!(call.output.as_slice().is_some_and(|y| y[0] < y[1]));
    /// }
    /// assert!((normed[0] - 3.0 / 12.5f32.sqrt()).abs() < 1e-5);
    /// # Ok::<(), tilekern::Error>(())
    /// ```
    fn run_mut(&self, call: &mut C, scratch: Self::Scratch<'_>) -> Result<(), Error>;
}
