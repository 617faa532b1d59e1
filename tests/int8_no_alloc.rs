//! Ten thousand calls of each int8 product and of packing, of a size that no pool is told of, and hundreds of every form of weights and
//! outputs, of sizes that are shared; on the calling thread and inside a pool of two: not one allocation.
//!
//! Alone in its binary and without the test harness, which allocates itself.

mod common;
#[path = "common/counting.rs"]
mod counting;
#[path = "int8_no_alloc/forms.rs"]
mod forms;
use common::{Counted, rounds};
use counting::{allocations, begin};
use forms::FORMS;
use std::alloc::Layout;
use tilekern::kernels::pack::packed_bytes;
use tilekern::ops::*;
use tilekern::{Error, Host, Isa, ParallelFor, Rayon, Run, Scratch, Tensor, TensorMut};

const M: usize = 9;
const K: usize = 70;
const N: usize = 200;
const E: usize = 3;

struct Buffers {
    x: Vec<i8>,
    w: Vec<i8>,
    floats: Vec<f32>,
    packed: Vec<i8>,
    scale: Vec<f32>,
    y: Vec<i8>,
    product: Vec<f32>,
    scratch: Scratch,
}

/// One call of each operation, with and without packed weights.
fn calls<P: ParallelFor>(host: &Host<P>, number: usize, b: &mut Buffers) -> Result<i64, Error> {
    let bytes = packed_bytes(E, K, N).unwrap();
    let pack = match number % 16 {
        0 => {
            let mut pack =
                PackWeight::new(UnpackedWeight::F32(Tensor::new([E, K, N], &b.floats)?), TensorMut::new([bytes], &mut b.packed)?);
            pack.weight_scale = Some(TensorMut::new([E, N], &mut b.scale)?);
            pack
        }
        _ => PackWeight::new(UnpackedWeight::I8(Tensor::new([E, K, N], &b.w)?), TensorMut::new([bytes], &mut b.packed)?),
    };
    host.run(pack, &mut [])?;

    let ends = [number as i64 % 5, 5, 8];
    let mut grouped = GroupedMatmulSwigluQuant::new(
        Tensor::new([M, K], &b.x)?,
        GroupedWeight::I8(Tensor::new([bytes], &b.packed)?),
        GroupedScale::Channel(ChannelScale::F32(Tensor::new([E, N], &b.scale)?)),
        Tensor::new([M], &b.floats)?,
        Tensor::new([E], &ends)?,
        TensorMut::new([M, N / 2], &mut b.y)?,
        TensorMut::new([M], &mut b.product)?,
    );
    grouped.weight_format = FORMAT_PACKED;
    grouped.fp16_rounding = number % 2 == 0;
    assert!(host.workspace(&grouped)?.size() <= b.scratch.len());
    host.run(grouped, &mut b.scratch)?;
    let sum = b.y.iter().map(|&y| i64::from(y).abs()).sum::<i64>();

    let (x, weight) = (Tensor::new([M, K], &b.x)?, Tensor::new([K, N], &b.w)?);
    let mut product = QuantMatmul::new(x, weight, Product::F32(TensorMut::new([M, N], &mut b.product)?));
    product.x_scale = Some(Tensor::new([M], &b.floats)?);
    assert!(host.workspace(&product)?.size() <= b.scratch.len());
    host.run(product, &mut b.scratch)?;
    Ok(sum)
}

/// Not one allocation in so many calls.
fn none<P: ParallelFor>(host: &Host<P>, b: &mut Buffers, count: usize) {
    begin(host);
    let before = allocations();
    let sum: i64 = (0..count).map(|number| calls(host, number, b).unwrap()).sum();
    assert_eq!(allocations() - before, 0, "allocations in {count} calls");
    assert!(sum > 0);
}

/// Not one in so many calls of every form.
fn none_of_forms<P: ParallelFor>(host: &Host<P>, b: &mut forms::Buffers, count: usize) {
    begin(host);
    for form in 0..FORMS {
        let before = allocations();
        (0..count).for_each(|number| forms::call(host, form, number, b).unwrap());
        assert_eq!(allocations() - before, 0, "allocations in {count} calls of form {form} on {}", host.isa().name());
    }
}

fn every_form(pool: &Rayon) {
    let mut b = forms::Buffers::new(Scratch::new(Layout::from_size_align(8 << 20, 64).unwrap())).unwrap();
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        let counted = Counted::default();
        let host = Host::with(isa, &counted).unwrap();
        for form in 0..FORMS {
            forms::call(&host, form, 0, &mut b).unwrap();
            assert!(counted.counts() != [0, 0], "form {form} is shared");
        }
        // Hundreds on the best, and on the one that has bands.
        let count = if isa == Isa::detect() || isa == Isa::Avx512Vnni { rounds(200) } else { 5 };
        none_of_forms(&Host::with(isa, tilekern::Serial).unwrap(), &mut b, count);
        let host = Host::with(isa, pool).unwrap();
        pool.install(|| none_of_forms(&host, &mut b, count));
    }
}

fn main() {
    let bytes = |count: usize| -> Vec<i8> { (0..count).map(|i| (i * 7919 % 255) as i8).collect() };
    let mut b = Buffers {
        x: bytes(M * K),
        w: bytes(E * K * N),
        floats: (0..E * K * N).map(|i| (i % 37) as f32 / 40.0 + 0.01).collect(),
        packed: vec![0; packed_bytes(E, K, N).unwrap()],
        scale: vec![0.01; E * N],
        y: vec![0; M * N / 2],
        product: vec![0.0; M * N],
        scratch: Scratch::new(Layout::from_size_align(2 << 20, 64).unwrap()),
    };
    let count = rounds(10_000);
    none(&Host::new(), &mut b, count);
    let pool = Rayon::new(2).unwrap();
    let host = Host::with(Isa::detect(), &pool).unwrap();
    pool.install(|| none(&host, &mut b, count));
    every_form(&pool);
    println!("int8 products: {count} calls each and {FORMS} larger forms, serial and in a pool, no allocation");
}
