//! `aclnnGroupedMatmulSwigluQuant` for `arithmetic` 1, its V2 for 2; the entries for blocks (NZ) where weights lie in them.
//!
//! int8 weights must lie in blocks, as V1 and V2 demand. An entry for blocks that a CANN lacks is the same function as the plain
//! one with a description of blocks; vllm-ascend's V2 entry for blocks takes every weight for four bits, so there the plain one is
//! called, too.
//!
//! V1's phase one has globals that the first call with a bias sets for good: after weights of four bits those of eight would be
//! computed otherwise. So it is called under a lock, and a process stays with the first kind of weights that it used, but on the
//! host's library.

use super::description::{Description, Descriptor};
use super::executor::{Job, Prepared, phases};
use super::{Ascend, Dispatch, supports};
use crate::error::Error;
use crate::ops::{Bias, ChannelScale, FORMAT_NZ, FORMAT_PACKED, GroupedMatmulSwigluQuant, GroupedScale, GroupedWeight};
use crate::tensor::Describe;
use tilekern_acl::lock::Lock;
use tilekern_acl::operators::{GROUPED_MAX_K, GROUPED_MAX_N};
use tilekern_acl::table::{Grouped, GroupedV1, GroupedV2, Operator};

/// Whether V1 was called with weights of four bits in this process; none where it was not called.
static FOUR: Lock<Option<bool>> = Lock::new(None);

type Call<'a, 't> = GroupedMatmulSwigluQuant<'a, Ascend<'t>>;

impl<'t> Dispatch<GroupedMatmulSwigluQuant<'_, Self>> for Ascend<'t> {
    fn dispatch(&self, call: &Call<'_, 't>, job: Job<'_>) -> Result<(), Error> {
        let sizes = call.check(job.runs())?;
        let four = matches!(call.weight, GroupedWeight::I4(_));
        supports("weight_scale", sizes.n <= GROUPED_MAX_N, "at most 10 240 columns on the NPU", sizes.n)?;
        let at_most = if four { "at most 19 999 columns on the NPU" } else { "at most 65 535 columns on the NPU" };
        supports("x", sizes.k <= GROUPED_MAX_K[usize::from(four)], at_most, sizes.k)?;
        supports("weight_format", call.weight_format != FORMAT_PACKED, "2 or 29 on the NPU", i64::from(call.weight_format))?;
        let blocks = call.weight_format == FORMAT_NZ;
        supports("weight_format", four || blocks, "29 for int8 weights on the NPU", i64::from(call.weight_format))?;
        supports("bias", four || call.bias.is_none(), "none for int8 weights on the NPU", "a tensor")?;
        supports("offset", call.offset.is_none(), "none on the NPU", "a tensor")?;
        supports("output_offset", call.output_offset.is_none(), "none on the NPU", "a tensor")?;
        if call.arithmetic == 1 {
            supports("fp16_rounding", call.fp16_rounding, "true with arithmetic 1 on the NPU, which rounds so", "false")?;
            supports("group_list_type", call.group_list_type == 0, "0 with arithmetic 1 on the NPU", "1")?;
        }
        if sizes.m == 0 || call.group_list.dims().elements() == 0 {
            return Ok(());
        }
        if call.arithmetic == 1 { job.finish(self.v1(call, four)?) } else { job.finish(self.v2(call)?) }
    }
}

