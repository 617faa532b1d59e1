//! What every tensor tells of itself.

use super::Dims;
use core::alloc::Layout;
use core::ops::Range;

/// What validation may ask of a tensor of any backend.
pub trait Describe {
    /// Shape and strides.
    fn dims(&self) -> &Dims;
    /// Where it lies: all that the questions below need, asked once.
    fn location(&self) -> Location<'_>;
    /// The addresses from the first byte to behind the last; empty for a tensor without data.
    fn bytes(&self) -> Range<usize> {
        self.location().bytes()
    }
    /// Bytes of an element.
    fn element_bytes(&self) -> usize {
        self.location().element_bytes()
    }
}

/// Where a tensor lies.
#[derive(Clone, Copy, Debug)]
pub struct Location<'a> {
    dims: &'a Dims,
    address: usize,
    element: Layout,
}

impl<'a> Location<'a> {
    /// Of no tensor.
    pub(crate) const NONE: Location<'static> = Location { dims: &Dims::SCALAR, address: 0, element: Layout::new::<()>() };

    /// Elements of type `T` at an address.
    #[inline(always)]
    pub(crate) fn of<T>(dims: &'a Dims, address: usize) -> Location<'a> {
        Location { dims, address, element: Layout::new::<T>() }
    }

    /// Shape and strides.
    #[inline]
    pub fn dims(&self) -> &'a Dims {
        self.dims
    }

    /// Bytes of an element.
    #[inline]
    pub fn element_bytes(&self) -> usize {
        self.element.size()
    }

    /// The addresses from the first byte to behind the last; empty without data.
    #[inline]
    pub fn bytes(&self) -> Range<usize> {
        let length = if self.has_data() { self.dims.extent() * self.element.size() } else { 0 };
        self.address..self.address.saturating_add(length)
    }

    /// Whether there is memory behind it: no for a tensor that only describes a shape.
    #[inline]
    pub fn has_data(&self) -> bool {
        self.address != 0
    }

    /// Whether the address suits the dtype.
    #[inline]
    pub fn is_aligned(&self) -> bool {
        self.address & (self.element.align() - 1) == 0
    }
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
            #[inline]
            fn dims(&self) -> &$crate::tensor::Dims {
                &self.dims
            }
            #[inline]
            fn location(&self) -> $crate::tensor::Location<'_> {
                $crate::tensor::Location::of::<T>(&self.dims, self.data as usize)
            }
        }
    };
}
pub(crate) use describe;
