//! Philox against the known answers of its authors, and the exponential numbers against definition, worked example and logarithm.

mod common;
use common::{Random, levels};
use tilekern_kernels::dispatch::Kernel;
use tilekern_kernels::philox::Exponential;
use tilekern_kernels::reference::{exponential, philox4x32, random_word, uniform};
use tilekern_kernels::rows::Span;
use tilekern_kernels::simd::Dot;

#[test]
fn known_answers() {
    let zeros = [0x6627_E8D5, 0xE169_C58D, 0xBC57_AC4C, 0x9B00_DBD8];
    let ones = [0x408F_276D, 0x41C8_3B0E, 0xA20B_C7C6, 0x6D54_51FD];
    let pi = [0xD16C_FE09, 0x94FD_CCEB, 0x5001_E420, 0x2412_6EA1];
    assert_eq!(philox4x32([0; 4], [0; 2]), zeros);
    assert_eq!(philox4x32([u32::MAX; 4], [u32::MAX; 2]), ones);
    let digits = [0x243F_6A88, 0x85A3_08D3, 0x1319_8A2E, 0x0370_7344];
    assert_eq!(philox4x32(digits, [0xA409_3822, 0x299F_31D0]), pi);
}

/// Seed 1, offset 0, shape `[2,4]`.
#[test]
fn worked_example() {
    let words =
        [3_823_634_032, 117_906_450, 3_878_945_999, 2_313_400_127, 3_140_572_256, 3_885_566_366, 1_447_212_011, 149_215_281];
    let numbers = [0.116_242_684, 3.595_307_8, 0.101_880_47, 0.618_725_6, 0.313_038_98, 0.100_175_16, 1.087_805, 3.359_809_2];
    for i in 0..8 {
        assert_eq!(random_word(1, 0, 8, i as u64), words[i]);
        let found = exponential(1, 0, 8, i as u64);
        assert!((found - numbers[i]).abs() <= 3e-7 * numbers[i], "{i}: {found}");
    }
}

struct At(Exponential, u64);

impl Kernel for At {
    type Output = [f32; 16];
    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> [f32; 16] {
        let mut e = [0.0; 16];
        s.store(self.0.at(s, self.1), &mut e);
        e
    }
}

/// Every kind of turn: one for all, a boundary at each place of a vector, the first word of the second counter.
#[test]
fn sixteen_at_once_equal_the_definition() {
    let mut random = Random(3);
    let threads = 624 * 256;
    let mut cases = vec![(8, 0), (4000, 3984), (threads, threads - 16), (1 << 40, 1 << 39), (1 << 33, (1 << 32) - 8)];
    for turn in [1, 2, 3, 4, 5, 8, 1000] {
        cases.extend((0..17).map(|back| (threads * 2000, threads * turn - back)));
    }
    for (elements, first) in cases {
        let (seed, offset) = (random.bits(), if elements % 3 == 0 { u64::MAX - random.bits() % 9 } else { random.bits() % 50 });
        for level in levels() {
            let found = level.run(At(Exponential::new(seed, offset, elements), first));
            for i in 0..16 {
                let expected = exponential(seed, offset, elements, first + i as u64);
                assert_eq!(found[i].to_bits(), expected.to_bits(), "{level:?} {elements} {first} {i}");
            }
        }
    }
}

/// Which elements a search looks at.
enum Looked<'a> {
    /// As many from the first on.
    All(usize),
    /// These, counted from the first.
    Some(&'a [i32]),
}

/// The words of the vectors that reach a limit, as signed numbers in their order, each with its place.
struct Reaching<'a> {
    numbers: Exponential,
    first: u64,
    looked: Looked<'a>,
    least: i32,
    /// By how much the limit rises with each vector.
    step: i32,
    found: &'a mut Vec<(usize, i32)>,
}

impl Kernel for Reaching<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let mut least = self.least;
        let body = |span: Span, words: S::I32| {
            let mut lanes = [0; 16];
            s.store_i32(words, &mut lanes);
            assert!(lanes.iter().any(|&word| word >= least), "called for nothing");
            self.found.extend((span.at..span.at + span.len).zip(lanes));
            least = least.saturating_add(self.step);
            least
        };
        match self.looked {
            Looked::All(n) => self.numbers.reaching(s, self.first, n, self.least, body),
            Looked::Some(indices) => self.numbers.reaching_listed(s, self.first, indices, self.least, body),
        }
    }
}

/// Over the ends of turns, of vectors and of what is drawn at once; with a limit that all reach, one that few do, and one that rises.
#[test]
fn no_word_that_reaches_a_limit_is_missed() {
    let (threads, elements, mut random) = (624 * 256, 624 * 256 * 5, Random(11));
    for (case, n) in [1, 15, 16, 17, 32, 33, 127, 128, 129, 300].into_iter().cycle().take(40).enumerate() {
        let first = threads * (1 + case as u64 % 4) - random.bits() % n as u64;
        let (seed, offset) = (random.bits(), random.bits() % 50);
        let indices: Vec<i32> = (0..n as i32).map(|i| i * 3 - (random.bits() % 2) as i32 * i.min(1)).collect();
        let word = |place: u64| (random_word(seed, offset, elements, first + place) ^ 1 << 31) as i32;
        for (level, listed) in levels().into_iter().flat_map(|level| [(level, false), (level, true)]) {
            let words: Vec<i32> = (0..n).map(|i| word(if listed { indices[i] as u64 } else { i as u64 })).collect();
            for (least, step) in [(i32::MIN, 0), (i32::MAX / 8 * 7, 0), (i32::MIN, 1 << 27)] {
                let looked = if listed { Looked::Some(&indices) } else { Looked::All(n) };
                let mut found = vec![];
                let numbers = Exponential::new(seed, offset, elements);
                level.run(Reaching { numbers, first, looked, least, step, found: &mut found });
                assert!(found.iter().all(|&(place, found)| words[place] == found), "{level:?} {n} {listed}");
                let last = if step == 0 { least } else { i32::MAX / 8 * 7 };
                let reach = |&(place, word): &(usize, i32)| (word >= last).then_some(place);
                let expected = words.iter().copied().enumerate().filter_map(|at| reach(&at));
                assert!(found.iter().filter_map(reach).eq(expected), "{level:?} {n} {listed} {least}");
            }
        }
    }
}

/// The documented range, at its ends: 2^-24 and 22.874.
#[test]
fn range() {
    assert_eq!(uniform(u32::MAX), 1.0);
    assert_eq!(uniform(0), 2.0f32.powi(-33));
    let greatest = -f64::from(uniform(0)).ln();
    assert!((greatest - 22.8739).abs() < 1e-3);
    for i in 0..100_000 {
        let e = exponential(7, 0, 100_000, i);
        assert!((2.0f32.powi(-24)..22.875).contains(&e));
        let exact = -f64::from(uniform(random_word(7, 0, 100_000, i))).ln();
        assert!((f64::from(e) - exact).abs() <= 2.5e-7 * exact, "{i}: {e} {exact}");
    }
}
