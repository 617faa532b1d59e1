//! A call with its tensors, and what it must give.

use crate::common::{Random, bits};
use tilekern::ops::{Bias, ChannelScale, GroupedMatmulSwigluQuant, GroupedScale, GroupedWeight};
use tilekern::{Error, Host, ParallelFor, Tensor, TensorMut};
use tilekern_kernels::reference;

/// Attributes and tensors of a call on weights of eight bits.
#[derive(Clone, Default)]
pub struct Case {
    pub m: usize,
    pub k: usize,
    pub n: usize,
    pub e: usize,
    pub x: Vec<i8>,
    pub w: Vec<i8>,
    pub w_scale: Vec<f32>,
    pub x_scale: Vec<f32>,
    pub list: Vec<i64>,
    pub counts: bool,
    pub arithmetic: i32,
    pub fp16: bool,
    pub asymmetric: bool,
    pub integers: Option<Vec<i32>>,
    pub floats: Option<Vec<f32>>,
    pub offset: Option<Vec<f32>>,
}

/// What a call wrote; rows that it must not write keep these.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    pub q: Vec<i8>,
    pub scale: Vec<u32>,
    pub offset: Vec<u32>,
}

pub const UNTOUCHED: (i8, f32) = (85, -7.5);

impl Case {
    /// Any mode, any sizes up to a few tiles.
    pub fn random(random: &mut Random) -> Case {
        let pick = |random: &mut Random, sizes: &[usize]| sizes[random.below(sizes.len())];
        let (m, e) = (random.below(40), 1 + random.below(6));
        let (k, n) = (pick(random, &[1, 3, 16, 63, 64, 65, 130, 200]), 2 * pick(random, &[1, 3, 8, 16, 17, 32, 50, 100]));
        let mut ends: Vec<i64> = (0..1 + random.below(e)).map(|_| random.below(m + 1) as i64).collect();
        ends.sort_unstable();
        let counts = random.below(2) == 1;
        let list = if counts { (0..ends.len()).map(|i| ends[i] - if i > 0 { ends[i - 1] } else { 0 }).collect() } else { ends };
        let mut unit = |count: usize, by: f32| -> Vec<f32> { (0..count).map(|_| random.unit() * by).collect() };
        let (w_scale, x_scale) = (unit(e * n, 0.02), unit(m, 0.05));
        let (floats, offset) = (unit(e * n, 1.0), unit(e * n, 1.0));
        let mut bytes = |count: usize| -> Vec<i8> { (0..count).map(|_| random.int8()).collect() };
        let (x, w) = (bytes(m * k), bytes(e * k * n));
        let integers = (0..e * n).map(|_| random.bits() as i32 >> random.below(20)).collect();
        let mode = random.below(3);
        let asymmetric = random.below(3) == 0;
        Case {
            m,
            k,
            n,
            e,
            x,
            w,
            w_scale,
            x_scale,
            list,
            counts,
            arithmetic: 1 + random.below(2) as i32,
            fp16: !asymmetric && random.below(2) == 1,
            asymmetric,
            integers: (mode == 1).then_some(integers),
            floats: (mode == 2).then_some(floats),
            offset: (random.below(3) == 0).then_some(offset),
        }
    }

    /// The groups that have rows: expert, first row, end.
    pub fn groups(&self) -> Vec<(usize, usize, usize)> {
        let mut after = 0;
        let mut groups = vec![];
        for (expert, &value) in self.list.iter().enumerate() {
            let end = if self.counts { after + value as usize } else { value as usize };
            groups.push((expert, after, end));
            after = end;
        }
        groups
    }

    /// The dequantised row, by the formula.
    pub fn row(&self, expert: usize, row: usize) -> Vec<f32> {
        let column = |n: usize| {
            let weight = |k: usize| i64::from(self.w[(expert * self.k + k) * self.n + n]);
            let sum: i64 = (0..self.k).map(|k| i64::from(self.x[row * self.k + k]) * weight(k)).sum();
            let at = expert * self.n + n;
            let c = (sum + self.integers.as_ref().map_or(0, |bias| i64::from(bias[at]))) as f32;
            let scales = [self.x_scale[row], self.w_scale[at]];
            let c = if self.arithmetic == 2 { c * scales[1] * scales[0] } else { c * scales[0] * scales[1] };
            let c = self.floats.as_ref().map_or(c, |bias| c + bias[at]);
            self.offset.as_ref().map_or(c, |offset| c + offset[at])
        };
        (0..self.n).map(column).collect()
    }

