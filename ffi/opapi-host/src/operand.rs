//! A tensor of a call: what its descriptor said, and how the host sees it.

use crate::descriptor::{Spec, Tensor as Descriptor};
use crate::failure::Failure;
use crate::memory::{self, Place, Span};
use core::ops::Range;
use tilekern::{Dims, Tensor, TensorMut, bf16, f16};
use tilekern_acl::*;

/// A dtype that the host computes with.
pub(crate) trait Dtype {
    const CODE: aclDataType;
}

macro_rules! dtypes {
    ($($type:ty = $code:ident,)*) => {$(impl Dtype for $type { const CODE: aclDataType = $code; })*};
}
dtypes! {
    f32 = ACL_FLOAT, f16 = ACL_FLOAT16, bf16 = ACL_BF16, f64 = ACL_DOUBLE,
    i8 = ACL_INT8, u8 = ACL_UINT8, i32 = ACL_INT32, i64 = ACL_INT64, u64 = ACL_UINT64,
}

/// One tensor, as it was described.
#[derive(Clone)]
pub(crate) struct Operand {
    name: &'static str,
    handle: usize,
    pub spec: Spec,
    /// Whether its address was found in live memory of the device.
    located: bool,
    writes: bool,
}

impl Operand {
    /// Of a descriptor that lives.
    pub fn of(name: &'static str, handle: usize, writes: bool) -> Result<Operand, Failure> {
        let spec = Descriptor::of(name, handle)?.spec();
        Ok(Operand { name, handle, spec, located: false, writes })
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether this is the descriptor's.
    pub fn is_of(&self, handle: usize) -> bool {
        self.handle == handle
    }

    /// Whether the descriptor was not destroyed since.
    pub fn alive(&self) -> Result<(), Failure> {
        Descriptor::of(self.name, self.handle).map(|_| ())
    }

    /// Looks for its address in memory of the device.
    pub fn locate(&mut self) -> Result<(), Failure> {
        self.located = self.span()?.is_none_or(|span| memory::is_inside(&self.reach(&span)));
        Ok(())
    }

    pub fn wrong(&self, expected: &str, found: impl core::fmt::Debug) -> Failure {
        Failure::invalid(format!("{}: expected {expected}, found {found:?}", self.name))
    }

    /// Bytes of an element.
    pub fn element_bytes(&self) -> Result<usize, Failure> {
        match element_bits(self.spec.dtype) {
            Some(bits) if bits % 8 == 0 => Ok(bits / 8),
            _ => Err(self.wrong("a dtype of whole bytes", self.spec.dtype.0)),
        }
    }

    /// Exactly this rank.
    pub fn rank(&self, rank: usize) -> Result<(), Failure> {
        if self.spec.dims.len() == rank { Ok(()) } else { Err(self.wrong(&format!("a rank of {rank}"), &self.spec.dims)) }
    }

    /// One of these dtypes.
    pub fn dtype(&self, allowed: &[aclDataType]) -> Result<(), Failure> {
        let names: Vec<i32> = allowed.iter().map(|dtype| dtype.0).collect();
        let wrong = || self.wrong(&format!("a dtype of {names:?}"), self.spec.dtype.0);
        allowed.contains(&self.spec.dtype).then_some(()).ok_or_else(wrong)
    }

    /// Shape and strides as sizes; elements lie where strides say, so a blocked format is refused.
    pub fn sizes(&self) -> Result<(Vec<usize>, Vec<usize>), Failure> {
        if is_blocked(self.spec.format) {
            return Err(self.wrong("the format ND", self.spec.format.0));
        }
        let size = |values: &[i64]| values.iter().map(|&n| usize::try_from(n).ok()).collect::<Option<Vec<usize>>>();
        let shape = size(&self.spec.dims).ok_or_else(|| self.wrong("sizes of at least 0", &self.spec.dims))?;
        let strides = size(&self.spec.strides).ok_or_else(|| self.wrong("strides of at least 0", &self.spec.strides))?;
        Ok((shape, strides))
    }

    fn dims(&self) -> Result<Dims, Failure> {
        let (shape, strides) = self.sizes()?;
        Dims::strided(&shape, &strides).map_err(|error| self.wrong("a tensor of the host", error.to_string()))
    }

    /// From the first byte that the view reaches to behind the last; empty without elements.
    pub fn bytes(&self) -> Result<Range<usize>, Failure> {
        let (shape, strides) = self.sizes()?;
        let size = self.element_bytes()?;
        let beyond = || self.wrong("a view inside memory", &self.spec.dims);
        let offset = usize::try_from(self.spec.offset).map_err(|_| self.wrong("an offset of at least 0", self.spec.offset))?;
        let start = offset.checked_mul(size).and_then(|n| self.spec.data.checked_add(n)).ok_or_else(beyond)?;
        if shape.contains(&0) {
            return Ok(start..start);
        }
        let reach =
            shape.iter().zip(&strides).try_fold(1usize, |n, (&dim, &stride)| n.checked_add((dim - 1).checked_mul(stride)?));
        let reach = reach.and_then(|n| n.checked_mul(size)).filter(|&n| n <= isize::MAX as usize);
        Ok(start..reach.and_then(|n| start.checked_add(n)).ok_or_else(beyond)?)
    }

    /// What it uses of memory; nothing without elements.
    pub fn span(&self) -> Result<Option<Span>, Failure> {
        let bytes = self.bytes()?;
        Ok((!bytes.is_empty()).then_some(Span { name: self.name, bytes, place: Place::Device, writes: self.writes }))
    }

    /// What has to lie in one buffer: from the address of its data, whatever the offset, to the end of what it uses.
    pub fn reach(&self, span: &Span) -> Span {
        Span { bytes: self.spec.data..span.bytes.end, ..*span }
    }

    /// Whether two of its elements may be one: sorted by stride, each stride must exceed what the smaller ones span.
    pub fn overlaps_itself(&self) -> Result<bool, Failure> {
        let (shape, strides) = self.sizes()?;
        if shape.contains(&0) {
            return Ok(false);
        }
        let mut by_stride: Vec<(usize, usize)> = strides.into_iter().zip(shape).filter(|&(_, n)| n > 1).collect();
        by_stride.sort_unstable();
        let mut span = 0usize;
        Ok(by_stride.into_iter().any(|(stride, n)| {
            let inside = stride <= span;
            span = span.saturating_add(stride.saturating_mul(n - 1));
            inside
        }))
    }

    /// It has memory of its own, as far as addresses are known by now.
    pub fn apart_from(&self, others: &[&Operand]) -> Result<(), Failure> {
        let (bytes, known) = (self.bytes()?, self.address()? != 0);
        for other in others {
            if known && other.address()? != 0 && memory::meet(&bytes, &other.bytes()?) {
                return Err(self.wrong("memory of its own", other.name));
            }
        }
        Ok(())
    }

    /// Where its first element is, once that was found to be memory of the device.
    pub fn address(&self) -> Result<usize, Failure> {
        Ok(if self.located { self.bytes()?.start } else { 0 })
    }

    fn typed<T: Dtype>(&self) -> Result<(Dims, usize), Failure> {
        self.dtype(&[T::CODE])?;
        Ok((self.dims()?, self.address()?))
    }

    /// A tensor to read.
    pub fn view<T: Dtype>(&self) -> Result<Tensor<'_, T>, Failure> {
        let (dims, address) = self.typed::<T>()?;
        // SAFETY: null, or inside memory of the device that the work claims as long as it runs; before that nobody reads it.
        Ok(unsafe { Tensor::from_raw(dims, address as *const T) })
    }

