//! The int8 tiles: every size gives the exact sums on every instruction set; the packed format, and what it refuses.

mod common;
use common::{Random, levels};
use tilekern_kernels::dispatch::{Isa, Level};
use tilekern_kernels::pack::{ColumnSums, HEADER, Packed, Panels, pack_floats, pack_i8, packed_bytes};
use tilekern_kernels::reference::{int8_dot, quantize_row};
use tilekern_kernels::tiles::{
    Activations, Bands, MATMUL_WORDS, Matmul, MatmulRows, PackBand, PackRows, PackedRows, PanelByPanel, Sink, Tiled,
    UNPACKED_WORDS, WeightRows, row_words,
};

struct Case {
    m: usize,
    k: usize,
    n: usize,
    /// Rows three elements further apart than they are long.
    x: Vec<i8>,
    packed: Vec<i8>,
    /// Bytes of all weights that these are some of, if it is not these alone.
    among: Option<usize>,
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
        Case { m, k, n, x, packed, among: None, expected }
    }

    fn check<const MR: usize, const NV: usize, const KC: usize>(&self, level: Level) {
        let out = self.run(level, |call| level.run(Tiled::<MR, NV, KC>(call)));
        assert!(out == self.expected, "{level:?} {MR}x{}x{KC}: {}x{}x{}", 16 * NV, self.m, self.k, self.n);
    }

    fn run(&self, level: Level, run: impl Fn(Matmul<'_>)) -> Vec<Option<i32>> {
        let x = Activations { data: &self.x, stride: self.k + 3, rows: self.m };
        self.product(PackedRows::new(&packed_rows(level, x, self.k), self.k, self.m), run)
    }

    fn product(&self, x: PackedRows<'_>, run: impl Fn(Matmul<'_>)) -> Vec<Option<i32>> {
        let mut out = vec![None; self.m * self.n];
        let packed = Packed::new(&self.packed).unwrap();
        let weights = self.among.map_or(packed, |bytes| packed.among(bytes)).expert(0);
        let words = &mut vec![u64::MAX / 3; MATMUL_WORDS];
        let sink: Sink<'_> = &mut |finished| {
            finished.each(|row, panel, sums| {
                for (column, &sum) in (16 * panel..self.n).zip(sums) {
                    assert_eq!(out[row * self.n + column].replace(sum), None, "written twice");
                }
            });
        };
        run(Matmul { x, weights, panels: 0..weights.len(), words, sink });
        out
    }
}

/// Rows one behind the other.
fn packed_rows(level: Level, x: Activations<'_>, k: usize) -> Vec<u64> {
    let mut words = vec![u64::MAX / 5; x.rows * row_words(k).unwrap()];
    level.run(PackRows { x, k, words: &mut words });
    words
}

/// Whether products take rows in bands, if they are many enough.
fn takes_bands(level: &Level) -> bool {
    level.isa() == Isa::Avx512Vnni
}

/// Rows in bands.
fn packed_bands(level: Level, x: Activations<'_>, k: usize) -> Vec<u64> {
    let mut words = vec![u64::MAX / 5; x.rows * row_words(k).unwrap()];
    for rows in (0..Bands::of(x.rows).count()).map(|band| Bands::of(x.rows).rows(band)) {
        let band: Vec<&[i8]> = rows.clone().map(|row| &x.data[row * x.stride..][..k]).collect();
        level.run(PackBand { rows: &band, words: &mut words[rows.start * row_words(k).unwrap()..] });
    }
    words
}

#[test]
fn every_tile_gives_the_exact_sums() {
    let mut random = Random(41);
    let few = [(1, 1, 1), (1, 130, 70), (2, 64, 16), (3, 70, 40), (4, 5, 1500), (5, 67, 100), (6, 66, 130)];
    let more = [(7, 67, 100), (8, 3, 33), (13, 200, 130), (50, 37, 17), (70, 70, 70)];
    let with_two_panels = [(8, 130, 700), (9, 130, 200), (11, 70, 130), (12, 64, 900), (12, 8200, 40)];
    for (m, k, n) in few.into_iter().chain(more).chain(with_two_panels) {
        let case = Case::new(&mut random, m, k, n);
        for level in levels() {
            case.check::<1, 1, 64>(level);
            case.check::<4, 1, 128>(level);
            case.check::<6, 4, 64>(level);
            case.check::<8, 3, 192>(level);
        }
    }
}

