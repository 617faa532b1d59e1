//! Choices among the most probable on the host.

use super::Host;
use super::next_token::{Choice, plan};
use crate::backend::Run;
use crate::error::Error;
use crate::ops::TopPSampling;
use crate::parallel::ParallelFor;
use core::alloc::Layout;
use tilekern_kernels::rows::{TopPChoice, list_len};

impl<P: ParallelFor> Run<TopPSampling<'_, Self>> for Host<P> {
    fn workspace(&self, call: &TopPSampling<'_, Self>) -> Result<Layout, Error> {
        let [_, columns] = call.check(false)?;
        Ok(plan(self.pool.workers(), columns, list_len(columns))?.0.layout())
    }

    fn run_mut(&self, call: &mut TopPSampling<'_, Self>, scratch: &mut [u8]) -> Result<(), Error> {
        let sizes = call.check(true)?;
        let room = list_len(sizes[1]);
        let p = call.p;
        self.next_tokens(&call.next_token(), sizes, room, scratch, |Choice { row, random, maxima, list }| {
            self.level.run(TopPChoice { row, p, random, maxima, list })
        })
    }
}
