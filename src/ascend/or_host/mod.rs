//! The NPU, or the host in its stead.

mod calls;
mod stage;

use super::{Ascend, DeviceScratch, DeviceTensor, DeviceTensorMut, Dispatch};
use crate::backend::{Backend, Run};
use crate::error::{Error, Status};
use crate::host::Host;
use crate::parallel::Serial;
use calls::OnHost;
use core::alloc::Layout;
use stage::Stage;

/// An NPU whose refusals (-2) the host answers: tensors are copied to the host's memory, the host runs, and what it wrote is copied
/// back. Such a call waits for the stream, allocates, and takes the time of the copies; its result is the host's.
///
/// Calls are those of [`Ascend`], with the same tensors. Any other error stays one.
///
/// ```no_run
/// # fn with(stream: &tilekern::acl::Stream<'_>) {
/// use tilekern::{Ascend, Host, OrHost};
///
/// let backend = OrHost::new(Ascend::new(stream), Host::new());
/// # let _ = backend;
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OrHost<'t, P = Serial> {
    npu: Ascend<'t>,
    host: Host<P>,
}

impl<'t, P> OrHost<'t, P> {
    /// The NPU first.
    pub fn new(npu: Ascend<'t>, host: Host<P>) -> OrHost<'t, P> {
        OrHost { npu, host }
    }
}

impl<P> Backend for OrHost<'_, P> {
    type View<'a, T: 'a> = DeviceTensor<'a, T>;
    type ViewMut<'a, T: 'a> = DeviceTensorMut<'a, T>;
    type Scratch<'a> = DeviceScratch<'a>;
}

impl<'t, P, C> Run<C> for OrHost<'t, P>
where
    Ascend<'t>: Dispatch<C>,
    C: OnHost<P>,
{
    /// The workspace on the NPU; none for a call that the host answers.
    fn workspace(&self, call: &C) -> Result<Layout, Error> {
        self.npu.workspace(call).or_else(|error| refusal(error).map(|()| Layout::new::<()>()))
    }

    fn run_mut(&self, call: &mut C, scratch: DeviceScratch<'_>) -> Result<(), Error> {
        self.npu.run_mut(call, scratch).or_else(|error| {
            refusal(error)?;
            call.on_host(&mut Stage::new(&self.npu)?, &self.host)
        })
    }
}

/// Lets refusals pass.
fn refusal(error: Error) -> Result<(), Error> {
    if error.status() == Status::Unsupported { Ok(()) } else { Err(error) }
}
