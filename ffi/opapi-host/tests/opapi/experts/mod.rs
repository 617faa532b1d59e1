//! GroupedMatmulSwigluQuant in all its forms against the host called directly.

mod contents;
mod first;
mod second;

use crate::common::{acl, message};
use crate::device::{Buffer, Open, Plain, Tensor, View, run};
use crate::layout::{Laid, Random};
use tilekern::ops::{Bias, ChannelScale, GroupedMatmulSwigluQuant, GroupedScale, GroupedWeight};
use tilekern::{Host, Run, Scratch, Tensor as HostTensor, bf16, f16};
use tilekern_acl::*;

/// One case: sizes, activations and groups. Outputs begin full of something.
struct Case {
    sizes: [usize; 4],
    x: Laid<i8>,
    x_scale: Laid<f32>,
    list: Laid<i64>,
    output: Laid<i8>,
    output_scale: Laid<f32>,
}

impl Case {
    fn new(random: &mut Random, counts: bool) -> Case {
        let [m, k, n, e] = [1 + random.below(40), 16 * (1 + random.below(5)), 64 * (1 + random.below(3)), 1 + random.below(4)];
        let mut ends = random.many(e, |r| r.below(m + 1) as i64);
        ends.sort_unstable();
        if counts {
            for i in (1..e).rev() {
                ends[i] -= ends[i - 1];
            }
        }
        let values = random.many(m * k, |r| r.next() as i8);
        let scales = random.many(m, |r| r.float(0.01).abs() + 1e-4);
        let mut any = || random.below(4);
        Case {
            sizes: [m, k, n, e],
            x: Laid::new(&[m, k], &values, 1, any()),
            x_scale: Laid::new(&[m], &scales, 1.0, any()),
            list: Laid::new(&[e], &ends, -9, any()),
            output: Laid::new(&[m, n / 2], &vec![99; m * n / 2], 99, any()),
            output_scale: Laid::new(&[m], &vec![9.0; m], 9.0, any()),
        }
    }

    /// The device's answer through `begin`, then the host's.
    fn compare(
        mut self,
        open: &Open,
        name: &str,
        begin: impl FnOnce([*mut aclTensor; 5], *mut u64, *mut *mut aclOpExecutor) -> i32,
        weights: Weights<'_>,
    ) {
        let (x, x_scale, list) = (self.x.device(), self.x_scale.device(), self.list.device());
        let (output, output_scale) = (self.output.device(), self.output_scale.device());
        let handles = [&x.1, &x_scale.1, &list.1, &output.1, &output_scale.1].map(|tensor| tensor.0);
        assert_eq!(run(open, name, |s, e| begin(handles, s, e)), 0, "{}", message());
        let [_, k, n, e] = self.sizes;
        let weight = match weights.weight {
            Weight::Eight(values) => GroupedWeight::I8(HostTensor::new([e, k, n], values).unwrap()),
            Weight::Four(bytes) => GroupedWeight::I4(HostTensor::new([e, k, n / 2], bytes).unwrap()),
        };
        let scale = match weights.scale {
            Scale::F32(scale) => GroupedScale::Channel(ChannelScale::F32(scale.host())),
            Scale::F16(scale) => GroupedScale::Channel(ChannelScale::F16(scale.host())),
            Scale::BF16(scale) => GroupedScale::Channel(ChannelScale::BF16(scale.host())),
            Scale::Bits(scale) => GroupedScale::Bits(scale.host()),
        };
        let (to, to_scale) = (self.output.host_mut(), self.output_scale.host_mut());
        let (x, x_scale, list) = (self.x.host(), self.x_scale.host(), self.list.host());
        let mut call = GroupedMatmulSwigluQuant::new(x, weight, scale, x_scale, list, to, to_scale);
        call.bias = weights.assist.map(|assist| Bias::F32(assist.host()));
        (call.fp16_rounding, call.arithmetic, call.group_list_type) = (true, weights.arithmetic, weights.list_type);
        let host = Host::new();
        let mut scratch = Scratch::new(host.workspace(&call).unwrap());
        host.run(call, &mut scratch).unwrap();
        assert!(self.output.equals(&output.0) && self.output_scale.equals(&output_scale.0), "{name} {:?}", self.sizes);
    }
}

/// What the host is called with.
struct Weights<'a> {
    weight: Weight<'a>,
    scale: Scale<'a>,
    assist: Option<&'a Laid<f32>>,
    arithmetic: i32,
    list_type: i32,
}

enum Weight<'a> {
    Eight(&'a [i8]),
    Four(&'a [u8]),
}

enum Scale<'a> {
    F32(&'a Laid<f32>),
    F16(&'a Laid<f16>),
    BF16(&'a Laid<bf16>),
    Bits(&'a Laid<u64>),
}

/// Weights `[e,k,n]` in blocks of 16 rows by `width` columns.
fn in_blocks<T: Copy>([_, k, n, e]: [usize; 4], plain: &[T], width: usize) -> Vec<T> {
    let mut blocks = plain.to_vec();
    for expert in 0..e {
        for row in 0..k {
            for column in 0..n {
                let at = expert * k * n + column / width * width * k + row * width + column % width;
                blocks[at] = plain[(expert * k + row) * n + column];
            }
        }
    }
    blocks
}

/// Two int4 to a byte, the low half first.
fn packed(values: &[i8]) -> Vec<u8> {
    values.chunks_exact(2).map(|pair| (pair[0] & 15) as u8 | (pair[1] << 4) as u8).collect()
}

fn sizes<const R: usize>(of: [usize; R]) -> [i64; R] {
    of.map(|n| n as i64)
}

/// A weight in blocks: five dimensions, or three with a storage of five.
fn weight_view([_, k, n, e]: [usize; 4], plain: bool, format: aclFormat) -> View {
    let storage = sizes([e, n / 32, k / 16, 16, 32]);
    let view = View::contiguous(&if plain { sizes([e, k, n]).to_vec() } else { storage.to_vec() }, ACL_INT8);
    View { format, storage: storage.to_vec(), ..view }
}

fn channel_scales<T: Plain>(random: &mut Random, [_, _, n, e]: [usize; 4], of: impl Fn(f32) -> T) -> Laid<T> {
    let values = random.many(e * n, |r| of(r.float(0.01).abs() + 1e-4));
    Laid::new(&[e, n], &values, of(1.0), random.below(4))
}
