//! UpdateLogits: the last token, finished rows, probabilities, strides, threads and refusals.

use crate::common::{Buffer, LENGTHS, Order, Random, bits, every_host, refused, run, shape_only, shape_only_mut};
use tilekern::ops::UpdateLogits;
use tilekern::{Host, ParallelFor, Tensor, TensorMut};

const ORDERS: [Order; 3] = [Order::Contiguous, Order::Pitched, Order::Transposed];

struct Case {
    logits: Buffer<f32>,
    finished: Buffer<u8>,
    output: Buffer<f32>,
    /// The last row of each batch row.
    rows: Vec<Vec<f32>>,
    ended: Vec<bool>,
}

/// `sizes` are batch, tokens and vocabulary.
fn case(sizes: [usize; 3], order: Order) -> Case {
    let [batch, tokens, vocabulary] = sizes;
    let mut random = Random(3);
    let logits: Vec<f32> = (0..batch * tokens * vocabulary).map(|_| random.number()).collect();
    // Any byte but 0 is true.
    let finished: Vec<u8> = (0..batch).map(|_| [0, 0, 1, 2][random.below(4)]).collect();
    let last = |b: usize| logits[((b + 1) * tokens - 1) * vocabulary..][..vocabulary].to_vec();
    Case {
        logits: Buffer::new(&sizes, order, &logits, 0.0),
        finished: Buffer::new(&[batch], order, &finished, 9),
        output: Buffer::empty(&[batch, vocabulary], order, -7.5),
        rows: (0..batch).map(last).collect(),
        ended: finished.iter().map(|&byte| byte != 0).collect(),
    }
}

impl Case {
    fn call<P: ParallelFor>(&mut self) -> UpdateLogits<'_, Host<P>> {
        let mut call = UpdateLogits::new(self.logits.view(), self.output.view_mut());
        (call.finished, call.end_id) = (Some(self.finished.view()), 0);
        call
    }
}

fn all_bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|&x| bits(x)).collect()
}

#[test]
fn the_last_token_is_copied() {
    for sizes in [[1, 1, 1], [3, 2, 7], [5, 3, 16], [4, 1, 17], [64, 2, 700]] {
        for order in ORDERS {
            every_host(|host| {
                let mut case = case(sizes, order);
                run(host, UpdateLogits { end_id: sizes[2] as i32 - 1, ..case.call() }).unwrap();
                let row = |b: usize| match case.ended[b] {
                    true => (0..sizes[2]).map(|v| if v == sizes[2] - 1 { f32::MAX } else { -f32::MAX }).collect(),
                    false => case.rows[b].clone(),
                };
                let expected: Vec<f32> = (0..sizes[0]).flat_map(row).collect();
                assert_eq!(all_bits(&case.output.values()), all_bits(&expected), "{sizes:?} {order:?}");
            });
        }
    }
}

#[test]
fn bits_are_copied() {
    let odd = [f32::NAN, f32::INFINITY, -0.0, f32::from_bits(1), f32::NEG_INFINITY];
    let mut output = [9.0; 5];
    run(&Host::new(), UpdateLogits::new(Tensor::new([1, 1, 5], &odd).unwrap(), TensorMut::new([1, 5], &mut output).unwrap()))
        .unwrap();
    assert_eq!(output.map(f32::to_bits), odd.map(f32::to_bits));
}

/// In `f64`; a NaN as -inf, +inf as the largest finite number.
fn softmax(row: &[f32]) -> Vec<f64> {
    let logit = |x: f32| if x.is_nan() { f64::NEG_INFINITY } else { f64::from(x.min(f32::MAX)) };
    let max = row.iter().fold(f64::NEG_INFINITY, |max, &x| max.max(logit(x)));
    if max == f64::NEG_INFINITY {
        return vec![0.0; row.len()];
    }
    let sum: f64 = row.iter().map(|&x| (logit(x) - max).exp()).sum();
    row.iter().map(|&x| (logit(x) - max).exp() / sum).collect()
}

fn check_softmax(row: &[f32], output: &[f32], context: &str) {
    for (output, expected) in output.iter().zip(softmax(row)) {
        let error = (f64::from(*output) - expected).abs();
        assert!(error <= 1e-6 * expected + 1e-37, "{context}: {output} {expected}");
    }
}

#[test]
fn probabilities() {
    for sizes in LENGTHS.map(|n| [3, 2, n]).into_iter().chain([[40, 1, 1000]]) {
        for order in ORDERS {
            let first = std::sync::Mutex::new(Vec::new());
            every_host(|host| {
                let mut case = case(sizes, order);
                run(host, UpdateLogits { softmax: true, ..case.call() }).unwrap();
                let output = case.output.values();
                let context = format!("{} {sizes:?} {order:?}", host.isa().name());
                for (b, output) in output.chunks(sizes[2]).enumerate() {
                    match case.ended[b] {
                        true => assert!(output[0] == 1.0 && output[1..].iter().all(|&x| x == 0.0), "{context}"),
                        false => check_softmax(&case.rows[b], output, &context),
                    }
                }
                // One result on every instruction set and number of threads.
                let mut first = first.lock().unwrap();
                if first.is_empty() {
                    *first = all_bits(&output);
                }
                assert_eq!(all_bits(&output), *first, "{context}");
            });
        }
    }
}

