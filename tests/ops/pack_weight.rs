//! PackWeight: every dtype, format and stride into the bytes that the packed format says, on every instruction set and thread count.

use crate::common::{Buffer, Order, Random, bits, every_host, refused, run};
use tilekern::kernels::element::Element;
use tilekern::kernels::pack::{HEADER, Packed, Source, packed_bytes};
use tilekern::kernels::reference;
use tilekern::ops::{FORMAT_ND, FORMAT_NZ, PackWeight, UnpackedWeight};
use tilekern::{Dims, Host, ParallelFor, Tensor, TensorMut, bf16, f16};

/// What is packed: element (k, n) of each expert, and where it must lie.
fn check(packed: &[i8], source: Source, [e, k, n]: [usize; 3], weight: impl Fn(usize, usize, usize) -> i8, context: &str) {
    let whole = Packed::new(packed).unwrap_or_else(|| panic!("{context}: no packed weight"));
    assert_eq!((whole.experts(), whole.k(), whole.n(), whole.source()), (e, k, n, source), "{context}");
    assert_eq!(packed.len(), HEADER + e * n.div_ceil(16) * (k.div_ceil(64) * 16 + 1) * 64);
    for expert in 0..e {
        for p in 0..n.div_ceil(16) {
            for (q, vector) in whole.expert(expert).panel(p).iter().enumerate() {
                for (i, &byte) in vector.iter().enumerate() {
                    let (row, column) = (4 * q + i % 4, 16 * p + i / 4);
                    let expected = if row < k && column < n { weight(expert, row, column) } else { 0 };
                    assert_eq!(byte, expected, "{context}: [{expert},{row},{column}]");
                }
            }
            for (i, sum) in whole.expert(expert).sums(p).into_iter().enumerate().take_while(|(i, _)| 16 * p + i < n) {
                assert_eq!(sum, (0..k).map(|row| i32::from(weight(expert, row, 16 * p + i))).sum::<i32>(), "{context}: sum");
            }
        }
    }
}

/// Packs into `packed`, which is made as long as it must be.
fn pack<'a, P: ParallelFor>(
    host: &Host<P>,
    weight: UnpackedWeight<'a, Host<P>>,
    format: i32,
    [e, k, n]: [usize; 3],
    packed: &'a mut Vec<i8>,
) {
    let bytes = packed_bytes(e, k, n).unwrap();
    packed.clear();
    packed.resize(bytes, 77);
    let mut call = PackWeight::new(weight, TensorMut::new([bytes], packed).unwrap());
    call.weight_format = format;
    run(host, call).unwrap();
}

const SIZES: [[usize; 3]; 6] = [[1, 1, 1], [2, 1, 20], [2, 5, 17], [3, 64, 64], [2, 67, 130], [1, 200, 340]];

#[test]
fn bytes_of_every_order() {
    for [e, k, n] in SIZES {
        let mut random = Random(5);
        let w: Vec<i8> = (0..e * k * n).map(|_| random.int8()).collect();
        for order in [Order::Contiguous, Order::Pitched, Order::Transposed] {
            let weight = Buffer::new(&[e, k, n], order, &w, 99);
            every_host(|host| {
                let mut packed = vec![];
                pack(host, UnpackedWeight::I8(weight.view()), FORMAT_ND, [e, k, n], &mut packed);
                let context = format!("{} {order:?}", host.isa().name());
                check(&packed, Source::I8, [e, k, n], |e, i, j| w[(e * k + i) * n + j], &context);
            });
        }
    }
}

/// Two numbers of four bits to a byte.
fn halves(w: &[i8]) -> Vec<u8> {
    w.as_chunks::<2>().0.iter().map(|[a, b]| (a & 15) as u8 | (*b as u8) << 4).collect()
}

#[test]
fn halves_of_every_order() {
    for [e, k, n] in [[1, 1, 2], [2, 5, 18], [3, 64, 64], [2, 67, 130], [1, 257, 34]] {
        let mut random = Random(8);
        let w: Vec<i8> = (0..e * k * n).map(|_| random.int8() >> 4).collect();
        for order in [Order::Contiguous, Order::Pitched, Order::Transposed] {
            let weight = Buffer::new(&[e, k, n / 2], order, &halves(&w), 0x99);
            every_host(|host| {
                let mut packed = vec![];
                pack(host, UnpackedWeight::I4(weight.view()), FORMAT_ND, [e, k, n], &mut packed);
                let context = format!("{} {order:?}", host.isa().name());
                check(&packed, Source::I4, [e, k, n], |e, i, j| w[(e * k + i) * n + j], &context);
            });
        }
    }
}

