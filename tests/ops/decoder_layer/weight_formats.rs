//! A layer gives the same for every way in which its weights lie, alike or not.

use super::{HEADS, HIDDEN, KV, Layer, POSITIONS, Rows, WIDTH, bits, stream};
use crate::common::{hosts, run};
use tilekern::kernels::pack::Packed;
use tilekern::ops::{DecoderLayer, FORMAT_ND, FORMAT_PACKED};
use tilekern::{Error, Tensor, TensorMut};

/// `[K,N]` of a packed weight.
fn unpacked(packed: &[i8]) -> (Vec<i8>, [usize; 2]) {
    let packed = Packed::new(packed).unwrap();
    let (k, n) = (packed.k(), packed.n());
    let weight = |at: usize| packed.expert(0).panel(at % n / 16)[at / n / 4][at % n % 16 * 4 + at / n % 4];
    ((0..k * n).map(weight).collect(), [k, n])
}

#[test]
fn the_weight_format_does_not_matter() -> Result<(), Error> {
    let (layer, input) = (Layer::new(), stream(12, 3));
    let plain: Vec<_> = layer.matrices.iter().map(|matrix| unpacked(&matrix.packed)).collect();
    let by_columns = |(rows, [k, n]): &(Vec<i8>, [usize; 2])| (0..k * n).map(|at| rows[at % k * n + at / k]).collect();
    let columns: Vec<Vec<i8>> = plain.iter().map(by_columns).collect();
    for host in hosts() {
        let ways = [(FORMAT_PACKED, false), (FORMAT_ND, false), (FORMAT_ND, true)];
        let mut outputs = ways.map(|way| (way, vec![0.0; 3 * HIDDEN]));
        for ((format, mixed), output) in &mut outputs {
            let mut weights = layer.weights()?;
            if *format == FORMAT_ND {
                // Column by column those in odd places, beside others of the same rows.
                let w = |i: usize| match plain[i].1 {
                    [k, n] if *mixed && i % 2 == 1 => Tensor::strided([k, n], [1, k], &columns[i]),
                    sizes => Tensor::new(sizes, &plain[i].0),
                };
                (weights.wq, weights.wk, weights.wv, weights.wo) = (w(0)?, w(1)?, w(2)?, w(3)?);
                (weights.w1, weights.w3, weights.w2) = (w(4)?, w(5)?, w(6)?);
            }
            let (mut rows, cache) = (Rows::new(1), [1, KV, POSITIONS, WIDTH]);
            let mut call = DecoderLayer::new(
                Tensor::new([1, 3, HIDDEN], &input)?,
                Tensor::new([1], &[0])?,
                Tensor::new([POSITIONS, WIDTH], &layer.freqs)?,
                weights,
                [HEADS as i64, KV as i64],
                [TensorMut::new(cache, &mut rows.keys)?, TensorMut::new(cache, &mut rows.values)?],
                TensorMut::new([1, 3, HIDDEN], output)?,
            );
            call.weight_format = *format;
            run(&host, call)?;
        }
        assert!(outputs[0].1.iter().any(|&v| v != 0.0));
        for (way, output) in &outputs[1..] {
            assert_eq!(bits(&outputs[0].1), bits(output), "{}, {way:?}", host.isa().name());
        }
    }
    Ok(())
}
