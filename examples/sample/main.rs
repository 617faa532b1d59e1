//! Chooses tokens from rows of logits: of a `.npy` file, of standard input, or of the rows that it carries.
//!
//! `cargo run --release --example sample -- --top-k 50 --top-p 0.9 --count 5`, and `--help` for the rest.

mod npy;
#[path = "../stop/mod.rs"]
mod stop;

use npy::Rows;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use stop::Stop;
use tilekern::kernels::dispatch::Level;
use tilekern::kernels::rows::Divide;
use tilekern::ops::{Noise, PostSample, TopKTopPSample};
use tilekern::{Host, Run, Scratch, Tensor, TensorMut};

const HELP: &str = "\
Chooses tokens from rows of logits.

Usage: sample [options] [FILE]

  FILE              a .npy file of float32 or float16, [V] or [rows,V], in C order; - reads standard input: such a file, or text, one
                    row a line, numbers apart by blanks or commas; without, three rows of 512 that the program carries
  --top-k N         draw among the N largest, at most 1024; 0 for all [0]
  --top-p X         draw among the most likely tokens that reach this probability; 1 for all [1]
  --min-p X         draw among the tokens with this fraction of the highest probability; 0 for all [0]
  --temperature X   divides the logits; 0 takes the largest, always [1]
  --seed N          what the draws follow from, with the number of the row [0]
  --count N         tokens to choose from each row [1]
  --help            print this

Prints for each row how many tokens the filters kept, but for those of -inf or NaN, and the tokens chosen.
";

/// The rows that are used without a file.
static DEFAULT_ROWS: &[u8] = include_bytes!("../../assets/logits.npy");

impl From<String> for Stop {
    fn from(sentence: String) -> Stop {
        Stop::Refused(sentence)
    }
}

struct Options {
    file: Option<OsString>,
    top_k: i32,
    top_p: f32,
    min_p: f32,
    temperature: f32,
    seed: i64,
    count: i64,
}

/// Reads the flags; `None` asks for the help.
fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Option<Options>, String> {
    let mut options = Options { file: None, top_k: 0, top_p: 1.0, min_p: 0.0, temperature: 1.0, seed: 0, count: 1 };
    while let Some(argument) = arguments.next() {
        if argument == "--help" || argument == "-h" {
            return Ok(None);
        }
        if !argument.as_encoded_bytes().starts_with(b"--") {
            if options.file.replace(argument).is_some() {
                return Err("one file at a time".into());
            }
            continue;
        }
        let flag = argument.to_string_lossy();
        let value = arguments.next().ok_or_else(|| format!("{flag} needs a value; --help lists the flags"))?;
        let value = value.to_str().ok_or_else(|| format!("the value of {flag} is not UTF-8"))?;
        let wrong = |expected: &str| format!("{flag} expects {expected}, not {value:?}");
        let number = || value.parse::<f32>().ok().filter(|x| x.is_finite()).ok_or_else(|| wrong("a number"));
        match &*flag {
            "--top-k" => options.top_k = in_range(value, 0, 1024).ok_or_else(|| wrong("a number from 0 to 1024"))? as i32,
            "--top-p" => options.top_p = number()?,
            "--min-p" => options.min_p = number()?,
            "--temperature" => {
                options.temperature = number().ok().filter(|&x| x >= 0.0).ok_or_else(|| wrong("a number of at least 0"))?;
            }
            "--seed" => options.seed = value.parse().map_err(|_| wrong("a whole number"))?,
            "--count" => options.count = in_range(value, 1, 1 << 20).ok_or_else(|| wrong("a number from 1 to 1048576"))?,
            _ => return Err(format!("there is no flag {flag}; --help lists them")),
        }
    }
    Ok(Some(options))
}

fn in_range(text: &str, least: i64, most: i64) -> Option<i64> {
    text.parse().ok().filter(|n| (least..=most).contains(n))
}

fn read(file: Option<OsString>) -> Result<Rows, String> {
    match file {
        None => npy::read(DEFAULT_ROWS),
        Some(file) if file == "-" => {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes).map_err(|error| format!("standard input: {error}"))?;
            let rows = if bytes.starts_with(npy::MAGIC) { npy::read(&bytes) } else { npy::read_text(&bytes) };
            rows.map_err(|why| format!("standard input: {why}"))
        }
        Some(file) => {
            let name = file.display();
            let bytes = std::fs::read(&file).map_err(|error| format!("{name}: {error}"))?;
            npy::read(&bytes).map_err(|why| format!("{name}: {why}"))
        }
    }
}

/// The tokens of each row, `count` after another, and how many tokens the filters kept of it.
fn choose(rows: &Rows, options: &Options) -> Result<(Vec<Vec<i64>>, Vec<usize>), tilekern::Error> {
    let (b, v) = (rows.count, rows.columns);
    let (top_k, top_p, min_p) = (vec![options.top_k; b], vec![options.top_p; b], vec![options.min_p; b]);
    let host = Host::new();
    let (mut chosen, mut select) = (vec![0; b], vec![0.0f32; b * v]);
    let mut tokens = vec![Vec::new(); b];
    let mut scratch = Scratch::default();
    for draw in 0..options.count {
        // Each row a seed of its own, each draw the next counters: 12 words, as torch takes.
        let seeds: Vec<i64> = (0..b as i64).flat_map(|row| [options.seed.wrapping_add(row), 12 * draw]).collect();
        let mut call = TopKTopPSample::new(
            Tensor::new([b, v], &rows.logits)?,
            Tensor::new([b], &top_k)?,
            Tensor::new([b], &top_p)?,
            TensorMut::new([b], &mut chosen)?,
        );
        call.min_ps = Some(Tensor::new([b], &min_p)?);
        call.post_sample = if options.temperature > 0.0 { PostSample::MultiNomial } else { PostSample::None };
        call.q = (options.temperature > 0.0).then_some(Noise::Seeds(Tensor::new([b, 2], &seeds)?));
        call.is_need_logits = true;
        call.logits_top_kp_select = Some(TensorMut::new([b, v], &mut select)?);
        let workspace = host.workspace(&call)?;
        host.run(call, scratch.reserve(workspace)?)?;
        for (tokens, &token) in tokens.iter_mut().zip(&chosen) {
            tokens.push(token);
        }
    }
    let kept = select.chunks(v).map(|row| row.iter().filter(|&&x| x > f32::NEG_INFINITY).count()).collect();
    Ok((tokens, kept))
}

fn run() -> Result<(), Stop> {
    let mut out = io::stdout().lock();
    let Some(mut options) = parse(std::env::args_os().skip(1))? else {
        return Ok(out.write_all(HELP.as_bytes())?);
    };
    let mut rows = read(options.file.take())?;
    if options.temperature > 0.0 {
        let level = Level::detect();
        rows.logits.chunks_mut(rows.columns).for_each(|row| level.run(Divide { row, by: options.temperature }));
    }
    let (tokens, kept) = choose(&rows, &options).map_err(|error| error.to_string())?;
    for (row, (tokens, kept)) in tokens.iter().zip(kept).enumerate() {
        let tokens: Vec<String> = tokens.iter().map(i64::to_string).collect();
        writeln!(out, "row {row}: {kept} of {} kept, chosen {}", rows.columns, tokens.join(" "))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    stop::exit("sample", 1, run())
}
