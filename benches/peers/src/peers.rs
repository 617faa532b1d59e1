//! candle's `LogitsProcessor`.

use crate::contenders::Contender;
use candle_core::{Device, Tensor};
use candle_transformers::generation::{LogitsProcessor, Sampling};

pub struct Candle {
    processor: LogitsProcessor,
    row: Option<Tensor>,
}

impl Candle {
    pub fn new(sampling: Sampling) -> Candle {
        Candle { processor: LogitsProcessor::from_sampling(1, sampling), row: None }
    }
}

impl Contender for Candle {
    fn prepare(&mut self, row: &[f32]) {
        self.row = Tensor::from_slice(row, row.len(), &Device::Cpu).ok();
    }

    fn choose(&mut self) -> usize {
        let row = self.row.as_ref().expect("a prepared row");
        self.processor.sample(row).expect("a token") as usize
    }
}
