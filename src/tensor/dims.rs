//! Shapes and strides.

use crate::error::Error;

/// The largest number of dimensions.
pub const MAX_RANK: usize = 5;

/// The most elements, so that they fit in memory at 8 bytes each.
const LARGEST: usize = isize::MAX as usize / 8;

/// Shape and strides. Strides are in elements; 0 broadcasts.
///
/// ```
/// use tilekern::Dims;
///
/// let d = Dims::contiguous(&[2, 3])?;
/// assert_eq!((d.shape(), d.strides()), (&[2, 3][..], &[3, 1][..]));
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dims {
    rank: Rank,
    /// 1 behind the last dimension.
    pub(super) shape: [usize; MAX_RANK],
    /// 0 behind the last dimension.
    pub(super) strides: [usize; MAX_RANK],
    /// From the first element to the last: asked more than once in every call.
    extent: usize,
}

/// A number of dimensions. The values that it does not have tell an absent tensor: that takes no room of its own. A whole word: what
/// stands beside a byte would be copied in pieces, and read again before they are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
enum Rank {
    Zero,
    One,
    Two,
    Three,
    Four,
    Five,
}

impl Rank {
    const ALL: [Rank; MAX_RANK + 1] = [Rank::Zero, Rank::One, Rank::Two, Rank::Three, Rank::Four, Rank::Five];
}

impl Dims {
    /// One element without dimensions.
    ///
    /// ```
    /// assert_eq!(tilekern::Dims::SCALAR.elements(), 1);
    /// ```
    pub const SCALAR: Dims = Dims { rank: Rank::Zero, shape: [1; MAX_RANK], strides: [0; MAX_RANK], extent: 1 };

    /// Row-major, without gaps.
    #[inline(always)]
    pub fn contiguous(shape: &[usize]) -> Result<Dims, Error> {
        match *shape {
            [] => Dims::row_major([]),
            [a] => Dims::row_major([a]),
            [a, b] => Dims::row_major([a, b]),
            [a, b, c] => Dims::row_major([a, b, c]),
            [a, b, c, d] => Dims::row_major([a, b, c, d]),
            [a, b, c, d, e] => Dims::row_major([a, b, c, d, e]),
            _ => Err(Error::invalid("shape", "a rank of at most 5", shape.len())),
        }
    }

    /// Of a known rank, so that nothing of it is stored twice: this runs for every tensor of every call.
    #[inline(always)]
    fn row_major<const R: usize>(shape: [usize; R]) -> Result<Dims, Error> {
        let (mut strides, mut next, mut empty) = ([0; R], 1usize, false);
        for i in (0..R).rev() {
            strides[i] = next;
            empty |= shape[i] == 0;
            next = next.checked_mul(shape[i].max(1)).ok_or_else(too_large)?;
        }
        let extent = if empty { 0 } else { next };
        if extent > LARGEST { Err(too_large()) } else { Ok(Dims::padded(shape, strides, extent)) }
    }

    /// Of what is known to fit in memory.
    #[inline(always)]
    pub(super) fn new<const R: usize>(shape: [usize; R], strides: [usize; R]) -> Dims {
        let reach: usize = shape.iter().zip(strides).map(|(n, stride)| n.saturating_sub(1) * stride).sum();
        Dims::padded(shape, strides, if shape.contains(&0) { 0 } else { 1 + reach })
    }

    #[inline(always)]
    fn padded<const R: usize>(shape: [usize; R], strides: [usize; R], extent: usize) -> Dims {
        // Each number on its own: assembled in an array first, they would be copied from there.
        let padded = |of: [usize; R], fill| [0, 1, 2, 3, 4].map(|i| if i < R { of[i] } else { fill });
        Dims { rank: Rank::ALL[R], shape: padded(shape, 1), strides: padded(strides, 0), extent }
    }

    /// Any strides. What they address must fit in `isize` bytes, at 8 bytes an element.
    pub fn strided(shape: &[usize], strides: &[usize]) -> Result<Dims, Error> {
        let n = shape.len();
        let rank = *Rank::ALL.get(n).ok_or_else(|| Error::invalid("shape", "a rank of at most 5", n))?;
        if strides.len() != n {
            return Err(Error::invalid("strides", n, strides.len()));
        }
        let mut dims = Dims { rank, ..Dims::SCALAR };
        dims.shape[..n].copy_from_slice(shape);
        dims.strides[..n].copy_from_slice(strides);
        let (mut elements, mut extent) = (1usize, 1usize);
        for (&n, &stride) in shape.iter().zip(strides) {
            elements = elements.checked_mul(n).ok_or_else(too_large)?;
            let reach = n.saturating_sub(1).checked_mul(stride).ok_or_else(too_large)?;
            extent = extent.checked_add(reach).ok_or_else(too_large)?;
        }
        dims.extent = if elements == 0 { 0 } else { extent };
        if elements.max(dims.extent) > LARGEST { Err(too_large()) } else { Ok(dims) }
    }

    /// The size of each dimension.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.shape[..self.rank()]
    }

    /// The stride of each dimension, in elements.
    #[inline]
    pub fn strides(&self) -> &[usize] {
        &self.strides[..self.rank()]
    }

    /// The number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.rank as usize
    }

    /// The product of the sizes.
    #[inline]
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Elements of memory from the first to the last, both included.
    #[inline]
    pub fn extent(&self) -> usize {
        self.extent
    }

    /// Row-major without gaps.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        let mut next = 1;
        for i in (0..self.rank()).rev() {
            if self.shape[i] != 1 && self.strides[i] != next {
                return false;
            }
            next *= self.shape[i];
        }
        true
    }

    /// Offset of row `r`, where all dimensions but the last are counted through row-major.
    #[inline]
    pub(crate) fn row_offset(&self, r: usize) -> usize {
        match self.rank() {
            0 | 1 => 0,
            2 => r * self.strides[0],
            rank => {
                let (mut r, mut offset) = (r, 0);
                for i in (0..rank - 1).rev() {
                    offset += r % self.shape[i] * self.strides[i];
                    r /= self.shape[i];
                }
                offset
            }
        }
    }

    /// Whether each row is contiguous: others have to be brought together.
    #[inline]
    pub(crate) fn has_contiguous_rows(&self) -> bool {
        let (len, stride) = self.last();
        stride == 1 || len <= 1
    }

    /// Size and stride of the last dimension; a scalar is a row of one.
    #[inline]
    pub(crate) fn last(&self) -> (usize, usize) {
        match self.rank() {
            0 => (1, 1),
            rank => (self.shape[rank - 1], self.strides[rank - 1]),
        }
    }
}

#[cold]
fn too_large() -> Error {
    Error::invalid("shape", "a size that fits in memory", "an overflow")
}
