//! The longest sums that there may be, of the values that leave the least room.

use crate::case::{Case, Output};
use crate::common::{Random, hosts};
use crate::forms::Form;

/// Rows of 127 and of -128 in turn, columns of -128 and of 127. A bias takes off the sums of every other row but for a small number, in
/// which each unit shows.
#[test]
fn grouped_matmul_longest_sums() {
    let (mut random, k, n) = (Random(84), 65_536, 64);
    let column = |j: usize| [-128, 127][j % 2];
    let mut case = Case { k, n, e: 1, arithmetic: 1, ..Case::default() };
    case.w = (0..k * n).map(|at| column(at % n)).collect();
    case.w_scale = (0..n).map(|_| random.unit()).collect();
    let layouts = [Form::Plain, Form::Blocks, Form::Packed].map(|form| (form, form.of_bytes(&case)));
    for first in 0..2 {
        let row = |i: usize| [127i8, -128][(first + i) % 2];
        let sum = |i: usize, j: usize| k as i64 * i64::from(row(i)) * i64::from(column(j));
        case.integers = Some((0..n).map(|j| (j as i64 + 1 - sum(0, j)) as i32).collect());
        case.x = (0..2 * k).map(|at| row(at / k)).collect();
        (case.m, case.x_scale, case.list) = (2, vec![0.1, 1e-9], vec![2]);
        let two = case.expected();
        for m in [1, 5, 17, 40] {
            (case.m, case.list) = (m, vec![m as i64]);
            case.x = (0..m * k).map(|at| row(at / k)).collect();
            case.x_scale = repeated(&[0.1, 1e-9], m);
            let (scale, offset) = (repeated(&two.scale, m), repeated(&two.offset, m));
            let expected = Output { q: repeated(&two.q, m * n / 2), scale, offset };
            for host in hosts() {
                for (form, layouts) in &layouts {
                    let (result, found) = case.run(&host, |call, layouts| form.set(call, layouts, &case), layouts);
                    assert!(result == Ok(()) && found == expected, "{} {m} rows, {form:?}", host.isa().name());
                }
            }
        }
    }
}

/// Some numbers over and over.
fn repeated<T: Copy>(some: &[T], count: usize) -> Vec<T> {
    some.iter().cycle().take(count).copied().collect()
}