#[test]
fn blocks_and_halves_of_bytes() {
    let ([e, k, n], mut random) = ([2, 48, 192], Random(6));
    let w: Vec<i8> = (0..e * k * n).map(|_| random.int8() >> 4).collect();
    let at = |e: usize, i: usize, j: usize| w[(e * k + i) * n + j];
    // By the formula of the blocks: `c0` columns to a stripe.
    let blocks = |c0: usize| {
        let mut nz = vec![0; w.len()];
        for (to, (e, i, j)) in (0..e).flat_map(|e| (0..k).flat_map(move |i| (0..n).map(move |j| (e, i, j)))).map(|p| {
            let (e, i, j) = p;
            (e * k * n + (j / c0) * (k * c0) + i * c0 + j % c0, p)
        }) {
            nz[to] = at(e, i, j);
        }
        nz
    };
    let (nz, nd4, nz4) = (blocks(32), halves(&w), halves(&blocks(64)));
    every_host(|host| {
        let mut packed = [const { vec![] }; 4];
        let [first, second, third, fourth] = &mut packed;
        pack(host, UnpackedWeight::I8(Tensor::new([e, n / 32, k / 16, 16, 32], &nz).unwrap()), FORMAT_NZ, [e, k, n], first);
        pack(host, UnpackedWeight::I4(Tensor::new([e, k, n / 2], &nd4).unwrap()), FORMAT_ND, [e, k, n], second);
        pack(host, UnpackedWeight::I4(Tensor::new([e, n / 64, k / 16, 16, 32], &nz4).unwrap()), FORMAT_NZ, [e, k, n], third);
        pack(host, UnpackedWeight::I4(Tensor::new([k, n / 2], &nd4[..k * n / 2]).unwrap()), FORMAT_ND, [1, k, n], fourth);
        check(&packed[0], Source::I8, [e, k, n], at, "NZ");
        check(&packed[1], Source::I4, [e, k, n], at, "i4");
        check(&packed[2], Source::I4, [e, k, n], at, "i4 NZ");
        check(&packed[3], Source::I4, [1, k, n], at, "i4 [K,N]");
    });
}

/// Floats of `[e,k,n]`: as a buffer has them, or with K contiguous and gaps between columns.
struct Floats<T> {
    buffer: Buffer<T>,
    columns: Option<Vec<T>>,
    shape: [usize; 3],
}

impl<T: Element + core::fmt::Debug> Floats<T> {
    fn new(shape @ [e, k, n]: [usize; 3], order: Option<Order>, w: &[f32]) -> Floats<T> {
        let w: Vec<T> = w.iter().map(|&w| T::narrow(w)).collect();
        let columns = order.is_none().then(|| {
            let mut columns = vec![w[0]; e * n * (k + 3)];
            for (at, &w) in w.iter().enumerate() {
                columns[(at / (k * n) * n + at % n) * (k + 3) + at / n % k] = w;
            }
            columns
        });
        Floats { buffer: Buffer::new(&shape, order.unwrap_or(Order::Contiguous), &w, w[0]), columns, shape }
    }

    fn view(&self) -> Tensor<'_, T> {
        let [_, k, n] = self.shape;
        match &self.columns {
            Some(columns) => Tensor::strided(self.shape, [n * (k + 3), 1, k + 3], columns).unwrap(),
            None => self.buffer.view(),
        }
    }
}

/// Sizes beyond those of other weights: tasks of 256 columns, on one thread and on two.
#[test]
fn floats_are_quantised_by_column() {
    for [e, k, n] in SIZES.into_iter().chain([[1, 67, 1100], [2, 5, 2100]]) {
        let mut random = Random(7);
        let w: Vec<f32> = (0..e * k * n).map(|_| random.number().clamp(-6e4, 6e4)).collect();
        let kinds: [fn(f32) -> f32; 3] = [|w| w, |w| f16::from_f32(w).to_f32(), |w| bf16::from_f32(w).to_f32()];
        for (kind, narrowed) in kinds.into_iter().enumerate() {
            let (mut q, mut expected) = (vec![0; e * k * n], vec![0; e * n]);
            for column in 0..e * n {
                let at = |i: usize| (column / n * k + i) * n + column % n;
                let mut codes = vec![0; k];
                expected[column] = bits(reference::quantize_row(k, |i| narrowed(w[at(i)]), &mut codes));
                (0..k).for_each(|i| q[at(i)] = codes[i]);
            }
            for order in [Some(Order::Contiguous), Some(Order::Pitched), Some(Order::Transposed), None] {
                let (floats, halves, brains) =
                    (Floats::new([e, k, n], order, &w), Floats::new([e, k, n], order, &w), Floats::new([e, k, n], order, &w));
                every_host(|host| {
                    let weight = match kind {
                        0 => UnpackedWeight::F32(floats.view()),
                        1 => UnpackedWeight::F16(halves.view()),
                        _ => UnpackedWeight::BF16(brains.view()),
                    };
                    let order = order.unwrap_or(Order::Contiguous);
                    let (mut packed, mut scale) = (vec![7; packed_bytes(e, k, n).unwrap()], Buffer::empty(&[e, n], order, -1.0));
                    let bytes = packed.len();
                    let mut call = PackWeight::new(weight, TensorMut::new([bytes], &mut packed).unwrap());
                    call.weight_scale = Some(scale.view_mut());
                    run(host, call).unwrap();
                    check(&packed, Source::I8, [e, k, n], |e, i, j| q[(e * k + i) * n + j], "floats");
                    assert_eq!(scale.values().into_iter().map(bits).collect::<Vec<_>>(), expected);
                });
            }
        }
    }
}