impl<'t> Ascend<'t> {
    fn v1(&self, call: &Call<'_, 't>, four: bool) -> Result<Prepared<'t, 8>, Error> {
        let operators = &self.table.operators;
        let (nz, nd) = (operators.aclnnGroupedMatmulSwigluQuantWeightNZ, operators.aclnnGroupedMatmulSwigluQuant);
        let (phases, operator) = match nz.filter(|_| call.weight_format == FORMAT_NZ) {
            Some(operator) => (phases!(aclnnGroupedMatmulSwigluQuantWeightNZ), operator),
            None => (phases!(aclnnGroupedMatmulSwigluQuant), self.operator("aclnnGroupedMatmulSwigluQuant", nd)?),
        };
        let bias = match &call.bias {
            Some(Bias::F32(bias)) => Some(self.describe::<f32>("bias", bias)?),
            _ => None,
        };
        // Phase one may alter descriptions: they are made anew for each call.
        let [x, x_scale, groups, output, output_scale] = self.common(call)?;
        let descriptors = [
            x,
            self.tensor(self.weight(call)?)?,
            self.optional(bias)?,
            self.tensor(self.weight_scale(call)?)?,
            x_scale,
            groups,
            output,
            output_scale,
        ];
        FOUR.with(|first| {
            if !self.table.is_host() {
                let same = *first.get_or_insert(four) == four;
                supports("weight", same, "one kind of weights in a process on the NPU", "int8 beside int4")?;
            }
            // SAFETY: phase one of the operator, as its prototype has it; a limit of 0 is none.
            unsafe {
                self.prepare(phases, operator.run, descriptors, |d, bytes, executor| {
                    let [x, weight, bias, scale, x_scale, groups, out, out_scale] = d.each_ref().map(|d| d.tensor());
                    let none = core::ptr::null_mut();
                    match operator.workspace {
                        GroupedV1::Official(workspace) => {
                            workspace(x, weight, bias, none, scale, x_scale, groups, out, out_scale, none, bytes, executor)
                        }
                        GroupedV1::Limited(workspace) => {
                            workspace(x, weight, bias, none, scale, x_scale, groups, 0.0, out, out_scale, none, bytes, executor)
                        }
                    }
                })
            }
        })
    }

    fn v2(&self, call: &Call<'_, 't>) -> Result<Prepared<'t, 7>, Error> {
        let operators = &self.table.operators;
        let nz = operators.aclnnGroupedMatmulSwigluQuantWeightNzV2;
        let nz = nz.filter(|operator| matches!(operator.workspace, Grouped::Official(_)));
        let (phases, operator): (_, Operator<GroupedV2>) = match nz {
            Some(operator) => (phases!(aclnnGroupedMatmulSwigluQuantWeightNzV2), operator),
            None => (
                phases!(aclnnGroupedMatmulSwigluQuantV2),
                self.operator("aclnnGroupedMatmulSwigluQuantV2", operators.aclnnGroupedMatmulSwigluQuantV2)?,
            ),
        };
        let single = matches!(call.weight_scale, GroupedScale::Channel(ChannelScale::F32(_)));
        let official = matches!(operator.workspace, Grouped::Official(_));
        supports("weight_scale", official || single, "f32 in a package beside CANN", "f16 or bf16")?;
        let [x, x_scale, groups, output, output_scale] = self.common(call)?;
        let descriptors =
            [x, self.list(self.weight(call)?)?, self.list(self.weight_scale(call)?)?, x_scale, groups, output, output_scale];
        let kind = i64::from(call.group_list_type);
        FOUR.with(|_| {
            // SAFETY: phase one of the operator, as its prototype has it; a limit of 0 is none.
            unsafe {
                self.prepare(phases, operator.run, descriptors, |d, bytes, executor| {
                    let [x, weight, scale, x_scale, groups, out, out_scale] = d;
                    let (weight, scale) = (weight.list(), scale.list());
                    let [x, x_scale, groups, out, out_scale] = [x, x_scale, groups, out, out_scale].map(|d| d.tensor());
                    let (list, none, tuning) = (core::ptr::null(), core::ptr::null(), core::ptr::null());
                    match operator.workspace {
                        Grouped::Official(workspace) => workspace(
                            x, weight, scale, list, none, x_scale, none, groups, 0, 0, 0, kind, tuning, out, out_scale, bytes,
                            executor,
                        ),
                        Grouped::Limited(workspace) => workspace(
                            x, weight, scale, list, none, x_scale, none, groups, 0, 0, 0, kind, tuning, 0.0, out, out_scale,
                            bytes, executor,
                        ),
                    }
                })
            }
        })
    }

    /// `x`, `x_scale`, `group_list`, `output`, `output_scale`.
    fn common(&self, call: &Call<'_, 't>) -> Result<[Descriptor<'t>; 5], Error> {
        Ok([
            self.tensor(self.describe::<i8>("x", &call.x)?)?,
            self.tensor(self.describe::<f32>("x_scale", &call.x_scale)?)?,
            self.tensor(self.describe::<i64>("group_list", &call.group_list)?)?,
            self.tensor(self.describe::<i8>("output", &call.output)?)?,
            self.tensor(self.describe::<f32>("output_scale", &call.output_scale)?)?,
        ])
    }

    fn weight(&self, call: &Call<'_, 't>) -> Result<Description, Error> {
        let description = match &call.weight {
            GroupedWeight::I8(weight) => self.describe::<i8>("weight", weight)?,
            GroupedWeight::I4(weight) => {
                let (len, stride) = weight.dims().last();
                supports("weight", len <= 1 || stride == 1, "bytes of a row side by side on the NPU", "a stride between them")?;
                self.describe::<u8>("weight", weight)?.four_bits()
            }
        };
        if call.weight_format == FORMAT_NZ { description.blocks("weight") } else { Ok(description) }
    }

    fn weight_scale(&self, call: &Call<'_, 't>) -> Result<Description, Error> {
        let name = "weight_scale";
        match &call.weight_scale {
            GroupedScale::Channel(ChannelScale::F32(scale)) => self.describe::<f32>(name, scale),
            GroupedScale::Channel(ChannelScale::F16(scale)) => self.describe::<half::f16>(name, scale),
            GroupedScale::Channel(ChannelScale::BF16(scale)) => self.describe::<half::bf16>(name, scale),
            GroupedScale::Bits(scale) => self.describe::<u64>(name, scale),
            GroupedScale::SignedBits(scale) => self.describe::<i64>(name, scale),
        }
    }
}
