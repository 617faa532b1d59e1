//! The int8 product against rten-gemm, weights packed before and not, in one run with the floors:
//! `cargo run --release --manifest-path benches/peers/Cargo.toml --bin int8`.
//!
//! K = N = 4096, one thread, sums in i32, which both must give alike: where rten-gemm's products of bytes saturate, weights of seven
//! bits are multiplied. Contenders take turns; a figure is the median of five.
//! Floors: a loop of nothing but the dot instruction, and the better of one and of four streams over the packed weights. Writes
//! Markdown.

#[path = "../../../floors/mod.rs"]
mod floors;

use floors::{peak, seconds, stream};
use rayon::ThreadPoolBuilder;
use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions, QuantParams};
use rten_tensor::NdTensorView;
use tilekern::kernels::dispatch::Level;
use tilekern::kernels::pack::packed_bytes;
use tilekern::ops::{FORMAT_PACKED, PackWeight, Product, QuantMatmul, UnpackedWeight};
use tilekern::{Host, Isa, Run, Scratch, Serial, Tensor, TensorMut};

/// K and N.
const SIZE: usize = 4096;
const ROWS: [usize; 12] = [1, 2, 4, 5, 8, 12, 16, 32, 64, 128, 256, 512];

/// The best of a few times of a call, in seconds.
fn best_time(call: &mut dyn FnMut()) -> f64 {
    (0..6).map(|_| seconds(&mut *call)).fold(f64::MAX, f64::min)
}

/// The medians of five turns.
fn medians(contenders: &mut [&mut dyn FnMut()]) -> Vec<f64> {
    let mut turns = vec![vec![]; contenders.len()];
    for _ in 0..5 {
        for (contender, times) in contenders.iter_mut().zip(&mut turns) {
            times.push(best_time(contender));
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[2]
    };
    turns.into_iter().map(median).collect()
}

fn bytes(count: usize) -> Vec<i8> {
    (0..count).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as i8).collect()
}

fn ours(host: &Host, m: usize, x: &[i8], packed: &[i8], out: &mut [i32], scratch: &mut Scratch) -> Result<(), tilekern::Error> {
    let weight = Tensor::new([packed.len()], packed)?;
    let out = Product::I32(TensorMut::new([m, SIZE], out)?);
    let mut call = QuantMatmul::new(Tensor::new([m, SIZE], x)?, weight, out);
    call.weight_format = FORMAT_PACKED;
    host.run(call, scratch)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // rten-gemm goes through rayon; this thread is its pool.
    ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global()?;
    let executor = GemmExecutor::<u8, i8, i32>::default();
    let mut w = bytes(SIZE * SIZE);
    if executor.may_saturate() {
        w.iter_mut().for_each(|w| *w >>= 1);
    }
    let mut owner = Scratch::new(std::alloc::Layout::from_size_align(packed_bytes(1, SIZE, SIZE).unwrap(), 64)?);
    // SAFETY: bytes of one size and alignment.
    let packed = unsafe { std::slice::from_raw_parts_mut(owner.as_mut_ptr().cast::<i8>(), owner.len()) };
    let length = packed.len();
    Host::new()
        .run(PackWeight::new(UnpackedWeight::I8(Tensor::new([SIZE, SIZE], &w)?), TensorMut::new([length], packed)?), &mut [])?;
    let packed = &*packed;
    let matrix = NdTensorView::from_data([SIZE, SIZE], &w[..]);
    let prepacked = executor.prepack_b(matrix);
    // rten-gemm has no tiles on AMX: compared is the same instruction.
    let isa = if Isa::detect() == Isa::Avx512Amx { Isa::Avx512Vnni } else { Isa::detect() };
    let (host, best, level) = (Host::with(isa, Serial)?, Host::new(), Level::new(isa).ok_or("an instruction set")?);
    let mut scratch = Scratch::new(std::alloc::Layout::from_size_align(16 << 20, 64)?);

    let best_rate = |rate: &dyn Fn() -> f64| (0..30).map(|_| rate()).fold(0.0, f64::max);
    let (peak, stream) = (best_rate(&|| peak(level)), best_rate(&|| stream(level, &packed[64..])));
    println!(
        "`{}`: dot {:.0} GOPS, stream {:.1} GB/s; rten-gemm's kernel: {}{}\n",
        isa.name(),
        peak / 1e9,
        stream / 1e9,
        executor.kernel_name(),
        if executor.may_saturate() { ", which saturates: weights of seven bits" } else { "" }
    );
    println!(
        "| M | {} | of the longer floor | {} | rten-gemm, packed | not packed | {} against packed |",
        isa.name(),
        best.isa().name(),
        isa.name()
    );
    println!("|---|---|---|---|---|---|---|");
    for m in ROWS {
        let x = bytes(m * SIZE);
        let offset: Vec<u8> = x.iter().map(|&x| x as u8 ^ 0x80).collect();
        let zero = vec![128u8; m];
        let (mut first, mut second, mut third, mut fourth) =
            (vec![0; m * SIZE], vec![0; m * SIZE], vec![0; m * SIZE], vec![0; m * SIZE]);
        let a = NdTensorView::from_data([m, SIZE], &offset[..]);
        let theirs = |b, out: &mut [i32]| {
            let options = GemmOptions { a_quant: Some(QuantParams { zero_point: &zero[..] }), ..GemmOptions::default() };
            executor.gemm(out, GemmInputA::Unpacked(a), b, options).unwrap();
        };
        let mut other = scratch.clone();
        let times = medians(&mut [
            &mut || ours(&host, m, &x, packed, &mut first, &mut scratch).unwrap(),
            &mut || ours(&best, m, &x, packed, &mut second, &mut other).unwrap(),
            &mut || theirs(GemmInputB::Packed(&prepacked), &mut third),
            &mut || theirs(GemmInputB::Unpacked(matrix), &mut fourth),
        ]);
        assert!(first == second && first == third && first == fourth, "the sums differ");
        let operations = 2.0 * (m * SIZE * SIZE) as f64;
        let floor = (operations / peak).max((SIZE * SIZE) as f64 / stream);
        let gops: Vec<String> = times.iter().map(|time| format!("{:.0}", operations / time / 1e9)).collect();
        println!(
            "| {m} | {} | {:.0} % | {} | {} | {} | {:.2} x |",
            gops[0],
            floor / times[0] * 100.0,
            gops[1],
            gops[2],
            gops[3],
            times[2] / times[0]
        );
    }
    Ok(())
}
