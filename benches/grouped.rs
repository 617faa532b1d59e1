//! Grouped products of skewed routing against their floors, and products of odd shapes against the even ones around them.
//!
//! `cargo bench --bench grouped [-- --isa NAME]`. Every figure is the median of rounds in which floors and operations take turns.
//! Without `--bench`, as `cargo test` runs it, small sizes once.

mod arguments;
mod floors;
mod median;

use arguments::Arguments;
use floors::{peak, seconds, stream};
use median::median;
use tilekern::kernels::dispatch::Level;
use tilekern::kernels::pack::packed_bytes;
use tilekern::ops::*;
use tilekern::{Host, Run, Scratch, Serial, Tensor, TensorMut};

type Bytes = aligned_vec::AVec<i8>;

fn bytes(count: usize) -> Bytes {
    let mut bytes = aligned_vec::avec![0i8; count];
    bytes.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i.wrapping_mul(2_654_435_761) >> 13) as i8);
    bytes
}

struct Setting {
    host: Host,
    level: Level,
    rounds: usize,
    scratch: Scratch,
}

/// A weight `[k,n]`, and the activations of `m` rows.
struct Shape {
    m: usize,
    k: usize,
    n: usize,
    x: Bytes,
    w: Bytes,
    scale: Vec<f32>,
    out: Vec<f32>,
}

impl Shape {
    fn new(m: usize, k: usize, n: usize) -> Shape {
        Shape { m, k, n, x: bytes(m * k), w: bytes(k * n), scale: vec![1e-3; m.max(n)], out: vec![0.0; m * n] }
    }

    fn packed(&self, host: &Host) -> Bytes {
        let mut packed = aligned_vec::avec![0i8; packed_bytes(1, self.k, self.n).unwrap()];
        let length = packed.len();
        let weight = UnpackedWeight::I8(Tensor::new([self.k, self.n], &self.w).unwrap());
        host.run(PackWeight::new(weight, TensorMut::new([length], &mut packed).unwrap()), &mut []).unwrap();
        packed
    }

    /// Seconds of the product, packed or not.
    fn time(&mut self, setting: &mut Setting, packed: Option<&Bytes>) -> f64 {
        let Shape { m, k, n, x, w, scale, out } = self;
        let (m, k, n) = (*m, *k, *n);
        let weight = packed.map_or_else(|| Tensor::new([k, n], w), |packed| Tensor::new([packed.len()], packed)).unwrap();
        let to = Product::F32(TensorMut::new([m, n], out).unwrap());
        let mut call = QuantMatmul::new(Tensor::new([m, k], x).unwrap(), weight, to);
        call.weight_format = if packed.is_some() { FORMAT_PACKED } else { FORMAT_ND };
        call.weight_scale = Some(ChannelScale::F32(Tensor::new([n], &scale[..n]).unwrap()));
        call.x_scale = Some(Tensor::new([m], &scale[..m]).unwrap());
        let time = seconds(|| setting.host.run(call, &mut setting.scratch).unwrap());
        let sum: i32 = (0..k).map(|i| i32::from(x[(m - 1) * k + i]) * i32::from(w[i * n + n - 1])).sum();
        assert_eq!(out[m * n - 1], sum as f32 * 1e-3 * 1e-3);
        time
    }
}

impl Setting {
    /// An odd shape against the one with M rounded up to 8, K to 64 and N to 16.
    fn odd(&mut self, m: usize, k: usize, n: usize) {
        let mut shapes = [Shape::new(m, k, n), Shape::new(m.next_multiple_of(8), k.next_multiple_of(64), n.next_multiple_of(16))];
        let packed = [shapes[0].packed(&self.host), shapes[1].packed(&self.host)];
        for (name, from) in [("packed", true), ("ND", false)] {
            let mut times = [vec![], vec![]];
            for _ in 0..self.rounds {
                for i in 0..2 {
                    times[i].push(shapes[i].time(self, from.then_some(&packed[i])));
                }
            }
            let [odd, even] = times.each_mut().map(|times| median(times));
            println!("  {name}, {m} x {k} x {n}: {:.0} us, {:.2} of the even shape", odd * 1e6, odd / even);
        }
    }

