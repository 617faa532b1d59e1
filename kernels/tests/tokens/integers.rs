//! Integers, lane by lane, and the int8 dot product.

use crate::common::{Random, levels};
use crate::lanes::{ROUNDS, compare, get_i32, int, lanes};
use tilekern_kernels::dispatch::Kernel;
use tilekern_kernels::simd::{Ahead, Dot, TileBlock, TileUnit, Tiles};

struct Integers<'a>(&'a [[i32; 16]; 2]);

type OfInts = fn(i32, i32) -> i32;

/// The larger of both halves.
fn max_i16(a: i32, b: i32) -> i32 {
    let low = (a as i16).max(b as i16);
    (a >> 16).max(b >> 16) << 16 | i32::from(low as u16)
}

const INTEGERS: [(&str, OfInts); 10] = [
    ("add_i32", i32::wrapping_add),
    ("sub_i32", i32::wrapping_sub),
    ("and", |a, b| a & b),
    ("or", |a, b| a | b),
    ("xor", |a, b| a ^ b),
    ("min_i32", i32::min),
    ("max_i32", i32::max),
    ("max_i16", max_i16),
    ("splat_i32", |_, _| -77),
    ("to_f32", |a, _| (a as f32).to_bits() as i32),
];

impl Kernel for Integers<'_> {
    type Output = ([[i32; 16]; 10], i32);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Self::Output {
        let [a, b] = self.0.map(|v| s.load_i32(&v));
        let found = [
            s.add_i32(a, b),
            s.sub_i32(a, b),
            s.and(a, b),
            s.or(a, b),
            s.xor(a, b),
            s.min_i32(a, b),
            s.max_i32(a, b),
            s.max_i16(a, b),
            s.splat_i32(-77),
            s.bits(s.to_f32(a)),
        ];
        let each = found.map(
            #[inline(always)]
            |v| get_i32(s, v),
        );
        (each, s.reduce_max_i32(a))
    }
}

#[test]
fn integers() {
    let mut random = Random(3);
    for _ in 0..ROUNDS {
        let input = [lanes(|_| int(&mut random)), lanes(|_| int(&mut random))];
        for level in levels() {
            let (found, top) = level.run(Integers(&input));
            compare(level, found, &INTEGERS, |f, i| f(input[0][i], input[1][i]));
            assert_eq!(Some(top), input[0].into_iter().max(), "reduce_max_i32 on {level:?}");
        }
    }
}

struct Within<'a>(&'a [i32; 16], [i16; 2]);

impl Kernel for Within<'_> {
    type Output = u32;

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> u32 {
        s.halves_within(s.load_i32(self.0), self.1)
    }
}

#[test]
fn halves_within() {
    let mut random = Random(12);
    for round in 0..ROUNDS {
        let input = lanes(|_| int(&mut random));
        let halves: Vec<i16> = input.iter().flat_map(|&v| [v as i16, (v >> 16) as i16]).collect();
        // Bounds that are met, and the ends of all numbers.
        let (a, b) = (halves[round % 32], halves[7]);
        for limits in [[a.min(b), a.max(b)], [i16::MIN, a], [a, i16::MAX], [1, 0]] {
            let expected =
                (0..32).filter(|&i| limits[0] <= halves[i] && halves[i] <= limits[1]).fold(0, |bits, i| bits | 1u32 << i);
            for level in levels() {
                assert_eq!(level.run(Within(&input, limits)), expected, "{limits:?} on {level:?}");
            }
        }
    }
}

struct Shifts(i32);

impl Kernel for Shifts {
    type Output = [[i32; 2]; 32];

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Self::Output {
        let (v, mut shifted) = (s.splat_i32(self.0), [[0; 2]; 32]);
        for n in 0..32 {
            shifted[n] = [s.shl(v, n as u32), s.shr(v, n as u32)].map(
                #[inline(always)]
                |v| get_i32(s, v)[n % 16],
            );
        }
        shifted
    }
}

