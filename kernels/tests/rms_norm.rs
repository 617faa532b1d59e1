//! RMSNorm against its scalar definition, bit for bit, and against `f64`.

mod common;
use common::{LENGTHS, Random, bits, levels};
use half::{bf16, f16};
use tilekern_kernels::element::Element;
use tilekern_kernels::{reference, rows};

fn rows_equal_the_definition<T: Element + std::fmt::Debug>() {
    let mut random = Random(1);
    for n in LENGTHS {
        for special in [0.0, f32::NAN, f32::INFINITY, 1e-40] {
            let mut input: Vec<T> = (0..n).map(|_| T::narrow(random.number())).collect();
            let gamma: Vec<T> = (0..n).map(|_| T::narrow(random.unit())).collect();
            if special != 0.0 {
                input[random.below(n)] = T::narrow(special);
            }
            let mut expected = vec![T::default(); n];
            reference::rms_norm(&input, &gamma, 1e-5, &mut expected);
            let mut quantised = vec![0; n];
            let scale = reference::rms_norm_quant(&input, &gamma, 1e-5, &mut quantised);
            for level in levels() {
                let mut output = vec![T::default(); n];
                level.run(rows::RmsNorm { input: &input, gamma: &gamma, eps: 1e-5, output: &mut output });
                for i in 0..n {
                    assert_eq!(bits(output[i].as_()), bits(expected[i].as_()), "{level:?} n={n} i={i}");
                }
                let mut output = vec![0; n];
                let found = level.run(rows::RmsNormQuant { input: &input, gamma: &gamma, eps: 1e-5, output: &mut output });
                assert_eq!(bits(found), bits(scale), "{level:?} n={n}");
                assert_eq!(output, quantised, "{level:?} n={n}");
            }
        }
    }
}

#[test]
fn f32_rows_equal_the_definition() {
    rows_equal_the_definition::<f32>();
}

#[test]
fn half_rows_equal_the_definition() {
    rows_equal_the_definition::<f16>();
    rows_equal_the_definition::<bf16>();
}

/// What is beyond numbers, by the words of the operation; the same with and without lanes behind the row.
#[test]
fn rows_at_the_edges() {
    const NAN: f32 = f32::NAN;
    for n in [1, 5, 16, 17, 300] {
        let norm = |first: f32, others: f32, eps: f64| {
            let (mut input, gamma, mut answers) = (vec![others; n], vec![2.0; n], Vec::new());
            input[0] = first;
            for level in levels() {
                let (mut output, mut quantised) = (vec![9.0; n], vec![9; n]);
                level.run(rows::RmsNorm { input: &input, gamma: &gamma, eps, output: &mut output });
                let call = rows::RmsNormQuant { input: &input, gamma: &gamma, eps, output: &mut quantised };
                answers.push((output, level.run(call), quantised));
            }
            answers
        };
        for (output, scale, quantised) in norm(0.0, 0.0, 0.0) {
            assert_eq!((output, scale, quantised), (vec![0.0; n], 0.0, vec![0; n]));
        }
        for special in [NAN, f32::INFINITY, -f32::INFINITY, 2e19] {
            for (output, scale, quantised) in norm(special, 1.0, 1e-5) {
                assert!(scale.is_nan() && output.iter().all(|x| x.is_nan()), "{special} {n}: {scale} {output:?}");
                assert_eq!(quantised, vec![0; n]);
            }
        }
        // Squares that vanish, and an eps that does: no lane behind the row counts.
        for eps in [0.0, 1e-80] {
            for (output, scale, quantised) in norm(1e-30, 1e-30, eps) {
                assert!(scale.is_finite() && scale == output[0] / 127.0, "{n}: {scale} {output:?}");
                assert_eq!(quantised, vec![127; n]);
            }
        }
    }
}

#[test]
fn close_to_f64() {
    let mut random = Random(2);
    for n in LENGTHS {
        let input: Vec<f32> = (0..n).map(|_| random.unit()).collect();
        let gamma: Vec<f32> = (0..n).map(|_| random.unit()).collect();
        let mean = input.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / n as f64;
        let r = 1.0 / (mean + 1e-5).sqrt();
        let mut output = vec![0.0; n];
        for level in levels() {
            level.run(rows::RmsNorm { input: &input, gamma: &gamma, eps: 1e-5, output: &mut output });
            for i in 0..n {
                let expected = r * f64::from(input[i]) * f64::from(gamma[i]);
                assert!((f64::from(output[i]) - expected).abs() <= 3e-7 * expected.abs(), "{level:?} n={n}");
            }
        }
    }
}

#[test]
fn rows_without_a_usable_scale_quantise_to_zero() {
    for (value, scale) in [(0.0, 0.0), (f32::INFINITY, f32::INFINITY), (f32::NAN, f32::NAN), (1e-40, 1e-40 / 127.0)] {
        for level in levels() {
            let (input, mut output) = (vec![value; 19], vec![1; 19]);
            let found = level.run(rows::Quantize { input: &input, output: &mut output });
            assert_eq!(bits(found), bits(scale), "{level:?}");
            assert_eq!(output, [0; 19], "{level:?}");
        }
    }
}
