//! How operations use a pool of threads.

use crate::common::{Counted, Random, run};
use tilekern::ops::{ChannelScale, PackWeight, Product, QuantMatmul, UnpackedWeight};
use tilekern::ops::{FORMAT_ND, FORMAT_PACKED, GroupedMatmulSwigluQuant, GroupedScale, GroupedWeight};
use tilekern::{Error, Host, Isa, ParallelFor, Tensor, TensorMut};

#[test]
fn quant_matmul_enters_a_pool_once_and_only_with_more_than_a_task() -> Result<(), Error> {
    let (mut random, pool) = (Random(20), Counted::default());
    let host = Host::with(Isa::detect(), &pool)?;
    for (m, k, n, entered) in [(300, 1100, 520, [1, 0]), (1, 1100, 1100, [1, 0]), (2, 256, 256, [0, 0]), (8, 1000, 1000, [0, 0])]
    {
        let (x, w): (Vec<i8>, Vec<i8>) =
            ((0..m * k).map(|_| random.int8()).collect(), (0..k * n).map(|_| random.int8()).collect());
        let mut out = vec![0; m * n];
        let mut call =
            QuantMatmul::new(Tensor::new([m, k], &x)?, Tensor::new([k, n], &w)?, Product::I32(TensorMut::new([m, n], &mut out)?));
        call.weight_format = FORMAT_ND;
        run(&host, call)?;
        assert_eq!(pool.counts(), entered, "{m} x {k} x {n}");
        for at in [0, n / 2, m * n - 1] {
            let sum: i32 = (0..k).map(|i| i32::from(x[at / n * k + i]) * i32::from(w[i * n + at % n])).sum();
            assert_eq!(out[at], sum, "{m} x {k} x {n}: {at}");
        }
    }
    Ok(())
}

#[test]
fn grouped_matmul_runs_inside_the_pool() -> Result<(), Error> {
    let (m, k, n, experts) = (40, 512, 512, 2);
    let (mut random, pool) = (Random(21), Counted::default());
    let host = Host::with(Isa::detect(), &pool)?;
    let (x, w): (Vec<i8>, Vec<i8>) =
        ((0..m * k).map(|_| random.int8()).collect(), (0..experts * k * n).map(|_| random.int8()).collect());
    let mut packed = vec![0; tilekern::kernels::pack::packed_bytes(experts, k, n).unwrap()];
    let length = packed.len();
    let weight = UnpackedWeight::I8(Tensor::new([experts, k, n], &w)?);
    run(&host, PackWeight::new(weight, TensorMut::new([length], &mut packed)?))?;
    pool.counts();
    let given = Given { x: &x, packed: &packed, sizes: [m, k, n, experts] };
    let found = given.on(&host)?;
    assert_eq!(pool.counts(), [1, 0]);
    assert_eq!(found, given.on(&Host::new())?);
    Ok(())
}

struct Given<'a> {
    x: &'a [i8],
    packed: &'a [i8],
    sizes: [usize; 4],
}

impl Given<'_> {
    /// The outputs, and their scales as bits.
    fn on<P: ParallelFor>(&self, host: &Host<P>) -> Result<(Vec<i8>, Vec<u32>), Error> {
        let [m, k, n, experts] = self.sizes;
        let (scale, ends, mut y, mut y_scale) = (vec![1e-3; experts * n], [10, 40], vec![0; m * n / 2], vec![0.0; m]);
        let mut call = GroupedMatmulSwigluQuant::new(
            Tensor::new([m, k], self.x)?,
            GroupedWeight::I8(Tensor::new([self.packed.len()], self.packed)?),
            GroupedScale::Channel(ChannelScale::F32(Tensor::new([experts, n], &scale)?)),
            Tensor::new([m], &scale[..m])?,
            Tensor::new([experts], &ends)?,
            TensorMut::new([m, n / 2], &mut y)?,
            TensorMut::new([m], &mut y_scale)?,
        );
        call.weight_format = FORMAT_PACKED;
        run(host, call)?;
        Ok((y, y_scale.into_iter().map(f32::to_bits).collect()))
    }
}

#[cfg(feature = "rayon")]
#[test]
fn a_pool_serves_several_threads_at_once() -> Result<(), Error> {
    let pool = tilekern::Rayon::new(2)?;
    let (m, k, n) = (40, 600, 700);
    std::thread::scope(|scope| {
        let calls = (0..3).map(|seed| {
            let pool = &pool;
            scope.spawn(move || -> Result<(), Error> {
                let (mut random, host) = (Random(30 + seed), Host::with(Isa::detect(), pool)?);
                let (x, w): (Vec<i8>, Vec<i8>) =
                    ((0..m * k).map(|_| random.int8()).collect(), (0..k * n).map(|_| random.int8()).collect());
                let at = |i: usize, j: usize| (0..k).map(|l| i32::from(x[i * k + l]) * i32::from(w[l * n + j])).sum::<i32>();
                let expected = [at(0, 0), at(m / 2, n / 3), at(m - 1, n - 1)];
                for _ in 0..20 {
                    let mut out = vec![0; m * n];
                    let output = Product::I32(TensorMut::new([m, n], &mut out)?);
                    let mut call = QuantMatmul::new(Tensor::new([m, k], &x)?, Tensor::new([k, n], &w)?, output);
                    call.weight_format = FORMAT_ND;
                    run(&host, call)?;
                    assert_eq!([out[0], out[m / 2 * n + n / 3], out[m * n - 1]], expected);
                }
                Ok(())
            })
        });
        calls.collect::<Vec<_>>().into_iter().try_for_each(|call| call.join().unwrap())
    })
}
