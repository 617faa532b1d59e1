//! QuantMatmul against exact `i64` arithmetic, on every instruction set.

use crate::common::{Random, bits, hosts, run};
use tilekern::kernels::pack::{pack_i8, packed_bytes};
use tilekern::ops::{Bias, ChannelScale, FORMAT_ND, FORMAT_NZ, FORMAT_PACKED, Product, QuantMatmul};
use tilekern::{Error, Host, Status, Tensor, TensorMut};

mod forms;
mod longest;

struct Case {
    m: usize,
    k: usize,
    n: usize,
    x: Vec<i8>,
    w: Vec<i8>,
    packed: Vec<i8>,
}

impl Case {
    fn new(random: &mut Random, m: usize, k: usize, n: usize) -> Case {
        let x = (0..m * k).map(|_| random.int8()).collect();
        let w: Vec<i8> = (0..k * n).map(|_| random.int8()).collect();
        let mut packed = vec![0; packed_bytes(1, k, n).unwrap()];
        pack_i8(&mut packed, k, n, |i, j| w[i * n + j]);
        Case { m, k, n, x, w, packed }
    }

    fn sum(&self, i: usize, j: usize) -> i64 {
        (0..self.k).map(|k| i64::from(self.x[i * self.k + k]) * i64::from(self.w[k * self.n + j])).sum()
    }

    fn sums(&self) -> Vec<i64> {
        (0..self.m * self.n).map(|at| self.sum(at / self.n, at % self.n)).collect()
    }

    /// The weight in each format, for which `nz` holds its blocks.
    fn forms<'a>(&'a self, nz: &'a [i8]) -> [(Tensor<'a, i8>, i32); 3] {
        let (k, n) = (self.k, self.n);
        [
            (Tensor::new([k, n], &self.w).unwrap(), FORMAT_ND),
            (Tensor::new([n / 32, k / 16, 16, 32], nz).unwrap(), FORMAT_NZ),
            (Tensor::new([self.packed.len()], &self.packed).unwrap(), FORMAT_PACKED),
        ]
    }

    fn call<'a>(&'a self, out: Product<'a, Host>) -> Result<QuantMatmul<'a, Host>, Error> {
        Ok(packed(Tensor::new([self.m, self.k], &self.x)?, &self.packed, out))
    }
}

fn packed<'a>(x: Tensor<'a, i8>, weight: &'a [i8], out: Product<'a, Host>) -> QuantMatmul<'a, Host> {
    let weight = Tensor::new([weight.len()], weight).unwrap();
    QuantMatmul { weight_format: FORMAT_PACKED, ..QuantMatmul::new(x, weight, out) }
}

const SHAPES: [(usize, usize, usize); 19] = [
    (1, 1, 1),
    (1, 64, 64),
    (1, 172, 64),
    (1, 64, 172),
    (2, 63, 65),
    (3, 65, 31),
    (4, 4, 16),
    (5, 7, 48),
    (6, 128, 80),
    (7, 130, 33),
    (8, 256, 96),
    (11, 68, 17),
    (13, 31, 130),
    (97, 8200, 32),
    (49, 20, 40),
    (97, 36, 20),
    (128, 24, 70),
    (129, 36, 100),
    (2, 4100, 20),
];

#[test]
fn quant_matmul_sums_are_exact() -> Result<(), Error> {
    let mut random = Random(3);
    for (m, k, n) in SHAPES {
        let case = Case::new(&mut random, m, k, n);
        let expected = case.sums();
        for host in hosts() {
            let mut out = vec![7; m * n];
            run(&host, case.call(Product::I32(TensorMut::new([m, n], &mut out)?))?)?;
            for (at, (&found, &expected)) in out.iter().zip(&expected).enumerate() {
                assert_eq!(i64::from(found), expected, "{} {m}x{k}x{n} at {at}", host.isa().name());
            }
        }
    }
    Ok(())
}

/// `[K,N]` in blocks, by the formula of the format.
pub(crate) fn blocks(w: &[i8], k: usize, n: usize) -> Vec<i8> {
    let mut nz = vec![0; k * n];
    for i in 0..k {
        for j in 0..n {
            nz[(j / 32 * (k / 16) + i / 16) * 512 + i % 16 * 32 + j % 32] = w[i * n + j];
        }
    }
    nz
}

