//! One result for every form of the weights and their scales; weights of four bits by their own definition.

use crate::case::{Case, Layouts, Output, quantised};
use crate::common::{Random, bits, every_host};
use tilekern::kernels::pack::packed_bytes;
use tilekern::ops::*;
use tilekern::{Dims, Host, Tensor, TensorMut};
use tilekern_kernels::reference;

/// Two weights of four bits to a byte.
pub fn halves(w: &[i8]) -> Vec<u8> {
    w.as_chunks::<2>().0.iter().map(|[a, b]| (a & 15) as u8 | (*b as u8) << 4).collect()
}

fn case(random: &mut Random, [m, k, n, e]: [usize; 4], list: &[i64], weight: impl Fn(i8) -> i8) -> Case {
    let mut bytes = |count: usize| -> Vec<i8> { (0..count).map(|_| random.int8()).collect() };
    let (x, w) = (bytes(m * k), bytes(e * k * n).into_iter().map(weight).collect());
    let mut unit = |count: usize, by: f32| -> Vec<f32> { (0..count).map(|_| random.unit() * by).collect() };
    let (w_scale, x_scale, floats) = (unit(e * n, 0.02), unit(m, 0.02), unit(e * n, 1.0));
    let floats = Some(floats);
    Case { m, k, n, e, x, w, w_scale, x_scale, floats, list: list.to_vec(), arithmetic: 1, ..Case::default() }
}

/// `[E,K,N]` in stripes of `c0` columns.
pub fn stripes(case: &Case, c0: usize) -> Vec<i8> {
    let mut nz = vec![0; case.w.len()];
    for (at, &w) in case.w.iter().enumerate() {
        let (e, i, j) = (at / case.n / case.k, at / case.n % case.k, at % case.n);
        nz[e * case.k * case.n + j / c0 * (case.k * c0) + i * c0 + j % c0] = w;
    }
    nz
}

fn pack(weight: UnpackedWeight<'_, Host>, [e, k, n]: [usize; 3]) -> Vec<i8> {
    fn inner<'a>(weight: UnpackedWeight<'a, Host>, packed: &'a mut [i8]) {
        let bytes = packed.len();
        crate::common::run(&Host::new(), PackWeight::new(weight, TensorMut::new([bytes], packed).unwrap())).unwrap();
    }
    // The views of a call share one lifetime, so the weight is borrowed anew.
    let mut packed = vec![0; packed_bytes(e, k, n).unwrap()];
    match weight {
        UnpackedWeight::I8(view) => inner(UnpackedWeight::I8(view), &mut packed),
        UnpackedWeight::I4(view) => inner(UnpackedWeight::I4(view), &mut packed),
        _ => unreachable!("only integers here"),
    }
    packed
}

#[test]
fn grouped_matmul_layouts_give_one_result() {
    let mut case = case(&mut Random(71), [21, 48, 96, 3], &[4, 4, 19], |w| w);
    let [e, k, n] = [case.e, case.k, case.n];
    // Scales that every dtype holds.
    let half = |scale: f32| half::f16::from_f32(half::bf16::from_f32(scale).to_f32());
    let half_scale: Vec<half::f16> = case.w_scale.iter().map(|&scale| half(scale)).collect();
    case.w_scale = half_scale.iter().map(|scale| scale.to_f32()).collect();
    let brain_scale = case.w_scale.iter().map(|&scale| half::bf16::from_f32(scale)).collect();
    let transposed = (0..e * k * n).map(|at| case.w[(at / k / n * k + at % k) * n + at / k % n]).collect();
    let packed = pack(UnpackedWeight::I8(Tensor::new([e, k, n], &case.w).unwrap()), [e, k, n]);
    let layouts = Layouts { transposed, nz: stripes(&case, 32), packed, half_scale, brain_scale, ..Layouts::default() };
    let expected = case.expected();
    every_host(|host| {
        for layout in 0..6 {
            let (result, found) = case.run(
                host,
                |call, layouts| match layout {
                    1 => {
                        let strides = [k * n, 1, k];
                        call.weight = GroupedWeight::I8(Tensor::strided([e, k, n], strides, &layouts.transposed).unwrap());
                    }
                    2 => {
                        call.weight = GroupedWeight::I8(Tensor::new([e, n / 32, k / 16, 16, 32], &layouts.nz).unwrap());
                        call.weight_format = FORMAT_NZ;
                    }
                    3 => {
                        call.weight = GroupedWeight::I8(Tensor::new([layouts.packed.len()], &layouts.packed).unwrap());
                        call.weight_format = FORMAT_PACKED;
                    }
                    4 => {
                        let scale = Tensor::new([e, n], &layouts.half_scale).unwrap();
                        call.weight_scale = GroupedScale::Channel(ChannelScale::F16(scale));
                    }
                    5 => {
                        let scale = Tensor::new([e, n], &layouts.brain_scale).unwrap();
                        call.weight_scale = GroupedScale::Channel(ChannelScale::BF16(scale));
                    }
                    _ => {}
                },
                &layouts,
            );
            assert!(result == Ok(()) && found == expected, "{} layout {layout}", host.isa().name());
        }
    });
}

