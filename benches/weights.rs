//! Weights that are no packed bytes: packing them, loading a model of floats, and products with weights of four bits.
//!
//! `cargo bench --bench weights [-- --isa NAME]`. Medians, one thread. Without `--bench`, as `cargo test` runs it, small sizes once.

mod arguments;
mod llama2c;
mod median;

use arguments::Arguments;
use llama2c::llama2c;
use median::median;
use std::time::Instant;
use tilekern::kernels::pack::packed_bytes;
use tilekern::llama::{Model, ModelOptions};
use tilekern::ops::*;
use tilekern::{Host, Run, Scratch, Serial, Tensor, TensorMut, bf16, f16};

struct Setting {
    host: Host,
    rounds: usize,
}

impl Setting {
    fn time(&self, mut call: impl FnMut()) -> f64 {
        let mut times: Vec<f64> = (0..self.rounds)
            .map(|_| {
                let start = Instant::now();
                call();
                start.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        median(&mut times)
    }

    /// Packs a weight of `size` rows and columns.
    fn pack<'a>(&self, name: &str, weight: UnpackedWeight<'a, Host>, packed: &'a mut [i8], scale: &'a mut [f32]) {
        let floats = !matches!(weight, UnpackedWeight::I8(_) | UnpackedWeight::I4(_));
        let (length, size) = (packed.len(), scale.len());
        let mut call = PackWeight::new(weight, TensorMut::new([length], packed).unwrap());
        if floats {
            call.weight_scale = Some(TensorMut::new([size], scale).unwrap());
        }
        let time = self.time(|| self.host.run_mut(&mut call, &mut []).unwrap());
        println!("  pack {size} x {size}, {name:<26} {time:9.2} ms");
    }

    /// The grouped product of `m` tokens of one expert with weights of four bits, of which `group` elements of K share a scale, as they
    /// lie and packed.
    fn four_bits(&self, m: usize, [k, n]: [usize; 2], group: usize) {
        let weight = vec![0x5au8; k * n / 2];
        let rows = Tensor::new([1, k, n / 2], &weight).unwrap();
        let length = packed_bytes(1, k, n).unwrap();
        let mut packed = aligned_vec::avec![0i8; length];
        let call = PackWeight::new(UnpackedWeight::I4(rows), TensorMut::new([length], &mut packed).unwrap());
        self.host.run(call, &mut []).unwrap();
        let as_it_lies = self.product(m, [k, n], group, &weight, None);
        let packed = self.product(m, [k, n], group, &weight, Some(&packed));
        println!("  i4 {k} x {n}, {m:2} tokens, groups of {group:<5} {as_it_lies:9.2} ms, packed {packed:.2} ms");
    }

    fn product(&self, m: usize, [k, n]: [usize; 2], group: usize, weight: &[u8], packed: Option<&[i8]>) -> f64 {
        let x = vec![3i8; m * k];
        let (bits, assist, scale) = (vec![1e-3f32.to_bits().into(); k / group * n], vec![0.0f32; n], vec![1e-2f32; m]);
        let (mut y, mut found) = (vec![0i8; m * n / 2], vec![0.0f32; m]);
        let (ends, mut scratch) = ([m as i64], Scratch::default());
        let mut call = GroupedMatmulSwigluQuant::new(
            Tensor::new([m, k], &x).unwrap(),
            match packed {
                Some(packed) => GroupedWeight::I8(Tensor::new([packed.len()], packed).unwrap()),
                None => GroupedWeight::I4(Tensor::new([1, k, n / 2], weight).unwrap()),
            },
            GroupedScale::Bits(Tensor::new([1, k / group, n], &bits).unwrap()),
            Tensor::new([m], &scale).unwrap(),
            Tensor::new([1], &ends).unwrap(),
            TensorMut::new([m, n / 2], &mut y).unwrap(),
            TensorMut::new([m], &mut found).unwrap(),
        );
        call.weight_format = if packed.is_some() { FORMAT_PACKED } else { FORMAT_ND };
        call.bias = Some(Bias::F32(Tensor::new([1, n], &assist).unwrap()));
        let scratch = scratch.reserve(self.host.workspace(&call).unwrap()).unwrap();
        let time = self.time(|| self.host.run_mut(&mut call, scratch).unwrap());
        assert!(found.iter().all(|&scale| scale > 0.0));
        time
    }
}

/// Loads a model, on whatever the processor has.
fn load(full: bool) {
    let file = llama2c(if full { [1024, 2816, 8, 16_384] } else { [64, 128, 1, 300] });
    let options = ModelOptions::default();
    let mut memory = Scratch::new(Model::<f16>::layout(&options, &file).unwrap());
    let setting = Setting { host: Host::new(), rounds: if full { 7 } else { 1 } };
    let time = setting.time(|| assert!(Model::<f16>::load(&options, &file, &mut memory).is_ok()));
    println!("load a model of f32, {} MiB, as f16 and int8 {time:9.2} ms", file.len() >> 20);
}

fn main() {
    let arguments = Arguments::new();
    let full = arguments.full();
    let size = if full { 4096 } else { 128 };
    let bytes: Vec<i8> = (0..size * size).map(|i: usize| (i.wrapping_mul(2_654_435_761) >> 13) as i8).collect();
    let floats: Vec<f32> = bytes.iter().map(|&byte| f32::from(byte) * 0.01).collect();
    let halves: Vec<f16> = floats.iter().map(|&x| f16::from_f32(x)).collect();
    let brains: Vec<bf16> = floats.iter().map(|&x| bf16::from_f32(x)).collect();
    let nibbles: &[u8] = bytemuck::cast_slice(&bytes[..size * size / 2]);
    let length = packed_bytes(1, size, size).unwrap();
    load(full);
    for isa in arguments.isas() {
        let Ok(host) = Host::with(isa, Serial) else { continue };
        println!("{}", isa.name());
        let setting = Setting { host, rounds: if full { 7 } else { 1 } };
        let (shape, mut packed, mut scale) = ([size; 2], aligned_vec::avec![0i8; length], vec![0.0f32; size]);
        setting.pack("i8", UnpackedWeight::I8(Tensor::new(shape, &bytes).unwrap()), &mut packed, &mut scale);
        setting.pack(
            "i8, K contiguous",
            UnpackedWeight::I8(Tensor::strided(shape, [1, size], &bytes).unwrap()),
            &mut packed,
            &mut scale,
        );
        setting.pack("i4", UnpackedWeight::I4(Tensor::new([size, size / 2], nibbles).unwrap()), &mut packed, &mut scale);
        setting.pack("f32", UnpackedWeight::F32(Tensor::new(shape, &floats).unwrap()), &mut packed, &mut scale);
        setting.pack("f16", UnpackedWeight::F16(Tensor::new(shape, &halves).unwrap()), &mut packed, &mut scale);
        setting.pack("bf16", UnpackedWeight::BF16(Tensor::new(shape, &brains).unwrap()), &mut packed, &mut scale);
        setting.pack(
            "f16, K contiguous",
            UnpackedWeight::F16(Tensor::strided(shape, [1, size], &halves).unwrap()),
            &mut packed,
            &mut scale,
        );
        setting.pack(
            "f32, K contiguous",
            UnpackedWeight::F32(Tensor::strided(shape, [1, size], &floats).unwrap()),
            &mut packed,
            &mut scale,
        );
        for group in [size, size / 16, size / 128] {
            for m in [1, 16, 64] {
                setting.four_bits(m, [size, size / 4], group);
            }
        }
    }
}
