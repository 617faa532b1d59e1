//! Weights of four bits by their own definition.

use crate::case::{Case, Layouts, Output, quantised};
use crate::common::{Random, bits, every_host};
use crate::forms::Form;
use crate::layouts::{case, halves, pack, stripes};
use tilekern::ops::*;
use tilekern::{Dims, Tensor};
use tilekern_kernels::reference;

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

/// A column whose scaled sums are beyond half precision: infinities, and no numbers where two of different signs meet; beside them finite
/// rows.
#[test]
fn grouped_matmul_scales_of_four_bits_that_overflow() {
    let (mut random, groups, column) = (Random(73), 3, 5);
    let mut case = case(&mut random, [12, 96, 128, 2], &[7, 12], |w| w >> 4);
    let [e, k, n] = [case.e, case.k, case.n];
    (0..k).for_each(|at| case.w[at * n + column] = 7);
    // Both halves 0, and both positive.
    case.x[..k].fill(8);
    case.x[k..2 * k].fill(0x6C);
    // Beyond half precision after the product, and beyond f32.
    for largest in [1e5, 3e38] {
        let mut scales: Vec<f32> = (0..e * groups * n).map(|_| random.unit() * 0.02).collect();
        (0..groups).for_each(|group| scales[group * n + column] = largest);
        let scale_bits: Vec<u64> = scales.iter().map(|scale| u64::from(scale.to_bits())).collect();
        let expected = expected_of_halves(&case, &scales, groups);
        let has = |kind: fn(f32) -> bool| expected.scale.iter().any(|&scale| kind(f32::from_bits(scale)));
        assert!(has(f32::is_finite) && has(f32::is_infinite) && has(f32::is_nan), "{:?}", expected.scale);
        for form in [Form::Plain, Form::Blocks, Form::Packed] {
            let layouts = Layouts { scale_bits: scale_bits.clone(), ..form.of_halves(&case) };
            every_host(|host| {
                let (result, found) = case.run(
                    host,
                    |call, layouts| {
                        form.set(call, layouts, &case);
                        call.weight_scale = GroupedScale::Bits(Tensor::new([e, groups, n], &layouts.scale_bits).unwrap());
                    },
                    &layouts,
                );
                assert!(result == Ok(()) && found == expected, "{} {form:?} {largest}", host.isa().name());
            });
        }
    }
}
