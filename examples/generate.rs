//! Continues texts: the default model, or a llama2.c or `.tkm` file, with the text as it comes or one JSON object.
//!
//! `cargo run --release --example generate -- --prompt "In the beginning"`, and `--help` for the rest.

mod stop;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use stop::Stop;
use tilekern::llama::{Decoding, DecodingConfig, Model, ModelOptions, RowSampling};
use tilekern::{Host, Isa, ParallelFor, Rayon, Scratch, Serial, Tensor, TensorMut};

const HELP: &str = "\
Continues texts with a LLaMA model.

Usage: generate [options]

  --checkpoint FILE   a .tkm file or a llama2.c checkpoint (version 0 or 1); without, the built-in model
  --tokenizer FILE    a llama2.c tokenizer.bin, for checkpoints that carry none
  --prompt TEXT       the text to continue; given several times, the texts are continued together
  --steps N           new tokens for each text [256]
  --temperature X     0 takes the most likely token, always [0.8]
  --top-k N           draw among the N most likely tokens; 0 for all [0]
  --top-p X           draw among the most likely tokens that reach this probability; 1 for all [0.95]
  --min-p X           draw among the tokens with this fraction of the highest probability; 0 for all [0]
  --seed N            what the draws follow from, the same for each text [0]
  --isa NAME          portable, avx2, avx512, avx512vnni, neon, neondot or avx512amx; without, the best
  --threads N         1 to 1024 [1]
  --json              print one JSON object and nothing else
  --help              print this
";

/// The model that is used without `--checkpoint`.
static DEFAULT_MODEL: &[u8] = include_bytes!("../assets/default.tkm");

const BEGIN: i32 = 1;
const END: i32 = 2;

impl From<tilekern::Error> for Stop {
    fn from(error: tilekern::Error) -> Stop {
        Stop::Refused(error.to_string())
    }
}

fn refused<T>(sentence: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Refused(sentence.into()))
}

struct Options {
    checkpoint: Option<PathBuf>,
    tokenizer: Option<PathBuf>,
    prompts: Vec<String>,
    steps: usize,
    sampling: RowSampling,
    isa: Isa,
    threads: usize,
    json: bool,
}

/// Reads the flags; `None` asks for the help.
fn parse(arguments: impl Iterator<Item = std::ffi::OsString>) -> Result<Option<Options>, Stop> {
    let mut options = Options {
        checkpoint: None,
        tokenizer: None,
        prompts: Vec::new(),
        steps: 256,
        sampling: RowSampling { temperature: 0.8, top_p: 0.95, ..Default::default() },
        isa: Isa::detect(),
        threads: 1,
        json: false,
    };
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let Some(argument) = argument.to_str() else { return refused(format!("{argument:?} is not UTF-8")) };
        let (flag, inline) = match argument.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.into())),
            _ => (argument, None),
        };
        match flag {
            "--help" | "-h" | "--json" if inline.is_some() => return refused(format!("{flag} takes no value")),
            "--help" | "-h" => return Ok(None),
            "--json" => {
                options.json = true;
                continue;
            }
            "--checkpoint" | "--tokenizer" | "--prompt" | "--steps" | "--temperature" | "--top-k" | "--top-p" | "--min-p"
            | "--seed" | "--isa" | "--threads" => {}
            _ => return refused(format!("there is no flag {flag}; --help lists them")),
        }
        let Some(value) = inline.or_else(|| arguments.next()) else { return refused(format!("{flag} needs a value")) };
        if flag == "--checkpoint" {
            options.checkpoint = Some(value.into());
            continue;
        }
        if flag == "--tokenizer" {
            options.tokenizer = Some(value.into());
            continue;
        }
        let Some(value) = value.to_str() else { return refused(format!("the value of {flag} is not UTF-8")) };
        let wrong = |expected: &str| Stop::Refused(format!("{flag} expects {expected}, not {value:?}"));
        let number = || value.parse::<f64>().ok().filter(|x| x.is_finite()).ok_or_else(|| wrong("a number"));
        match flag {
            "--prompt" => options.prompts.push(value.into()),
            "--steps" => options.steps = value.parse().map_err(|_| wrong("a whole number"))?,
            "--temperature" => {
                options.sampling.temperature =
                    number().ok().filter(|&x| x >= 0.0).ok_or_else(|| wrong("a number of at least 0"))?;
            }
            "--top-k" => options.sampling.top_k = value.parse().map_err(|_| wrong("a whole number"))?,
            "--top-p" => options.sampling.top_p = number()?,
            "--min-p" => options.sampling.min_p = number()?,
            "--seed" => options.sampling.seed = value.parse().map_err(|_| wrong("a whole number from 0 to 2^64 - 1"))?,
            "--isa" => options.isa = Isa::from_name(value).ok_or_else(|| wrong("an instruction set that --help names"))?,
            _ => {
                let threads = value.parse().ok().filter(|n| (1..=1024).contains(n));
                options.threads = threads.ok_or_else(|| wrong("a number from 1 to 1024"))?;
            }
        }
    }
    if options.prompts.is_empty() {
        options.prompts.push(String::new());
    }
    Ok(Some(options))
}

