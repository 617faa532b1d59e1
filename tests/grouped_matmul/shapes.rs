//! Tensors that are not contiguous, the largest sizes, and the decoder's SwiGLU as a product of one expert.

use crate::case::{Case, Layouts, Output, UNTOUCHED};
use crate::common::{Buffer, Order, Random, bits, every_host, rounds, run};
use tilekern::ops::*;
use tilekern::{Host, ParallelFor, Tensor, TensorMut};

/// The tensors of a case, each in an order.
struct Spread {
    x: Buffer<i8>,
    w: Buffer<i8>,
    w_scale: Buffer<f32>,
    x_scale: Buffer<f32>,
    list: Buffer<i64>,
    integers: Option<Buffer<i32>>,
    floats: Option<Buffer<f32>>,
    offset: Option<Buffer<f32>>,
    output: Buffer<i8>,
    scales: Buffer<f32>,
    offsets: Buffer<f32>,
}

impl Spread {
    fn new(c: &Case, order: Order) -> Spread {
        let channels = [c.e, c.n];
        Spread {
            x: Buffer::new(&[c.m, c.k], order, &c.x, 99),
            w: Buffer::new(&[c.e, c.k, c.n], order, &c.w, 99),
            w_scale: Buffer::new(&channels, order, &c.w_scale, f32::NAN),
            x_scale: Buffer::new(&[c.m], order, &c.x_scale, f32::NAN),
            list: Buffer::new(&[c.list.len()], order, &c.list, -1),
            integers: c.integers.as_ref().map(|bias| Buffer::new(&channels, order, bias, i32::MIN)),
            floats: c.floats.as_ref().map(|bias| Buffer::new(&channels, order, bias, f32::NAN)),
            offset: c.offset.as_ref().map(|offset| Buffer::new(&channels, order, offset, f32::NAN)),
            output: Buffer::empty(&[c.m, c.n / 2], order, UNTOUCHED.0),
            scales: Buffer::empty(&[c.m], order, UNTOUCHED.1),
            offsets: Buffer::empty(&[c.m], order, UNTOUCHED.1),
        }
    }

    fn run<P: ParallelFor>(mut self, c: &Case, host: &Host<P>) -> Output {
        let mut call = GroupedMatmulSwigluQuant::new(
            self.x.view(),
            GroupedWeight::I8(self.w.view()),
            GroupedScale::Channel(ChannelScale::F32(self.w_scale.view())),
            self.x_scale.view(),
            self.list.view(),
            self.output.view_mut(),
            self.scales.view_mut(),
        );
        (call.group_list_type, call.arithmetic, call.fp16_rounding) = (c.counts.into(), c.arithmetic, c.fp16);
        let floats = self.floats.as_ref().map(|bias| Bias::F32(bias.view()));
        call.bias = self.integers.as_ref().map(|bias| Bias::I32(bias.view())).or(floats);
        call.offset = self.offset.as_ref().map(Buffer::view);
        call.output_offset = c.asymmetric.then(|| self.offsets.view_mut());
        run(host, call).unwrap();
        let all = |numbers: Vec<f32>| numbers.into_iter().map(bits).collect();
        Output { q: self.output.values(), scale: all(self.scales.values()), offset: all(self.offsets.values()) }
    }
}

#[test]
fn grouped_matmul_strides_do_not_matter() {
    let mut random = Random(81);
    for number in 0..rounds(30) {
        let case = Case::random(&mut random);
        let expected = case.expected();
        for order in [Order::Pitched, Order::Transposed] {
            every_host(|host| {
                let found = Spread::new(&case, order).run(&case, host);
                assert!(found == expected, "call {number} on {}, {order:?}", host.isa().name());
            });
        }
    }
}

