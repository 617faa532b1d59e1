//! TopKTopPSample as multiples of the floor, the maximum of the row and nothing else.
//!
//! `cargo bench --bench ratios [-- --isa NAME] [--v V] [--only TEXT]`. A hundred fresh rows a case, each with other noise and
//! copied to the same cache lines before the clock starts; medians, floor and operation in turns. A ratio r is floor + (r - 1) x the
//! floor, or x 34 ps an element where that is longer. Without `--bench`, as `cargo test` runs it, short rows once.

mod arguments;
mod floor_of_row;
mod fresh;
mod logits;
mod median;
mod ranks;

use arguments::Arguments;
use floor_of_row::floor_of_row;
use logits::normal;
use median::{median, ratio};
use std::hint::black_box;
use std::time::Instant;
use tilekern::kernels::dispatch::Level;
use tilekern::kernels::element::Element;
use tilekern::ops::{Noise, PostSample, TopKTopPSample};
use tilekern::{Backend, Host, Run, Scratch, Serial, Tensor, TensorMut, bf16, f16};

/// How a case chooses.
#[derive(Clone, Copy, PartialEq)]
enum Choice {
    Best,
    Q,
    Draw,
}

/// A case of a table.
struct Case {
    name: &'static str,
    k: i32,
    p: f32,
    min_p: f32,
    choice: Choice,
    /// Whether the filtered row is written.
    filtered: bool,
}

const fn case(name: &'static str, k: i32, p: f32, min_p: f32, choice: Choice) -> Case {
    Case { name, k, p, min_p, choice, filtered: false }
}

struct Setting {
    host: Host,
    level: Level,
    v: usize,
    turns: usize,
    q: Vec<f32>,
    only: String,
}

impl Setting {
    fn measure<T: Element>(&self, rows: &[T], case: &Case)
    where
        for<'a> Host: Backend<Scratch<'a> = &'a mut [u8]> + Run<TopKTopPSample<'a, Host, T>>,
    {
        if !case.name.contains(&self.only) {
            return;
        }
        let v = self.v;
        let (mut row, mut filtered) = (aligned_vec::avec![T::default(); v], vec![0.0f32; v]);
        let (k, p, min_p, mut seeds) = ([case.k], [T::narrow(case.p)], [T::narrow(case.min_p)], [7, 0]);
        let mut q = self.q.clone();
        let mut token = [-1];
        let (mut scratch, mut floors, mut times) = (Scratch::default(), vec![], vec![]);
        for (turn, next) in (0..).zip(rows.chunks_exact(v).cycle().take(self.turns)) {
            ranks::turn(&mut q);
            seeds[1] = 4 * turn;
            let (floor, top) = floor_of_row(self.level, &mut row, next);
            floors.push(floor);
            assert!(top > f32::NEG_INFINITY);
            let mut call = TopKTopPSample::new(
                Tensor::new([1, v], &row).unwrap(),
                Tensor::new([1], &k).unwrap(),
                Tensor::new([1], &p).unwrap(),
                TensorMut::new([1], &mut token).unwrap(),
            );
            call.min_ps = Some(Tensor::new([1], &min_p).unwrap());
            (call.post_sample, call.q) = match case.choice {
                Choice::Best => (PostSample::None, None),
                Choice::Q => (PostSample::QSample, Some(Noise::Exponential(Tensor::new([1, v], &q).unwrap()))),
                Choice::Draw => (PostSample::MultiNomial, Some(Noise::Seeds(Tensor::new([1, 2], &seeds).unwrap()))),
            };
            if case.filtered {
                call.is_need_logits = true;
                call.logits_top_kp_select = Some(TensorMut::new([1, v], &mut filtered).unwrap());
            }
            let scratch = scratch.reserve(self.host.workspace(&call).unwrap()).unwrap();
            let start = Instant::now();
            self.host.run_mut(black_box(&mut call), scratch).unwrap();
            times.push(start.elapsed().as_secs_f64());
            let chosen: f32 = row[token[0] as usize].as_();
            assert!(chosen > f32::NEG_INFINITY && (case.choice != Choice::Best || chosen == top));
        }
        let (floor, time) = (median(&mut floors), median(&mut times));
        let ratio = ratio(time, floor, v);
        println!("  {:<44} {:9.2} us {ratio:7.2} of {:.2} us", case.name, time * 1e6, floor * 1e6);
    }
}

