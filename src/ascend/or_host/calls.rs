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
            (Some(Noise::Exponential(q)), _) => Some(Noise::Exponential(stage.read("q", q)?)),
            (Some(Noise::Seeds(q)), _) => Some(Noise::Seeds(stage.read("q", q)?)),
        };
        let select =
            if self.is_need_logits { stage.write_optional("logits_top_kp_select", &self.logits_top_kp_select)? } else { None };
        let call = TopKTopPSample {
            logits: stage.read("logits", &self.logits)?,
            top_k: stage.read("top_k", &self.top_k)?,
            top_p: stage.read("top_p", &self.top_p)?,
            q,
            min_ps: stage.read_optional("min_ps", &self.min_ps)?,
            eps: self.eps,
            is_need_logits: self.is_need_logits,
            top_k_guess: self.top_k_guess,
            ks_max: self.ks_max,
            input_is_logits: self.input_is_logits,
            post_sample: self.post_sample,
            logits_select_idx: stage.write_optional("logits_select_idx", &self.logits_select_idx)?,
            logits_top_kp_select: select,
            row_status: stage.write_optional("row_status", &self.row_status)?,
            logits_idx: stage.write_optional("logits_idx", &self.logits_idx)?,
            logits_sort_masked: stage.write_optional("logits_sort_masked", &self.logits_sort_masked)?,
            generator: stage.read_optional("generator", &self.generator)?,
        };
        stage.run(host, call)
    }
}

impl<P: ParallelFor, T: Element> OnHost<P> for TopKTopPSampleV1<'_, Ascend<'_>, T> {
    fn on_host(&self, stage: &mut Stage<'_>, host: &Host<P>) -> Result<(), Error> {
        let select =
            if self.is_need_logits { stage.write_optional("logits_top_kp_select", &self.logits_top_kp_select)? } else { None };
        let call = TopKTopPSampleV1 {
            logits: stage.read("logits", &self.logits)?,
            top_k: stage.read("top_k", &self.top_k)?,
            top_p: stage.read("top_p", &self.top_p)?,
            q: stage.read_optional("q", &self.q)?,
            eps: self.eps,
            is_need_logits: self.is_need_logits,
            top_k_guess: self.top_k_guess,
            logits_select_idx: stage.write("logits_select_idx", &self.logits_select_idx)?,
            logits_top_kp_select: select,
            row_status: stage.write_optional("row_status", &self.row_status)?,
        };
        stage.run(host, call)
    }
}

impl<P: ParallelFor, T: Element> OnHost<P> for ApplyTopKTopP<'_, Ascend<'_>, T> {
    fn on_host(&self, stage: &mut Stage<'_>, host: &Host<P>) -> Result<(), Error> {
        let call = ApplyTopKTopP {
            logits: stage.read("logits", &self.logits)?,
            p: stage.read_optional("p", &self.p)?,
            k: stage.read_optional("k", &self.k)?,
            out: stage.write("out", &self.out)?,
        };
        stage.run(host, call)
    }
}

impl<P: ParallelFor, T: Element> OnHost<P> for ApplyTopKTopPMinP<'_, Ascend<'_>, T> {
    fn on_host(&self, stage: &mut Stage<'_>, host: &Host<P>) -> Result<(), Error> {
        let call = ApplyTopKTopPMinP {
            probs: stage.read("probs", &self.probs)?,
            k: stage.read("k", &self.k)?,
            p: stage.read("p", &self.p)?,
            min_p: stage.read_optional("min_p", &self.min_p)?,
            sampled_res: stage.write("sampled_res", &self.sampled_res)?,
        };
        stage.run(host, call)
    }
}

impl<P: ParallelFor, T: Weight> OnHost<P> for Multinomial<'_, Ascend<'_>, T> {
    fn on_host(&self, stage: &mut Stage<'_>, host: &Host<P>) -> Result<(), Error> {
        let call = Multinomial {
            probs: stage.read("probs", &self.probs)?,
            num_samples: self.num_samples,
            replacement: self.replacement,
            seed: self.seed,
            offset: self.offset,
            out: stage.write("out", &self.out)?,
        };
        stage.run(host, call)
    }
}

impl<P: ParallelFor, T: Element> OnHost<P> for Exponential<'_, Ascend<'_>, T> {
    fn on_host(&self, stage: &mut Stage<'_>, host: &Host<P>) -> Result<(), Error> {
        let call = Exponential { rate: self.rate, seed: self.seed, offset: self.offset, out: stage.write("out", &self.out)? };
        stage.run(host, call)
    }
}

impl<P: ParallelFor> OnHost<P> for GroupedMatmulSwigluQuant<'_, Ascend<'_>> {
    fn on_host(&self, stage: &mut Stage<'_>, host: &Host<P>) -> Result<(), Error> {
        let call = GroupedMatmulSwigluQuant {
            x: stage.read("x", &self.x)?,
            weight: match &self.weight {
                GroupedWeight::I8(weight) => GroupedWeight::I8(stage.read("weight", weight)?),
                GroupedWeight::I4(weight) => GroupedWeight::I4(stage.read("weight", weight)?),
            },
            bias: match &self.bias {
                None => None,
                Some(Bias::I32(bias)) => Some(Bias::I32(stage.read("bias", bias)?)),
                Some(Bias::F32(bias)) => Some(Bias::F32(stage.read("bias", bias)?)),
            },
            offset: stage.read_optional("offset", &self.offset)?,
            weight_scale: match &self.weight_scale {
                GroupedScale::Channel(ChannelScale::F32(scale)) => {
                    GroupedScale::Channel(ChannelScale::F32(stage.read("weight_scale", scale)?))
                }
                GroupedScale::Channel(ChannelScale::F16(scale)) => {
                    GroupedScale::Channel(ChannelScale::F16(stage.read("weight_scale", scale)?))
                }
                GroupedScale::Channel(ChannelScale::BF16(scale)) => {
                    GroupedScale::Channel(ChannelScale::BF16(stage.read("weight_scale", scale)?))
                }
                GroupedScale::Bits(scale) => GroupedScale::Bits(stage.read("weight_scale", scale)?),
                GroupedScale::SignedBits(scale) => GroupedScale::SignedBits(stage.read("weight_scale", scale)?),
            },
            x_scale: stage.read("x_scale", &self.x_scale)?,
            group_list: stage.read("group_list", &self.group_list)?,
            weight_format: self.weight_format,
            group_list_type: self.group_list_type,
            arithmetic: self.arithmetic,
            fp16_rounding: self.fp16_rounding,
            output: stage.write("output", &self.output)?,
            output_scale: stage.write("output_scale", &self.output_scale)?,
            output_offset: stage.write_optional("output_offset", &self.output_offset)?,
        };
        stage.run(host, call)
    }
}
