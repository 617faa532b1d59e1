//! The float head and the temperature against their scalar definitions, bit for bit.

mod common;
use common::{LENGTHS, Random, bits, levels};
use half::bf16;
use tilekern_kernels::element::Element;
use tilekern_kernels::{reference, rows};

fn projects_as_defined<T: Element>() {
    let mut random = Random(1);
    for k in LENGTHS {
        for n in [1, 3, 4, 15, 16, 17, 37] {
            let mut numbers = |count: usize| -> Vec<T> { (0..count).map(|_| T::narrow(random.number())).collect() };
            let (input, weight) = (numbers(k), numbers(n * k));
            let wide: Vec<f32> = input.iter().map(|x| x.as_()).collect();
            let expected: Vec<f32> = weight.chunks(k).map(|row| reference::dot(&wide, row)).collect();
            for level in levels() {
                let mut output = vec![f32::NAN; n];
                level.run(rows::Project { input: &input, weight: &weight, output: &mut output });
                for i in 0..n {
                    assert_eq!(bits(output[i]), bits(expected[i]), "{level:?} k={k} n={n} i={i}");
                }
            }
        }
    }
}

#[test]
fn rows_project_as_defined() {
    projects_as_defined::<f32>();
    projects_as_defined::<bf16>();
}

#[test]
fn rows_divide_as_numbers_do() {
    let mut random = Random(2);
    for n in LENGTHS {
        let row: Vec<f32> = (0..n).map(|_| random.number()).collect();
        let max = row.iter().fold(f32::NEG_INFINITY, |max, &x| max.max(x));
        for by in [0.8, 1e-38, 3e38, 1.0, 1e-45] {
            // What would be too large is divided from the largest on.
            let shift = if (max / by).is_infinite() { max } else { 0.0 };
            for level in levels() {
                let mut output = row.clone();
                level.run(rows::Divide { row: &mut output, by });
                for i in 0..n {
                    assert_eq!(bits(output[i]), bits((row[i] - shift) / by), "{level:?} n={n} by={by}");
                }
            }
        }
    }
}