#[test]
fn the_default_tile_gives_the_exact_sums() {
    let mut random = Random(42);
    // Rows of each tile, with a row less than whole groups of them, and many blocks of a unit.
    for m in [15, 17, 63, 64, 150, 300] {
        let case = Case::new(&mut random, m, 1100, 100);
        for level in levels() {
            let out = case.run(level, |call| level.run(call));
            assert!(out == case.expected, "{level:?} of {m} rows");
        }
    }
    let case = Case::new(&mut random, 57, 4100, 90);
    for level in levels() {
        let out = case.run(level, |call| level.run(call));
        assert!(out == case.expected, "{level:?}");
        // Defaults of processors with other caches, and what could be one.
        case.check::<4, 4, 384>(level);
        case.check::<4, 4, 512>(level);
        case.check::<8, 2, 1024>(level);
    }
}

/// Sums of two blocks of rows wait between slices of K.
#[test]
fn blocks_of_rows_give_the_exact_sums() {
    let mut random = Random(48);
    for n in [17, 113] {
        let case = Case::new(&mut random, 137, 2100, n);
        for level in levels() {
            case.check::<4, 4, 512>(level);
            case.check::<8, 2, 1024>(level);
        }
    }
}

#[test]
fn panels_one_by_one_give_the_exact_sums() {
    let mut random = Random(49);
    // Panels of less than a page, of some and a part, and more of them than wait at once.
    for (k, n) in [(5, 1100), (64, 16), (600, 17), (1100, 40)] {
        for m in 1..=PanelByPanel::MOST {
            let case = Case::new(&mut random, m, k, n);
            for level in levels() {
                let out = case.run(level, |call| level.run(PanelByPanel(call)));
                assert!(out == case.expected, "{level:?}: {m}x{k}x{n}");
            }
        }
    }
}

/// Rows 64 .. 192 of panels 1 .. 3.
#[test]
fn windows_one_by_one_give_the_exact_sums() {
    let (k, n) = (200, 70);
    let case = Case::new(&mut Random(52), 3, k, n);
    let whole = Packed::new(&case.packed).unwrap().expert(0);
    let weight = |i: usize, j: usize| i32::from(whole.panel(j / 16)[i / 4][j % 16 * 4 + i % 4]);
    for level in levels() {
        let part: Vec<i8> = (0..3).flat_map(|row| case.x[row * (k + 3) + 64..][..128].to_vec()).collect();
        let rows = packed_rows(level, Activations { data: &part, stride: 128, rows: 3 }, 128);
        let x = PackedRows::new(&rows, 128, 3);
        let (unknown, mut sums) = ([[0; 64]; 2], [[0; 64]; 2]);
        level.run(ColumnSums { panels: whole.window(1, 64, 128, &unknown), sums: &mut sums });
        let (mut out, words) = (vec![None; 3 * 32], &mut vec![0; MATMUL_WORDS]);
        let sink: Sink<'_> = &mut |finished| {
            finished.each(|row, panel, sums| (0..16).for_each(|j| out[32 * row + 16 * panel + j] = Some(sums[j])));
        };
        let weights = whole.window(1, 64, 128, &sums);
        level.run(PanelByPanel(Matmul { x, weights, panels: 0..2, words, sink }));
        for (at, found) in out.into_iter().enumerate() {
            let (row, j) = (at / 32, 16 + at % 32);
            let expected = (0..128).map(|i| i32::from(part[128 * row + i]) * weight(64 + i, j)).sum();
            assert_eq!(found, Some(expected), "{level:?}");
        }
    }
}