fn read(path: &Path) -> Result<Vec<u8>, Stop> {
    let name = path.display();
    match std::fs::metadata(path) {
        Ok(data) if data.is_file() => std::fs::read(path).or_else(|error| refused(format!("cannot read {name}: {error}"))),
        Ok(_) => refused(format!("cannot read {name}: not a file")),
        Err(error) => refused(format!("cannot read {name}: {error}")),
    }
}

/// What one prompt became.
struct Row {
    tokens: Vec<i32>,
    text: String,
    /// The beginning of a character.
    rest: Vec<u8>,
    previous: i32,
    ended: bool,
}

impl Row {
    /// Adds a token's bytes and returns the text that is now complete.
    fn push(&mut self, bytes: &[u8]) -> &str {
        let from = self.text.len();
        self.rest.extend_from_slice(bytes);
        loop {
            let error = match std::str::from_utf8(&self.rest) {
                Ok(text) => {
                    self.text.push_str(text);
                    self.rest.clear();
                    break;
                }
                Err(error) => error,
            };
            self.text.push_str(std::str::from_utf8(&self.rest[..error.valid_up_to()]).unwrap_or_default());
            let Some(wrong) = error.error_len() else {
                self.rest.drain(..error.valid_up_to());
                break;
            };
            self.text.push(char::REPLACEMENT_CHARACTER);
            self.rest.drain(..error.valid_up_to() + wrong);
        }
        &self.text[from..]
    }

    /// What is left of a character that never came.
    fn end(&mut self) -> &str {
        self.ended = true;
        let from = self.text.len();
        if !self.rest.is_empty() {
            self.text.push(char::REPLACEMENT_CHARACTER);
            self.rest.clear();
        }
        &self.text[from..]
    }
}

