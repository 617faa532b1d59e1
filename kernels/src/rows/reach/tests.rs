//! Where sums reach a target, against a walk over the sorted row.

use super::super::mass::mass;
use super::super::random::random;
use super::super::select::List;
use super::super::softmax::Weights;
use super::{Masses, Ones, Reach, Sums};
use crate::dispatch::{Isa, Kernel, Level};
use crate::simd::Dot;
use std::vec;
use std::vec::Vec;

struct Ask<'a, W> {
    asked: Reach<W>,
    row: &'a [f32],
    room: usize,
}

impl<W: Sums> Kernel for Ask<'_, W> {
    type Output = Option<(f32, u64)>;
    const DOT: bool = false;

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Option<(f32, u64)> {
        let (mut values, mut indices) = (vec![f32::NAN; self.room], vec![-1; self.room]);
        let list = &mut List { values: &mut values, indices: &mut indices };
        self.asked.within(s, self.row, list).map(|reached| (reached.value, reached.before))
    }
}

struct Mass(Weights, f32);

impl Kernel for Mass {
    type Output = u64;
    const DOT: bool = false;

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> u64 {
        mass(self.0.of_one(s, self.1))
    }
}

fn row(state: &mut u64, n: usize, kind: usize) -> Vec<f32> {
    let mut normal = || ((0..6).map(|_| random(state)).sum::<f64>() - 3.0) as f32;
    let mut row: Vec<f32> = (0..n).map(|_| normal()).collect();
    for (i, x) in row.iter_mut().enumerate() {
        match kind {
            0 => {}
            1 => *x = x.round(),
            2 if i % 3 == 0 => *x = f32::NEG_INFINITY,
            3 if i % 5 < 2 => *x = f32::NAN,
            4 => *x = i as f32 * -0.01,
            // A sample takes one vector of some.
            5 if i / 16 % 2 == 0 => *x += 4.0,
            6 if i % 7 != 0 => *x = 0.25,
            7 => *x *= 5.0,
            8 => *x = [0.0, -0.0][i % 2],
            // Those of a list of 16 384.
            9 if (0..128).any(|part| part * (n / 16) / 128 == i / 16) => *x = 0.25,
            _ => {}
        }
    }
    row
}

/// The answer, one element after the other; and the sum of all from `least` on.
fn walk(row: &[f32], each: impl Fn(f32) -> u64, least: f32, before: u64, target: u64) -> (Option<(f32, u64)>, u64) {
    let mut sorted: Vec<f32> = row.iter().map(|&x| if x.is_nan() { f32::NEG_INFINITY } else { x + 0.0 }).collect();
    sorted.sort_by(f32::total_cmp);
    let (mut sum, mut found) = (before, None);
    for equals in sorted.chunk_by(|a, b| a == b).filter(|equals| equals[0] >= least) {
        let more = sum + each(equals[0]) * equals.len() as u64;
        if found.is_none() && more >= target {
            found = Some((equals[0], sum));
        }
        sum = more;
    }
    (found, sum)
}

fn check<W: Sums>(sums: W, row: &[f32], each: impl Fn(f32) -> u64, least: f32, before: u64, part: f64) {
    let (_, all) = walk(row, &each, least, before, u64::MAX);
    let target = (before + 1).max(before + (part * (all - before) as f64) as u64);
    let (expected, _) = walk(row, each, least, before, target);
    let asked = Reach { sums, least, before, target };
    for level in Isa::ALL.into_iter().filter_map(Level::new) {
        for room in [16, 64, 512, 1024, 2048, 4096, 16_384].into_iter().filter(|&room| room >= 1024 || row.len() < 1200) {
            let found = level.run(Ask { asked, row, room });
            assert_eq!(found, expected, "{:?} {} elements, list of {room}, {least} {part}", level.isa(), row.len());
        }
    }
}

#[test]
fn targets_are_reached_where_a_walk_reaches_them() {
    let mut state = 1;
    let lengths: &[usize] = if cfg!(miri) { &[1, 17, 530] } else { &[1, 2, 15, 16, 17, 511, 512, 513, 1000, 1100, 3000, 20_000] };
    for &n in lengths {
        for kind in 0..10 {
            let row = row(&mut state, n, kind);
            let parts = [0.0, 1e-4, 0.03, 0.5, 0.9, 1.0, 1.1, random(&mut state)];
            let count = if cfg!(miri) || n > 10_000 { 2 } else { 4 };
            for _ in 0..count {
                let part = parts[(random(&mut state) * 8.0) as usize];
                let from = row[(random(&mut state) * n as f64) as usize];
                let least = if random(&mut state) < 0.5 || from.is_nan() { f32::NEG_INFINITY } else { from + 0.0 };
                let below = row.iter().filter(|&&x| x < least || (x.is_nan() && least > f32::NEG_INFINITY)).count() as u64;
                check(Ones, &row, |_| 1, least, below, part);
                let max = row.iter().fold(f32::NEG_INFINITY, |max, &x| max.max(x));
                if max > f32::NEG_INFINITY {
                    let sum: f64 = row.iter().filter(|x| !x.is_nan()).map(|&x| f64::from(x - max).exp()).sum();
                    let weights = Weights::Softmax { max, sum: sum as f32 };
                    let portable = Level::new(Isa::Portable).unwrap();
                    check(Masses(weights), &row, |x| portable.run(Mass(weights, x)), least, 0, part);
                }
            }
        }
    }
}
