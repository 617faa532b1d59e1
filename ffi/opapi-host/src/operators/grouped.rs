//! GroupedMatmulSwigluQuant, both versions.

pub(crate) use super::weight::{Entry, describe};
use super::weight::{Kind, kind};
use crate::arguments::Arguments;
use crate::descriptor::contiguous;
use crate::executor::{Cpu, Job, Operator};
use crate::failure::Failure;
use crate::operand::{Dtype, Operand};
use bytemuck::Pod;
use tilekern::ops::{Bias, ChannelScale, FORMAT_ND, FORMAT_NZ, GroupedMatmulSwigluQuant, GroupedScale, GroupedWeight};
use tilekern::{Dims, Tensor, bf16, f16};
use tilekern_acl::operators::{GROUPED_MAX_K, GROUPED_MAX_N};
use tilekern_acl::*;

/// Every part of a workspace.
const ALIGN: usize = 64;

/// Which of the two, and what `dequantMode` says of the second: whether scales are those of groups of K.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two { groups: bool },
}

/// A call.
pub(crate) struct Grouped {
    kind: Kind,
    v2: bool,
    /// What the matrix that int4 weights need is called.
    assist: &'static str,
    group_list_type: i32,
    /// Nothing to compute.
    empty: bool,
}

impl Grouped {
    /// Checks what the device limits, and describes the weights as the host takes them.
    pub fn new(a: &mut Arguments, entry: Entry, version: Version, group_list_type: i64) -> Result<Grouped, Failure> {
        a.get("weight")?.dtype(&[ACL_INT8, ACL_INT4, ACL_INT32])?;
        let kind = kind(a.get("weight")?, entry);
        let (v2, groups) = (version != Version::One, usize::from(version == Version::Two { groups: true }));
        let assist = if v2 { "weight_assist_matrix" } else { "bias" };
        if kind.four {
            a.get(assist)?;
        }
        let reserved = ["bias", "weight_assist_matrix", "offset", "smooth_scale", "output_offset"];
        let mut given = reserved.into_iter().filter(|&name| name != assist || !kind.four).filter_map(|name| a.find(name));
        if let Some(given) = given.next() {
            return Err(given.wrong("none: it is reserved", "a tensor"));
        }
        a.get("x")?.rank(2)?;
        let (members, dtype) = (a.members("weight").len(), a.get("weight")?.spec.dtype);
        // A list has one tensor for all experts, or one for each.
        let all = !v2 || (members == 1 && a.get("weight")?.spec.dims.len() % 2 == 1);
        a.relabel("weight", |weight| {
            weight.dtype(&[dtype])?;
            describe(weight, entry, all)
        })?;
        if members == 1 && !all {
            for (name, most) in [("weight", usize::MAX), ("weight_scale", 1 + groups), (assist, 1)] {
                a.relabel(name, |member| only_expert(member, most))?;
            }
        }
        let (x, list) = (a.get("x")?, a.get("group_list")?);
        list.rank(1)?;
        let scale = a.get("weight_scale")?;
        // Of a list of several the members have no dimension of experts.
        let rank = 2 + groups - usize::from(members > 1);
        if v2 && kind.four && scale.spec.dims.len() != rank {
            return Err(scale.wrong(&format!("a rank of {rank}, as dequantMode has it"), &scale.spec.dims));
        }
        let n = *scale.spec.dims.last().ok_or_else(|| scale.wrong("a rank of 2", 0))?;
        if n > GROUPED_MAX_N as i64 {
            return Err(scale.wrong(&format!("at most {GROUPED_MAX_N} columns"), n));
        }
        let k = x.spec.dims[1];
        let most = GROUPED_MAX_K[usize::from(kind.four)];
        if k > most as i64 {
            return Err(x.wrong(&format!("at most {most} columns"), k));
        }
        let empty = x.spec.dims[0] == 0 || list.spec.dims == [0];
        let group_list_type =
            i32::try_from(group_list_type).map_err(|_| Failure::invalid(format!("groupListType: {group_list_type}")))?;
        Ok(Grouped { kind, v2, assist, group_list_type, empty })
    }

    /// The host's call, where the members of lists have been put together in `room`; its size before there is one.
    fn call(&self, a: &Arguments, job: Job<'_>) -> Result<(), Failure> {
        let parts = self.parts(a)?;
        let room = parts.last().map_or(0, |part| part.end);
        match job {
            Job::Query(bytes) => {
                self.with(a, &mut Room { parts, bytes: None }, Job::Query(bytes))?;
                *bytes = if self.empty { 0 } else { *bytes + room };
                Ok(())
            }
            Job::Run(_) if self.empty => Ok(()),
            Job::Run(scratch) => {
                let (room, scratch) = scratch.split_at_mut(room);
                self.with(a, &mut Room { parts, bytes: Some(room) }, Job::Run(scratch))
            }
        }
    }

