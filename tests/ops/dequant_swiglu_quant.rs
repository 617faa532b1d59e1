//! DequantSwigluQuant: rows of any length, strides, threads and refusals.

use crate::common::{Buffer, Order, Random, bits, every_host, refused, run, shape_only, shape_only_mut};
use tilekern::ops::DequantSwigluQuant;
use tilekern::{Host, ParallelFor, Tensor, TensorMut};
use tilekern_kernels::reference;

struct Case {
    w1: Buffer<i32>,
    w3: Buffer<i32>,
    input_scale: Buffer<f32>,
    w1_scale: Buffer<f32>,
    w3_scale: Buffer<f32>,
    output: Buffer<i8>,
    output_scale: Buffer<f32>,
    quantised: Vec<i8>,
    scales: Vec<f32>,
}

fn case([rows, columns]: [usize; 2], order: Order) -> Case {
    let mut random = Random(1);
    let mut sums = || -> Vec<i32> { (0..rows * columns).map(|_| random.bits() as i32 >> 14).collect() };
    let (w1, w3) = (sums(), sums());
    let mut scale = |n| -> Vec<f32> { (0..n).map(|_| random.unit() * 2e-2).collect() };
    let (mut input_scale, w1_scale, w3_scale) = (scale(rows), scale(columns), scale(columns));
    if rows > 2 {
        (input_scale[0], input_scale[1]) = (0.0, f32::INFINITY);
    }
    let (mut quantised, mut scales) = (vec![0; rows * columns], vec![0.0; rows]);
    for row in 0..rows {
        let at = row * columns;
        let value = |i| {
            let a = reference::dequant(w1[at + i], input_scale[row], w1_scale[i]);
            reference::swiglu(a, reference::dequant(w3[at + i], input_scale[row], w3_scale[i]))
        };
        scales[row] = reference::quantize_row(columns, value, &mut quantised[at..at + columns]);
    }
    Case {
        w1: Buffer::new(&[rows, columns], order, &w1, 0),
        w3: Buffer::new(&[rows, columns], order, &w3, 0),
        input_scale: Buffer::new(&[rows], order, &input_scale, 0.0),
        w1_scale: Buffer::new(&[columns], order, &w1_scale, 0.0),
        w3_scale: Buffer::new(&[columns], order, &w3_scale, 0.0),
        output: Buffer::empty(&[rows, columns], order, 55),
        output_scale: Buffer::empty(&[rows], order, -7.5),
        quantised,
        scales,
    }
}

impl Case {
    fn call<P: ParallelFor>(&mut self) -> DequantSwigluQuant<'_, Host<P>> {
        DequantSwigluQuant::new(
            self.w1.view(),
            self.w3.view(),
            self.input_scale.view(),
            self.w1_scale.view(),
            self.w3_scale.view(),
            self.output.view_mut(),
            self.output_scale.view_mut(),
        )
    }
}

#[test]
fn rows_of_every_length_and_order() {
    // The last one is cut into several tasks.
    for [rows, columns] in [[1, 1], [3, 16], [5, 37], [4, 172], [12, 700]] {
        for order in [Order::Contiguous, Order::Pitched, Order::Transposed] {
            every_host(|host| {
                let mut case = case([rows, columns], order);
                run(host, case.call()).unwrap();
                let context = format!("{} {rows}x{columns} {order:?}", host.isa().name());
                assert_eq!(case.output.values(), case.quantised, "{context}");
                let found: Vec<u32> = case.output_scale.values().iter().map(|&x| bits(x)).collect();
                assert_eq!(found, case.scales.iter().map(|&x| bits(x)).collect::<Vec<_>>(), "{context}");
            });
        }
    }
}

#[test]
fn no_rows_write_nothing() {
    let scale = Tensor::new([2], &[1.0f32; 2]).unwrap();
    let sums = Tensor::new([0, 2], &[]).unwrap();
    let (output, output_scale) = (TensorMut::new([0, 2], &mut []).unwrap(), TensorMut::new([0], &mut []).unwrap());
    let call = DequantSwigluQuant::new(sums, sums, Tensor::new([0], &[]).unwrap(), scale, scale, output, output_scale);
    assert_eq!(run(&Host::new(), call), Ok(()));
}

/// One changed argument, and the refusal that names it; nothing is written.
fn refuses(status: i32, argument: &str, change: impl for<'a> Fn(&mut DequantSwigluQuant<'a, Host>)) {
    let mut case = case([3, 6], Order::Contiguous);
    let mut call = case.call();
    change(&mut call);
    assert_eq!(refused(&Host::new(), call), (status, argument));
    assert!(case.output.values().iter().all(|&y| y == 55));
    assert!(case.output_scale.values().iter().all(|&y| y == -7.5));
}

#[test]
fn refusals() {
    refuses(161001, "w1", |call| call.w1 = shape_only(&[3, 6]));
    refuses(161001, "w3", |call| call.w3 = shape_only(&[3, 6]));
    refuses(161001, "input_scale", |call| call.input_scale = shape_only(&[3]));
    refuses(161001, "w1_scale", |call| call.w1_scale = shape_only(&[6]));
    refuses(161001, "w3_scale", |call| call.w3_scale = shape_only(&[6]));
    refuses(161001, "output", |call| call.output = shape_only_mut(&[3, 6]));
    refuses(161001, "output_scale", |call| call.output_scale = shape_only_mut(&[3]));
    refuses(161002, "w1", |call| call.w1 = shape_only(&[3, 0]));
    refuses(161002, "w1", |call| call.w1 = shape_only(&[18]));
    refuses(161002, "w3", |call| call.w3 = shape_only(&[3, 7]));
    refuses(161002, "input_scale", |call| call.input_scale = shape_only(&[6]));
    refuses(161002, "w1_scale", |call| call.w1_scale = shape_only(&[3]));
    refuses(161002, "w3_scale", |call| call.w3_scale = shape_only(&[12]));
    refuses(161002, "output", |call| call.output = shape_only_mut(&[3, 12]));
    refuses(161002, "output_scale", |call| call.output_scale = shape_only_mut(&[2]));
}

#[test]
fn an_output_overlaps_nothing() {
    let mut memory = [0i8; 24];
    let mut case = case([3, 6], Order::Contiguous);
    let output = TensorMut::strided([3, 6], [1, 2], &mut memory).unwrap();
    assert_eq!(refused(&Host::new(), DequantSwigluQuant { output, ..case.call() }), (161002, "output"));
}
