//! Batches of every kind of row against the scalar definition, whatever the instruction set, the threads, the strides, the neighbours.

use crate::common::sampling::{Case, Q};
use crate::common::{Order, Random, every_host, hosts, rounds, run};
use half::{bf16, f16};
use tilekern::ops::{PostSample, TopKTopPSample};
use tilekern::{Host, Tensor, TensorMut};
use tilekern_kernels::element::Element;

const ORDERS: [Order; 3] = [Order::Contiguous, Order::Pitched, Order::Transposed];

fn every_way<T: Element + std::fmt::Debug>(seed: u64, sizes: &[usize]) {
    let mut random = Random(seed);
    for &v in sizes {
        for rows in [1, 5] {
            let case = Case::<T>::random(&mut random, rows, v);
            let expected = case.defined();
            every_host(|host| {
                for order in ORDERS {
                    assert!(case.answer(host, order) == expected, "{:?} {order:?} {v} {case:?}", host.isa());
                }
                assert_eq!(case.chosen(host), expected.chosen, "{:?} {v} {case:?}", host.isa());
            });
        }
    }
}

const SIZES: [usize; 14] = [1, 2, 15, 16, 17, 255, 256, 257, 500, 1023, 1024, 1025, 3000, 8191];

#[test]
fn f32_batches() {
    for seed in 0..4 {
        every_way::<f32>(seed, &SIZES);
    }
}

#[test]
fn half_batches() {
    every_way::<f16>(20, &SIZES);
    every_way::<bf16>(21, &SIZES);
}

/// Rows of more than a mebibyte: their sums are estimated in the first pass, around the largest of some elements.
fn long_rows<T: Element + std::fmt::Debug>(seed: u64, v: usize) {
    let mut random = Random(seed);
    let mut normal = || (0..12).map(|_| random.unit()).sum::<f32>();
    let mut rows: Vec<Vec<f32>> = (0..6).map(|_| (0..v).map(|_| normal()).collect()).collect();
    // Few hold most; one is too far above all others; nothing but masks where the first pass looks; numbers among no numbers.
    (0..30).for_each(|i| rows[1][i * 7919 % v] += 13.0);
    rows[2][v / 2 + 5] += 200.0;
    rows[3].iter_mut().enumerate().filter(|(i, _)| i % 1000 != 999).for_each(|(_, x)| *x = f32::NEG_INFINITY);
    rows[4].iter_mut().step_by(3).for_each(|x| *x = f32::NAN);
    rows[5].iter_mut().for_each(|x| *x *= 4.0);
    let mut case = Case::<T>::new(v, rows.concat().into_iter().map(T::narrow).collect());
    case.top_p = [0.9, 0.9, 0.9, 0.5, 0.7, 0.95].map(T::narrow).to_vec();
    case.post_sample = PostSample::QSample;
    // The last that stay win, so that the choice hangs on where the nucleus ends.
    case.q = Q::Exponential((0..6 * v).map(|i| 1.0 / ((i % v) as f32 + 1.0).powi(3)).collect());
    case.eps = 1e-20;
    let expected = case.defined();
    for host in hosts() {
        assert!(case.chosen(&host) == expected.chosen, "{host:?} {v}");
    }
}

#[test]
fn rows_longer_than_a_mebibyte() {
    long_rows::<f32>(9, (1 << 18) + 777);
    if rounds(2) == 2 {
        long_rows::<bf16>(10, (1 << 19) + 33);
    }
}

/// A long row by top-k with top-p and noise, and what is kept of it.
fn longest_row<T: Element + std::fmt::Debug>(seed: u64) {
    let (mut random, v) = (Random(seed), 1 << 20);
    let logits = (0..v).map(|_| T::narrow((0..12).map(|_| random.unit()).sum::<f32>() * 1.5)).collect();
    let mut case = Case::<T>::new(v, logits);
    (case.top_k, case.top_p) = (vec![50], vec![T::narrow(0.9)]);
    case.q = Q::Exponential((0..v).map(|_| -random.unit().abs().max(1e-9).ln()).collect());
    let expected = case.defined();
    let kept = expected.select.iter().filter(|&&x| x != f32::NEG_INFINITY.to_bits()).count();
    assert!((2..50).contains(&kept), "both stages cut: {kept}");
    for host in hosts() {
        assert!(case.answer(&host, Order::Contiguous) == expected, "{host:?}");
        assert_eq!(case.chosen(&host), expected.chosen, "{host:?}");
    }
}

#[test]
fn rows_of_a_mebi_of_tokens() {
    longest_row::<f32>(11);
    if rounds(2) == 2 {
        longest_row::<f16>(12);
        longest_row::<bf16>(13);
    }
}

