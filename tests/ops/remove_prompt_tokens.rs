//! RemovePromptTokens: prompts of several lengths, strides, threads and refusals; what lies behind a row stays.

use crate::common::{Buffer, Order, Random, every_host, refused, run, shape_only, shape_only_mut};
use tilekern::ops::RemovePromptTokens;
use tilekern::{Host, ParallelFor, Tensor, TensorMut};

const RUBBISH: i32 = -77;

struct Case {
    word_ids: Buffer<i32>,
    sequence_length: Buffer<i32>,
    prompt_lengths: Buffer<i32>,
    min_prompt: i64,
    output: Buffer<i32>,
    expected: Vec<i32>,
}

/// `sizes` are steps, batch and columns.
fn case(sizes: [usize; 3], order: Order) -> Case {
    let [steps, batch, columns] = sizes;
    let mut random = Random(5);
    let ids: Vec<i32> = (0..steps * batch).map(|_| random.below(1000) as i32).collect();
    let min_prompt = 3;
    let (mut own, mut prompts, mut expected) = (vec![], vec![], vec![RUBBISH; batch * columns]);
    for b in 0..batch {
        let length = random.below(columns.min(steps) + 1);
        let first = random.below(steps - length + 1);
        for t in 0..length {
            expected[b * columns + t] = ids[(first + t) * batch + b];
        }
        own.push(length as i32);
        prompts.push((first + min_prompt) as i32);
    }
    Case {
        word_ids: Buffer::new(&[steps, batch], order, &ids, 0),
        sequence_length: Buffer::new(&[batch], order, &own, 0),
        prompt_lengths: Buffer::new(&[batch], order, &prompts, 0),
        min_prompt: min_prompt as i64,
        output: Buffer::empty(&[batch, columns], order, RUBBISH),
        expected,
    }
}

impl Case {
    fn call<P: ParallelFor>(&mut self) -> RemovePromptTokens<'_, Host<P>> {
        let (ids, own, prompts) = (self.word_ids.view(), self.sequence_length.view(), self.prompt_lengths.view());
        RemovePromptTokens::new(ids, own, prompts, self.min_prompt, self.output.view_mut())
    }
}

#[test]
fn generated_tokens_are_moved() {
    for sizes in [[1, 1, 1], [9, 4, 5], [5, 3, 9], [16, 17, 16], [90, 70, 40]] {
        for order in [Order::Contiguous, Order::Pitched, Order::Transposed] {
            every_host(|host| {
                let mut case = case(sizes, order);
                run(host, case.call()).unwrap();
                assert_eq!(case.output.values(), case.expected, "{} {sizes:?} {order:?}", host.isa().name());
            });
        }
    }
}

#[test]
fn no_rows_write_nothing() {
    let none = || Tensor::new([0], &[]).unwrap();
    let output = TensorMut::new([0, 2], &mut []).unwrap();
    let call = RemovePromptTokens::new(Tensor::new([3, 0], &[]).unwrap(), none(), none(), 1, output);
    assert_eq!(run(&Host::new(), call), Ok(()));
}

/// Five steps, two rows, three columns; one changed argument, and the refusal that names it; nothing is written.
fn refuses(status: i32, argument: &str, change: impl for<'a> Fn(&mut RemovePromptTokens<'a, Host>)) {
    let mut case = case([5, 2, 3], Order::Contiguous);
    let mut call = case.call();
    change(&mut call);
    assert_eq!(refused(&Host::new(), call), (status, argument));
    assert_eq!(case.output.values(), [RUBBISH; 6]);
}