/// Scales that lie between the experts of the weight.
#[test]
fn scales_in_gaps_of_the_weight() {
    let ([e, k, n], pitch) = ([2, 5, 33], 40);
    let expert = (k + 1) * pitch;
    let mut random = Random(9);
    let before: Vec<f32> = (0..e * expert).map(|_| random.number()).collect();
    let (mut codes, mut scales) = (vec![0; e * k * n], vec![0; e * n]);
    for (column, scale) in scales.iter_mut().enumerate() {
        let mut found = vec![0; k];
        let value = |i: usize| before[column / n * expert + i * pitch + column % n];
        *scale = bits(reference::quantize_row(k, value, &mut found));
        (0..k).for_each(|i| codes[(column / n * k + i) * n + column % n] = found[i]);
    }
    every_host(|host| {
        let (mut memory, mut packed) = (before.clone(), vec![7; packed_bytes(e, k, n).unwrap()]);
        let (first, bytes) = (memory.as_mut_ptr(), packed.len());
        let weight = Dims::strided(&[e, k, n], &[expert, pitch, 1]).unwrap();
        let scale = Dims::strided(&[e, n], &[expert, 1]).unwrap();
        // SAFETY: both lie in `memory`, which outlives the call, and share no element.
        let (weight, scale) = unsafe { (Tensor::from_raw(weight, first), TensorMut::from_raw(scale, first.add(k * pitch))) };
        let mut call = PackWeight::new(UnpackedWeight::F32(weight), TensorMut::new([bytes], &mut packed).unwrap());
        call.weight_scale = Some(scale);
        run(host, call).unwrap();
        check(&packed, Source::I8, [e, k, n], |e, i, j| codes[(e * k + i) * n + j], "gaps");
        for (expert, scales) in memory.chunks_exact(expert).zip(scales.chunks_exact(n)) {
            assert_eq!(expert[k * pitch..][..n].iter().copied().map(bits).collect::<Vec<_>>(), scales);
        }
    });
}

/// One matrix may have a dimension of experts or not, and so may its scales.
#[test]
fn pack_weight_scales_of_one_matrix() {
    let values = [1.0f32, -3.0, 0.5, 2.0, 127.0, 0.25];
    for rank in [2, 3] {
        for shape in [&[3][..], &[1, 3]] {
            let (mut packed, mut scale) = (vec![0; packed_bytes(1, 2, 3).unwrap()], [0.0f32; 3]);
            let (bytes, dims) = (packed.len(), Dims::contiguous(&[1, 2, 3][3 - rank..]).unwrap());
            let weight = UnpackedWeight::F32(Tensor::with(dims, &values).unwrap());
            let mut call = PackWeight::new(weight, TensorMut::new([bytes], &mut packed).unwrap());
            let dims = Dims::contiguous(shape).unwrap();
            call.weight_scale = Some(TensorMut::with(dims, &mut scale).unwrap());
            run(&Host::new(), call).unwrap();
            assert_eq!(scale, [2.0 / 127.0, 1.0, 0.5 / 127.0], "rank {rank}, {shape:?}");
        }
    }
}

fn refuses(status: i32, argument: &str, change: impl for<'a> Fn(&mut PackWeight<'a, Host>)) {
    let (weight, mut packed, mut scale) = ([1.0f32; 6], vec![5; packed_bytes(1, 2, 3).unwrap()], [7.0f32; 3]);
    let bytes = packed.len();
    let weight = UnpackedWeight::F32(Tensor::new([2, 3], &weight).unwrap());
    let mut call = PackWeight::new(weight, TensorMut::new([bytes], &mut packed).unwrap());
    call.weight_scale = Some(TensorMut::new([3], &mut scale).unwrap());
    change(&mut call);
    assert_eq!(refused(&Host::new(), call), (status, argument));
    assert!(packed.iter().all(|&b| b == 5) && scale == [7.0; 3]);
}

#[test]
fn pack_weight_refusals() {
    refuses(161001, "weight_scale", |call| call.weight_scale = None);
    refuses(161002, "weight_format", |call| call.weight_format = 1000);
    refuses(161002, "weight_format", |call| call.weight_format = 3);
    refuses(161002, "weight", |call| call.weight = UnpackedWeight::I8(Tensor::new([6], &[0; 6]).unwrap()));
    refuses(161002, "weight", |call| call.weight = UnpackedWeight::I8(Tensor::new([0, 3], &[]).unwrap()));
    refuses(161002, "packed", |call| call.weight = UnpackedWeight::I8(Tensor::new([2, 17], &[0; 34]).unwrap()));
    refuses(161002, "weight", |call| {
        call.weight_format = FORMAT_NZ;
        call.weight = UnpackedWeight::I8(Tensor::new([1, 1, 16, 31], &[0; 16 * 31]).unwrap());
    });
    refuses(161002, "weight_format", |call| {
        call.weight_format = FORMAT_NZ;
        call.weight = UnpackedWeight::F32(Tensor::new([1, 1, 16, 32], &[0.0; 512]).unwrap());
    });
}
