//! TopPSampling against a sorted row in exact arithmetic: the end of the kept set, ties, odd numbers, prompts, ends, strides and
//! refusals.

use super::next_token::{Case, ORDERS, case, order};
use crate::common::{Order, Random, every_host, refused, run, shape_only, shape_only_mut};
use tilekern::ops::TopPSampling;
use tilekern::{Host, ParallelFor, Tensor, TensorMut};

fn call<P: ParallelFor>(case: &mut Case, p: f64) -> TopPSampling<'_, Host<P>> {
    TopPSampling {
        probs: case.rows.view(),
        random: case.random.view(),
        prompt_tokens: Some(case.tokens.view()),
        prompt_mask: Some(case.mask.view()),
        cur_pos: case.cur_pos,
        p,
        end_id: case.end_id,
        ids: case.ids.view_mut(),
        sequence_length: Some(case.length.view_mut()),
        finished: Some(case.finished.view_mut()),
    }
}

/// Who is drawn. Sums and products of multiples of 2^-20 with up to 29 digits and numbers of 24 are exact in `f64`.
fn choice(row: &[f32], p: f64, number: f32) -> usize {
    let order = order(row);
    let mut kept = 0.0;
    for &i in &order {
        kept += f64::from(row[i]);
        if kept > p {
            break;
        }
    }
    let (target, mut running) = (f64::from(number) * kept, 0.0);
    let reaches = |&&i: &&usize| {
        running += f64::from(row[i]);
        running >= target
    };
    *order.iter().find(reaches).unwrap()
}

/// Multiples of 2^-20: `most` of them at most, `ties` more likely than others.
fn probabilities(n: usize, most: usize, seed: u64) -> Vec<f32> {
    let mut random = Random(seed);
    (0..n)
        .map(|_| match random.below(5) {
            0 => 0.0,
            1 => (most / 2) as f32 / 1_048_576.0,
            _ => random.below(most + 1) as f32 / 1_048_576.0,
        })
        .collect()
}

fn draws(shape: [usize; 2], values: &[f32], p: f64, cur_pos: usize, order: Order) {
    every_host(|host| {
        let mut case = case(shape, values, cur_pos, order, cur_pos as u64 + 5);
        run(host, call(&mut case, p)).unwrap();
        let context = format!("{} {shape:?} p {p} at {cur_pos} {order:?}", host.isa().name());
        case.check(&context, |row, number, id| id == choice(row, p, number));
    });
}

const PS: [f64; 10] = [-1.0, 0.0, 1e-9, 0.1, 0.5, 0.8, 0.95, 1.0, 20.0, f64::INFINITY];

#[test]
fn short_rows() {
    for (i, columns) in [1, 2, 15, 16, 17, 200].into_iter().enumerate() {
        let values = probabilities(7 * columns, 60_000 / columns.min(16), i as u64);
        for (j, p) in PS.into_iter().enumerate() {
            draws([7, columns], &values, p, (i + j) % 7, ORDERS[(i + j) % 3]);
        }
    }
}

/// Rows so flat that what is kept ends behind every list, and rows of one value.
#[test]
fn flat_rows() {
    for (i, (columns, most)) in [(1500, 900), (5000, 400), (5000, 65_000), (5000, 1)].into_iter().enumerate() {
        let values = probabilities(6 * columns, most, i as u64);
        for (j, p) in PS.into_iter().enumerate() {
            draws([6, columns], &values, p, 5 * (j % 2), ORDERS[(i + j) % 3]);
        }
        draws([6, columns], &vec![1.0 / 8192.0; 6 * columns], 0.5, 5, ORDERS[i % 3]);
    }
}

#[test]
fn many_rows_are_spread() {
    draws([200, 1000], &probabilities(200_000, 4000, 9), 0.7, 2, Order::Contiguous);
}

/// One row without prompts.
fn draw<P: ParallelFor>(host: &Host<P>, row: &[f32], p: f64, number: f32) -> i32 {
    let mut id = [-1];
    let (probs, random) = (Tensor::new([1, row.len()], row).unwrap(), [number]);
    let random = Tensor::new([1], &random).unwrap();
    run(host, TopPSampling::new(probs, random, p, TensorMut::new([1, 1], &mut id).unwrap())).unwrap();
    id[0]
}

