//! TopKSampling against a sorted row in `f64`: every k, ties, odd logits, prompts, ends, strides, threads and refusals.

use super::next_token::{Case, ORDERS, case, order};
use crate::common::{Order, Random, every_host, refused, run, shape_only, shape_only_mut};
use std::sync::Mutex;
use tilekern::ops::TopKSampling;
use tilekern::{Host, ParallelFor, Tensor, TensorMut};

fn call<P: ParallelFor>(case: &mut Case, k: i64) -> TopKSampling<'_, Host<P>> {
    TopKSampling {
        logits: case.rows.view(),
        random: case.random.view(),
        prompt_tokens: Some(case.tokens.view()),
        prompt_mask: Some(case.mask.view()),
        cur_pos: case.cur_pos,
        k,
        diversity_rate: 0.0,
        end_id: case.end_id,
        ids: case.ids.view_mut(),
        sequence_length: Some(case.length.view_mut()),
        finished: Some(case.finished.view_mut()),
    }
}

/// Whether `id` is drawn by `number`, or by one that differs by a millionth.
fn is_choice(row: &[f32], k: usize, rate: f32, number: f32, id: usize) -> bool {
    let order = order(row);
    let clean = |x: f32| if x.is_nan() { f32::NEG_INFINITY } else { x.min(f32::MAX) };
    let logits: Vec<f64> = (0..k).map(|i| f64::from(clean(clean(row[order[i]]) + rate * i as f32))).collect();
    let max = logits.iter().fold(f64::NEG_INFINITY, |max, &x| max.max(x));
    if max == f64::NEG_INFINITY {
        return id == 0;
    }
    let weights: Vec<f64> = logits.iter().map(|x| (x - max).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let rank = |number: f64| {
        let mut running = 0.0;
        let reaches = |weight: &f64| {
            running += weight;
            running >= number * sum
        };
        weights.iter().position(reaches).unwrap_or(k - 1)
    };
    let number = f64::from(number);
    let (first, last) = (rank(number * (1.0 - 1e-6)), rank((number * (1.0 + 1e-6)).min(1.0)));
    (first..=last).any(|rank| order[rank] == id)
}

fn logits(n: usize, seed: u64) -> Vec<f32> {
    let mut random = Random(seed);
    (0..n)
        .map(|_| match random.below(40) {
            0 => f32::NAN,
            1 => f32::NEG_INFINITY,
            // Ties.
            2..=9 => 1.5,
            _ => random.unit() * 4.0,
        })
        .collect()
}

fn draws(shape: [usize; 2], k: usize, rate: f64, cur_pos: usize, order: Order) {
    let values = logits(shape[0] * shape[1], k as u64);
    let first = Mutex::new(None);
    every_host(|host| {
        let mut case = case(shape, &values, cur_pos, order, 11 * k as u64 + cur_pos as u64);
        let call = TopKSampling { diversity_rate: rate, ..call(&mut case, k as i64) };
        run(host, call).unwrap();
        let context = format!("{} {shape:?} k {k} rate {rate} at {cur_pos} {order:?}", host.isa().name());
        case.check(&context, |row, number, id| is_choice(row, k, rate as f32, number, id));
        // One result on every instruction set and number of threads.
        let ids = case.ids.values();
        assert_eq!(*first.lock().unwrap().get_or_insert(ids.clone()), ids, "{context}");
    });
}

#[test]
fn every_k_of_short_rows() {
    for columns in [1, 15, 16, 17, 40] {
        for k in 1..=columns {
            draws([7, columns], k, [0.0, -0.5, 0.25][k % 3], k % 7, ORDERS[k % 3]);
        }
    }
}

#[test]
fn long_rows() {
    for (columns, k) in [(200, 50), (3000, 1), (3000, 64), (3000, 1023), (3000, 1024), (3000, 1025), (3000, 3000), (20_000, 9000)]
    {
        for (cur_pos, order) in ORDERS.into_iter().enumerate() {
            draws([5, columns], k, 0.0, 3 * cur_pos, order);
        }
    }
}

#[test]
fn many_rows_are_spread() {
    draws([300, 1000], 40, 0.01, 2, Order::Contiguous);
}

/// One row without prompts.
fn draw<P: ParallelFor>(host: &Host<P>, row: &[f32], k: i64, rate: f64, number: f32) -> i32 {
    let mut id = [-1];
    let (logits, random) = (Tensor::new([1, row.len()], row).unwrap(), [number]);
    let random = Tensor::new([1], &random).unwrap();
    let mut call = TopKSampling::new(logits, random, k, TensorMut::new([1, 1], &mut id).unwrap());
    call.diversity_rate = rate;
    run(host, call).unwrap();
    id[0]
}

#[test]
fn exact_draws() {
    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;
    every_host(|host| {
        let below_one = 1.0f32.next_down();
        // Four equals: a quarter each, in index order; a quarter itself still belongs to the first.
        let equal = [3.0; 4];
        let numbers = [0.0, 0.25, 0.25f32.next_up(), 0.5, 0.75, 0.75f32.next_up(), below_one];
        assert_eq!(numbers.map(|number| draw(host, &equal, 4, 0.0, number)), [0, 0, 1, 1, 2, 3, 3]);
        assert_eq!(draw(host, &equal, 2, 0.0, below_one), 1);
        // The worse ranks first: e^1000 more for each.
        assert_eq!(draw(host, &[5.0, 9.0, 7.0], 3, 1000.0, 0.5), 0);
        assert_eq!(draw(host, &[5.0, 9.0, 7.0], 3, -1000.0, below_one), 1);
        // Numbers that are none count as the nearest.
        let outside = [NAN, -1.0, 1.0, INF].map(|number| draw(host, &equal, 3, 0.0, number));
        assert_eq!(outside, [0, 0, 2, 2]);
        assert_eq!(draw(host, &[NAN, -INF, 1.0], 3, 0.0, below_one), 2);
        assert_eq!(draw(host, &[NAN, -INF, NAN], 2, 1.0, below_one), 0);
        assert_eq!(draw(host, &[f32::MAX, INF, 0.0], 3, 0.0, 0.5), 0);
        assert_eq!(draw(host, &[f32::MAX, INF, 0.0], 3, 0.0, 0.5f32.next_up()), 1);
        assert_eq!(draw(host, &[-0.0, 0.0], 1, 0.0, 0.5), 0);
        assert_eq!(draw(host, &[-f32::MAX], 1, f64::from(f32::MAX), 0.5), 0);
    });
}

#[test]
fn no_rows_write_nothing() {
    let (logits, random) = (Tensor::new([0, 3], &[]).unwrap(), Tensor::new([0], &[]).unwrap());
    let call = TopKSampling::new(logits, random, 2, TensorMut::new([0], &mut []).unwrap());
    assert_eq!(run(&Host::new(), call), Ok(()));
}

/// One changed argument, and the refusal that names it; nothing is written.
fn refuses(status: i32, argument: &str, change: impl for<'a> Fn(&mut TopKSampling<'a, Host>)) {
    let mut case = case([2, 6], &logits(12, 1), 1, Order::Contiguous, 1);
    let before = (case.ids.values(), case.length.values(), case.finished.values());
    let mut call = call(&mut case, 3);
    change(&mut call);
    assert_eq!(refused(&Host::new(), call), (status, argument));
    assert_eq!((case.ids.values(), case.length.values(), case.finished.values()), before);
}

