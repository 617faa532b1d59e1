//! Panels of weights that lie in any way, on every instruction set: those of the plain definition, from the first and from a later one.

mod common;
use common::{Random, bits, levels};
use half::{bf16, f16};
use tilekern_kernels::dispatch::Level;
use tilekern_kernels::element::Element;
use tilekern_kernels::pack::{pack_columns, panel_vectors};
use tilekern_kernels::reference::quantize_row;
use tilekern_kernels::tiles::{
    FloatRows, NibbleRows, PackColumns, PackFloatColumns, PackFloats, PackNibbles, PackStrip, WeightColumns, WeightRows,
};

/// Where panels and sums go.
type Room<'a> = (&'a mut [[i8; 64]], &'a mut [[i8; 64]]);

/// `pack` writes the panels of a weight of `k` rows and `n` columns from `first` on.
fn packs([k, n, first]: [usize; 3], weight: impl Fn(usize, usize) -> i8, pack: impl Fn(Level, Room<'_>)) {
    let (count, vectors) = (n.div_ceil(16) - first, panel_vectors(k));
    let (mut panels, mut sums) = (vec![[0; 64]; count * vectors], vec![[0; 64]; count]);
    pack_columns(&mut panels, &mut sums, k, n - 16 * first, |i, j| weight(i, 16 * first + j));
    for level in levels() {
        let (mut found, mut found_sums) = (vec![[7; 64]; count * vectors], vec![[7; 64]; count]);
        pack(level, (&mut found, &mut found_sums));
        assert!(found == panels && found_sums == sums, "{level:?} {k}x{n} from {first}");
    }
}

#[test]
fn rows() {
    let mut random = Random(45);
    for (k, n, pitch) in [(1, 1usize, 1), (3, 5, 9), (4, 16, 16), (64, 64, 64), (67, 33, 40), (130, 100, 100), (256, 128, 131)] {
        let w: Vec<i8> = (0..k * pitch).map(|_| random.int8()).collect();
        let weights = WeightRows { data: &w, pitch, stripe: 32, k, n, among: w.len() };
        for first in [0, 2].into_iter().filter(|first| 16 * first < n) {
            packs(
                [k, n, first],
                |i, j| w[i * pitch + j],
                |level, (panels, sums)| level.run(PackStrip { weights, first, panels, sums }),
            );
        }
    }
}

#[test]
fn columns() {
    let mut random = Random(48);
    for (k, n, pitch) in
        [(1, 1usize, 1), (3, 5, 9), (4, 16, 4), (64, 64, 64), (67, 33, 70), (1024, 17, 1024), (1027, 40, 1031), (9, 20, 0)]
    {
        let w: Vec<i8> = (0..(n - 1) * pitch + k).map(|_| random.int8()).collect();
        let weights = WeightColumns { data: &w, pitch, k, n };
        for first in [0, 1].into_iter().filter(|first| 16 * first < n) {
            packs(
                [k, n, first],
                |i, j| w[j * pitch + i],
                |level, (panels, sums)| level.run(PackColumns { weights, first, panels, sums }),
            );
        }
    }
}

/// Rows with a pitch and stripes, up to columns that end within a group of four panels.
#[test]
fn rows_of_four_bits() {
    let mut random = Random(47);
    for (k, n, pitch, stripe) in [
        (1, 2usize, 1, 32),
        (3, 6, 9, 32),
        (64, 64, 32, 32),
        (67, 34, 40, 32),
        (257, 130, 65, 32),
        (520, 256, 131, 32),
        (80, 128, 32, 32 * 80),
        (272, 192, 32, 32 * 272),
    ] {
        let extent = if stripe == 32 { (k - 1) * pitch + n / 2 } else { k * n / 2 };
        let data: Vec<u8> = (0..extent).map(|_| random.int8() as u8).collect();
        let weight = |i: usize, j: usize| {
            let byte = data[j / 64 * stripe + i * pitch + j % 64 / 2];
            if j % 2 == 0 { (byte << 4) as i8 >> 4 } else { byte as i8 >> 4 }
        };
        let weights = NibbleRows { data: &data, pitch, stripe, k, n };
        for first in [0, 4].into_iter().filter(|first| 16 * first < n) {
            packs([k, n, first], weight, |level, (panels, sums)| level.run(PackNibbles { weights, first, panels, sums }));
        }
    }
}

/// Floats of `k` rows and `n` columns from panel `first` on: ordinary columns, and such as have no usable scale.
fn packs_floats<T: Element>([k, n, first]: [usize; 3], random: &mut Random) {
    let mut w: Vec<T> = (0..k * n).map(|_| T::narrow(random.number())).collect();
    for j in 0..n {
        let scale = [1.0, 1.0, 1.0, 0.0, 1e-38, 1e-42, f32::INFINITY, f32::NAN][random.below(8)];
        match scale.is_finite() {
            true => (0..k).for_each(|i| w[i * n + j] = T::narrow(w[i * n + j].as_() * scale)),
            false => w[random.below(k) * n + j] = T::narrow(scale),
        }
    }
    let (mut codes, mut scales) = (vec![0; k * n], vec![0; n]);
    for j in 0..n {
        let mut column = vec![0; k];
        scales[j] = bits(quantize_row(k, |i| w[i * n + j].as_(), &mut column));
        (0..k).for_each(|i| codes[i * n + j] = column[i]);
    }
    let pitch = [n + random.below(5), k + random.below(5)];
    let (mut rows, mut columns) = (vec![w[0]; k * pitch[0]], vec![w[0]; n * pitch[1]]);
    for (i, j) in (0..k).flat_map(|i| (0..n).map(move |j| (i, j))) {
        (rows[i * pitch[0] + j], columns[j * pitch[1] + i]) = (w[i * n + j], w[i * n + j]);
    }
    for by_row in [true, false] {
        packs(
            [k, n, first],
            |i, j| codes[i * n + j],
            |level, (panels, sums)| {
                let mut found = vec![7.0; n - 16 * first];
                let scales_found = &mut found[..];
                if by_row {
                    let weights = FloatRows { data: &rows, pitch: pitch[0], k };
                    level.run(PackFloats { weights, first, panels, sums, scales: scales_found });
                } else {
                    let weights = WeightColumns { data: &columns, pitch: pitch[1], k, n };
                    level.run(PackFloatColumns { weights, first, panels, sums, scales: scales_found });
                }
                let found: Vec<u32> = found.into_iter().map(bits).collect();
                assert_eq!(found, scales[16 * first..], "{level:?} {k}x{n} from {first}, by row: {by_row}");
            },
        );
    }
}

#[test]
fn floats() {
    let mut random = Random(49);
    for (k, n) in [(1, 1), (3, 5), (4, 16), (64, 64), (67, 33), (130, 300), (260, 513), (1029, 40)] {
        for first in [0, 1, 4].into_iter().filter(|first| 16 * first < n) {
            packs_floats::<f32>([k, n, first], &mut random);
            packs_floats::<f16>([k, n, first], &mut random);
            packs_floats::<bf16>([k, n, first], &mut random);
        }
    }
}
