//! Choices among the k best on the host.

use super::Host;
use super::next_token::{Choice, plan};
use crate::backend::Run;
use crate::error::Error;
use crate::ops::TopKSampling;
use crate::parallel::ParallelFor;
use core::alloc::Layout;
use tilekern_kernels::rows::{TopKChoice, choice_len};

impl<P: ParallelFor> Run<TopKSampling<'_, Self>> for Host<P> {
    fn workspace(&self, call: &TopKSampling<'_, Self>) -> Result<Layout, Error> {
        let ([_, columns], k) = call.check(false)?;
        Ok(plan(self.pool.workers(), columns, choice_len(k))?.0.layout())
    }

    fn run_mut(&self, call: &mut TopKSampling<'_, Self>, scratch: &mut [u8]) -> Result<(), Error> {
        let (sizes, k) = call.check(true)?;
        let diversity = call.diversity_rate as f32;
        self.next_tokens(&call.next_token(), sizes, choice_len(k), scratch, |Choice { row, random, maxima, list }| {
            self.level.run(TopKChoice { row, k, diversity, random, maxima, list })
        })
    }
}
