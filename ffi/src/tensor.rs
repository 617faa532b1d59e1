//! `tk_tensor`, and its way into the library's tensors.

use crate::target::{Processor, Target};
use core::ffi::c_void;
use tilekern::{Dims, Error, MAX_RANK, Status, Tensor, TensorMut, bf16, f16};

/// `dtype`: float.
pub const TK_F32: i32 = 0;
/// `dtype`: IEEE half precision.
pub const TK_F16: i32 = 1;
/// `dtype`: int8_t.
pub const TK_I8: i32 = 2;
/// `dtype`: int32_t.
pub const TK_I32: i32 = 3;
/// `dtype`: uint8_t.
pub const TK_U8: i32 = 4;
/// `dtype`: int64_t.
pub const TK_I64: i32 = 9;
/// `dtype`: uint64_t.
pub const TK_U64: i32 = 10;
/// `dtype`: double.
pub const TK_F64: i32 = 11;
/// `dtype`: one byte, 0 is false.
pub const TK_BOOL: i32 = 12;
/// `dtype`: bfloat16.
pub const TK_BF16: i32 = 27;
/// `dtype`: 4-bit integers, two to a byte, the low half first.
pub const TK_I4: i32 = 29;

/// Somebody's memory, with a shape. It and all it points to stay the caller's and need not outlive the call.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_tensor {
    /// The first element, aligned to its dtype. A workspace query does not touch it, and takes NULL.
    data: *mut c_void,
    /// `rank` sizes; may be NULL when rank is 0.
    shape: *const i64,
    /// `rank` strides in elements, at least 0 (0 broadcasts, in an input); NULL: row-major without gaps.
    strides: *const i64,
    /// At most 5.
    rank: i32,
    /// TK_F32 and so on.
    dtype: i32,
}

fn dtype_name(code: i32) -> Option<&'static str> {
    Some(match code {
        TK_F32 => "f32",
        TK_F16 => "f16",
        TK_I8 => "i8",
        TK_I32 => "i32",
        TK_U8 => "u8",
        TK_I64 => "i64",
        TK_U64 => "u64",
        TK_F64 => "f64",
        TK_BOOL => "bool",
        TK_BF16 => "bf16",
        TK_I4 => "i4",
        _ => return None,
    })
}

/// What lies behind `data`.
pub(crate) trait Dtype: 'static {
    const CODE: i32;
    const NAME: &'static str;
}

macro_rules! dtypes {
    ($($type:ty = $code:ident $name:literal,)*) => {
        $(impl Dtype for $type {
            const CODE: i32 = $code;
            const NAME: &'static str = $name;
        })*
    };
}
dtypes! { f32 = TK_F32 "f32", f16 = TK_F16 "f16", bf16 = TK_BF16 "bf16", i8 = TK_I8 "i8", i32 = TK_I32 "i32", u8 = TK_U8 "u8", i64 = TK_I64 "i64", f64 = TK_F64 "f64", u64 = TK_U64 "u64", }

/// A tensor argument: NULL, or a struct that is valid during the call.
pub(crate) type Argument<'a> = Option<&'a tk_tensor>;

fn required<'a>(name: &'static str, tensor: Argument<'a>) -> Result<&'a tk_tensor, Error> {
    tensor.ok_or_else(|| Error::new(Status::Null, name, "a tensor", "null"))
}

/// All of them are there.
#[inline(always)]
pub(crate) fn present(tensors: &[(&'static str, Argument<'_>)]) -> Result<(), Error> {
    tensors.iter().try_for_each(|&(name, tensor)| required(name, tensor).map(drop))
}

/// What a backend reads and writes. Where a call is short a tensor is made in its place: copied from elsewhere it would take longer than
/// all that is asked of it.
pub(crate) trait Tensors: Target {
    /// What stands where a tensor to read will be.
    #[inline(always)]
    fn unread<'a, T>() -> Self::View<'a, T> {
        // SAFETY: null.
        unsafe { Self::view(Dims::SCALAR, core::ptr::null()) }
    }

