//! The tensors of a call: what their descriptors said in the first phase, and how the host sees them.

use crate::descriptor::{Spec, TENSOR_LISTS, Tensor as Descriptor, live};
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
dtypes! { f32 = ACL_FLOAT, f16 = ACL_FLOAT16, bf16 = ACL_BF16, f64 = ACL_DOUBLE, i8 = ACL_INT8, u8 = ACL_UINT8, i32 = ACL_INT32, i64 = ACL_INT64, u64 = ACL_UINT64, }

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

/// A parameter: a tensor, the members of a list, or nothing.
#[derive(Clone)]
struct Argument {
    list: usize,
    operands: Vec<Operand>,
}

/// The parameters, in the order of the prototype.
#[derive(Clone, Default)]
pub(crate) struct Arguments {
    inputs: Vec<Argument>,
    outputs: Vec<Argument>,
}

/// Which parameters an index counts.
#[derive(Clone, Copy)]
pub(crate) enum Among {
    Inputs,
    Outputs,
    /// Inputs first.
    Both,
}

impl Operand {
    fn of(name: &'static str, handle: usize, writes: bool) -> Result<Operand, Failure> {
        let spec = Descriptor::of(name, handle)?.spec();
        Ok(Operand { name, handle, spec, located: false, writes })
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
        let end = reach.and_then(|n| n.checked_mul(size)).and_then(|n| start.checked_add(n));
        Ok(start..end.filter(|&end| end <= isize::MAX as usize).ok_or_else(beyond)?)
    }

    /// What it uses of memory; nothing without elements.
    fn span(&self) -> Result<Option<Span>, Failure> {
        let bytes = self.bytes()?;
        Ok((!bytes.is_empty()).then_some(Span { name: self.name, bytes, place: Place::Device, writes: self.writes }))
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
        // SAFETY: inside memory of the device that the running work claims.
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

impl Arguments {
    fn add(&mut self, writes: bool, argument: Argument) {
        if writes { self.outputs.push(argument) } else { self.inputs.push(argument) }
    }

    /// A tensor that is read, and must be there.
    pub fn input(&mut self, name: &'static str, handle: *const aclTensor) -> Result<(), Failure> {
        self.add(false, Argument { list: 0, operands: vec![Operand::of(name, handle as usize, false)?] });
        Ok(())
    }

    /// A tensor that is read, or null.
    pub fn optional(&mut self, name: &'static str, handle: *const aclTensor) -> Result<(), Failure> {
        if !handle.is_null() {
            return self.input(name, handle);
        }
        self.add(false, Argument { list: 0, operands: Vec::new() });
        Ok(())
    }

    /// A tensor that is written, and must be there.
    pub fn output(&mut self, name: &'static str, handle: *const aclTensor) -> Result<(), Failure> {
        self.add(true, Argument { list: 0, operands: vec![Operand::of(name, handle as usize, true)?] });
        Ok(())
    }

    /// The members of a list, which must be there and have some.
    pub fn list(&mut self, name: &'static str, handle: *const aclTensorList) -> Result<(), Failure> {
        let members = live(&TENSOR_LISTS, name, handle as usize)?;
        if members.is_empty() {
            return Err(Failure::invalid(format!("{name}: an empty list")));
        }
        let operands = members.iter().map(|&member| Operand::of(name, member, false)).collect::<Result<_, _>>()?;
        self.add(false, Argument { list: handle as usize, operands });
        Ok(())
    }

    /// The same, or null.
    pub fn optional_list(&mut self, name: &'static str, handle: *const aclTensorList) -> Result<(), Failure> {
        if !handle.is_null() {
            return self.list(name, handle);
        }
        self.add(false, Argument { list: 0, operands: Vec::new() });
        Ok(())
    }

    fn all(&self) -> impl Iterator<Item = &Operand> {
        self.inputs.iter().chain(&self.outputs).flat_map(|argument| &argument.operands)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Operand> {
        self.inputs.iter_mut().chain(&mut self.outputs).flat_map(|argument| &mut argument.operands)
    }

    /// The tensor of a parameter that may be null.
    pub fn find(&self, name: &str) -> Option<&Operand> {
        self.all().find(|operand| operand.name == name)
    }

    /// The tensor of a parameter.
    pub fn get(&self, name: &str) -> Result<&Operand, Failure> {
        self.find(name).ok_or_else(|| Failure::null(name))
    }

    /// The members of a list.
    pub fn members(&self, name: &str) -> Vec<&Operand> {
        self.all().filter(|operand| operand.name == name).collect()
    }

    /// Other descriptions of the tensors of a parameter.
    pub fn relabel(&mut self, name: &str, change: impl Fn(&mut Operand) -> Result<(), Failure>) -> Result<(), Failure> {
        self.all_mut().filter(|operand| operand.name == name).try_for_each(change)
    }

    /// A tensor to read that may be missing.
    pub fn optional_view<T: Dtype>(&self, name: &str) -> Result<Option<Tensor<'_, T>>, Failure> {
        self.find(name).map(Operand::view).transpose()
    }

    /// The parameters that are not looked at are not used either: no memory need be behind them.
    pub fn ignore(&mut self, names: &[&str]) {
        for argument in self.inputs.iter_mut().chain(&mut self.outputs) {
            argument.operands.retain(|operand| !names.contains(&operand.name));
        }
    }

    /// Finds addresses in memory of the device, where they are.
    pub fn locate(&mut self) -> Result<(), Failure> {
        for operand in self.all_mut() {
            operand.located = operand.span()?.is_none_or(|span| memory::is_inside(&span));
        }
        Ok(())
    }

    /// What all of them use; an address that is none is an error by now.
    pub fn spans(&self) -> Result<Vec<Span>, Failure> {
        let mut spans = Vec::new();
        for operand in self.all() {
            let Some(span) = operand.span()? else { continue };
            if operand.spec.data == 0 {
                return Err(Failure::null(&format!("{}: the address of its data", operand.name)));
            }
            memory::check(&span).map_err(Failure::invalid)?;
            spans.push(span);
        }
        Ok(spans)
    }

    /// Whether no descriptor was destroyed since.
    pub fn alive(&self) -> Result<(), Failure> {
        self.all().try_for_each(|operand| Descriptor::of(operand.name, operand.handle).map(|_| ()))
    }

    /// Another address for a tensor, or for a member of a list: the handles are those of the first phase.
    pub fn set_address(
        &mut self,
        among: Among,
        [index, member]: [usize; 2],
        handle: usize,
        is_list: bool,
        address: usize,
    ) -> Result<(), Failure> {
        let inputs = self.inputs.len();
        let argument = match among {
            Among::Inputs => self.inputs.get_mut(index),
            Among::Outputs => self.outputs.get_mut(index),
            Among::Both if index < inputs => self.inputs.get_mut(index),
            Among::Both => self.outputs.get_mut(index - inputs),
        };
        let argument = argument.ok_or_else(|| Failure::invalid(format!("index {index}: there are fewer parameters")))?;
        let is_own = |operand: &Operand| if is_list { argument.list == handle } else { operand.handle == handle };
        let own = argument.operands.get(member).is_some_and(is_own);
        let other = || Failure::invalid(format!("index {index}: the first phase had another tensor there, or none"));
        argument.operands.get_mut(member).filter(|_| own).ok_or_else(other)?.spec.data = address;
        Ok(())
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