#[test]
fn quant_matmul_the_output_may_lie_in_gaps_of_the_weight() -> Result<(), Error> {
    // Rows of 8 bytes of weights, and of 8 sums.
    let (m, k, n, pitch) = (3, 5, 8, 10);
    let case = Case::new(&mut Random(32), m, k, n);
    let strided = |shape: [usize; 2], pitch| tilekern::Dims::strided(&shape, &[pitch, 1]);
    for host in hosts() {
        let mut memory = vec![7i32; k * pitch];
        let first = memory.as_mut_ptr();
        for (at, &w) in case.w.iter().enumerate() {
            // SAFETY: a byte of `memory`.
            unsafe { first.cast::<i8>().add(at / n * 4 * pitch + at % n).write(w) };
        }
        // SAFETY: the two have no element in common, and `memory` is not used otherwise.
        let (weight, out) = unsafe {
            (
                Tensor::from_raw(strided([k, n], 4 * pitch)?, first.cast()),
                TensorMut::from_raw(strided([m, n], pitch)?, first.add(2)),
            )
        };
        run(&host, QuantMatmul::new(Tensor::new([m, k], &case.x)?, weight, Product::I32(out)))?;
        let found = memory.chunks_exact(pitch).take(m).flat_map(|row| row[2..].iter().map(|&sum| i64::from(sum)));
        assert!(found.eq(case.sums()), "{}", host.isa().name());
    }
    Ok(())
}

#[test]
fn quant_matmul_ragged_blocks_are_refused() -> Result<(), Error> {
    let (x, w, mut out) = ([0; 24], [0; 16 * 32], [5; 32]);
    let x = Tensor::new([1, 24], &x)?;
    let call = QuantMatmul::new(x, Tensor::new([1, 1, 16, 32], &w)?, Product::I32(TensorMut::new([1, 32], &mut out)?));
    let error = run(&Host::new(), QuantMatmul { weight_format: FORMAT_NZ, ..call }).unwrap_err();
    assert_eq!((error.argument(), error.status()), ("weight", Status::Invalid));
    assert_eq!(out, [5; 32], "nothing is written");
    Ok(())
}

#[test]
fn quant_matmul_scales_and_biases_follow_the_formula() -> Result<(), Error> {
    let mut random = Random(4);
    for (m, k, n) in SHAPES {
        let case = Case::new(&mut random, m, k, n);
        let sums = case.sums();
        let xs: Vec<f32> = (0..m).map(|_| random.unit()).collect();
        let ws: Vec<f32> = (0..n).map(|_| random.unit()).collect();
        let ws16: Vec<half::bf16> = ws.iter().map(|&v| half::bf16::from_f32(v)).collect();
        let integers: Vec<i32> = (0..n).map(|_| random.bits() as i32).collect();
        let floats: Vec<f32> = (0..n).map(|_| random.unit()).collect();
        for (which, host) in (0..4).flat_map(|which| hosts().into_iter().map(move |host| (which, host))) {
            let mut out = vec![0.0f32; m * n];
            let mut call = case.call(Product::F32(TensorMut::new([m, n], &mut out)?))?;
            call.x_scale = Some(Tensor::new([m], &xs)?);
            call.weight_scale = Some(match which {
                3 => ChannelScale::BF16(Tensor::new([n], &ws16)?),
                _ => ChannelScale::F32(Tensor::new([n], &ws)?),
            });
            call.bias = match which {
                1 => Some(Bias::I32(Tensor::new([n], &integers)?)),
                2 => Some(Bias::F32(Tensor::new([n], &floats)?)),
                _ => None,
            };
            run(&host, call)?;
            for at in 0..m * n {
                let (i, j) = (at / n, at % n);
                let bias = if which == 1 { i64::from(integers[j]) } else { 0 };
                let scale = if which == 3 { ws16[j].to_f32() } else { ws[j] };
                let scaled = (sums[at] + bias) as f32 * xs[i] * scale;
                let expected = if which == 2 { scaled + floats[j] } else { scaled };
                assert_eq!(bits(out[at]), bits(expected), "{} bias {which} {m}x{k}x{n} at {at}", host.isa().name());
            }
        }
    }
    Ok(())
}

