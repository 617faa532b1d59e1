//! The host's call for each of the NPU's: the same fields, with the tensors of a stage.

use super::super::Ascend;
use super::stage::Stage;
use crate::error::Error;
use crate::host::Host;
use crate::ops::*;
use crate::parallel::ParallelFor;
use tilekern_kernels::element::Element;

/// A call of the NPU's that the host can answer.
pub trait OnHost<P> {
    /// Answers it.
    fn on_host(&self, stage: &mut Stage<'_>, host: &Host<P>) -> Result<(), Error>;
}

impl<P: ParallelFor, T: Element> OnHost<P> for TopKTopPSample<'_, Ascend<'_>, T> {
    fn on_host(&self, stage: &mut Stage<'_>, host: &Host<P>) -> Result<(), Error> {
        let q = match (&self.q, self.post_sample) {
            (_, PostSample::None) | (None, _) => None,
            (Some(Noise::Exponential(q)), _) => Some(Noise::Exponential(stage.read(q)?)),
            (Some(Noise::Seeds(q)), _) => Some(Noise::Seeds(stage.read(q)?)),
        };
        let select = if self.is_need_logits { stage.write_optional(&self.logits_top_kp_select)? } else { None };
        let call = TopKTopPSample {
            logits: stage.read(&self.logits)?,
            top_k: stage.read(&self.top_k)?,
            top_p: stage.read(&self.top_p)?,
            q,
            min_ps: stage.read_optional(&self.min_ps)?,
            eps: self.eps,
            is_need_logits: self.is_need_logits,
            top_k_guess: self.top_k_guess,
            ks_max: self.ks_max,
            input_is_logits: self.input_is_logits,
            post_sample: self.post_sample,
            logits_select_idx: stage.write_optional(&self.logits_select_idx)?,
            logits_top_kp_select: select,
            row_status: stage.write_optional(&self.row_status)?,
            logits_idx: stage.write_optional(&self.logits_idx)?,
            logits_sort_masked: stage.write_optional(&self.logits_sort_masked)?,
            generator: stage.read_optional(&self.generator)?,
        };
        stage.run(host, call)
    }
}

impl<P: ParallelFor, T: Element> OnHost<P> for TopKTopPSampleV1<'_, Ascend<'_>, T> {
    fn on_host(&self, stage: &mut Stage<'_>, host: &Host<P>) -> Result<(), Error> {
        let select = if self.is_need_logits { stage.write_optional(&self.logits_top_kp_select)? } else { None };
        let call = TopKTopPSampleV1 {
            logits: stage.read(&self.logits)?,
            top_k: stage.read(&self.top_k)?,
            top_p: stage.read(&self.top_p)?,
            q: stage.read_optional(&self.q)?,
            eps: self.eps,
            is_need_logits: self.is_need_logits,
            top_k_guess: self.top_k_guess,
            logits_select_idx: stage.write(&self.logits_select_idx)?,
            logits_top_kp_select: select,
            row_status: stage.write_optional(&self.row_status)?,
        };
        stage.run(host, call)
    }
}

impl<P: ParallelFor, T: Element> OnHost<P> for ApplyTopKTopP<'_, Ascend<'_>, T> {
    fn on_host(&self, stage: &mut Stage<'_>, host: &Host<P>) -> Result<(), Error> {
        let call = ApplyTopKTopP {
            logits: stage.read(&self.logits)?,
            p: stage.read_optional(&self.p)?,
            k: stage.read_optional(&self.k)?,
            out: stage.write(&self.out)?,
        };
        stage.run(host, call)
    }
}

impl<P: ParallelFor, T: Element> OnHost<P> for ApplyTopKTopPMinP<'_, Ascend<'_>, T> {
    fn on_host(&self, stage: &mut Stage<'_>, host: &Host<P>) -> Result<(), Error> {
        let call = ApplyTopKTopPMinP {
            probs: stage.read(&self.probs)?,
            k: stage.read(&self.k)?,
            p: stage.read(&self.p)?,
            min_p: stage.read_optional(&self.min_p)?,
            sampled_res: stage.write(&self.sampled_res)?,
        };
        stage.run(host, call)
    }
}

impl<P: ParallelFor, T: Weight> OnHost<P> for Multinomial<'_, Ascend<'_>, T> {
    fn on_host(&self, stage: &mut Stage<'_>, host: &Host<P>) -> Result<(), Error> {
        let call = Multinomial {
            probs: stage.read(&self.probs)?,
            num_samples: self.num_samples,
            replacement: self.replacement,
            seed: self.seed,
            offset: self.offset,
            out: stage.write(&self.out)?,
        };
        stage.run(host, call)
    }
}

impl<P: ParallelFor, T: Element> OnHost<P> for Exponential<'_, Ascend<'_>, T> {
    fn on_host(&self, stage: &mut Stage<'_>, host: &Host<P>) -> Result<(), Error> {
        let call = Exponential { rate: self.rate, seed: self.seed, offset: self.offset, out: stage.write(&self.out)? };
        stage.run(host, call)
    }
}

impl<P: ParallelFor> OnHost<P> for GroupedMatmulSwigluQuant<'_, Ascend<'_>> {
    fn on_host(&self, stage: &mut Stage<'_>, host: &Host<P>) -> Result<(), Error> {
        let call = GroupedMatmulSwigluQuant {
            x: stage.read(&self.x)?,
            weight: match &self.weight {
                GroupedWeight::I8(weight) => GroupedWeight::I8(stage.read(weight)?),
                GroupedWeight::I4(weight) => GroupedWeight::I4(stage.read(weight)?),
            },
            bias: match &self.bias {
                None => None,
                Some(Bias::I32(bias)) => Some(Bias::I32(stage.read(bias)?)),
                Some(Bias::F32(bias)) => Some(Bias::F32(stage.read(bias)?)),
            },
            offset: stage.read_optional(&self.offset)?,
            weight_scale: match &self.weight_scale {
                GroupedScale::Channel(ChannelScale::F32(scale)) => GroupedScale::Channel(ChannelScale::F32(stage.read(scale)?)),
                GroupedScale::Channel(ChannelScale::F16(scale)) => GroupedScale::Channel(ChannelScale::F16(stage.read(scale)?)),
                GroupedScale::Channel(ChannelScale::BF16(scale)) => GroupedScale::Channel(ChannelScale::BF16(stage.read(scale)?)),
                GroupedScale::Bits(scale) => GroupedScale::Bits(stage.read(scale)?),
                GroupedScale::SignedBits(scale) => GroupedScale::SignedBits(stage.read(scale)?),
            },
            x_scale: stage.read(&self.x_scale)?,
            group_list: stage.read(&self.group_list)?,
            weight_format: self.weight_format,
            group_list_type: self.group_list_type,
            arithmetic: self.arithmetic,
            fp16_rounding: self.fp16_rounding,
            output: stage.write(&self.output)?,
            output_scale: stage.write(&self.output_scale)?,
            output_offset: stage.write_optional(&self.output_offset)?,
        };
        stage.run(host, call)
    }
}