#[test]
#[should_panic = "more than 8 rows"]
fn panels_one_by_one_are_for_a_few_rows() {
    let case = Case::new(&mut Random(50), 9, 4, 16);
    let level = Level::detect();
    case.run(level, |call| level.run(PanelByPanel(call)));
}

/// Defaults where weights come from memory.
#[test]
fn weights_from_memory_give_the_exact_sums() {
    let mut random = Random(51);
    for (m, k) in [1, 2, 5, 8, 9, 12, 13, 16, 17, 24, 32, 33].map(|m| (m, 700)).into_iter().chain([(1, 64), (2, 64)]) {
        let case = Case { among: Some(usize::MAX), ..Case::new(&mut random, m, k, 100) };
        for level in levels() {
            // Side by side as well, where the default is one by one.
            case.check::<4, 4, 256>(level);
            let out = case.run(level, |call| level.run(call));
            assert!(out == case.expected, "{level:?}: {m} rows");
        }
    }
}

#[test]
fn rows_in_bands_give_the_exact_sums() {
    let mut random = Random(47);
    // Bands of all sizes, two blocks of bands, some slices of K, of one pair of panels and of more, panels alone and in pairs.
    let shapes = [(13, 63, 16), (17, 63, 1), (19, 65, 40), (24, 200, 700), (33, 64, 33), (70, 130, 100), (300, 67, 50)];
    for (m, k, n) in shapes.into_iter().chain([(18, 16_450, 70), (15, 4_200, 120), (300, 5_000, 40)]) {
        let case = Case::new(&mut random, m, k, n);
        for level in levels().into_iter().filter(takes_bands) {
            let words = packed_bands(level, Activations { data: &case.x, stride: k + 3, rows: m }, k);
            let out = case.product(PackedRows::new(&words, k, m).in_bands(true), |call| level.run(call));
            assert!(out == case.expected, "{level:?}: {m}x{k}x{n}");
        }
    }
}

