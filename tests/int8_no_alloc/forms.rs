//! Every form of weights and outputs, of sizes that are shared with a pool.

use tilekern::kernels::pack::packed_bytes;
use tilekern::ops::*;
use tilekern::{Error, Host, ParallelFor, Run, Scratch, Tensor, TensorMut, bf16, f16};

/// Of the plain product, by few rows and by as many as lie in bands: more than is left to the calling thread.
const PRODUCT: [usize; 2] = [512, 2112];
const PRODUCTS: [(usize, i32); 6] =
    [(3, FORMAT_ND), (3, FORMAT_NZ), (3, FORMAT_PACKED), (20, FORMAT_ND), (20, FORMAT_NZ), (20, FORMAT_PACKED)];

/// Of the experts.
const M: usize = 32;
const K: usize = 512;
const N: usize = 576;
const E: usize = 2;
/// Few rows to one, bands to the other, and some to none.
const ENDS: [i64; E] = [3, 30];

/// Format, whether the weight has four bits, and whether the output is asymmetric.
const GROUPED: [(i32, bool, bool); 8] = [
    (FORMAT_ND, false, false),
    (FORMAT_NZ, false, false),
    (FORMAT_PACKED, false, false),
    (FORMAT_ND, false, true),
    (FORMAT_PACKED, false, true),
    (FORMAT_ND, true, false),
    (FORMAT_NZ, true, false),
    (FORMAT_PACKED, true, false),
];

/// Weights to be packed: two of four bits, three of eight, one of each float, and one whose K is contiguous.
const PACKED: usize = 9;

/// The forms of all three.
pub const FORMS: usize = PRODUCTS.len() + GROUPED.len() + PACKED;

pub struct Buffers {
    x: Vec<i8>,
    w: Vec<i8>,
    /// For the plain product, and for experts with eight and four bits.
    packed: [Vec<i8>; 3],
    floats: Vec<f32>,
    halves: Vec<f16>,
    brains: Vec<bf16>,
    bits: Vec<u64>,
    scale: Vec<f32>,
    q: Vec<i8>,
    product: Vec<f32>,
    offset: Vec<f32>,
    target: Vec<i8>,
    pub scratch: Scratch,
}

impl Buffers {
    pub fn new(scratch: Scratch) -> Result<Buffers, Error> {
        let w: Vec<i8> = (0..PRODUCT[0] * PRODUCT[1]).map(|i| (i * 7919 % 255) as i8).collect();
        let floats: Vec<f32> = (0..E * K * N).map(|i| (i % 37) as f32 / 40.0 + 0.01).collect();
        let [k, n] = PRODUCT;
        let mut packed =
            [packed_bytes(1, k, n), packed_bytes(E, K, N), packed_bytes(E, K, N)].map(|bytes| vec![0; bytes.unwrap()]);
        let weights = [
            UnpackedWeight::I8(Tensor::new([k, n], &w)?),
            UnpackedWeight::I8(Tensor::new([E, K, N], &w[..E * K * N])?),
            UnpackedWeight::I4(Tensor::new([E, K, N / 2], bytemuck::cast_slice(&w[..E * K * N / 2]))?),
        ];
        for (weight, packed) in weights.into_iter().zip(&mut packed) {
            Host::new().run(PackWeight::new(weight, TensorMut::new([packed.len()], packed)?), &mut [])?;
        }
        Ok(Buffers {
            x: w[..M * K].to_vec(),
            halves: floats.iter().map(|&v| f16::from_f32(v)).collect(),
            brains: floats.iter().map(|&v| bf16::from_f32(v)).collect(),
            bits: floats[..E * N].iter().map(|v| v.to_bits().into()).collect(),
            scale: vec![0.01; E * N],
            q: vec![0; M * N / 2],
            product: vec![0.0; 20 * n],
            offset: vec![0.0; M],
            target: vec![0; packed[1].len()],
            w,
            packed,
            floats,
            scratch,
        })
    }
}

/// A call of a form; `number` changes what does not change the sizes.
pub fn call<P: ParallelFor>(host: &Host<P>, form: usize, number: usize, b: &mut Buffers) -> Result<(), Error> {
    match form.checked_sub(PRODUCTS.len()) {
        None => product(host, PRODUCTS[form], number, b),
        Some(form) if form < GROUPED.len() => grouped(host, GROUPED[form], number, b),
        Some(form) => pack(host, form - GROUPED.len(), b),
    }
}

