//! One result whatever the format of the weight, the form of the output, and the threads.

use super::{Case, blocks};
use crate::common::{Buffer, Counted, Order, Random, bits, hosts, run};
use tilekern::kernels::element::Element;
use tilekern::ops::{Bias, ChannelScale, FORMAT_ND, FORMAT_NZ, Product, QuantMatmul};
use tilekern::{Error, Host, Isa, ParallelFor, Tensor, TensorMut, bf16, f16};

#[test]
fn quant_matmul_every_weight_format_gives_the_same() -> Result<(), Error> {
    let mut random = Random(31);
    let few = [(1, 1, 1), (3, 70, 37), (9, 16, 32), (2, 48, 320), (5, 4112, 96), (20, 48, 352), (32, 48, 352)];
    for (m, k, n) in few.into_iter().chain([(70, 64, 608), (97, 64, 96), (100, 4112, 64)]) {
        let case = Case::new(&mut random, m, k, n);
        let expected: Vec<i32> = case.sums().iter().map(|&sum| sum as i32).collect();
        let transposed: Vec<i8> = (0..k * n).map(|at| case.w[at % k * n + at / k]).collect();
        let wide: Vec<i8> =
            (0..k * (n + 5)).map(|at| if at % (n + 5) < n { case.w[at / (n + 5) * n + at % (n + 5)] } else { 99 }).collect();
        let nz = if k % 16 == 0 && n % 32 == 0 { Some(blocks(&case.w, k, n)) } else { None };
        for host in hosts() {
            let views = [
                Some((Tensor::new([k, n], &case.w)?, FORMAT_ND)),
                Some((Tensor::strided([k, n], [n + 5, 1], &wide)?, FORMAT_ND)),
                Some((Tensor::strided([k, n], [1, k], &transposed)?, FORMAT_ND)),
                nz.as_ref().map(|nz| (Tensor::new([n / 32, k / 16, 16, 32], nz).unwrap(), FORMAT_NZ)),
            ];
            for (weight, format) in views.into_iter().flatten() {
                let mut out = vec![7; m * n];
                let x = Tensor::new([m, k], &case.x)?;
                let mut call = QuantMatmul::new(x, weight, Product::I32(TensorMut::new([m, n], &mut out)?));
                assert_eq!(call.weight_format, FORMAT_ND, "the default, as in C");
                call.weight_format = format;
                run(&host, call)?;
                assert!(out == expected, "{} {m}x{k}x{n} format {format} {weight:?}", host.isa().name());
            }
        }
    }
    Ok(())
}

/// What scales and moves the sums of a case.
struct Given {
    sums: Vec<i64>,
    xs: Vec<f32>,
    ws: Vec<f32>,
    halves: Vec<f16>,
    brains: Vec<bf16>,
    integers: Vec<i32>,
    floats: Vec<f32>,
}

impl Given {
    /// By the formula: scales in f32, f16 or bf16; no bias, of integers or of floats.
    fn value(&self, at: usize, scales: usize, bias: usize) -> f32 {
        let (i, j) = (at / self.ws.len(), at % self.ws.len());
        let sum = self.sums[at] + if bias == 1 { i64::from(self.integers[j]) } else { 0 };
        let scale = [self.ws[j], self.halves[j].to_f32(), self.brains[j].to_f32()][scales];
        let scaled = sum as f32 * self.xs[i] * scale;
        if bias == 2 { scaled + self.floats[j] } else { scaled }
    }
}