#[test]
fn shifts() {
    let mut random = Random(4);
    for _ in 0..ROUNDS.min(100) {
        let x = int(&mut random);
        let expected: [[i32; 2]; 32] = std::array::from_fn(|n| [x << n, (x as u32 >> n) as i32]);
        for level in levels() {
            assert_eq!(level.run(Shifts(x)), expected, "{x:#x} on {level:?}");
        }
    }
}

struct Dots<'a> {
    x: &'a [[i8; 4]],
    w: &'a [[i8; 64]],
    start: [i32; 16],
}

impl Kernel for Dots<'_> {
    type Output = [[i32; 16]; 5];

    /// One by one, and two rows by two panels at once.
    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> [[i32; 16]; 5] {
        let mut column_sums = [0; 16];
        for w in self.w {
            for n in 0..16 {
                column_sums[n] += w[4 * n..4 * n + 4].iter().map(|&w| i32::from(w)).sum::<i32>();
            }
        }
        let mut acc = s.add_i32(s.start(s.load_i32(&column_sums)), s.load_i32(&self.start));
        let mut accs = [[acc; 2]; 2];
        for (x, w) in self.x.iter().zip(self.w) {
            let (quad, w) = (s.pack_quad(*x), s.weights(w));
            acc = s.dot(acc, s.splat_quad(&quad), w);
            s.dots([&quad; 2], [w; 2], &mut accs);
        }
        [acc, accs[0][0], accs[0][1], accs[1][0], accs[1][1]].map(|acc| get_i32(s, acc))
    }
}

#[test]
fn dot_products_are_exact() {
    let mut random = Random(7);
    for round in 0..ROUNDS {
        let quads = 1 + random.below(20);
        // The extremes, alone and against each other, then anything.
        let (fixed_x, fixed_w) = ([-128, 127][round % 2], [-128, 127][round / 2 % 2]);
        let mut draw = |fixed| if round < 4 { fixed } else { random.int8() };
        let x: Vec<[i8; 4]> = (0..quads).map(|_| std::array::from_fn(|_| draw(fixed_x))).collect();
        let w: Vec<[i8; 64]> = (0..quads).map(|_| std::array::from_fn(|_| draw(fixed_w))).collect();
        let start = lanes(|_| int(&mut random));
        let mut expected = start;
        for (x, w) in x.iter().zip(&w) {
            for (n, sum) in expected.iter_mut().enumerate() {
                let products = (0..4).map(|i| i32::from(x[i]) * i32::from(w[4 * n + i]));
                *sum = sum.wrapping_add(products.sum());
            }
        }
        for level in levels() {
            assert_eq!(level.run(Dots { x: &x, w: &w, start }), [expected; 5], "{level:?}");
        }
    }
}

struct Woven<'a>(&'a [[i8; 32]; 4]);

impl Kernel for Woven<'_> {
    type Output = [[i32; 16]; 2];

    /// The quads of all columns, in their order.
    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Self::Output {
        let (mut a, mut b) = ([0; 64], [0; 64]);
        s.weave(self.0, [&mut a, &mut b]);
        s.in_order([s.load_i32(&bytemuck::cast(a)), s.load_i32(&bytemuck::cast(b))]).map(|v| get_i32(s, v))
    }
}

#[test]
fn rows_weave_into_columns() {
    let mut random = Random(9);
    for _ in 0..ROUNDS {
        let rows: [[i8; 32]; 4] = std::array::from_fn(|_| std::array::from_fn(|_| random.int8()));
        let quad = |column: usize| i32::from_le_bytes(rows.map(|row| row[column] as u8));
        let expected = [0, 16].map(|first| std::array::from_fn(|i| quad(first + i)));
        for level in levels() {
            assert_eq!(level.run(Woven(&rows)), expected, "{level:?}");
        }
    }
}

struct WovenFour<'a>(&'a [[i8; 64]; 4], [i8; 4]);

