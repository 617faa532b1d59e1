//! The int8 operations against what the machine can do: the bare dot instruction, and a stream over the same weights.
//!
//! `cargo bench --bench roofline [-- --isa NAME] [--svg FILE]`. K = N = 4096; each figure is the best of a few rounds, in which the floors
//! take turns with the operations. Without `--bench`, as `cargo test` runs it, small sizes once.

use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;
use tilekern::kernels::dispatch::{Kernel, Level};
use tilekern::kernels::pack::packed_bytes;
use tilekern::kernels::simd::{Dot, TileUnit};
use tilekern::ops::*;
use tilekern::{Host, Isa, Run, Scratch, Serial, Tensor, TensorMut};

type Bytes = aligned_vec::AVec<i8>;

/// Dot instructions on registers: 24 chains, or four tiles.
struct Bare<'a> {
    steps: usize,
    out: &'a mut [i32; 16],
}

impl Kernel for Bare<'_> {
    /// Multiplications and additions done.
    type Output = usize;

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> usize {
        let (quad, w) = (s.splat_quad(&s.pack_quad(black_box([1; 4]))), s.weights(&black_box([1; 64])));
        #[cfg(target_arch = "x86_64")]
        if let Some(unit) = s.tile_unit() {
            unit.configure(32);
            // SAFETY: the unit is proved and configured; registers and tiles are all that is touched.
            unsafe {
                std::arch::asm!(
                    "tilezero tmm4; tilezero tmm5; tilezero tmm6; tilezero tmm7",
                    "2: tdpbssd tmm0, tmm4, tmm6; tdpbssd tmm1, tmm4, tmm7; tdpbssd tmm2, tmm5, tmm6; tdpbssd tmm3, tmm5, tmm7",
                    "dec {n}", "jnz 2b", n = inout(reg) self.steps => _,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _, options(nomem, nostack)
                );
            }
            unit.release();
            return self.steps * 4 * 2 * 16 * 16 * 64;
        }
        let mut acc = [s.splat_i32(0); 24];
        for _ in 0..self.steps {
            for acc in &mut acc {
                *acc = s.dot(*acc, quad, w);
            }
        }
        s.store_i32(acc.into_iter().fold(s.splat_i32(0), |a, b| s.add_i32(a, b)), self.out);
        2 * self.steps * 24 * 64
    }
}

/// The maximum of `STREAMS` streams.
struct Stream<'a, const STREAMS: usize>(&'a [[i32; 16]]);

impl<const STREAMS: usize> Kernel for Stream<'_, STREAMS> {
    type Output = i32;

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> i32 {
        let length = self.0.len() / STREAMS;
        let mut top = [[s.splat_i32(0); 4]; STREAMS];
        for i in 0..length / 4 {
            for stream in 0..STREAMS {
                for j in 0..4 {
                    top[stream][j] = s.max_i32(top[stream][j], s.load_i32(&self.0[stream * length + 4 * i + j]));
                }
            }
        }
        s.reduce_max_i32(top.into_iter().flatten().fold(s.splat_i32(0), |a, b| s.max_i32(a, b)))
    }
}

struct Setting {
    host: Host,
    level: Level,
    /// K and N.
    size: usize,
    rounds: usize,
    x: Bytes,
    w: Bytes,
    packed: Bytes,
    scale: Vec<f32>,
    scratch: Scratch,
}

fn bytes(count: usize) -> Bytes {
    let mut bytes = aligned_vec::avec![0i8; count];
    bytes.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i.wrapping_mul(2_654_435_761) >> 13) as i8);
    bytes
}

fn seconds(run: &mut dyn FnMut()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}

impl Setting {
    fn new(isa: Isa, full: bool) -> Option<Setting> {
        let (host, level) = (Host::with(isa, Serial).ok()?, Level::new(isa)?);
        let (size, most, rounds) = if full { (4096, 512, 12) } else { (128, 64, 1) };
        let w = bytes(8 * size * size);
        let mut packed = aligned_vec::avec![0i8; packed_bytes(8, size, size).unwrap()];
        let length = packed.len();
        let weight = UnpackedWeight::I8(Tensor::new([8, size, size], &w).unwrap());
        host.run(PackWeight::new(weight, TensorMut::new([length], &mut packed).unwrap()), &mut []).unwrap();
        let scratch = Scratch::new(std::alloc::Layout::from_size_align(24 << 20, 64).unwrap());
        Some(Setting { host, level, size, rounds, x: bytes(most * size), w, packed, scale: vec![1e-3; 8 * size], scratch })
    }

