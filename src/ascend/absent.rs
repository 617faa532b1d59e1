//! Operations that aclnn has no function for, so that [`OrHost`](super::OrHost) can stand in for it.

use super::executor::Job;
use super::{Ascend, Dispatch, unsupported};
use crate::error::Error;
use crate::ops::{ApplyTopKTopPMinP, Exponential};

fn absent() -> Error {
    unsupported("backend", "a function of aclnn", "none for this operation")
}

impl<'t, T> Dispatch<ApplyTopKTopPMinP<'_, Self, T>> for Ascend<'t> {
    fn dispatch(&self, call: &ApplyTopKTopPMinP<'_, Self, T>, job: Job<'_>) -> Result<(), Error> {
        call.check(job.runs())?;
        Err(absent())
    }
}

impl<'t, T> Dispatch<Exponential<'_, Self, T>> for Ascend<'t> {
    fn dispatch(&self, call: &Exponential<'_, Self, T>, job: Job<'_>) -> Result<(), Error> {
        call.check(job.runs())?;
        Err(absent())
    }
}
