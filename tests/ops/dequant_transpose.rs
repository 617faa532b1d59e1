//! DequantTranspose and DequantRopeTranspose: heads, positions, strides, threads and refusals.

use crate::common::{Buffer, Order, Random, bits, every_host, refused, run, shape_only, shape_only_mut};
use tilekern::ops::{DequantRopeTranspose, DequantTranspose};
use tilekern::{Dims, Host, Tensor, TensorMut};
use tilekern_kernels::reference;

struct Case {
    input: Buffer<i32>,
    input_scale: Buffer<f32>,
    weight_scale: Buffer<f32>,
    freqs: Buffer<f32>,
    start_pos: Buffer<i64>,
    output: Buffer<f32>,
    /// What each operation has to give.
    plain: Vec<f32>,
    rotated: Vec<f32>,
}

const RUBBISH: f32 = -7.5;

/// `sizes` are batch, heads, tokens and D.
fn case(sizes: [usize; 4], order: Order) -> Case {
    let [batch, heads, tokens, size] = sizes;
    let mut random = Random(1);
    let (columns, positions) = (heads * size, tokens + 5);
    let input: Vec<i32> = (0..batch * tokens * columns).map(|_| random.bits() as i32 >> 10).collect();
    let input_scale: Vec<f32> = (0..batch * tokens).map(|_| random.unit()).collect();
    let weight_scale: Vec<f32> = (0..columns).map(|_| random.unit()).collect();
    let freqs: Vec<f32> = (0..positions * size).map(|_| random.unit()).collect();
    let start_pos: Vec<i64> = (0..batch).map(|_| random.below(6) as i64).collect();
    let (mut plain, mut rotated) = (vec![0.0; input.len()], vec![0.0; input.len()]);
    for (row, input) in input.chunks(columns).enumerate() {
        let (b, s) = (row / tokens, row % tokens);
        let position = start_pos[b] as usize + s;
        let mut turned = vec![0.0; columns];
        let table = &freqs[position * size..][..size];
        reference::dequant_rope(input, input_scale[row], &weight_scale, table, &mut turned);
        for i in 0..columns {
            let at = ((b * heads + i / size) * tokens + s) * size + i % size;
            plain[at] = reference::dequant(input[i], input_scale[row], weight_scale[i]);
            rotated[at] = turned[i];
        }
    }
    Case {
        input: Buffer::new(&[batch, tokens, columns], order, &input, 0),
        input_scale: Buffer::new(&[batch, tokens], order, &input_scale, 0.0),
        weight_scale: Buffer::new(&[columns], order, &weight_scale, 0.0),
        freqs: Buffer::new(&[positions, size], order, &freqs, 0.0),
        start_pos: Buffer::new(&order.column(batch), order, &start_pos, 0),
        output: Buffer::empty(&sizes, order, RUBBISH),
        plain,
        rotated,
    }
}

impl Case {
    fn transpose<P: tilekern::ParallelFor>(&mut self) -> DequantTranspose<'_, Host<P>> {
        let (input_scale, weight_scale) = (self.input_scale.view(), self.weight_scale.view());
        DequantTranspose::new(self.input.view(), input_scale, weight_scale, self.output.view_mut())
    }

    fn rope<P: tilekern::ParallelFor>(&mut self) -> DequantRopeTranspose<'_, Host<P>> {
        let (input_scale, weight_scale) = (self.input_scale.view(), self.weight_scale.view());
        let (freqs, start_pos) = (self.freqs.view(), self.start_pos.view());
        DequantRopeTranspose::new(self.input.view(), input_scale, weight_scale, freqs, start_pos, self.output.view_mut())
    }
}

fn all_bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|&x| bits(x)).collect()
}

#[test]
fn heads_of_every_shape_and_order() {
    // The last one is cut into several tasks.
    for sizes in [[1, 1, 1, 2], [2, 3, 1, 8], [1, 5, 4, 6], [3, 2, 2, 16], [1, 2, 3, 48], [2, 1, 5, 80], [2, 5, 20, 64]] {
        for order in [Order::Contiguous, Order::Pitched, Order::Transposed] {
            let fresh = case(sizes, order);
            every_host(|host| {
                let mut case = Case { output: fresh.output.clone(), ..case(sizes, order) };
                run(host, case.transpose()).unwrap();
                assert_eq!(all_bits(&case.output.values()), all_bits(&fresh.plain), "{} {sizes:?} {order:?}", host.isa().name());
                run(host, case.rope()).unwrap();
                assert_eq!(
                    all_bits(&case.output.values()),
                    all_bits(&fresh.rotated),
                    "{} {sizes:?} {order:?}",
                    host.isa().name()
                );
            });
        }
    }
}

#[test]
fn inputs_may_be_broadcast() {
    let mut case = case([1, 2, 3, 8], Order::Contiguous);
    let weight_scale = Tensor::strided([16], [0], &[2.0]).unwrap();
    let input_scale = Tensor::strided([1, 3], [0, 0], &[0.5]).unwrap();
    run(&Host::new(), DequantTranspose { weight_scale, input_scale, ..case.transpose() }).unwrap();
    let (input, output) = (case.input.values(), case.output.values());
    for i in 0..16 {
        assert_eq!(output[i / 8 * 24 + i % 8], input[i] as f32);
    }
}

#[test]
fn no_rows_write_nothing() {
    let call = DequantTranspose::new(
        Tensor::new([0, 2, 8], &[]).unwrap(),
        Tensor::new([0, 2], &[]).unwrap(),
        Tensor::new([8], &[1.0; 8]).unwrap(),
        TensorMut::new([0, 2, 2, 4], &mut []).unwrap(),
    );
    assert_eq!(run(&Host::new(), call), Ok(()));
}