    /// The best times of several things that take turns.
    fn race(&self, things: &mut [&mut dyn FnMut()]) -> Vec<f64> {
        let mut best = vec![f64::MAX; things.len()];
        for _ in 0..self.rounds {
            for (thing, best) in things.iter_mut().zip(&mut best) {
                for _ in 0..if self.rounds > 1 { 4 } else { 1 } {
                    *best = best.min(seconds(thing));
                }
            }
        }
        best
    }

    /// Operations and bytes a second.
    fn floors(&self) -> (f64, f64) {
        let (mut out, mut operations) = ([0; 16], 0);
        let one = &self.packed[64..64 + packed_bytes(1, self.size, self.size).unwrap() - 64];
        let lines: &[[i32; 16]] = bytemuck::cast_slice(one);
        let times = self.race(&mut [
            &mut || operations = self.level.run(Bare { steps: black_box(20_000), out: &mut out }),
            &mut || assert!(black_box(self.level.run(Stream::<1>(lines))) > 0),
            &mut || assert!(black_box(self.level.run(Stream::<4>(lines))) > 0),
        ]);
        (operations as f64 / times[0], one.len() as f64 / times[1].min(times[2]))
    }

    /// The time of a product of `m` rows; ND where `plain`.
    fn product(&mut self, m: usize, k: usize, n: usize, format: i32) -> f64 {
        let mut out = vec![0.0f32; m * n];
        let mut packed = aligned_vec::avec![0i8; packed_bytes(1, k, n).unwrap()];
        let length = packed.len();
        let plain = Tensor::new([k, n], &self.w).unwrap();
        self.host
            .run(PackWeight::new(UnpackedWeight::I8(plain), TensorMut::new([length], &mut packed).unwrap()), &mut [])
            .unwrap();
        let mut scratch = self.scratch.clone();
        let time = self.race(&mut [&mut || {
            let weight = match format {
                FORMAT_ND => plain,
                FORMAT_NZ => Tensor::new([n / 32, k / 16, 16, 32], &self.w).unwrap(),
                _ => Tensor::new([length], &packed).unwrap(),
            };
            let x = Tensor::new([m, k], &self.x).unwrap();
            let mut call = QuantMatmul::new(x, weight, Product::F32(TensorMut::new([m, n], &mut out).unwrap()));
            call.weight_format = format;
            call.weight_scale = Some(ChannelScale::F32(Tensor::new([n], &self.scale).unwrap()));
            call.x_scale = Some(Tensor::new([m], &self.scale).unwrap());
            self.host.run(call, &mut scratch).unwrap();
        }])[0];
        let sum: i32 = (0..k).map(|i| i32::from(self.x[(m - 1) * k + i]) * i32::from(plain_at(&self.w, i, n, format, k))).sum();
        assert_eq!(out[m * n - 1], sum as f32 * 1e-3 * 1e-3);
        time
    }

    /// The time of the grouped product, `rows` rows for each of 8 experts.
    fn grouped(&mut self, rows: usize) -> f64 {
        let (m, size) = (8 * rows, self.size);
        let (mut y, mut scale) = (vec![0i8; m * size / 2], vec![0.0f32; m]);
        let ends: Vec<i64> = (1..9).map(|e| (e * rows) as i64).collect();
        let mut scratch = self.scratch.clone();
        let time = self.race(&mut [&mut || {
            let mut call = GroupedMatmulSwigluQuant::new(
                Tensor::new([m, size], &self.x).unwrap(),
                GroupedWeight::I8(Tensor::new([self.packed.len()], &self.packed).unwrap()),
                GroupedScale::Channel(ChannelScale::F32(Tensor::new([8, size], &self.scale).unwrap())),
                Tensor::new([m], &self.scale).unwrap(),
                Tensor::new([8], &ends).unwrap(),
                TensorMut::new([m, size / 2], &mut y).unwrap(),
                TensorMut::new([m], &mut scale).unwrap(),
            );
            call.weight_format = FORMAT_PACKED;
            self.host.run(call, &mut scratch).unwrap();
        }])[0];
        assert!(scale.iter().all(|&scale| scale > 0.0) && y.contains(&127) | y.contains(&-127));
        time
    }
}

/// The last column of row `i`.
fn plain_at(w: &[i8], i: usize, n: usize, format: i32, k: usize) -> i8 {
    if format == FORMAT_NZ { w[(n / 32 - 1) * 32 * k + 32 * i + 31] } else { w[i * n + n - 1] }
}

