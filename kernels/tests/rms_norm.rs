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