/// Larger than what a cache keeps: rows that are whole lines, that begin in all rows at the same place of one, and anywhere.
#[test]
fn quant_matmul_large_outputs_are_written_whole() -> Result<(), Error> {
    let mut random = Random(12);
    for (m, n, pitch, first) in [(68, 4096, 4112, 0), (68, 4096, 4096, 4), (66, 4001, 4001, 0), (70, 4013, 4029, 0)] {
        let case = Case::new(&mut random, m, 5, n);
        for host in hosts() {
            let mut memory = aligned_vec::avec![-1.0f32; first + m * pitch];
            let out = &mut memory[first..];
            run(&host, case.call(Product::F32(TensorMut::strided([m, n], [pitch, 1], &mut *out)?))?)?;
            for (at, &found) in out.iter().enumerate() {
                let expected = if at % pitch < n { case.sum(at / pitch, at % pitch) as f32 } else { -1.0 };
                assert_eq!(found, expected, "{} {m}x{n} from {first} at {at}", host.isa().name());
            }
            assert_eq!(memory[..first], [-1.0; 4][..first]);
        }
    }
    Ok(())
}

#[test]
fn quant_matmul_half_outputs_are_rounded_once() -> Result<(), Error> {
    let case = Case::new(&mut Random(5), 5, 70, 37);
    let sums = case.sums();
    for host in hosts() {
        let (mut f16s, mut bf16s) = (vec![half::f16::ZERO; 5 * 37], vec![half::bf16::ZERO; 5 * 37]);
        run(&host, case.call(Product::F16(TensorMut::new([5, 37], &mut f16s)?))?)?;
        run(&host, case.call(Product::BF16(TensorMut::new([5, 37], &mut bf16s)?))?)?;
        for at in 0..5 * 37 {
            assert_eq!(f16s[at], half::f16::from_f32(sums[at] as f32));
            assert_eq!(bf16s[at], half::bf16::from_f32(sums[at] as f32));
        }
    }
    Ok(())
}

#[test]
fn quant_matmul_an_integer_bias_saturates() -> Result<(), Error> {
    let case = Case::new(&mut Random(6), 3, 20, 18);
    let sums = case.sums();
    let bias: Vec<i32> = (0..18).map(|j| if j % 2 == 0 { i32::MAX } else { i32::MIN }).collect();
    for host in hosts() {
        let mut out = vec![0; 3 * 18];
        let mut call = case.call(Product::I32(TensorMut::new([3, 18], &mut out)?))?;
        call.bias = Some(Bias::I32(Tensor::new([18], &bias)?));
        run(&host, call)?;
        for at in 0..3 * 18 {
            let exact = sums[at] + i64::from(bias[at % 18]);
            assert_eq!(i64::from(out[at]), exact.clamp(i32::MIN.into(), i32::MAX.into()));
        }
    }
    Ok(())
}

#[test]
fn quant_matmul_strides_do_not_matter() -> Result<(), Error> {
    let case = Case::new(&mut Random(7), 9, 40, 35);
    let sums = case.sums();
    let transposed: Vec<i8> = (0..9 * 40).map(|at| case.x[at % 9 * 40 + at / 9]).collect();
    let mut wide = vec![0i8; 9 * 50];
    for i in 0..9 {
        wide[i * 50..i * 50 + 40].copy_from_slice(&case.x[i * 40..(i + 1) * 40]);
    }
    for host in hosts() {
        for x in [Tensor::strided([9, 40], [1, 9], &transposed)?, Tensor::strided([9, 40], [50, 1], &wide)?] {
            let mut out = vec![-1; 2 * 9 * 35];
            let to = TensorMut::strided([9, 35], [1, 18], &mut out)?;
            run(&host, packed(x, &case.packed, Product::I32(to)))?;
            for at in 0..9 * 35 {
                assert_eq!(i64::from(out[at / 35 + 18 * (at % 35)]), sums[at]);
            }
            assert_eq!(out[9..18], [-1; 9], "between the columns nothing is written");
        }
    }
    Ok(())
}