/// Sums of 2^30 with a bias at either end of its range, and more columns than the NPU takes.
#[test]
fn grouped_matmul_largest_sizes() {
    let lowest = |_: usize| i8::MIN;
    let mut random = Random(82);
    let mut long = Case { m: 2, k: 65_536, n: 18, e: 1, list: vec![2], arithmetic: 1, ..Case::default() };
    long.x = (0..long.m * long.k).map(lowest).collect();
    long.w = (0..long.k * long.n).map(lowest).collect();
    long.x_scale = vec![1e-9; long.m];
    long.w_scale = (0..long.n).map(|_| random.unit()).collect();
    let mut wide = Case { m: 3, k: 20, n: 11_264, e: 2, list: vec![1, 2], arithmetic: 2, ..Case::default() };
    wide.x = (0..wide.m * wide.k).map(|_| random.int8()).collect();
    wide.w = (0..wide.e * wide.k * wide.n).map(|_| random.int8()).collect();
    wide.x_scale = (0..wide.m).map(|_| random.unit() * 0.05).collect();
    wide.w_scale = (0..wide.e * wide.n).map(|_| random.unit() * 0.02).collect();
    for mut case in [long, wide] {
        case.integers = Some((0..case.e * case.n).map(|n| if n % 3 == 0 { i32::MIN } else { i32::MAX }).collect());
        let expected = case.expected();
        every_host(|host| {
            let (result, found) = case.run(host, |_, _| {}, &Layouts::default());
            assert!(result == Ok(()) && found == expected, "{}: K {} N {}", host.isa().name(), case.k, case.n);
        });
    }
}

#[test]
fn grouped_matmul_of_one_expert_is_the_decoders_swiglu() {
    let mut random = Random(83);
    let (m, k, half) = (5, 70, 33);
    let mut bytes = |count: usize| -> Vec<i8> { (0..count).map(|_| random.int8()).collect() };
    let (x, w) = (bytes(m * k), bytes(k * 2 * half));
    let mut unit = |count: usize| -> Vec<f32> { (0..count).map(|_| random.unit() * 0.02).collect() };
    let (w_scale, x_scale) = (unit(2 * half), unit(m));
    let sum = |row: usize, n: usize| (0..k).map(|i| i32::from(x[row * k + i]) * i32::from(w[i * 2 * half + n])).sum::<i32>();
    let product = |from: usize| -> Vec<i32> { (0..m * half).map(|at| sum(at / half, from + at % half)).collect() };
    let (w1, w3, end) = (product(0), product(half), [m as i64]);
    every_host(|host| {
        let (mut q, mut scale, mut expected, mut expected_scale) =
            (vec![0; m * half], vec![0.0; m], vec![0; m * half], vec![0.0; m]);
        let call = GroupedMatmulSwigluQuant::new(
            Tensor::new([m, k], &x).unwrap(),
            GroupedWeight::I8(Tensor::new([1, k, 2 * half], &w).unwrap()),
            GroupedScale::Channel(ChannelScale::F32(Tensor::new([1, 2 * half], &w_scale).unwrap())),
            Tensor::new([m], &x_scale).unwrap(),
            Tensor::new([1], &end).unwrap(),
            TensorMut::new([m, half], &mut q).unwrap(),
            TensorMut::new([m], &mut scale).unwrap(),
        );
        run(host, call).unwrap();
        let call = DequantSwigluQuant::new(
            Tensor::new([m, half], &w1).unwrap(),
            Tensor::new([m, half], &w3).unwrap(),
            Tensor::new([m], &x_scale).unwrap(),
            Tensor::new([half], &w_scale[..half]).unwrap(),
            Tensor::new([half], &w_scale[half..]).unwrap(),
            TensorMut::new([m, half], &mut expected).unwrap(),
            TensorMut::new([m], &mut expected_scale).unwrap(),
        );
        run(host, call).unwrap();
        let scales = |scales: Vec<f32>| scales.into_iter().map(bits).collect::<Vec<_>>();
        assert_eq!((q, scales(scale)), (expected, scales(expected_scale)), "{}", host.isa().name());
    });
}