/// The twelve scenarios of document 000, and the others that it makes possible: every set of stages with every way of choosing.
#[test]
fn every_scenario() {
    let mut random = Random(3);
    let v = 700;
    for stages in 0..8 {
        for post_sample in [PostSample::None, PostSample::QSample, PostSample::MultiNomial] {
            let mut case = Case::<f32>::new(v, (0..6 * v).map(|_| random.unit() * 9.0).collect());
            let on = |bit, a: f32, b| if stages >> bit & 1 == 1 { a } else { b };
            case.top_k = vec![on(0, 40.0, 0.0) as i32; 6];
            case.top_p = vec![on(1, 0.8, 1.0); 6];
            case.min_ps = Some(vec![on(2, 0.1, 0.0); 6]);
            case.post_sample = post_sample;
            // With None what q holds does not matter.
            case.q = match post_sample {
                PostSample::None => Q::Exponential(vec![f32::NAN; 6 * v]),
                PostSample::QSample => Q::Exponential((0..6 * v).map(|_| -(random.unit().abs().ln())).collect()),
                PostSample::MultiNomial => Q::None,
            };
            case.generator = Some([5, 24]);
            let expected = case.defined();
            for host in hosts() {
                assert!(case.answer(&host, Order::Contiguous) == expected, "{host:?} {stages} {post_sample:?}");
                assert_eq!(case.chosen(&host), expected.chosen, "{host:?} {stages} {post_sample:?}");
            }
        }
    }
}

/// A row's answer is its own, unless it draws from the batch's generator.
#[test]
fn rows_do_not_know_their_neighbours() {
    let mut random = Random(4);
    for _ in 0..20 {
        let mut case = Case::<f32>::random(&mut random, 7, 300);
        case.generator = None;
        if let Q::Seeds(lines) = &mut case.q {
            *lines = (0..14).map(|_| random.bits() as i64).collect();
        }
        let host = Host::new();
        let whole = case.answer(&host, Order::Contiguous);
        for row in 0..7 {
            let alone = case.row(row).answer(&host, Order::Contiguous);
            assert_eq!(alone.chosen[0], whole.chosen[row]);
            assert_eq!(alone.status[0], whole.status[row]);
            let at = 300 * row..300 * (row + 1);
            assert_eq!(alone.idx, whole.idx[at.clone()]);
            assert_eq!(alone.select, whole.select[at.clone()]);
            assert_eq!(alone.sorted, whole.sorted[at]);
        }
    }
}

/// The middle result alone; outputs that are not asked for stay as they are.
#[test]
fn outputs_are_optional() {
    let (logits, mut chosen) = ([1.0f32, 3.0, 2.0, 0.0], [0]);
    let (mut idx, mut sorted, mut select) = ([-1i64; 4], [-1.0f32; 4], [-1.0f32; 3]);
    let call = TopKTopPSample::<Host, f32> {
        logits_select_idx: None,
        logits_idx: Some(TensorMut::new([1, 4], &mut idx).unwrap()),
        logits_sort_masked: Some(TensorMut::new([1, 4], &mut sorted).unwrap()),
        // Neither written nor looked at: its shape fits nothing.
        logits_top_kp_select: Some(TensorMut::new([3], &mut select).unwrap()),
        ..TopKTopPSample::new(
            Tensor::new([1, 4], &logits).unwrap(),
            Tensor::new([1], &[2]).unwrap(),
            Tensor::new([1], &[1.0]).unwrap(),
            TensorMut::new([1], &mut chosen).unwrap(),
        )
    };
    run(&Host::new(), call).unwrap();
    assert_eq!((idx, select), ([1, 2, 0, 0], [-1.0; 3]));
    assert!(sorted[0] > 0.73 && sorted[1] < 0.27 && sorted[2..] == [0.0; 2]);
}

/// -inf, NaN and zeros where there is nothing else, and the bits that say so.
#[test]
fn hostile_rows() {
    const INF: f32 = f32::INFINITY;
    let rows: [([f32; 4], bool, u8, i64); 9] = [
        ([-INF, -INF, -INF, -INF], true, 4, 0),
        ([f32::NAN, -INF, f32::NAN, -INF], true, 5, 0),
        ([1.0, f32::NAN, 2.0, -INF], true, 1, 2),
        ([1.0, INF, f32::MAX, INF], true, 2, 1),
        ([f32::MAX, INF, -INF, f32::NAN], true, 3, 0),
        ([0.0, -0.0, 0.0, f32::NAN], false, 5, 0),
        ([0.0, -0.0, 0.0, -INF], false, 4, 0),
        ([-0.5, -0.25, f32::NAN, -INF], false, 1, 1),
        ([0.0, 0.25, 0.25, INF], false, 2, 3),
    ];
    for (row, input_is_logits, status, chosen) in rows {
        for (k, p) in [(0, 1.0), (3, 1.0), (0, 0.9), (4, 0.5), (0, 0.0), (0, -1.0)] {
            let mut case = Case::<f32>::new(4, row.to_vec());
            (case.top_k, case.top_p, case.input_is_logits) = (vec![k], vec![p], input_is_logits);
            let expected = case.defined();
            assert_eq!((expected.status[0], expected.chosen[0]), (status, chosen), "{row:?}");
            for host in hosts() {
                let answer = case.answer(&host, Order::Contiguous);
                assert!(answer == expected, "{host:?} {row:?} {k} {p}");
                if status & 4 != 0 {
                    let fill: f32 = if input_is_logits { -INF } else { 0.0 };
                    assert_eq!(answer.select, [fill.to_bits(); 4]);
                    assert_eq!((answer.idx, answer.sorted), (vec![0; 4], vec![0; 4]));
                }
            }
        }
    }
}