impl Kernel for WovenFour<'_> {
    type Output = [[i32; 16]; 4];

    /// The products of all columns, in their order, without what an offset adds.
    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Self::Output {
        let WovenFour(rows, x) = self;
        let halves = rows.each_ref().map(|row| {
            let (halves, _) = row.as_chunks();
            [&halves[0], &halves[1]]
        });
        let [x, nothing] = [x, [0; 4]].map(|x| s.splat_quad(&s.pack_quad(x)));
        let zero = s.splat_i32(0);
        s.in_order_four(s.weave_four(halves).map(|w| s.sub_i32(s.dot(zero, x, w), s.dot(zero, nothing, w))))
            .map(|v| get_i32(s, v))
    }
}

#[test]
fn long_rows_weave_into_columns() {
    let mut random = Random(10);
    for _ in 0..ROUNDS {
        let rows: [[i8; 64]; 4] = std::array::from_fn(|_| std::array::from_fn(|_| random.int8()));
        let x: [i8; 4] = std::array::from_fn(|_| random.int8());
        let sum = |column: usize| (0..4).map(|i| i32::from(x[i]) * i32::from(rows[i][column])).sum();
        let expected = [0, 16, 32, 48].map(|first| std::array::from_fn(|i| sum(first + i)));
        for level in levels() {
            assert_eq!(level.run(WovenFour(&rows, x)), expected, "{level:?}");
        }
    }
}

struct Staged<'a>(&'a [[i8; 64]; 3], [i8; 4]);

impl Kernel for Staged<'_> {
    type Output = ([[i32; 16]; 6], [[i8; 64]; 4]);

    /// Products with weights as they lie and staged, and an interleaved vector.
    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Self::Output {
        let Staged(w, x) = self;
        let (mut words, mut out) = ([0; 16 * 3], ([[0; 16]; 6], [[0; 64]; 4]));
        let quad = s.splat_quad(&s.pack_quad(x));
        let [staged] = s.stage([&w[..]], &mut words);
        for i in 0..3 {
            s.prefetch(&w[i]);
            s.prefetch_far(&w[i]);
            // Nothing lies there.
            s.prefetch_behind(&w[i][0], usize::MAX / 3);
            out.0[2 * i] = get_i32(s, s.dot(s.splat_i32(0), quad, s.weights(&w[i])));
            out.0[2 * i + 1] = get_i32(s, s.dot(s.splat_i32(0), quad, s.load_weights(&staged[i])));
        }
        let rows = w.as_flattened().as_chunks::<32>().0;
        let [a, b, c, d] = &mut out.1;
        // Two halves of a row lie apart: the second half of each is that of the next row.
        s.interleave([0, 1, 2, 3].map(|row| [&rows[row], &rows[row + 2]]), [a, b, c, d]);
        out
    }
}

#[test]
fn staged_weights_are_the_same_and_rows_interleave() {
    let mut random = Random(8);
    for _ in 0..ROUNDS {
        let w: [[i8; 64]; 3] = std::array::from_fn(|_| std::array::from_fn(|_| random.int8()));
        let x = std::array::from_fn(|_| random.int8());
        for level in levels() {
            let (sums, columns) = level.run(Staged(&w, x));
            for i in 0..3 {
                assert_eq!(sums[2 * i], sums[2 * i + 1], "{level:?}");
            }
            let rows = w.as_flattened();
            for (part, columns) in columns.iter().enumerate() {
                let at = |at: usize| (at % 4 + part / 2 * 2) * 32 + part % 2 * 16 + at / 4;
                assert_eq!(*columns, std::array::from_fn(|i| rows[at(i)]), "{level:?}");
            }
        }
    }
}

struct Tiled<'a> {
    x: &'a [u64],
    rows: usize,
    steps: usize,
    w: &'a [[[i8; 64]; 32]; 2],
    ahead: Ahead<'a>,
}

