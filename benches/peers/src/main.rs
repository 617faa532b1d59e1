//! Sampling against its peers and its floor, in one run: `cargo run --release --manifest-path benches/peers/Cargo.toml`.
//!
//! Writes a Markdown table and an SVG plot into `docs/` of the repository (`--out FOLDER`: elsewhere). Every timed call gets
//! another row and other noise, copied into the cache before the clock starts, as the head of a model would leave it: the same row
//! again and again trains the branch predictor. Contenders take turns of a third of the rows each, so that a machine that slows down
//! slows all of them. `--rows N` (102) and `--largest V` (1 048 576) make it shorter. Everything runs on one thread.

mod baseline;
mod contenders;
#[path = "../../fresh/mod.rs"]
mod fresh;
mod measure;
mod ours;
mod peers;
mod plot;
#[path = "../../largest/mod.rs"]
mod largest;
#[path = "../../ranks/mod.rs"]
mod ranks;
mod rows;
mod table;

use measure::Measured;
use rows::Kind;
use std::path::PathBuf;

/// Vocabularies of Llama 2, Llama 3, Qwen 2.5 and Gemma, and the largest that the operation takes.
const VOCABULARIES: [usize; 5] = [32_000, 128_256, 151_936, 262_144, 1 << 20];

/// Where the rows of other kinds are measured.
const USUAL: usize = 128_256;

struct Options {
    rows: usize,
    largest: usize,
    out: PathBuf,
}

fn options() -> Result<Options, String> {
    let docs = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    let mut options = Options { rows: 102, largest: 1 << 20, out: docs };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(format!("{name} needs a value"))?;
        let number = || value.parse().map_err(|_| format!("{name}: {value} is no number"));
        match name.as_str() {
            "--rows" => options.rows = number()?,
            "--largest" => options.largest = number()?,
            "--out" => options.out = value.into(),
            _ => return Err(format!("{name}: --rows, --largest or --out")),
        }
    }
    Ok(options)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = options()?;
    // candle's softmax goes through rayon; this thread is its pool, so that it hands nothing over.
    rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global()?;
    let mut all: Vec<Measured> = Vec::new();
    for v in VOCABULARIES.into_iter().filter(|&v| v <= options.largest) {
        all.extend(measure::measure(Kind::Normal, v, options.rows));
        all.extend(measure::measure(Kind::Peaked, v, options.rows));
    }
    for kind in Kind::WORST {
        all.extend(measure::measure(kind, USUAL.min(options.largest), options.rows));
    }
    std::fs::write(options.out.join("peers.md"), table::markdown(&all, options.rows))?;
    std::fs::write(options.out.join("peers.svg"), plot::svg(&all))?;
    Ok(())
}