/// One changed argument, and the refusal that names it; nothing is written.
fn rope_refuses(status: i32, argument: &str, change: impl for<'a> Fn(&mut DequantRopeTranspose<'a, Host>)) {
    let mut case = case([2, 3, 2, 8], Order::Contiguous);
    let mut call = case.rope();
    change(&mut call);
    assert_eq!(refused(&Host::new(), call), (status, argument));
    assert!(case.output.values().iter().all(|&y| y == RUBBISH));
}

#[test]
fn refusals_of_rope() {
    rope_refuses(161001, "input", |call| call.input = shape_only(&[2, 2, 24]));
    rope_refuses(161001, "input_scale", |call| call.input_scale = shape_only(&[2, 2]));
    rope_refuses(161001, "weight_scale", |call| call.weight_scale = shape_only(&[24]));
    rope_refuses(161001, "freqs", |call| call.freqs = shape_only(&[7, 8]));
    rope_refuses(161001, "start_pos", |call| call.start_pos = shape_only(&[2]));
    rope_refuses(161001, "output", |call| {
        call.output = shape_only_mut(&[2, 3, 2, 8]);
    });
    rope_refuses(161002, "input", |call| call.input = shape_only(&[2, 2, 25]));
    rope_refuses(161002, "input", |call| call.input = shape_only(&[4, 24]));
    rope_refuses(161002, "input_scale", |call| call.input_scale = shape_only(&[4]));
    rope_refuses(161002, "weight_scale", |call| call.weight_scale = shape_only(&[23]));
    rope_refuses(161002, "freqs", |call| call.freqs = shape_only(&[7, 6]));
    rope_refuses(161002, "freqs", |call| call.freqs = shape_only(&[0, 8]));
    rope_refuses(161002, "start_pos", |call| call.start_pos = shape_only(&[3]));
    for sizes in [[2, 3, 2, 9], [2, 3, 0, 8], [2, 0, 2, 8], [2, 3, 2, 0]] {
        rope_refuses(161002, "output", |call| call.output = shape_only_mut(&sizes));
    }
}

#[test]
fn positions_outside_the_table() {
    rope_refuses(161002, "start_pos", |call| call.start_pos = Tensor::new([2], &[0, -1]).unwrap());
    rope_refuses(161002, "start_pos", |call| call.start_pos = Tensor::new([2], &[6, 0]).unwrap());
    rope_refuses(161002, "start_pos", |call| call.start_pos = Tensor::new([2], &[0, i64::MAX]).unwrap());
    let mut case = case([2, 3, 2, 8], Order::Contiguous);
    let call = DequantRopeTranspose { start_pos: Tensor::new([2], &[5, 0]).unwrap(), ..case.rope() };
    assert_eq!(run(&Host::new(), call), Ok(()));
}

#[test]
fn refusals_of_transpose() {
    let refuses = |status, argument, change: &dyn Fn(&mut DequantTranspose<'_, Host>)| {
        let mut case = case([2, 3, 2, 8], Order::Contiguous);
        let mut call = case.transpose();
        change(&mut call);
        assert_eq!(refused(&Host::new(), call), (status, argument));
        assert!(case.output.values().iter().all(|&y| y == RUBBISH));
    };
    refuses(161001, "input", &|call| call.input = shape_only(&[2, 2, 24]));
    refuses(161002, "input", &|call| call.input = shape_only(&[2, 3, 24]));
    refuses(161002, "input_scale", &|call| call.input_scale = shape_only(&[2, 3]));
    refuses(161002, "weight_scale", &|call| call.weight_scale = shape_only(&[8]));
    refuses(161002, "output", &|call| call.output = shape_only_mut(&[2, 6, 8]));
}

#[test]
fn an_output_overlaps_nothing() {
    let mut memory = vec![0.0f32; 96];
    let dims = |shape: &[usize]| Dims::contiguous(shape).unwrap();
    let mut other = case([2, 3, 2, 8], Order::Contiguous);
    // SAFETY: the call refuses the overlap before it touches the memory.
    let (output, weight_scale) = unsafe {
        let output = TensorMut::from_raw(dims(&[2, 3, 2, 8]), memory.as_mut_ptr());
        (output, Tensor::from_raw(dims(&[24]), memory.as_ptr().add(72)))
    };
    let call = DequantTranspose { output, weight_scale, ..other.transpose() };
    assert_eq!(refused(&Host::new(), call), (161002, "output"));
    let output = TensorMut::strided([2, 3, 2, 8], [48, 8, 7, 1], &mut memory).unwrap();
    assert_eq!(refused(&Host::new(), DequantTranspose { output, ..other.transpose() }), (161002, "output"));
}

#[test]
fn a_workspace_too_small_or_misaligned() {
    use tilekern::{Run, Scratch};
    let (host, mut case) = (Host::new(), case([2, 3, 2, 8], Order::Contiguous));
    let layout = host.workspace(&case.rope()).unwrap();
    let mut scratch = Scratch::new(core::alloc::Layout::from_size_align(layout.size() + 64, 64).unwrap());
    let short = host.run(case.rope(), &mut scratch[..layout.size() - 1]).unwrap_err();
    let odd = host.run(case.rope(), &mut scratch[1..]).unwrap_err();
    assert_eq!((short.status().code(), odd.status().code()), (-1, -1));
    assert!(case.output.values().iter().all(|&y| y == RUBBISH));
}