#[test]
fn odd_logits_have_probabilities() {
    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;
    const BIG: f32 = f32::MAX;
    every_host(|host| {
        let of = |row: &[f32]| {
            let mut output = vec![9.0; row.len()];
            let logits = Tensor::new([1, 1, row.len()], row).unwrap();
            let call = UpdateLogits::new(logits, TensorMut::new([1, row.len()], &mut output).unwrap());
            run(host, UpdateLogits { softmax: true, ..call }).unwrap();
            output
        };
        assert_eq!(of(&[1.0]), [1.0]);
        assert_eq!(of(&[NAN, 2.0, NAN, 2.0]), [0.0, 0.5, 0.0, 0.5]);
        assert_eq!(of(&[INF, 2.0, BIG, -INF]), [0.5, 0.0, 0.5, 0.0]);
        assert_eq!(of(&[-INF; 17]), [0.0; 17]);
        assert_eq!(of(&[NAN, -INF]), [0.0, 0.0]);
        assert_eq!(of(&[-BIG, -BIG]), [0.5, 0.5]);
        assert_eq!(of(&[-BIG, BIG]), [0.0, 1.0]);
    });
}

#[test]
fn finished_may_be_a_column() {
    let mut case = case([2, 1, 3], Order::Contiguous);
    run(&Host::new(), UpdateLogits { finished: Some(Tensor::new([2, 1], &[0, 1]).unwrap()), ..case.call() }).unwrap();
    let output = case.output.values();
    assert_eq!(output[3..], [f32::MAX, -f32::MAX, -f32::MAX]);
    assert_eq!(all_bits(&output[..3]), all_bits(&case.rows[0]));
}

#[test]
fn no_rows_write_nothing() {
    let logits = Tensor::new([0, 2, 3], &[]).unwrap();
    assert_eq!(run(&Host::new(), UpdateLogits::new(logits, TensorMut::new([0, 3], &mut []).unwrap())), Ok(()));
    // Of any length.
    let dims = |shape: &[usize]| tilekern::Dims::contiguous(shape).unwrap();
    let logits = Tensor::with(dims(&[0, 1, usize::MAX / 8]), &[]).unwrap();
    let output = TensorMut::with(dims(&[0, usize::MAX / 8]), &mut []).unwrap();
    assert_eq!(run(&Host::new(), UpdateLogits::new(logits, output)), Ok(()));
}

/// One changed argument, and the refusal that names it; nothing is written.
fn refuses(status: i32, argument: &str, change: impl for<'a> Fn(&mut UpdateLogits<'a, Host>)) {
    let mut case = case([2, 3, 4], Order::Contiguous);
    let before = case.output.values();
    let mut call = case.call();
    change(&mut call);
    assert_eq!(refused(&Host::new(), call), (status, argument));
    assert_eq!(case.output.values(), before);
}

#[test]
fn refusals() {
    refuses(161001, "logits", |call| call.logits = shape_only(&[2, 3, 4]));
    refuses(161001, "finished", |call| call.finished = Some(shape_only(&[2])));
    refuses(161001, "output", |call| call.output = shape_only_mut(&[2, 4]));
    refuses(161002, "logits", |call| call.logits = shape_only(&[2, 4]));
    refuses(161002, "logits", |call| call.logits = shape_only(&[2, 0, 4]));
    refuses(161002, "logits", |call| call.logits = shape_only(&[2, 3, 0]));
    refuses(161002, "finished", |call| call.finished = Some(shape_only(&[3])));
    refuses(161002, "finished", |call| call.finished = Some(shape_only(&[1, 2])));
    refuses(161002, "end_id", |call| call.end_id = 4);
    refuses(161002, "end_id", |call| call.end_id = -1);
    refuses(161002, "output", |call| call.output = shape_only_mut(&[2, 3]));
    refuses(161002, "output", |call| call.output = shape_only_mut(&[1, 4]));
    refuses(161002, "output", |call| {
        call.output = TensorMut::strided([2, 4], [0, 1], Box::leak(Box::new([0.0; 4]))).unwrap();
    });
    let mut case = case([2, 3, 4], Order::Contiguous);
    // Without `finished` nobody asks for the end.
    assert_eq!(run(&Host::new(), UpdateLogits { end_id: -1, finished: None, ..case.call() }), Ok(()));
}

#[test]
fn the_output_overlaps_nothing() {
    let mut memory = [0.0f32; 24];
    let first = memory.as_mut_ptr();
    let dims = |shape: &[usize]| tilekern::Dims::contiguous(shape).unwrap();
    // SAFETY: the call refuses the overlap before it touches the memory.
    let (logits, output) =
        unsafe { (Tensor::from_raw(dims(&[2, 3, 4]), first), TensorMut::from_raw(dims(&[2, 4]), first.add(16))) };
    assert_eq!(refused(&Host::new(), UpdateLogits::new(logits, output)), (161002, "output"));
}