const ROWS: [usize; 12] = [1, 2, 4, 5, 8, 16, 32, 48, 64, 128, 256, 512];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1));
    let (full, only) = (arguments.iter().any(|a| a == "--bench"), after("--isa"));
    let mut curves = vec![];
    for isa in Isa::ALL.into_iter().filter(|isa| only.is_none_or(|only| only == isa.name())) {
        let Some(mut setting) = Setting::new(isa, full) else { continue };
        if full && isa == Isa::Portable {
            setting.rounds = 2;
        }
        let (peak, stream) = setting.floors();
        println!("{}: dot {:.0} GOPS, stream {:.1} GB/s", isa.name(), peak / 1e9, stream / 1e9);
        let size = setting.size;
        let mut curve = vec![];
        let line = |name: &str, m: usize, time: f64| {
            let (operations, bytes) = (2.0 * (m * size * size) as f64, (size * size) as f64);
            let (rate, floor) = (operations / time, (operations / peak).max(bytes / stream));
            println!(
                "  {name:<24} {:8.1} us {:7.1} GOPS {:4.0} % of dot {:4.0} % of stream {:5.2} of the longer floor",
                time * 1e6,
                rate / 1e9,
                rate / peak * 100.0,
                bytes / time / stream * 100.0,
                time / floor
            );
            rate
        };
        for m in ROWS.into_iter().filter(|&m| full || m <= 64) {
            let time = setting.product(m, size, size, FORMAT_PACKED);
            curve.push((m, line(&format!("packed, M = {m}"), m, time)));
        }
        for (name, format) in [("ND", FORMAT_ND), ("NZ", FORMAT_NZ)] {
            let time = setting.product(64, size, size, format);
            line(&format!("{name}, M = 64"), 64, time);
        }
        for m in [7, 63] {
            let time = setting.product(m, size - 1, size + 1, FORMAT_PACKED);
            line(&format!("packed, M = {m}, K - 1, N + 1"), m, time);
        }
        for (m, rows) in [(64, 64), (1, 1)].into_iter().filter(|&(m, _)| full || m == 1) {
            let time = setting.grouped(rows) / 8.0;
            line(&format!("grouped, {m} an expert"), m, time);
        }
        curves.push((isa, peak, stream, curve));
    }
    if let Some(path) = after("--svg") {
        std::fs::write(path, svg(&curves)).unwrap();
    }
}

/// GOPS over rows, both logarithmic, a curve for each instruction set and its roof dashed.
fn svg(curves: &[(Isa, f64, f64, Vec<(usize, f64)>)]) -> String {
    let x = |m: f64| 70.0 + m.log2() / 9.0 * 520.0;
    let y = |rate: f64| 360.0 - (rate / 1e9).max(10.0).log10().clamp(1.0, 4.0).mul_add(110.0, -110.0);
    let mut out = String::from(
        "<svg xmlns='http://www.w3.org/2000/svg' width='720' height='410' font-family='sans-serif' font-size='12'>\n",
    );
    out += "<rect width='720' height='410' fill='white'/>\n";
    for (i, m) in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512].into_iter().enumerate() {
        let at = x(f64::from(1u32 << i));
        let _ = writeln!(
            out,
            "<line x1='{at:.0}' y1='30' x2='{at:.0}' y2='360' stroke='#ddd'/><text x='{at:.0}' y='378' text-anchor='middle'>{m}</text>"
        );
    }
    for rate in [10.0, 100.0, 1000.0, 10_000.0f64] {
        let at = y(rate * 1e9);
        let _ = writeln!(
            out,
            "<line x1='70' y1='{at:.0}' x2='590' y2='{at:.0}' stroke='#ddd'/><text x='62' y='{at:.0}' text-anchor='end'>{rate}</text>"
        );
    }
    out += "<text x='330' y='400' text-anchor='middle'>rows (K = N = 4096, one thread)</text><text x='20' y='22'>GOPS; dashed: the longer of computing and reading</text>\n";
    let colours = ["#888", "#1f77b4", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#ff7f0e"];
    for (i, (isa, peak, stream, curve)) in curves.iter().enumerate() {
        let points = |rate: &dyn Fn(usize, f64) -> f64| -> String {
            curve.iter().map(|&(m, found)| format!("{:.1},{:.1} ", x(m as f64), y(rate(m, found)))).collect()
        };
        let colour = colours[i % colours.len()];
        let _ =
            writeln!(out, "<polyline fill='none' stroke='{colour}' stroke-width='2' points='{}'/>", points(&|_, found| found));
        // Only where the bare loop keeps its chains in registers and the compiler can move nothing out of it.
        if matches!(isa, Isa::Avx512Vnni | Isa::Avx512Amx | Isa::NeonDot) {
            let roof = points(&|m, _| peak.min(2.0 * m as f64 * stream));
            let _ = writeln!(out, "<polyline fill='none' stroke='{colour}' stroke-dasharray='4 3' points='{roof}'/>");
        }
        let _ = writeln!(out, "<text x='598' y='{:.0}' fill='{colour}'>{}</text>", y(curve[curve.len() - 1].1) + 4.0, isa.name());
    }
    out + "</svg>\n"
}
