//! The two phases of a call of aclnn.

use super::description::Descriptor;
use super::tensor::DeviceScratch;
use super::{Ascend, failed};
use crate::error::Error;
use core::ffi::c_void;
use tilekern_acl::operators::aclnnRun;
use tilekern_acl::{Table, aclOpExecutor, aclnnStatus, aclrtStream, codes};

/// What kernels may read behind a slice of the workspace.
pub(super) const SLACK: usize = 32;

/// What is asked of a call.
pub enum Job<'w> {
    /// How much workspace it needs.
    Query(&'w mut usize),
    /// To run in one.
    Run(DeviceScratch<'w>),
}

impl Job<'_> {
    /// Whether tensors need data.
    pub fn runs(&self) -> bool {
        matches!(self, Job::Run(_))
    }

    /// Where its workspace begins; 0 where there is none yet.
    pub fn address(&self) -> usize {
        if let Job::Run(scratch) = self { scratch.address } else { 0 }
    }

    /// Answers with one call of aclnn.
    pub(super) fn finish<const N: usize>(self, call: Prepared<'_, N>) -> Result<(), Error> {
        self.finish_behind(0, call)
    }

    /// The same, with a workspace that begins with bytes of our own.
    pub(super) fn finish_behind<const N: usize>(self, own: usize, call: Prepared<'_, N>) -> Result<(), Error> {
        let needed = together(own, call.bytes)?;
        match self {
            Job::Query(bytes) => *bytes = needed,
            Job::Run(scratch) => {
                scratch.fits(needed)?;
                call.launch(scratch.address + own)?;
            }
        }
        Ok(())
    }
}

/// Bytes of our own, and those of aclnn behind them.
pub(super) fn together(own: usize, bytes: usize) -> Result<usize, Error> {
    own.checked_add(bytes).ok_or_else(|| Error::invalid("workspace", "a size that fits in memory", "an overflow"))
}

/// The names of the two phases.
#[derive(Clone, Copy)]
pub(super) struct Phases {
    pub one: &'static str,
    pub two: &'static str,
}

/// The names of an operator's two phases.
macro_rules! phases {
    ($name:ident) => {
        $crate::ascend::executor::Phases { one: concat!(stringify!($name), "GetWorkspaceSize"), two: stringify!($name) }
    };
}
pub(super) use phases;

/// A call between its two phases, with the descriptions that it was made of.
pub(super) struct Prepared<'t, const N: usize> {
    table: &'t Table,
    stream: aclrtStream,
    name: &'static str,
    run: aclnnRun,
    /// Null once phase two has taken it.
    executor: *mut aclOpExecutor,
    /// What phase two needs.
    pub bytes: usize,
    /// They outlive phase two.
    _descriptors: [Descriptor<'t>; N],
}

impl<'t> Ascend<'t> {
    /// Phase one.
    ///
    /// # Safety
    ///
    /// `phase_one` calls the phase one that belongs to `run`, with these descriptions and the two places for its answer.
    pub(super) unsafe fn prepare<const N: usize>(
        &self,
        phases: Phases,
        run: aclnnRun,
        descriptors: [Descriptor<'t>; N],
        phase_one: impl FnOnce(&[Descriptor<'t>; N], *mut u64, *mut *mut aclOpExecutor) -> aclnnStatus,
    ) -> Result<Prepared<'t, N>, Error> {
        let (mut bytes, mut executor) = (0_u64, core::ptr::null_mut());
        let code = phase_one(&descriptors, &mut bytes, &mut executor);
        if code != codes::ACL_SUCCESS {
            // Whatever it left there stays the library's: it may have been released.
            return Err(failed(phases.one, code));
        }
        let (table, stream, name) = (self.table, self.stream, phases.two);
        // More than there are addresses is refused as more than the workspace has.
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok(Prepared { table, stream, name, run, executor, bytes, _descriptors: descriptors })
    }
}

impl<const N: usize> Prepared<'_, N> {
    /// Phase two, in that memory of `bytes` bytes.
    pub fn launch(mut self, workspace: usize) -> Result<(), Error> {
        // The library's from here on, whatever comes of it.
        let executor = core::mem::replace(&mut self.executor, core::ptr::null_mut());
        let workspace = if self.bytes == 0 { core::ptr::null_mut() } else { workspace as *mut c_void };
        // SAFETY: `executor` is fresh from phase one, the workspace has what that asked for, and the stream is the caller's.
        let code = unsafe { (self.run)(workspace, self.bytes as u64, executor, self.stream) };
        if code == codes::ACL_SUCCESS { Ok(()) } else { Err(failed(self.name, code)) }
    }
}

impl<const N: usize> Drop for Prepared<'_, N> {
    fn drop(&mut self) {
        if !self.executor.is_null() {
            // SAFETY: phase one made it, and phase two did not take it.
            _ = unsafe { (self.table.meta.aclDestroyAclOpExecutor)(self.executor) };
        }
    }
}
