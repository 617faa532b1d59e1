//! Attention against its scalar definition, bit for bit, for every tile; and against `f64`.

mod common;
use common::{Random, bits, levels};
use half::{bf16, f16};
use tilekern_kernels::element::Element;
use tilekern_kernels::reference;
use tilekern_kernels::tiles::{Attention, KvTiled};

struct Case<T> {
    query: Vec<f32>,
    keys: Vec<T>,
    values: Vec<T>,
    mask: Vec<f32>,
}

impl<T: Element> Case<T> {
    fn new(random: &mut Random, width: usize, positions: usize) -> Case<T> {
        Case {
            query: (0..width).map(|_| random.unit() * 3.0).collect(),
            keys: (0..width * positions).map(|_| T::narrow(random.unit())).collect(),
            values: (0..width * positions).map(|_| T::narrow(random.number())).collect(),
            mask: (0..positions).map(|j| if j % 3 == 1 { f32::NEG_INFINITY } else { random.unit() }).collect(),
        }
    }

    fn expected(&self, scale: f32, masked: bool) -> Vec<u32> {
        let (mut scores, mut output) = (vec![0.0; self.mask.len()], vec![0.0; self.query.len()]);
        let mask = masked.then_some(&self.mask[..]);
        reference::attention(&self.query, &self.keys, &self.values, scale, mask, &mut scores, &mut output);
        output.into_iter().map(bits).collect()
    }

    fn found(&self, run: impl FnOnce(Attention<'_, T>), scale: f32, masked: bool) -> Vec<u32> {
        let width = self.query.len();
        let (mut scores, mut output) = (vec![9.0; self.mask.len()], vec![9.0; width]);
        run(Attention {
            query: &self.query,
            keys: &self.keys,
            values: &self.values,
            strides: [width; 2],
            positions: self.mask.len(),
            scale,
            mask: masked.then_some(&self.mask[..]),
            scores: &mut scores,
            chains: &mut vec![9.0; 4 * width],
            output: &mut output,
        });
        output.into_iter().map(bits).collect()
    }
}

fn equals_the_definition<T: Element>() {
    let mut random = Random(11);
    for width in [2, 8, 16, 18, 48, 64, 80, 128] {
        for positions in [1, 2, 15, 16, 17, 33, 100, 257] {
            let case = Case::<T>::new(&mut random, width, positions);
            for masked in [false, true] {
                let expected = case.expected(0.3, masked);
                for level in levels() {
                    let context = || format!("{level:?} width {width} positions {positions}");
                    assert_eq!(case.found(|call| level.run(KvTiled::<T, 4>(call)), 0.3, masked), expected, "{}", context());
                    assert_eq!(case.found(|call| level.run(call), 0.3, masked), expected, "{}", context());
                    assert_eq!(case.found(|call| level.run(KvTiled::<T, 256>(call)), 0.3, masked), expected, "{}", context());
                }
            }
        }
    }
}

#[test]
fn f32_equals_the_definition() {
    equals_the_definition::<f32>();
}

/// A score that is a NaN spreads over the head, whatever the others are; scores of nothing but -inf give zeros.
#[test]
fn nan_scores() {
    const NAN: f32 = f32::NAN;
    const OUT: f32 = f32::NEG_INFINITY;
    let mut random = Random(12);
    for positions in [1, 2, 17] {
        for level in levels() {
            let output = |query: f32, key: f32, mask: f32| {
                let mut case = Case::<f32>::new(&mut random, 8, positions);
                case.mask = vec![mask; positions];
                (case.query[3], case.keys[3], case.mask[0]) = (query, key, 0.0);
                case.found(|call| level.run(call), 1.0, true)
            };
            let mut output = output;
            for (query, key, mask) in [(1.0, NAN, 0.0), (1.0, NAN, OUT), (NAN, 1.0, 0.0), (NAN, 1.0, OUT)] {
                assert_eq!(output(query, key, mask), [bits(NAN); 8], "{level:?} {query} {key} {mask} of {positions}");
            }
            let mut case = Case::<f32>::new(&mut random, 8, positions);
            case.mask = vec![OUT; positions];
            assert_eq!(case.found(|call| level.run(call), 1.0, true), [0; 8], "{level:?} of {positions}");
        }
    }
}

#[test]
fn half_equals_the_definition() {
    equals_the_definition::<f16>();
    equals_the_definition::<bf16>();
}

#[test]
fn a_query_that_sees_nothing_gets_zeros() {
    for level in levels() {
        let mut case = Case::<f32>::new(&mut Random(12), 8, 20);
        case.mask.fill(f32::NEG_INFINITY);
        assert_eq!(case.found(|call| level.run(call), 1.0, true), [0; 8]);
    }
}

#[test]
fn a_nan_spreads() {
    for level in levels() {
        let mut case = Case::<f32>::new(&mut Random(13), 8, 20);
        case.keys[5 * 8] = f32::NAN;
        assert_eq!(case.found(|call| level.run(call), 1.0, false), [bits(f32::NAN); 8]);
        assert_eq!(case.found(|call| level.run(call), 1.0, false), case.expected(1.0, false));
    }
}

#[test]
fn close_to_f64() {
    let mut random = Random(14);
    for (width, positions) in [(8, 40), (64, 300)] {
        let mut case = Case::<f32>::new(&mut random, width, positions);
        case.values.iter_mut().for_each(|v| *v = random.unit());
        let dot = |j: usize| -> f64 {
            (0..width).map(|d| f64::from(case.query[d]) * f64::from(case.keys[j * width + d])).sum::<f64>() * 0.25
        };
        let top = (0..positions).map(dot).fold(f64::MIN, f64::max);
        let weights: Vec<f64> = (0..positions).map(|j| (dot(j) - top).exp()).collect();
        let sum: f64 = weights.iter().sum();
        for level in levels() {
            let found = case.found(|call| level.run(call), 0.25, false);
            for d in 0..width {
                let exact: f64 = (0..positions).map(|j| weights[j] * f64::from(case.values[j * width + d])).sum::<f64>() / sum;
                assert!((f64::from(f32::from_bits(found[d])) - exact).abs() < 3e-6, "{level:?}");
            }
        }
    }
}