fn generate<P: ParallelFor>(host: &Host<P>, options: &Options) -> Result<(), Stop> {
    let checkpoint = options.checkpoint.as_deref().map(read).transpose()?;
    let tokenizer = options.tokenizer.as_deref().map(read).transpose()?;
    let file = checkpoint.as_deref().unwrap_or(DEFAULT_MODEL);
    let name = options.checkpoint.as_deref().map_or("the built-in model".into(), |path| path.display().to_string());
    let model_options = ModelOptions { tokenizer: tokenizer.as_deref(), ..Default::default() };
    let unusable = |error: tilekern::Error| Stop::Refused(format!("cannot use {name}: {error}"));
    let mut memory = Scratch::try_new(Model::<f32>::layout(&model_options, file).map_err(unusable)?)?;
    let model = Model::<f32>::load(&model_options, file, &mut memory).map_err(unusable)?;
    if model.token_text(0, 0).is_err() {
        return refused(format!("{name} carries no tokenizer: --tokenizer names one"));
    }

    let context = model.shape().context;
    let mut prompts = Vec::new();
    for prompt in &options.prompts {
        let mut ids = vec![BEGIN; prompt.len() + 2];
        let count = 1 + model.encode(prompt.as_bytes(), &mut ids[1..])?;
        ids.truncate(count);
        if count > context {
            return refused(format!("a prompt has {count} tokens, and the context of {name} is {context}"));
        }
        prompts.push(ids);
    }
    let batch = prompts.len();
    let lengths: Vec<i32> = prompts.iter().map(|ids| ids.len() as i32).collect();
    let (shortest, longest) = prompts.iter().fold((context, 1), |(a, b), ids| (a.min(ids.len()), b.max(ids.len())));
    let tokens: Vec<i32> = prompts.iter().flat_map(|ids| (0..longest).map(|i| ids.get(i).copied().unwrap_or(0))).collect();

    // What follows the last position of the context is still generated.
    let max_new = options.steps.min(context + 1 - shortest).max(1);
    let config = DecodingConfig { batch, max_prompt: longest, max_new, end_id: BEGIN };
    let workspace = Decoding::<f32>::layout(host, &config, &model).map_err(unusable)?;
    let mut memory = Scratch::try_new(workspace)?;
    let mut decoding = Decoding::<f32>::new(host, &config, &model, &mut memory).map_err(unusable)?;
    for row in 0..batch {
        decoding.set_row(row, &options.sampling)?;
    }

    let mut out = io::stdout().lock();
    let single = batch == 1 && !options.json;
    if single {
        out.write_all(options.prompts[0].as_bytes())?;
        out.flush()?;
    }
    let start = Instant::now();
    decoding.prompt(host, Tensor::new([batch, longest], &tokens)?, Tensor::new([batch], &lengths)?)?;
    let prefill_s = start.elapsed().as_secs_f64();
    let prefilled = lengths.iter().map(|&n| n as usize - 1).sum::<usize>();

    let mut rows: Vec<Row> = prompts
        .iter()
        .map(|ids| Row { tokens: vec![], text: String::new(), rest: vec![], previous: ids[ids.len() - 1], ended: false })
        .collect();
    let mut decode_s = 0.0;
    let mut ids = vec![0; batch];
    while !decoding.finished() && options.steps > 0 {
        let start = Instant::now();
        decoding.step(host, TensorMut::new([batch], &mut ids)?)?;
        decode_s += start.elapsed().as_secs_f64();
        for (i, row) in rows.iter_mut().enumerate().filter(|(_, row)| !row.ended) {
            let id = ids[i];
            // A row that came to its limit gives BEGIN, too.
            if id == BEGIN || id == END {
                decoding.stop_row(i)?;
                finish(&mut out, options, i, row)?;
                continue;
            }
            let text = row.push(model.token_text(row.previous, id)?);
            if single {
                out.write_all(text.as_bytes())?;
                out.flush()?;
            }
            row.tokens.push(id);
            row.previous = id;
        }
    }
    for (i, row) in rows.iter_mut().enumerate().filter(|(_, row)| !row.ended) {
        finish(&mut out, options, i, row)?;
    }

    let decoded = rows.iter().map(|row| row.tokens.len()).sum();
    let rate = |tokens: usize, seconds: f64| if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 };
    let (prefill_rate, decode_rate) = (rate(prefilled, prefill_s), rate(decoded, decode_s));
    if options.json {
        let tokens = list(rows.iter().map(|row| list(row.tokens.iter().map(i32::to_string))));
        let text = list(rows.iter().map(|row| quoted(&row.text)));
        writeln!(
            out,
            "{{\"tokens\": {tokens}, \"text\": {text}, \"prefill_s\": {prefill_s}, \"decode_s\": {decode_s}, \
             \"prefill_tokens_per_s\": {prefill_rate}, \"decode_tokens_per_s\": {decode_rate}, \
             \"workspace_bytes\": {}, \"isa\": {}, \"threads\": {}}}",
            workspace.size(),
            quoted(host.isa().name()),
            options.threads,
        )?;
        out.flush()?;
    } else {
        let mut error = io::stderr().lock();
        let _ = writeln!(
            error,
            "prefill {prefilled} tokens, {prefill_rate:.1} tokens/s; decode {decoded} tokens, {decode_rate:.1} tokens/s"
        );
    }
    Ok(())
}

/// Ends a row, and prints what is to be printed then.
fn finish(out: &mut impl Write, options: &Options, i: usize, row: &mut Row) -> io::Result<()> {
    let rest = row.end();
    if options.json {
        return Ok(());
    }
    if options.prompts.len() == 1 {
        writeln!(out, "{rest}")?;
    } else {
        let line = format!("{}{}", options.prompts[i], row.text).replace('\n', "\\n");
        writeln!(out, "[{i}] {line}")?;
    }
    out.flush()
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut json = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\0'..='\u{1F}' => {
                let _ = write!(json, "\\u{:04x}", u32::from(c));
            }
            _ => json.push(c),
        }
    }
    json.push('"');
    json
}

fn run() -> Result<(), Stop> {
    let Some(options) = parse(std::env::args_os().skip(1))? else {
        return Ok(io::stdout().write_all(HELP.as_bytes())?);
    };
    if options.threads == 1 {
        return generate(&Host::with(options.isa, Serial)?, &options);
    }
    let host = Host::with(options.isa, Rayon::new(options.threads)?)?;
    host.pool().install(|| generate(&host, &options))
}

fn main() -> ExitCode {
    stop::exit("generate", 2, run())
}