/// Outputs of one dtype, of every order.
fn scaled<T>(case: &Case, nz: &[i8], given: &Given, product: fn(TensorMut<'_, T>) -> Product<'_, Host>) -> Result<(), Error>
where
    T: Element + std::fmt::Debug,
{
    let (m, k, n) = (case.m, case.k, case.n);
    for (scales, bias) in (0..9).map(|at| (at / 3, at % 3)) {
        let order = [Order::Contiguous, Order::Pitched, Order::Transposed][(scales + bias) % 3];
        let expected: Vec<u32> = (0..m * n).map(|at| bits(T::narrow(given.value(at, scales, bias)).as_())).collect();
        for host in hosts() {
            for (weight, format) in case.forms(nz) {
                let mut out = Buffer::empty(&[m, n], order, T::narrow(77.0));
                let mut call = QuantMatmul::new(Tensor::new([m, k], &case.x)?, weight, product(out.view_mut()));
                call.weight_format = format;
                call.x_scale = Some(Tensor::new([m], &given.xs)?);
                call.weight_scale = Some(match scales {
                    0 => ChannelScale::F32(Tensor::new([n], &given.ws)?),
                    1 => ChannelScale::F16(Tensor::new([n], &given.halves)?),
                    _ => ChannelScale::BF16(Tensor::new([n], &given.brains)?),
                });
                call.bias = match bias {
                    0 => None,
                    1 => Some(Bias::I32(Tensor::new([n], &given.integers)?)),
                    _ => Some(Bias::F32(Tensor::new([n], &given.floats)?)),
                };
                run(&host, call)?;
                let found: Vec<u32> = out.values().iter().map(|v| bits(v.as_())).collect();
                let context = format!("{} {m} rows, format {format}, {order:?}", host.isa().name());
                assert!(found == expected, "{context}: scales {scales}, bias {bias}");
            }
        }
    }
    Ok(())
}

#[test]
fn quant_matmul_scaled_outputs_of_every_weight_format() -> Result<(), Error> {
    let mut random = Random(33);
    let (k, n) = (48, 96);
    for m in [3, 20, 70] {
        let case = Case::new(&mut random, m, k, n);
        let nz = blocks(&case.w, k, n);
        let mut unit = |count: usize, by: f32| -> Vec<f32> { (0..count).map(|_| random.unit() * by).collect() };
        let (xs, ws, floats) = (unit(m, 0.05), unit(n, 1.0), unit(n, 900.0));
        let halves = ws.iter().map(|&w| f16::from_f32(w)).collect();
        let brains = ws.iter().map(|&w| bf16::from_f32(w)).collect();
        let integers = (0..n).map(|j| random.bits() as i32 >> (j % 24)).collect();
        let given = Given { sums: case.sums(), xs, ws, halves, brains, integers, floats };
        scaled(&case, &nz, &given, |out| Product::F32(out))?;
        scaled(&case, &nz, &given, |out| Product::F16(out))?;
        scaled(&case, &nz, &given, |out| Product::BF16(out))?;
    }
    Ok(())
}

#[test]
fn quant_matmul_threads_do_not_matter() -> Result<(), Error> {
    fn check<P: ParallelFor>(host: &Host<P>, case: &Case, nz: &[i8], expected: &[i64]) -> Result<(), Error> {
        for (weight, format) in case.forms(nz) {
            let mut out = vec![0; case.m * case.n];
            let to = Product::I32(TensorMut::new([case.m, case.n], &mut out)?);
            let call = QuantMatmul::new(Tensor::new([case.m, case.k], &case.x)?, weight, to);
            run(host, QuantMatmul { weight_format: format, ..call })?;
            let context = format!("{} threads, format {format}", host.pool().workers());
            assert!(out.iter().zip(expected).all(|(&a, &b)| i64::from(a) == b), "{context}: {}x{}x{}", case.m, case.k, case.n);
        }
        Ok(())
    }
    // Two tasks a worker, and as many as there may be; both more than is left to the calling thread.
    for [m, k, n] in [[100, 304, 512], [3, 464, 6208]] {
        let case = Case::new(&mut Random(8), m, k, n);
        let (nz, expected) = (blocks(&case.w, k, n), case.sums());
        let pool = Counted::default();
        check(&Host::with(Isa::detect(), &pool)?, &case, &nz, &expected)?;
        assert_eq!(pool.counts(), [3, 0], "each format enters once: {m}x{k}x{n}");
        #[cfg(feature = "rayon")]
        for threads in [1, 2, 3] {
            check(&Host::with(Isa::detect(), tilekern::Rayon::new(threads)?)?, &case, &nz, &expected)?;
        }
    }
    Ok(())
}