#[test]
fn quant_matmul_rows_of_a_weight_may_overlap() -> Result<(), Error> {
    let mut random = Random(10);
    let (m, k, n) = (5, 70, 130);
    let x: Vec<i8> = (0..m * k).map(|_| random.int8()).collect();
    for pitch in [0, 1, 7, 31, 32, 33, 64, 129] {
        let w: Vec<i8> = (0..(k - 1) * pitch + n).map(|_| random.int8()).collect();
        let sum = |at: usize| (0..k).map(|i| i64::from(x[at / n * k + i]) * i64::from(w[i * pitch + at % n])).sum::<i64>();
        for host in hosts() {
            let mut out = vec![7; m * n];
            let weight = Tensor::strided([k, n], [pitch, 1], &w)?;
            run(&host, QuantMatmul::new(Tensor::new([m, k], &x)?, weight, Product::I32(TensorMut::new([m, n], &mut out)?)))?;
            for at in 0..m * n {
                assert_eq!(i64::from(out[at]), sum(at), "{} {pitch} apart, at {at}", host.isa().name());
            }
        }
    }
    Ok(())
}

#[test]
fn quant_matmul_a_stride_that_is_never_taken_may_be_any() -> Result<(), Error> {
    let (m, n) = (3, 70);
    let (x, w): (Vec<i8>, Vec<i8>) = ((1..=m as i8).collect(), (0..n as i8).collect());
    for stride in [0, usize::MAX >> 24, usize::MAX / 4 + 1, usize::MAX] {
        for host in hosts() {
            let mut out = vec![0; m * n];
            let (rows, weight) = (Tensor::strided([m, 1], [1, stride], &x)?, Tensor::strided([1, n], [stride, 1], &w)?);
            run(&host, QuantMatmul::new(rows, weight, Product::I32(TensorMut::new([m, n], &mut out)?)))?;
            for at in 0..m * n {
                assert_eq!(out[at], i32::from(x[at / n]) * i32::from(w[at % n]), "{} {stride}", host.isa().name());
            }
        }
    }
    Ok(())
}

#[test]
fn quant_matmul_bad_calls_are_refused() -> Result<(), Error> {
    let case = Case::new(&mut Random(9), 2, 8, 4);
    let mut damaged = case.packed.clone();
    damaged[3] ^= 1;
    let host = Host::new();
    let mut out = vec![5i32; 8];
    let mut refused = |change: &dyn Fn(&mut QuantMatmul<'_, Host>), argument: &str, status: Status| {
        let mut call = case.call(Product::I32(TensorMut::new([2, 4], &mut out).unwrap())).unwrap();
        change(&mut call);
        let error = run(&host, call).unwrap_err();
        assert_eq!((error.argument(), error.status()), (argument, status));
        assert_eq!(out, [5; 8], "nothing is written");
    };
    refused(&|call| call.weight_format = FORMAT_ND, "weight", Status::Invalid);
    refused(&|call| call.weight_format = FORMAT_NZ, "weight", Status::Invalid);
    refused(&|call| call.weight_format = 3, "weight_format", Status::Invalid);
    refused(&|call| call.x = Tensor::new([2, 9], &[0; 18]).unwrap(), "weight", Status::Invalid);
    refused(&|call| call.x = Tensor::new([3, 8], &[0; 24]).unwrap(), "out", Status::Invalid);
    refused(&|call| call.x = Tensor::new([16], &[0; 16]).unwrap(), "x", Status::Invalid);
    refused(&|call| call.x = Tensor::new([2, 0], &[]).unwrap(), "x", Status::Invalid);
    refused(&|call| call.x_scale = Some(Tensor::new([2], &[1.0; 2]).unwrap()), "out", Status::Invalid);
    refused(&|call| call.x_scale = Some(Tensor::new([3], &[1.0; 3]).unwrap()), "x_scale", Status::Invalid);
    refused(&|call| call.bias = Some(Bias::I32(Tensor::new([5], &[1; 5]).unwrap())), "bias", Status::Invalid);
    let shape = tilekern::Dims::contiguous(&[2, 8])?;
    refused(&|call| call.x = Tensor::shape_only(shape), "x", Status::Null);
    let mut call = case.call(Product::I32(TensorMut::new([2, 4], &mut out)?))?;
    call.weight = Tensor::new([damaged.len()], &damaged)?;
    let error = run(&host, call).unwrap_err();
    assert_eq!((error.argument(), error.status()), ("weight", Status::Invalid));
    assert_eq!(out, [5; 8], "nothing is written");
    // Nobody asks for the weights of no rows.
    run(&host, packed(Tensor::new([0, 8], &[])?, &damaged, Product::I32(TensorMut::new([0, 4], &mut [])?)))
}