#[test]
fn refusals() {
    refuses(161001, "word_ids", |call| call.word_ids = shape_only(&[5, 2]));
    refuses(161001, "sequence_length", |call| call.sequence_length = shape_only(&[2]));
    refuses(161001, "prompt_lengths", |call| call.prompt_lengths = shape_only(&[2]));
    refuses(161001, "output", |call| call.output = shape_only_mut(&[2, 3]));
    refuses(161002, "word_ids", |call| call.word_ids = shape_only(&[10]));
    refuses(161002, "word_ids", |call| call.word_ids = shape_only(&[0, 2]));
    refuses(161002, "sequence_length", |call| call.sequence_length = shape_only(&[3]));
    refuses(161002, "prompt_lengths", |call| call.prompt_lengths = shape_only(&[2, 1]));
    refuses(161002, "min_prompt", |call| call.min_prompt = -1);
    refuses(161002, "output", |call| call.output = shape_only_mut(&[2, 0]));
    refuses(161002, "output", |call| call.output = shape_only_mut(&[1, 3]));
    refuses(161002, "output", |call| {
        call.output = TensorMut::strided([2, 3], [0, 1], Box::leak(Box::new([0; 3]))).unwrap();
    });
}

#[test]
fn lengths_outside() {
    let lengths = |own: [i32; 2], prompts: [i32; 2]| {
        let mut case = case([5, 2, 3], Order::Contiguous);
        case.sequence_length = Buffer::new(&[2], Order::Contiguous, &own, 0);
        case.prompt_lengths = Buffer::new(&[2], Order::Contiguous, &prompts, 0);
        let result = run(&Host::new(), case.call());
        assert!(result.is_ok() || case.output.values() == [RUBBISH; 6]);
        result.map_err(|error| (error.status().code(), error.argument()))
    };
    // The first row is always right; the shortest prompt has three tokens.
    assert_eq!(lengths([3, 3], [3, 5]), Ok(()));
    assert_eq!(lengths([3, 0], [3, 8]), Ok(()));
    assert_eq!(lengths([3, 4], [3, 3]), Err((161002, "sequence_length")));
    assert_eq!(lengths([3, -1], [3, 3]), Err((161002, "sequence_length")));
    assert_eq!(lengths([3, i32::MIN], [3, 3]), Err((161002, "sequence_length")));
    assert_eq!(lengths([3, 3], [3, 6]), Err((161002, "prompt_lengths")));
    assert_eq!(lengths([3, 0], [3, 9]), Err((161002, "prompt_lengths")));
    assert_eq!(lengths([3, 0], [3, 2]), Err((161002, "prompt_lengths")));
    assert_eq!(lengths([3, 0], [3, i32::MIN]), Err((161002, "prompt_lengths")));
    // The difference is beyond 64 bits.
    let mut case = case([5, 2, 3], Order::Contiguous);
    (case.min_prompt, case.prompt_lengths) = (i64::MAX, Buffer::new(&[2], Order::Contiguous, &[-2, 3], 0));
    assert_eq!(refused(&Host::new(), case.call()), (161002, "prompt_lengths"));
}

/// Rows that there are none of may be of any length.
#[test]
fn no_rows_of_any_length() {
    let none = || Tensor::new([0], &[]).unwrap();
    let output = TensorMut::with(tilekern::Dims::contiguous(&[0, isize::MAX as usize / 8]).unwrap(), &mut []).unwrap();
    let call = RemovePromptTokens::new(Tensor::new([3, 0], &[]).unwrap(), none(), none(), 1, output);
    assert_eq!(run(&Host::new(), call), Ok(()));
}

#[test]
fn the_output_overlaps_nothing() {
    let mut memory = [0i32; 16];
    let mut case = case([5, 2, 3], Order::Contiguous);
    let dims = |shape: &[usize]| tilekern::Dims::contiguous(shape).unwrap();
    let first = memory.as_mut_ptr();
    // SAFETY: the call refuses the overlap before it touches the memory.
    let (ids, output) = unsafe { (Tensor::from_raw(dims(&[5, 2]), first), TensorMut::from_raw(dims(&[2, 3]), first.add(9))) };
    let call = RemovePromptTokens { word_ids: ids, output, ..case.call() };
    assert_eq!(refused(&Host::new(), call), (161002, "output"));
}