    /// A tensor to read, where it belongs.
    #[inline(never)]
    fn read_to<'a, T: Dtype, P: From<Self::View<'a, T>>>(
        place: &mut P,
        name: &'static str,
        tensor: Argument<'a>,
    ) -> Result<(), Error> {
        put::<T>(
            name,
            tensor,
            #[inline(always)]
            move |dims, data| {
                // SAFETY: the C program promises that what the tensor describes can be read until the call is done, in which at most outputs
                // of the call are written between its elements.
                *place = P::from(unsafe { Self::view(dims, data.cast()) });
            },
        )
    }

    /// A tensor to read, or NULL, where it belongs.
    #[inline(always)]
    fn read_into<'a, T: Dtype>(
        place: &mut Option<Self::View<'a, T>>,
        name: &'static str,
        tensor: Argument<'a>,
    ) -> Result<(), Error> {
        if tensor.is_some() { Self::read_to(place, name, tensor) } else { Ok(()) }
    }

    /// A tensor to read.
    fn read<'a, T: Dtype>(name: &'static str, tensor: Argument<'a>) -> Result<Self::View<'a, T>, Error> {
        let mut read = Self::unread();
        Self::read_to(&mut read, name, tensor).map(|()| read)
    }

    /// A tensor to read, or NULL.
    fn read_optional<'a, T: Dtype>(name: &'static str, tensor: Argument<'a>) -> Result<Option<Self::View<'a, T>>, Error> {
        let mut read = None;
        Self::read_into(&mut read, name, tensor).map(|()| read)
    }

    /// What stands where a tensor to write will be.
    #[inline(always)]
    fn unwritten<'a, T>() -> Self::ViewMut<'a, T> {
        // SAFETY: null.
        unsafe { Self::view_mut(Dims::SCALAR, core::ptr::null_mut()) }
    }

    /// A tensor to write, where it belongs.
    #[inline(never)]
    fn write_to<'a, T: Dtype, P: From<Self::ViewMut<'a, T>>>(
        place: &mut P,
        name: &'static str,
        tensor: Argument<'a>,
    ) -> Result<(), Error> {
        put::<T>(
            name,
            tensor,
            #[inline(always)]
            move |dims, data| {
                // SAFETY: the C program promises that what the tensor describes can be written until the call is done.
                *place = P::from(unsafe { Self::view_mut(dims, data.cast()) });
            },
        )
    }

    /// A tensor to write, or NULL, where it belongs.
    #[inline(always)]
    fn write_into<'a, T: Dtype>(
        place: &mut Option<Self::ViewMut<'a, T>>,
        name: &'static str,
        tensor: Argument<'a>,
    ) -> Result<(), Error> {
        if tensor.is_some() { Self::write_to(place, name, tensor) } else { Ok(()) }
    }

    /// A tensor to write.
    fn write<'a, T: Dtype>(name: &'static str, tensor: Argument<'a>) -> Result<Self::ViewMut<'a, T>, Error> {
        let mut written = Self::unwritten();
        Self::write_to(&mut written, name, tensor).map(|()| written)
    }
}

impl<B: Target> Tensors for B {}

/// A tensor of the processor's to read.
#[inline]
pub(crate) fn read<'a, T: Dtype>(name: &'static str, tensor: Argument<'a>) -> Result<Tensor<'a, T>, Error> {
    Processor::read(name, tensor)
}

/// A tensor of the processor's to write.
#[inline]
pub(crate) fn write<'a, T: Dtype>(name: &'static str, tensor: Argument<'a>) -> Result<TensorMut<'a, T>, Error> {
    Processor::write(name, tensor)
}

/// A tensor of the processor's to read, or NULL.
pub(crate) fn read_optional<'a, T: Dtype>(name: &'static str, tensor: Argument<'a>) -> Result<Option<Tensor<'a, T>>, Error> {
    Processor::read_optional(name, tensor)
}

/// A tensor of the processor's to write, or NULL.
pub(crate) fn write_optional<'a, T: Dtype>(name: &'static str, tensor: Argument<'a>) -> Result<Option<TensorMut<'a, T>>, Error> {
    let mut written = None;
    Processor::write_into(&mut written, name, tensor).map(|()| written)
}