fn product<P: ParallelFor>(host: &Host<P>, (m, format): (usize, i32), number: usize, b: &mut Buffers) -> Result<(), Error> {
    let [k, n] = PRODUCT;
    let weight = match format {
        FORMAT_NZ => Tensor::new([n / 32, k / 16, 16, 32], &b.w)?,
        FORMAT_PACKED => Tensor::new([b.packed[0].len()], &b.packed[0])?,
        _ => Tensor::new([k, n], &b.w)?,
    };
    let out = Product::F32(TensorMut::new([m, n], &mut b.product[..m * n])?);
    let mut call = QuantMatmul::new(Tensor::new([m, k], &b.x[..m * k])?, weight, out);
    call.weight_format = format;
    call.x_scale = Some(Tensor::new([m], &b.floats[..m])?);
    call.weight_scale = Some(match number % 3 {
        0 => ChannelScale::F32(Tensor::new([n], &b.floats[..n])?),
        1 => ChannelScale::F16(Tensor::new([n], &b.halves[..n])?),
        _ => ChannelScale::BF16(Tensor::new([n], &b.brains[..n])?),
    });
    assert!(host.workspace(&call)?.size() <= b.scratch.len());
    host.run(call, &mut b.scratch)
}

fn grouped<P: ParallelFor>(
    host: &Host<P>,
    (format, four, asymmetric): (i32, bool, bool),
    number: usize,
    b: &mut Buffers,
) -> Result<(), Error> {
    let all = &b.w[..E * K * N];
    let half: &[u8] = bytemuck::cast_slice(&b.w[..E * K * N / 2]);
    let packed = &b.packed[1 + usize::from(four)];
    let weight = match (format, four) {
        (FORMAT_PACKED, _) => GroupedWeight::I8(Tensor::new([packed.len()], packed)?),
        (FORMAT_NZ, false) => GroupedWeight::I8(Tensor::new([E, N / 32, K / 16, 16, 32], all)?),
        (FORMAT_NZ, true) => GroupedWeight::I4(Tensor::new([E, N / 64, K / 16, 16, 32], half)?),
        (_, false) => GroupedWeight::I8(Tensor::new([E, K, N], all)?),
        (_, true) => GroupedWeight::I4(Tensor::new([E, K, N / 2], half)?),
    };
    let scale = match four {
        true => GroupedScale::Bits(Tensor::new([E, N], &b.bits)?),
        false => GroupedScale::Channel(ChannelScale::F32(Tensor::new([E, N], &b.scale)?)),
    };
    let mut call = GroupedMatmulSwigluQuant::new(
        Tensor::new([M, K], &b.x)?,
        weight,
        scale,
        Tensor::new([M], &b.floats[..M])?,
        Tensor::new([E], &ENDS)?,
        TensorMut::new([M, N / 2], &mut b.q)?,
        TensorMut::new([M], &mut b.product[..M])?,
    );
    call.weight_format = format;
    call.fp16_rounding = !asymmetric && number % 2 == 0;
    call.bias = four.then_some(Bias::F32(Tensor::new([E, N], &b.floats[..E * N])?));
    call.output_offset = if asymmetric { Some(TensorMut::new([M], &mut b.offset)?) } else { None };
    assert!(host.workspace(&call)?.size() <= b.scratch.len());
    host.run(call, &mut b.scratch)
}

fn pack<P: ParallelFor>(host: &Host<P>, form: usize, b: &mut Buffers) -> Result<(), Error> {
    let all = &b.w[..E * K * N];
    let half: &[u8] = bytemuck::cast_slice(&b.w[..E * K * N / 2]);
    let weight = match form {
        0 => UnpackedWeight::I4(Tensor::new([E, K, N / 2], half)?),
        1 => UnpackedWeight::I4(Tensor::new([E, N / 64, K / 16, 16, 32], half)?),
        2 => UnpackedWeight::I8(Tensor::new([E, K, N], all)?),
        3 => UnpackedWeight::I8(Tensor::new([E, N / 32, K / 16, 16, 32], all)?),
        4 => UnpackedWeight::I8(Tensor::strided([E, K, N], [K * N, 1, K], all)?),
        5 => UnpackedWeight::F32(Tensor::new([E, K, N], &b.floats)?),
        6 => UnpackedWeight::F16(Tensor::new([E, K, N], &b.halves)?),
        7 => UnpackedWeight::BF16(Tensor::new([E, K, N], &b.brains)?),
        _ => UnpackedWeight::F32(Tensor::strided([E, K, N], [K * N, 1, K], &b.floats)?),
    };
    let mut call = PackWeight::new(weight, TensorMut::new([b.target.len()], &mut b.target)?);
    call.weight_format = if form == 1 || form == 3 { FORMAT_NZ } else { FORMAT_ND };
    call.weight_scale = if form > 4 { Some(TensorMut::new([E, N], &mut b.scale)?) } else { None };
    host.run(call, &mut [])
}
