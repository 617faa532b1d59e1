//! Noises that let ranks of top-k win that are not listed first, and ends of the stages behind it.

use crate::answer::{defined, found, row};
use crate::common::{Random, levels, rounds};
use half::bf16;
use tilekern_kernels::element::Element;
use tilekern_kernels::philox::Exponential;
use tilekern_kernels::reference;
use tilekern_kernels::rows::{Noise, Stages};

/// Noises that let any rank of top-k win, or tie with another: those behind the ranks that are listed first too.
#[test]
fn winners_of_every_rank() {
    let mut random = Random(17);
    for v in [1500, 20_011] {
        for kind in [0, 1, 2, 6, 10] {
            let x = row(&mut random, kind, v);
            let short: Vec<bf16> = x.iter().map(|&x| bf16::from_f32(x)).collect();
            for k in [1, 32, 33, 50, 200, 1024] {
                let (ranks, short_ranks) = (probabilities(&x, k), probabilities(&short, k));
                for _ in 0..rounds(8) {
                    let (rank, other) = (random.below(k), random.below(k));
                    rank_wins(&x, &ranks, top_k(k), rank, other, random.below(3));
                    rank_wins(&short, &short_ranks, top_k(k), rank, other, random.below(3));
                }
            }
        }
    }
}

/// Rows of 16-bit numbers with fewer blocks above 0 than ranks that are listed first, all in the front of the row.
#[test]
fn few_above_zero() {
    let mut random = Random(18);
    for (above, k) in [(25, 50), (31, 40), (31, 62), (31, 33)] {
        for _ in 0..rounds(8) {
            let mut row: Vec<bf16> = (0..33_000).map(|_| bf16::from_f32(-1.0 - random.unit().abs())).collect();
            for block in 0..above {
                // Two of each wide block.
                row[128 * block + random.below(64)] = bf16::from_f32(1.0 + random.unit().abs());
                row[128 * block + 64 + random.below(64)] = bf16::from_f32(1.0 + random.unit().abs());
            }
            // Two more that are not in the front, and the best.
            (row[20_000], row[30_000]) = (bf16::from_f32(2.5), bf16::from_f32(2.0));
            let ranks = probabilities(&row, k);
            for rank in [0, 1, 32, k - 1] {
                rank_wins(&row, &ranks, top_k(k), rank, random.below(k), 0);
            }
        }
    }
}

/// Infinities, which count for no more than the largest number, behind such numbers.
#[test]
fn infinities_behind_their_equals() {
    let mut random = Random(20);
    for count in [3, 40, 60] {
        let mut x = row(&mut random, 0, 20_011);
        for i in 0..count {
            (x[100 * i + random.below(36)], x[12_000 + 100 * i]) = (f32::MAX, f32::INFINITY);
        }
        for k in [20, 32, 50] {
            let ranks = probabilities(&x, k);
            for rank in [0, 2, k - 1] {
                rank_wins(&x, &ranks, top_k(k), rank, random.below(k), 0);
                rank_wins(&x, &ranks, Stages { min_p: 0.05, ..top_k(k) }, rank, random.below(k), 0);
            }
        }
    }
}

/// Top-p and min-p, behind top-k and without, that end at any rank, or a unit in the last place beside it, and noises that let that rank or a
/// neighbour of it win.
#[test]
fn ends_at_every_rank() {
    let mut random = Random(19);
    for v in [300, 5003, 9001].into_iter().take(rounds(40)) {
        for kind in [0, 3, 10] {
            let x = row(&mut random, kind, v);
            for k in [0, 2, 33, 50, 200] {
                let (ranks, pr) = (if k == 0 { 100 } else { k }, probabilities(&x, k));
                for _ in 0..rounds(4) {
                    let last = random.below(ranks);
                    let mass: f64 = pr[..last].iter().copied().map(f64::from).sum();
                    let beside = |x: f32, random: &mut Random| [x.next_down(), x, x.next_up()][random.below(3)];
                    let (p, min_p) = (beside(mass as f32, &mut random), beside(pr[last] / pr[0], &mut random));
                    for (p, min_p) in [(p, 0.0), (1.0, min_p), (p, min_p), (0.9, min_p), (p, 0.05), (1.0, 1e-25)] {
                        let stages = Stages { p, min_p, ..top_k(k) };
                        for rank in [last.saturating_sub(1), last, ranks.min(last + 2) - 1] {
                            rank_wins(&x, &pr, stages, rank, random.below(ranks), random.below(3));
                        }
                    }
                }
            }
        }
    }
}

fn top_k(k: usize) -> Stages {
    Stages { k, p: 1.0, min_p: 0.0, is_logits: true }
}

/// What the ranks of top-k have, one after the other.
fn probabilities<T: Element>(row: &[T], k: usize) -> Vec<f32> {
    let (mut order, mut pr) = (vec![0; row.len()], vec![0.0; row.len()]);
    reference::survivors(row, &top_k(k), &mut order, &mut pr);
    pr
}

/// Compares where drawn noise chooses, and where given noise gives a rank the best score and another one the same, or one a few units
/// in the last place away, or nothing.
fn rank_wins<T: Element>(row: &[T], pr: &[f32], stages: Stages, rank: usize, other: usize, tie: usize) {
    let mut q = vec![3.0f32; row.len()];
    (q[rank], q[other]) = match tie {
        0 => (pr[rank] * 1e-3, 1.0),
        1 => (pr[rank] * 1e-3, pr[other] * 1e-3),
        _ => (pr[rank] * 1e-3, (pr[other] * 1e-3).next_down()),
    };
    let elements = 1 << 30;
    let drawn = Noise::Drawn { numbers: Exponential::new(rank as u64, 0, elements), first: other as u64 };
    for noise in [Noise::Given { q: &q, eps: 1e-12 }, drawn] {
        let expected = defined(row, &stages, &noise, elements, rank as u64).choice;
        for level in levels() {
            let found = found(|row| level.run(row), row, stages, noise, [false; 2], usize::MAX).choice;
            assert_eq!(found, expected, "{level:?} v={} {stages:?} rank={rank} other={other} tie={tie}", row.len());
        }
    }
}