/// A tensor of bool to read, or NULL: bytes, 0 is false.
pub(crate) fn read_bools<'a>(name: &'static str, tensor: Argument<'a>) -> Result<Option<Tensor<'a, u8>>, Error> {
    let Some(tensor) = tensor else { return Ok(None) };
    let dims = tensor.dims_of(name, TK_BOOL, "bool")?;
    // SAFETY: the C program promises that what the tensor describes can be read until the call is done, in which at most outputs
    // of the call are written between its elements.
    Ok(Some(unsafe { Processor::view(dims, tensor.data.cast()) }))
}

/// A tensor of bool to write, or NULL: bytes.
pub(crate) fn write_bools<'a>(name: &'static str, tensor: Argument<'a>) -> Result<Option<TensorMut<'a, u8>>, Error> {
    let Some(tensor) = tensor else { return Ok(None) };
    let dims = tensor.dims_of(name, TK_BOOL, "bool")?;
    // SAFETY: the C program promises that what the tensor describes can be written until the call is done.
    Ok(Some(unsafe { Processor::view_mut(dims, tensor.data.cast()) }))
}

/// A tensor of i4 to read, as bytes of two elements each: the last dimension is contiguous and even, the other strides are even.
pub(crate) fn read_i4<'a, B: Target>(name: &'static str, tensor: Argument<'a>) -> Result<B::View<'a, u8>, Error> {
    let tensor = required(name, tensor)?;
    let dims = tensor.dims_of_any(name)?;
    let odd = || Error::new(Status::Invalid, name, "pairs of neighbouring columns", "an odd size or stride, or gaps");
    let (Some((n, outer)), Some((last, strides))) = (dims.shape().split_last(), dims.strides().split_last()) else {
        return Err(odd());
    };
    let whole = |stride: usize, size: usize| stride % 2 == 0 || size <= 1;
    if n % 2 != 0 || (*last != 1 && *n > 1) || !strides.iter().zip(outer).all(|(stride, size)| whole(*stride, *size)) {
        return Err(odd());
    }
    let (mut shape, mut bytes) = ([0; MAX_RANK], [1; MAX_RANK]);
    for i in 0..outer.len() {
        (shape[i], bytes[i]) = (outer[i], strides[i] / 2);
    }
    shape[outer.len()] = n / 2;
    let dims = Dims::strided(&shape[..dims.rank()], &bytes[..dims.rank()])?;
    // SAFETY: the C program promises that what the tensor describes can be read until the call is done, in which at most outputs
    // of the call are written between its elements.
    Ok(unsafe { B::view(dims, tensor.data.cast()) })
}

/// The dtype of a required tensor.
pub(crate) fn dtype(name: &'static str, tensor: Argument<'_>) -> Result<i32, Error> {
    let code = required(name, tensor)?.dtype;
    if dtype_name(code).is_none() {
        return Err(Error::new(Status::Invalid, name, "a dtype", i64::from(code)));
    }
    Ok(code)
}

/// The error for a dtype that the operation does not take.
pub(crate) fn unexpected(name: &'static str, expected: &'static str, code: i32) -> Error {
    Error::new(Status::Invalid, name, expected, dtype_name(code).unwrap_or("no dtype"))
}

/// The one match over float dtypes: `$code` becomes the last parameter of `$function`.
macro_rules! per_dtype {
    ($name:literal, $code:expr, $function:ident $(::<$first:ident>)? ($($argument:expr),*)) => {
        match $code {
            $crate::tensor::TK_F32 => $function::<$($first,)? f32>($($argument),*),
            $crate::tensor::TK_F16 => $function::<$($first,)? tilekern::f16>($($argument),*),
            $crate::tensor::TK_BF16 => $function::<$($first,)? tilekern::bf16>($($argument),*),
            code => Err($crate::tensor::unexpected($name, "f32, f16 or bf16", code)),
        }
    };
}
pub(crate) use per_dtype;

