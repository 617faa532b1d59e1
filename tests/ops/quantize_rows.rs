//! QuantizeRows: rows and heads, every dtype, strides, threads and refusals.

use crate::common::{Buffer, Order, Random, bits, every_host, refused, run, shape_only, shape_only_mut};
use half::{bf16, f16};
use tilekern::ops::QuantizeRows;
use tilekern::{Host, ParallelFor, Tensor, TensorMut};
use tilekern_kernels::element::Element;
use tilekern_kernels::reference;

struct Case<T> {
    input: Buffer<T>,
    output: Buffer<i8>,
    output_scale: Buffer<f32>,
    quantised: Vec<i8>,
    scales: Vec<f32>,
}

/// `[M,N]` or `[B,heads,S,D]`; one row is zero and one holds a NaN.
fn case<T: Element + std::fmt::Debug>(shape: &[usize], order: Order) -> Case<T> {
    let mut random = Random(1);
    let (rows, columns, to) = match *shape {
        [rows, columns] => (rows, columns, vec![rows, columns]),
        [batch, heads, tokens, size] => (batch * tokens, heads * size, vec![batch, tokens, heads * size]),
        _ => unreachable!(),
    };
    let mut flat: Vec<T> = (0..rows * columns).map(|_| T::narrow(random.number())).collect();
    if rows > 2 {
        flat[columns..2 * columns].fill(T::default());
        flat[2 * columns] = T::narrow(f32::NAN);
    }
    let (mut quantised, mut scales) = (vec![0; flat.len()], vec![0.0; rows]);
    for row in 0..rows {
        let at = row * columns..(row + 1) * columns;
        let x = &flat[at.clone()];
        scales[row] = reference::quantize_row(columns, |i| x[i].as_(), &mut quantised[at]);
    }
    let mut input = flat.clone();
    if let [_, heads, tokens, size] = *shape {
        for (i, x) in input.iter_mut().enumerate() {
            let (d, s, h, b) = (i % size, i / size % tokens, i / size / tokens % heads, i / size / tokens / heads);
            *x = flat[((b * tokens + s) * heads + h) * size + d];
        }
    }
    Case {
        input: Buffer::new(shape, order, &input, T::narrow(99.0)),
        output: Buffer::empty(&to, order, 55),
        output_scale: Buffer::empty(&[rows], order, -7.5),
        quantised,
        scales,
    }
}

impl<T: Element + std::fmt::Debug> Case<T> {
    fn call<P: ParallelFor>(&mut self) -> QuantizeRows<'_, Host<P>, T> {
        QuantizeRows::new(self.input.view(), self.output.view_mut(), self.output_scale.view_mut())
    }
}

fn quantises<T: Element + std::fmt::Debug>() {
    // The last of each rank is cut into several tasks.
    let shapes: [&[usize]; 7] = [&[1, 1], &[5, 37], &[40, 600], &[2, 3, 1, 8], &[1, 5, 3, 7], &[2, 2, 3, 48], &[2, 5, 20, 64]];
    for shape in shapes {
        for order in [Order::Contiguous, Order::Pitched, Order::Transposed] {
            every_host(|host| {
                let mut case = case::<T>(shape, order);
                run(host, case.call()).unwrap();
                let context = format!("{} {shape:?} {order:?}", host.isa().name());
                assert_eq!(case.output.values(), case.quantised, "{context}");
                let found: Vec<u32> = case.output_scale.values().iter().map(|&x| bits(x)).collect();
                assert_eq!(found, case.scales.iter().map(|&x| bits(x)).collect::<Vec<_>>(), "{context}");
            });
        }
    }
}

#[test]
fn quantises_f32() {
    quantises::<f32>();
}

#[test]
fn quantises_halves() {
    quantises::<f16>();
    quantises::<bf16>();
}

#[test]
fn close_to_the_numbers() {
    let x: Vec<f32> = (0..999).map(|i| (i as f32 * 0.37).sin() * 3.0).collect();
    let (mut y, mut scale) = ([0i8; 999], [0.0f32]);
    let input = Tensor::new([3, 333], &x).unwrap();
    let mut scales = [0.0f32; 3];
    let output = TensorMut::new([3, 333], &mut y).unwrap();
    run(&Host::new(), QuantizeRows::new(input, output, TensorMut::new([3], &mut scales).unwrap())).unwrap();
    for i in 0..999 {
        scale[0] = scales[i / 333];
        assert!((f64::from(y[i]) * f64::from(scale[0]) - f64::from(x[i])).abs() <= 0.500_01 * f64::from(scale[0]));
    }
}

#[test]
fn no_rows_write_nothing() {
    let output = TensorMut::new([0, 2, 12], &mut []).unwrap();
    let input = Tensor::<f32>::new([0, 3, 2, 4], &[]).unwrap();
    let call = QuantizeRows::new(input, output, TensorMut::new([0], &mut []).unwrap());
    assert_eq!(run(&Host::new(), call), Ok(()));
}

/// One changed argument, and the refusal that names it; nothing is written.
fn refuses(shape: &[usize], status: i32, argument: &str, change: impl for<'a> Fn(&mut QuantizeRows<'a, Host, f32>)) {
    let mut case = case(shape, Order::Contiguous);
    let mut call = case.call();
    change(&mut call);
    assert_eq!(refused(&Host::new(), call), (status, argument));
    assert!(case.output.values().iter().all(|&y| y == 55));
    assert!(case.output_scale.values().iter().all(|&y| y == -7.5));
}

#[test]
fn refusals() {
    refuses(&[4, 6], 161001, "input", |call| call.input = shape_only(&[4, 6]));
    refuses(&[4, 6], 161001, "output", |call| call.output = shape_only_mut(&[4, 6]));
    refuses(&[4, 6], 161001, "output_scale", |call| call.output_scale = shape_only_mut(&[4]));
    refuses(&[4, 6], 161002, "input", |call| call.input = shape_only(&[2, 2, 6]));
    refuses(&[4, 6], 161002, "input", |call| call.input = shape_only(&[4, 0]));
    refuses(&[4, 6], 161002, "input", |call| call.input = shape_only(&[24]));
    refuses(&[4, 6], 161002, "output", |call| call.output = shape_only_mut(&[4, 5]));
    refuses(&[4, 6], 161002, "output_scale", |call| call.output_scale = shape_only_mut(&[3]));
    refuses(&[2, 3, 2, 4], 161002, "input", |call| call.input = shape_only(&[2, 0, 2, 4]));
    refuses(&[2, 3, 2, 4], 161002, "output", |call| call.output = shape_only_mut(&[4, 12]));
    refuses(&[2, 3, 2, 4], 161002, "output_scale", |call| call.output_scale = shape_only_mut(&[2]));
}

#[test]
fn an_output_overlaps_nothing() {
    let mut memory = [0i8; 24];
    let mut case = case::<f32>(&[4, 6], Order::Contiguous);
    let output = TensorMut::strided([4, 6], [5, 1], &mut memory).unwrap();
    assert_eq!(refused(&Host::new(), QuantizeRows { output, ..case.call() }), (161002, "output"));
    let mut memory = [0.0f32];
    let output_scale = TensorMut::strided([4], [0], &mut memory).unwrap();
    assert_eq!(refused(&Host::new(), QuantizeRows { output_scale, ..case.call() }), (161002, "output_scale"));
}