    /// By the scalar definitions.
    pub fn expected(&self) -> Output {
        let half = self.n / 2;
        let mut output = self.untouched();
        for (expert, first, end) in self.groups() {
            for row in first..end {
                let c = self.row(expert, row);
                let s: Vec<f32> = (0..half).map(|j| reference::swiglu(c[j], c[j + half])).collect();
                let (q, scale, offset) = quantised(&s, self.arithmetic, self.fp16, self.asymmetric);
                output.q[row * half..(row + 1) * half].copy_from_slice(&q);
                output.scale[row] = bits(scale);
                if self.asymmetric {
                    output.offset[row] = bits(offset);
                }
            }
        }
        output
    }

    pub fn untouched(&self) -> Output {
        let row = vec![bits(UNTOUCHED.1); self.m];
        Output { q: vec![UNTOUCHED.0; self.m * self.n / 2], scale: row.clone(), offset: row }
    }

    /// Runs with the plain weight, or with what `change` makes of the call.
    pub fn run<P: ParallelFor>(
        &self,
        host: &Host<P>,
        change: impl for<'a> FnOnce(&mut GroupedMatmulSwigluQuant<'a, Host<P>>, &'a Layouts),
        layouts: &Layouts,
    ) -> (Result<(), Error>, Output) {
        let (m, half) = (self.m, self.n / 2);
        let (mut q, mut scale, mut offset) = (vec![UNTOUCHED.0; m * half], vec![UNTOUCHED.1; m], vec![UNTOUCHED.1; m]);
        let channels = [self.e, self.n];
        let mut call = GroupedMatmulSwigluQuant::new(
            Tensor::new([m, self.k], &self.x).unwrap(),
            GroupedWeight::I8(Tensor::new([self.e, self.k, self.n], &self.w).unwrap()),
            GroupedScale::Channel(ChannelScale::F32(Tensor::new(channels, &self.w_scale).unwrap())),
            Tensor::new([m], &self.x_scale).unwrap(),
            Tensor::new([self.list.len()], &self.list).unwrap(),
            TensorMut::new([m, half], &mut q).unwrap(),
            TensorMut::new([m], &mut scale).unwrap(),
        );
        call.group_list_type = self.counts.into();
        (call.arithmetic, call.fp16_rounding) = (self.arithmetic, self.fp16);
        let floats = self.floats.as_ref().map(|bias| Bias::F32(Tensor::new(channels, bias).unwrap()));
        call.bias = self.integers.as_ref().map(|bias| Bias::I32(Tensor::new(channels, bias).unwrap())).or(floats);
        call.offset = self.offset.as_ref().map(|offset| Tensor::new(channels, offset).unwrap());
        if self.asymmetric {
            call.output_offset = Some(TensorMut::new([m], &mut offset).unwrap());
        }
        change(&mut call, layouts);
        let result = crate::common::run(host, call);
        let all = |v: Vec<f32>| v.into_iter().map(bits).collect();
        (result, Output { q, scale: all(scale), offset: all(offset) })
    }
}

/// The weight in other forms, made once.
#[derive(Default)]
pub struct Layouts {
    pub transposed: Vec<i8>,
    pub nz: Vec<i8>,
    pub packed: Vec<i8>,
    pub halves: Vec<u8>,
    pub scale_bits: Vec<u64>,
    pub half_scale: Vec<half::f16>,
    pub brain_scale: Vec<half::bf16>,
}

/// The four quantisers, number by number.
pub fn quantised(s: &[f32], arithmetic: i32, fp16: bool, asymmetric: bool) -> (Vec<i8>, f32, f32) {
    let usable = |scale: f32| scale > 2f32.powi(-128) && scale < f32::INFINITY;
    let byte = |v: f32| v.round_ties_even().clamp(-128.0, 127.0) as i8;
    let amax = s.iter().fold(0.0f32, |top, v| if v.is_nan() || top.is_nan() { f32::NAN } else { top.max(v.abs()) });
    if asymmetric {
        let (high, low) = s.iter().fold((f32::NEG_INFINITY, f32::INFINITY), |(high, low), &v| (high.max(v), low.min(v)));
        let scale = if amax.is_finite() { (high - low) / 255.0 } else { amax };
        return if !scale.is_finite() {
            (vec![0; s.len()], scale, 0.0)
        } else if !usable(scale) {
            (s.iter().map(|v| if amax == 0.0 { 0 } else { byte(v / amax) }).collect(), amax, 0.0)
        } else {
            let offset = -128.0 - (low / scale).round_ties_even();
            (s.iter().map(|v| byte(v / scale + offset)).collect(), scale, offset)
        };
    }
    let scale = if arithmetic == 2 { amax * (1.0 / 127.0) } else { amax / 127.0 };
    let q = s.iter().map(|&v| match (usable(scale), arithmetic, fp16) {
        (false, ..) => 0,
        (true, 2, _) => byte(v / scale),
        (true, _, false) => byte(v * (1.0 / scale)),
        (true, _, true) => byte(half::f16::from_f32(v * (1.0 / scale)).to_f32()),
    });
    (q.collect(), scale, 0.0)
}
