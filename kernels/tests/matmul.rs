//! The int8 tiles: every size gives the exact sums on every instruction set; the packed format, and what it refuses.

mod common;
use common::{Random, levels};
use tilekern_kernels::dispatch::Level;
use tilekern_kernels::pack::{HEADER, Packed, pack_floats, pack_i8, packed_bytes};
use tilekern_kernels::reference::{int8_dot, quantize_row};
use tilekern_kernels::simd::Simd;
use tilekern_kernels::tiles::{Activations, Matmul, Sink, Tiled, matmul_words};

/// Sums by row and column; every place is written once.
struct Collect<'a> {
    out: &'a mut [Option<i32>],
    n: usize,
}

impl Sink for Collect<'_> {
    #[inline(always)]
    fn put<S: Simd>(&mut self, s: S, row: usize, panel: usize, sums: S::I32) {
        let mut lanes = [0; 16];
        s.store_i32(sums, &mut lanes);
        for (column, sum) in (16 * panel..self.n).zip(lanes) {
            assert_eq!(self.out[row * self.n + column].replace(sum), None, "written twice");
        }
    }
}

struct Case {
    m: usize,
    k: usize,
    n: usize,
    /// Rows three elements further apart than they are long.
    x: Vec<i8>,
    packed: Vec<i8>,
    expected: Vec<Option<i32>>,
}

impl Case {
    fn new(random: &mut Random, m: usize, k: usize, n: usize) -> Case {
        let x: Vec<i8> = (0..m * (k + 3)).map(|_| random.int8()).collect();
        let w: Vec<i8> = (0..k * n).map(|_| random.int8()).collect();
        let mut packed = vec![0; packed_bytes(1, k, n).unwrap()];
        pack_i8(&mut packed, k, n, |i, j| w[i * n + j]);
        let sum = |at: usize| int8_dot(&x[at / n * (k + 3)..][..k], |i| w[i * n + at % n]);
        let expected = (0..m * n).map(|at| Some(sum(at))).collect();
        Case { m, k, n, x, packed, expected }
    }

    fn check<const MR: usize, const NV: usize, const KC: usize>(&self, level: Level) {
        let (mut out, mut words) = (vec![None; self.m * self.n], vec![u64::MAX / 3; matmul_words(self.k).unwrap()]);
        level.run(Tiled::<_, MR, NV, KC>(self.call(&mut out, &mut words)));
        assert!(out == self.expected, "{level:?} {MR}x{}x{KC}: {}x{}x{}", 16 * NV, self.m, self.k, self.n);
    }

    fn call<'a>(&'a self, out: &'a mut [Option<i32>], words: &'a mut [u64]) -> Matmul<'a, Collect<'a>> {
        let weights = Packed::new(&self.packed).unwrap().expert(0);
        let x = Activations { data: &self.x, stride: self.k + 3, rows: self.m };
        Matmul { x, weights, panels: 0..weights.len(), words, sink: Collect { out, n: self.n } }
    }
}

#[test]
fn every_tile_gives_the_exact_sums() {
    let mut random = Random(41);
    for (m, k, n) in [(1, 1, 1), (1, 130, 70), (2, 64, 16), (5, 67, 100), (8, 3, 33), (13, 200, 130), (50, 37, 17), (70, 70, 70)]
    {
        let case = Case::new(&mut random, m, k, n);
        for level in levels() {
            case.check::<1, 1, 4>(level);
            case.check::<3, 2, 64>(level);
            case.check::<4, 1, 32>(level);
            case.check::<6, 4, 16>(level);
            case.check::<8, 3, 20>(level);
        }
    }
}

#[test]
fn the_default_tile_gives_the_exact_sums() {
    let case = Case::new(&mut Random(42), 57, 4100, 90);
    for level in levels() {
        let (mut out, mut words) = (vec![None; 57 * 90], vec![5; matmul_words(4100).unwrap()]);
        level.run(case.call(&mut out, &mut words));
        assert!(out == case.expected, "{level:?}");
    }
}

#[test]
fn a_range_of_panels_leaves_the_others_alone() {
    let case = Case::new(&mut Random(43), 7, 40, 100);
    for level in levels() {
        let (mut out, mut words) = (vec![None; 700], vec![5; matmul_words(40).unwrap()]);
        let call = case.call(&mut out, &mut words);
        level.run(Matmul { panels: 2..5, ..call });
        for (at, (found, expected)) in out.iter().zip(&case.expected).enumerate() {
            let inside = (32..80).contains(&(at % 100));
            assert_eq!(*found, if inside { *expected } else { None }, "{level:?}");
        }
    }
}

#[test]
fn floats_are_quantised_by_column() {
    let mut random = Random(44);
    let (k, n) = (70, 19);
    let w: Vec<f32> = (0..k * n).map(|_| random.number()).collect();
    let (mut packed, mut scales) = (vec![0; packed_bytes(1, k, n).unwrap()], vec![0.0; n]);
    pack_floats(&mut packed, k, n, |i, j| w[i * n + j], &mut scales);
    let panels = Packed::new(&packed).unwrap().expert(0);
    for j in 0..n {
        let mut column = vec![0; k];
        assert_eq!(scales[j].to_bits(), quantize_row(k, |i| w[i * n + j], &mut column).to_bits());
        for i in 0..k {
            assert_eq!(panels.panel(j / 16)[i / 4][j % 16 * 4 + i % 4], column[i]);
        }
        assert_eq!(panels.sums(j / 16)[j % 16], column.iter().map(|&q| i32::from(q)).sum::<i32>());
    }
}

#[test]
fn a_damaged_header_is_refused() {
    let mut packed = vec![0; packed_bytes(1, 5, 6).unwrap()];
    pack_i8(&mut packed, 5, 6, |_, _| 1);
    assert!(Packed::new(&packed).is_some());
    for length in [0, 1, HEADER - 1, HEADER, packed.len() - 1] {
        assert!(Packed::new(&packed[..length]).is_none(), "{length} bytes");
    }
    for bit in 0..8 * HEADER {
        let mut damaged = packed.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let sizes = Packed::new(&damaged).map(|p| (p.experts(), p.k(), p.n()));
        // The only flips that leave a whole weight: another source, or a K or N with the same padding.
        let same_padding = sizes.is_none_or(|(e, k, n)| e == 1 && k <= 64 && n <= 16);
        assert!(same_padding, "bit {bit}: {sizes:?}");
    }
}