impl Kernel for Tiled<'_> {
    type Output = Option<[Vec<[i32; 16]>; 4]>;

    /// Two panels at once, a place left free behind them, then one, its first row apart; the same with the other panel added; `None`
    /// without a unit.
    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Self::Output {
        let Tiled { x, rows, steps, w, ahead } = self;
        let (mut two, mut one) = (vec![[7; 16]; 96], vec![[7; 16]; 32]);
        let unit = s.tile_unit()?;
        let block = TileBlock { x, pitch: 17, rows, steps, adds: false };
        // SAFETY: nothing else here takes the unit.
        let mut tiles = unsafe { unit.tiles() };
        tiles.multiply(block, [&w[0], &w[1]], ahead, &mut two, 3);
        tiles.multiply(TileBlock { rows: 1, ..block }, [&w[1]], ahead, &mut one, 1);
        if rows > 1 {
            tiles.multiply(TileBlock { x: &x[17..], rows: rows - 1, ..block }, [&w[1]], ahead, &mut one[1..], 1);
        }
        let (mut added, mut alone, adding) = (two.clone(), one.clone(), TileBlock { adds: true, ..block });
        tiles.multiply(adding, [&w[1], &w[0]], ahead, &mut added, 3);
        tiles.multiply(adding, [&w[0]], ahead, &mut alone, 1);
        Some([two, one, added, alone])
    }
}

#[test]
fn tiles_are_exact() {
    let mut random = Random(9);
    let mut covered = vec![];
    for round in 0..ROUNDS / 10 {
        let (rows, steps) = (1 + round % 32, 1 + round % 2);
        let x: Vec<i8> = (0..17 * 8 * 32).map(|_| if round < 40 { -128 } else { random.int8() }).collect();
        let w: [[[i8; 64]; 32]; 2] = std::array::from_fn(|_| std::array::from_fn(|_| std::array::from_fn(|_| random.int8())));
        let words: Vec<u64> = x.as_chunks().0.iter().map(|&bytes| u64::from_le_bytes(bytes.map(|b: i8| b as u8))).collect();
        let sum = |row: usize, v: usize, n: usize| -> i32 {
            (0..64 * steps).map(|k| i32::from(x[row * 17 * 8 + k]) * i32::from(w[v][k / 4][4 * n + k % 4])).sum()
        };
        // Eight places, four, and shares of nothing.
        let (i, blocks) = [(0, 1), (4, 5), (0, 99), (2, 3)][round % 4];
        let ahead = if round % 5 == 0 { Ahead::NEAR } else { Ahead::share(w.as_flattened(), i, blocks) };
        for level in levels() {
            let Some([two, one, added, alone]) = level.run(Tiled { x: &words, rows, steps, w: &w, ahead }) else { continue };
            covered.push(level.isa().name());
            for row in 0..rows {
                for n in 0..16 {
                    let found = [two[3 * row][n], two[3 * row + 1][n], one[row][n]];
                    assert_eq!(found, [sum(row, 0, n), sum(row, 1, n), sum(row, 1, n)], "{rows} rows, {steps} steps: {row}, {n}");
                    let found = [added[3 * row][n], added[3 * row + 1][n], alone[row][n]];
                    assert_eq!(found, [sum(row, 0, n) + sum(row, 1, n); 3], "{rows} rows, {steps} steps: {row}, {n}");
                }
            }
            let free = [&two, &added].into_iter().flat_map(|two| two.iter().skip(2).step_by(3).chain(&two[3 * rows..]));
            let behind = one[rows..].iter().chain(&alone[rows..]);
            assert!(free.chain(behind).all(|&sums| sums == [7; 16]), "places that are not asked for");
        }
    }
    covered.dedup();
    println!("tile units: {}", if covered.is_empty() { "none here, so none was tested".into() } else { covered.join(" ") });
}

struct Wide<'a>(&'a [i32; 16], u32);

impl Kernel for Wide<'_> {
    type Output = [i32; 16];

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Self::Output {
        get_i32(s, s.mul_even(s.load_i32(self.0), self.1))
    }
}

#[test]
fn wide_products() {
    let mut random = Random(10);
    for _ in 0..ROUNDS {
        let (a, b) = (lanes(|_| int(&mut random)), random.bits() as u32);
        let expected = lanes(|i| {
            let product = u64::from(a[i & !1] as u32) * u64::from(b);
            (product >> (32 * (i & 1))) as i32
        });
        for level in levels() {
            assert_eq!(level.run(Wide(&a, b)), expected, "{level:?}");
        }
    }
}
