//! RMSNorm as operations: rows and their scales against the kernels' scalar definition, strided and over threads.

use crate::common::{Random, bits, hosts, run};
use tilekern::ops::{RmsNorm, RmsNormQuant};
use tilekern::{Tensor, TensorMut};
use tilekern_kernels::reference;

const ROWS: usize = 5;
const COLUMNS: usize = 37;

#[test]
fn every_row_has_its_own_scale() {
    let mut random = Random(1);
    let x: Vec<f32> = (0..ROWS * COLUMNS).map(|i| random.unit() * (i / COLUMNS + 1) as f32).collect();
    let gamma: Vec<f32> = (0..COLUMNS).map(|_| random.unit()).collect();
    for host in hosts() {
        let (mut y, mut scale, mut plain) = ([0i8; ROWS * COLUMNS], [0.0f32; 2 * ROWS], [0.0f32; ROWS * COLUMNS]);
        let input = Tensor::new([ROWS, COLUMNS], &x).unwrap();
        let weights = Tensor::new([COLUMNS], &gamma).unwrap();
        let scales = TensorMut::strided([ROWS], [2], &mut scale).unwrap();
        run(&host, RmsNormQuant::new(input, weights, TensorMut::new([ROWS, COLUMNS], &mut y).unwrap(), scales)).unwrap();
        run(&host, RmsNorm::new(input, weights, TensorMut::new([ROWS, COLUMNS], &mut plain).unwrap())).unwrap();
        for row in 0..ROWS {
            let at = row * COLUMNS..(row + 1) * COLUMNS;
            let (mut q, mut expected) = ([0i8; COLUMNS], [0.0f32; COLUMNS]);
            let s = reference::rms_norm_quant(&x[at.clone()], &gamma, 1e-5, &mut q);
            reference::rms_norm(&x[at.clone()], &gamma, 1e-5, &mut expected);
            assert_eq!((bits(scale[2 * row]), scale[2 * row + 1]), (bits(s), 0.0), "{host:?} row {row}");
            assert_eq!(y[at.clone()], q, "{host:?} row {row}");
            assert_eq!(plain[at], expected, "{host:?} row {row}");
        }
    }
}
