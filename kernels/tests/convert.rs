//! Rows copied into another type or scaled, against the scalar conversion bit for bit.

mod common;
use common::{LENGTHS, Random, bits, levels};
use half::{bf16, f16};
use tilekern_kernels::element::Element;
use tilekern_kernels::rows;

fn rows_equal_the_definition<T: Element>() {
    let mut random = Random(1);
    for n in LENGTHS {
        let mut input: Vec<f32> = (0..n).map(|_| random.number()).collect();
        input[random.below(n)] = [f32::NAN, f32::INFINITY, 65519.9, 65520.0, f32::MAX][random.below(5)];
        let narrow: Vec<T> = input.iter().map(|&x| T::narrow(x)).collect();
        let scaled: Vec<T> = narrow.iter().map(|x| T::narrow(x.as_() * 8.5)).collect();
        for level in levels() {
            let (mut a, mut b) = (vec![T::default(); n], vec![T::default(); n]);
            level.run(rows::Narrow { input: &input, output: &mut a });
            level.run(rows::Scale { input: &narrow, factor: 8.5, output: &mut b });
            for i in 0..n {
                assert_eq!(bits(a[i].as_()), bits(narrow[i].as_()), "{level:?} n={n} i={i}");
                assert_eq!(bits(b[i].as_()), bits(scaled[i].as_()), "{level:?} n={n} i={i}");
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
