//! Rows that begin with dequantisation, against their scalar definitions bit for bit, and against `f64`.

mod common;
use common::{LENGTHS, Random, bits, levels};
use half::{bf16, f16};
use tilekern_kernels::element::Element;
use tilekern_kernels::{reference, rows};

/// Sums and scales of one row; now and then a sum beyond 2^24, an extreme one, or a scale that is no ordinary number.
struct Sums {
    input: Vec<i32>,
    scale: f32,
    columns: Vec<f32>,
}

fn sums(random: &mut Random, n: usize) -> Sums {
    let input = (0..n).map(|_| match random.below(8) {
        0 => random.bits() as i32,
        1 => i32::MIN,
        2 => 0,
        _ => random.bits() as i32 >> 12,
    });
    let input = input.collect();
    let scale = [1e-4, 1e-3, 1.0, 0.0, 1e-40, f32::INFINITY, f32::NAN][random.below(7)];
    Sums { input, scale, columns: (0..n).map(|_| random.number() * 1e-3).collect() }
}

fn same<T: Element>(found: &[T], expected: &[T], context: &str) {
    for i in 0..expected.len() {
        assert_eq!(bits(found[i].as_()), bits(expected[i].as_()), "{context} n={} i={i}", expected.len());
    }
}

#[test]
fn dequant_equals_the_definition() {
    let mut random = Random(1);
    for n in LENGTHS {
        let Sums { input, scale, columns } = sums(&mut random, n);
        let expected: Vec<f32> = (0..n).map(|i| reference::dequant(input[i], scale, columns[i])).collect();
        for level in levels() {
            let mut output = vec![0.0; n];
            level.run(rows::Dequant { input: &input, input_scale: scale, weight_scale: &columns, output: &mut output });
            same(&output, &expected, &format!("{level:?}"));
        }
    }
}

fn residual_row<'a, T>(sums: &'a Sums, residual: &'a [T], output: &'a mut [T]) -> rows::DequantResidual<'a, T> {
    let Sums { input, scale, columns } = sums;
    rows::DequantResidual { input, input_scale: *scale, weight_scale: columns, residual, output }
}

fn residual_equals_the_definition<T: Element>() {
    let mut random = Random(2);
    for n in LENGTHS {
        let sums = sums(&mut random, n);
        let residual: Vec<T> = (0..n).map(|_| T::narrow(random.number())).collect();
        let gamma: Vec<T> = (0..n).map(|_| T::narrow(random.unit())).collect();
        let mut expected = vec![T::default(); n];
        reference::dequant_residual(&sums.input, sums.scale, &sums.columns, &residual, &mut expected);
        let mut quantised = vec![0; n];
        let expected_scale = reference::rms_norm_quant(&expected, &gamma, 1e-5, &mut quantised);
        for level in levels() {
            let mut output = vec![T::default(); n];
            level.run(residual_row(&sums, &residual, &mut output));
            same(&output, &expected, &format!("{level:?}"));

            let (mut hidden, mut output) = (vec![T::default(); n], vec![0; n]);
            let both = rows::DequantResidualRmsNormQuant {
                hidden: residual_row(&sums, &residual, &mut hidden),
                gamma: &gamma,
                eps: 1e-5,
                output: &mut output,
            };
            assert_eq!(bits(level.run(both)), bits(expected_scale), "{level:?} n={n}");
            same(&hidden, &expected, &format!("{level:?}"));
            assert_eq!(output, quantised, "{level:?} n={n}");
        }
    }
}

#[test]
fn residuals_equal_the_definition() {
    residual_equals_the_definition::<f32>();
    residual_equals_the_definition::<f16>();
    residual_equals_the_definition::<bf16>();
}