fn main() {
    use Choice::{Best, Draw, Q};
    let arguments = Arguments::new();
    let (full, v) = (arguments.full(), arguments.v());
    let count = if full { 100 } else { 2 };
    let mut state = 1;
    let normals: Vec<f32> = (0..count * v).map(|_| 4.0 * normal(&mut state)).collect();
    let flat: Vec<f32> = normals.iter().map(|x| x * 0.05).collect();
    let mut peaked: Vec<f32> = normals.iter().map(|x| x * 0.25).collect();
    let (mut spike, equal) = (flat.clone(), vec![1.5f32; count * v]);
    for row in 0..count {
        for i in 0..30 {
            peaked[row * v + (i * 7919 + row * 31) % v] = 13.0 + 2.0 * normal(&mut state);
        }
        spike[row * v + row * 777 % v] = 30.0;
    }
    let ties: Vec<f32> = normals.iter().map(|x| x.round()).collect();
    let half: Vec<f32> = normals.iter().enumerate().map(|(i, &x)| if i % 2 == 0 { f32::NEG_INFINITY } else { x }).collect();
    let ascending: Vec<f32> = (0..count * v).map(|i| (i % v) as f32 * 1e-4).collect();
    let short: Vec<bf16> = normals.iter().map(|&x| bf16::from_f32(x)).collect();
    let half_precision: Vec<f16> = normals.iter().map(|&x| f16::from_f32(x)).collect();
    // Exponential numbers of rate 1: half the sum of two squares.
    let q: Vec<f32> = (0..v).map(|_| 0.5 * (normal(&mut state).powi(2) + normal(&mut state).powi(2))).collect();
    let top_k = |name| case(name, 50, 1.0, 0.0, Q);
    for isa in arguments.isas() {
        let (Ok(host), Some(level)) = (Host::with(isa, Serial), Level::new(isa)) else { continue };
        let turns = if full { 6 * count } else { count };
        let setting = Setting { host, level, v, turns, q: q.clone(), only: arguments.only().into() };
        println!("{}, V = {v}", isa.name());
        setting.measure(&normals, &case("argmax", 0, 1.0, 0.0, Best));
        setting.measure(&normals, &top_k("top-k 50 with q"));
        setting.measure(&normals, &case("top-k 50, top-p 0.9, min-p 0.05 with q", 50, 0.9, 0.05, Q));
        setting.measure(&normals, &case("top-k 50, top-p 0.9, min-p 0.05, multinomial", 50, 0.9, 0.05, Draw));
        setting.measure(&normals, &case("top-k 50, top-p 0.9 with q", 50, 0.9, 0.0, Q));
        setting.measure(&normals, &case("top-k 50, top-p 0.9, multinomial", 50, 0.9, 0.0, Draw));
        setting.measure(&peaked, &case("top-k 20, top-p 0.8 with q, peaked", 20, 0.8, 0.0, Q));
        setting.measure(&normals, &case("top-k 200 with q", 200, 1.0, 0.0, Q));
        setting.measure(&normals, &case("top-k 1024 with q", 1024, 1.0, 0.0, Q));
        setting.measure(&spike, &top_k("top-k 50 with q, a spike"));
        setting.measure(&equal, &top_k("top-k 50 with q, all equal"));
        setting.measure(&half, &top_k("top-k 50 with q, half masked"));
        setting.measure(&ties, &top_k("top-k 50 with q, many ties"));
        setting.measure(&ascending, &top_k("top-k 50 with q, ascending"));
        setting.measure(&normals, &case("min-p 0.05 with q", 0, 1.0, 0.05, Q));
        setting.measure(&flat, &case("min-p 0.0001 with q, all survive", 0, 1.0, 1e-4, Q));
        setting.measure(&normals, &case("top-p 0.9 with q", 0, 0.9, 0.0, Q));
        setting.measure(&peaked, &case("top-p 0.9 with q, peaked", 0, 0.9, 0.0, Q));
        setting.measure(&normals, &case("top-p 0.99 with q", 0, 0.99, 0.0, Q));
        setting.measure(&normals, &case("top-p 0.99, multinomial", 0, 0.99, 0.0, Draw));
        setting.measure(&peaked, &case("top-p 0.9999 with q, peaked", 0, 0.9999, 0.0, Q));
        setting.measure(&normals, &case("top-p 0.95, min-p 0.05 with q", 0, 0.95, 0.05, Q));
        let filtered = |name| Case { filtered: true, ..case(name, 0, 0.9, 0.0, Best) };
        setting.measure(&normals, &filtered("top-p 0.9, the filtered row"));
        setting.measure(&flat, &filtered("top-p 0.9, the filtered row, flat"));
        setting.measure(&normals, &Case { p: 0.99, ..filtered("top-p 0.99, the filtered row") });
        setting.measure(&flat, &case("top-p 0.9 with q, flat", 0, 0.9, 0.0, Q));
        setting.measure(&flat, &case("top-p 0.9, multinomial, flat", 0, 0.9, 0.0, Draw));
        setting.measure(&normals, &case("q alone", 0, 1.0, 0.0, Q));
        setting.measure(&normals, &case("multinomial alone", 0, 1.0, 0.0, Draw));
        setting.measure(&flat, &case("multinomial alone, flat", 0, 1.0, 0.0, Draw));
        setting.measure(&short, &top_k("bf16: top-k 50 with q"));
        setting.measure(&half_precision, &top_k("f16: top-k 50 with q"));
        setting.measure(&short, &case("bf16: min-p 0.05 with q", 0, 1.0, 0.05, Q));
        setting.measure(&half_precision, &case("f16: argmax", 0, 1.0, 0.0, Best));
    }
}