#[test]
fn refusals() {
    refuses(161001, "logits", |call| call.logits = shape_only(&[2, 6]));
    refuses(161001, "random", |call| call.random = shape_only(&[2]));
    refuses(161001, "prompt_tokens", |call| call.prompt_tokens = Some(shape_only(&[2, 5])));
    refuses(161001, "prompt_mask", |call| call.prompt_mask = Some(shape_only(&[2, 5])));
    refuses(161001, "prompt_tokens", |call| call.prompt_tokens = None);
    refuses(161001, "prompt_mask", |call| call.prompt_mask = None);
    refuses(161001, "ids", |call| call.ids = shape_only_mut(&[2]));
    refuses(161001, "sequence_length", |call| call.sequence_length = Some(shape_only_mut(&[2])));
    refuses(161001, "finished", |call| call.finished = Some(shape_only_mut(&[2])));
    refuses(161002, "logits", |call| call.logits = shape_only(&[12]));
    refuses(161002, "logits", |call| call.logits = shape_only(&[2, 0]));
    refuses(161002, "logits", |call| call.logits = shape_only(&[2, 1 << 31]));
    refuses(161002, "random", |call| call.random = shape_only(&[3]));
    refuses(161002, "prompt_tokens", |call| call.prompt_tokens = Some(shape_only(&[3, 5])));
    refuses(161002, "prompt_tokens", |call| call.prompt_tokens = Some(shape_only(&[2, 0])));
    refuses(161002, "prompt_mask", |call| call.prompt_mask = Some(shape_only(&[2, 4])));
    refuses(161002, "cur_pos", |call| call.cur_pos = -1);
    refuses(161002, "k", |call| call.k = 0);
    refuses(161002, "k", |call| call.k = 7);
    refuses(161002, "k", |call| call.k = i64::MIN);
    refuses(161002, "diversity_rate", |call| call.diversity_rate = f64::NAN);
    refuses(161002, "diversity_rate", |call| call.diversity_rate = 1e39);
    refuses(161002, "end_id", |call| call.end_id = 6);
    refuses(161002, "end_id", |call| call.end_id = -1);
    refuses(161002, "ids", |call| call.ids = shape_only_mut(&[1]));
    refuses(161002, "sequence_length", |call| call.sequence_length = Some(shape_only_mut(&[2, 2])));
    refuses(161002, "finished", |call| call.finished = Some(shape_only_mut(&[4])));
    refuses(161002, "ids", |call| call.ids = TensorMut::strided([2], [0], Box::leak(Box::new([0; 1]))).unwrap());
    refuses(161002, "prompt_tokens", |call| {
        call.prompt_tokens = Some(Tensor::new([2, 5], Box::leak(Box::new([6; 10]))).unwrap());
        call.prompt_mask = Some(Tensor::new([2, 5], Box::leak(Box::new([1; 10]))).unwrap());
    });
}

#[test]
fn what_is_absent_is_not_asked_for() {
    let mut case = case([2, 6], &logits(12, 1), 0, Order::Contiguous, 1);
    let mut call = call::<tilekern::Serial>(&mut case, 3);
    (call.prompt_tokens, call.prompt_mask, call.finished, call.end_id) = (None, None, None, -1);
    call.cur_pos = i64::MAX;
    assert_eq!(run(&Host::new(), call), Ok(()));
}

#[test]
fn outputs_overlap_nothing() {
    let mut memory = [0i32; 4];
    let first = memory.as_mut_ptr();
    let dims = tilekern::Dims::contiguous(&[2]).unwrap();
    let mut case = case([2, 6], &logits(12, 1), 0, Order::Contiguous, 1);
    // SAFETY: the call refuses the overlap before it touches the memory.
    let (ids, length) = unsafe { (TensorMut::from_raw(dims, first), TensorMut::from_raw(dims, first.add(1))) };
    let call = TopKSampling { ids, sequence_length: Some(length), ..call(&mut case, 3) };
    assert_eq!(refused(&Host::new(), call), (161002, "ids"));
}