/// Weights of four bits, by the definition of their halves.
fn expected_of_halves(case: &Case, scales: &[f32], groups: usize) -> Output {
    let half16 = |v: f32| half::f16::from_f32(v).to_f32();
    let (half, size) = (case.n / 2, case.k / groups);
    let mut output = case.untouched();
    for (expert, row) in case.groups().into_iter().flat_map(|(e, first, end)| (first..end).map(move |row| (e, row))) {
        let part = |n: usize, of: fn(i8) -> i8| {
            (0..groups).fold(0.0, |total, g| {
                let term =
                    |k: usize| i32::from(of(case.x[row * case.k + k])) * i32::from(case.w[(expert * case.k + k) * case.n + n]);
                let sum: i32 = (g * size..(g + 1) * size).map(term).sum();
                half16(total + half16(sum as f32 * scales[(expert * groups + g) * case.n + n]))
            })
        };
        let c: Vec<f32> = (0..case.n)
            .map(|n| {
                let value = 16.0 * part(n, |x| x >> 4) + part(n, |x| (x & 15) - 8);
                (value + case.floats.as_ref().unwrap()[expert * case.n + n]) * case.x_scale[row]
            })
            .collect();
        let s: Vec<f32> = (0..half).map(|j| reference::swiglu(c[j], c[j + half])).collect();
        let (q, scale, _) = quantised(&s, 1, case.fp16, false);
        output.q[row * half..(row + 1) * half].copy_from_slice(&q);
        output.scale[row] = bits(scale);
    }
    output
}

#[test]
fn grouped_matmul_weights_of_four_bits() {
    let mut random = Random(72);
    for (k, groups) in [(64, 1), (128, 2), (192, 1), (192, 6), (96, 3), (160, 1), (40, 5), (400, 4)] {
        let mut case = case(&mut random, [9, k, 128, 3], &[2, 7, 7], |w| w >> 4);
        case.fp16 = groups == 2;
        let [e, n] = [case.e, case.n];
        let scales: Vec<f32> = (0..e * groups * n).map(|_| random.unit() * 0.02).collect();
        // The high word is nobody's.
        let scale_bits = scales.iter().map(|scale| u64::from(scale.to_bits()) | 1 << 46).collect();
        let plain = halves(&case.w);
        let packed = pack(UnpackedWeight::I4(Tensor::new([e, k, n / 2], &plain).unwrap()), [e, k, n]);
        let nz4: Vec<i8> = halves(&stripes(&case, 64)).into_iter().map(|b| b as i8).collect();
        let layouts = Layouts { halves: plain, packed, nz: nz4, scale_bits, ..Layouts::default() };
        let expected = expected_of_halves(&case, &scales, groups);
        every_host(|host| {
            for layout in 0..4 {
                if layout == 2 && k % 16 != 0 {
                    continue;
                }
                let (result, found) = case.run(
                    host,
                    |call, layouts| {
                        let shape =
                            if groups == 1 { Dims::contiguous(&[e, n]) } else { Dims::contiguous(&[e, groups, n]) }.unwrap();
                        call.weight_scale = match layout {
                            3 => {
                                GroupedScale::SignedBits(Tensor::with(shape, bytemuck::cast_slice(&layouts.scale_bits)).unwrap())
                            }
                            _ => GroupedScale::Bits(Tensor::with(shape, &layouts.scale_bits).unwrap()),
                        };
                        call.weight = match layout {
                            0 | 3 => GroupedWeight::I4(Tensor::new([e, k, n / 2], &layouts.halves).unwrap()),
                            1 => {
                                call.weight_format = FORMAT_PACKED;
                                GroupedWeight::I8(Tensor::new([layouts.packed.len()], &layouts.packed).unwrap())
                            }
                            _ => {
                                call.weight_format = FORMAT_NZ;
                                let bytes: &[u8] = bytemuck::cast_slice(&layouts.nz);
                                GroupedWeight::I4(Tensor::new([e, n / 64, k / 16, 16, 32], bytes).unwrap())
                            }
                        };
                    },
                    &layouts,
                );
                assert!(result == Ok(()) && found == expected, "{} K {k} in {groups}, layout {layout}", host.isa().name());
            }
        });
    }
}