#[test]
fn exact_draws() {
    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;
    every_host(|host| {
        let below_one = 1.0f32.next_down();
        // A sum of exactly p does not exceed it.
        let row = [0.5, 0.25, 0.125, 0.125];
        let kept = [0.0, 0.49, 0.5, 0.74, 0.75, 0.875, 1.0].map(|p| draw(host, &row, p, below_one));
        assert_eq!(kept, [0, 0, 1, 1, 2, 3, 3]);
        // 0.8 lies between what 0.5 + 0.3 is in f32 and in decimals.
        let row = [0.3, 0.5, 0.2];
        assert_eq!(draw(host, &row, 0.8, below_one), 0);
        assert_eq!(draw(host, &row, 0.5 + f64::from(0.3f32), below_one), 2);
        // The draw is from the kept sum, not from p: the vendor's boundary token had a sixteenth here.
        let row = [0.5, 0.25, 0.15, 0.1];
        let numbers = [0.55, 0.56, 0.83, 0.84, below_one];
        assert_eq!(numbers.map(|number| draw(host, &row, 0.8, number)), [0, 1, 1, 2, 2]);
        // A target of exactly a running sum is reached.
        let row = [0.25, 0.25, 0.25, 0.25];
        assert_eq!([0.0, 0.25, 0.25f32.next_up(), 0.5].map(|number| draw(host, &row, 1.0, number)), [0, 0, 1, 1]);
        assert_eq!([NAN, -1.0, 1.0, INF].map(|number| draw(host, &row, 0.6, number)), [0, 0, 2, 2]);
        // The smallest numbers there are.
        let tiny = f32::from_bits(1);
        assert_eq!([tiny, 1e-20, 1e-12].map(|number| draw(host, &[1e-9, 0.5], 1.0, number)), [1, 1, 1]);
        // Rows that are no probabilities.
        assert_eq!(draw(host, &[0.0; 17], 0.5, 0.5), 0);
        assert_eq!(draw(host, &[NAN, -1.0, 0.0, 0.0], 0.5, below_one), 2);
        assert_eq!(draw(host, &[NAN; 3], 0.5, below_one), 0);
        assert_eq!(draw(host, &[NAN, 0.5, 0.5, -3.0], 2.0, below_one), 2);
        assert_eq!([0.5, 0.51].map(|number| draw(host, &[7.0, INF], 1.5, number)), [1, 0]);
        // Sums beyond 64 bits.
        let ones = vec![1.0; 20_000];
        assert_eq!([0.0, 0.5, below_one].map(|number| draw(host, &ones, INF.into(), number)), [0, 9999, 19_999]);
        assert_eq!([0.5, below_one].map(|number| draw(host, &ones, 9999.5, number)), [4999, 9999]);
    });
}

#[test]
fn no_rows_write_nothing() {
    let (probs, random) = (Tensor::new([0, 3], &[]).unwrap(), Tensor::new([0], &[]).unwrap());
    let call = TopPSampling::new(probs, random, 0.5, TensorMut::new([0], &mut []).unwrap());
    assert_eq!(run(&Host::new(), call), Ok(()));
}

/// One changed argument, and the refusal that names it; nothing is written.
fn refuses(status: i32, argument: &str, change: impl for<'a> Fn(&mut TopPSampling<'a, Host>)) {
    let mut case = case([2, 6], &probabilities(12, 9000, 1), 1, Order::Contiguous, 1);
    let before = (case.ids.values(), case.length.values(), case.finished.values());
    let mut call = call(&mut case, 0.5);
    change(&mut call);
    assert_eq!(refused(&Host::new(), call), (status, argument));
    assert_eq!((case.ids.values(), case.length.values(), case.finished.values()), before);
}

#[test]
fn refusals() {
    refuses(161001, "probs", |call| call.probs = shape_only(&[2, 6]));
    refuses(161001, "random", |call| call.random = shape_only(&[2]));
    refuses(161001, "prompt_tokens", |call| call.prompt_tokens = None);
    refuses(161001, "prompt_mask", |call| call.prompt_mask = None);
    refuses(161001, "ids", |call| call.ids = shape_only_mut(&[2]));
    refuses(161001, "sequence_length", |call| call.sequence_length = Some(shape_only_mut(&[2])));
    refuses(161001, "finished", |call| call.finished = Some(shape_only_mut(&[2])));
    refuses(161002, "probs", |call| call.probs = shape_only(&[2, 3, 6]));
    refuses(161002, "probs", |call| call.probs = shape_only(&[2, 0]));
    refuses(161002, "random", |call| call.random = shape_only(&[2, 2]));
    refuses(161002, "prompt_mask", |call| call.prompt_mask = Some(shape_only(&[5, 2])));
    refuses(161002, "cur_pos", |call| call.cur_pos = i64::MIN);
    refuses(161002, "p", |call| call.p = f64::NAN);
    refuses(161002, "end_id", |call| call.end_id = 6);
    refuses(161002, "finished", |call| call.finished = Some(shape_only_mut(&[3])));
    refuses(161002, "finished", |call| {
        call.finished = Some(TensorMut::strided([2], [0], Box::leak(Box::new([0; 1]))).unwrap());
    });
    refuses(161002, "prompt_tokens", |call| {
        call.prompt_tokens = Some(Tensor::new([2, 5], Box::leak(Box::new([-1; 10]))).unwrap());
        call.prompt_mask = Some(Tensor::new([2, 5], Box::leak(Box::new([1; 10]))).unwrap());
    });
}
