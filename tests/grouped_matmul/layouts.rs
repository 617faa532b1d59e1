//! One result for every form of the weights and their scales.

use crate::case::{Case, Layouts};
use crate::common::{Random, every_host};
use tilekern::kernels::pack::packed_bytes;
use tilekern::ops::*;
use tilekern::{Host, Tensor, TensorMut};

/// Two weights of four bits to a byte.
pub fn halves(w: &[i8]) -> Vec<u8> {
    w.as_chunks::<2>().0.iter().map(|[a, b]| (a & 15) as u8 | (*b as u8) << 4).collect()
}

pub fn case(random: &mut Random, [m, k, n, e]: [usize; 4], list: &[i64], weight: impl Fn(i8) -> i8) -> Case {
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

/// By PackWeight.
pub fn pack(weight: UnpackedWeight<'_, Host>, [e, k, n]: [usize; 3]) -> Vec<i8> {
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