    /// `tokens` tokens over `experts` experts, the first of them a share of 1, the second of 1/2, and so on.
    fn zipf(&mut self, [experts, k, n, tokens]: [usize; 4]) {
        let mut packed = aligned_vec::avec![0i8; packed_bytes(experts, k, n).unwrap()];
        let length = packed.len();
        {
            let w = bytes(experts * k * n);
            let weight = UnpackedWeight::I8(Tensor::new([experts, k, n], &w).unwrap());
            self.host.run(PackWeight::new(weight, TensorMut::new([length], &mut packed).unwrap()), &mut []).unwrap();
        }
        let whole: f64 = (1..=experts).map(|rank| 1.0 / rank as f64).sum();
        let below = |rank: usize| ((1..=rank).map(|rank| 1.0 / rank as f64).sum::<f64>() / whole * tokens as f64).round() as i64;
        // Ranks lie scattered.
        let counts: Vec<i64> = (0..experts).map(|e| e * 101 % experts).map(|rank| below(rank + 1) - below(rank)).collect();
        let (x, scale) = (bytes(tokens * k), vec![1e-3f32; (experts * n).max(tokens)]);
        let (mut y, mut y_scale) = (vec![0i8; tokens * n / 2], vec![0.0f32; tokens]);
        let (mut times, mut floors) = (vec![], vec![]);
        for _ in 0..self.rounds {
            let (peak, stream) = (peak(self.level), stream(self.level, &packed[64..]));
            let floor = |&count: &i64| (2.0 * count as f64 * (k * n) as f64 / peak).max((k * n) as f64 / stream);
            floors.push(counts.iter().filter(|&&count| count > 0).map(floor).sum());
            let mut call = GroupedMatmulSwigluQuant::new(
                Tensor::new([tokens, k], &x).unwrap(),
                GroupedWeight::I8(Tensor::new([length], &packed).unwrap()),
                GroupedScale::Channel(ChannelScale::F32(Tensor::new([experts, n], &scale[..experts * n]).unwrap())),
                Tensor::new([tokens], &scale[..tokens]).unwrap(),
                Tensor::new([experts], &counts).unwrap(),
                TensorMut::new([tokens, n / 2], &mut y).unwrap(),
                TensorMut::new([tokens], &mut y_scale).unwrap(),
            );
            (call.weight_format, call.group_list_type) = (FORMAT_PACKED, 1);
            times.push(seconds(|| self.host.run(call, &mut self.scratch).unwrap()));
            assert!(y_scale.iter().all(|&scale| scale > 0.0));
        }
        let (time, floor) = (median(&mut times), median(&mut floors));
        let used = counts.iter().filter(|&&count| count > 0).count();
        println!(
            "  {tokens} tokens over {used} of {experts} experts of {k} x {n}: {:.0} us, {:.2} of the floor",
            time * 1e6,
            time / floor
        );
    }
}

fn main() {
    let arguments = Arguments::new();
    let full = arguments.full();
    for isa in arguments.isas() {
        let (Ok(host), Some(level)) = (Host::with(isa, Serial), Level::new(isa)) else { continue };
        println!("{}", isa.name());
        let scratch = Scratch::new(std::alloc::Layout::from_size_align(24 << 20, 64).unwrap());
        let mut setting = Setting { host, level, rounds: if full { 15 } else { 1 }, scratch };
        for m in [7, 63, 65] {
            let size = if full { 4096 } else { 128 };
            setting.odd(m, size - 1, size + 1);
        }
        setting.zipf(if full { [256, 1792, 1024, 1024] } else { [4, 64, 32, 64] });
    }
}
