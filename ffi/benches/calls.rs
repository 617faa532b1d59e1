//! What a call through C costs beside the same call in Rust, and as a multiple of the row's maximum.
//!
//! `cargo bench -p tilekern-ffi --bench calls`. Rust, C and the floor take turns; medians. Rows of 32 many calls at a time, the
//! others by fresh rows that are copied to the same cache lines before the clock starts. A ratio r is floor + (r - 1) x the floor,
//! or x 34 ps an element where that is longer. Without `--bench`, as `cargo test` runs it, a few calls each.

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../../benches/fresh/mod.rs"]
mod fresh;
#[path = "../../benches/logits/mod.rs"]
mod logits;
#[path = "../../benches/median/mod.rs"]
mod median;
#[path = "../../benches/ranks/mod.rs"]
mod ranks;

use common::{build, root, scratch, static_libraries, succeed};
use core::ffi::c_void;
use fresh::fill;
use libloading::Library;
use logits::{Floor, normal};
use median::{median, ratio};
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;
use tilekern::kernels::dispatch::Level;
use tilekern::ops::{Noise, PostSample, TopKTopPSample};
use tilekern::{Host, Run, Scratch, Tensor, TensorMut};

type Prepare = unsafe extern "C" fn(*mut f32, i64, *mut f32, *mut i64, i32, f32, f32, *mut c_void, usize);
/// How a case chooses.
#[derive(Clone, Copy, PartialEq)]
enum Choice {
    Best,
    Q,
    Draw,
}

type Make = unsafe extern "C" fn(i64) -> i64;

/// `calls.c`, linked with the static library of this profile.
fn program(profile: &str) -> Library {
    let (archive, path) = (build("tilekern-ffi", profile).join("libtilekern.a"), scratch().join("libcalls.so"));
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I"]).arg(root().join("include"));
    compiler.arg(root().join("benches/calls.c")).arg(archive).args(static_libraries()).arg("-o").arg(&path);
    succeed(&mut compiler);
    // SAFETY: loading it runs no code of its own.
    unsafe { Library::new(path) }.unwrap()
}

fn main() {
    let full = std::env::args().any(|a| a == "--bench");
    let library = program(if full { "release" } else { "test" });
    // SAFETY: the types are those of calls.c.
    let (prepare, make) =
        unsafe { (*library.get::<Prepare>("calls_prepare").unwrap(), *library.get::<Make>("calls_make").unwrap()) };
    let (host, level) = (Host::new(), Level::detect());
    println!("{}, one row of V logits, one thread", host.isa().name());
    for (v, case, (top_k, top_p, min_p), choice) in [
        (32, "argmax", (0, 1.0, 0.0), Choice::Best),
        (32, "top-k 5 with q", (5, 1.0, 0.0), Choice::Q),
        (32, "q alone", (0, 1.0, 0.0), Choice::Q),
        (128_256, "argmax", (0, 1.0, 0.0), Choice::Best),
        (128_256, "top-k 50 with q", (50, 1.0, 0.0), Choice::Q),
        (128_256, "top-k, p, m with q", (50, 0.9, 0.05), Choice::Q),
        (128_256, "top-k, p, m, drawn", (50, 0.9, 0.05), Choice::Draw),
    ] {
        let (batch, turns, fresh) = if v == 32 { (1000, 300, 1) } else { (1, 600, 100) };
        let (batch, turns, fresh) = if full { (batch, turns, fresh) } else { (2, 2, 1) };
        let mut state = 1;
        let rows: Vec<f32> = (0..fresh * v).map(|_| 4.0 * normal(&mut state)).collect();
        let mut q: Vec<f32> = (0..v).map(|_| normal(&mut state).powi(2) * 0.5 + 1e-3).collect();
        let mut row = aligned_vec::avec![0.0f32; v];
        let (k, p, m) = ([top_k], [top_p], [min_p]);
        let mut scratch = Scratch::new(std::alloc::Layout::from_size_align(8 << 20, 64).unwrap());
        let mut times = [vec![], vec![], vec![]];
        for (turn, next) in (0..).zip(rows.chunks_exact(v).cycle().take(turns)) {
            let (mut token, mut seeds) = ([-1], [7, 4 * turn]);
            ranks::turn(&mut q);
            // A row from afar pushes some of its copy out: one pass goes before.
            fill(&mut row, next.iter().copied());
            black_box(level.run(Floor(black_box(&row[..]))));
            fill(&mut row, next.iter().copied());
            let start = Instant::now();
            for _ in 0..batch {
                let mut call = TopKTopPSample::new(
                    Tensor::new([1, v], &row).unwrap(),
                    Tensor::new([1], &k).unwrap(),
                    Tensor::new([1], &p).unwrap(),
                    TensorMut::new([1], &mut token).unwrap(),
                );
                call.min_ps = (min_p > 0.0).then(|| Tensor::new([1], &m).unwrap());
                (call.post_sample, call.q) = match choice {
                    Choice::Best => (PostSample::None, None),
                    Choice::Q => (PostSample::QSample, Some(Noise::Exponential(Tensor::new([1, v], &q).unwrap()))),
                    Choice::Draw => (PostSample::MultiNomial, Some(Noise::Seeds(Tensor::new([1, 2], &seeds).unwrap()))),
                };
                host.run_mut(black_box(&mut call), &mut scratch).unwrap();
            }
            times[0].push(start.elapsed().as_secs_f64() / f64::from(batch));
            fill(&mut row, next.iter().copied());
            let noise = if choice == Choice::Q { q.as_mut_ptr() } else { std::ptr::null_mut() };
            let seeds = if choice == Choice::Draw { seeds.as_mut_ptr() } else { std::ptr::null_mut() };
            // SAFETY: the row, the noise and the workspace have these lengths and outlive the calls.
            let chosen = unsafe {
                prepare(
                    row.as_mut_ptr(),
                    v as i64,
                    noise,
                    seeds,
                    top_k,
                    top_p,
                    min_p,
                    scratch.as_mut_ptr().cast(),
                    scratch.len(),
                );
                let start = Instant::now();
                let chosen = make(i64::from(batch));
                times[1].push(start.elapsed().as_secs_f64() / f64::from(batch));
                chosen
            };
            assert_eq!(chosen, token[0]);
            fill(&mut row, next.iter().copied());
            let start = Instant::now();
            for _ in 0..batch {
                black_box(level.run(Floor(black_box(&row[..]))));
            }
            times[2].push(start.elapsed().as_secs_f64() / f64::from(batch));
        }
        let [rust, c, floor] = times.map(|mut times: Vec<f64>| median(&mut times));
        print!("  V = {v:<7} {case:<18} Rust {:8.0} ns, C {:8.0} ns, {:+5.0} ns", rust * 1e9, c * 1e9, (c - rust) * 1e9);
        if v == 32 { println!() } else { println!("; {:.2} and {:.2} of the floor", ratio(rust, floor, v), ratio(c, floor, v)) }
    }
}
