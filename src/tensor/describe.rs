//! What every tensor tells of itself.

use super::Dims;
use core::ops::Range;

/// What validation may ask of a tensor of any backend.
pub trait Describe {
    /// Shape and strides.
    fn dims(&self) -> &Dims;
    /// The addresses from the first byte to behind the last; empty for a tensor without data.
    fn bytes(&self) -> Range<usize>;
    /// Bytes of an element.
    fn element_bytes(&self) -> usize;
    /// Whether there is memory behind it: no for one that only describes a shape.
    fn has_data(&self) -> bool;
    /// Whether the address suits the dtype.
    fn is_aligned(&self) -> bool;
}

/// Describes a tensor with the fields `data` and `dims`.
macro_rules! describe {
    ($tensor:ident) => {
        impl<T> core::fmt::Debug for $tensor<'_, T> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let (shape, strides) = (self.dims.shape(), self.dims.strides());
                f.debug_struct(stringify!($tensor)).field("shape", &shape).field("strides", &strides).finish()
            }
        }

        impl<T> $crate::tensor::Describe for $tensor<'_, T> {
            fn dims(&self) -> &$crate::tensor::Dims {
                &self.dims
            }
            fn bytes(&self) -> core::ops::Range<usize> {
                let start = self.data as usize;
                let length = if self.has_data() { self.dims.extent() * size_of::<T>() } else { 0 };
                start..start + length
            }
            fn element_bytes(&self) -> usize {
                size_of::<T>()
            }
            fn has_data(&self) -> bool {
                !self.data.is_null()
            }
            fn is_aligned(&self) -> bool {
                self.data as usize % align_of::<T>() == 0
            }
        }
    };
}
pub(crate) use describe;
