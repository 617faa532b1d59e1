//! Groups of 16 blocks of a row: the largest of each block ends in a lane of one vector.

use super::runs::{Length, is_long_of_halves, runs};
use crate::element::Element;
use crate::simd::Simd;

/// How many blocks are folded in registers at once: of 1 KiB together, no more than 8, or of 4, no more than 16.
const fn step<S: Simd, T: Element, const BLOCK: usize, const MORE: bool>() -> usize {
    let bytes = if MORE { 4 << 10 } else { 1 << 10 };
    match bytes / size_of::<[T; BLOCK]>() {
        _ if !S::IS_WIDE => 1,
        16.. if MORE => 16,
        8.. => 8,
        4.. => 4,
        2.. => 2,
        _ => 1,
    }
}

/// Calls `top_of` for each block of the groups of 16, finds the `larger` lane of what it returns, and writes what `done` makes of
/// these, 16 at once. The row is whole groups. With `MORE` longer steps are taken.
#[inline(always)]
pub fn each_group<S: Simd, T: Element, const BLOCK: usize, const MORE: bool>(
    s: S,
    row: &[T],
    maxima: &mut [f32],
    top_of: impl FnMut(&[T; BLOCK]) -> S::F32,
    larger: impl Fn(S::F32, S::F32) -> S::F32,
    done: impl FnMut(S::F32) -> S::F32,
) {
    const { assert!(BLOCK >= 16 && BLOCK % 16 == 0) };
    // Constants: what is not chosen is not compiled.
    if const { size_of::<T>() == 2 && step::<S, T, BLOCK, MORE>() == 4 && !MORE } && is_long_of_halves::<T>(row.len()) {
        return in_steps::<S, T, BLOCK, MORE, 2, 8>(s, row, maxima, top_of, larger, done);
    }
    match const { step::<S, T, BLOCK, MORE>() } {
        16 => in_steps::<S, T, BLOCK, MORE, 16, 1>(s, row, maxima, top_of, larger, done),
        8 => in_steps::<S, T, BLOCK, MORE, 8, 2>(s, row, maxima, top_of, larger, done),
        4 => in_steps::<S, T, BLOCK, MORE, 4, 4>(s, row, maxima, top_of, larger, done),
        2 => in_steps::<S, T, BLOCK, MORE, 2, 8>(s, row, maxima, top_of, larger, done),
        _ => in_steps::<S, T, BLOCK, MORE, 1, 16>(s, row, maxima, top_of, larger, done),
    }
}

/// [`each_group`], `STEP` blocks in a turn of the loop: of these the larger lanes are found in registers. Short steps are read in
/// ascending order within a run, since processors see streams ahead so; with `MORE` the last comes first, and no order is kept within one.
#[inline(always)]
fn in_steps<S: Simd, T: Element, const BLOCK: usize, const MORE: bool, const STEP: usize, const STEPS: usize>(
    s: S,
    row: &[T],
    maxima: &mut [f32],
    mut top_of: impl FnMut(&[T; BLOCK]) -> S::F32,
    larger: impl Fn(S::F32, S::F32) -> S::F32,
    mut done: impl FnMut(S::F32) -> S::F32,
) {
    const { assert!(STEP * STEPS == 16) };
    let (groups, maxima) = (row.as_chunks::<BLOCK>().0.as_chunks::<16>().0, maxima.as_chunks_mut::<16>().0);
    let (mut each, mut found, mut tops) = (Each([[0.0; 16]; STEPS]), [s.splat(0.0); STEP], [s.splat(0.0); STEPS]);
    let length = if const { MORE } { Length::Step } else { Length::Growing };
    for run in runs::<T>(groups.len(), 16 * BLOCK, length) {
        let maxima = &mut maxima[run.clone()];
        let steps = groups[run].as_flattened().as_chunks::<STEP>().0;
        for turn in 0..steps.len() {
            let i = if const { MORE } { steps.len() - 1 - turn } else { turn };
            if const { !MORE } {
                for (found, block) in found.iter_mut().zip(&steps[i]) {
                    *found = top_of(block);
                }
            }
            let top = fold::<S, 1, STEP>(
                s,
                #[inline(always)]
                |lane| if const { MORE } { top_of(&steps[i][lane]) } else { found[lane] },
                &larger,
            );
            if const { MORE } {
                // In registers: what is stored competes for L1 with what comes from L2.
                for step in (1..STEPS).rev() {
                    tops[step] = tops[step - 1];
                }
                tops[0] = top;
            } else {
                s.store(top, &mut each.0[i % STEPS]);
            }
            if turn % STEPS == STEPS - 1 {
                if const { !MORE } {
                    for (top, each) in tops.iter_mut().zip(&each.0) {
                        *top = s.load(each);
                    }
                }
                let top = fold::<S, STEP, 16>(
                    s,
                    #[inline(always)]
                    |lane| tops[lane / STEP],
                    &larger,
                );
                s.store(done(top), &mut maxima[i / STEPS]);
            }
        }
    }
}

/// Lanes of vectors, each a cache line: what is written here is read at once.
#[repr(align(64))]
struct Each<const N: usize>([[f32; 16]; N]);

/// The larger lanes of `END / UNIT` vectors, by a tree of folds. Lanes are numbered from a multiple of `END` on: the `UNIT` lanes from
/// `l` on, a multiple of `UNIT`, get the larger ones of `top(l)`, each of those that are a multiple of `UNIT` away from it.
#[inline(always)]
fn fold<S: Simd, const UNIT: usize, const END: usize>(
    s: S,
    mut top: impl FnMut(usize) -> S::F32,
    larger: &impl Fn(S::F32, S::F32) -> S::F32,
) -> S::F32 {
    branch::<S, UNIT, END>(s, 0, &mut top, larger)
}

/// What of [`fold`] begins with a lane and goes on with every `UNIT`-th. A branch is done before the next begins, so that few vectors
/// wait for others.
#[inline(always)]
fn branch<S: Simd, const UNIT: usize, const END: usize>(
    s: S,
    lane: usize,
    top: &mut impl FnMut(usize) -> S::F32,
    larger: &impl Fn(S::F32, S::F32) -> S::F32,
) -> S::F32 {
    macro_rules! both {
        ($unit:literal, $twice:literal) => {{
            let a = branch::<S, $twice, END>(s, lane, top, larger);
            let b = branch::<S, $twice, END>(s, lane + $unit, top, larger);
            let (a, b) = s.pairs::<$unit>(a, b);
            larger(a, b)
        }};
    }
    match const { if UNIT == END { 16 } else { UNIT } } {
        1 => both!(1, 2),
        2 => both!(2, 4),
        4 => both!(4, 8),
        8 => both!(8, 16),
        _ => top(lane),
    }
}