    /// The lists that have to be put together.
    fn parts(&self, a: &Arguments) -> Result<Vec<Part>, Failure> {
        let mut parts = Vec::<Part>::new();
        for name in ["weight", "weight_scale", self.assist] {
            let members = a.members(name);
            if members.len() < 2 {
                continue;
            }
            let start = parts.last().map_or(0, |part| part.end);
            let mut end = start;
            for member in &members {
                if member.spec.dims != members[0].spec.dims || member.spec.dtype != members[0].spec.dtype {
                    return Err(member.wrong("members that are alike", &member.spec.dims));
                }
                if member.spec.strides != contiguous(&member.spec.dims) {
                    return Err(member.wrong("contiguous members", &member.spec.strides));
                }
                end += member.bytes()?.len();
            }
            parts.push(Part { name, start, end: end.next_multiple_of(ALIGN) });
        }
        Ok(parts)
    }

    fn with(&self, a: &Arguments, room: &mut Room<'_>, job: Job<'_>) -> Result<(), Failure> {
        let weight = match self.kind.four {
            false => GroupedWeight::I8(room.view(a, "weight")?),
            true => GroupedWeight::I4(room.view(a, "weight")?),
        };
        let scale = a.get("weight_scale")?;
        let weight_scale = match (self.kind.four, scale.spec.dtype) {
            (true, ACL_UINT64) => GroupedScale::Bits(room.view(a, "weight_scale")?),
            (true, ACL_INT64) => GroupedScale::SignedBits(room.view(a, "weight_scale")?),
            (true, found) => return Err(scale.wrong("UINT64 or INT64 for int4 weights", found.0)),
            (false, ACL_FLOAT) => GroupedScale::Channel(ChannelScale::F32(room.view(a, "weight_scale")?)),
            (false, ACL_FLOAT16) => GroupedScale::Channel(ChannelScale::F16(room.view::<f16>(a, "weight_scale")?)),
            (false, ACL_BF16) => GroupedScale::Channel(ChannelScale::BF16(room.view::<bf16>(a, "weight_scale")?)),
            (false, found) => return Err(scale.wrong("FLOAT, FLOAT16 or BF16 for int8 weights", found.0)),
        };
        let mut call = GroupedMatmulSwigluQuant::<'_, Cpu>::new(
            a.get("x")?.view()?,
            weight,
            weight_scale,
            a.get("x_scale")?.view()?,
            a.get("group_list")?.view()?,
            a.get("output")?.view_mut()?,
            a.get("output_scale")?.view_mut()?,
        );
        if self.kind.four {
            call.bias = Some(Bias::F32(room.view(a, self.assist)?));
        }
        call.weight_format = if self.kind.blocks { FORMAT_NZ } else { FORMAT_ND };
        call.group_list_type = self.group_list_type;
        // The second version of the device has an arithmetic of its own for int8 weights alone.
        call.arithmetic = if self.v2 && !self.kind.four { 2 } else { 1 };
        call.fp16_rounding = true;
        job.answer(call)
    }
}

/// The member of a list of one, with a dimension before its own unless it has more than `most` of them.
fn only_expert(member: &mut Operand, most: usize) -> Result<(), Failure> {
    if member.spec.dims.len() <= most {
        member.spec.dims.insert(0, 1);
        member.spec.strides.insert(0, 0);
    }
    Ok(())
}

impl Operator for Grouped {
    fn is_repeatable(&self) -> bool {
        false
    }

    fn answer(&self, a: &Arguments, job: Job<'_>) -> Result<(), Failure> {
        self.call(a, job)
    }
}

/// Where the members of a list lie, one behind the other.
struct Part {
    name: &'static str,
    start: usize,
    end: usize,
}

/// The first part of a workspace; none before there is one.
struct Room<'a> {
    parts: Vec<Part>,
    bytes: Option<&'a mut [u8]>,
}

impl<'a> Room<'a> {
    /// The tensor of a parameter; the members of a list as one, with a dimension before theirs.
    fn view<'v, T: Dtype + Pod>(&mut self, a: &'v Arguments, name: &'static str) -> Result<Tensor<'v, T>, Failure>
    where
        'a: 'v,
    {
        let first = a.get(name)?;
        let Some(part) = self.parts.iter().find(|part| part.name == name) else { return first.view() };
        let members = a.members(name);
        first.dtype(&[T::CODE])?;
        let mut shape = vec![members.len()];
        shape.extend(first.sizes()?.0);
        let dims = Dims::contiguous(&shape)?;
        let Some(bytes) = self.bytes.take() else { return Ok(Tensor::shape_only(dims)) };
        // Parts are taken in order, so this one is at the front.
        let (own, rest) = bytes.split_at_mut(part.end - part.start);
        self.bytes = Some(rest);
        let size = first.bytes()?.len();
        for (member, to) in members.iter().zip(own.chunks_exact_mut(size.max(1))) {
            member.read(to)?;
        }
        Ok(Tensor::with(dims, &bytemuck::cast_slice(own)[..dims.elements()])?)
    }
}