/// The same over the dtype of a tensor.
macro_rules! per_float {
    ($name:literal, $tensor:expr, $($call:tt)*) => {
        $crate::tensor::per_dtype!($name, $crate::tensor::dtype($name, $tensor)?, $($call)*)
    };
}
pub(crate) use per_float;

/// Sizes below this, as most are, need no look at their product: with 64 bits of address it fits.
const PLAIN: usize = 1 << 29;

/// Calls `place` with the dimensions and the data of a tensor of that dtype.
#[inline(always)]
fn put<T: Dtype>(name: &'static str, tensor: Argument<'_>, place: impl FnOnce(Dims, *mut c_void)) -> Result<(), Error> {
    if let Some(tensor) = tensor
        && let Some(dims) = tensor.plain_dims::<T>()
    {
        place(dims, tensor.data);
        return Ok(());
    }
    put_any::<T>(name, tensor, place)
}

/// [`put`], apart: what it calls would cost those registers that need none of it.
#[cold]
#[inline(never)]
fn put_any<T: Dtype>(name: &'static str, tensor: Argument<'_>, place: impl FnOnce(Dims, *mut c_void)) -> Result<(), Error> {
    let tensor = required(name, tensor)?;
    place(tensor.dims_of(name, T::CODE, T::NAME)?, tensor.data);
    Ok(())
}

impl tk_tensor {
    /// The dimensions of a contiguous vector or matrix of that dtype, as most are.
    #[inline(always)]
    fn plain_dims<T: Dtype>(&self) -> Option<Dims> {
        if self.dtype != T::CODE || self.shape.is_null() || !self.strides.is_null() {
            return None;
        }
        // SAFETY: the C program promises `rank` sizes, more than i.
        let size = |i| usize::try_from(unsafe { *self.shape.add(i) }).ok().filter(|&size| size < PLAIN);
        match self.rank {
            1 => Dims::contiguous(&[size(0)?]).ok(),
            2 => Dims::contiguous(&[size(0)?, size(1)?]).ok(),
            _ => None,
        }
    }

    #[inline(never)]
    fn dims_of(&self, name: &'static str, code: i32, expected: &'static str) -> Result<Dims, Error> {
        if self.dtype != code {
            return Err(unexpected(name, expected, dtype(name, Some(self))?));
        }
        self.dims_of_any(name)
    }

    fn dims_of_any(&self, name: &'static str) -> Result<Dims, Error> {
        let invalid = |expected| Error::new(Status::Invalid, name, expected, i64::from(self.rank));
        let rank = usize::try_from(self.rank).map_err(|_| invalid("a rank of at least 0"))?;
        if rank > MAX_RANK {
            return Err(invalid("a rank of at most 5"));
        }
        if rank > 0 && self.shape.is_null() {
            return Err(Error::new(Status::Null, name, "a shape", "null"));
        }
        let (mut shape, mut strides) = ([0; MAX_RANK], [0; MAX_RANK]);
        let about = |error: Error| Error::new(error.status(), name, error.expected(), error.found());
        // SAFETY: the C program promises `rank` numbers.
        unsafe { copy(name, "sizes of at least 0", self.shape, &mut shape[..rank])? };
        if self.strides.is_null() {
            return Dims::contiguous(&shape[..rank]).map_err(about);
        }
        // SAFETY: as above.
        unsafe { copy(name, "strides of at least 0", self.strides, &mut strides[..rank])? };
        Dims::strided(&shape[..rank], &strides[..rank]).map_err(about)
    }
}

/// # Safety
///
/// `from` points to as many numbers as `to` has.
unsafe fn copy(name: &'static str, expected: &'static str, from: *const i64, to: &mut [usize]) -> Result<(), Error> {
    for (i, size) in to.iter_mut().enumerate() {
        // SAFETY: as promised by the caller.
        let number = unsafe { *from.add(i) };
        let expected = if number < 0 { expected } else { "a size that fits in memory" };
        *size = usize::try_from(number).map_err(|_| Error::new(Status::Invalid, name, expected, number))?;
    }
    Ok(())
}
