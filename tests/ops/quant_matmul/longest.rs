//! The longest sums that there may be, of the values that leave the least room.

use super::{Case, blocks};
use crate::common::{hosts, run};
use tilekern::kernels::pack::{pack_i8, packed_bytes};
use tilekern::ops::{Product, QuantMatmul};
use tilekern::{Error, Tensor, TensorMut};

/// Rows of 127 and of -128 in turn, columns of -128 and of 127: with 128 added, as unsigned bytes, 255 and 0 times either, whose sums come
/// within 2^24 of the ends of 32 bits.
#[test]
fn quant_matmul_the_longest_sums_are_exact() -> Result<(), Error> {
    let (most, k, n) = (40, 65_536, 64);
    let column = |j: usize| [-128, 127][j % 2];
    let w: Vec<i8> = (0..k * n).map(|at| column(at % n)).collect();
    let mut packed = vec![0; packed_bytes(1, k, n).unwrap()];
    pack_i8(&mut packed, k, n, |_, j| column(j));
    let nz = blocks(&w, k, n);
    let mut case = Case { m: most, k, n, x: vec![], w, packed };
    for first in 0..2 {
        let row = |i: usize| [127, -128][(first + i) % 2];
        case.x = (0..most * k).map(|at| row(at / k)).collect();
        for (m, host) in [1, 5, 17, most].into_iter().flat_map(|m| hosts().into_iter().map(move |host| (m, host))) {
            for (weight, format) in case.forms(&nz) {
                let mut out = vec![7; m * n];
                let x = Tensor::new([m, k], &case.x[..m * k])?;
                let call = QuantMatmul::new(x, weight, Product::I32(TensorMut::new([m, n], &mut out)?));
                run(&host, QuantMatmul { weight_format: format, ..call })?;
                for (at, &found) in out.iter().enumerate() {
                    let expected = k as i64 * i64::from(row(at / n)) * i64::from(column(at % n));
                    assert_eq!(i64::from(found), expected, "{} {m} rows, format {format}, at {at}", host.isa().name());
                }
            }
        }
    }
    Ok(())
}
