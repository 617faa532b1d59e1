//! DequantResidual and DequantResidualRmsNormQuant: every dtype, strides, threads, refusals, and the fused call against its two
//! halves.

use crate::common::{Buffer, Order, Random, bits, every_host, refused, run, shape_only, shape_only_mut};
use half::{bf16, f16};
use tilekern::ops::{DequantResidual, DequantResidualRmsNormQuant, RmsNormQuant};
use tilekern::{Host, ParallelFor, Tensor, TensorMut};
use tilekern_kernels::element::Element;
use tilekern_kernels::reference;

struct Case<T> {
    input: Buffer<i32>,
    input_scale: Buffer<f32>,
    weight_scale: Buffer<f32>,
    residual: Buffer<T>,
    gamma: Buffer<T>,
    output: Buffer<i8>,
    output_scale: Buffer<f32>,
    hidden: Buffer<T>,
    /// What `hidden` has to hold.
    sums: Vec<T>,
}

fn case<T: Element + std::fmt::Debug>([rows, columns]: [usize; 2], order: Order) -> Case<T> {
    let mut random = Random(1);
    let n = rows * columns;
    let input: Vec<i32> = (0..n).map(|_| random.bits() as i32 >> 12).collect();
    let input_scale: Vec<f32> = (0..rows).map(|_| random.unit() * 1e-2).collect();
    let weight_scale: Vec<f32> = (0..columns).map(|_| random.unit() * 1e-2).collect();
    let residual: Vec<T> = (0..n).map(|_| T::narrow(random.unit() * 8.0)).collect();
    let gamma: Vec<T> = (0..columns).map(|_| T::narrow(random.unit())).collect();
    let mut sums = vec![T::default(); n];
    for row in 0..rows {
        let at = row * columns..(row + 1) * columns;
        let (input, residual) = (&input[at.clone()], &residual[at.clone()]);
        reference::dequant_residual(input, input_scale[row], &weight_scale, residual, &mut sums[at]);
    }
    let rubbish = T::narrow(-7.5);
    Case {
        input: Buffer::new(&[rows, columns], order, &input, 0),
        input_scale: Buffer::new(&[rows], order, &input_scale, 0.0),
        weight_scale: Buffer::new(&[columns], order, &weight_scale, 0.0),
        residual: Buffer::new(&[rows, columns], order, &residual, rubbish),
        gamma: Buffer::new(&[columns], order, &gamma, rubbish),
        output: Buffer::empty(&[rows, columns], order, 55),
        output_scale: Buffer::empty(&[rows], order, -7.5),
        hidden: Buffer::empty(&[rows, columns], order, rubbish),
        sums,
    }
}

impl<T: Element + std::fmt::Debug> Case<T> {
    fn sum<P: ParallelFor>(&mut self) -> DequantResidual<'_, Host<P>, T> {
        DequantResidual::new(
            self.input.view(),
            self.input_scale.view(),
            self.weight_scale.view(),
            self.residual.view(),
            self.hidden.view_mut(),
        )
    }

    fn norm<P: ParallelFor>(&mut self) -> DequantResidualRmsNormQuant<'_, Host<P>, T> {
        DequantResidualRmsNormQuant::new(
            self.input.view(),
            self.input_scale.view(),
            self.weight_scale.view(),
            self.residual.view(),
            self.gamma.view(),
            self.output.view_mut(),
            self.output_scale.view_mut(),
            self.hidden.view_mut(),
        )
    }
}

fn all_bits<T: Element>(x: &[T]) -> Vec<u32> {
    x.iter().map(|x| bits(x.as_())).collect()
}

fn adds_and_norms<T: Element + std::fmt::Debug>() {
    // The last one is cut into several tasks.
    for [rows, columns] in [[1, 1], [3, 16], [5, 37], [2, 172], [12, 700]] {
        for order in [Order::Contiguous, Order::Pitched, Order::Transposed] {
            every_host(|host| {
                let context = format!("{} {rows}x{columns} {order:?}", host.isa().name());
                let mut plain = case::<T>([rows, columns], order);
                run(host, plain.sum()).unwrap();
                assert_eq!(all_bits(&plain.hidden.values()), all_bits(&plain.sums), "{context}");

                let mut fused = case::<T>([rows, columns], order);
                run(host, DequantResidualRmsNormQuant { eps: 1e-3, ..fused.norm() }).unwrap();
                assert_eq!(all_bits(&fused.hidden.values()), all_bits(&plain.sums), "{context}");
                let second = RmsNormQuant {
                    eps: 1e-3,
                    ..RmsNormQuant::new(
                        plain.hidden.view(),
                        plain.gamma.view(),
                        plain.output.view_mut(),
                        plain.output_scale.view_mut(),
                    )
                };
                run(host, second).unwrap();
                assert_eq!(fused.output.values(), plain.output.values(), "{context}");
                assert_eq!(all_bits(&fused.output_scale.values()), all_bits(&plain.output_scale.values()), "{context}");

                let mut quantised = vec![0; columns];
                let row = &fused.sums[(rows - 1) * columns..];
                let scale = reference::rms_norm_quant(row, &fused.gamma.values(), 1e-3, &mut quantised);
                assert_eq!(fused.output.values()[(rows - 1) * columns..], quantised, "{context}");
                assert_eq!(bits(fused.output_scale.values()[rows - 1]), bits(scale), "{context}");
            });
        }
    }
}

#[test]
fn f32_rows() {
    adds_and_norms::<f32>();
}

#[test]
fn half_rows() {
    adds_and_norms::<f16>();
    adds_and_norms::<bf16>();
}

