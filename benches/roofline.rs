//! The int8 operations against what the machine can do: the bare dot instruction, and a stream over the same weights.
//!
//! `cargo bench --bench roofline [-- --isa NAME] [--only TEXT] [--svg FILE] [--threads COUNT]`. K = N = 4096; each figure is the
//! best of a few rounds, in which the floors take turns with the operation; in brackets stands the median of the shares of single rounds,
//! for clocks that change between rounds. With `--only`, the lines that hold the text; with `--threads`, that many, each on a core of its
//! own, against one at 256 rows, the median of five rounds. Without `--bench`, as `cargo test` runs it, small sizes once.

mod arguments;
mod cores;
mod floors;
mod median;

use arguments::Arguments;
use floors::{peak, seconds, stream};
use median::median;
use std::fmt::Write;
use tilekern::kernels::dispatch::Level;
use tilekern::kernels::pack::packed_bytes;
use tilekern::ops::*;
use tilekern::{Host, Isa, ParallelFor, Run, Scratch, Serial, Tensor, TensorMut};

type Bytes = aligned_vec::AVec<i8>;

struct Setting<P> {
    host: Host<P>,
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

/// What a machine can do, and how long something took, of the same rounds.
#[derive(Clone, Copy)]
struct Found {
    time: f64,
    /// Operations a second of the bare instruction.
    peak: f64,
    /// Bytes a second.
    stream: f64,
    /// Operations that the bare instruction would have done meanwhile, at the clock of the same round: their median.
    meanwhile: f64,
}

impl<P: ParallelFor> Setting<P> {
    fn new(isa: Isa, pool: P, full: bool) -> Option<Setting<P>> {
        let (host, level) = (Host::with(isa, pool).ok()?, Level::new(isa)?);
        let (size, most, rounds) = if full { (4096, 512, 12) } else { (128, 64, 1) };
        let w = bytes(8 * size * size);
        let mut packed = aligned_vec::avec![0i8; packed_bytes(8, size, size).unwrap()];
        let length = packed.len();
        let weight = UnpackedWeight::I8(Tensor::new([8, size, size], &w).unwrap());
        host.run(PackWeight::new(weight, TensorMut::new([length], &mut packed).unwrap()), &mut []).unwrap();
        let scratch = Scratch::new(std::alloc::Layout::from_size_align(24 << 20, 64).unwrap());
        Some(Setting { host, level, size, rounds, x: bytes(most * size), w, packed, scale: vec![1e-3; 8 * size], scratch })
    }

    /// The best times of an operation and of the floors, which take turns; the stream is over the bytes of all weights that it reads.
    fn race(&self, weight: &[i8], operation: &mut dyn FnMut()) -> Found {
        let mut found = Found { time: f64::MAX, peak: 0.0, stream: 0.0, meanwhile: 0.0 };
        let mut meanwhile = vec![];
        for round in 0..4 * self.rounds {
            let (time, peak) = (seconds(&mut *operation), peak(self.level));
            meanwhile.push(time * peak);
            found.time = found.time.min(time);
            found.peak = found.peak.max(peak);
            if round % 4 == 0 {
                found.stream = found.stream.max(stream(self.level, weight));
            }
        }
        found.meanwhile = median(&mut meanwhile);
        found
    }

    /// Calls `measure` with a product of `m` rows; the result is checked afterwards.
    fn product<R>(&self, m: usize, k: usize, n: usize, format: i32, measure: impl FnOnce(&[i8], &mut dyn FnMut()) -> R) -> R {
        let mut out = aligned_vec::avec![0.0f32; m * n];
        let mut packed = aligned_vec::avec![0i8; packed_bytes(1, k, n).unwrap()];
        let length = packed.len();
        let plain = Tensor::new([k, n], &self.w).unwrap();
        self.host
            .run(PackWeight::new(UnpackedWeight::I8(plain), TensorMut::new([length], &mut packed).unwrap()), &mut [])
            .unwrap();
        let mut scratch = self.scratch.clone();
        let bytes: &[i8] = if format == FORMAT_PACKED { &packed[64..] } else { &self.w[..k * n] };
        let found = measure(bytes, &mut || {
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
        });
        let sum: i32 = (0..k).map(|i| i32::from(self.x[(m - 1) * k + i]) * i32::from(plain_at(&self.w, i, n, format, k))).sum();
        assert_eq!(out[m * n - 1], sum as f32 * 1e-3 * 1e-3);
        found
    }

