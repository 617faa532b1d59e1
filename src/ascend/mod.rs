//! An Ascend NPU: a call becomes one or a few of aclnn's, enqueued in a stream.
//!
//! Every call of aclnn has two phases. Phase one takes descriptions of tensors, validates them and makes an executor; phase two
//! takes the executor and enqueues it. Nothing here reads what device memory contains, and nothing falls back: what aclnn's
//! functions cannot do as the operation is defined is refused with -2.

mod absent;
mod apply_top_k_top_p;
mod description;
mod executor;
mod grouped_matmul_swiglu_quant;
mod multinomial;
#[cfg(feature = "alloc")]
mod or_host;
mod tensor;
mod top_k_top_p_sample;
mod top_k_top_p_sample_v1;

use crate::backend::{Backend, Run};
use crate::error::{Error, Status, Value};
use core::alloc::Layout;
use executor::Job;
use tilekern_acl::table::Operator;
use tilekern_acl::{Device, Message, Stream, Table, aclrtStream, codes};

pub use description::DeviceType;
#[cfg(feature = "alloc")]
pub use or_host::OrHost;
pub use tensor::{DeviceScratch, DeviceTensor, DeviceTensorMut};

/// A stream of an Ascend NPU, and the functions that serve it.
///
/// A call enqueues and returns; what it named must stay until the stream is synchronised, and a [`Buffer`](tilekern_acl::Buffer)
/// does. Errors that arise on the device come with that synchronise.
///
/// It runs [`TopKTopPSample`](crate::ops::TopKTopPSample), [`TopKTopPSampleV1`](crate::ops::TopKTopPSampleV1) of f16 and bf16,
/// [`ApplyTopKTopP`](crate::ops::ApplyTopKTopP), [`Multinomial`](crate::ops::Multinomial) and
/// [`GroupedMatmulSwigluQuant`](crate::ops::GroupedMatmulSwigluQuant). What aclnn's function cannot do as the operation is defined
/// is refused with -2 and a reason, and so is a function that this CANN lacks. [`ApplyTopKTopPMinP`](crate::ops::ApplyTopKTopPMinP)
/// and [`Exponential`](crate::ops::Exponential) are refused always, for `OrHost` to answer; other operations do not compile.
///
/// ```no_run
/// use tilekern::acl::{Buffer, Device, Stream, load};
/// use tilekern::{Ascend, DeviceScratch, DeviceTensor, DeviceTensorMut, Error, Run, ops::TopKTopPSample};
///
/// fn choose(stream: &Stream<'_>) -> Result<i64, Error> {
///     let logits = Buffer::from_slice(stream, &[2.0f32, 1.0, 0.5, 3.0])?;
///     let (top_k, top_p) = (Buffer::from_slice(stream, &[3])?, Buffer::from_slice(stream, &[1.0f32])?);
///     let mut token = Buffer::<i64>::new(stream, 1)?;
///
///     let npu = Ascend::new(stream);
///     let call = TopKTopPSample::new(
///         DeviceTensor::new([1, 4], &logits)?,
///         DeviceTensor::new([1], &top_k)?,
///         DeviceTensor::new([1], &top_p)?,
///         DeviceTensorMut::new([1], &mut token)?,
///     );
///     let mut workspace = Buffer::new(stream, npu.workspace(&call)?.size())?;
///     npu.run(call, DeviceScratch::new(&mut workspace))?;
///     let mut chosen = [0];
///     token.read(&mut chosen)?; // waits
///     Ok(chosen[0])
/// }
///
/// let device = Device::open(load::cann()?, 0)?;
/// assert_eq!(choose(&Stream::new(&device)?)?, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ascend<'t> {
    table: &'t Table,
    stream: aclrtStream,
    /// Of a stream whose device is known.
    device: Option<&'t Device<'t>>,
}

// SAFETY: a stream is a handle that any thread may use.
unsafe impl Send for Ascend<'_> {}
// SAFETY: as above; the order of what several threads enqueue is theirs.
unsafe impl Sync for Ascend<'_> {}

impl<'t> Ascend<'t> {
    /// Calls into `stream`, whose device each call makes the thread's, as [`Device::enter`] does.
    pub fn new(stream: &'t Stream<'t>) -> Ascend<'t> {
        let device = stream.device();
        Ascend { table: device.table(), stream: stream.raw(), device: Some(device) }
    }

    /// Calls into a stream of somebody else's, whose context is current on each thread that calls.
    ///
    /// # Safety
    ///
    /// The stream is null, or lives during `'t` and is one of the library behind `table`.
    pub unsafe fn from_raw(table: &'t Table, stream: aclrtStream) -> Ascend<'t> {
        Ascend { table, stream, device: None }
    }

    /// Lets this thread work on the stream's device, where that is known.
    fn enter(&self) -> Result<(), Error> {
        let Some(device) = self.device else { return Ok(()) };
        Ok(device.enter()?)
    }

    /// What the library said about this thread's last failure. Reading clears it: it is asked once, right behind an error that
    /// carries a [`Value::Code`].
    pub fn recent_message(&self) -> Message {
        self.table.recent_message()
    }

    /// The function, or the refusal of a CANN that lacks it.
    fn operator<P>(&self, name: &'static str, operator: Option<Operator<P>>) -> Result<Operator<P>, Error> {
        operator.ok_or(unsupported("backend", name, "a CANN without it"))
    }
}

impl Backend for Ascend<'_> {
    type View<'a, T: 'a> = DeviceTensor<'a, T>;
    type ViewMut<'a, T: 'a> = DeviceTensorMut<'a, T>;
    type Scratch<'a> = DeviceScratch<'a>;
}

/// How a call becomes calls of aclnn.
pub trait Dispatch<C> {
    /// Validates and prepares; `job` says whether the workspace is asked for or the call is to run.
    fn dispatch(&self, call: &C, job: Job<'_>) -> Result<(), Error>;
}

impl<C> Run<C> for Ascend<'_>
where
    Self: Dispatch<C>,
{
    fn workspace(&self, call: &C) -> Result<Layout, Error> {
        self.enter()?;
        let mut bytes = 0;
        self.dispatch(call, Job::Query(&mut bytes))?;
        let too_large = |_| Error::invalid("workspace", "a size that fits in memory", bytes);
        Layout::from_size_align(bytes, crate::scratch::ALIGN).map_err(too_large)
    }

    fn run_mut(&self, call: &mut C, scratch: DeviceScratch<'_>) -> Result<(), Error> {
        scratch.note(self)?;
        self.enter()?;
        self.dispatch(call, Job::Run(scratch))
    }
}

/// What aclnn's functions cannot do.
pub(crate) fn unsupported(argument: &'static str, expected: impl Into<Value>, found: impl Into<Value>) -> Error {
    Error::new(Status::Unsupported, argument, expected, found)
}

/// [`unsupported`] where it does not hold.
fn supports(argument: &'static str, holds: bool, expected: &'static str, found: impl Into<Value>) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(unsupported(argument, expected, found)) }
}

/// The function and its code, with [`Status::Backend`]. The sentence that the library left stays with ACL's error:
/// [`Ascend::recent_message`] has given it away.
impl From<tilekern_acl::Error> for Error {
    fn from(error: tilekern_acl::Error) -> Error {
        failed(error.function(), error.code())
    }
}

/// A function of ACL failed.
fn failed(function: &'static str, code: i32) -> Error {
    Error::new(Status::Backend, function, "success", Value::Code { code, name: codes::name(code) })
}