#[test]
fn rope_equals_the_definition() {
    let mut random = Random(3);
    for size in [2, 4, 6, 8, 10, 14, 16, 18, 30, 32, 34, 48, 64, 72, 80, 96, 128, 172, 256] {
        for heads in [1, 2, 3, 5, 8] {
            let n = heads * size;
            let Sums { input, scale, columns } = sums(&mut random, n);
            let freqs: Vec<f32> = (0..size).map(|_| random.number()).collect();
            let mut expected = vec![0.0; n];
            reference::dequant_rope(&input, scale, &columns, &freqs, &mut expected);
            for level in levels() {
                let mut output = vec![0.0; n];
                level.run(rows::DequantRope {
                    input: &input,
                    input_scale: scale,
                    weight_scale: &columns,
                    freqs: &freqs,
                    output: &mut output,
                });
                same(&output, &expected, &format!("{level:?} size={size}"));
            }
        }
    }
}

#[test]
fn swiglu_equals_the_definition() {
    let mut random = Random(4);
    for n in LENGTHS {
        let (gate, other) = (sums(&mut random, n), sums(&mut random, n));
        let value = |i: usize| {
            let a = reference::dequant(gate.input[i], gate.scale, gate.columns[i]);
            let b = reference::dequant(other.input[i], gate.scale, other.columns[i]);
            reference::swiglu(a, b)
        };
        let mut expected = vec![0; n];
        let expected_scale = reference::quantize_row(n, value, &mut expected);
        for level in levels() {
            let (mut stage, mut output) = (vec![f32::NAN; n], vec![0; n]);
            let scale = level.run(rows::DequantSwigluQuant {
                w1: &gate.input,
                w3: &other.input,
                input_scale: gate.scale,
                w1_scale: &gate.columns,
                w3_scale: &other.columns,
                stage: &mut stage,
                output: &mut output,
            });
            assert_eq!(bits(scale), bits(expected_scale), "{level:?} n={n}");
            assert_eq!(output, expected, "{level:?} n={n}");
            let expected: Vec<f32> = (0..n).map(value).collect();
            same(&stage, &expected, &format!("{level:?}"));
        }
    }
}

#[test]
fn close_to_f64() {
    let mut random = Random(5);
    let n = 1000;
    let input: Vec<i32> = (0..n).map(|_| random.bits() as i32 >> 8).collect();
    let columns: Vec<f32> = (0..n).map(|_| random.unit() * 1e-3).collect();
    let freqs: Vec<f32> = (0..8).map(|_| random.unit()).collect();
    let scale = 1e-3;
    let exact = |i: usize| f64::from(input[i]) * f64::from(scale) * f64::from(columns[i]);
    for level in levels() {
        let mut output = vec![0.0; n];
        level.run(rows::DequantRope {
            input: &input,
            input_scale: scale,
            weight_scale: &columns,
            freqs: &freqs,
            output: &mut output,
        });
        for i in (0..n).step_by(2) {
            let (a, b) = (exact(i), exact(i + 1));
            let (cos, sin) = (f64::from(freqs[i % 8]), f64::from(freqs[i % 8 + 1]));
            for (found, expected) in [(output[i], a * cos - b * sin), (output[i + 1], b * cos + a * sin)] {
                let bound = 4e-7 * (a.abs() + b.abs());
                assert!((f64::from(found) - expected).abs() <= bound, "{level:?} i={i}: {found} {expected}");
            }
        }

        let (mut stage, mut output) = (vec![0.0; n], vec![0; n]);
        level.run(rows::DequantSwigluQuant {
            w1: &input,
            w3: &input,
            input_scale: scale,
            w1_scale: &columns,
            w3_scale: &columns,
            stage: &mut stage,
            output: &mut output,
        });
        for i in 0..n {
            let a = exact(i);
            let expected = a / (1.0 + (-a).exp()) * a;
            // An argument that is off by half an ulp moves the exponential by as much of itself.
            let bound = 1e-6 * (1.0 + a.abs()) * expected.abs() + 1e-30;
            assert!((f64::from(stage[i]) - expected).abs() <= bound, "{level:?} i={i}: {} {expected}", stage[i]);
        }
    }
}