    /// The time of the grouped product, `rows` rows for each of 8 experts.
    fn grouped(&self, rows: usize) -> Found {
        let (m, size) = (8 * rows, self.size);
        let (mut y, mut scale) = (vec![0i8; m * size / 2], vec![0.0f32; m]);
        let ends: Vec<i64> = (1..9).map(|e| (e * rows) as i64).collect();
        let mut scratch = self.scratch.clone();
        let mut found = self.race(&self.packed[64..], &mut || {
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
        });
        (found.time, found.meanwhile) = (found.time / 8.0, found.meanwhile / 8.0);
        assert!(scale.iter().all(|&scale| scale > 0.0) && y.contains(&127) | y.contains(&-127));
        found
    }
}

/// The last column of row `i`.
fn plain_at(w: &[i8], i: usize, n: usize, format: i32, k: usize) -> i8 {
    if format == FORMAT_NZ { w[(n / 32 - 1) * 32 * k + 32 * i + 31] } else { w[i * n + n - 1] }
}

/// Prints how much sooner `threads` threads are done than one.
fn print_scaling(isa: Isa, threads: usize, full: bool) {
    let Some(one) = Setting::new(isa, Serial, full) else { return };
    let many = Setting::new(isa, cores::pool(threads), full).unwrap();
    let (size, m) = (one.size, if full { 256 } else { 64 });
    let mut ratios = one.product(m, size, size, FORMAT_PACKED, |_, one| {
        many.product(m, size, size, FORMAT_PACKED, |_, many| -> Vec<f64> {
            let best = |run: &mut dyn FnMut()| (0..5).map(|_| seconds(&mut *run)).fold(f64::MAX, f64::min);
            (0..5).map(|_| best(one) / best(many)).collect()
        })
    });
    ratios.sort_by(f64::total_cmp);
    println!("{}: M = {m}, {threads} threads {:.2} times as fast as one ({ratios:.2?})", isa.name(), ratios[2]);
}

const ROWS: [usize; 12] = [1, 2, 4, 5, 8, 16, 32, 48, 64, 128, 256, 512];

fn main() {
    let arguments = Arguments::new();
    let full = arguments.full();
    let wanted = |name: &str| name.contains(arguments.only());
    let mut curves = vec![];
    for isa in arguments.isas() {
        if let Some(threads) = arguments.number("--threads") {
            print_scaling(isa, threads, full);
            continue;
        }
        let Some(mut setting) = Setting::new(isa, Serial, full) else { continue };
        if full && isa == Isa::Portable {
            setting.rounds = 2;
        }
        println!("{}", isa.name());
        let size = setting.size;
        let (mut curve, mut roof) = (vec![], [0.0f64; 2]);
        let line = |name: &str, m: usize, Found { time, peak, stream, meanwhile }: Found| {
            let (operations, bytes) = (2.0 * (m * size * size) as f64, (size * size) as f64);
            let (rate, floor) = (operations / time, (operations / peak).max(bytes / stream));
            println!(
                "  {name:<27} {:8.1} us {:7.1} GOPS {:4.1} % of dot {:4.0} ({:4.1} %) {:5.1} % of stream {:4.1} {:5.2} of the longer floor",
                time * 1e6,
                rate / 1e9,
                rate / peak * 100.0,
                peak / 1e9,
                operations / meanwhile * 100.0,
                bytes / time / stream * 100.0,
                stream / 1e9,
                time / floor
            );
            rate
        };
        let packed = ROWS.map(|m| (format!("packed, M = {m}"), m, 0, FORMAT_PACKED));
        let plain = [("ND", FORMAT_ND), ("NZ", FORMAT_NZ)]
            .map(|(kind, format)| [1, 4, 64, 256].map(|m| (format!("{kind}, M = {m}"), m, 0, format)));
        let odd = [7, 63].map(|m| (format!("packed, M = {m}, K - 1, N + 1"), m, 1, FORMAT_PACKED));
        for (name, m, odd, format) in packed.into_iter().chain(plain.into_iter().flatten()).chain(odd) {
            if (full || m <= 64) && wanted(&name) {
                let found = setting.product(m, size - odd, size + odd, format, |weight, run| setting.race(weight, run));
                let rate = line(&name, m, found);
                if (format, odd) == (FORMAT_PACKED, 0) {
                    roof = [roof[0].max(found.peak), roof[1].max(found.stream)];
                    curve.push((m, rate));
                }
            }
        }
        for (m, rows) in [(64, 64), (1, 1)] {
            let name = format!("grouped, {m} an expert");
            if (full || m == 1) && wanted(&name) {
                line(&name, m, setting.grouped(rows));
            }
        }
        if !curve.is_empty() {
            curves.push((isa, roof[0], roof[1], curve));
        }
    }
    if let Some(path) = arguments.after("--svg") {
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