    /// The one number in it. For a run alone: before, work in a stream may still write it.
    pub fn number(&self) -> Result<i64, Failure> {
        let mut bytes = [0; 8];
        self.read(&mut bytes)?;
        Ok(i64::from_le_bytes(bytes))
    }

    /// The bytes of a contiguous tensor. For a run alone.
    pub fn read(&self, to: &mut [u8]) -> Result<(), Failure> {
        let bytes = self.bytes()?;
        if !self.located || bytes.len() != to.len() {
            return Err(self.wrong("contiguous memory of the device", bytes.len()));
        }
        // SAFETY: inside memory of the device that the running work claims, so that it stays; to order what meets there, by streams and
        // events, is ACL's demand on the program.
        unsafe { core::ptr::copy_nonoverlapping(bytes.start as *const u8, to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    /// A tensor to write.
    pub fn view_mut<T: Dtype>(&self) -> Result<TensorMut<'_, T>, Failure> {
        let (dims, address) = self.typed::<T>()?;
        // SAFETY: null, or inside memory of the device that the work claims to write; before it runs nobody writes it.
        Ok(unsafe { TensorMut::from_raw(dims, address as *mut T) })
    }
}

/// Bits of an element; `None` for a dtype that has no fixed size.
pub(crate) fn element_bits(dtype: aclDataType) -> Option<usize> {
    Some(match dtype {
        ACL_UINT1 => 1,
        ACL_INT4 | ACL_FLOAT4_E2M1 | ACL_FLOAT4_E1M2 => 4,
        ACL_FLOAT6_E3M2 | ACL_FLOAT6_E2M3 => 6,
        ACL_INT8 | ACL_UINT8 | ACL_BOOL | ACL_HIFLOAT8 | ACL_FLOAT8_E5M2 | ACL_FLOAT8_E4M3FN | ACL_FLOAT8_E8M0 => 8,
        ACL_FLOAT16 | ACL_BF16 | ACL_INT16 | ACL_UINT16 => 16,
        ACL_FLOAT | ACL_INT32 | ACL_UINT32 | ACL_COMPLEX32 => 32,
        ACL_INT64 | ACL_UINT64 | ACL_DOUBLE | ACL_COMPLEX64 => 64,
        ACL_COMPLEX128 => 128,
        _ => return None,
    })
}

/// Whether elements lie in blocks.
fn is_blocked(format: aclFormat) -> bool {
    matches!(
        format,
        ACL_FORMAT_NC1HWC0
            | ACL_FORMAT_FRACTAL_Z
            | ACL_FORMAT_NC1HWC0_C04
            | ACL_FORMAT_FRACTAL_NZ
            | ACL_FORMAT_NDC1HWC0
            | ACL_FRACTAL_Z_3D
    ) || (ACL_FORMAT_FRACTAL_NZ_C0_16.0..=ACL_FORMAT_FRACTAL_NZ_C0_8.0).contains(&format.0)
}