#[test]
fn no_rows_write_nothing() {
    let gamma = Tensor::new([2], &[1.0f32; 2]).unwrap();
    let call = DequantResidualRmsNormQuant::new(
        Tensor::new([0, 2], &[]).unwrap(),
        Tensor::new([0], &[]).unwrap(),
        gamma,
        Tensor::new([0, 2], &[]).unwrap(),
        gamma,
        TensorMut::new([0, 2], &mut []).unwrap(),
        TensorMut::new([0], &mut []).unwrap(),
        TensorMut::new([0, 2], &mut []).unwrap(),
    );
    assert_eq!(run(&Host::new(), call), Ok(()));
}

fn untouched(case: &Case<f32>) -> bool {
    case.hidden.values().iter().chain(&case.output_scale.values()).all(|&y| y == -7.5)
        && case.output.values().iter().all(|&y| y == 55)
}

/// One changed argument, and the refusal that names it; nothing is written.
fn norm_refuses(status: i32, argument: &str, change: impl for<'a> Fn(&mut DequantResidualRmsNormQuant<'a, Host, f32>)) {
    let mut case = case([3, 6], Order::Contiguous);
    let mut call = case.norm();
    change(&mut call);
    assert_eq!(refused(&Host::new(), call), (status, argument));
    assert!(untouched(&case));
}

#[test]
fn refusals_of_the_norm() {
    norm_refuses(161001, "input", |call| call.input = shape_only(&[3, 6]));
    norm_refuses(161001, "input_scale", |call| call.input_scale = shape_only(&[3]));
    norm_refuses(161001, "weight_scale", |call| call.weight_scale = shape_only(&[6]));
    norm_refuses(161001, "residual", |call| call.residual = shape_only(&[3, 6]));
    norm_refuses(161001, "gamma", |call| call.gamma = shape_only(&[6]));
    norm_refuses(161001, "output", |call| call.output = shape_only_mut(&[3, 6]));
    norm_refuses(161001, "output_scale", |call| call.output_scale = shape_only_mut(&[3]));
    norm_refuses(161001, "hidden", |call| call.hidden = shape_only_mut(&[3, 6]));
    norm_refuses(161002, "input", |call| call.input = shape_only(&[3, 0]));
    norm_refuses(161002, "input", |call| call.input = shape_only(&[1, 3, 6]));
    norm_refuses(161002, "input_scale", |call| call.input_scale = shape_only(&[6]));
    norm_refuses(161002, "weight_scale", |call| call.weight_scale = shape_only(&[3]));
    norm_refuses(161002, "residual", |call| call.residual = shape_only(&[6, 3]));
    norm_refuses(161002, "gamma", |call| call.gamma = shape_only(&[1, 6]));
    norm_refuses(161002, "output", |call| call.output = shape_only_mut(&[3, 7]));
    norm_refuses(161002, "output_scale", |call| call.output_scale = shape_only_mut(&[4]));
    norm_refuses(161002, "hidden", |call| call.hidden = shape_only_mut(&[18]));
    norm_refuses(161002, "eps", |call| call.eps = -1e-9);
    norm_refuses(161002, "eps", |call| call.eps = f64::NAN);
}

#[test]
fn refusals_of_the_sum() {
    let refuses = |status, argument, change: &dyn Fn(&mut DequantResidual<'_, Host, f32>)| {
        let mut case = case([3, 6], Order::Contiguous);
        let mut call = case.sum();
        change(&mut call);
        assert_eq!(refused(&Host::new(), call), (status, argument));
        assert!(untouched(&case));
    };
    refuses(161001, "input", &|call| call.input = shape_only(&[3, 6]));
    refuses(161001, "residual", &|call| call.residual = shape_only(&[3, 6]));
    refuses(161001, "output", &|call| call.output = shape_only_mut(&[3, 6]));
    refuses(161002, "input", &|call| call.input = shape_only(&[18]));
    refuses(161002, "input_scale", &|call| call.input_scale = shape_only(&[4]));
    refuses(161002, "weight_scale", &|call| call.weight_scale = shape_only(&[5]));
    refuses(161002, "residual", &|call| call.residual = shape_only(&[3, 5]));
    refuses(161002, "output", &|call| call.output = shape_only_mut(&[2, 6]));
}

#[test]
fn an_output_overlaps_nothing() {
    let mut case = case::<f32>([3, 6], Order::Contiguous);
    let mut memory = [0.0f32; 24];
    let dims = tilekern::Dims::contiguous(&[3, 6]).unwrap();
    let first = memory.as_mut_ptr();
    // SAFETY: the call refuses the overlap before it touches the memory.
    let (hidden, residual) = unsafe { (TensorMut::from_raw(dims, first), Tensor::from_raw(dims, first.add(6))) };
    let call = DequantResidualRmsNormQuant { hidden, residual, ..case.norm() };
    assert_eq!(refused(&Host::new(), call), (161002, "hidden"));
    let output = TensorMut::strided([3, 6], [3, 1], &mut memory).unwrap();
    assert_eq!(refused(&Host::new(), DequantResidual { output, ..case.sum() }), (161002, "output"));
    // Nor where a stride that no row takes cannot be told in bytes.
    let mut case = self::case::<f32>([1, 6], Order::Contiguous);
    let dims = tilekern::Dims::strided(&[1, 6], &[usize::MAX, 1]).unwrap();
    // SAFETY: as above.
    let (output, residual) = unsafe { (TensorMut::from_raw(dims, first), Tensor::from_raw(dims, first)) };
    assert_eq!(refused(&Host::new(), DequantResidual { output, residual, ..case.sum() }), (161002, "output"));
}
