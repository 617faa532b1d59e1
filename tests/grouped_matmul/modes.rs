//! Random calls of every mode and form against the scalar definition, bit for bit, on every instruction set and thread count.

use crate::case::{Case, Layouts};
use crate::common::{Random, every_host};
use crate::forms::Form;
use tilekern::{Host, Isa};

#[test]
fn grouped_matmul_random_calls_of_every_mode() {
    let mut random = Random(61);
    let mut forms = [0; 3];
    for number in 0..2000 {
        let case = Case::random(&mut random);
        let expected = case.expected();
        let form = Form::of(number, &case, 32);
        let layouts = form.of_bytes(&case);
        forms[form as usize] += 1;
        let check = |host: &Host<&dyn tilekern::ParallelFor>| {
            let (result, found) = case.run(host, |call, layouts| form.set(call, layouts, &case), &layouts);
            assert_eq!(result, Ok(()));
            let context = format!("call {number} on {}: {}x{}x{} of {}", host.isa().name(), case.m, case.k, case.n, case.e);
            assert!(found == expected, "{context}, {form:?}");
        };
        // Every call on the best instruction set, some on all.
        if number % 20 == 0 {
            every_host(check);
        } else {
            check(&Host::with(Isa::detect(), &tilekern::Serial as &dyn tilekern::ParallelFor).unwrap());
        }
    }
    assert!(forms.iter().all(|&calls| calls >= 30), "{forms:?}");
}

/// Long groups are cut into chunks, and many short ones share one; the sums of a chunk are those of its experts. The more columns, the
/// fewer rows have room; on a unit for tiles long groups have more than short ones together.
#[test]
fn grouped_matmul_skewed_routing() {
    let mut random = Random(62);
    let narrow: [&[i64]; 4] = [&[0, 700, 0, 1, 2], &[1; 90], &[0, 0, 0, 0], &[255, 1, 0, 257, 3]];
    let wide: [&[i64]; 2] = [&[3, 61, 97, 2, 256, 64, 1], &[65, 0, 280, 40, 30]];
    for (list, n) in narrow.into_iter().map(|list| (list, 34)).chain(wide.into_iter().map(|list| (list, 4100))) {
        let (e, k) = (list.len(), 20);
        let m = list.iter().sum::<i64>() as usize + 3;
        let mut bytes = |count: usize| -> Vec<i8> { (0..count).map(|_| random.int8()).collect() };
        let (x, w) = (bytes(m * k), bytes(e * k * n));
        let mut unit = |count: usize| -> Vec<f32> { (0..count).map(|_| random.unit() * 0.02).collect() };
        let (w_scale, x_scale) = (unit(e * n), unit(m));
        let case =
            Case { m, k, n, e, x, w, w_scale, x_scale, list: list.to_vec(), counts: true, arithmetic: 1, ..Case::default() };
        let expected = case.expected();
        every_host(|host| {
            let (result, found) = case.run(host, |_, _| {}, &Layouts::default());
            assert!(result == Ok(()) && found == expected, "{} {list:?}", host.isa().name());
        });
    }
}
