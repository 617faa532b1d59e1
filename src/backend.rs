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

    /// The same for a call that stays: to be run again once its tensors hold something else.
    ///
    /// ```
    /// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::RmsNorm};
    ///
    /// let (x, gamma, mut y) = ([3.0f32, 4.0], [1.0f32, 1.0], [0.0f32; 2]);
    /// let host = Host::new();
    /// let mut call = RmsNorm::new(Tensor::new([1, 2], &x)?, Tensor::new([2], &gamma)?, TensorMut::new([1, 2], &mut y)?);
    /// let mut scratch = Scratch::new(host.workspace(&call)?);
    /// host.run_mut(&mut call, &mut scratch)?;
    /// call.eps = 1.0;
    /// host.run_mut(&mut call, &mut scratch)?;
    /// assert!((y[0] - 3.0 / 13.5f32.sqrt()).abs() < 1e-5);
    /// # Ok::<(), tilekern::Error>(())
    /// ```
    fn run_mut(&self, call: &mut C, scratch: Self::Scratch<'_>) -> Result<(), Error>;
}