#[test]
fn a_range_of_panels_leaves_the_others_alone() {
    let case = Case::new(&mut Random(43), 7, 40, 100);
    for level in levels() {
        let default = case.run(level, |call| level.run(Matmul { panels: 2..5, ..call }));
        let one_by_one = case.run(level, |call| level.run(PanelByPanel(Matmul { panels: 2..5, ..call })));
        for out in [default, one_by_one] {
            for (at, (found, expected)) in out.iter().zip(&case.expected).enumerate() {
                let inside = (32..80).contains(&(at % 100));
                assert_eq!(*found, if inside { *expected } else { None }, "{level:?}");
            }
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
fn columns_of_nothing_are_packed() {
    let (mut packed, mut scales) = (vec![7; packed_bytes(1, 0, 19).unwrap()], vec![7.0; 19]);
    pack_i8(&mut packed, 0, 19, |_, _| unreachable!());
    assert!(packed[HEADER..].iter().all(|&byte| byte == 0));
    pack_floats(&mut packed, 0, 19, |_, _| unreachable!(), &mut scales);
    assert!(packed[HEADER..].iter().all(|&byte| byte == 0) && scales.iter().all(|&scale| scale == 0.0));
    assert!(Packed::new(&packed).is_none());
}

#[test]
#[should_panic = "columns of nothing"]
fn columns_of_nothing_are_not_multiplied() {
    Panels::new(&[], &[[0; 64]; 2], 0, 19);
}

#[test]
fn weights_that_are_packed_on_the_way_give_the_exact_sums() {
    let mut random = Random(46);
    // Rows that begin about a page apart are packed in another order.
    for (m, k, n, pitch, first, end) in [
        (1, 1, 1usize, 1, 0, 1),
        (3, 70, 33, 33, 0, 3),
        (7, 256, 64, 64, 0, 4),
        (65, 320, 96, 96, 2, 6),
        (130, 515, 130, 130, 0, 9),
        (140, 64, 592, 592, 0, 37),
        (5, 300, 150, 4096, 0, 10),
        (2, 515, 420, 4097, 2, 27),
        (19, 256, 384, 4088, 0, 24),
        (9, 68, 257, 8200, 0, 17),
        (20, 1_111, 300, 300, 0, 19),
        // Rows in bands: too few lines to ask for, 32 elements from row to row, more rows than wait at once, more of K than is packed.
        (17, 5, 40, 40, 0, 3),
        (18, 50, 20, 32, 0, 2),
        (260, 36, 70, 70, 0, 5),
        (17, 16_500, 3, 3, 0, 1),
        (18, 4_200, 100, 100, 0, 7),
        // As many rows as have long slices, apart and near a page from row to row; blocks of rows that pass back and forth.
        (197, 1_090, 150, 150, 0, 10),
        (193, 520, 260, 4_096, 0, 17),
        // Few rows: one group of columns, rows of weights that overlap, panels in the middle, more columns than sums wait for.
        (1, 37, 64, 64, 0, 4),
        (3, 18, 100, 32, 0, 7),
        (2, 64, 127, 127, 2, 5),
        (1, 20, 96, 96, 2, 3),
        (4, 21, 13_100, 13_100, 0, 819),
        // The same with more of them, up to the most where these are woven, and one more; with AMX these are 12 and 13.
        (12, 17, 6_400, 6_401, 2, 400),
        (5, 16, 64, 64, 0, 4),
        (8, 18, 100, 32, 0, 7),
        (12, 64, 127, 127, 2, 5),
        (13, 35, 96, 96, 2, 3),
        (20, 17, 9_000, 9_001, 2, 563),
        (21, 33, 300, 301, 2, 19),
        (32, 50, 3_000, 3_000, 0, 188),
        (18, 70, 1_100, 1_101, 2, 69),
        (96, 35, 1_900, 1_900, 0, 119),
        (97, 20, 70, 70, 0, 5),
    ] {
        let x: Vec<i8> = (0..m * k).map(|_| random.int8()).collect();
        let w: Vec<i8> = (0..(k - 1) * pitch + n).map(|_| random.int8()).collect();
        let stripes: Vec<i8> = (0..k * n.next_multiple_of(32))
            .map(|at| (at / 32 / k * 32 + at % 32, at / 32 % k))
            .map(|(j, i)| if j < n { w[i * pitch + j] } else { 7 })
            .collect();
        // From a cache, and from memory.
        let rows = [0, usize::MAX].map(|among| {
            let stripes = WeightRows { data: &stripes, pitch: 32, stripe: 32 * k, k, n, among };
            [WeightRows { data: &w, pitch, stripe: 32, k, n, among }, stripes]
        });
        for level in levels() {
            let rows_of_x = Activations { data: &x, stride: k, rows: m };
            let behind = packed_rows(level, rows_of_x, k);
            let banded = (takes_bands(&level) && m >= Bands::FROM).then(|| packed_bands(level, rows_of_x, k));
            let behind = PackedRows::new(&behind, k, m);
            let banded = banded.as_ref().map(|words| PackedRows::new(words, k, m).in_bands(true));
            for (packed, weights) in
                [behind].into_iter().chain(banded).flat_map(|x| rows.as_flattened().iter().map(move |&weights| (x, weights)))
            {
                let mut out = vec![None; m * n];
                let sink: Sink<'_> = &mut |finished| {
                    finished.each(|row, panel, sums| {
                        for (column, &sum) in (16 * panel..n).zip(sums) {
                            assert_eq!(out[row * n + column].replace(sum), None, "written twice");
                        }
                    });
                };
                let (words, stage) = (&mut vec![u64::MAX / 3; UNPACKED_WORDS], &mut vec![[7; 64]; 1 << 10]);
                level.run(MatmulRows { x: packed, weights, panels: first..end, words, stage, sink });
                for (at, found) in out.into_iter().enumerate() {
                    let sum = || int8_dot(&x[at / n * k..][..k], |i| w[i * pitch + at % n]);
                    assert_eq!(
                        found,
                        (16 * first..16 * end).contains(&(at % n)).then(sum),
                        "{level:?} {m}x{k}x{n} of {pitch} at {at}"
                    );
                }
            }
        }
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
